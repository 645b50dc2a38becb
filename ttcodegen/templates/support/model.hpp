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

/// An entry function of a module, with tensors passed in the order of its descriptions.
struct Function {
    /// The name in the source model.
    const char* name;
    /// The name of the C++ function, and of the folder with its inputs and outputs.
    const char* cpp_name;
    std::span<const TensorDescription> inputs;
    std::span<const TensorDescription> weights;
    std::span<const TensorDescription> outputs;
    /// Evaluates the part of the function that depends on weights alone, for `run`.
    std::shared_ptr<const void> (*prepare)(std::span<const Tensor> weights,
                                           tt::tt_metal::distributed::MeshDevice& device);
    std::vector<Tensor> (*run)(std::span<const Tensor> inputs, const void* prepared,
                               tt::tt_metal::distributed::MeshDevice& device);
};

/// Calls of one function with the same weights on host inputs.
class Calls {
  public:
    virtual ~Calls() = default;
    /// Writes an input of the next call to the tensor that the function reads.
    virtual void upload(std::size_t input, const ArrayView& values) = 0;
    /// Runs the function. The next call may overwrite the returned tensors.
    virtual std::vector<Tensor> run() = 0;
    /// Frees memory that the device may reallocate while a trace still writes to it.
    virtual void release() = 0;
};

struct Module {
    const char* name;
    std::span<const Function> functions;
    /// The data folder at build time; used if there is none near the binary.
    const char* build_data_directory;
    /// Rows and columns of the mesh that the functions run on.
    std::array<std::uint32_t, 2> mesh = {1, 1};
    /// Creates calls that are replayed as a trace; null where each call is enqueued op by op.
    std::unique_ptr<Calls> (*traced_calls)(const Function& function,
                                           std::shared_ptr<const void> prepared,
                                           tt::tt_metal::distributed::MeshDevice& device) = nullptr;
    /// Size in bytes of each device's trace region; 0 is the library's default.
    std::size_t trace_region_bytes = 0;
    /// The links between the devices of the mesh.
    Fabric fabric = Fabric::linear;
};

/// Seconds of the phases of one run.
struct RunTimes {
    double upload = 0;
    double run = 0;
    double download = 0;
};

/// The time of a steady clock.
double seconds();

/// Functions that an executable runs on host inputs, with their weights.
class Runnable {
  public:
    Runnable() = default;
    Runnable(const Runnable&) = delete;
    Runnable& operator=(const Runnable&) = delete;
    virtual ~Runnable() = default;

    virtual std::span<const Function> functions() const = 0;

    /// Returns whether calls are captured and replayed.
    virtual bool is_replayed() const { return false; }

    /// Returns whether this process needs the values of a weight.
    virtual bool needs_weight(std::size_t /*function*/, std::size_t /*weight*/) const {
        return true;
    }

    /// Returns whether a weight has values: set, or in the data folder.
    virtual bool has_weight(std::size_t function, std::size_t weight) const = 0;

    /// Sets the values of a weight, overriding its file.
    /// @throws std::runtime_error if shape or type do not fit.
    virtual void set_weight(std::size_t function, std::size_t weight, const ArrayView& values) = 0;

    /// Evaluates the part of a function that depends on weights alone; `run` does it on demand.
    /// @throws std::runtime_error if a weight is missing.
    virtual void prepare(std::size_t function) = 0;

    /// Runs a function. Arrays are in the order of its descriptions; outputs have the element type
    /// of the tensors.
    /// @throws std::runtime_error if number, shapes or types of the inputs do not fit, or the
    /// library refuses an operation.
    virtual std::vector<Array> run(std::size_t function, std::span<const ArrayView> inputs,
                                   RunTimes* times) = 0;
};

/// A module on a device, with its weights. Several models may share a device and pass tensors on it
/// to each other.
///
/// One thread at a time may use a model.
class Model : public Runnable {
  public:
    /// Weights are read from `data` (if that is empty, from `data_directory()`) when they are first
    /// needed.
    Model(const Module& module, std::string data, Device device);
    /// Opens a device or mesh of its own.
    Model(const Module& module, std::string data);
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;
    ~Model() override;

    const Module& module() const { return module_; }
    const Function& function(std::size_t index) const { return module_.functions[index]; }
    const Device& device() const { return device_; }

    std::span<const Function> functions() const override { return module_.functions; }
    bool is_replayed() const override { return module_.traced_calls != nullptr; }
    bool has_weight(std::size_t function, std::size_t weight) const override;
    void set_weight(std::size_t function, std::size_t weight, const ArrayView& values) override;
    void prepare(std::size_t function) override;

    /// Traced modules are replayed only while this model is the sole owner of the device: a replay
    /// could overwrite the tensors of other owners.
    std::vector<Array> run(std::size_t function, std::span<const ArrayView> inputs,
                           RunTimes* times = nullptr) override;

    /// Runs a function on tensors in the layouts of its descriptions (see `to_layout` in
    /// support/tensors.hpp); the outputs stay where the function leaves them.
    /// @throws std::runtime_error if number or layouts of the inputs do not fit, or the library
    /// refuses an operation.
    std::vector<Tensor> submit(std::size_t function, std::span<const Tensor> inputs);

  private:
    struct State;

    /// Reads a weight from its file; functions whose weights have one file share the tensor.
    void load_weight(std::size_t function, std::size_t weight);
    std::string weight_path(const TensorDescription& weight) const;
    void require_input_count(std::size_t function, std::size_t count) const;
    /// The traced calls of a function; null if its ops have to be enqueued.
    Calls* traced_calls(std::size_t function);
    /// Releases all traces before persistent memory is allocated.
    void release_traces();

    const Module& module_;
    std::string data_;
    Device device_;
    std::vector<State> states_;
};

}  // namespace support
