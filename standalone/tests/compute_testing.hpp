#pragma once

// Common parts of the tests of operations: random tensors, comparison with reference loops, and
// expected refusals. A failed expectation prints its line and ends the test program.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <source_location>
#include <string>
#include <vector>

#include "core/tensor_data.hpp"
#include "ttnn/device.hpp"

namespace compute_testing {

using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::Shape;
using tt::tt_metal::Tensor;

inline tt::tt_metal::distributed::MeshDevice* device() {
    static const auto opened = ttnn::open_mesh_device(0, 32768);
    return opened.get();
}

[[noreturn]] inline void fail(const std::string& message, std::source_location where) {
    std::fprintf(stderr, "%s:%u: %s\n", where.file_name(), static_cast<unsigned>(where.line()),
                 message.c_str());
    std::exit(1);
}

inline void expect(bool condition, const std::string& message,
                   std::source_location where = std::source_location::current()) {
    if (!condition) {
        fail(message, where);
    }
}

/// A tensor on the device, or on the host, of these values rounded to `dtype`.
inline Tensor make_tensor(const Shape& shape, const std::vector<float>& values,
                          DataType dtype = DataType::FLOAT32, Layout layout = Layout::TILE,
                          bool on_host = false) {
    using namespace ttcodegen::cpu;
    Tensor tensor =
        allocate(make_spec(shape, dtype, layout, MemoryConfig{}), on_host ? nullptr : device());
    expect(shape.volume() == values.size(), "as many values as elements");
    store_floats(values.data(), values.size(), dtype, buffer_of(tensor).data());
    finish_block_float(tensor);
    return tensor;
}

/// Uniformly distributed values in [low, high), the same in every run.
inline std::vector<float> draw(std::uint64_t count, float low = -1.0F, float high = 1.0F,
                               unsigned seed = 1) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<float> distribution(low, high);
    std::vector<float> values(count);
    for (float& value : values) {
        value = distribution(generator);
    }
    return values;
}

inline Tensor draw_tensor(const Shape& shape, DataType dtype = DataType::FLOAT32,
                          Layout layout = Layout::TILE, unsigned seed = 1, bool on_host = false) {
    return make_tensor(shape, draw(shape.volume(), -1.0F, 1.0F, seed), dtype, layout, on_host);
}

inline std::vector<float> values_of(const Tensor& tensor) {
    const ttcodegen::cpu::FloatElements floats(tensor);
    return {floats.span().begin(), floats.span().end()};
}

/// Expects every value to be within `tolerance` times the largest expected magnitude.
inline void expect_close(const std::vector<float>& found, const std::vector<float>& expected,
                         double tolerance,
                         std::source_location where = std::source_location::current()) {
    expect(found.size() == expected.size(),
           std::to_string(found.size()) + " values instead of " + std::to_string(expected.size()),
           where);
    double range = 1e-30;
    for (const float value : expected) {
        if (std::isfinite(value)) {
            range = std::max(range, static_cast<double>(std::abs(value)));
        }
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
        const bool close = std::isfinite(expected[i])
                               ? std::abs(found[i] - expected[i]) <= tolerance * range
                               : std::isnan(found[i]) == std::isnan(expected[i]) &&
                                     (std::isnan(found[i]) || found[i] == expected[i]);
        expect(close,
               "element " + std::to_string(i) + " is " + std::to_string(found[i]) + " instead of " +
                   std::to_string(expected[i]),
               where);
    }
}

inline void expect_shape(const Tensor& tensor, const Shape& shape,
                         std::source_location where = std::source_location::current()) {
    expect(tensor.logical_shape() == shape,
           "shape " + describe(tensor.logical_shape()) + " instead of " + describe(shape), where);
}

/// Expects `call` to throw with a message that contains `text`.
template <typename Call>
void expect_refused(const Call& call, const std::string& text,
                    std::source_location where = std::source_location::current()) {
    try {
        call();
    } catch (const std::exception& error) {
        expect(std::string(error.what()).find(text) != std::string::npos,
               std::string("refused with another message: ") + error.what(), where);
        return;
    }
    fail("accepted what should be refused with: " + text, where);
}

/// Relative error of one rounding to the type, with room for the accumulation before it.
inline double tolerance_of(DataType dtype) {
    switch (dtype) {
        case DataType::BFLOAT16:
            return 0.005;
        case DataType::BFLOAT8_B:
            return 0.02;
        case DataType::BFLOAT4_B:
            return 0.15;
        default:
            return 1e-5;
    }
}

/// As `tolerance_of`, for results of the matrix engine by default: its operands are truncated, and
/// sums of types other than float32 have 16 bits.
inline double engine_tolerance_of(DataType dtype) {
    return dtype == DataType::FLOAT32 ? 0.005 : 0.02 + tolerance_of(dtype);
}

}  // namespace compute_testing
