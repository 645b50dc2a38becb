#pragma once

#include <cstdint>

namespace ttnn::operations::op_slicing {

/// Slicing of a convolution or pool over a DRAM tensor into pieces that fit into L1. The result
/// does not depend on it.
struct Op2DSliceConfig {
    enum class SliceType : uint8_t { DRAM_HEIGHT, DRAM_WIDTH, L1_FULL };
    SliceType slice_type = SliceType::DRAM_WIDTH;
    uint32_t num_slices = 0;
};

}  // namespace ttnn::operations::op_slicing
