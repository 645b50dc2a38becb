#pragma once

#include <optional>

#include "ttnn/distributed/types.hpp"
#include "ttnn/operations/ccl/ccl_host_types.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Sends the tensor of one device to another one of its row or its column. Other devices keep their
/// part of the output tensor, which is written in place; without one theirs is undefined.
Tensor point_to_point(const Tensor& input_tensor, const MeshCoordinate& receiver_coord,
                      const MeshCoordinate& sender_coord,
                      ccl::Topology topology = ccl::Topology::Linear,
                      const std::optional<Tensor>& optional_output_tensor = std::nullopt,
                      const std::optional<Tensor>& optional_intermediate_tensor = std::nullopt);

}  // namespace ttnn
