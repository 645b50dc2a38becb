#pragma once

// Precision of a core's engines: operands and sums under a compute kernel config. Source:
// SrcASrcB.md and MVMUL.md of tenstorrent/tt-isa-documentation.

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>

#include "core/numeric.hpp"
#include "core/tensor_data.hpp"
#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"

namespace ttcodegen::cpu {

using tt::tt_metal::MathFidelity;
using ttnn::DeviceComputeKernelConfig;

/// Truncates mantissas: keeps sign, exponent and leading bits.
class MantissaCut {
  public:
    /// `bits` counts the bits after the leading one; 23 keep a float unchanged.
    explicit constexpr MantissaCut(int bits = 23)
        : mask_(~((std::uint32_t{1} << (23 - bits)) - 1)) {}

    float operator()(float value) const {
        return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & mask_);
    }
    /// The same for the bits of a bfloat16.
    std::uint16_t operator()(std::uint16_t value) const {
        return static_cast<std::uint16_t>(value & mask_ >> 16);
    }
    std::uint32_t mask() const { return mask_; }

  private:
    std::uint32_t mask_;
};

/// Mantissa bits of source A and source B in the first pass of the multiplier.
inline constexpr int kFirstPassOfA = 4;
inline constexpr int kFirstPassOfB = 6;

/// Precision of operands and results in the engines.
struct Arithmetic {
    /// Mantissa bits of a float in a source register: TF32, or bfloat16 where sums have 16 bits.
    int source_bits = 23;
    /// Multiplied mantissa bits of source B, the first operand of a matmul.
    int first_bits = 23;
    /// Multiplied mantissa bits of source A, the second operand, and the operand of reductions.
    int second_bits = 23;
    /// Sums are rounded to bfloat16 whenever a tile is accumulated.
    bool narrow_sums = false;
    /// Exponentials and reciprocals are approximations.
    bool approximate = false;
    /// The product of the bits that the first pass omits of both operands is dropped.
    bool drops_low_product = false;

    static Arithmetic of(const DeviceComputeKernelConfig& config);

    MantissaCut source() const { return MantissaCut(source_bits); }
    MantissaCut first() const { return MantissaCut(first_bits); }
    MantissaCut second() const { return MantissaCut(second_bits); }
    /// The product of an element in source A and one in source B.
    float product(float a, float b) const {
        const float left = second()(a);
        const float right = first()(b);
        if (!drops_low_product) {
            return left * right;
        }
        const float dropped =
            (left - MantissaCut(kFirstPassOfA)(left)) * (right - MantissaCut(kFirstPassOfB)(right));
        // The result of IEEE 754 is chosen where an operand is not finite or this product
        // overflows: infinities would be subtracted from each other otherwise.
        return left * right - (std::isfinite(dropped) ? dropped : 0.0F);
    }
    /// A number as stored in the destination registers.
    float in_destination(float value) const { return narrow_sums ? round_to_bf16(value) : value; }
};

/// Defaults of calls without a compute kernel config. The numpy run uses the same table
/// (ttcodegen/dialects/operations/compute_config.py).
enum class ComputeDefault : std::uint8_t {
#define TTCODEGEN_COMPUTE_DEFAULT(name, fidelity, approximate, wide) name,
#include "compute/compute_defaults.inc"
#undef TTCODEGEN_COMPUTE_DEFAULT
};

/// The arithmetic of a call with these operands on the default architecture. `passed` is the call's
/// compute kernel config.
Arithmetic arithmetic_of(const std::optional<DeviceComputeKernelConfig>& passed, ComputeDefault row,
                         std::span<const DataType> operands, bool result_is_float32);

}  // namespace ttcodegen::cpu
