#pragma once

// What the matrix engine computes on whole tiles of floats, without registers and checks.
// Tiles are arrays of kTileElements in the order of the device, see tile.hpp.

#include <cstdint>

#include "device/compute/tile.hpp"
#include "ttcodegen/device/compute_functions.hpp"

namespace ttcodegen::device::compute {

/// output += a * b, the product of matrices, accumulated in f32.
void multiply_matrices(const float* a, const float* b, float* output);

/// output -= a * b.
void subtract_matrix_product(const float* a, const float* b, float* output);

/// Exchanges the two faces off the diagonal, transposes each face, or both: a whole transposition.
/// `output` is not `input`.
void transpose_tile(const std::uint32_t* input, bool faces, bool within_faces,
                    std::uint32_t* output);

/// Repeats the first column, a row, or the first element over the whole tile.
void broadcast_tile(const std::uint32_t* input, Broadcast broadcast, std::uint32_t row,
                    std::uint32_t* output);

/// Cuts mantissas to `bits` bits after the leading one.
void cut_mantissas(const float* input, int bits, float* output);
/// What `cut_mantissas` cuts off.
void mantissa_rests(const float* input, int bits, float* output);

/// Mantissa bits that one pass of the multiplier takes of source A and of source B. The passes of
/// higher fidelities bring in the rest of A (HiFi2), then the rest of B (HiFi3), then the product
/// of the rests (HiFi4). Source: "Matrix engine" in the technical reports of tt-metal.
constexpr int kFirstBitsOfA = 4;
constexpr int kFirstBitsOfB = 6;

/// How a reduction goes on from what the destination holds.
struct ReductionStart {
    /// Whether the destination was written since it was acquired.
    bool continues = false;
    /// Mantissa bits that are left on the way from the destination to a source register; 10 or 7.
    int source_bits = 10;
};

/// Reduces `input`, each line multiplied with row 0 of the scaler's faces, into `output`.
///
/// Sums and averages are the same: the scaler makes the difference. As on the device, a reduction
/// of rows also leaves its results in row 0 of each face on the left, which packing masks.
void reduce_tile(Pool pool, Reduction reduction, const float* input, const float* scaler,
                 ReductionStart start, float* output);

}  // namespace ttcodegen::device::compute
