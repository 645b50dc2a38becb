#pragma once

#include <cstdint>
#include <optional>

#include "tt_stl/span.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Broadcasts dimensions of size 1 to the sizes of `shape_vector`; -1 keeps a size.
Tensor expand(const ttnn::Tensor& tensor, ttsl::Span<const std::int32_t> shape_vector,
              const std::optional<MemoryConfig>& memory_config = std::nullopt);

}  // namespace ttnn
