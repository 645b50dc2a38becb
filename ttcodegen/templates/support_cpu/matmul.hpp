#pragma once

#include "support/cpu/tensor.hpp"

namespace support::cpu {

struct Matmul {
    bool transpose_a = false;
    bool transpose_b = false;
};

/// Matmul; leading dimensions are broadcast. A vector is one row as the left operand and one column
/// as the right one.
inline Tensor matmul(const Type& type, const Tensor& a, const Tensor& b, const Matmul& attributes) {
    Shape left = a.shape;
    Shape right = b.shape;
    const bool is_row = left.size() == 1;
    const bool is_column = right.size() == 1;
    if (is_row) {
        left.insert(left.begin(), 1);
    }
    if (is_column) {
        right.push_back(1);
    }
    const bool transpose_a = attributes.transpose_a && !is_row;
    const bool transpose_b = attributes.transpose_b && !is_column;
    const std::size_t rows = left[left.size() - (transpose_a ? 1 : 2)];
    const std::size_t inner = left[left.size() - (transpose_a ? 2 : 1)];
    const std::size_t columns = right[right.size() - (transpose_b ? 2 : 1)];
    const Shape left_batch(left.begin(), left.end() - 2);
    const Shape right_batch(right.begin(), right.end() - 2);
    Shape batch(std::max(left_batch.size(), right_batch.size()), 1);
    for (std::size_t axis = 0; axis < batch.size(); ++axis) {
        const std::size_t from_end = batch.size() - axis;
        const auto size = [&](const Shape& shape) {
            return from_end <= shape.size() ? shape[shape.size() - from_end] : 1;
        };
        batch[axis] = size(left_batch) == 1 ? size(right_batch) : size(left_batch);
    }
    std::vector<double> values(count_of(type.shape), 0);
    const std::array<Shape, 2> strides{broadcast_strides(left_batch, batch),
                                       broadcast_strides(right_batch, batch)};
    walk<2>(batch, strides, [&](std::size_t place, const auto& matrices) {
        const double* const x = a.elements.data() + matrices[0] * rows * inner;
        const double* const y = b.elements.data() + matrices[1] * inner * columns;
        for (std::size_t row = 0; row < rows; ++row) {
            double* const result = values.data() + (place * rows + row) * columns;
            for (std::size_t k = 0; k < inner; ++k) {
                const double factor = transpose_a ? x[k * rows + row] : x[row * inner + k];
                for (std::size_t column = 0; column < columns; ++column) {
                    result[column] +=
                        factor * (transpose_b ? y[column * inner + k] : y[k * columns + column]);
                }
            }
        }
    });
    return rounded(type, std::move(values));
}

}  // namespace support::cpu
