#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "ttnn/types.hpp"

namespace ttnn {

namespace operations::data_movement {

struct PadSpecDim {
    std::uint32_t before_elements;
    std::uint32_t after_elements;
};

}  // namespace operations::data_movement

/// Pads a tensor with `value`; one entry of widths for each of the last dimensions.
ttnn::Tensor pad(const ttnn::Tensor& input_tensor,
                 const ttnn::SmallVector<operations::data_movement::PadSpecDim>& padding,
                 float value, bool use_multicore,
                 const std::optional<MemoryConfig>& memory_config_arg = std::nullopt,
                 const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt);
ttnn::Tensor pad(const ttnn::Tensor& input_tensor,
                 const ttnn::SmallVector<std::array<std::uint32_t, 2>>& padding, float value,
                 bool use_multicore = false,
                 const std::optional<MemoryConfig>& memory_config_arg = std::nullopt,
                 const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt);

}  // namespace ttnn
