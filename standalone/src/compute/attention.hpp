#pragma once

// softmax(Q K^T) V for batches of users and heads, on the matmul of this backend.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "compute/arithmetic.hpp"
#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// The layout of keys or values: (users, heads, positions, width), or, if paged, blocks (pages,
/// heads, positions of a page, width).
struct CacheLayout {
    std::int64_t heads = 1;
    std::int64_t positions = 1;
    /// Pages of each user, in order; empty where the cache is not paged.
    std::vector<std::int64_t> pages;
    std::int64_t pages_per_user = 0;
};

struct Attention {
    std::int64_t users = 1;
    std::int64_t query_heads = 1;
    /// Queries per user and head.
    std::int64_t queries = 1;
    std::int64_t width = 1;
    CacheLayout cache;
    /// Number of keys of each user; with 0 the user's output is zero.
    std::vector<std::int64_t> keys;
    /// Causal offset: query q sees keys up to `causal_from` + q; hidden ones are not computed.
    std::optional<std::int64_t> causal_from = std::nullopt;
};

/// Converts the dot products of one query with `count` keys to weights, in place; returns the
/// factor of the weighted sum of the values.
using ScoreFunction = std::function<float(std::int64_t user, std::int64_t head, std::int64_t query,
                                          float* scores, std::size_t count)>;

/// Attention of queries (users, heads, queries, width) over `keys` and `values`; `output` has the
/// shape of the queries.
void attend(const Tensor& queries, const Tensor& keys, const Tensor& values,
            const Attention& attention, const Arithmetic& arithmetic, const ScoreFunction& weigh,
            const Tensor& output);

}  // namespace ttcodegen::cpu
