#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "ttnn/operations/core/core.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Values below `min` become `min`, those above `max` become `max`. One bound may be missing. An
/// i32 tensor with float bounds becomes f32.
Tensor clip(const Tensor& input_a, std::optional<float> min = std::nullopt,
            std::optional<float> max = std::nullopt,
            const std::optional<MemoryConfig>& output_mem_config = std::nullopt);
Tensor clip(const Tensor& input_a, std::optional<Tensor> min = std::nullopt,
            std::optional<Tensor> max = std::nullopt,
            const std::optional<MemoryConfig>& output_mem_config = std::nullopt);
/// As `clip`; numbers must be of one kind, and with whole ones an i32 tensor stays i32.
Tensor clamp(const Tensor& input_a,
             std::optional<std::variant<float, std::int32_t>> min = std::nullopt,
             std::optional<std::variant<float, std::int32_t>> max = std::nullopt,
             const std::optional<MemoryConfig>& output_mem_config = std::nullopt,
             const std::optional<Tensor>& output_tensor = std::nullopt);
Tensor clamp(const Tensor& input_a, std::optional<Tensor> min = std::nullopt,
             std::optional<Tensor> max = std::nullopt,
             const std::optional<MemoryConfig>& output_mem_config = std::nullopt,
             const std::optional<Tensor>& output_tensor = std::nullopt);

/// The matrices of the last two dimensions with zeros above, or below, the diagonal; tiles.
Tensor tril(const Tensor& input_a, std::int32_t diag = 0,
            const std::optional<MemoryConfig>& output_mem_config = std::nullopt);
Tensor triu(const Tensor& input_a, std::int32_t diag = 0,
            const std::optional<MemoryConfig>& output_mem_config = std::nullopt);

}  // namespace ttnn
