#pragma once

#include <optional>

#include "ttnn/common/queue_id.hpp"
#include "ttnn/tensor/tensor.hpp"

namespace tt::tt_metal {

/// Writes the elements of a host tensor to the memory of a device tensor.
/// @throws std::runtime_error if shapes, data types or layouts differ.
void copy_to_device(const Tensor& host_tensor, Tensor& device_tensor,
                    std::optional<QueueId> cq_id = std::nullopt);

}  // namespace tt::tt_metal
