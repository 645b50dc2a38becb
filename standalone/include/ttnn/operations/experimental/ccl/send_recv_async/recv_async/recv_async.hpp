#pragma once

#include <vector>

#include "tt-metalium/experimental/sockets/mesh_socket.hpp"
#include "ttnn/types.hpp"

namespace ttnn::experimental {

/// Fills a tensor with the next one that arrives, and returns it. The other end has to send one of
/// the same specification.
std::vector<Tensor> recv_async(const Tensor& output_tensor,
                               const tt::tt_metal::distributed::MeshSocket& mesh_socket);

}  // namespace ttnn::experimental
