#pragma once

#include <cstddef>

#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

using Extents = ttsl::SmallVector<std::size_t>;
using Strides = ttsl::SmallVector<std::ptrdiff_t>;

/// Elements of a buffer: the offset of the first and the strides of each dimension.
struct StridedSource {
    const std::byte* first;
    Strides strides;
};
struct StridedTarget {
    std::byte* first;
    Strides strides;
};

/// Copies `sizes` elements of `element_size` bytes (1, 2 or 4); strides count elements, may be
/// negative or, in the source, zero.
void strided_copy(const StridedSource& source, const StridedTarget& target, const Extents& sizes,
                  std::size_t element_size);

/// Row-major strides of a shape.
Strides signed_strides(const Shape& shape);
Extents extents(const Shape& shape);

/// Sets `count` elements to `value`, rounded to `dtype`.
void fill_elements(std::byte* first, std::size_t count, DataType dtype, float value);

}  // namespace ttcodegen::cpu
