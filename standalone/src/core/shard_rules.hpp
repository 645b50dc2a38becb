#pragma once

#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// Refuses shards that tt-metal 0.70.1 does not allocate: that are not whole tiles, do not cover
/// the tensor, or are more than there are cores (measured; docs/library-rules.md).
void check_shards(const TensorSpec& spec);

/// Refuses shards of an input whose rows are not whole, or whose heights are not even, for
/// operations that take what a core holds as whole rows.
void check_whole_rows(const Tensor& input);

/// Refuses shards of rows of which one row, a page of the L1, is not aligned, for operations that
/// move whole pages.
void check_row_pages(const MemoryConfig& shards, DataType dtype);

}  // namespace ttcodegen::cpu
