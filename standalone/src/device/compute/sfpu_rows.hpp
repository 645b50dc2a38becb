#pragma once

// The operations of the vector engine: a table with one row each and its computation.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "device/compute/tile.hpp"
#include "ttcodegen/device/compute_functions.hpp"

namespace ttcodegen::device::compute {

/// The domain of an operation's operands or of its result.
enum class SfpuDomain : std::uint8_t {
    None,  ///< No operand is read.
    Float,
    Integer,
    Any,      ///< Operands of both kinds; a result is what the first operand is.
    Format0,  ///< As the DataFormat in parameter 0 says.
    Format1,  ///< As the DataFormat in parameter 1 says.
    Second,   ///< As the second operand is.
};

/// State of the vector engine between operations.
struct SfpuMemory {
    std::uint32_t init_parameters[4] = {};
    std::uint32_t random = 1;
    /// Column sums of earlier tiles, for cumsum.
    float column_sums[kTileWidth] = {};
    /// Means and sums of squared differences of the columns so far, of Welford's algorithm.
    float means[kTileWidth] = {};
    float squares[kTileWidth] = {};
};

/// The order of float comparisons in the vector engine (SFPSWAP): by sign and magnitude, so that -0
/// is less than 0, and a NaN is beyond the infinity of its sign.
inline bool comes_before(float a, float b) {
    const auto ordered = [](float value) {
        const auto bits = std::bit_cast<std::int32_t>(value);
        return bits ^ ((bits >> 31) & 0x7fffffff);
    };
    return ordered(a) < ordered(b);
}

struct SfpuOperands {
    const Tile* inputs[3] = {};
    Tile* output = nullptr;
    std::uint32_t parameters[4] = {};
    SfpuMemory* memory = nullptr;
    std::uint32_t vector_mode = 4;
    std::uint32_t iterations = 8;
    const void* data = nullptr;

    float number(int i) const { return std::bit_cast<float>(parameters[i]); }
    std::uint32_t word(int i) const { return parameters[i]; }
    std::int32_t integer(int i) const { return static_cast<std::int32_t>(parameters[i]); }

    /// Calls `body(begin, count)` for each run of elements that the vector mode selects.
    template <typename Body>
    void each_run(const Body& body) const {
        constexpr std::size_t kRowPair = 32;
        const std::size_t count = std::min<std::size_t>(iterations * kRowPair, kFaceElements);
        for (std::size_t face = 0; face < kFaces; ++face) {
            const bool chosen = vector_mode == 1   ? face < 2
                                : vector_mode == 2 ? face % 2 == 0
                                                   : true;
            if (chosen) {
                body(face * kFaceElements, count);
            }
        }
    }
};

/// The parameters of an operation by value, so that loops keep them in registers.
struct SfpuNumbers {
    float p0, p1, p2;
    std::uint32_t u0, u1;
    std::int32_t i0, i1;

    explicit SfpuNumbers(const SfpuOperands& operands)
        : p0(operands.number(0)),
          p1(operands.number(1)),
          p2(operands.number(2)),
          u0(operands.word(0)),
          u1(operands.word(1)),
          i0(operands.integer(0)),
          i1(operands.integer(1)) {}
};

struct SfpuRow {
    SfpuOperation operation;
    /// The function of the kernel API.
    const char* name;
    /// The operation whose initialisation this one needs.
    SfpuOperation init;
    /// That initialisation loads constants, which other initialisations may overwrite.
    bool constants;
    SfpuDomain reads;
    SfpuDomain writes;
    void (*run)(const SfpuOperands&);
};

std::span<const SfpuRow> sfpu_unary_rows();
std::span<const SfpuRow> sfpu_binary_rows();
std::span<const SfpuRow> sfpu_integer_rows();
std::span<const SfpuRow> sfpu_tile_rows();
std::span<const SfpuRow> sfpu_welford_rows();

/// The row of an operation.
const SfpuRow& sfpu_row(SfpuOperation operation);

/// Elementwise application of a function of one to three operands of a type.
template <typename Value, auto Function>
void map_elements(const SfpuOperands& operands) {
    const SfpuNumbers p(operands);
    Value* output = reinterpret_cast<Value*>(operands.output->words.data());
    const auto input = [&](int i) {
        return reinterpret_cast<const Value*>(operands.inputs[i]->words.data());
    };
    operands.each_run([&](std::size_t begin, std::size_t count) {
        for (std::size_t i = begin; i < begin + count; ++i) {
            if constexpr (requires { Function(Value{}, p); }) {
                output[i] = Function(input(0)[i], p);
            } else if constexpr (requires { Function(Value{}, Value{}, p); }) {
                output[i] = Function(input(0)[i], input(1)[i], p);
            } else {
                output[i] = Function(input(0)[i], input(1)[i], input(2)[i], p);
            }
        }
    });
}

}  // namespace ttcodegen::device::compute

// A row: operation, function of the API, operation whose initialisation it needs, a flag for
// constants of that, and an expression of the operands `a`, `b`, `c` and the parameters `p`.
#define TTCODEGEN_SFPU_ROW(OPERATION, NAME, INIT, CONSTANTS, READS, WRITES, FUNCTION)      \
    SfpuRow {                                                                              \
        SfpuOperation::OPERATION, NAME, SfpuOperation::INIT, CONSTANTS, SfpuDomain::READS, \
            SfpuDomain::WRITES, FUNCTION                                                   \
    }
#define TTCODEGEN_SFPU_1(TYPE, EXPRESSION)                                          \
    map_elements<TYPE, ([](TYPE a, [[maybe_unused]] const SfpuNumbers& p) -> TYPE { \
                     return EXPRESSION;                                             \
                 })>
#define TTCODEGEN_SFPU_2(TYPE, EXPRESSION)                                                  \
    map_elements<TYPE, ([](TYPE a, TYPE b, [[maybe_unused]] const SfpuNumbers& p) -> TYPE { \
                     return EXPRESSION;                                                     \
                 })>
#define TTCODEGEN_SFPU_3(TYPE, EXPRESSION)         \
    map_elements<TYPE, ([](TYPE a, TYPE b, TYPE c, \
                           [[maybe_unused]] const SfpuNumbers& p) -> TYPE { return EXPRESSION; })>
