#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// What the shards of a pool's result are worked out from.
struct PooledImage {
    /// Pixels of the result.
    std::uint32_t rows = 0;
    std::uint32_t channels = 0;
    /// Elements of a window.
    std::int64_t kernel = 1;
    tt::tt_metal::DataType dtype = tt::tt_metal::DataType::BFLOAT16;
    tt::tt_metal::Layout layout = tt::tt_metal::Layout::ROW_MAJOR;
    bool is_average = false;
    bool returns_indices = false;
    /// Whether each window is multiplied with the same number.
    bool has_one_scalar = true;
    bool config_in_dram = false;
};

/// How many elements of a window ttnn reduces at a time, for so many channels of a core.
std::int64_t reduced_at_once(std::uint32_t channels);

/// Where ttnn leaves the result of a pool: in the shards of its input, with as many rows as there
/// are; for an input that has none, in those of `scheme`, or of the scheme whose circular buffers
/// take the minimum of L1.
///
/// Source: pool2d_L1 and determine_pool_config_for_auto_shard of tt-metal 0.70.1.
MemoryConfig pooled_memory(const Tensor& input, const PooledImage& image,
                           std::optional<TensorMemoryLayout> scheme);

}  // namespace ttcodegen::cpu
