#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <tt-metalium/experimental/tensor/spec/layout/layout.hpp>
#include <tt-metalium/experimental/tensor/tensor_types.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/array.hpp"
#include "support/shards.hpp"
#include "support/tensor.hpp"

namespace support {

enum class Distribution : std::int32_t { uniform, normal, integer, boolean };

/// Distribution of random values: uniform in [low, high), normal with mean `low` and standard
/// deviation `high`, integers from `low` to `high` inclusive, or zeros and ones.
struct Drawing {
    Distribution distribution;
    double low;
    double high;
};

/// Tolerance of a comparison with expected values.
struct Tolerance {
    /// The lowest accepted Pearson correlation.
    double correlation;
    /// The largest accepted error, relative to the range of the expected values.
    double error;
};

/// The role of a tensor. The numbers are part of the C API.
enum class Kind : std::int32_t { input = 0, parameter = 1, constant = 2, output = 3 };

enum class Memory { host, dram, l1 };

/// An input, weight or output of a function.
struct TensorDescription {
    /// The name in the source model.
    const char* name;
    /// The name in the C++ structs.
    const char* field;
    /// The name of its file, without ".npy": in the data folder for weights.
    const char* file;
    Kind kind;
    std::uint32_t rank;
    std::array<std::uint64_t, 8> sizes;
    tt::tt_metal::DataType data_type;
    tt::tt_metal::Layout layout;
    Memory memory;
    Drawing drawing;
    /// Tolerance of an output, given the data types of the computation.
    Tolerance tolerance = {1, 0};
    /// Only inputs and outputs of custom device programs are sharded.
    Shards shards = {};
    /// Of device programs on a mesh: the sharding of the tensor among its devices.
    Division division = undivided;

    std::span<const std::uint64_t> shape() const { return {sizes.data(), rank}; }
    /// Parameters and constants are weights: they persist from one run to the next.
    bool is_weight() const { return kind == Kind::parameter || kind == Kind::constant; }
};

using Device = std::shared_ptr<tt::tt_metal::distributed::MeshDevice>;

/// The links that collectives of a mesh use: lines along its axes, rings along them, or a torus of
/// two dimensions. Rings and tori need the cables that close them.
enum class Fabric { linear, ring, torus };

/// A device, or a mesh of several. It is closed when the last model or tensor of the C API that
/// uses it is destroyed.
/// @param trace_region_bytes each device's trace region; 0 is the library's default.
/// @param fabric the links of a mesh of several devices.
/// @throws std::runtime_error if there is no such device.
Device open_device(int device_id = 0, const std::array<std::uint32_t, 2>& mesh = {1, 1},
                   std::size_t trace_region_bytes = 0, Fabric fabric = Fabric::linear);

/// Creates a tensor in the data type, layout and memory of the description.
/// @throws std::runtime_error if shape or elements do not fit the description.
Tensor to_tensor(const ArrayView& array, const TensorDescription& description,
                 tt::tt_metal::distributed::MeshDevice& device);

/// As `to_tensor`; a tensor on the host uses the memory of a mapped file where its elements need no
/// conversion, so that only those are read that a process takes to its devices.
Tensor loaded_tensor(const Array& array, const TensorDescription& description,
                     tt::tt_metal::distributed::MeshDevice& device);

/// The logical shape of a tensor.
std::vector<std::uint64_t> shape_of(const Tensor& tensor);

tt::tt_metal::DataType data_type_of(const Tensor& tensor);

tt::tt_metal::Layout layout_of(const Tensor& tensor);

/// The memory that holds a tensor.
Memory memory_of(const Tensor& tensor);

/// Checks that shape, data type, layout and memory of a tensor are those of the description.
/// @throws std::runtime_error, with the difference.
void require_layout(const Tensor& tensor, const TensorDescription& description);

/// Converts a tensor to the layout of the description; a tensor in that layout is returned
/// unchanged, sharing its memory. Tensors on the device are converted there if the library can.
/// @throws std::runtime_error if it has another shape, or the library refuses the conversion.
Tensor to_layout(const Tensor& tensor, const TensorDescription& description,
                 tt::tt_metal::distributed::MeshDevice& device);

/// Copies the elements of a tensor on the host or a device; block floats become float32.
Array to_array(const Tensor& tensor);

/// The tensors of a struct in the order of `members`, which gives the places of all of them.
template <typename Struct, std::size_t count>
std::vector<Tensor> members_of(Struct tensors, std::array<Tensor*, count> (*members)(Struct&)) {
    std::vector<Tensor> result;
    result.reserve(count);
    for (Tensor* const member : members(tensors)) {
        result.push_back(std::move(*member));
    }
    return result;
}

/// A struct whose `members` are initialised from `tensors`, in order.
template <typename Struct, std::size_t count>
Struct with_members(std::array<Tensor*, count> (*members)(Struct&),
                    std::span<const Tensor> tensors) {
    Struct result;
    std::size_t position = 0;
    for (Tensor* const member : members(result)) {
        *member = tensors[position++];
    }
    return result;
}

}  // namespace support
