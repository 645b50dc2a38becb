#pragma once

#include "tt-metalium/queue_id.hpp"

namespace ttnn {

using QueueId = tt::tt_metal::QueueId;

}  // namespace ttnn
