#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "tt-metalium/mesh_coord.hpp"
#include "tt_stl/small_vector.hpp"

namespace tt::tt_metal::distributed {

/// The distribution of a tensor over the devices of a mesh.
struct MeshMapperConfig {
    /// All devices along a mesh dimension hold the same data.
    struct Replicate {
        bool operator==(const Replicate&) const = default;
    };
    /// A dimension of the tensor is sharded along a mesh dimension.
    struct Shard {
        int dim = 0;
        bool operator==(const Shard&) const = default;
    };
    using Placement = std::variant<Replicate, Shard>;

    /// One placement for each dimension of the mesh.
    ttsl::SmallVector<Placement> placements;
    /// A shape to reinterpret the mesh in, row-major, or a submesh at its origin if it fits.
    std::optional<MeshShape> mesh_shape_override = std::nullopt;
};

/// The composition of a tensor from the shards of the devices of a mesh.
struct MeshComposerConfig {
    /// For each dimension of the mesh, the dimension of the tensor to concatenate along.
    ttsl::SmallVector<int> dims;
    /// As in `MeshMapperConfig`.
    std::optional<MeshShape> mesh_shape_override = std::nullopt;
};

}  // namespace tt::tt_metal::distributed
