#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "ttcodegen/release.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// The sorted values and their indices: u16, or u32 for dimensions of at least 65536;
/// since 0.81.1 u32 for all but bf16.
std::vector<Tensor> sort(const Tensor& input_tensor, std::int8_t dim = -1, bool descending = false,
                         bool stable = false,
                         const std::optional<MemoryConfig>& memory_config = std::nullopt,
                         std::optional<std::tuple<Tensor&, Tensor&>> optional_output_tensors =
                             std::nullopt TTCODEGEN_RULES_8101);

}  // namespace ttnn
