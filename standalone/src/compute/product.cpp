#include "compute/product.hpp"

namespace ttcodegen::cpu {

template <typename Element>
std::shared_ptr<const PackedOperand<Element>> packed_operand(
    const Tensor& tensor, std::int64_t batches, std::int64_t depth, std::int64_t columns,
    MatrixStrides strides, MantissaCut cut) {
    std::uint64_t key = mix_key(sizeof(Element), cut.mask());
    for (const std::int64_t value : {batches, depth, columns, strides.row, strides.column}) {
        key = mix_key(key, static_cast<std::uint64_t>(value));
    }
    return buffer_of(tensor).derived<PackedOperand<Element>>(key, [&] {
        return visit_elements(tensor, [&](const auto* data) {
            return std::make_shared<PackedOperand<Element>>(
                PackedMatrix<Element>::pack(batches, depth, columns, data, strides, cut));
        });
    });
}

template std::shared_ptr<const PackedOperand<float>> packed_operand(const Tensor&, std::int64_t,
                                                                    std::int64_t, std::int64_t,
                                                                    MatrixStrides, MantissaCut);
#ifdef __AVX512BF16__
template std::shared_ptr<const PackedOperand<Bfloat16Bits>> packed_operand(
    const Tensor&, std::int64_t, std::int64_t, std::int64_t, MatrixStrides, MantissaCut);
#endif

void ProductOutput::store(std::int64_t row, std::int64_t rows, std::int64_t column,
                          std::int64_t columns, float* block, std::int64_t block_stride) const {
    const auto element_size = static_cast<std::int64_t>(stored_size(dtype));
    for (std::int64_t r = 0; r < rows; ++r, block += block_stride) {
        if (scale != 1.0F) {
            for (std::int64_t c = 0; c < columns; ++c) {
                block[c] *= scale;
            }
        }
        if (bias != nullptr) {
            const float* values =
                bias + (row + r) % bias_rows * bias_row_stride + column * bias_column_stride;
            if (bias_column_stride == 1) {
                for (std::int64_t c = 0; c < columns; ++c) {
                    block[c] += values[c];
                }
            } else {
                for (std::int64_t c = 0; c < columns; ++c) {
                    block[c] += values[c * bias_column_stride];
                }
            }
        }
        if (activation) {
            apply_activation(*activation, block, static_cast<std::size_t>(columns));
        }
        store_floats(block, static_cast<std::size_t>(columns), dtype,
                     data + ((row + r) * stride + column) * element_size);
    }
}

}  // namespace ttcodegen::cpu
