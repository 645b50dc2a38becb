#include "core/device.hpp"

#include "core/describe.hpp"
#include "ttnn/device.hpp"
#include "ttnn/distributed/api.hpp"

namespace tt::tt_metal::distributed {

namespace {

// Worker cores and L1 of a Wormhole B0 n150; 12 DRAM banks.
constexpr CoreCoord kWorkerGrid{8, 8};
constexpr CoreCoord kDramGrid{12, 1};
constexpr std::uint32_t kL1Bytes = 1499136;

}  // namespace

MeshDevice::~MeshDevice() = default;

std::shared_ptr<MeshDevice> MeshDevice::create_unit_mesh(
    int device_id, std::size_t l1_small_size, std::size_t /*trace_region_size*/,
    std::size_t num_command_queues, const DispatchCoreConfig& /*dispatch_core_config*/,
    ttsl::Span<const std::uint32_t> /*l1_bank_remap*/, std::size_t /*worker_l1_size*/) {
    TT_FATAL(device_id == 0, "Device {} does not exist: the CPU backend has device 0", device_id);
    TT_FATAL(num_command_queues == 1 || num_command_queues == 2,
             "A device has one or two command queues, not {}", num_command_queues);
    std::shared_ptr<MeshDevice> device(new MeshDevice());
    device->pimpl_ = std::make_unique<MeshDeviceImpl>(MeshShape(1, 1), l1_small_size);
    return device;
}

tt::ARCH MeshDevice::arch() const { return tt::ARCH::WORMHOLE_B0; }
int MeshDevice::id() const { return 0; }
bool MeshDevice::is_initialized() const { return pimpl_->open; }
std::uint32_t MeshDevice::l1_size_per_core() const { return kL1Bytes; }
CoreCoord MeshDevice::grid_size() const { return kWorkerGrid; }
CoreCoord MeshDevice::logical_grid_size() const { return kWorkerGrid; }
CoreCoord MeshDevice::dram_grid_size() const { return kDramGrid; }
CoreCoord MeshDevice::compute_with_storage_grid_size() const { return kWorkerGrid; }

bool MeshDevice::close() {
    const bool was_open = pimpl_->open;
    pimpl_->open = false;
    return was_open;
}

// Nothing is compiled at run time here, so there are no programs to cache.
void MeshDevice::enable_program_cache() {}
void MeshDevice::clear_program_cache() {}
void MeshDevice::disable_and_clear_program_cache() {}
std::size_t MeshDevice::num_program_cache_entries() { return 0; }

std::size_t MeshDevice::num_devices() const { return pimpl_->shape.mesh_size(); }
const MeshShape& MeshDevice::shape() const { return pimpl_->shape; }

}  // namespace tt::tt_metal::distributed

namespace ttnn::distributed {

std::shared_ptr<MeshDevice> open_mesh_device(
    const MeshShape& mesh_shape, size_t l1_small_size, size_t trace_region_size,
    size_t num_command_queues, const tt::tt_metal::DispatchCoreConfig& dispatch_core_config,
    const std::optional<MeshCoordinate>& /*offset*/, const std::vector<int>& physical_device_ids,
    size_t worker_l1_size) {
    TT_FATAL(mesh_shape.mesh_size() == 1,
             "A mesh of {} devices needs more than the CPU backend has", mesh_shape.mesh_size());
    const int device_id = physical_device_ids.empty() ? 0 : physical_device_ids.front();
    return MeshDevice::create_unit_mesh(device_id, l1_small_size, trace_region_size,
                                        num_command_queues, dispatch_core_config, {},
                                        worker_l1_size);
}

void close_mesh_device(const std::shared_ptr<MeshDevice>& mesh_device) { mesh_device->close(); }

}  // namespace ttnn::distributed

namespace ttnn::device {

std::shared_ptr<MeshDevice> open_mesh_device(
    int device_id, size_t l1_small_size, size_t trace_region_size, size_t num_command_queues,
    const tt::tt_metal::DispatchCoreConfig& dispatch_core_config, size_t worker_l1_size) {
    return MeshDevice::create_unit_mesh(device_id, l1_small_size, trace_region_size,
                                        num_command_queues, dispatch_core_config, {},
                                        worker_l1_size);
}

void close_device(MeshDevice& device) { device.close(); }
void enable_program_cache(IDevice& device) { device.enable_program_cache(); }
void disable_and_clear_program_cache(IDevice& device) { device.disable_and_clear_program_cache(); }

}  // namespace ttnn::device
