#pragma once

#include <optional>

#include "core/tensor_data.hpp"
#include "ttnn/types.hpp"

namespace ttcodegen::cpu {

/// Arguments of a group norm.
struct GroupNormCall {
    int groups = 1;
    /// The cores that the call requests.
    std::optional<ttnn::CoreGrid> grid;
    bool in_place = false;
    /// Without a mask argument the call creates one, for the cores across the channels.
    bool has_mask = false;
};

/// Memory config of a group norm's result in ttnn: interleaved DRAM unless another is given,
/// wherever the input is. Refuses inputs and grids that the release has no program for.
///
/// Source: group_norm, get_mask_tensor and find_expected_dram_grid of tt-metal 0.70.1.
MemoryConfig group_norm_memory(const Tensor& input, const GroupNormCall& call,
                               const std::optional<MemoryConfig>& memory_config);

}  // namespace ttcodegen::cpu
