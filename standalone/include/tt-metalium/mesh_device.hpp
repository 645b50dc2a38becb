#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hostdevcommon/common_values.hpp"
#include "tt-metalium/device.hpp"
#include "tt-metalium/dispatch_core_common.hpp"
#include "tt-metalium/experimental/fabric/fabric_types.hpp"
#include "tt-metalium/mesh_config.hpp"
#include "tt-metalium/mesh_coord.hpp"
#include "tt-metalium/mesh_trace_id.hpp"
#include "tt_stl/span.hpp"

namespace tt::tt_metal::distributed {

class MeshCommandQueue;
class MeshDeviceImpl;

/// A mesh of devices.
class MeshDevice : public IDevice, public std::enable_shared_from_this<MeshDevice> {
  private:
    MeshDevice() = default;
    std::unique_ptr<MeshDeviceImpl> pimpl_;

  public:
    ~MeshDevice() override;
    MeshDevice(const MeshDevice&) = delete;
    MeshDevice& operator=(const MeshDevice&) = delete;
    MeshDevice(MeshDevice&&) = delete;
    MeshDevice& operator=(MeshDevice&&) = delete;

    tt::ARCH arch() const override;
    int id() const override;
    bool is_initialized() const override;
    std::uint32_t l1_size_per_core() const override;
    CoreCoord grid_size() const override;
    CoreCoord logical_grid_size() const override;
    CoreCoord dram_grid_size() const override;
    CoreCoord compute_with_storage_grid_size() const override;
    std::uint8_t num_hw_cqs() const override;
    int num_dram_channels() const override;
    std::uint32_t dram_size_per_channel() const override;
    std::vector<CoreCoord> worker_cores_from_logical_cores(
        const std::vector<CoreCoord>& logical_cores) const override;
    CoreCoord virtual_core_from_logical_core(const CoreCoord& logical_coord,
                                             const CoreType& core_type) const override;
    CoreCoord worker_core_from_logical_core(const CoreCoord& logical_core) const override;
    bool close() override;
    void enable_program_cache() override;
    void clear_program_cache() override;
    void disable_and_clear_program_cache() override;
    std::size_t num_program_cache_entries() override;

    std::size_t num_devices() const;
    const MeshShape& shape() const;
    /// Returns whether this process has the device at that position.
    bool is_local(const MeshCoordinate& coord) const;
    std::size_t num_rows() const;
    std::size_t num_cols() const;
    tt_fabric::FabricNodeId get_fabric_node_id(const MeshCoordinate& coord) const;

    /// A part of the devices, which shares them with the mesh; the first ones without an offset.
    /// @throws std::runtime_error if it is not within the mesh.
    std::shared_ptr<MeshDevice> create_submesh(
        const MeshShape& submesh_shape, const std::optional<MeshCoordinate>& offset = std::nullopt);

    /// @throws std::runtime_error if the device was created with fewer command queues.
    MeshCommandQueue& mesh_command_queue(std::optional<std::uint8_t> cq_id = std::nullopt) const;

    /// Begins a capture: until its end, workloads are recorded instead of run.
    /// @throws std::runtime_error if the command queue is already capturing.
    MeshTraceId begin_mesh_trace(std::uint8_t cq_id);
    /// The same for a trace with a given id.
    void begin_mesh_trace(std::uint8_t cq_id, const MeshTraceId& trace_id);
    /// @throws std::runtime_error if the command queue does not capture this trace, or it exceeds
    /// the trace region that the device was opened with.
    void end_mesh_trace(std::uint8_t cq_id, const MeshTraceId& trace_id);
    /// Replays the workloads of a trace with their captured arguments.
    /// @throws std::runtime_error if there is no such trace.
    void replay_mesh_trace(std::uint8_t cq_id, const MeshTraceId& trace_id, bool blocking);
    void release_mesh_trace(const MeshTraceId& trace_id);
    /// The size in bytes of the device's traces.
    std::uint32_t get_trace_buffers_size() const;

    /// A mesh of the configured shape; of one device if the configuration has none.
    /// @throws std::runtime_error if there are not as many devices.
    static std::shared_ptr<MeshDevice> create(
        const MeshDeviceConfig& config, std::size_t l1_small_size = DEFAULT_L1_SMALL_SIZE,
        std::size_t trace_region_size = DEFAULT_TRACE_REGION_SIZE,
        std::size_t num_command_queues = 1,
        const DispatchCoreConfig& dispatch_core_config = DispatchCoreConfig{},
        ttsl::Span<const std::uint32_t> l1_bank_remap = {},
        std::size_t worker_l1_size = DEFAULT_WORKER_L1_SIZE);
    /// A 1x1 mesh.
    /// @throws std::runtime_error if `device_id` is not 0.
    static std::shared_ptr<MeshDevice> create_unit_mesh(
        int device_id, std::size_t l1_small_size = DEFAULT_L1_SMALL_SIZE,
        std::size_t trace_region_size = DEFAULT_TRACE_REGION_SIZE,
        std::size_t num_command_queues = 1,
        const DispatchCoreConfig& dispatch_core_config = DispatchCoreConfig{},
        ttsl::Span<const std::uint32_t> l1_bank_remap = {},
        std::size_t worker_l1_size = DEFAULT_WORKER_L1_SIZE);

    const MeshDeviceImpl& impl() const { return *pimpl_; }
    MeshDeviceImpl& impl() { return *pimpl_; }
};

}  // namespace tt::tt_metal::distributed
