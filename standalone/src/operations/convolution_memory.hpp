#pragma once

#include <cstdint>
#include <optional>

#include "compute/sharding.hpp"
#include "ttnn/operations/conv/conv2d/conv2d.hpp"

namespace ttcodegen::cpu {

/// Properties of a convolution that determine the memory config of its result.
struct ConvolvedImage {
    /// Pixels of the result in total and per direction, and the channels of both images.
    std::uint32_t rows = 0;
    std::uint32_t height = 0;
    std::uint32_t width = 0;
    std::uint32_t in_channels = 0;
    std::uint32_t out_channels = 0;
    /// A 1x1 convolution as matmul: one pixel of the input for one of the result.
    bool is_product = false;
    /// Stride and kernel are equal, so that the convolution is a matmul after folding.
    bool can_fold = false;
    bool is_transposed = false;
    bool is_one_dimensional = false;
    bool is_strided = false;
    bool is_dilated = false;
    tt::tt_metal::DataType dtype = tt::tt_metal::DataType::BFLOAT16;
};

/// Memory config of a convolution's result in ttnn: interleaved DRAM, or L1 shards that follow from
/// those of the input, or from the config.
///
/// Source: conv2d_L1, conv2d_DRAM and conv2d_utils.cpp of tt-metal 0.70.1. Its automatic scheme for
/// an interleaved image in L1 depends on the L1 size of halos, which is not modelled here: tiled
/// rows are height-sharded, others block-sharded.
///
/// Raises:
///     std::runtime_error: what the release refuses.
MemoryConfig convolved_memory(const Tensor& input, const ConvolvedImage& image,
                              const ttnn::Conv2dConfig& config,
                              const std::optional<MemoryConfig>& memory_config,
                              const std::optional<ttnn::Conv2dSliceConfig>& slices);

}  // namespace ttcodegen::cpu
