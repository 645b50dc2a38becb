#pragma once

// Memory configs of the results of operations on sharded tensors, as measured with tt-metal 0.70.1
// (docs/library-rules.md).

#include <optional>
#include <span>

#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// Returns whether a memory layout is requested without a shard spec.
bool is_bare(const std::optional<MemoryConfig>& asked);

/// A shard spec of that layout on the cores of `like` for a tensor of this shape: as even as whole
/// tiles or rows allow.
MemoryConfig spread_over(const MemoryConfig& like, TensorMemoryLayout kind, const Shape& shape,
                         Layout layout);

/// The result of a unary elementwise operation. A sharding without shard spec uses all cores, or
/// the shard spec of the input.
MemoryConfig unary_memory(const Tensor& input, const std::optional<MemoryConfig>& asked);

/// The result of an elementwise operation of several tensors: that of the sharded operand with most
/// cores, the first of equals. A sharding without shard spec is ignored if an operand is sharded.
MemoryConfig elementwise_memory(std::span<const Tensor* const> operands, const Shape& shape,
                                Layout layout, const std::optional<MemoryConfig>& asked);

/// Returns whether a tensor is sharded over DRAM banks, where programs have no circular buffers.
bool is_sharded_in_dram(const Tensor& tensor);

/// The result, in tiles, of a reduction of these dimensions (rows: the second to last) of the
/// input.
MemoryConfig reduced_memory(const Tensor& input, bool rows, bool columns,
                            const std::optional<MemoryConfig>& asked);

/// The result of an operation that changes the shape: the requested memory config, else the input's
/// sharding and cores. `turned`: the last two dimensions are exchanged.
MemoryConfig moved_memory(const Tensor& input, const Shape& shape,
                          const std::optional<MemoryConfig>& asked, bool turned);

/// Refuses sharded tensors and results where tt-metal 0.70.1 has no program for them.
void require_interleaved(const Tensor& input, const std::optional<MemoryConfig>& asked);

/// The result of tilize: height shards are kept if height sharding is requested.
MemoryConfig tilized_memory(const Tensor& input, const std::optional<MemoryConfig>& asked);

}  // namespace ttcodegen::cpu
