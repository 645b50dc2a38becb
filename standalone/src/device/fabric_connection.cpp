// Host functions that give programs connections for packets between the devices of a mesh.

#include <vector>

#include "core/device.hpp"
#include "device/emulated_device.hpp"
#include "tt-metalium/distributed.hpp"
#include "tt-metalium/experimental/fabric/fabric.hpp"
#include "tt-metalium/global_semaphore.hpp"
#include "tt-metalium/host_api.hpp"
#include "tt_stl/assert.hpp"

namespace tt::tt_fabric {

FabricNodeId::FabricNodeId(MeshId mesh_id_val, std::uint32_t chip_id_val)
    : mesh_id(mesh_id_val), chip_id(chip_id_val) {}

std::size_t get_tt_fabric_packet_header_size_bytes() {
    return ttcodegen::device::kFabricHeaderBytes;
}

std::size_t get_tt_fabric_max_payload_size_bytes() {
    return ttcodegen::device::kFabricPayloadBytes;
}

template <>
void append_fabric_connection_rt_args<tt_metal::Program>(const FabricNodeId& src_fabric_node_id,
                                                         const FabricNodeId& dst_fabric_node_id,
                                                         std::uint32_t link_idx,
                                                         tt_metal::Program& worker_program_or_desc,
                                                         const tt_metal::CoreCoord& worker_core,
                                                         std::vector<std::uint32_t>& worker_args,
                                                         CoreType /*core_type*/) {
    TT_FATAL(GetFabricConfig() != FabricConfig::DISABLED,
             "A connection to the fabric needs it: call tt::tt_fabric::SetFabricConfig before the "
             "mesh is opened");
    TT_FATAL(link_idx == 0, "The CPU backend has one link between neighbours, and no link {}",
             link_idx);
    TT_FATAL(src_fabric_node_id.chip_id != dst_fabric_node_id.chip_id,
             "Device {} has no link to itself", src_fabric_node_id.chip_id);
    worker_args.push_back(dst_fabric_node_id.chip_id);
    const tt_metal::CoreRange core(worker_core, worker_core);
    for (int semaphore = 0; semaphore < 2; ++semaphore) {
        worker_args.push_back(tt_metal::CreateSemaphore(worker_program_or_desc, core, 0));
    }
}

}  // namespace tt::tt_fabric

namespace tt::tt_metal {

using namespace distributed;

namespace {

constexpr DeviceAddr kSemaphoreBytes = 16;

}  // namespace

GlobalSemaphore::GlobalSemaphore(IDevice* device, const CoreRangeSet& cores,
                                 std::uint32_t initial_value, BufferType buffer_type)
    : device_(device), cores_(cores) {
    auto* mesh = dynamic_cast<MeshDevice*>(device);
    TT_FATAL(mesh != nullptr, "A global semaphore is on a mesh of devices");
    // One page per core, so that it has the same address on all of them.
    const CoreCoord grid = mesh->compute_with_storage_grid_size();
    buffer_ = MeshBuffer::create(ReplicatedBufferConfig{.size = kSemaphoreBytes * grid.x * grid.y},
                                 {.page_size = kSemaphoreBytes, .buffer_type = buffer_type}, mesh);
    reset_semaphore_value(initial_value);
}

IDevice* GlobalSemaphore::device() const { return device_; }

DeviceAddr GlobalSemaphore::address() const { return buffer_->address(); }

void GlobalSemaphore::reset_semaphore_value(std::uint32_t reset_value) const {
    const std::vector<std::uint32_t> words(buffer_->device_local_size() / 4, reset_value);
    buffer_->device()->mesh_command_queue().enqueue_write_mesh_buffer(buffer_, words.data(), true);
}

GlobalSemaphore CreateGlobalSemaphore(IDevice* device, const CoreRangeSet& cores,
                                      std::uint32_t initial_value, BufferType buffer_type) {
    return {device, cores, initial_value, buffer_type};
}

namespace distributed {

tt_fabric::FabricNodeId MeshDevice::get_fabric_node_id(const MeshCoordinate& coord) const {
    return tt_fabric::FabricNodeId(tt_fabric::MeshId{0},
                                   static_cast<std::uint32_t>(coord[0] * num_cols() + coord[1]));
}

}  // namespace distributed

}  // namespace tt::tt_metal
