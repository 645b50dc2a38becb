#pragma once

// Computations of the matrix engine on whole tiles of floats, without registers and checks.
// Tiles are arrays of kTileElements in the order of the device, see tile.hpp.

#include <cstdint>

#include "device/compute/tile.hpp"
#include "ttcodegen/device/compute_functions.hpp"

namespace ttcodegen::device::compute {

/// output += a * b, a matmul accumulated in f32.
void multiply_matrices(const float* a, const float* b, float* output);

/// output -= a * b, where a and b are the rests of mantissas that HiFi3 does not multiply with each
/// other. The result of IEEE 754 is chosen: products that are not finite (of infinities and NaN,
/// and those that overflow) are left out, for `output` is not finite there, and would become NaN.
void subtract_dropped_product(const float* a, const float* b, float* output);

/// Exchanges the two off-diagonal faces, transposes each face, or both: a full transposition.
/// `output` is not `input`.
void transpose_tile(const std::uint32_t* input, bool faces, bool within_faces,
                    std::uint32_t* output);

/// Broadcasts the first column, a row, or the first element over the tile.
void broadcast_tile(const std::uint32_t* input, Broadcast broadcast, std::uint32_t row,
                    std::uint32_t* output);

/// Truncates mantissas to `bits` bits after the leading one.
void cut_mantissas(const float* input, int bits, float* output);
/// The remainders of `cut_mantissas`.
void mantissa_rests(const float* input, int bits, float* output);

/// Mantissa bits of source A and of source B in one pass of the multiplier. The passes of higher
/// fidelities add the rest of A (HiFi2), then the rest of B (HiFi3), then the product of the rests
/// (HiFi4). Source: "Matrix engine" in the technical reports of tt-metal.
constexpr int kFirstBitsOfA = 4;
constexpr int kFirstBitsOfB = 6;

/// The initial state of a reduction, from the content of the destination.
struct ReductionStart {
    /// Set if the destination was written since it was acquired.
    bool continues = false;
    /// Mantissa bits that are kept between the destination and a source register; 10 or 7.
    int source_bits = 10;
    /// Mantissa bits of a row's total, which source register B takes back to the destination.
    int row_bits = 10;
};

/// Reduces `input`, each line multiplied by row 0 of the scaler's faces, into `output`.
///
/// Sums and averages differ in the scaler only. As on the device, a reduction of rows also leaves
/// its results in row 0 of the left faces, which packing masks.
void reduce_tile(Pool pool, Reduction reduction, const float* input, const float* scaler,
                 ReductionStart start, float* output);

}  // namespace ttcodegen::device::compute
