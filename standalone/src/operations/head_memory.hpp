#pragma once

// The placement of heads that are split from rows or concatenated, and which shards tt-metal
// 0.70.1 takes for that (measured; docs/library-rules.md).

#include <array>
#include <cstdint>
#include <optional>

#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// Queries, keys and values: how many heads of which width.
struct HeadCounts {
    std::uint32_t queries;
    std::uint32_t keys;
    std::uint32_t width;
};

/// Memory of queries, keys and values.
using HeadMemory = std::array<MemoryConfig, 3>;

/// The heads of (users, heads, positions, width) side by side: shards of whole heads stay on their
/// cores.
MemoryConfig joined_heads_memory(const Tensor& input, const std::optional<MemoryConfig>& asked);

/// `split_query_key_value_and_split_heads`: blocks become shards by height on the same cores.
HeadMemory split_heads_memory(const Tensor& input, const HeadCounts& heads, bool transposed_keys,
                              const std::optional<MemoryConfig>& asked);

/// `nlp_create_qkv_heads`: a head on each core.
HeadMemory created_heads_memory(const Tensor& input, const HeadCounts& heads, bool transposed_keys,
                                const std::optional<MemoryConfig>& asked);

/// `nlp_create_qkv_heads_decode`: the heads of a user on each core; keys on the cores of the
/// queries, unless they are not to overlap.
HeadMemory decode_heads_memory(const Tensor& input, const HeadCounts& heads, bool overlap,
                               const std::optional<MemoryConfig>& asked);

/// `nlp_create_qkv_heads` with keys apart: both are placed alike.
void check_separate_keys(const Tensor& queries, const Tensor& keys, std::uint32_t head_width);

/// `nlp_concat_heads_decode`: each user's heads are on a core of their own.
void check_joined_decode(const Tensor& input);

/// `nlp_concat_heads_decode`: a head of all users on each core.
MemoryConfig joined_decode_memory(const Tensor& input, std::uint32_t heads);

}  // namespace ttcodegen::cpu
