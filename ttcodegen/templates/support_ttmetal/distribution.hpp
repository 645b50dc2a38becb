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

/// A tensor of which each device of a mesh has its part: the host sends no more than that to it.
/// Where both axes divide a dimension, the first of them takes the larger parts.
/// @throws std::runtime_error if the elements do not fit the data type.
DeviceTensor distribute(const ArrayView& array, tt::tt_metal::DataType data_type,
                        tt::tt_metal::Layout layout, const Division& division,
                        tt::tt_metal::distributed::MeshDevice& device);

/// Overwrites the parts of a divided tensor.
/// @throws std::runtime_error if the elements do not fit its data type.
void write_parts(const ArrayView& array, const DeviceTensor& tensor);

/// The whole of a divided tensor, put together of the parts.
Array composed(const DeviceTensor& tensor);

/// The shape of a tensor as a whole.
std::vector<std::uint64_t> whole_shape(const DeviceTensor& tensor);

/// Tensors of functions, each with the division that its description has.
template <typename Descriptions>
std::vector<DeviceTensor> divided_as(std::vector<DeviceTensor> tensors,
                                     const Descriptions& descriptions) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        tensors[i].division = descriptions[i].division;
    }
    return tensors;
}

}  // namespace support
