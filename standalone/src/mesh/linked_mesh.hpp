#pragma once

// The devices that an operation joins, and the links between them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "mesh/fabric.hpp"
#include "ttnn/distributed/types.hpp"
#include "ttnn/types.hpp"

namespace ttcodegen::cpu {

/// The mesh of a collective.
struct Mesh {
    MeshDevice* device;
    Fabric& fabric;
};

/// What each device of a mesh makes of what there is on the others.
Tensor on_all(const Mesh& mesh, const std::function<Tensor(std::size_t)>& make);

/// The mesh of a tensor on devices; none if it is on a single one.
std::optional<Mesh> mesh_of(const Tensor& tensor, const char* name);

/// The mesh whose links a collective uses.
/// @throws std::runtime_error as the library does, for what it does not take.
Mesh linked_mesh_of(const Tensor& tensor, const char* name,
                    std::optional<std::uint32_t> cluster_axis,
                    std::optional<std::uint32_t> num_links);

/// The axes that a collective goes along, beginning with `first` if it is to go along all.
std::vector<std::size_t> axes(const Mesh& mesh, std::optional<std::uint32_t> cluster_axis,
                              std::size_t first);

/// What a tensor becomes on another device of the mesh.
Tensor sent(const Tensor& part, MeshDevice* device);

/// The number of a device at a position of the mesh.
/// @throws std::runtime_error if the mesh has none there; `name` says which one it is.
std::size_t chip_at(const Mesh& mesh, const ttnn::MeshCoordinate& coord, const char* name);

}  // namespace ttcodegen::cpu
