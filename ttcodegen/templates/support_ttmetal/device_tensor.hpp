#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tt-metalium/buffer_types.hpp>
#include <tt-metalium/experimental/tensor/spec/layout/layout.hpp>
#include <tt-metalium/experimental/tensor/tensor_types.hpp>
#include <tt-metalium/mesh_buffer.hpp>
#include <tt-metalium/mesh_coord.hpp>
#include <tt-metalium/mesh_device.hpp>
#include <vector>

#include "support/array.hpp"
#include "support/shards.hpp"

namespace support {

/// A tensor in DRAM or in the L1 of the cores, interleaved over the banks or sharded; on a mesh
/// each device has one, at the same address. Copies and views share the memory, which is freed with
/// the last of them; commands that are enqueued already still find it.
struct DeviceTensor {
    std::shared_ptr<tt::tt_metal::distributed::MeshBuffer> buffer;
    /// The logical shape; of a sharded tensor, the shape of each device's shard.
    std::vector<std::uint64_t> shape;
    tt::tt_metal::DataType data_type{};
    tt::tt_metal::Layout layout{};
    /// The mesh sharding of the tensor.
    Division division = undivided;

    /// The address of the buffer in each bank.
    std::uint32_t address() const { return static_cast<std::uint32_t>(buffer->address()); }
};

/// Allocates a tensor without initialising its elements.
/// @throws std::runtime_error if there is not enough memory.
DeviceTensor create_tensor(std::vector<std::uint64_t> shape, tt::tt_metal::DataType data_type,
                           tt::tt_metal::Layout layout,
                           tt::tt_metal::distributed::MeshDevice& device,
                           tt::tt_metal::BufferType memory = tt::tt_metal::BufferType::DRAM,
                           const Shards& shards = {});

/// Creates a tensor from elements, converted to its data type.
/// @throws std::runtime_error if elements do not fit it.
DeviceTensor upload(const ArrayView& array, tt::tt_metal::DataType data_type,
                    tt::tt_metal::Layout layout, tt::tt_metal::distributed::MeshDevice& device,
                    tt::tt_metal::BufferType memory = tt::tt_metal::BufferType::DRAM,
                    const Shards& shards = {});

/// Copies the shard of one device of the mesh.
Array to_array(const DeviceTensor& tensor, const tt::tt_metal::distributed::MeshCoordinate& device);

/// A reshaped view of the same memory; the order of the elements stays.
DeviceTensor view(const DeviceTensor& tensor, std::vector<std::uint64_t> shape);

/// Creates a tensor with the elements of `name`.npy in the data folder.
/// @throws std::runtime_error if the file cannot be read, or holds another shape, or elements that
/// do not fit.
DeviceTensor load_tensor(const std::string& name, const std::vector<std::uint64_t>& shape,
                         tt::tt_metal::DataType data_type, tt::tt_metal::Layout layout,
                         tt::tt_metal::distributed::MeshDevice& device);

}  // namespace support
