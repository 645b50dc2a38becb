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

/// A tensor in the DRAM of a device, or in the L1 of its cores, its pages interleaved over the
/// banks or in shards; on a mesh each device has one, at the same address. Copies and views share
/// the memory, which is free when the last of them goes; what is enqueued already still finds it.
struct DeviceTensor {
    std::shared_ptr<tt::tt_metal::distributed::MeshBuffer> buffer;
    /// Logical, without padding; of a divided tensor that of the part which each device has.
    std::vector<std::uint64_t> shape;
    tt::tt_metal::DataType data_type{};
    tt::tt_metal::Layout layout{};
    /// Whether the devices of a mesh have parts of one tensor.
    Division division = undivided;

    /// Where the buffer begins in each bank.
    std::uint32_t address() const { return static_cast<std::uint32_t>(buffer->address()); }
};

/// A tensor with room for its elements, which are not set.
/// @throws std::runtime_error if there is no room.
DeviceTensor create_tensor(std::vector<std::uint64_t> shape, tt::tt_metal::DataType data_type,
                           tt::tt_metal::Layout layout,
                           tt::tt_metal::distributed::MeshDevice& device,
                           tt::tt_metal::BufferType memory = tt::tt_metal::BufferType::DRAM,
                           const Shards& shards = {});

/// A tensor with the elements, converted to its data type.
/// @throws std::runtime_error if they do not fit it.
DeviceTensor upload(const ArrayView& array, tt::tt_metal::DataType data_type,
                    tt::tt_metal::Layout layout, tt::tt_metal::distributed::MeshDevice& device,
                    tt::tt_metal::BufferType memory = tt::tt_metal::BufferType::DRAM,
                    const Shards& shards = {});

/// What a device of the mesh has of a tensor.
Array to_array(const DeviceTensor& tensor, const tt::tt_metal::distributed::MeshCoordinate& device);

/// The same memory as a tensor of another shape, whose elements have the same order.
DeviceTensor view(const DeviceTensor& tensor, std::vector<std::uint64_t> shape);

/// A tensor with the elements of `name`.npy of the data folder.
/// @throws std::runtime_error if the file cannot be read, or holds another shape, or elements that
/// do not fit.
DeviceTensor load_tensor(const std::string& name, const std::vector<std::uint64_t>& shape,
                         tt::tt_metal::DataType data_type, tt::tt_metal::Layout layout,
                         tt::tt_metal::distributed::MeshDevice& device);

}  // namespace support
