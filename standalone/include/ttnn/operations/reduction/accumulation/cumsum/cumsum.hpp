#pragma once

#include <cstdint>
#include <optional>

#include "ttcodegen/release.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Cumulative sum along `dim`, from the end with `reverse_order`.
Tensor cumsum(const Tensor& input, const std::int32_t& dim,
              std::optional<DataType> dtype = std::nullopt, const bool& reverse_order = false,
              std::optional<Tensor> optional_out = std::nullopt,
              const std::optional<MemoryConfig>& memory_config =
                  std::nullopt TTCODEGEN_ADDED_8101(, bool disable_compensated_sum = false));

}  // namespace ttnn
