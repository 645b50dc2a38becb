#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/array.hpp"
#include "support/comparison.hpp"
#include "support/drawing.hpp"
#include "support/tensor_declaration.hpp"

// Declared, not included: who only describes or runs a module does not need the library's headers.
namespace tt::tt_metal {

enum class DataType;
enum class Layout;

namespace distributed {
class MeshDevice;
}  // namespace distributed

}  // namespace tt::tt_metal

namespace support {

/// What a tensor is to its function. The numbers are part of the C API.
enum class Kind : std::int32_t { input = 0, parameter = 1, constant = 2, output = 3 };

enum class Memory { host, dram, l1 };

/// A tensor at the door of a function.
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
    /// How closely a card can meet an output.
    Tolerance tolerance = {1, 0};

    std::span<const std::uint64_t> shape() const { return {sizes.data(), rank}; }
    /// Parameters and constants are weights: they stay from one run to the next.
    bool is_weight() const { return kind == Kind::parameter || kind == Kind::constant; }
};

/// An entry function of a module, and how to call it with tensors in the order of its descriptions.
struct Function {
    /// The name in the source model.
    const char* name;
    /// The name of the C++ function, and of the folder with its inputs and outputs.
    const char* cpp_name;
    std::span<const TensorDescription> inputs;
    std::span<const TensorDescription> weights;
    std::span<const TensorDescription> outputs;
    /// Evaluates what depends on weights alone; the result is for `run`.
    std::shared_ptr<const void> (*prepare)(std::span<const Tensor> weights,
                                           tt::tt_metal::distributed::MeshDevice& device);
    std::vector<Tensor> (*run)(std::span<const Tensor> inputs, const void* prepared,
                               tt::tt_metal::distributed::MeshDevice& device);
};

struct Module {
    const char* name;
    std::span<const Function> functions;
    /// Where the build found the data; used if the folder lies nowhere near the binary.
    const char* build_data_directory;
};

/// The type of the elements that a tensor of that data type gives and takes on the host.
ElementType element_type(tt::tt_metal::DataType data_type);

/// The name of the data type, "bfloat16" or "bfloat8_b" for instance.
const char* data_type_name(tt::tt_metal::DataType data_type);

}  // namespace support
