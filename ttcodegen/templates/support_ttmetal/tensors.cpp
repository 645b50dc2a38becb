#include "support/tensors.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <tt-metalium/buffer_types.hpp>
#include <tt-metalium/experimental/fabric/fabric.hpp>
#include <tt-metalium/mesh_config.hpp>
#include <tt-metalium/mesh_coord.hpp>
#include <tt-metalium/mesh_device.hpp>

#include "support/distribution.hpp"
#include "support/pages.hpp"

namespace support {

namespace {

using tt::tt_metal::BufferType;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::TensorMemoryLayout;
using tt::tt_metal::distributed::MeshCoordinate;
using tt::tt_metal::distributed::MeshDevice;
using tt::tt_metal::distributed::MeshDeviceConfig;
using tt::tt_metal::distributed::MeshShape;

void check_shape(std::span<const std::uint64_t> actual, std::span<const std::uint64_t> expected) {
    if (!std::ranges::equal(actual, expected)) {
        throw std::runtime_error("expected the shape " + shape_text(expected) + ", found " +
                                 shape_text(actual));
    }
}

std::string layout_text(DataType data_type, Layout layout) {
    return std::string(data_type_name(data_type)) +
           (layout == Layout::TILE ? " in tiles" : " in rows");
}

bool lies_so(const Tensor& tensor, const TensorDescription& description) {
    return tensor.data_type == description.data_type && tensor.layout == description.layout &&
           memory_of(tensor) == description.memory && tensor.division == description.division &&
           tensor.buffer->get_reference_buffer()->buffer_distribution_spec().has_value() ==
               (description.shards.layout != TensorMemoryLayout::INTERLEAVED);
}

}  // namespace

Device open_device(int device_id, const std::array<std::uint32_t, 2>& mesh,
                   std::size_t trace_region_bytes, Fabric fabric) {
    const bool has_several = mesh[0] * mesh[1] > 1;
    if (has_several && device_id != 0) {
        throw std::runtime_error("a mesh of several devices begins with device 0");
    }
    if (has_several) {
        // Collectives need the fabric; their kernels send along lines, which a ring has too.
        tt::tt_fabric::SetFabricConfig(fabric == Fabric::ring
                                           ? tt::tt_fabric::FabricConfig::FABRIC_1D_RING
                                           : tt::tt_fabric::FabricConfig::FABRIC_1D);
    }
    const auto device =
        has_several
            ? MeshDevice::create(MeshDeviceConfig(MeshShape(mesh[0], mesh[1])),
                                 DEFAULT_L1_SMALL_SIZE, trace_region_bytes)
            : MeshDevice::create_unit_mesh(device_id, DEFAULT_L1_SMALL_SIZE, trace_region_bytes);
    // Closed when its last owner is destroyed.
    return {device.get(), [device, has_several](auto*) {
                try {
                    device->close();
                    if (has_several) {
                        tt::tt_fabric::SetFabricConfig(tt::tt_fabric::FabricConfig::DISABLED);
                    }
                } catch (const std::exception&) {
                    // A destructor cannot report it, and the results have been read already.
                }
            }};
}

Tensor loaded_tensor(const Array& array, const TensorDescription& description, MeshDevice& device) {
    return to_tensor(array.view(), description, device);
}

Tensor to_tensor(const ArrayView& array, const TensorDescription& description, MeshDevice& device) {
    check_shape(array.shape, description.shape());
    if (description.division != undivided) {
        return distribute(array, description.data_type, description.layout, description.division,
                          device);
    }
    const auto memory = description.memory == Memory::l1 ? BufferType::L1 : BufferType::DRAM;
    return upload(array, description.data_type, description.layout, device, memory,
                  description.shards);
}

std::vector<std::uint64_t> shape_of(const Tensor& tensor) { return whole_shape(tensor); }

DataType data_type_of(const Tensor& tensor) { return tensor.data_type; }

Layout layout_of(const Tensor& tensor) { return tensor.layout; }

Memory memory_of(const Tensor& tensor) {
    const BufferType type = tensor.buffer->device_local_config().buffer_type;
    return type == BufferType::L1 ? Memory::l1 : Memory::dram;
}

void require_layout(const Tensor& tensor, const TensorDescription& description) {
    try {
        if (tensor.buffer == nullptr || !tensor.buffer->is_allocated()) {
            throw std::runtime_error("the tensor was deallocated");
        }
        check_shape(shape_of(tensor), description.shape());
        if (!lies_so(tensor, description)) {
            throw std::runtime_error(
                "expected " + layout_text(description.data_type, description.layout) + ", found " +
                layout_text(tensor.data_type, tensor.layout) + ": convert it with to_layout");
        }
    } catch (const std::exception& error) {
        throw std::runtime_error(std::string("'") + description.name + "': " + error.what());
    }
}

Tensor to_layout(const Tensor& tensor, const TensorDescription& description, MeshDevice& device) {
    check_shape(shape_of(tensor), description.shape());
    if (lies_so(tensor, description)) {
        return tensor;
    }
    return to_tensor(to_array(tensor).view(), description, device);
}

Array to_array(const Tensor& tensor) {
    if (tensor.division != undivided) {
        return composed(tensor);
    }
    // On a mesh, a result without sharding is read from the first device.
    return to_array(tensor, MeshCoordinate(0, 0));
}

}  // namespace support
