#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "support/model.hpp"

namespace support {

/// A tensor that functions of a module share, by the names that it has among their inputs and
/// outputs.
struct StateTensor {
    const char* input;
    /// Its name among the outputs of the functions that change it.
    const char* output;
};

/// Tensors that stay on the device from one call to the next: each function takes those it reads,
/// and leaves there those it changes. They are zero before the first call.
class ModuleState {
  public:
    /// Elements on the host, or a tensor that a function returned.
    using Input = std::variant<ArrayView, Tensor>;

    ModuleState(Model& model, std::span<const StateTensor> tensors);

    /// Runs a function on the state and its other inputs, in their order.
    /// @return the outputs that are not part of the state, on the device.
    /// @throws std::runtime_error if the inputs do not fit, or the library refuses an operation.
    std::vector<Tensor> run(std::size_t function, std::initializer_list<Input> inputs);

  private:
    Tensor& tensor(std::size_t place, const TensorDescription& description);

    Model& model_;
    std::span<const StateTensor> tensors_;
    /// Empty before the first call that takes the tensor.
    std::vector<std::optional<Tensor>> values_;
};

}  // namespace support
