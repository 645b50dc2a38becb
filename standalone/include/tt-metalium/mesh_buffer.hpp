#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "tt-metalium/buffer.hpp"
#include "tt-metalium/buffer_types.hpp"
#include "tt-metalium/hal_types.hpp"
#include "tt-metalium/mesh_coord.hpp"
#include "tt-metalium/mesh_device.hpp"
#include "tt-metalium/shape2d.hpp"

namespace tt::tt_metal::distributed {

/// The layout of the buffer on each device.
struct DeviceLocalBufferConfig {
    DeviceAddr page_size = 0;
    BufferType buffer_type = BufferType::DRAM;
    BufferShardingArgs sharding_args{};
    std::optional<bool> bottom_up = std::nullopt;
    std::optional<SubDeviceId> sub_device_id = std::nullopt;
};

/// A replica of the data on each device; `size` is in bytes per device.
struct ReplicatedBufferConfig {
    DeviceAddr size = 0;
};

/// A shard of the data on each device.
struct ShardedBufferConfig {
    DeviceAddr global_size = 0;
    Shape2D global_buffer_shape = {0, 0};
    Shape2D shard_shape = {0, 0};
    ShardOrientation shard_orientation = ShardOrientation::ROW_MAJOR;

    std::uint32_t compute_datum_size_bytes() const;
    std::pair<bool, bool> replicated_dims() const;
    Shape2D physical_shard_shape() const;
};

enum class MeshBufferLayout : std::uint8_t { REPLICATED, SHARDED };

using MeshBufferConfig = std::variant<ReplicatedBufferConfig, ShardedBufferConfig>;

/// A buffer on a mesh of devices, at the same address on each. The CPU backend supports sharded
/// mesh buffers on a single device only, as one shard.
class MeshBuffer {
  public:
    /// @throws std::runtime_error if pages do not divide the size, or memory is exhausted.
    static std::shared_ptr<MeshBuffer> create(const MeshBufferConfig& mesh_buffer_config,
                                              const DeviceLocalBufferConfig& device_local_config,
                                              MeshDevice* mesh_device,
                                              std::optional<DeviceAddr> address = std::nullopt);
    ~MeshBuffer();

    MeshBuffer(const MeshBuffer&) = delete;
    MeshBuffer& operator=(const MeshBuffer&) = delete;

    bool is_allocated() const;
    void deallocate();
    MeshDevice* device() const;
    DeviceAddr size() const;
    DeviceAddr device_local_size() const { return device_local_size_; }
    DeviceAddr address() const { return address_; }
    MeshBufferLayout global_layout() const;
    const MeshBufferConfig& global_config() const { return config_; }
    const ShardedBufferConfig& global_shard_spec() const;
    const DeviceLocalBufferConfig& device_local_config() const { return device_local_config_; }
    Buffer* get_device_buffer(const MeshCoordinate& device_coord) const;
    Buffer* get_reference_buffer() const;
    Buffer* get_backing_buffer() const;
    std::uint32_t page_size() const {
        return static_cast<std::uint32_t>(device_local_config_.page_size);
    }
    std::uint32_t num_pages() const {
        return page_size() == 0 ? 0 : static_cast<std::uint32_t>(device_local_size_ / page_size());
    }

  private:
    MeshBuffer(const MeshBufferConfig& config, const DeviceLocalBufferConfig& device_local_config,
               DeviceAddr device_local_size, MeshDevice* mesh_device,
               std::shared_ptr<Buffer> buffer)
        : config_(config),
          device_local_config_(device_local_config),
          mesh_device_(mesh_device->weak_from_this()),
          address_(buffer->address()),
          device_local_size_(device_local_size),
          buffer_(std::move(buffer)) {}

    MeshBufferConfig config_;
    DeviceLocalBufferConfig device_local_config_;
    std::weak_ptr<MeshDevice> mesh_device_;
    DeviceAddr address_ = 0;
    DeviceAddr device_local_size_ = 0;
    std::shared_ptr<Buffer> buffer_;
};

}  // namespace tt::tt_metal::distributed
