#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// round(x / scale) + zero_point as i32. Scales and zero points are scalars, tensors of one
/// element, or, with `axis`, vectors along that dimension.
Tensor quantize(const Tensor& input_tensor, const std::variant<Tensor, float>& scale,
                const std::variant<Tensor, std::int32_t>& zero_point,
                std::optional<std::int32_t> axis = std::nullopt,
                const std::optional<const DataType>& output_dtype = std::nullopt,
                const std::optional<MemoryConfig>& memory_config = std::nullopt,
                std::optional<Tensor> optional_output_tensor = std::nullopt);

/// Converts from one scale and zero point to another.
Tensor requantize(const Tensor& input_tensor, const std::variant<Tensor, float>& in_scale,
                  const std::variant<Tensor, std::int32_t>& in_zero_point,
                  const std::variant<Tensor, float>& out_scale,
                  const std::variant<Tensor, std::int32_t>& out_zero_point,
                  std::optional<std::int32_t> axis = std::nullopt,
                  const std::optional<const DataType>& output_dtype = std::nullopt,
                  const std::optional<MemoryConfig>& memory_config = std::nullopt,
                  std::optional<Tensor> optional_output_tensor = std::nullopt);

/// (x - zero_point) * scale, bf16 by default.
Tensor dequantize(const Tensor& input_tensor, const std::variant<Tensor, float>& scale,
                  const std::variant<Tensor, std::int32_t>& zero_point,
                  std::optional<std::int32_t> axis = std::nullopt,
                  const std::optional<const DataType>& output_dtype = std::nullopt,
                  const std::optional<MemoryConfig>& memory_config = std::nullopt,
                  std::optional<Tensor> optional_output_tensor = std::nullopt);

}  // namespace ttnn
