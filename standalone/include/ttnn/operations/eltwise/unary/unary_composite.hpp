#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "ttnn/operations/core/core.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Clamps values to [`min`, `max`]; one bound may be absent. An i32 tensor with float bounds
/// becomes f32.
Tensor clip(const Tensor& input_a, std::optional<float> min = std::nullopt,
            std::optional<float> max = std::nullopt,
            const std::optional<MemoryConfig>& output_mem_config = std::nullopt);
Tensor clip(const Tensor& input_a, std::optional<Tensor> min = std::nullopt,
            std::optional<Tensor> max = std::nullopt,
            const std::optional<MemoryConfig>& output_mem_config = std::nullopt);
/// As `clip`; both bounds must have the same type, and with integer bounds an i32 tensor stays i32.
Tensor clamp(const Tensor& input_a,
             std::optional<std::variant<float, std::int32_t>> min = std::nullopt,
             std::optional<std::variant<float, std::int32_t>> max = std::nullopt,
             const std::optional<MemoryConfig>& output_mem_config = std::nullopt,
             const std::optional<Tensor>& output_tensor = std::nullopt);
Tensor clamp(const Tensor& input_a, std::optional<Tensor> min = std::nullopt,
             std::optional<Tensor> max = std::nullopt,
             const std::optional<MemoryConfig>& output_mem_config = std::nullopt,
             const std::optional<Tensor>& output_tensor = std::nullopt);

/// Zeroes the elements above, or below, the diagonal of the last two dimensions; tiles.
Tensor tril(const Tensor& input_a, std::int32_t diag = 0,
            const std::optional<MemoryConfig>& output_mem_config = std::nullopt);
Tensor triu(const Tensor& input_a, std::int32_t diag = 0,
            const std::optional<MemoryConfig>& output_mem_config = std::nullopt);

}  // namespace ttnn
