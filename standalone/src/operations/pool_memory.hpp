#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// Properties of a pool that determine the shards of its result.
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
    /// Each window has the same factor.
    bool has_one_scalar = true;
    bool config_in_dram = false;
};

/// The number of window elements that ttnn reduces at a time, by channels per core.
std::int64_t reduced_at_once(std::uint32_t channels);

/// Memory config of a pool's result in ttnn: the input's sharding with rows of the result's height;
/// for an interleaved input the sharding of `scheme`, or of the scheme with the smallest circular
/// buffers.
///
/// Source: pool2d_L1 and determine_pool_config_for_auto_shard of tt-metal 0.70.1.
MemoryConfig pooled_memory(const Tensor& input, const PooledImage& image,
                           std::optional<TensorMemoryLayout> scheme);

}  // namespace ttcodegen::cpu
