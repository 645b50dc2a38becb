#pragma once

#include <cstdint>
#include <optional>

#include "tt_stl/strong_type.hpp"
#include "ttcodegen/release.hpp"

#if TTCODEGEN_EXACT_8101
namespace ttnn {

using QueueId = ttsl::StrongType<std::uint8_t, struct QueueIdTag>;

}  // namespace ttnn
#endif

namespace tt::tt_metal {

#if TTCODEGEN_EXACT_8101
using QueueId = ttnn::QueueId;
#else
using QueueId = ttsl::StrongType<std::uint8_t, struct QueueIdTag>;
#endif

}  // namespace tt::tt_metal
