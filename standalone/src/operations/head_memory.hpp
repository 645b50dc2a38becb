#pragma once

// Memory configs of split and concatenated heads, and the shards that tt-metal 0.70.1 accepts for
// them (measured; docs/library-rules.md).

#include <array>
#include <cstdint>
#include <optional>

#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// Numbers of query, key and value heads, and their width.
struct HeadCounts {
    std::uint32_t queries;
    std::uint32_t keys;
    std::uint32_t width;
};

/// Memory configs of queries, keys and values.
using HeadMemory = std::array<MemoryConfig, 3>;

/// Concatenated heads of (users, heads, positions, width): shards of whole heads stay on their
/// cores.
MemoryConfig joined_heads_memory(const Tensor& input, const std::optional<MemoryConfig>& asked);

/// `split_query_key_value_and_split_heads`: block shards become height shards on the same cores.
HeadMemory split_heads_memory(const Tensor& input, const HeadCounts& heads, bool transposed_keys,
                              const std::optional<MemoryConfig>& asked);

/// `nlp_create_qkv_heads`: one head per core.
HeadMemory created_heads_memory(const Tensor& input, const HeadCounts& heads, bool transposed_keys,
                                const std::optional<MemoryConfig>& asked);

/// `nlp_create_qkv_heads_decode`: the heads of one user per core; keys on the cores of the queries,
/// unless they must not overlap.
HeadMemory decode_heads_memory(const Tensor& input, const HeadCounts& heads, bool overlap,
                               const std::optional<MemoryConfig>& asked);

/// `nlp_create_qkv_heads` with separate keys: both must have the same sharding.
void check_separate_keys(const Tensor& queries, const Tensor& keys, std::uint32_t head_width);

/// `nlp_concat_heads_decode`: each user's heads must be on a separate core.
void check_joined_decode(const Tensor& input);

/// `nlp_concat_heads_decode`: one head of all users per core.
MemoryConfig joined_decode_memory(const Tensor& input, std::uint32_t heads);

}  // namespace ttcodegen::cpu
