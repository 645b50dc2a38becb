#include "support/tensors.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <tt-metalium/bfloat16.hpp>
#include <tt-metalium/experimental/fabric/fabric.hpp>
#include <tt-metalium/memory_pin.hpp>
#include <tt-metalium/mesh_device.hpp>
#include <ttnn/device.hpp>
#include <ttnn/distributed/api.hpp>
#include <ttnn/operations/copy/typecast/typecast.hpp>
#include <ttnn/operations/core/core.hpp>
#include <ttnn/operations/core/to_layout/to_layout_op.hpp>
#include <ttnn/tensor/layout/page_config.hpp>
#include <ttnn/tensor/layout/tensor_layout.hpp>
#include <ttnn/tensor/memory_config/memory_config.hpp>
#include <ttnn/tensor/tensor_spec.hpp>
#include <utility>

#include "support/files.hpp"

namespace support {

namespace {

using tt::tt_metal::BufferType;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::PageConfig;
using tt::tt_metal::TensorLayout;
using tt::tt_metal::TensorMemoryLayout;
using tt::tt_metal::TensorSpec;
using tt::tt_metal::distributed::MeshDevice;

template <typename T>
ttnn::Tensor tensor_of(const ArrayView& array, const TensorSpec& spec, MeshDevice* device) {
    const ElementType type = element_type(spec.data_type());
    const std::uint64_t count = element_count(array.shape);
    const bool aligned = reinterpret_cast<std::uintptr_t>(array.data) % alignof(T) == 0;
    // Weights are large: elements are copied only if they need conversion.
    if (count == 0 || (array.type == type && aligned)) {
        const ttsl::Span<const T> elements(static_cast<const T*>(array.data), count);
        return ttnn::Tensor::from_span(elements, spec, device);
    }
    const std::vector<std::byte> bytes = converted(array, type);
    const ttsl::Span<const T> elements(reinterpret_cast<const T*>(bytes.data()), count);
    return ttnn::Tensor::from_span(elements, spec, device);
}

/// A tensor in rows on the memory of a mapped file.
template <typename T>
ttnn::Tensor borrowed(const Array& array, const ttnn::Shape& shape) {
    // The library takes memory that may be written to; the mapping is private to this process.
    auto* const elements = const_cast<std::byte*>(array.mapped.get());
    return ttnn::Tensor::from_borrowed_data(
        ttsl::Span<T>(reinterpret_cast<T*>(elements), element_count(array.shape)), shape,
        tt::tt_metal::MemoryPin(std::const_pointer_cast<std::byte>(array.mapped)));
}

template <typename T>
std::vector<std::byte> bytes_of(const ttnn::Tensor& tensor) {
    const std::vector<T> elements = tensor.to_vector<T>();
    const auto* const bytes = reinterpret_cast<const std::byte*>(elements.data());
    return {bytes, bytes + elements.size() * sizeof(T)};
}

ttnn::Tensor tensor_of(const ArrayView& array, const TensorSpec& spec, MeshDevice* device) {
    switch (spec.data_type()) {
        case DataType::BFLOAT16:
            return tensor_of<bfloat16>(array, spec, device);
        case DataType::FLOAT32:
        case DataType::BFLOAT8_B:
        case DataType::BFLOAT4_B:
            return tensor_of<float>(array, spec, device);
        case DataType::UINT32:
            return tensor_of<std::uint32_t>(array, spec, device);
        case DataType::INT32:
            return tensor_of<std::int32_t>(array, spec, device);
        case DataType::UINT16:
            return tensor_of<std::uint16_t>(array, spec, device);
        case DataType::UINT8:
            return tensor_of<std::uint8_t>(array, spec, device);
        default:
            throw std::runtime_error("the data type has no elements on the host");
    }
}

std::vector<std::byte> bytes_of(const ttnn::Tensor& tensor) {
    switch (element_type(tensor.dtype())) {
        case ElementType::bfloat16:
            return bytes_of<bfloat16>(tensor);
        case ElementType::uint32:
            return bytes_of<std::uint32_t>(tensor);
        case ElementType::int32:
            return bytes_of<std::int32_t>(tensor);
        case ElementType::uint16:
            return bytes_of<std::uint16_t>(tensor);
        case ElementType::uint8:
            return bytes_of<std::uint8_t>(tensor);
        default:
            return bytes_of<float>(tensor);
    }
}

ttnn::Shape shape_of(std::span<const std::uint64_t> sizes) {
    std::vector<std::uint32_t> narrow(sizes.begin(), sizes.end());
    return ttnn::Shape(ttsl::Span<const std::uint32_t>(narrow));
}

std::vector<std::uint64_t> sizes_of(const ttnn::Shape& shape) {
    std::vector<std::uint64_t> sizes;
    for (std::size_t i = 0; i < shape.rank(); ++i) {
        sizes.push_back(shape[static_cast<std::int32_t>(i)]);
    }
    return sizes;
}

void check_shape(std::span<const std::uint64_t> actual, std::span<const std::uint64_t> expected) {
    if (!std::ranges::equal(actual, expected)) {
        throw std::runtime_error("expected the shape " + shape_text(expected) + ", found " +
                                 shape_text(actual));
    }
}

MemoryConfig memory_config_of(const TensorDescription& description) {
    return MemoryConfig(TensorMemoryLayout::INTERLEAVED,
                        description.memory == Memory::l1 ? BufferType::L1 : BufferType::DRAM);
}

std::string layout_text(DataType data_type, Layout layout, Memory memory) {
    const char* const places[] = {"on the host", "in DRAM", "in L1"};
    return std::string(data_type_name(data_type)) +
           (layout == Layout::TILE ? " in tiles " : " in rows ") + places[static_cast<int>(memory)];
}

tt::tt_fabric::FabricConfig fabric_config(Fabric fabric) {
    switch (fabric) {
        case Fabric::ring:
            return tt::tt_fabric::FabricConfig::FABRIC_1D_RING;
        case Fabric::torus:
            return tt::tt_fabric::FabricConfig::FABRIC_2D_TORUS_XY;
        default:
            return tt::tt_fabric::FabricConfig::FABRIC_1D;
    }
}

/// Opens a mesh of several devices and the fabric that its collectives need.
Device open_mesh(int device_id, const std::array<std::uint32_t, 2>& mesh,
                 std::size_t trace_region_bytes, Fabric fabric) {
    if (device_id != 0) {
        throw std::runtime_error("a mesh of several devices begins with device 0");
    }
    tt::tt_fabric::SetFabricConfig(fabric_config(fabric));
    const auto device = ttnn::distributed::open_mesh_device(
        ttnn::MeshShape(mesh[0], mesh[1]), l1_small_bytes, trace_region_bytes,
        /*num_command_queues=*/1, tt::tt_metal::DispatchCoreConfig{});
    return {device.get(), [device](auto*) {
                try {
                    ttnn::distributed::close_mesh_device(device);
                    tt::tt_fabric::SetFabricConfig(tt::tt_fabric::FabricConfig::DISABLED);
                } catch (const std::exception&) {
                    // A destructor cannot report it, and the results have been read already.
                }
            }};
}

/// The shard of the first device of this host; the tensor itself of a single device.
ttnn::Tensor on_first_device(const ttnn::Tensor& tensor) {
    const std::vector<ttnn::Tensor> shards = ttnn::distributed::get_device_tensors(tensor);
    if (tensor.storage_type() == ttnn::StorageType::HOST || shards.size() == 1) {
        return shards.front();
    }
    const MeshDevice& mesh = *tensor.device();
    const auto columns = static_cast<std::uint32_t>(mesh.num_cols());
    for (std::uint32_t i = 0; i < shards.size() && shards.size() == mesh.num_devices(); ++i) {
// Deprecated without a replacement.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
        if (mesh.is_local(ttnn::MeshCoordinate(i / columns, i % columns))) {
            return shards[i];
        }
#pragma GCC diagnostic pop
    }
    return shards.front();
}

/// Typecasts a tensor on the device; in tile layout, which supports all conversions.
ttnn::Tensor with_data_type(const ttnn::Tensor& tensor, DataType data_type) {
    if (tensor.dtype() == data_type) {
        return tensor;
    }
    const ttnn::Tensor tiles =
        tensor.layout() == Layout::TILE ? tensor : ttnn::to_layout(tensor, Layout::TILE);
    return ttnn::typecast(tiles, data_type);
}

}  // namespace

std::vector<std::uint64_t> shape_of(const Tensor& tensor) {
    return sizes_of(tensor.logical_shape());
}

DataType data_type_of(const Tensor& tensor) { return tensor.dtype(); }

Layout layout_of(const Tensor& tensor) { return tensor.layout(); }

Memory memory_of(const ttnn::Tensor& tensor) {
    if (tensor.storage_type() == ttnn::StorageType::HOST) {
        return Memory::host;
    }
    return tensor.memory_config().buffer_type() == BufferType::L1 ? Memory::l1 : Memory::dram;
}

ttnn::Tensor to_tensor(const ArrayView& array, const TensorDescription& description,
                       MeshDevice& device) {
    check_shape(array.shape, description.shape());
    const bool on_host = description.memory == Memory::host;
    const TensorSpec spec(shape_of(array.shape),
                          TensorLayout(description.data_type, PageConfig(description.layout),
                                       memory_config_of(description)));
    return tensor_of(array, spec, on_host ? nullptr : &device);
}

ttnn::Tensor loaded_tensor(const Array& array, const TensorDescription& description,
                           MeshDevice& device) {
    const bool fits = description.memory == Memory::host && array.mapped != nullptr &&
                      description.layout == Layout::ROW_MAJOR &&
                      array.type == element_type(description.data_type);
    if (fits) {
        check_shape(array.shape, description.shape());
        const ttnn::Shape shape = shape_of(array.shape);
        switch (description.data_type) {
            case DataType::BFLOAT16:
                return borrowed<bfloat16>(array, shape);
            case DataType::FLOAT32:
                return borrowed<float>(array, shape);
            case DataType::INT32:
                return borrowed<std::int32_t>(array, shape);
            case DataType::UINT32:
                return borrowed<std::uint32_t>(array, shape);
            default:
                break;
        }
    }
    return to_tensor(array.view(), description, device);
}

void require_layout(const ttnn::Tensor& tensor, const TensorDescription& description) {
    try {
        if (!tensor.is_allocated()) {
            throw std::runtime_error("the tensor was deallocated");
        }
        check_shape(sizes_of(tensor.logical_shape()), description.shape());
        const std::string found = layout_text(tensor.dtype(), tensor.layout(), memory_of(tensor));
        const std::string expected =
            layout_text(description.data_type, description.layout, description.memory);
        if (found != expected || tensor.is_sharded()) {
            throw std::runtime_error("expected " + expected + ", found " + found +
                                     (tensor.is_sharded() ? ", sharded" : "") +
                                     ": convert it with to_layout");
        }
    } catch (const std::exception& error) {
        throw std::runtime_error(std::string("'") + description.name + "': " + error.what());
    }
}

ttnn::Tensor to_layout(const ttnn::Tensor& tensor, const TensorDescription& description,
                       MeshDevice& device) {
    check_shape(sizes_of(tensor.logical_shape()), description.shape());
    ttnn::Tensor result = tensor;
    if (memory_of(result) == Memory::host && description.memory != Memory::host) {
        result = result.to_device(&device, memory_config_of(description));
    }
    if (description.memory == Memory::host && memory_of(result) != Memory::host) {
        // Typecasts where that is fastest: on the device.
        result = with_data_type(result, description.data_type).cpu();
    }
    if (memory_of(result) == Memory::host) {
        result = result.dtype() == description.data_type
                     ? result
                     : ttnn::to_dtype(result, description.data_type);
        return result.layout() == description.layout ? result
                                                     : result.to_layout(description.layout);
    }
    result = with_data_type(result, description.data_type);
    if (result.layout() != description.layout) {
        result = ttnn::to_layout(result, description.layout);
    }
    if (memory_of(result) != description.memory || result.is_sharded()) {
        result = ttnn::to_memory_config(result, memory_config_of(description));
    }
    return result;
}

Array to_array(const ttnn::Tensor& tensor) {
    return {element_type(tensor.dtype()), sizes_of(tensor.logical_shape()),
            bytes_of(on_first_device(tensor))};
}

ttnn::Tensor load_tensor(const std::string& name, const ttnn::Shape& shape, DataType data_type) {
    const std::string directory = data_directory();
    const std::string path = (directory.empty() ? name : directory + "/" + name) + ".npy";
    const Array array = read_npy(path);
    const bool block_float = data_type == DataType::BFLOAT8_B || data_type == DataType::BFLOAT4_B;
    const Layout layout = block_float ? Layout::TILE : Layout::ROW_MAJOR;
    try {
        check_shape(array.shape, sizes_of(shape));
        return tensor_of(
            array.view(),
            TensorSpec(shape, TensorLayout(data_type, PageConfig(layout), MemoryConfig{})),
            nullptr);
    } catch (const std::exception& error) {
        throw std::runtime_error(path + ": " + error.what());
    }
}

Device open_device(int device_id, const std::array<std::uint32_t, 2>& mesh,
                   std::size_t trace_region_bytes, Fabric fabric) {
    if (mesh[0] * mesh[1] > 1) {
        return open_mesh(device_id, mesh, trace_region_bytes, fabric);
    }
    const auto device =
        ttnn::device::open_mesh_device(device_id, l1_small_bytes, trace_region_bytes);
    // Closed when its last owner is destroyed.
    return {device.get(), [device](auto*) {
                try {
                    ttnn::device::close_device(*device);
                } catch (const std::exception&) {
                    // A destructor cannot report it, and the results have been read already.
                }
            }};
}

bool read_flag(const ttnn::Tensor& tensor) {
    const ttnn::Tensor flag = on_first_device(tensor);
    switch (flag.dtype()) {
        case DataType::BFLOAT16:
            return static_cast<float>(flag.to_vector<bfloat16>().at(0)) != 0.0f;
        case DataType::UINT32:
            return flag.to_vector<std::uint32_t>().at(0) != 0;
        case DataType::INT32:
            return flag.to_vector<std::int32_t>().at(0) != 0;
        case DataType::UINT16:
            return flag.to_vector<std::uint16_t>().at(0) != 0;
        case DataType::UINT8:
            return flag.to_vector<std::uint8_t>().at(0) != 0;
        default:
            return flag.to_vector<float>().at(0) != 0.0f;
    }
}

std::uint32_t read_index(const ttnn::Tensor& tensor) {
    if (tensor.dtype() == DataType::UINT32) {
        return on_first_device(tensor).to_vector<std::uint32_t>().at(0);
    }
    if (tensor.dtype() != DataType::INT32) {
        throw std::runtime_error(std::string("an index cannot be ") +
                                 data_type_name(tensor.dtype()));
    }
    const std::int32_t index = on_first_device(tensor).to_vector<std::int32_t>().at(0);
    if (index < 0) {
        throw std::runtime_error("the index " + std::to_string(index) + " is negative");
    }
    return static_cast<std::uint32_t>(index);
}

}  // namespace support
