#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/array.hpp"
#include "support/description.hpp"

namespace support {

/// Seconds of the parts of one run.
struct RunTimes {
    double upload = 0;
    double run = 0;
    double download = 0;
};

/// A module opened on a device, with its weights.
///
/// One thread at a time may use a model.
class Model {
  public:
    /// Opens device `device_id`. The weights are read from `data` (the folder is looked for if that
    /// is empty) when they are first needed.
    /// @throws std::runtime_error if there is no such device.
    Model(const Module& module, std::string data, int device_id = 0);
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;
    ~Model();

    const Module& module() const { return module_; }
    const Function& function(std::size_t index) const { return module_.functions[index]; }

    /// Whether the values of a weight are known: set, drawn, or in the data folder.
    bool has_weight(std::size_t function, std::size_t weight) const;

    /// Sets the values of a weight, instead of those of its file.
    /// @throws std::runtime_error if shape or type do not fit.
    void set_weight(std::size_t function, std::size_t weight, const ArrayView& values);

    /// Draws the weights of a function that are known from nowhere else.
    void draw_missing_weights(std::size_t function, std::uint64_t seed);

    /// Evaluates what depends on weights alone; `run` does it when it is needed.
    /// @throws std::runtime_error if a weight is missing.
    void prepare(std::size_t function);

    /// Runs a function. Arrays are in the order of its descriptions; outputs have the element type
    /// of the tensors.
    /// @throws std::runtime_error if number, shapes or types of the inputs do not fit, or the
    /// library refuses an operation.
    std::vector<Array> run(std::size_t function, std::span<const ArrayView> inputs,
                           RunTimes* times = nullptr);

  private:
    struct State;

    std::string weight_path(const TensorDescription& weight) const;

    const Module& module_;
    std::string data_;
    std::shared_ptr<tt::tt_metal::distributed::MeshDevice> device_;
    std::vector<State> states_;
};

}  // namespace support
