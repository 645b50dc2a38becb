#pragma once

#include <cstdint>
#include <optional>

#include "tt_stl/strong_type.hpp"

namespace tt::tt_metal {

using QueueId = ttsl::StrongType<std::uint8_t, struct QueueIdTag>;

}  // namespace tt::tt_metal
