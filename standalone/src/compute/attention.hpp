#pragma once

// softmax(Q K^T) V for many users and heads, on the matrix product of this backend.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "compute/arithmetic.hpp"
#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// The layout of the keys or values of a user: (users, heads, positions, width), or, with page
/// numbers, in blocks (pages, heads, positions of a page, width).
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
    /// Queries of each user and head.
    std::int64_t queries = 1;
    std::int64_t width = 1;
    CacheLayout cache;
    /// How many keys each user has; none makes the user's output zero.
    std::vector<std::int64_t> keys;
    /// Where set, query q sees no key after `causal_from` + q: what is hidden is not computed.
    std::optional<std::int64_t> causal_from = std::nullopt;
};

/// Turns the dot products of one query with `count` keys into weights, in place; gives what the sum
/// of the weighted values is multiplied with.
using ScoreFunction = std::function<float(std::int64_t user, std::int64_t head, std::int64_t query,
                                          float* scores, std::size_t count)>;

/// Attends from queries (users, heads, queries, width) to `keys` and `values`; `output` has the
/// shape of the queries.
void attend(const Tensor& queries, const Tensor& keys, const Tensor& values,
            const Attention& attention, const Arithmetic& arithmetic, const ScoreFunction& weigh,
            const Tensor& output);

}  // namespace ttcodegen::cpu
