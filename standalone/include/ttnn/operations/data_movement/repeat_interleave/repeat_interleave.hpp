#pragma once

#include <cstdint>
#include <optional>

#include "ttnn/types.hpp"

namespace ttnn {

/// Repeats each slice along `dim` `repeats` times consecutively.
ttnn::Tensor repeat_interleave(const ttnn::Tensor& input_a, std::uint32_t repeats, std::int32_t dim,
                               const std::optional<MemoryConfig>& output_mem_config = std::nullopt);

}  // namespace ttnn
