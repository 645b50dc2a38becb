#include "core/device.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

#include "core/describe.hpp"
#include "core/l1.hpp"
#include "core/memory_use.hpp"
#include "device/architecture.hpp"
#include "device/command_queue.hpp"
#include "device/emulated_device.hpp"
#include "mesh/fabric.hpp"
#include "mesh/ranks.hpp"
#include "tt-metalium/mesh_command_queue.hpp"
#include "ttnn/device.hpp"
#include "ttnn/distributed/api.hpp"

namespace tt::tt_metal::distributed {

MeshDeviceImpl::MeshDeviceImpl(MeshShape shape_, std::size_t l1_small_size_,
                               std::size_t trace_region_size, std::size_t num_command_queues_,
                               std::size_t worker_l1_size)
    : shape(std::move(shape_)),
      l1_small_size(l1_small_size_),
      num_command_queues(num_command_queues_),
      architecture(ttcodegen::device::default_architecture()),
      traces(*this, trace_region_size) {
    const std::size_t size = architecture.l1_size;
    const std::size_t base = worker_l1_size > 0
                                 ? size - std::min(worker_l1_size, size)
                                 : static_cast<std::size_t>(architecture.l1_unreserved_base);
    TT_FATAL(l1_small_size <= size - base, "l1_small_size of {} B leaves nothing of L1",
             l1_small_size);
    l1 = std::make_shared<ttcodegen::cpu::L1Banks>(base, size - l1_small_size);
    memory_use = std::make_shared<ttcodegen::cpu::MemoryUse>();
}

MeshDeviceImpl::~MeshDeviceImpl() = default;

bool MeshDeviceImpl::close() {
    emulated_.reset();
    if (open && chips.empty()) {
        memory_use->report();
    }
    // For a mesh the first device reports: operations allocate the same on each.
    for (const auto& chip : std::views::reverse(chips)) {
        chip->close();
    }
    if (open && fabric != nullptr) {
        fabric->report();
    }
    return std::exchange(open, false);
}

ttcodegen::device::EmulatedDevice& MeshDeviceImpl::emulated() {
    TT_FATAL(open, "The device is closed");
    TT_FATAL(ttcodegen::cpu::local_chips(shape.mesh_size()).are_all(),
             "The CPU backend runs device programs in one process, not on the devices of several");
    if (emulated_ == nullptr) {
        emulated_ = std::make_shared<ttcodegen::device::EmulatedDevice>(
            architecture, l1_small_size, std::max<std::size_t>(chips.size(), 1));
        emulated_->set_fabric(fabric.get());
    }
    return *emulated_;
}

MeshDevice::~MeshDevice() = default;

std::shared_ptr<MeshDevice> MeshDeviceImpl::create_mesh(const MeshShape& shape,
                                                        std::size_t l1_small_size,
                                                        std::size_t trace_region_size,
                                                        std::size_t num_command_queues,
                                                        std::size_t worker_l1_size) {
    TT_FATAL(shape.dims() == 2, "The CPU backend has meshes of two dimensions, not of {}",
             shape.dims());
    TT_FATAL(shape.mesh_size() > 0 && shape.mesh_size() <= kMostChips,
             "The CPU backend has {} devices, not {}", kMostChips, shape.mesh_size());
    const auto create_device = [&] {
        return MeshDevice::create_unit_mesh(0, l1_small_size, trace_region_size, num_command_queues,
                                            DispatchCoreConfig{}, {}, worker_l1_size);
    };
    ttcodegen::cpu::local_chips(shape.mesh_size());
    auto mesh = create_device();
    MeshDeviceImpl& impl = mesh->impl();
    impl.shape = shape;
    impl.fabric = std::make_unique<ttcodegen::cpu::Fabric>(shape[0], shape[1]);
    for (std::size_t chip = 0; chip < shape.mesh_size(); ++chip) {
        impl.chips.push_back(create_device());
    }
    return mesh;
}

std::shared_ptr<MeshDevice> MeshDevice::create(
    const MeshDeviceConfig& config, std::size_t l1_small_size, std::size_t trace_region_size,
    std::size_t num_command_queues, const DispatchCoreConfig& dispatch_core_config,
    ttsl::Span<const std::uint32_t> /*l1_bank_remap*/, std::size_t worker_l1_size) {
    return ttnn::distributed::open_mesh_device(config.mesh_shape().value_or(MeshShape(1, 1)),
                                               l1_small_size, trace_region_size, num_command_queues,
                                               dispatch_core_config, config.offset(),
                                               config.physical_device_ids(), worker_l1_size);
}

std::shared_ptr<MeshDevice> MeshDevice::create_unit_mesh(
    int device_id, std::size_t l1_small_size, std::size_t trace_region_size,
    std::size_t num_command_queues, const DispatchCoreConfig& /*dispatch_core_config*/,
    ttsl::Span<const std::uint32_t> /*l1_bank_remap*/, std::size_t worker_l1_size) {
    TT_FATAL(device_id == 0, "Device {} does not exist: the CPU backend has device 0", device_id);
    TT_FATAL(num_command_queues == 1 || num_command_queues == 2,
             "A device has one or two command queues, not {}", num_command_queues);
    std::shared_ptr<MeshDevice> device(new MeshDevice());
    device->pimpl_ = std::make_unique<MeshDeviceImpl>(
        MeshShape(1, 1), l1_small_size, trace_region_size, num_command_queues, worker_l1_size);
    for (std::size_t id = 0; id < num_command_queues; ++id) {
        device->pimpl_->command_queues.push_back(
            ttcodegen::device::make_command_queue(device.get(), static_cast<std::uint32_t>(id)));
    }
    return device;
}

std::shared_ptr<MeshDevice> MeshDevice::create_submesh(
    const MeshShape& submesh_shape, const std::optional<MeshCoordinate>& offset) {
    TT_FATAL(submesh_shape.dims() == 2 && submesh_shape.mesh_size() == 1,
             "The CPU backend has submeshes of one device");
    const MeshCoordinate position = offset.value_or(MeshCoordinate(0, 0));
    const MeshShape& whole = pimpl_->shape;
    TT_FATAL(position.dims() == 2 && position[0] < whole[0] && position[1] < whole[1],
             "The submesh is outside of the mesh of {}x{} devices", whole[0], whole[1]);
    if (pimpl_->chips.empty()) {
        return shared_from_this();
    }
    return pimpl_->chips[position[0] * whole[1] + position[1]];
}

tt::ARCH MeshDevice::arch() const { return pimpl_->architecture.arch; }
int MeshDevice::id() const { return 0; }
bool MeshDevice::is_initialized() const { return pimpl_->open; }
std::uint32_t MeshDevice::l1_size_per_core() const { return pimpl_->architecture.l1_size; }
CoreCoord MeshDevice::grid_size() const { return pimpl_->architecture.worker_grid; }
CoreCoord MeshDevice::logical_grid_size() const { return pimpl_->architecture.worker_grid; }
CoreCoord MeshDevice::dram_grid_size() const { return {pimpl_->architecture.dram_banks.size(), 1}; }
CoreCoord MeshDevice::compute_with_storage_grid_size() const {
    return pimpl_->architecture.worker_grid;
}
std::uint8_t MeshDevice::num_hw_cqs() const {
    return static_cast<std::uint8_t>(pimpl_->num_command_queues);
}
int MeshDevice::num_dram_channels() const {
    return static_cast<int>(pimpl_->architecture.dram_banks.size());
}
std::uint32_t MeshDevice::dram_size_per_channel() const {
    return pimpl_->architecture.dram_bank_size;
}

CoreCoord MeshDevice::worker_core_from_logical_core(const CoreCoord& logical_core) const {
    const CoreCoord grid = pimpl_->architecture.worker_grid;
    TT_FATAL(logical_core.x < grid.x && logical_core.y < grid.y,
             "Core (x={},y={}) is not on the grid of {}x{} worker cores", logical_core.x,
             logical_core.y, grid.x, grid.y);
    return pimpl_->architecture.worker_to_noc(logical_core);
}
CoreCoord MeshDevice::virtual_core_from_logical_core(const CoreCoord& logical_coord,
                                                     const CoreType& core_type) const {
    TT_FATAL(core_type == CoreType::WORKER || core_type == CoreType::TENSIX,
             "The CPU backend has virtual coordinates of worker cores only");
    return worker_core_from_logical_core(logical_coord);
}
std::vector<CoreCoord> MeshDevice::worker_cores_from_logical_cores(
    const std::vector<CoreCoord>& logical_cores) const {
    std::vector<CoreCoord> cores;
    for (const CoreCoord& core : logical_cores) {
        cores.push_back(worker_core_from_logical_core(core));
    }
    return cores;
}

MeshCommandQueue& MeshDevice::mesh_command_queue(std::optional<std::uint8_t> cq_id) const {
    const std::size_t id = cq_id.value_or(0);
    TT_FATAL(id < pimpl_->command_queues.size(),
             "Command queue {} does not exist: the device was opened with {}", id,
             pimpl_->command_queues.size());
    return *pimpl_->command_queues[id];
}

bool MeshDevice::close() { return pimpl_->close(); }

// Kernels are cached on disk by content in any case.
void MeshDevice::enable_program_cache() {}
void MeshDevice::clear_program_cache() {}
void MeshDevice::disable_and_clear_program_cache() {}
std::size_t MeshDevice::num_program_cache_entries() { return 0; }

bool MeshDevice::is_local(const MeshCoordinate& coord) const {
    const std::size_t chip = coord[0] * pimpl_->shape[1] + coord[1];
    return ttcodegen::cpu::local_chips(pimpl_->shape.mesh_size()).contains(chip);
}

std::size_t MeshDevice::num_devices() const { return pimpl_->shape.mesh_size(); }
const MeshShape& MeshDevice::shape() const { return pimpl_->shape; }
std::size_t MeshDevice::num_rows() const { return pimpl_->shape[0]; }
std::size_t MeshDevice::num_cols() const { return pimpl_->shape[1]; }

}  // namespace tt::tt_metal::distributed

namespace ttnn::distributed {

std::shared_ptr<MeshDevice> open_mesh_device(
    const MeshShape& mesh_shape, size_t l1_small_size, size_t trace_region_size,
    size_t num_command_queues, const tt::tt_metal::DispatchCoreConfig& dispatch_core_config,
    const std::optional<MeshCoordinate>& /*offset*/, const std::vector<int>& physical_device_ids,
    size_t worker_l1_size) {
    if (mesh_shape.mesh_size() == 1) {
        const int device_id = physical_device_ids.empty() ? 0 : physical_device_ids.front();
        return MeshDevice::create_unit_mesh(device_id, l1_small_size, trace_region_size,
                                            num_command_queues, dispatch_core_config, {},
                                            worker_l1_size);
    }
    return tt::tt_metal::distributed::MeshDeviceImpl::create_mesh(
        mesh_shape, l1_small_size, trace_region_size, num_command_queues, worker_l1_size);
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
