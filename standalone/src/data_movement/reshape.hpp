#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// The same elements under another shape, on the same buffer where the real library shares it.
Tensor reshape(const Tensor& tensor, const Shape& shape,
               const std::optional<MemoryConfig>& memory_config);
/// Sizes of which one may be -1.
Shape infer_shape(const Tensor& tensor, ttsl::Span<const std::int32_t> sizes);

}  // namespace ttcodegen::cpu
