#pragma once

// Row-wise kernels: a row is loaded as floats, changed in place and stored, rounded.

#include <algorithm>
#include <array>
#include <vector>

#include "compute/exponential.hpp"
#include "core/parallel.hpp"
#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// Folds `count` values with `fold(sum, value)` in 16 independent lanes, combined with `merge`.
template <typename Fold, typename Merge>
float fold_lanes(const float* values, std::size_t count, float identity, const Fold& fold,
                 const Merge& merge) {
    constexpr std::size_t lanes = 16;
    std::array<float, lanes> sums;
    sums.fill(identity);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            sums[lane] = fold(sums[lane], values[i + lane]);
        }
    }
    for (; i < count; ++i) {
        sums[i % lanes] = fold(sums[i % lanes], values[i]);
    }
    float result = sums[0];
    for (std::size_t lane = 1; lane < lanes; ++lane) {
        result = merge(result, sums[lane]);
    }
    return result;
}

inline float maximum_of(const float* values, std::size_t count) {
    const auto larger = [](float a, float b) { return b > a ? b : a; };
    return fold_lanes(values, count, -std::numeric_limits<float>::infinity(), larger, larger);
}

/// Calls `change(row, values)` for each row of `width` elements of `input` and stores the values to
/// the same row of `output`, which may be `input` itself.
template <typename Change>
void map_rows(const Tensor& input, const Tensor& output, std::size_t width, const Change& change) {
    if (input.logical_volume() == 0) {
        return;
    }
    const std::size_t rows = input.logical_volume() / width;
    const std::byte* source = buffer_of(input).data();
    Buffer& target_buffer = buffer_of(output);
    target_buffer.forget_derived();
    std::byte* target = target_buffer.data();
    const std::size_t source_bytes = width * stored_size(input.dtype());
    const std::size_t target_bytes = width * stored_size(output.dtype());
    const std::size_t grain = std::max<std::size_t>(1, (std::size_t{1} << 14) / width);
    parallel_for(rows, grain, [&](std::size_t begin, std::size_t end) {
        std::vector<float> values(width);
        for (std::size_t row = begin; row < end; ++row) {
            load_floats(source + row * source_bytes, input.dtype(), width, values.data());
            change(row, values.data());
            store_floats(values.data(), width, output.dtype(), target + row * target_bytes);
        }
    });
    finish_block_float(output);
}

}  // namespace ttcodegen::cpu
