#pragma once

// Common parts of matmuls of tensors: the element type of the computation, packed constant operands
// cached with their storage, and the epilogue from float sums to a tensor.

#include <cstdint>
#include <memory>
#include <optional>

#include "compute/activation.hpp"
#include "compute/gemm.hpp"
#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// Returns whether all values of the type are representable as bfloat16.
constexpr bool fits_bfloat16(DataType dtype) {
    return dtype == DataType::BFLOAT16 || dtype == DataType::UINT8 || is_block(dtype);
}

/// Calls `function(pointer)` with the elements as `const Bfloat16Bits*` or, converted if needed, as
/// `const float*`.
template <typename Function>
decltype(auto) visit_elements(const Tensor& tensor, const Function& function) {
    if (tensor.dtype() == DataType::BFLOAT16) {
        return function(elements<Bfloat16Bits>(tensor).data());
    }
    const FloatElements floats(tensor);
    return function(floats.data());
}

/// Mixes `value` into a key for Buffer::derived.
constexpr std::uint64_t mix_key(std::uint64_t key, std::uint64_t value) {
    return (key ^ value) * 0x9e3779b97f4a7c15U + (value >> 7);
}

/// Returns whether a tensor is used as a weight for the first time. A tensor that is used once is
/// an activation, whose packed form would only take memory.
inline bool is_first_use(const Tensor& tensor) { return buffer_of(tensor).weight_uses++ == 0; }

/// Derives a form from a tensor's elements with `make()`, cached from the second use on.
template <typename Form, typename Make>
std::shared_ptr<const Form> derive(const Tensor& tensor, std::uint64_t key, const Make& make) {
    return is_first_use(tensor) ? make() : buffer_of(tensor).derived<Form>(key, make);
}

/// A packed right operand that can be cached with a buffer.
template <typename Element>
struct PackedOperand : Derived {
    explicit PackedOperand(PackedMatrix<Element> matrix_) : matrix(std::move(matrix_)) {}
    PackedMatrix<Element> matrix;
};

/// The truncated elements of `tensor`, as `batches` right operands of depth x columns with these
/// strides; cached with its elements.
template <typename Element>
std::shared_ptr<const PackedOperand<Element>> packed_operand(
    const Tensor& tensor, std::int64_t batches, std::int64_t depth, std::int64_t columns,
    MatrixStrides strides, MantissaCut cut);

/// The epilogue of a matmul: scale, bias, activation, rounding, and the store to a tensor.
struct ProductOutput {
    std::byte* data = nullptr;
    DataType dtype = DataType::INVALID;
    /// Elements between rows of the output.
    std::int64_t stride = 0;

    /// Multiplies every sum.
    float scale = 1.0F;
    /// Added to every scaled sum: bias[row % bias_rows * bias_row_stride + column *
    /// bias_column_stride].
    const float* bias = nullptr;
    std::int64_t bias_rows = 1;
    std::int64_t bias_row_stride = 0;
    std::int64_t bias_column_stride = 1;
    std::optional<UnaryWithParam> activation = std::nullopt;

    /// Applies the epilogue to a block of sums in place and stores it at (row, column).
    void store(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns,
               float* block, std::int64_t block_stride) const;
};

}  // namespace ttcodegen::cpu
