#pragma once

#include <memory>

#include "support/model.hpp"

namespace support {

/// Calls of a function that are replayed as a device trace. The first call runs it, which compiles
/// its programs; the second captures it; each further call writes its inputs to the tensors that
/// the trace reads, and replays the trace.
std::unique_ptr<Calls> traced_calls(const Function& function, std::shared_ptr<const void> prepared,
                                    tt::tt_metal::distributed::MeshDevice& device);

}  // namespace support
