#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "tt-metalium/mesh_coord.hpp"
#include "tt_stl/small_vector.hpp"

namespace tt::tt_metal::distributed {

/// How a tensor is distributed over the devices of a mesh.
struct MeshMapperConfig {
    /// All devices along a dimension of the mesh have the same.
    struct Replicate {
        bool operator==(const Replicate&) const = default;
    };
    /// A dimension of the tensor is divided among the devices along a dimension of the mesh.
    struct Shard {
        int dim = 0;
        bool operator==(const Shard&) const = default;
    };
    using Placement = std::variant<Replicate, Shard>;

    /// For each dimension of the mesh.
    ttsl::SmallVector<Placement> placements;
    /// Another shape that the mesh is seen in: row by row, or its first devices if it fits.
    std::optional<MeshShape> mesh_shape_override = std::nullopt;
};

/// How the parts of a tensor on the devices of a mesh are put together.
struct MeshComposerConfig {
    /// For each dimension of the mesh the dimension of the tensor that is divided.
    ttsl::SmallVector<int> dims;
    /// As in `MeshMapperConfig`.
    std::optional<MeshShape> mesh_shape_override = std::nullopt;
};

}  // namespace tt::tt_metal::distributed
