#include "support/device_tensor.hpp"

#include <cstddef>
#include <stdexcept>
#include <tt-metalium/buffer.hpp>
#include <tt-metalium/buffer_distribution_spec.hpp>
#include <tt-metalium/constants.hpp>
#include <tt-metalium/core_coord.hpp>
#include <tt-metalium/mesh_command_queue.hpp>
#include <tt-metalium/mesh_device.hpp>
#include <tt-metalium/shape.hpp>
#include <utility>

#include "support/files.hpp"
#include "support/pages.hpp"

namespace support {

using tt::tt_metal::BufferDistributionSpec;
using tt::tt_metal::BufferShardingArgs;
using tt::tt_metal::BufferType;
using tt::tt_metal::CoreCoord;
using tt::tt_metal::CoreRange;
using tt::tt_metal::CoreRangeSet;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::Shape;
using tt::tt_metal::ShardDistributionStrategy;
using tt::tt_metal::TensorMemoryLayout;
using tt::tt_metal::distributed::DeviceLocalBufferConfig;
using tt::tt_metal::distributed::MeshBuffer;
using tt::tt_metal::distributed::MeshCoordinate;
using tt::tt_metal::distributed::MeshDevice;
using tt::tt_metal::distributed::ReplicatedBufferConfig;
using tt::tt_metal::distributed::ShardDataTransfer;

namespace {

/// The sharding of a buffer.
BufferShardingArgs sharding(const Pages& pages, std::uint64_t width, Layout layout,
                            const Shards& shards) {
    const bool is_tiled = layout == Layout::TILE;
    // A page of a row-major tensor is a row of a shard.
    const auto page_height = is_tiled ? std::uint32_t{tt::constants::TILE_HEIGHT} : 1U;
    const auto page_width = is_tiled ? std::uint32_t{tt::constants::TILE_WIDTH} : shards.shape[1];
    const auto columns = static_cast<std::uint32_t>((width + page_width - 1) / page_width);
    const auto [first_column, first_row, last_column, last_row] = shards.cores;
    const CoreRange cores(CoreCoord(first_column, first_row), CoreCoord(last_column, last_row));
    return BufferDistributionSpec(
        Shape({pages.count / columns, columns}),
        Shape({shards.shape[0] / page_height, shards.shape[1] / page_width}), CoreRangeSet(cores),
        shards.orientation,
        shards.layout == TensorMemoryLayout::BLOCK_SHARDED
            ? ShardDistributionStrategy::GRID_2D
            : ShardDistributionStrategy::ROUND_ROBIN_1D);
}

}  // namespace

DeviceTensor create_tensor(std::vector<std::uint64_t> shape, DataType data_type, Layout layout,
                           MeshDevice& device, BufferType memory, const Shards& shards) {
    const Pages pages = pages_of(shape, data_type, layout);
    DeviceLocalBufferConfig config;
    config.page_size = pages.size;
    config.buffer_type = memory;
    if (shards.layout != TensorMemoryLayout::INTERLEAVED) {
        config.sharding_args = sharding(pages, shape.empty() ? 1 : shape.back(), layout, shards);
    }
    const ReplicatedBufferConfig size{std::uint64_t{pages.count} * pages.size};
    return {MeshBuffer::create(size, config, &device), std::move(shape), data_type, layout};
}

DeviceTensor upload(const ArrayView& array, DataType data_type, Layout layout, MeshDevice& device,
                    BufferType memory, const Shards& shards) {
    const std::vector<std::byte> pages = to_pages(array, data_type, layout);
    DeviceTensor tensor = create_tensor({array.shape.begin(), array.shape.end()}, data_type, layout,
                                        device, memory, shards);
    // The source is freed at the end of this function, so the transfer is blocking.
    device.mesh_command_queue().enqueue_write_mesh_buffer(tensor.buffer, pages.data(),
                                                          /*blocking=*/true);
    return tensor;
}

Array to_array(const DeviceTensor& tensor, const MeshCoordinate& device) {
    std::vector<std::byte> pages(tensor.buffer->size());
    MeshDevice* const mesh = tensor.buffer->device();
    mesh->mesh_command_queue().enqueue_read_shards(
        {ShardDataTransfer(device).host_data(pages.data())}, tensor.buffer, /*blocking=*/true);
    return from_pages(pages, tensor.shape, tensor.data_type, tensor.layout);
}

DeviceTensor view(const DeviceTensor& tensor, std::vector<std::uint64_t> shape) {
    return {tensor.buffer, std::move(shape), tensor.data_type, tensor.layout};
}

DeviceTensor load_tensor(const std::string& name, const std::vector<std::uint64_t>& shape,
                         DataType data_type, Layout layout, MeshDevice& device) {
    const std::string directory = data_directory();
    const std::string path = (directory.empty() ? name : directory + "/" + name) + ".npy";
    const Array array = read_npy(path);
    if (array.shape != shape) {
        throw std::runtime_error(path + ": expected the shape " + shape_text(shape) + ", found " +
                                 shape_text(array.shape));
    }
    try {
        return upload(array.view(), data_type, layout, device);
    } catch (const std::exception& error) {
        throw std::runtime_error(path + ": " + error.what());
    }
}

}  // namespace support
