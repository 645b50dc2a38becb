#include "tt-metalium/mesh_buffer.hpp"

#include "core/describe.hpp"

namespace tt::tt_metal::distributed {

std::uint32_t ShardedBufferConfig::compute_datum_size_bytes() const {
    const std::size_t elements = global_buffer_shape.height() * global_buffer_shape.width();
    return elements == 0 ? 0 : static_cast<std::uint32_t>(global_size / elements);
}

std::pair<bool, bool> ShardedBufferConfig::replicated_dims() const {
    return {shard_shape.height() == 0, shard_shape.width() == 0};
}

Shape2D ShardedBufferConfig::physical_shard_shape() const {
    const auto [height_replicated, width_replicated] = replicated_dims();
    return {height_replicated ? global_buffer_shape.height() : shard_shape.height(),
            width_replicated ? global_buffer_shape.width() : shard_shape.width()};
}

MeshBuffer::~MeshBuffer() = default;

std::shared_ptr<MeshBuffer> MeshBuffer::create(const MeshBufferConfig& mesh_buffer_config,
                                               const DeviceLocalBufferConfig& device_local_config,
                                               MeshDevice* mesh_device,
                                               std::optional<DeviceAddr> address) {
    TT_FATAL(mesh_device != nullptr, "A mesh buffer needs a mesh device");
    DeviceAddr size = 0;
    if (const auto* replicated = std::get_if<ReplicatedBufferConfig>(&mesh_buffer_config)) {
        size = replicated->size;
    } else {
        const auto& sharded = std::get<ShardedBufferConfig>(mesh_buffer_config);
        const Shape2D shard = sharded.physical_shard_shape();
        TT_FATAL(mesh_device->num_devices() == 1,
                 "The CPU backend has replicated buffers on a mesh of several devices: write their "
                 "shards");
        TT_FATAL(shard == sharded.global_buffer_shape,
                 "A mesh of one device has one shard, of the shape of the whole buffer");
        size = sharded.global_size;
    }
    const auto& local = device_local_config;
    auto buffer =
        address ? Buffer::create(mesh_device, *address, size, local.page_size, local.buffer_type,
                                 local.sharding_args, local.bottom_up, local.sub_device_id)
                : Buffer::create(mesh_device, size, local.page_size, local.buffer_type,
                                 local.sharding_args, local.bottom_up, local.sub_device_id);
    return std::shared_ptr<MeshBuffer>(
        new MeshBuffer(mesh_buffer_config, local, size, mesh_device, std::move(buffer)));
}

bool MeshBuffer::is_allocated() const { return buffer_ != nullptr && buffer_->is_allocated(); }

void MeshBuffer::deallocate() { buffer_.reset(); }

MeshDevice* MeshBuffer::device() const {
    const auto device = mesh_device_.lock();
    TT_FATAL(device != nullptr, "The mesh device of the buffer is gone");
    return device.get();
}

DeviceAddr MeshBuffer::size() const {
    const auto* sharded = std::get_if<ShardedBufferConfig>(&config_);
    return sharded == nullptr ? device_local_size_ : sharded->global_size;
}

MeshBufferLayout MeshBuffer::global_layout() const {
    return std::holds_alternative<ReplicatedBufferConfig>(config_) ? MeshBufferLayout::REPLICATED
                                                                   : MeshBufferLayout::SHARDED;
}

const ShardedBufferConfig& MeshBuffer::global_shard_spec() const {
    TT_FATAL(global_layout() == MeshBufferLayout::SHARDED, "The mesh buffer is not sharded");
    return std::get<ShardedBufferConfig>(config_);
}

Buffer* MeshBuffer::get_device_buffer(const MeshCoordinate& device_coord) const {
    TT_FATAL(MeshCoordinateRange(device()->shape()).contains(device_coord),
             "The mesh has no device at this coordinate");
    return get_reference_buffer();
}

Buffer* MeshBuffer::get_reference_buffer() const {
    TT_FATAL(buffer_ != nullptr, "The mesh buffer is deallocated");
    return buffer_.get();
}

Buffer* MeshBuffer::get_backing_buffer() const { return buffer_.get(); }

}  // namespace tt::tt_metal::distributed
