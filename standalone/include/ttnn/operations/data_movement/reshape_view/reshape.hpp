#pragma once

#include <cstdint>
#include <optional>

#include "tt_stl/span.hpp"
#include "ttcodegen/release.hpp"
#include "ttnn/core.hpp"
#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

using tt::tt_metal::PadValue;

enum class TileReshapeMapMode {
    CACHE,
    RECREATE,
};

/// Reshapes a tensor in row-major order. Shares the buffer if the last dimension is unchanged and,
/// for tiles, the one before is unchanged or both are multiples of the tile's height.
ttnn::Tensor reshape(const ttnn::Tensor& input_tensor, const ttnn::Shape& logical_shape,
                     const std::optional<tt::tt_metal::MemoryConfig>& memory_config = std::nullopt,
                     const std::optional<PadValue>& pad_value = std::nullopt,
                     TileReshapeMapMode reshape_map_mode = TileReshapeMapMode::CACHE,
                     const std::optional<CoreRangeSet>& sub_core_grid =
                         std::nullopt TTCODEGEN_ADDED_8101(, bool skip_padding_fill = false));
/// One dimension of `shape_vector` may be -1, which is inferred.
ttnn::Tensor reshape(const ttnn::Tensor& input_tensor, ttsl::Span<const std::int32_t> shape_vector,
                     const std::optional<tt::tt_metal::MemoryConfig>& memory_config = std::nullopt,
                     const std::optional<PadValue>& pad_value = std::nullopt,
                     TileReshapeMapMode reshape_map_mode = TileReshapeMapMode::CACHE,
                     const std::optional<CoreRangeSet>& sub_core_grid =
                         std::nullopt TTCODEGEN_ADDED_8101(, bool skip_padding_fill = false));

}  // namespace ttnn
