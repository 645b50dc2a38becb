#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/files.hpp"
#include "support/tensors.hpp"

namespace support {

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

/// Calls of one function with the same weights, on inputs of the host.
class Calls {
  public:
    virtual ~Calls() = default;
    /// Brings an input of the next call to where the function reads it.
    virtual void upload(std::size_t input, const ArrayView& values) = 0;
    /// Runs the function. The next call may overwrite what it returns.
    virtual std::vector<Tensor> run() = 0;
    /// Frees memory that the device may reallocate while a trace still writes to it.
    virtual void release() = 0;
};

struct Module {
    const char* name;
    std::span<const Function> functions;
    /// Where the build found the data; used if the folder is not found near the binary.
    const char* build_data_directory;
    /// Rows and columns of the mesh of devices that the functions run on.
    std::array<std::uint32_t, 2> mesh = {1, 1};
    /// Makes calls that the device replays; null where each call is enqueued op by op.
    std::unique_ptr<Calls> (*traced_calls)(const Function& function,
                                           std::shared_ptr<const void> prepared,
                                           tt::tt_metal::distributed::MeshDevice& device) = nullptr;
    /// Bytes that each device sets aside for traces; 0 leaves it to the library.
    std::size_t trace_region_bytes = 0;
};

/// Seconds of the parts of one run.
struct RunTimes {
    double upload = 0;
    double run = 0;
    double download = 0;
};

/// A module on a device, with its weights. Several models may share a device; what one of them
/// leaves there another one can take.
///
/// One thread at a time may use a model.
class Model {
  public:
    /// The weights are read from `data` (the folder is looked for if that is empty) when they are
    /// first needed.
    Model(const Module& module, std::string data, Device device);
    /// On a device or a mesh of its own.
    Model(const Module& module, std::string data);
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;
    ~Model();

    const Module& module() const { return module_; }
    const Function& function(std::size_t index) const { return module_.functions[index]; }
    const Device& device() const { return device_; }

    /// Whether the values of a weight are known: set, or in the data folder.
    bool has_weight(std::size_t function, std::size_t weight) const;

    /// Sets the values of a weight, instead of those of its file.
    /// @throws std::runtime_error if shape or type do not fit.
    void set_weight(std::size_t function, std::size_t weight, const ArrayView& values);

    /// Evaluates what depends on weights alone; `run` does it when it is needed.
    /// @throws std::runtime_error if a weight is missing.
    void prepare(std::size_t function);

    /// Runs a function. Arrays are in the order of its descriptions; outputs have the element type
    /// of the tensors. Calls of a traced module are replayed only while this model is the sole
    /// owner of the device: a replay could overwrite the tensors of others.
    /// @throws std::runtime_error if number, shapes or types of the inputs do not fit, or the
    /// library refuses an operation.
    std::vector<Array> run(std::size_t function, std::span<const ArrayView> inputs,
                           RunTimes* times = nullptr);

    /// Runs a function on tensors in the layouts of its descriptions (see `to_layout` in
    /// support/tensors.hpp); the outputs stay where the function leaves them.
    /// @throws std::runtime_error if number or layouts of the inputs do not fit, or the library
    /// refuses an operation.
    std::vector<Tensor> submit(std::size_t function, std::span<const Tensor> inputs);

  private:
    struct State;

    std::string weight_path(const TensorDescription& weight) const;
    void require_input_count(std::size_t function, std::size_t count) const;
    /// The calls of a function that the device replays; null if they have to be enqueued.
    Calls* traced_calls(std::size_t function);
    /// Ends all traces, before memory is taken that stays.
    void release_traces();

    const Module& module_;
    std::string data_;
    Device device_;
    std::vector<State> states_;
};

}  // namespace support
