#pragma once

#include <vector>

#include "tt-metalium/experimental/sockets/mesh_socket.hpp"
#include "ttnn/types.hpp"

namespace ttnn::experimental {

/// Sends a tensor to the device at the other end of a socket, without waiting for it. Returns
/// nothing.
std::vector<Tensor> send_async(const Tensor& input_tensor,
                               const tt::tt_metal::distributed::MeshSocket& mesh_socket);

}  // namespace ttnn::experimental
