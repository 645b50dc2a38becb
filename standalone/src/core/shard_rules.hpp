#pragma once

#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// Refuses shards that tt-metal 0.70.1 does not allocate: that are not whole tiles, do not cover
/// the tensor, or exceed the number of cores (measured; docs/library-rules.md).
void check_shards(const TensorSpec& spec);

/// Refuses an input whose shards do not hold whole rows, or have uneven heights, for operations on
/// whole rows per core.
void check_whole_rows(const Tensor& input);

/// Refuses row-major shards whose row, a page of the L1, is not aligned, for operations that move
/// whole pages.
void check_row_pages(const MemoryConfig& shards, DataType dtype);

}  // namespace ttcodegen::cpu
