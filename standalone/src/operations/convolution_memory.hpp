#pragma once

#include <cstdint>
#include <optional>

#include "compute/sharding.hpp"
#include "ttnn/operations/conv/conv2d/conv2d.hpp"

namespace ttcodegen::cpu {

/// What the place of a convolution's result is worked out from.
struct ConvolvedImage {
    /// Pixels of the result in all and in each direction, and the channels of both images.
    std::uint32_t rows = 0;
    std::uint32_t height = 0;
    std::uint32_t width = 0;
    std::uint32_t in_channels = 0;
    std::uint32_t out_channels = 0;
    /// Whether it is a product of matrices: one pixel of the input for one of the result.
    bool is_product = false;
    /// Whether stride and kernel are the same, so that it becomes a product once it is folded.
    bool can_fold = false;
    bool is_transposed = false;
    bool is_one_dimensional = false;
    tt::tt_metal::DataType dtype = tt::tt_metal::DataType::BFLOAT16;
};

/// Where ttnn leaves the result of a convolution: interleaved in DRAM, or in shards of L1 that
/// follow from those of the input, or from what the configuration asks for.
///
/// Source: conv2d_L1, conv2d_DRAM and conv2d_utils.cpp of tt-metal 0.70.1. Which scheme it
/// chooses itself for an image in L1 without shards depends on what halos take of L1, which is not
/// worked out here: rows of tiles are divided by height, others into blocks.
///
/// Raises:
///     std::runtime_error: what the release refuses.
MemoryConfig convolved_memory(const Tensor& input, const ConvolvedImage& image,
                              const ttnn::Conv2dConfig& config,
                              const std::optional<MemoryConfig>& memory_config,
                              const std::optional<ttnn::Conv2dSliceConfig>& slices);

}  // namespace ttcodegen::cpu
