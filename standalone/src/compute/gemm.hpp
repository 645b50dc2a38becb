#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>

#include "compute/arithmetic.hpp"
#include "core/numeric.hpp"

namespace ttcodegen::cpu {

/// The bits of a bfloat16: kernels need the raw 16 bits, not a class with arithmetic.
using Bfloat16Bits = std::uint16_t;

/// The element type of matmuls with bfloat16 (or narrower) operands: bfloat16 pairs if the machine
/// multiplies them directly, else float. Both accumulate in float.
#ifdef __AVX512BF16__
using NarrowElement = Bfloat16Bits;
#else
using NarrowElement = float;
#endif

/// Converts between float and bfloat16, rounding to nearest even.
template <typename To, typename From>
inline To convert_element(From value) {
    if constexpr (std::is_same_v<To, From>) {
        return value;
    } else if constexpr (std::is_same_v<To, float>) {
        return bf16_value(value);
    } else {
        return bf16_bits(value);
    }
}

/// The precision of sums: float, or rounded to bfloat16 after every tile of the depth, as in 16-bit
/// destination registers.
enum class Sums : std::uint8_t { Float32, Bfloat16 };

/// The precision of sums under an arithmetic.
inline Sums sums_of(const Arithmetic& arithmetic) {
    return arithmetic.narrow_sums ? Sums::Bfloat16 : Sums::Float32;
}

/// Strides, in elements, of a batch of matrices in memory.
struct MatrixStrides {
    std::int64_t batch = 0;
    std::int64_t row = 0;
    std::int64_t column = 1;
};

/// The right operand of a matmul, `batches` matrices of depth x columns, packed into column panels
/// as wide as the register tile. Packing costs about as much as a matmul with one row, so packed
/// constants are cached.
template <typename Element>
class PackedMatrix {
  public:
    PackedMatrix(std::int64_t batches, std::int64_t depth, std::int64_t columns);

    /// Packs matrices with the given strides. Source is float or Bfloat16Bits; `cut` truncates the
    /// elements.
    template <typename Source>
    static PackedMatrix pack(std::int64_t batches, std::int64_t depth, std::int64_t columns,
                             const Source* data, MatrixStrides strides, MantissaCut cut);

    /// Packs columns [first, first + columns) of one matrix on the calling thread, into memory that
    /// the thread's next call reuses.
    template <typename Source>
    static PackedMatrix pack_part(std::int64_t depth, std::int64_t first, std::int64_t columns,
                                  const Source* data, MatrixStrides strides, MantissaCut cut);

    /// The leading depths and columns, sharing the elements. `depth` is a multiple of 2.
    PackedMatrix leading(std::int64_t depth, std::int64_t columns) const;

    std::int64_t batches() const { return batches_; }
    std::int64_t depth() const { return depth_; }
    std::int64_t columns() const { return columns_; }
    std::int64_t padded_depth() const { return padded_depth_; }
    std::int64_t panels() const { return panels_; }

    /// The panel of columns [panel * width, (panel + 1) * width), starting at row `depth` (a
    /// multiple of the pairing).
    const Element* panel(std::int64_t batch, std::int64_t panel, std::int64_t depth) const;

  private:
    PackedMatrix(std::int64_t batches, std::int64_t depth, std::int64_t columns,
                 std::shared_ptr<Element[]> data);
    std::size_t size() const { return static_cast<std::size_t>(batches_ * batch_size_); }
    template <typename Source>
    void pack_panel(std::int64_t batch, std::int64_t panel, const Source* data,
                    MatrixStrides strides, MantissaCut cut);
    Element* panel_begin(std::int64_t batch, std::int64_t panel);

    std::int64_t batches_;
    std::int64_t depth_;
    std::int64_t columns_;
    std::int64_t padded_depth_;
    std::int64_t panels_;
    std::int64_t panel_size_;
    std::int64_t batch_size_;
    std::shared_ptr<Element[]> data_;
};

/// Writes rows [row, row + rows) and depths [depth, depth + depths) of the left operand of batch
/// `batch` to `out`, with a row stride of `stride`. Depths are within the operand; the caller
/// handles padding.
template <typename Element>
using LeftOperand =
    std::function<void(std::int64_t batch, std::int64_t row, std::int64_t rows, std::int64_t depth,
                       std::int64_t depths, Element* out, std::int64_t stride)>;

/// Consumes a finished block of the result: rows [row, row + rows) x columns [column, column +
/// columns). It may modify the block. Blocks come from several threads and do not overlap.
using BlockConsumer =
    std::function<void(std::int64_t batch, std::int64_t row, std::int64_t rows, std::int64_t column,
                       std::int64_t columns, float* block, std::int64_t stride)>;

/// A left operand with the given strides. Source is float or Bfloat16Bits; `cut` truncates the
/// elements.
template <typename Element, typename Source>
LeftOperand<Element> left_operand(const Source* data, MatrixStrides strides, MantissaCut cut);

/// Batched matmul of a (rows x depth) left operand with the packed right operand, by blocks on the
/// thread pool. A right operand with one batch serves all batches.
template <typename Element>
void multiply(std::int64_t batches, std::int64_t rows, const LeftOperand<Element>& left,
              const PackedMatrix<Element>& right, Sums sums, const BlockConsumer& consume);

/// Matmul with a right operand that is used once: it is packed in pieces, which stay in the
/// cache.
template <typename Element, typename Source>
void multiply_unpacked(std::int64_t batches, std::int64_t rows, const LeftOperand<Element>& left,
                       std::int64_t right_batches, std::int64_t depth, std::int64_t columns,
                       const Source* right, MatrixStrides strides, MantissaCut cut, Sums sums,
                       const BlockConsumer& consume);

/// Matmul with a packed operand on the calling thread only, for callers that are parallel
/// themselves.
template <typename Element>
void multiply_serially(std::int64_t batch, std::int64_t rows, const LeftOperand<Element>& left,
                       const PackedMatrix<Element>& right, Sums sums, const BlockConsumer& consume);

}  // namespace ttcodegen::cpu
