#pragma once

#include <cstdint>
#include <tt-metalium/experimental/tensor/spec/layout/layout.hpp>
#include <tt-metalium/experimental/tensor/tensor_types.hpp>
#include <tt-metalium/mesh_device.hpp>
#include <vector>

#include "support/array.hpp"
#include "support/device_tensor.hpp"
#include "support/shards.hpp"

namespace support {

/// Distributes a tensor over the devices of a mesh; each device gets its shard only. Where both
/// axes shard one dimension, the first axis is the outer one.
/// @throws std::runtime_error if the elements do not fit the data type.
DeviceTensor distribute(const ArrayView& array, tt::tt_metal::DataType data_type,
                        tt::tt_metal::Layout layout, const Division& division,
                        tt::tt_metal::distributed::MeshDevice& device);

/// Overwrites the shards of a distributed tensor.
/// @throws std::runtime_error if the elements do not fit its data type.
void write_parts(const ArrayView& array, const DeviceTensor& tensor);

/// Concatenates the shards of a distributed tensor.
Array composed(const DeviceTensor& tensor);

/// The shape of a distributed tensor as a whole.
std::vector<std::uint64_t> whole_shape(const DeviceTensor& tensor);

/// Tensors of functions, each with the mesh sharding of its description.
template <typename Descriptions>
std::vector<DeviceTensor> divided_as(std::vector<DeviceTensor> tensors,
                                     const Descriptions& descriptions) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        tensors[i].division = descriptions[i].division;
    }
    return tensors;
}

}  // namespace support
