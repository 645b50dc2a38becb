#pragma once

#include <optional>
#include <vector>

#include "tt-metalium/mesh_coord.hpp"
#include "tt_stl/small_vector.hpp"

namespace tt::tt_metal::distributed {

/// How a tensor is distributed over the devices of a mesh.
struct MeshMapperConfig {
    struct Replicate {
        bool operator==(const Replicate&) const = default;
    };
    struct Shard {
        int dim = 0;
        bool operator==(const Shard&) const = default;
    };
};

}  // namespace tt::tt_metal::distributed
