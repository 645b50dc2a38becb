#pragma once

// What the operations of attention have in common: weights of the keys of a query, and caches in
// pages.

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "compute/attention.hpp"
#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"

namespace ttcodegen::cpu {

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

bool is_attention_type(DataType dtype);

/// The given factor, else the default for heads of this width.
float scale_of(std::optional<float> scale, std::uint32_t width);

Arithmetic arithmetic_of_attention(const Tensor& queries, const Tensor& keys,
                                   const std::optional<ttnn::DeviceComputeKernelConfig>& compute);

/// Everything that happens between the dot products and the weights of a query.
struct Weighting {
    float scale = 1.0F;
    Arithmetic arithmetic;
    /// Position of query 0 in the sequence; queries see keys up to their own position.
    std::optional<std::int64_t> causal_from;
    /// Keys of the sliding window; 0 is no window.
    std::int64_t window = 0;
    /// (1 or users, 1 or heads, queries, keys).
    std::optional<FloatElements> mask;
    std::array<std::int64_t, 2> mask_strides = {0, 0};
    std::int64_t mask_width = 0;
    /// What the mask is multiplied with: the decode kernels add it before they scale.
    float mask_scale = 1.0F;
    /// One logit for each head.
    std::optional<FloatElements> sinks;
    std::int64_t sink_stride = 1;

    /// A `ScoreFunction`. The kernels leave the scale to the exponent, and divide by the sum of the
    /// exponentials at the end; what goes from step to step is bfloat16.
    float operator()(std::int64_t user, std::int64_t head, std::int64_t query, float* scores,
                     std::size_t count) const;

    /// The exponential of a score below the maximum, an approximation whatever is configured.
    float power(float score, float maximum) const;
    /// The keys [first, last) that a query sees.
    std::pair<std::int64_t, std::int64_t> visible(std::int64_t query, std::int64_t count) const;
};

/// Has the shape, type and layout of the queries.
Tensor make_attention_output(const Tensor& queries,
                             const std::optional<MemoryConfig>& memory_config);

/// Page numbers of all users, each a page that the cache has.
void set_pages(CacheLayout& layout, const Tensor& page_table, std::int64_t users,
               std::int64_t pages);

/// Refuses users whose keys reach beyond their pages.
void check_pages_in_use(const Attention& attention);

}  // namespace ttcodegen::cpu
