// Operations of the emulated compute processor on whole tiles, compared with plain loops: matmuls,
// reductions, and every operation of the vector engine.

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "device/compute/sfpu_rows.hpp"
#include "device/compute/tile_format.hpp"
#include "device/compute/tile_math.hpp"
#include "tile_testing.hpp"

using namespace compute_testing;
using namespace tile_testing;
using namespace ttcodegen::device::compute;
using tt::DataFormat;
using ttcodegen::device::Broadcast;
using ttcodegen::device::Pool;
using ttcodegen::device::Reduction;
using ttcodegen::device::SfpuOperation;

namespace {

void test_products() {
    const Tile a = draw_tile(6);
    const Tile b = draw_tile(7);
    Tile sum = draw_tile(8);
    std::vector<float> expected = vector_of(sum.floats());
    for (std::size_t row = 0; row < 32; ++row) {
        for (std::size_t column = 0; column < 32; ++column) {
            double total = expected[tile_offset(row, column)];
            for (std::size_t inner = 0; inner < 32; ++inner) {
                total +=
                    static_cast<double>(at(a.floats(), row, inner)) * at(b.floats(), inner, column);
            }
            expected[tile_offset(row, column)] = static_cast<float>(total);
        }
    }
    const std::vector<float> before = vector_of(sum.floats());
    multiply_matrices(a.floats(), b.floats(), sum.floats());
    expect_close(vector_of(sum.floats()), expected, 1e-6);
    subtract_dropped_product(a.floats(), b.floats(), sum.floats());
    expect_close(vector_of(sum.floats()), before, 1e-5);
}

void test_transposes() {
    const Tile tile = draw_tile(9);
    Tile whole;
    transpose_tile(tile.words.data(), true, true, whole.words.data());
    Tile faces;
    transpose_tile(tile.words.data(), true, false, faces.words.data());
    Tile within;
    transpose_tile(tile.words.data(), false, true, within.words.data());
    for (std::size_t row = 0; row < 32; ++row) {
        for (std::size_t column = 0; column < 32; ++column) {
            expect(at(whole.floats(), row, column) == at(tile.floats(), column, row), "transposed");
        }
    }
    expect(at(faces.floats(), 3, 20) == at(tile.floats(), 19, 4), "faces exchanged");
    expect(at(within.floats(), 3, 20) == at(tile.floats(), 4, 19), "faces transposed in place");
}

void test_broadcasts() {
    const Tile tile = draw_tile(10);
    Tile result;
    const auto matches = [&](auto row_of, auto column_of) {
        for (std::size_t row = 0; row < 32; ++row) {
            for (std::size_t column = 0; column < 32; ++column) {
                expect(at(result.floats(), row, column) ==
                           at(tile.floats(), row_of(row), column_of(column)),
                       "repeated");
            }
        }
    };
    const auto same = [](std::size_t i) { return i; };
    const auto first = [](std::size_t) { return std::size_t{0}; };
    const auto fifth = [](std::size_t) { return std::size_t{20}; };
    broadcast_tile(tile.words.data(), Broadcast::Column, 0, result.words.data());
    matches(same, first);
    broadcast_tile(tile.words.data(), Broadcast::Row, 0, result.words.data());
    matches(first, same);
    broadcast_tile(tile.words.data(), Broadcast::Row, 20, result.words.data());
    matches(fifth, same);
    broadcast_tile(tile.words.data(), Broadcast::Scalar, 0, result.words.data());
    matches(first, first);
}

/// A scaler tile as kernels make it: the value in the first row of each face.
Tile scaler_of(float value) {
    Tile tile{};
    for (std::size_t face = 0; face < 4; ++face) {
        std::fill_n(tile.floats() + face * kFaceElements, 16, value);
    }
    return tile;
}

void test_reductions() {
    const Tile tile = draw_tile(11, -3.0F, -1.0F);
    const Tile scaler = scaler_of(0.5F);
    const Tile one = scaler_of(1.0F);
    for (const bool twice : {false, true}) {
        Tile rows;
        Tile columns;
        Tile all;
        Tile maxima;
        for (int call = 0; call <= (twice ? 1 : 0); ++call) {
            const ReductionStart start{.continues = call == 1, .row_bits = 23};
            reduce_tile(Pool::Sum, Reduction::Row, tile.floats(), scaler.floats(), start,
                        rows.floats());
            reduce_tile(Pool::Average, Reduction::Column, tile.floats(), scaler.floats(), start,
                        columns.floats());
            reduce_tile(Pool::Sum, Reduction::Scalar, tile.floats(), scaler.floats(), start,
                        all.floats());
            reduce_tile(Pool::Maximum, Reduction::Row, tile.floats(), one.floats(), start,
                        maxima.floats());
        }
        const float times = twice ? 2.0F : 1.0F;
        double total = 0.0;
        for (std::size_t line = 0; line < 32; ++line) {
            double row = 0.0;
            double column = 0.0;
            float maximum = -100.0F;
            for (std::size_t i = 0; i < 32; ++i) {
                row += at(tile.floats(), line, i);
                column += at(tile.floats(), i, line);
                maximum = std::max(maximum, at(tile.floats(), line, i));
            }
            total += row;
            expect(std::fabs(at(rows.floats(), line, 0) - 0.5 * row * times) < 1e-3, "row sums");
            expect(std::fabs(at(columns.floats(), 0, line) - 0.5 * column * times) < 1e-3,
                   "column sums");
            expect(at(maxima.floats(), line, 0) == maximum, "maxima below zero");
        }
        // The scaler is applied twice: to the columns, and to their sums.
        expect(std::fabs(at(all.floats(), 0, 0) / (0.25 * total * times) - 1.0) < 1e-3,
               "sum of all");
    }
}

void test_totals_of_rows_are_cut() {
    // Each tile adds 32.25, of which the total of three keeps 96.5 and that of four 128: from there
    // on the quarters are lost.
    Tile tile{};
    std::fill_n(tile.floats(), kTileElements, 1.0F + 0x1p-7F);
    const Tile one = scaler_of(1.0F);
    Tile rows;
    for (int call = 0; call < 64; ++call) {
        const ReductionStart start{.continues = call > 0, .source_bits = 7, .row_bits = 7};
        reduce_tile(Pool::Sum, Reduction::Row, tile.floats(), one.floats(), start, rows.floats());
        if (call == 2) {
            expect(at(rows.floats(), 31, 0) == 96.5F, "the total of three tiles");
        }
    }
    expect(at(rows.floats(), 31, 0) == 2048.0F, "the total of 64 tiles");
}

void test_fidelity() {
    std::vector<float> cut(kTileElements);
    std::vector<float> rest(kTileElements);
    const std::vector<float> values(kTileElements, 1.0F + 0x1p-4F + 0x1p-5F + 0x1p-7F);
    cut_mantissas(values.data(), kFirstBitsOfA, cut.data());
    expect(cut[0] == 1.0F + 0x1p-4F, "4 bits after the leading one");
    mantissa_rests(values.data(), kFirstBitsOfA, rest.data());
    expect(cut[0] + rest[0] == values[0], "and the rest");
}

/// Products that are not finite are not subtracted, which would make NaN of an infinity.
void test_dropped_products_that_are_not_finite() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    Tile a{};
    Tile b{};
    Tile sum{};
    const auto set = [](Tile& tile, std::size_t row, std::size_t column, float value) {
        tile.floats()[tile_offset(row, column)] = value;
    };
    for (std::size_t column = 0; column < 32; ++column) {
        set(a, 0, column, 1.0F);
        set(b, column, 20, 2.0F);
    }
    set(a, 1, 0, kInfinity);
    set(a, 2, 17, kNan);
    set(a, 3, 0, 3e38F);
    set(b, 0, 20, 3e38F);
    set(sum, 3, 20, kInfinity);
    subtract_dropped_product(a.floats(), b.floats(), sum.floats());
    expect(at(sum.floats(), 0, 20) == -3e38F, "finite products are subtracted");
    expect(at(sum.floats(), 1, 20) == 0.0F, "those of infinities are not");
    expect(at(sum.floats(), 2, 20) == 0.0F, "nor are those of NaN");
    expect(at(sum.floats(), 3, 20) == kInfinity, "nor are those that overflow");
}

/// Runs an operation on input tiles; the result is in a separate tile.
Tile run_sfpu(SfpuOperation operation, const std::vector<Tile>& inputs,
              std::array<std::uint32_t, 4> parameters = {}, SfpuMemory* memory = nullptr) {
    SfpuMemory own;
    own.init_parameters[0] = std::bit_cast<std::uint32_t>(1.0F);
    Tile output{};
    SfpuOperands operands;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        operands.inputs[i] = &inputs[i];
    }
    operands.output = &output;
    std::copy(parameters.begin(), parameters.end(), operands.parameters);
    operands.memory = memory != nullptr ? memory : &own;
    sfpu_row(operation).run(operands);
    return output;
}

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

void test_all_operations_have_rows() {
    std::size_t count = 0;
#define TTCODEGEN_SFPU_OPERATION(name)                                             \
    expect(sfpu_row(SfpuOperation::name).operation == SfpuOperation::name, #name); \
    ++count;
#include "ttcodegen/device/sfpu_operations.inc"
#undef TTCODEGEN_SFPU_OPERATION
    expect(count > 190, "operations");
}

struct FloatRow {
    SfpuOperation operation;
    std::function<double(double)> reference;
    std::array<std::uint32_t, 4> parameters = {};
    float low = -2.0F;
    float high = 2.0F;
};

const std::vector<FloatRow> kUnaryFloats{
    {SfpuOperation::exp, [](double x) { return std::exp(0.5 * x); }, {bits(0.5F)}},
    {SfpuOperation::log_with_base, [](double x) { return std::log2(x); }, {bits(1.442695F)}, 0.1F},
    {SfpuOperation::recip, [](double x) { return 1.0 / x; }, {}, 0.25F},
    {SfpuOperation::sqrt, [](double x) { return std::sqrt(x); }, {}, 0.1F},
    {SfpuOperation::power, [](double x) { return std::pow(x, 1.5); }, {bits(1.5F)}, 0.1F},
    {SfpuOperation::power_iterative, [](double x) { return x * x * x; }, {3}},
    {SfpuOperation::rpow, [](double x) { return std::pow(2.0, x); }, {bits(2.0F)}},
    {SfpuOperation::sigmoid, [](double x) { return 1.0 / (1.0 + std::exp(-x)); }},
    {SfpuOperation::silu, [](double x) { return x / (1.0 + std::exp(-x)); }},
    {SfpuOperation::tanh, [](double x) { return std::tanh(x); }},
    {SfpuOperation::tanh_derivative, [](double x) { return 1.0 - std::tanh(x) * std::tanh(x); }},
    {SfpuOperation::gelu, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }},
    {SfpuOperation::gelu_derivative,
     [](double x) {
         return 0.5 * std::erfc(-x / std::sqrt(2.0)) +
                x * std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::acos(-1.0));
     }},
    {SfpuOperation::softplus,
     [](double x) { return std::log1p(std::exp(2.0 * x)) / 2.0; },
     {bits(2.0F), bits(0.5F), bits(20.0F)}},
    {SfpuOperation::elu, [](double x) { return x > 0 ? x : 0.5 * std::expm1(x); }, {bits(0.5F)}},
    {SfpuOperation::celu,
     [](double x) { return x > 0 ? x : 2.0 * std::expm1(x / 2.0); },
     {bits(2.0F), bits(0.5F)}},
    {SfpuOperation::selu,
     [](double x) { return 1.05 * (x > 0 ? x : 1.67 * std::expm1(x)); },
     {bits(1.05F), bits(1.67F)}},
    {SfpuOperation::hardtanh,
     [](double x) { return std::clamp(x, -0.5, 1.0); },
     {bits(-0.5F), bits(1.0F)}},
    {SfpuOperation::threshold,
     [](double x) { return x > 0.5F ? x : 7.0; },
     {bits(0.5F), bits(7.0F)}},
    {SfpuOperation::clamp,
     [](double x) { return std::clamp(x, -1.0, 0.5); },
     {bits(-1.0F), bits(0.5F)}},
    {SfpuOperation::leaky_relu, [](double x) { return x > 0 ? x : 0.1F * x; }, {bits(0.1F)}},
    {SfpuOperation::relu_max, [](double x) { return std::clamp(x, 0.0, 1.0); }, {bits(1.0F)}},
    {SfpuOperation::unary_gt, [](double x) { return x > 0.5 ? 1.0 : 0.0; }, {bits(0.5F)}},
    {SfpuOperation::unary_max, [](double x) { return std::max(x, 0.5); }, {bits(0.5F)}},
    {SfpuOperation::rsub_unary, [](double x) { return 3.0 - x; }, {bits(3.0F)}},
    {SfpuOperation::div_unary, [](double x) { return x * 0.25; }, {bits(0.25F)}},
    {SfpuOperation::rdiv, [](double x) { return std::floor(3.0F / x); }, {bits(3.0F), 2}, 0.5F},
    {SfpuOperation::fmod, [](double x) { return std::fmod(x, 0.75); }, {bits(0.75F)}},
    {SfpuOperation::polygamma,
     [](double x) {
         double sum = 0.0;
         for (int k = 0; k < 200000; ++k) {
             sum += 1.0 / ((x + k) * (x + k));
         }
         return sum + 1.0 / (x + 200000);
     },
     {bits(1.0F), bits(1.0F)},
     1.0F},
    {SfpuOperation::lgamma_stirling, [](double x) { return std::lgamma(x); }, {}, 0.6F},
    {SfpuOperation::fill, [](double) { return 2.5; }, {bits(2.5F)}},
    {SfpuOperation::round, [](double x) { return std::nearbyint(x * 10) / 10; }, {1}},
    {SfpuOperation::xielu,
     [](double x) { return x > 0 ? 0.8 * x * x + 0.5 * x : (std::expm1(x) - x) * 0.3 + 0.5 * x; },
     {bits(0.8F), bits(0.3F)}},
};

void test_unary_floats() {
    for (const FloatRow& row : kUnaryFloats) {
        const Tile tile = draw_tile(12, row.low, row.high);
        const Tile result = run_sfpu(row.operation, {tile}, row.parameters);
        std::vector<float> expected(kTileElements);
        for (std::size_t i = 0; i < kTileElements; ++i) {
            expected[i] = static_cast<float>(row.reference(tile.floats()[i]));
        }
        expect_close(vector_of(result.floats()), expected, 2e-5);
    }
}

void test_float_pairs() {
    const Tile a = draw_tile(13, 0.2F, 3.0F);
    const Tile b = draw_tile(14, 0.2F, 3.0F);
    const Tile c = draw_tile(15, 0.2F, 3.0F);
    const std::vector<std::pair<SfpuOperation, std::function<double(double, double)>>> rows{
        {SfpuOperation::add_binary, [](double x, double y) { return x + y; }},
        {SfpuOperation::rsub_binary, [](double x, double y) { return y - x; }},
        {SfpuOperation::div_binary, [](double x, double y) { return x / y; }},
        {SfpuOperation::power_binary, [](double x, double y) { return std::pow(x, y); }},
        {SfpuOperation::lt_binary, [](double x, double y) { return x < y ? 1.0 : 0.0; }},
        {SfpuOperation::binary_max, [](double x, double y) { return std::max(x, y); }},
        {SfpuOperation::remainder_binary, [](double x, double y) { return std::fmod(x, y); }},
        {SfpuOperation::xlogy_binary, [](double x, double y) { return x * std::log(y); }},
        {SfpuOperation::atan2_binary, [](double x, double y) { return std::atan2(x, y); }},
        {SfpuOperation::mask, [](double x, double) { return x; }},
    };
    for (const auto& [operation, reference] : rows) {
        std::vector<float> expected(kTileElements);
        for (std::size_t i = 0; i < kTileElements; ++i) {
            expected[i] = static_cast<float>(reference(a.floats()[i], b.floats()[i]));
        }
        expect_close(vector_of(run_sfpu(operation, {a, b}).floats()), expected, 1e-5);
    }
    const Tile fused = run_sfpu(SfpuOperation::addcdiv, {a, b, c}, {bits(0.5F)});
    const Tile mixed = run_sfpu(SfpuOperation::lerp, {a, b, c});
    const Tile chosen = run_sfpu(SfpuOperation::where, {Tile{}, b, c});
    for (std::size_t i = 0; i < kTileElements; ++i) {
        const float x = a.floats()[i];
        const float y = b.floats()[i];
        const float z = c.floats()[i];
        expect(std::fabs(fused.floats()[i] - (x + 0.5F * y / z)) < 1e-4F, "addcdiv");
        expect(std::fabs(mixed.floats()[i] - (x + z * (y - x))) < 1e-4F, "lerp");
        expect(chosen.floats()[i] == z, "where the condition is zero");
    }
}

void test_integers() {
    const Tile a = draw_integers(16, -50, 50);
    const Tile b = draw_integers(17, 1, 9);
    using Reference = std::function<std::int64_t(std::int64_t, std::int64_t)>;
    const std::vector<std::pair<SfpuOperation, Reference>> rows{
        {SfpuOperation::add_int, [](auto x, auto y) { return x + y; }},
        {SfpuOperation::rsub_int, [](auto x, auto y) { return y - x; }},
        {SfpuOperation::mul_int, [](auto x, auto y) { return x * y; }},
        {SfpuOperation::div_int32_trunc, [](auto x, auto y) { return x / y; }},
        {SfpuOperation::div_int32_floor,
         [](auto x, auto y) { return static_cast<std::int64_t>(std::floor(double(x) / y)); }},
        {SfpuOperation::remainder_int32, [](auto x, auto y) { return ((x % y) + y) % y; }},
        {SfpuOperation::fmod_int32, [](auto x, auto y) { return x % y; }},
        {SfpuOperation::gcd, [](auto x, auto y) { return std::gcd(x, y); }},
        {SfpuOperation::lcm, [](auto x, auto y) { return std::lcm(x, y); }},
        {SfpuOperation::binary_min_int32, [](auto x, auto y) { return std::min(x, y); }},
        {SfpuOperation::lt_int, [](auto x, auto y) { return x < y ? 1 : 0; }},
        {SfpuOperation::bitwise_xor_binary, [](auto x, auto y) { return x ^ y; }},
        {SfpuOperation::binary_left_shift, [](auto x, auto y) { return x * (1 << y); }},
        {SfpuOperation::binary_right_shift, [](auto x, auto y) { return x >> y; }},
        {SfpuOperation::abs_int32, [](auto x, auto) { return std::abs(x); }},
        {SfpuOperation::negative_int32, [](auto x, auto) { return -x; }},
        {SfpuOperation::relu_int32, [](auto x, auto) { return std::max<std::int64_t>(x, 0); }},
        {SfpuOperation::eqz_int32, [](auto x, auto) { return x == 0 ? 1 : 0; }},
        {SfpuOperation::bitwise_not, [](auto x, auto) { return ~x; }},
    };
    for (const auto& [operation, reference] : rows) {
        const Tile result = run_sfpu(operation, {a, b});
        for (std::size_t i = 0; i < kTileElements; ++i) {
            expect(result.integers()[i] == reference(a.integers()[i], b.integers()[i]),
                   sfpu_row(operation).name);
        }
    }
    Tile lowest{};
    lowest.words.fill(0x80000000U);
    Tile minus{};
    minus.words.fill(0xffffffffU);
    expect(run_sfpu(SfpuOperation::div_int32_trunc, {lowest, minus}).words[0] == 0x80000000U,
           "the lowest integer over -1 wraps around");
    expect(run_sfpu(SfpuOperation::div_int32_trunc, {lowest, Tile{}}).words[0] == 0,
           "a division by zero is no trap");
}

std::array<std::uint32_t, 4> formats(DataFormat from, DataFormat to) {
    return {static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to)};
}

void test_typecasts() {
    Tile floats{};
    floats.floats()[0] = -1.75F;
    floats.floats()[1] = 3.0e9F;
    floats.floats()[2] = std::nanf("");
    floats.floats()[3] = 70000.0F;
    floats.floats()[4] = 2.5F;
    const auto cast = [&](DataFormat from, DataFormat to, const Tile& tile) {
        return run_sfpu(SfpuOperation::typecast, {tile}, formats(from, to));
    };
    const Tile whole = cast(DataFormat::Float32, DataFormat::Int32, floats);
    constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::lowest();
    expect(whole.integers()[0] == -1 && whole.integers()[1] == kLowest &&
               whole.integers()[2] == kLowest,
           "floats are cut, and the lowest integer beyond 32 bits");
    const Tile narrow = cast(DataFormat::Float32, DataFormat::UInt16, floats);
    expect(narrow.words[0] == 0 && narrow.words[3] == 65535 && narrow.words[4] == 3,
           "16-bit integers round to nearest, ties away from zero");
    expect(cast(DataFormat::Float32, DataFormat::UInt32, floats).words[1] == 3000000000U,
           "unsigned");
    expect(cast(DataFormat::Int32, DataFormat::Float32, whole).floats()[0] == -1.0F, "back");
    expect(cast(DataFormat::UInt32, DataFormat::Float32, whole).floats()[0] > 4.0e9F,
           "unsigned back");
    expect(cast(DataFormat::Int32, DataFormat::UInt16, whole).words[0] == 0, "saturated");
    const Tile rounded = cast(DataFormat::Float32, DataFormat::Float16_b, floats);
    expect((rounded.words[1] & 0xffffU) == 0, "rounded to bfloat16");
}

void test_whole_tiles() {
    const Tile tile = draw_tile(18);
    SfpuMemory memory;
    const Tile sums = run_sfpu(SfpuOperation::cumsum, {tile}, {1}, &memory);
    const Tile more = run_sfpu(SfpuOperation::cumsum, {tile}, {0}, &memory);
    float total = 0.0F;
    for (std::size_t row = 0; row < 32; ++row) {
        total += at(tile.floats(), row, 5);
        expect(std::fabs(at(sums.floats(), row, 5) - total) < 1e-4F, "sums down a column");
    }
    expect(std::fabs(at(more.floats(), 31, 5) - 2.0F * total) < 1e-3F, "go on in the next tile");
    const Tile maxima = run_sfpu(SfpuOperation::reduce, {tile},
                                 {static_cast<std::uint32_t>(DataFormat::Float32), 2, 0});
    float maximum = -10.0F;
    for (std::size_t column = 0; column < 32; ++column) {
        maximum = std::max(maximum, at(tile.floats(), 7, column));
    }
    expect(at(maxima.floats(), 7, 0) == maximum, "the maximum of a row");
    const Tile rotated = run_sfpu(SfpuOperation::alt_complex_rotate90, {tile});
    expect(rotated.floats()[4] == -tile.floats()[5] && rotated.floats()[5] == tile.floats()[4],
           "pairs turn by a right angle");
    const Tile added = run_sfpu(SfpuOperation::add_bcast_col, {tile, sums});
    expect(added.floats()[tile_offset(9, 30)] == at(tile.floats(), 9, 30) + at(sums.floats(), 9, 0),
           "a repeated column");
}

/// Compares two successive tiles with the mean and variance of each column.
void test_welford() {
    const Tile tiles[] = {draw_tile(20), draw_tile(21)};
    std::vector<std::uint32_t> table(48);  // the last samples have no entry
    for (std::size_t i = 0; i < table.size(); ++i) {
        table[i] = bits(1.0F / static_cast<float>(i + 1));
    }
    SfpuMemory memory;
    for (std::uint32_t tile = 0; tile < 2; ++tile) {
        SfpuOperands operands;
        Tile unused{};
        operands.inputs[0] = &tiles[tile];
        operands.output = &unused;
        operands.memory = &memory;
        operands.data = table.data();
        operands.parameters[0] = tile * 32;
        operands.parameters[2] = 32;
        operands.parameters[3] = static_cast<std::uint32_t>(table.size());
        sfpu_row(SfpuOperation::welford_update).run(operands);
        // Storing and reloading the state loses nothing.
        for (const std::uint32_t which : {0U, 1U}) {
            const Tile stored = run_sfpu(SfpuOperation::welford_store_raw, {}, {which, 3}, &memory);
            (which == 0 ? memory.means : memory.squares)[7] = -1.0F;
            run_sfpu(SfpuOperation::welford_load_raw, {stored}, {which, 3}, &memory);
        }
    }
    const Tile means = run_sfpu(SfpuOperation::welford_store_row, {}, {0}, &memory);
    const Tile variances =
        run_sfpu(SfpuOperation::welford_store_row, {}, {1, 0, bits(1.0F / 64.0F), 1}, &memory);
    for (std::size_t column = 0; column < 32; ++column) {
        double sum = 0.0;
        double squares = 0.0;
        for (std::size_t row = 0; row < 64; ++row) {
            const double value = at(tiles[row / 32].floats(), row % 32, column);
            sum += value;
            squares += value * value;
        }
        const double mean = sum / 64;
        expect(std::fabs(at(means.floats(), 0, column) - mean) < 1e-5, "means of columns");
        expect(std::fabs(at(variances.floats(), 0, column) - (squares / 64 - mean * mean)) < 1e-4,
               "variances of columns");
    }
}

void test_random() {
    SfpuMemory memory;
    memory.random = 42;
    const Tile values = run_sfpu(SfpuOperation::rand, {Tile{}}, {bits(1.0F), bits(2.0F)}, &memory);
    double mean = 0.0;
    for (const float value : vector_of(values.floats())) {
        expect(value >= 1.0F && value < 3.0F, "in range");
        mean += value / kTileElements;
    }
    expect(std::fabs(mean - 2.0) < 0.1, "evenly drawn");
    const Tile ones = run_sfpu(SfpuOperation::fill, {Tile{}}, {bits(1.0F)});
    const Tile dropped = run_sfpu(SfpuOperation::dropout, {ones}, {1U << 30, bits(2.0F)}, &memory);
    double kept = 0.0;
    for (const float value : vector_of(dropped.floats())) {
        expect(value == 0.0F || value == 2.0F, "dropped or scaled");
        kept += value != 0.0F ? 1.0 / kTileElements : 0.0;
    }
    expect(std::fabs(kept - 0.5) < 0.08, "half of them dropped");
}

void test_vector_modes() {
    const Tile tile = draw_tile(19);
    Tile output = tile;
    SfpuOperands operands;
    operands.inputs[0] = &output;
    operands.output = &output;
    operands.vector_mode = 2;
    operands.iterations = 4;
    sfpu_row(SfpuOperation::negative).run(operands);
    expect(at(output.floats(), 7, 3) == -at(tile.floats(), 7, 3), "upper half of the left faces");
    expect(at(output.floats(), 8, 3) == at(tile.floats(), 8, 3), "not the lower half");
    expect(at(output.floats(), 20, 3) == -at(tile.floats(), 20, 3), "both left faces");
    expect(at(output.floats(), 0, 20) == at(tile.floats(), 0, 20), "not the right ones");
}

}  // namespace

int main() {
    test_products();
    test_transposes();
    test_broadcasts();
    test_reductions();
    test_totals_of_rows_are_cut();
    test_fidelity();
    test_dropped_products_that_are_not_finite();
    test_all_operations_have_rows();
    test_unary_floats();
    test_float_pairs();
    test_integers();
    test_typecasts();
    test_whole_tiles();
    test_welford();
    test_random();
    test_vector_modes();
}
