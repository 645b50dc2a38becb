#pragma once

// Common parts of attention operations: the weights of a query's keys, and paged
// caches.

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

/// The given scale, else the default for heads of this width.
float scale_of(std::optional<float> scale, std::uint32_t width);

Arithmetic arithmetic_of_attention(const Tensor& queries, const Tensor& keys,
                                   const std::optional<ttnn::DeviceComputeKernelConfig>& compute);

/// The steps between the dot products and the weights of a query.
struct Weighting {
    float scale = 1.0F;
    Arithmetic arithmetic;
    /// Position of query 0 in the sequence; queries attend to keys up to their own position.
    std::optional<std::int64_t> causal_from;
    /// Keys of the sliding window; 0 for no window.
    std::int64_t window = 0;
    /// (1 or users, 1 or heads, queries, keys).
    std::optional<FloatElements> mask;
    std::array<std::int64_t, 2> mask_strides = {0, 0};
    std::int64_t mask_width = 0;
    /// Scale of the mask: the decode kernels add it before they scale.
    float mask_scale = 1.0F;
    /// One logit per head.
    std::optional<FloatElements> sinks;
    std::int64_t sink_stride = 1;

    /// A `ScoreFunction`. The kernels apply the scale in the exponent, and divide by the sum of the
    /// exponentials at the end; intermediate values are bfloat16.
    float operator()(std::int64_t user, std::int64_t head, std::int64_t query, float* scores,
                     std::size_t count) const;

    /// The exponential of a score relative to the maximum, always the approximation.
    float power(float score, float maximum) const;
    /// The keys [first, last) that a query attends to.
    std::pair<std::int64_t, std::int64_t> visible(std::int64_t query, std::int64_t count) const;
};

/// Creates an output with the shape, type and layout of the queries.
Tensor make_attention_output(const Tensor& queries,
                             const std::optional<MemoryConfig>& memory_config);

/// Reads the page table of all users and checks that the cache has each page.
void set_pages(CacheLayout& layout, const Tensor& page_table, std::int64_t users,
               std::int64_t pages);

/// Refuses users whose keys exceed their pages.
void check_pages_in_use(const Attention& attention);

}  // namespace ttcodegen::cpu
