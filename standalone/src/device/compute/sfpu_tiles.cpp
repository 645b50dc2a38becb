// Operations of the vector engine that combine several elements, or depend on the data format of
// their operands.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/typecast.hpp"
#include "device/compute/sfpu_rows.hpp"
#include "device/compute/tile_format.hpp"

namespace ttcodegen::device::compute {

namespace {

DataFormat format_of(std::uint32_t parameter) { return static_cast<DataFormat>(parameter); }

/// The next value of the engine's random number generator.
std::uint32_t next_random(SfpuMemory& memory) {
    // A full-period 32-bit generator, then mixed so that the low bits are random too.
    memory.random = memory.random * 1664525U + 1013904223U;
    std::uint32_t bits = memory.random;
    bits = (bits ^ (bits >> 16)) * 0x7feb352dU;
    return bits ^ (bits >> 15);
}

void random_values(const SfpuOperands& operands) {
    const float from = operands.number(0);
    const float scale = operands.number(1);
    for (std::size_t i = 0; i < kTileElements; ++i) {
        const auto unit = static_cast<float>(next_random(*operands.memory) >> 9) * 0x1p-23F;
        operands.output->floats()[i] = unit * scale + from;
    }
}

void drop_out(const SfpuOperands& operands) {
    const std::uint32_t probability = operands.word(0);
    const float scale = operands.number(1);
    for (std::size_t i = 0; i < kTileElements; ++i) {
        const bool dropped = (next_random(*operands.memory) >> 1) < probability;
        operands.output->floats()[i] = dropped ? 0.0F : operands.inputs[0]->floats()[i] * scale;
    }
}

/// Stochastic rounding to bfloat16: up with the probability of the truncated part.
void round_stochastically(const SfpuOperands& operands) {
    for (std::size_t i = 0; i < kTileElements; ++i) {
        const std::uint32_t word = operands.inputs[0]->words[i];
        const bool finite = (word & 0x7f800000U) != 0x7f800000U;
        const std::uint32_t noise = finite ? next_random(*operands.memory) >> 16 : 0;
        operands.output->words[i] = (word + noise) & 0xffff0000U;
    }
}

/// Converts a float to an integer of `format`, as docs/numbers.md lists it.
std::uint32_t integer_word(float value, DataFormat format) {
    switch (format) {
        case DataFormat::UInt32:
            return cpu::typecast_to_u32(value);
        case DataFormat::UInt16:
            return cpu::typecast_to_u16(value);
        case DataFormat::UInt8:
            return cpu::typecast_to_u8(value);
        default:
            return static_cast<std::uint32_t>(cpu::typecast_to_si32(value));
    }
}

/// Converts an integer between formats, saturating for narrower ones.
std::uint32_t converted_integer(std::uint32_t word, DataFormat from, DataFormat to) {
    const std::int64_t value = from == DataFormat::Int32
                                   ? std::int64_t{static_cast<std::int32_t>(word)}
                                   : std::int64_t{word};
    switch (to) {
        case DataFormat::UInt16:
            return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, 0xffff));
        case DataFormat::UInt8:
            return word & 0xffU;
        default:
            return word;
    }
}

std::uint32_t converted(std::uint32_t word, DataFormat from, DataFormat to) {
    if (is_integer(from)) {
        if (is_integer(to)) {
            return converted_integer(word, from, to);
        }
        const float value = from == DataFormat::Int32
                                ? static_cast<float>(static_cast<std::int32_t>(word))
                                : cpu::typecast_to_float(word);
        return std::bit_cast<std::uint32_t>(
            to == DataFormat::Float32 ? value : cpu::round_ties_away_to_bf16(value));
    }
    // Packing rounds between float formats; until then a 32-bit register keeps full precision.
    return is_integer(to) ? integer_word(std::bit_cast<float>(word), to) : word;
}

void convert_types(const SfpuOperands& operands) {
    const DataFormat from = format_of(operands.word(0));
    const DataFormat to = format_of(operands.word(1));
    for (std::size_t i = 0; i < kTileElements; ++i) {
        operands.output->words[i] = converted(operands.inputs[0]->words[i], from, to);
    }
    if (from == DataFormat::Float32 && to == DataFormat::Float16_b) {
        round_to_bfloat16(operands.output->floats(), kTileElements);
    }
}

void choose(const SfpuOperands& operands) {
    for (std::size_t i = 0; i < kTileElements; ++i) {
        const bool condition = (operands.inputs[0]->words[i] & 0x7fffffffU) != 0;
        operands.output->words[i] = operands.inputs[condition ? 1 : 2]->words[i];
    }
}

void add_product(const SfpuOperands& operands) {
    const bool integers = is_integer(format_of(operands.word(0)));
    for (std::size_t i = 0; i < kTileElements; ++i) {
        if (integers) {
            operands.output->words[i] =
                operands.inputs[0]->words[i] +
                operands.word(1) * operands.inputs[1]->words[i] * operands.inputs[2]->words[i];
        } else {
            operands.output->floats()[i] = operands.inputs[0]->floats()[i] +
                                           operands.number(1) * operands.inputs[1]->floats()[i] *
                                               operands.inputs[2]->floats()[i];
        }
    }
}

void negate_logically(const SfpuOperands& operands) {
    const bool integers = is_integer(format_of(operands.word(0)));
    const std::uint32_t one = integers ? 1U : std::bit_cast<std::uint32_t>(1.0F);
    const std::uint32_t magnitude = integers ? 0xffffffffU : 0x7fffffffU;
    for (std::size_t i = 0; i < kTileElements; ++i) {
        operands.output->words[i] = (operands.inputs[0]->words[i] & magnitude) == 0 ? one : 0U;
    }
}

/// Keeps the elements whose mask is not zero, and replaces the others by `filler`.
template <std::uint32_t filler>
void keep_masked(const SfpuOperands& operands) {
    for (std::size_t i = 0; i < kTileElements; ++i) {
        const bool kept = (operands.inputs[1]->words[i] & 0x7fffffffU) != 0;
        operands.output->words[i] = kept ? operands.inputs[0]->words[i] : filler;
    }
}

void copy_words(const SfpuOperands& operands) { *operands.output = *operands.inputs[0]; }

/// Multiplies complex pairs by i: (even, odd) becomes (-odd, even).
void rotate_pairs(const SfpuOperands& operands) {
    for (std::size_t i = 0; i < kTileElements; i += 2) {
        const float real = operands.inputs[0]->floats()[i];
        operands.output->floats()[i] = -operands.inputs[0]->floats()[i + 1];
        operands.output->floats()[i + 1] = real;
    }
}

void sum_down(const SfpuOperands& operands) {
    float* sums = operands.memory->column_sums;
    if (operands.word(0) != 0) {
        std::fill_n(sums, kTileWidth, 0.0F);
    }
    for (std::size_t row = 0; row < kTileWidth; ++row) {
        for (std::size_t column = 0; column < kTileWidth; ++column) {
            const std::size_t at = tile_offset(row, column);
            sums[column] += operands.inputs[0]->floats()[at];
            operands.output->floats()[at] = sums[column];
        }
    }
}

template <typename Value>
bool is_less(Value a, Value b) {
    if constexpr (std::is_same_v<Value, float>) {
        return comes_before(a, b);
    } else {
        return a < b;
    }
}

template <typename Value>
Value folded(std::uint32_t pool, Value a, Value b) {
    switch (static_cast<Pool>(pool)) {
        case Pool::Maximum:
            return is_less(a, b) ? b : a;
        case Pool::Minimum:
            return is_less(b, a) ? b : a;
        default:
            return static_cast<Value>(a + b);
    }
}

/// Reduces along rows or columns. The first column or row holds the result; the others are kept.
template <typename Value>
void reduce_lines(Value* values, std::uint32_t pool, bool rows) {
    for (std::size_t line = 0; line < kTileWidth; ++line) {
        const auto at = [&](std::size_t i) {
            return rows ? tile_offset(line, i) : tile_offset(i, line);
        };
        Value result = values[at(0)];
        for (std::size_t i = 1; i < kTileWidth; ++i) {
            result = folded(pool, result, values[at(i)]);
        }
        values[at(0)] = static_cast<Pool>(pool) == Pool::Average
                            ? static_cast<Value>(result / static_cast<Value>(kTileWidth))
                            : result;
    }
}

void reduce_tile(const SfpuOperands& operands) {
    *operands.output = *operands.inputs[0];
    const DataFormat format = format_of(operands.word(0));
    const bool rows = static_cast<Reduction>(operands.parameters[2]) == Reduction::Row;
    if (!is_integer(format)) {
        reduce_lines(operands.output->floats(), operands.word(1), rows);
    } else if (format == DataFormat::Int32) {
        reduce_lines(operands.output->integers(), operands.word(1), rows);
    } else {
        reduce_lines(operands.output->words.data(), operands.word(1), rows);
    }
}

template <bool rows>
void sum_integers(const SfpuOperands& operands) {
    *operands.output = *operands.inputs[0];
    reduce_lines(operands.output->words.data(), static_cast<std::uint32_t>(Pool::Sum), rows);
}

/// Adds the first rows of two tiles.
void add_top_rows(const SfpuOperands& operands) {
    const bool integers = is_integer(format_of(operands.word(0)));
    for (std::size_t column = 0; column < kTileWidth; ++column) {
        const std::size_t at = tile_offset(0, column);
        if (integers) {
            operands.output->words[at] =
                operands.inputs[0]->words[at] + operands.inputs[1]->words[at];
        } else {
            operands.output->floats()[at] =
                operands.inputs[0]->floats()[at] + operands.inputs[1]->floats()[at];
        }
    }
}

/// Applies a function with the second operand's first column or first row broadcast.
template <auto Function, bool column>
void with_repeated(const SfpuOperands& operands) {
    for (std::size_t row = 0; row < kTileWidth; ++row) {
        for (std::size_t i = 0; i < kTileWidth; ++i) {
            const std::size_t at = tile_offset(row, i);
            const std::size_t other = column ? tile_offset(row, 0) : tile_offset(0, i);
            operands.output->floats()[at] =
                Function(operands.inputs[0]->floats()[at], operands.inputs[1]->floats()[other]);
        }
    }
}

constexpr auto kSum = [](float a, float b) { return a + b; };
constexpr auto kDifference = [](float a, float b) { return a - b; };
constexpr auto kProduct = [](float a, float b) { return a * b; };

constexpr std::uint32_t kInfinityBits = 0x7f800000U;

#define ROW(OPERATION, NAME, INIT, CONSTANTS, READS, WRITES, FUNCTION) \
    TTCODEGEN_SFPU_ROW(OPERATION, NAME, INIT, CONSTANTS, READS, WRITES, FUNCTION)

constexpr std::array kTileRows{
    ROW(typecast, "typecast_tile", typecast, true, Format0, Format1, convert_types),
    ROW(where, "where_tile", where, true, Any, Second, choose),
    ROW(addcmul, "addcmul_tile", addcmul, false, Format0, Format0, add_product),
    ROW(logical_not, "logical_not_tile", logical_not, false, Format0, Format0, negate_logically),
    ROW(mask, "mask_tile", mask, false, Any, Any, keep_masked<0U>),
    ROW(mask_posinf, "mask_posinf_tile", mask, false, Float, Float, keep_masked<kInfinityBits>),
    ROW(identity, "identity_tile", identity, false, Any, Any, copy_words),
    ROW(copy_dest_values, "copy_dest_values", copy_dest_values, false, Any, Any, copy_words),
    ROW(alt_complex_rotate90, "alt_complex_rotate90_tile", alt_complex_rotate90, false, Float,
        Float, rotate_pairs),
    ROW(cumsum, "cumsum_tile", cumsum, true, Float, Float, sum_down),
    ROW(reduce, "sfpu_reduce", reduce, true, Format0, Format0, reduce_tile),
    ROW(add_top_row, "sfpu_add_top_row", add_top_row, false, Format0, Format0, add_top_rows),
    ROW(sum_int_column, "sfpu_sum_int_col", sum_int_column, false, Integer, Integer,
        sum_integers<false>),
    ROW(sum_int_row, "sfpu_sum_int_row", sum_int_column, false, Integer, Integer,
        sum_integers<true>),
    ROW(add_bcast_col, "sfpu_add_bcast_col", add_bcast_col, true, Float, Float,
        (with_repeated<kSum, true>)),
    ROW(sub_bcast_col, "sfpu_sub_bcast_col", add_bcast_col, true, Float, Float,
        (with_repeated<kDifference, true>)),
    ROW(mul_bcast_col, "sfpu_mul_bcast_col", add_bcast_col, true, Float, Float,
        (with_repeated<kProduct, true>)),
    ROW(add_bcast_row, "sfpu_add_bcast_row", add_bcast_row, true, Float, Float,
        (with_repeated<kSum, false>)),
    ROW(sub_bcast_row, "sfpu_sub_bcast_row", add_bcast_row, true, Float, Float,
        (with_repeated<kDifference, false>)),
    ROW(mul_bcast_row, "sfpu_mul_bcast_row", add_bcast_row, true, Float, Float,
        (with_repeated<kProduct, false>)),
    ROW(rand, "rand_tile", rand, false, None, Float, random_values),
    ROW(dropout, "dropout_tile", dropout, false, Float, Float, drop_out),
    ROW(stochastic_round, "stochastic_round_tile", ceil, false, Float, Float, round_stochastically),
};

#undef ROW

}  // namespace

std::span<const SfpuRow> sfpu_tile_rows() { return kTileRows; }

}  // namespace ttcodegen::device::compute
