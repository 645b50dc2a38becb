#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// Reshapes a tensor, on the same buffer if ttnn shares it.
Tensor reshape(const Tensor& tensor, const Shape& shape,
               const std::optional<MemoryConfig>& memory_config);
/// Infers a size of -1.
Shape infer_shape(const Tensor& tensor, ttsl::Span<const std::int32_t> sizes);

}  // namespace ttcodegen::cpu
