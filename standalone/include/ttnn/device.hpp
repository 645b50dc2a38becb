#pragma once

#include <memory>
#include <optional>

#include "ttcodegen/release.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

namespace device {

using IDevice = ttnn::IDevice;
using MeshDevice = tt::tt_metal::distributed::MeshDevice;

/// A 1x1 mesh of device `device_id`.
/// @throws std::runtime_error if the CPU backend has no such device.
std::shared_ptr<MeshDevice> open_mesh_device(
    int device_id, size_t l1_small_size = DEFAULT_L1_SMALL_SIZE,
    size_t trace_region_size = DEFAULT_TRACE_REGION_SIZE, size_t num_command_queues = 1,
#if TTCODEGEN_EXACT_8101
    const std::optional<tt::tt_metal::DispatchCoreConfig>& dispatch_core_config = std::nullopt,
#else
    const tt::tt_metal::DispatchCoreConfig& dispatch_core_config =
        tt::tt_metal::DispatchCoreConfig{},
#endif
    size_t worker_l1_size = DEFAULT_WORKER_L1_SIZE);
void close_device(MeshDevice& device);
#if TTCODEGEN_EXACT_8101
void enable_program_cache(MeshDevice& device);
void disable_and_clear_program_cache(MeshDevice& device);
#else
void enable_program_cache(IDevice& device);
void disable_and_clear_program_cache(IDevice& device);
#endif

}  // namespace device

using namespace device;

}  // namespace ttnn
