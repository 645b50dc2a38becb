#pragma once

#include <cstdint>
#include <memory>

#include "tt-metalium/mesh_command_queue.hpp"

namespace ttcodegen::device {

/// A queue that executes commands immediately, on the calling thread.
std::unique_ptr<tt::tt_metal::distributed::MeshCommandQueue> make_command_queue(
    tt::tt_metal::distributed::MeshDevice* device, std::uint32_t id);

}  // namespace ttcodegen::device
