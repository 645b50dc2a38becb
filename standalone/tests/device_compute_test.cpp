// Compute kernels on a core of the emulated device, against plain loops.

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "device_compute_testing.hpp"

using namespace compute_testing;
using namespace ttcodegen::device::compute;
using tt::tt_metal::ComputeConfig;

namespace {

CaseBuffers& buffers() {
    static CaseBuffers all;
    return all;
}

void run(Case which, const ComputeConfig& config = {}) {
    run_compute(buffers().all(), kernel_file("compute_cases.cpp"),
                {static_cast<std::uint32_t>(which)}, config);
}

ComputeConfig wide() {
    ComputeConfig config;
    config.fp32_dest_acc_en = true;
    return config;
}

using Element = std::function<double(std::size_t row, std::size_t column)>;

double at(const Tile& tile, std::size_t row, std::size_t column) {
    return tile.floats()[tile_offset(row, column)];
}

/// Compares `found` with `expected` by row and column, within `tolerance` of the largest.
void expect_tile(const Tile& found, const Element& expected, double tolerance,
                 std::source_location where = std::source_location::current()) {
    std::vector<float> values;
    std::vector<float> references;
    for (std::size_t row = 0; row < 32; ++row) {
        for (std::size_t column = 0; column < 32; ++column) {
            values.push_back(static_cast<float>(at(found, row, column)));
            references.push_back(static_cast<float>(expected(row, column)));
        }
    }
    expect_close(values, references, tolerance, where);
}

/// Runs a case and compares the first tile of the bfloat16 output.
void expect_case(Case which, const Element& expected, double tolerance = 0.005,
                 const ComputeConfig& config = {},
                 std::source_location where = std::source_location::current()) {
    run(which, config);
    expect_tile(buffers().out.read()[0], expected, tolerance, where);
}

void test_elements() {
    const Tiles& a = buffers().a;
    const Tiles& b = buffers().b;
    expect_case(Case::Add, [&](auto r, auto c) { return at(a[0], r, c) + at(b[1], r, c); });
    expect_case(Case::Subtract, [&](auto r, auto c) { return at(a[0], r, c) - at(b[1], r, c); });
    expect_case(Case::MultiplyTwice, [&](auto r, auto c) {
        return at(a[0], r, c) * at(b[1], r, c) + at(a[2], r, c) * at(b[3], r, c);
    });
    expect_case(Case::AddAccumulated, [&](auto r, auto c) {
        return at(a[0], r, c) + at(b[1], r, c) + at(a[2], r, c) + at(b[3], r, c);
    });
    expect_case(Case::BroadcastColumns,
                [&](auto r, auto c) { return at(a[1], r, c) * at(b[2], r, 0); });
    expect_case(Case::BroadcastRows,
                [&](auto r, auto c) { return at(a[1], r, c) + at(b[2], 0, c); });
    expect_case(Case::BroadcastScalar,
                [&](auto r, auto c) { return at(a[1], r, c) - at(b[2], 0, 0); });
    expect_case(Case::ReuseAsA, [&](auto r, auto c) { return at(a[0], r, c) - at(b[0], r, c); });
    expect_case(Case::ReuseAsB, [&](auto r, auto c) { return at(b[0], r, c) - at(a[0], r, c); });
    expect_case(Case::UnaryBroadcastRow, [&](auto, auto c) { return at(a[1], 0, c); }, 0.0);
}

double product(const Tile& a, const Tile& b, std::size_t row, std::size_t column,
               bool transposed = false) {
    double sum = 0.0;
    for (std::size_t k = 0; k < 32; ++k) {
        sum += at(a, row, k) * (transposed ? at(b, column, k) : at(b, k, column));
    }
    return sum;
}

void test_products() {
    const Tiles& a = buffers().a;
    const Tiles& b = buffers().b;
    const Element twice = [&](auto r, auto c) {
        return product(a[0], b[0], r, c) + product(a[1], b[1], r, c);
    };
    expect_case(Case::Matmul, twice, 0.01);
    expect_case(Case::Matmul, twice, 0.005, wide());
    expect_case(
        Case::MatmulTransposed,
        [&](auto r, auto c) {
            return product(a[0], b[0], r, c, true) + product(a[1], b[1], r, c, true);
        },
        0.01);
    run(Case::MatmulBlock);
    const Tiles found = buffers().out.read();
    for (std::size_t row = 0; row < 2; ++row) {
        for (std::size_t column = 0; column < 2; ++column) {
            expect_tile(
                found[row * 2 + column],
                [&](auto r, auto c) {
                    return product(a[row * 2], b[column], r, c) +
                           product(a[row * 2 + 1], b[2 + column], r, c);
                },
                0.01);
        }
    }
}

/// Each fidelity is more accurate than the one below; the highest is exact.
void test_fidelity() {
    using tt::tt_metal::MathFidelity;
    const Tiles& a = buffers().a;
    const Tiles& b = buffers().b;
    const auto error = [&](MathFidelity fidelity) {
        ComputeConfig config = wide();
        config.math_fidelity = fidelity;
        run(Case::Matmul, config);
        const Tile found = buffers().out.read()[0];
        double sum = 0.0;
        for (std::size_t row = 0; row < 32; ++row) {
            for (std::size_t column = 0; column < 32; ++column) {
                sum += std::fabs(at(found, row, column) - product(a[0], b[0], row, column) -
                                 product(a[1], b[1], row, column));
            }
        }
        return sum / 1024;
    };
    const double low = error(MathFidelity::LoFi);
    const double second = error(MathFidelity::HiFi2);
    const double exact = error(MathFidelity::HiFi4);
    expect(low > 2 * second && second > exact && exact < 0.02, "errors " + std::to_string(low) +
                                                                   ", " + std::to_string(second) +
                                                                   ", " + std::to_string(exact));
    expect(error(MathFidelity::HiFi3) < second, "HiFi3 is closer than HiFi2");
}

/// Products of infinities, and those that overflow, are what IEEE 754 has, in all fidelities.
void test_fidelity_of_infinities() {
    using tt::tt_metal::MathFidelity;
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    Tile ones;
    ones.words.fill(std::bit_cast<std::uint32_t>(1.0F));
    Tile a = ones;
    Tile b = ones;
    // The largest bfloat16: all bits of its mantissa are set, those of the rests too.
    const float largest = std::bit_cast<float>(0x7f7f0000U);
    a.floats()[tile_offset(0, 0)] = kInfinity;
    a.floats()[tile_offset(1, 1)] = -largest;
    a.floats()[tile_offset(2, 2)] = std::numeric_limits<float>::quiet_NaN();
    b.floats()[tile_offset(1, 1)] = largest;
    buffers().in_a.write(Tiles(4, a));
    buffers().in_b.write(Tiles(4, b));
    for (const MathFidelity fidelity :
         {MathFidelity::LoFi, MathFidelity::HiFi2, MathFidelity::HiFi3, MathFidelity::HiFi4}) {
        ComputeConfig config = wide();
        config.math_fidelity = fidelity;
        run(Case::Matmul, config);
        const Tile product = buffers().out.read()[0];
        run(Case::MultiplyTwice, config);
        const Tile elements = buffers().out.read()[0];
        for (std::size_t i = 0; i < 32; ++i) {
            expect(at(product, 0, i) == kInfinity, "a row with an infinity");
            expect(std::isnan(at(product, 2, i)), "a row with NaN");
            expect(std::isfinite(at(product, 3, i)) == (i != 1), "a row of ones");
            expect(std::isnan(at(elements, 2, i)) == (i == 2), "NaN stays where it is");
        }
        expect(at(product, 1, 1) == -kInfinity, "a sum that overflows");
        expect(at(elements, 0, 0) == kInfinity, "an infinity");
        expect(at(elements, 1, 1) == -kInfinity, "a product that overflows");
        expect(at(elements, 3, 3) == 2.0, "ones");
    }
    buffers().in_a.write(buffers().a);
    buffers().in_b.write(buffers().b);
}

void test_reductions() {
    const Tiles& a = buffers().a;
    const auto lines = [&](bool rows, std::size_t line) {
        double sum = 0.0;
        for (std::size_t tile = 0; tile < 2; ++tile) {
            for (std::size_t i = 0; i < 32; ++i) {
                sum += rows ? at(a[tile], line, i) : at(a[tile], i, line);
            }
        }
        return sum;
    };
    const double tolerance = 0.02;
    expect_case(
        Case::ReduceRow, [&](auto r, auto c) { return c == 0 ? 0.5 * lines(true, r) : 0.0; },
        tolerance);
    expect_case(
        Case::ReduceColumn, [&](auto r, auto c) { return r == 0 ? 0.5 * lines(false, c) : 0.0; },
        tolerance);
    double total = 0.0;
    for (std::size_t line = 0; line < 32; ++line) {
        total += lines(true, line);
    }
    expect_case(
        Case::ReduceScalar, [&](auto r, auto c) { return r + c == 0 ? 0.25 * total : 0.0; }, 0.05);
    expect_case(Case::ReduceMaximum, [&](auto r, auto c) {
        double maximum = -100.0;
        for (std::size_t i = 0; i < 32; ++i) {
            maximum = std::max({maximum, at(a[0], r, i), at(a[1], r, i)});
        }
        return c == 0 ? 0.5 * maximum : 0.0;
    });
}

void test_copies() {
    const Tiles& a = buffers().a;
    expect_case(Case::Transpose, [&](auto r, auto c) { return at(a[1], c, r); }, 0.0);
    run(Case::CopyReconfigured, wide());
    const Tiles found = buffers().out.read();
    expect(found[0].words == a[0].words, "a copy");
    expect_tile(found[1], [&](auto r, auto c) { return at(buffers().floats[1], r, c); }, 0.004);
    expect(buffers().out_floats.read()[0].words == a[1].words, "a copy into Float32");
    run(Case::BlockFloat);
    expect(buffers().out_blocks.read()[0].words == buffers().in_blocks.read()[1].words,
           "shared exponents survive a copy");
    run(Case::PackOutOfOrder);
    expect(
        buffers().out.read()[0].words == a[1].words && buffers().out.read()[1].words == a[0].words,
        "pages in the order that the kernel says");
}

/// Float32 is truncated in the source registers, unless it is unpacked to DST directly.
void test_unpack_to_destination() {
    using tt::tt_metal::UnpackToDestMode;
    const auto word = [](const ComputeConfig& config) {
        run(Case::Typecast, config);
        return buffers().out_integers.read()[0].integers()[0];
    };
    buffers().in_floats.write(Tiles(2, float_tile(std::vector<float>(1024, 16777213.0F))));
    ComputeConfig config = wide();
    expect(word(config) == 16769024, "10 mantissa bits: " + std::to_string(word(config)));
    config.unpack_to_dest_mode.assign(32, UnpackToDestMode::Default);
    config.unpack_to_dest_mode[kCbFloat] = UnpackToDestMode::UnpackToDestFp32;
    expect(word(config) == 16777213, "all bits: " + std::to_string(word(config)));
    buffers().in_floats.write(buffers().floats);
}

void test_vector_engine() {
    const Tiles& a = buffers().a;
    const Tiles& b = buffers().b;
    Tiles positive = b;
    for (float& value : std::span(positive[0].floats(), 1024)) {
        value = std::fabs(value) + 0.5F;
    }
    buffers().in_b.write(positive);
    const Tiles stored = buffers().in_b.read();
    expect_case(
        Case::VectorChain,
        [&](auto r, auto c) { return 1.0 / (std::exp(at(a[0], r, c)) + at(stored[0], r, c)); },
        0.02);
    expect_case(
        Case::VectorChain,
        [&](auto r, auto c) { return 1.0 / (std::exp(at(a[0], r, c)) + at(stored[0], r, c)); },
        0.004, wide());
    buffers().in_b.write(b);
    run(Case::IntegerSum, wide());
    const Tile sum = buffers().out_integers.read()[0];
    for (std::size_t i = 0; i < 1024; ++i) {
        expect(sum.integers()[i] ==
                   buffers().integers[0].integers()[i] + buffers().integers[1].integers()[i],
               "sum of integers");
    }
}

void test_packing() {
    const Tiles& a = buffers().a;
    expect_case(
        Case::PackAccumulated,
        [&](auto r, auto c) { return at(a[0], r, c) + at(a[1], r, c) + at(a[2], r, c); }, 0.01);
    expect_case(Case::PackRelu, [&](auto r, auto c) { return std::max(at(a[0], r, c), 0.0); }, 0.0);
    expect_case(Case::OldRegisterCalls, [&](auto r, auto c) { return at(a[3], r, c); }, 0.0);
    run(Case::AheadOfPacking);
    expect(buffers().out.read()[1].words == a[1].words, "math ahead of packing");
    run(Case::InPlace);
    expect_tile(buffers().in_a.read()[0], [&](auto r, auto c) { return -at(a[0], r, c); }, 0.0);
    buffers().in_a.write(a);
}

float bfloat16_at(const std::vector<std::byte>& bytes, std::size_t index) {
    std::uint16_t stored;
    std::memcpy(&stored, bytes.data() + 2 * index, 2);
    return ttcodegen::cpu::bf16_value(stored);
}

void test_layouts() {
    const Tiles& a = buffers().a;
    const std::vector<std::byte> rows = buffers().in_a.bytes();
    run(Case::Tilize);
    const Tiles tiles = buffers().out.read();
    for (std::size_t row = 0; row < 32; ++row) {
        for (std::size_t column = 0; column < 128; ++column) {
            expect(
                at(tiles[column / 32], row, column % 32) == bfloat16_at(rows, row * 128 + column),
                "tiles of rows");
        }
    }
    for (const Case which : {Case::Untilize, Case::PackUntilize}) {
        run(which);
        const std::vector<std::byte> found = buffers().out.bytes();
        for (std::size_t row = 0; row < 32; ++row) {
            for (std::size_t column = 0; column < 128; ++column) {
                expect(
                    bfloat16_at(found, row * 128 + column) == at(a[column / 32], row, column % 32),
                    "rows of tiles");
            }
        }
    }
}

void test_rows_and_blocks() {
    const Tiles& a = buffers().a;
    const Tiles& b = buffers().b;
    run(Case::PackRows);
    const std::vector<std::byte> rows = buffers().out.bytes();
    for (std::size_t i = 0; i < 512; ++i) {
        expect(bfloat16_at(rows, i) == a[0].floats()[i], "rows of faces");
    }
    expect_case(Case::TransposeInPlace, [&](auto r, auto c) { return at(a[1], c, r); }, 0.0);
    expect_case(Case::BlockMaximum, [&](auto r, auto c) {
        double maximum = -100.0;
        for (std::size_t i = 0; i < 128; ++i) {
            maximum = std::max(maximum, at(a[i / 32], r, i % 32));
        }
        return c == 0 ? 0.5 * maximum : 0.0;
    });
    expect_case(
        Case::Choose, [&](auto r, auto c) { return at(a[0], r, c) > 0 ? at(b[0], r, c) : 2.0; },
        0.0);
    run(Case::Welford, wide());
    const Tiles found = buffers().out_floats.read();
    for (std::size_t column = 0; column < 32; ++column) {
        double sum = 0.0;
        double squares = 0.0;
        for (std::size_t i = 0; i < 64; ++i) {
            const double value = at(a[i / 32], i % 32, column);
            sum += value;
            squares += value * value;
        }
        const double mean = sum / 64;
        expect(std::fabs(at(found[0], 0, column) - mean) < 1e-5, "means");
        expect(std::fabs(at(found[1], 0, column) - (squares / 64 - mean * mean)) < 1e-4,
               "variances");
    }
}

void test_counters() {
    const auto report = run_compute(buffers().all(), kernel_file("compute_cases.cpp"),
                                    {static_cast<std::uint32_t>(Case::MatmulBlock)}, {});
    expect(report.total.matmul_tiles == 8 && report.total.packed_tiles == 4,
           "tiles are counted: " + std::to_string(report.total.matmul_tiles));
}

}  // namespace

int main() {
    test_elements();
    test_products();
    test_fidelity();
    test_fidelity_of_infinities();
    test_reductions();
    test_copies();
    test_unpack_to_destination();
    test_vector_engine();
    test_packing();
    test_layouts();
    test_rows_and_blocks();
    test_counters();
}
