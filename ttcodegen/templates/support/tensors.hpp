#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tt-metalium/experimental/tensor/spec/layout/layout.hpp>
#include <tt-metalium/experimental/tensor/tensor_types.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/array.hpp"
#include "support/description.hpp"
#include "support/tensor.hpp"

namespace support {

/// A tensor of the elements, converted to its data type, where the description wants it.
/// @throws std::runtime_error if shape or elements do not fit the description.
Tensor to_tensor(const ArrayView& array, const TensorDescription& description,
                 tt::tt_metal::distributed::MeshDevice& device);

/// The logical shape of a tensor.
std::vector<std::uint64_t> shape_of(const Tensor& tensor);

tt::tt_metal::DataType data_type_of(const Tensor& tensor);

tt::tt_metal::Layout layout_of(const Tensor& tensor);

/// Where a tensor lies.
Memory memory_of(const Tensor& tensor);

/// Checks that a tensor lies as the description says: shape, data type, layout, memory.
/// @throws std::runtime_error that says in what it differs.
void require_layout(const Tensor& tensor, const TensorDescription& description);

/// The tensor as the description wants it; itself, sharing its memory, if it lies so already. What
/// is on the device and stays there does not pass through the host, if the library can convert it.
/// @throws std::runtime_error if it has another shape, or the library refuses the conversion.
Tensor to_layout(const Tensor& tensor, const TensorDescription& description,
                 tt::tt_metal::distributed::MeshDevice& device);

/// The elements of a tensor on the host or on a device; block floats become float32.
Array to_array(const Tensor& tensor);

/// The tensors of `members` of a struct, in order.
template <typename Struct, std::size_t count>
std::vector<Tensor> members_of(Struct&& tensors,
                               Tensor std::remove_cvref_t<Struct>::* const (&members)[count]) {
    std::vector<Tensor> result;
    result.reserve(count);
    for (const auto member : members) {
        result.push_back(std::forward<Struct>(tensors).*member);
    }
    return result;
}

/// A struct with its `members` taken from `tensors`, in order.
template <typename Struct, std::size_t count>
Struct with_members(Tensor Struct::* const (&members)[count], std::span<const Tensor> tensors) {
    Struct result;
    for (std::size_t i = 0; i < count; ++i) {
        result.*members[i] = tensors[i];
    }
    return result;
}

}  // namespace support
