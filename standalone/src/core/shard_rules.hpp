#pragma once

#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// Refuses shards that tt-metal 0.70.1 does not allocate: that are not whole tiles, do not cover
/// the tensor, or are more than there are cores (measured; docs/library-rules.md).
void check_shards(const TensorSpec& spec);

}  // namespace ttcodegen::cpu
