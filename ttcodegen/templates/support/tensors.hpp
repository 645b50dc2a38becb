#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <ttnn/tensor/tensor.hpp>
#include <ttnn/tensor/types.hpp>

#include "support/array.hpp"
#include "support/description.hpp"

namespace support {

/// A tensor of the elements, converted to its data type, where the description wants it.
/// @throws std::runtime_error if shape or elements do not fit the description.
ttnn::Tensor to_tensor(const ArrayView& array, const TensorDescription& description,
                       tt::tt_metal::distributed::MeshDevice& device);

/// Where a tensor lies.
Memory memory_of(const ttnn::Tensor& tensor);

/// Checks that a tensor lies as the description says: shape, data type, layout, memory.
/// @throws std::runtime_error that says in what it differs.
void require_layout(const ttnn::Tensor& tensor, const TensorDescription& description);

/// The tensor as the description wants it; itself, sharing its memory, if it lies so already. What
/// is on the device and stays there does not pass through the host.
/// @throws std::runtime_error if it has another shape, or the library refuses the conversion.
ttnn::Tensor to_layout(const ttnn::Tensor& tensor, const TensorDescription& description,
                       tt::tt_metal::distributed::MeshDevice& device);

/// The elements of a tensor on the host or on a device; block floats become float32.
Array to_array(const ttnn::Tensor& tensor);

/// A row-major tensor on the host (tiles for block floats) with the elements of `name`.npy of the
/// data folder.
/// @throws std::runtime_error if the file cannot be read, or holds another shape, or elements that
/// do not fit.
ttnn::Tensor load_tensor(const std::string& name, const ttnn::Shape& shape,
                         tt::tt_metal::DataType data_type);

/// The tensors of `members` of a struct, in order.
template <typename Struct, std::size_t count>
std::vector<ttnn::Tensor> members_of(
    Struct&& tensors, ttnn::Tensor std::remove_cvref_t<Struct>::* const (&members)[count]) {
    std::vector<ttnn::Tensor> result;
    result.reserve(count);
    for (const auto member : members) {
        result.push_back(std::forward<Struct>(tensors).*member);
    }
    return result;
}

/// The first element of a tensor of 32-bit integers. Waits for the device.
/// @throws std::runtime_error if it is negative or of another type.
std::uint32_t read_index(const ttnn::Tensor& tensor);

/// A struct with its `members` taken from `tensors`, in order.
template <typename Struct, std::size_t count>
Struct with_members(ttnn::Tensor Struct::* const (&members)[count],
                    std::span<const ttnn::Tensor> tensors) {
    Struct result;
    for (std::size_t i = 0; i < count; ++i) {
        result.*members[i] = tensors[i];
    }
    return result;
}

}  // namespace support
