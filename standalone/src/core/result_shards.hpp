#pragma once

// The placement of results of operations on sharded tensors, as tt-metal 0.70.1 was measured to
// place them (docs/library-rules.md).

#include <optional>
#include <span>

#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// Whether a kind of sharding is requested, without shards.
bool is_bare(const std::optional<MemoryConfig>& asked);

/// Shards of that kind on the cores of `like` for a tensor of this shape: as even as whole tiles or
/// rows allow.
MemoryConfig spread_over(const MemoryConfig& like, TensorMemoryLayout kind, const Shape& shape,
                         Layout layout);

/// The result of an elementwise operation of one tensor. A kind of sharding without shards takes
/// all cores, or the shards of the input.
MemoryConfig unary_memory(const Tensor& input, const std::optional<MemoryConfig>& asked);

/// The result of an elementwise operation of several tensors: that of the sharded operand with most
/// cores, the first of equals. A kind without shards is ignored where an operand is sharded.
MemoryConfig elementwise_memory(std::span<const Tensor* const> operands, const Shape& shape,
                                Layout layout, const std::optional<MemoryConfig>& asked);

/// Whether a tensor is divided among the banks of the DRAM, where programs put no circular buffers.
bool is_sharded_in_dram(const Tensor& tensor);

/// The result, in tiles, of a reduction of these dimensions (rows: the second to last) of the
/// input.
MemoryConfig reduced_memory(const Tensor& input, bool rows, bool columns,
                            const std::optional<MemoryConfig>& asked);

/// The result of an operation that changes the shape: what is requested, else the input's kind and
/// cores. `turned`: the last two dimensions changed places.
MemoryConfig moved_memory(const Tensor& input, const Shape& shape,
                          const std::optional<MemoryConfig>& asked, bool turned);

/// Refuses sharded tensors, and sharded results, where tt-metal 0.70.1 has no program for them.
void require_interleaved(const Tensor& input, const std::optional<MemoryConfig>& asked);

/// The result of tilizing: shards by height stay as they are where such shards are requested.
MemoryConfig tilized_memory(const Tensor& input, const std::optional<MemoryConfig>& asked);

}  // namespace ttcodegen::cpu
