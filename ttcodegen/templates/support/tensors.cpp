#include "support/tensors.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <tt-metalium/bfloat16.hpp>
#include <tt-metalium/mesh_device.hpp>
#include <ttnn/tensor/layout/page_config.hpp>
#include <ttnn/tensor/layout/tensor_layout.hpp>
#include <ttnn/tensor/memory_config/memory_config.hpp>
#include <ttnn/tensor/tensor_spec.hpp>
#include <utility>

#include "support/data_directory.hpp"
#include "support/npy.hpp"

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
    std::vector<T> elements(element_count(array.shape));
    if (elements.empty()) {
        return ttnn::Tensor::from_vector(std::move(elements), spec, device);
    }
    // Arrays of weights are large: nothing is copied that need not be converted.
    const std::vector<std::byte> bytes =
        array.type == type ? std::vector<std::byte>{} : converted(array, type);
    std::memcpy(static_cast<void*>(elements.data()), bytes.empty() ? array.data : bytes.data(),
                elements.size() * sizeof(T));
    return ttnn::Tensor::from_vector(std::move(elements), spec, device);
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

void check_shape(std::span<const std::uint64_t> actual, std::span<const std::uint64_t> expected) {
    if (!std::ranges::equal(actual, expected)) {
        throw std::runtime_error("expected the shape " + shape_text(expected) + ", found " +
                                 shape_text(actual));
    }
}

}  // namespace

ElementType element_type(DataType data_type) {
    switch (data_type) {
        case DataType::BFLOAT16:
            return ElementType::bfloat16;
        case DataType::UINT32:
            return ElementType::uint32;
        case DataType::INT32:
            return ElementType::int32;
        case DataType::UINT16:
            return ElementType::uint16;
        case DataType::UINT8:
            return ElementType::uint8;
        default:
            return ElementType::float32;
    }
}

const char* data_type_name(DataType data_type) {
    switch (data_type) {
        case DataType::BFLOAT8_B:
            return "bfloat8_b";
        case DataType::BFLOAT4_B:
            return "bfloat4_b";
        default:
            return element_name(element_type(data_type));
    }
}

ttnn::Tensor to_tensor(const ArrayView& array, const TensorDescription& description,
                       MeshDevice& device) {
    check_shape(array.shape, description.shape());
    const bool on_host = description.memory == Memory::host;
    const MemoryConfig memory_config(
        TensorMemoryLayout::INTERLEAVED,
        description.memory == Memory::l1 ? BufferType::L1 : BufferType::DRAM);
    const TensorSpec spec(
        shape_of(array.shape),
        TensorLayout(description.data_type, PageConfig(description.layout), memory_config));
    return tensor_of(array, spec, on_host ? nullptr : &device);
}

Array to_array(const ttnn::Tensor& tensor) {
    const auto& shape = tensor.logical_shape();
    Array array{element_type(tensor.dtype()), {}, bytes_of(tensor)};
    for (std::size_t i = 0; i < shape.rank(); ++i) {
        array.shape.push_back(shape[static_cast<std::int32_t>(i)]);
    }
    return array;
}

ttnn::Tensor load_tensor(const std::string& name, const ttnn::Shape& shape, DataType data_type) {
    const std::string directory = data_directory();
    const std::string path = (directory.empty() ? name : directory + "/" + name) + ".npy";
    const Array array = read_npy(path);
    const bool block_float = data_type == DataType::BFLOAT8_B || data_type == DataType::BFLOAT4_B;
    const Layout layout = block_float ? Layout::TILE : Layout::ROW_MAJOR;
    std::vector<std::uint64_t> sizes;
    for (std::size_t i = 0; i < shape.rank(); ++i) {
        sizes.push_back(shape[static_cast<std::int32_t>(i)]);
    }
    try {
        check_shape(array.shape, sizes);
        return tensor_of(
            array.view(),
            TensorSpec(shape, TensorLayout(data_type, PageConfig(layout), MemoryConfig{})),
            nullptr);
    } catch (const std::exception& error) {
        throw std::runtime_error(path + ": " + error.what());
    }
}

std::uint32_t read_index(const ttnn::Tensor& tensor) {
    if (tensor.dtype() == DataType::UINT32) {
        return tensor.to_vector<std::uint32_t>().at(0);
    }
    if (tensor.dtype() != DataType::INT32) {
        throw std::runtime_error(std::string("an index cannot be ") +
                                 data_type_name(tensor.dtype()));
    }
    const std::int32_t index = tensor.to_vector<std::int32_t>().at(0);
    if (index < 0) {
        throw std::runtime_error("the index " + std::to_string(index) + " is negative");
    }
    return static_cast<std::uint32_t>(index);
}

}  // namespace support
