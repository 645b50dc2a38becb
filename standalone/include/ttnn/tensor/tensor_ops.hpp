#pragma once

#include <optional>

#include "ttcodegen/release.hpp"
#include "ttnn/common/queue_id.hpp"
#include "ttnn/tensor/tensor.hpp"

#if TTCODEGEN_EXACT_8101
namespace ttnn {
#else
namespace tt::tt_metal {
#endif

/// Writes the elements of a host tensor to the memory of a device tensor.
/// @throws std::runtime_error if shapes, data types or layouts differ.
void copy_to_device(const Tensor& host_tensor, Tensor& device_tensor,
                    std::optional<QueueId> cq_id = std::nullopt);

#if TTCODEGEN_EXACT_8101
}  // namespace ttnn
#else
}  // namespace tt::tt_metal
#endif
