#pragma once

#include <optional>
#include <vector>

#include "ttnn/tensor/tensor.hpp"
#include "ttnn/tensor/types.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

using OptionalConstTensors = std::vector<std::optional<const Tensor>>;
using OptionalTensors = std::vector<std::optional<Tensor>>;
using Tensors = std::vector<Tensor>;

}  // namespace ttnn
