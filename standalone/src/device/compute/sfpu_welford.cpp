// Welford's running mean and sum of squared differences of each column of a stream of tiles. They
// stay in vector engine registers from tile to tile.

#include <array>

#include "device/compute/sfpu_rows.hpp"

namespace ttcodegen::device::compute {

namespace {

/// 1 / (index + 1): from the kernel's table of `size` float bits, or divided if it has no entry.
float reciprocal_of(const void* table, std::uint32_t size, std::uint32_t index) {
    return index < size ? std::bit_cast<float>(static_cast<const std::uint32_t*>(table)[index])
                        : 1.0F / static_cast<float>(index + 1);
}

/// Parameters: index of the first sample, first row, rows, size of the table of reciprocals.
void update(const SfpuOperands& operands) {
    SfpuMemory& memory = *operands.memory;
    const std::uint32_t first_row = operands.word(1);
    for (std::uint32_t i = 0; i < operands.word(2); ++i) {
        const float reciprocal =
            reciprocal_of(operands.data, operands.word(3), operands.word(0) + i);
        for (std::size_t column = 0; column < kTileWidth; ++column) {
            const float value = operands.inputs[0]->floats()[tile_offset(first_row + i, column)];
            const float difference = value - memory.means[column];
            memory.means[column] += difference * reciprocal;
            memory.squares[column] += difference * (value - memory.means[column]);
        }
    }
}

/// The raw layout of the engine's registers in memory: column by column over every other column of
/// four rows of the tile's memory, further down for each group.
std::size_t raw_offset(std::size_t column, std::uint32_t group) {
    const std::size_t lane_row = column / kFaceWidth * 2 + column % 2;
    const std::size_t lane_column = column % kFaceWidth / 2 * 2;
    return (group * 4 + lane_row) * kFaceWidth + lane_column;
}

float* register_of(const SfpuOperands& operands) {
    return operands.word(0) == 0 ? operands.memory->means : operands.memory->squares;
}

/// The final value of a stored register: sums of squares become variances.
float finished(const SfpuOperands& operands, float value) {
    const bool finish = operands.word(0) == 1 && operands.word(3) != 0;
    return finish ? value * operands.number(2) : value;
}

/// Parameters: register, group, a factor, and whether it applies to sums of squares.
void store_raw(const SfpuOperands& operands) {
    const float* values = register_of(operands);
    for (std::size_t column = 0; column < kTileWidth; ++column) {
        operands.output->floats()[raw_offset(column, operands.word(1))] =
            finished(operands, values[column]);
    }
}

void store_row(const SfpuOperands& operands) {
    const float* values = register_of(operands);
    for (std::size_t column = 0; column < kTileWidth; ++column) {
        operands.output->floats()[tile_offset(0, column)] = finished(operands, values[column]);
    }
}

void load_raw(const SfpuOperands& operands) {
    float* values = register_of(operands);
    for (std::size_t column = 0; column < kTileWidth; ++column) {
        values[column] = operands.inputs[0]->floats()[raw_offset(column, operands.word(1))];
    }
}

constexpr std::array kWelfordRows{
    TTCODEGEN_SFPU_ROW(welford_update, "welford_update", welford_update, false, Float, Float,
                       update),
    TTCODEGEN_SFPU_ROW(welford_store_raw, "welford_save_state", welford_update, false, None, Float,
                       store_raw),
    TTCODEGEN_SFPU_ROW(welford_store_row, "welford_finalize_to_row", welford_update, false, None,
                       Float, store_row),
    TTCODEGEN_SFPU_ROW(welford_load_raw, "welford_restore_state", welford_update, false, Float,
                       Float, load_raw),
};

}  // namespace

std::span<const SfpuRow> sfpu_welford_rows() { return kWelfordRows; }

}  // namespace ttcodegen::device::compute
