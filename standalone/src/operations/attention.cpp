#include "operations/attention.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "compute/approximation.hpp"
#include "compute/rows.hpp"
#include "tt-metalium/math.hpp"

namespace ttcodegen::cpu {

bool is_attention_type(DataType dtype) { return dtype == DataType::BFLOAT16 || is_block(dtype); }

float scale_of(std::optional<float> scale, std::uint32_t width) {
    return scale.value_or(1.0F / std::sqrt(static_cast<float>(width)));
}

Arithmetic arithmetic_of_attention(const Tensor& queries, const Tensor& keys,
                                   const std::optional<ttnn::DeviceComputeKernelConfig>& compute) {
    return arithmetic_of(compute, ComputeDefault::attention,
                         std::array{queries.dtype(), keys.dtype()}, false);
}

float Weighting::operator()(int64_t user, int64_t head, int64_t query, float* scores,
                            std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) {
        scores[i] = round_to_bf16(scores[i]);
    }
    if (mask) {
        const float* added =
            mask->data() + user * mask_strides[0] + head * mask_strides[1] + query * mask_width;
        for (std::size_t i = 0; i < count; ++i) {
            scores[i] = round_to_bf16(scores[i] + round_to_bf16(added[i] * mask_scale / scale));
        }
    }
    const auto [first, last] = visible(query, static_cast<int64_t>(count));
    std::fill(scores, scores + first, kMinusInfinity);
    std::fill(scores + last, scores + count, kMinusInfinity);
    float maximum = maximum_of(scores, count);
    // The kernels scale a sink like a score.
    const float sink =
        sinks ? (*sinks)[static_cast<std::size_t>(head * sink_stride)] : kMinusInfinity;
    maximum = std::max(maximum, sink);
    std::array<float, kTileSide> sums{};
    for (std::size_t i = 0; i < count; ++i) {
        scores[i] = power(scores[i], maximum);
        sums[i % kTileSide] = round_to_bf16(sums[i % kTileSide] + scores[i]);
    }
    float sum = round_to_bf16(std::accumulate(sums.begin(), sums.end(), 0.0F));
    if (sinks) {
        sum = round_to_bf16(sum + power(sink, maximum));
    }
    return arithmetic.in_destination(iterated_reciprocal(sum, arithmetic));
}

float Weighting::power(float score, float maximum) const {
    const float difference = arithmetic.in_destination(score - maximum) * scale;
    // The packer flushes the approximation of large negative numbers to zero.
    return difference < -88.0F ? 0.0F : round_to_bf16(fast_exponential(difference));
}

std::pair<int64_t, int64_t> Weighting::visible(int64_t query, int64_t count) const {
    if (causal_from) {
        const int64_t position = *causal_from + query;
        const int64_t first = window > 0 ? position - window + 1 : 0;
        return {std::clamp<int64_t>(first, 0, count), std::clamp<int64_t>(position + 1, 0, count)};
    }
    if (window > 0) {
        return {std::clamp<int64_t>(query - window / 2, 0, count),
                std::clamp<int64_t>(query + window / 2 + 1, 0, count)};
    }
    return {0, count};
}

Tensor make_attention_output(const Tensor& queries,
                             const std::optional<MemoryConfig>& memory_config) {
    return allocate_like(queries, queries.logical_shape(), queries.dtype(), queries.layout(),
                         memory_config.value_or(MemoryConfig{}));
}

void set_pages(CacheLayout& layout, const Tensor& page_table, int64_t users, int64_t pages) {
    require_on_device(page_table, "Page table tensor");
    TT_FATAL(page_table.dtype() == DataType::INT32,
             "Error: SDPA currently only supports INT32 datatype");
    TT_FATAL(!page_table.is_sharded(),
             "Error: SDPA currently only supports UINT16 datatype for sharded configurations");
    TT_FATAL(page_table.layout() == Layout::ROW_MAJOR,
             "Page table tensor layout must be ROW_MAJOR but got {}", page_table.layout());
    const Shape& shape = page_table.logical_shape();
    TT_FATAL(shape.rank() == 2 && shape[0] == users,
             "Page table batch size must match input batch size. Got Page table: {}, Input: {}",
             shape, users);
    const auto table = elements<int32_t>(page_table);
    layout.pages.assign(table.begin(), table.end());
    layout.pages_per_user = shape[1];
    for (const int64_t page : layout.pages) {
        // Entries after a user's last page are often -1; they are checked when they are used.
        TT_FATAL(page < pages, "Page {} is outside of a cache of {} pages", page, pages);
    }
}

void check_pages_in_use(const Attention& attention) {
    const CacheLayout& layout = attention.cache;
    for (int64_t user = 0; user < attention.users; ++user) {
        const int64_t keys = attention.keys[static_cast<std::size_t>(user)];
        const int64_t used = tt::div_up(keys, layout.positions);
        TT_FATAL(used <= layout.pages_per_user,
                 "User {} needs {} pages for {} keys, its page table has {}", user, used, keys,
                 layout.pages_per_user);
        for (int64_t i = 0; i < used; ++i) {
            TT_FATAL(layout.pages[static_cast<std::size_t>(user * layout.pages_per_user + i)] >= 0,
                     "Page {} of user {} is not assigned", i, user);
        }
    }
}

}  // namespace ttcodegen::cpu
