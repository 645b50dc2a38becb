#pragma once

#include "tt-metalium/mesh_device.hpp"

namespace ttnn::distributed {

using MeshShape = tt::tt_metal::distributed::MeshShape;
using MeshCoordinate = tt::tt_metal::distributed::MeshCoordinate;
using MeshDevice = tt::tt_metal::distributed::MeshDevice;

}  // namespace ttnn::distributed

namespace ttnn {

using ttnn::distributed::MeshCoordinate;
using ttnn::distributed::MeshDevice;
using ttnn::distributed::MeshShape;

}  // namespace ttnn
