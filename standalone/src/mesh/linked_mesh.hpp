#pragma once

// The devices of a collective, and the links between them.

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

/// Creates the tensor of each device of a mesh, which may depend on the other devices' tensors.
Tensor on_all(const Mesh& mesh, const std::function<Tensor(std::size_t)>& make);

/// The mesh of a device tensor; none if it is on a single device.
std::optional<Mesh> mesh_of(const Tensor& tensor, const char* name);

/// The mesh whose links a collective uses.
/// @throws std::runtime_error as ttnn does, for unsupported arguments.
Mesh linked_mesh_of(const Tensor& tensor, const char* name,
                    std::optional<std::uint32_t> cluster_axis,
                    std::optional<std::uint32_t> num_links);

/// The axes of a collective, starting with `first` if it covers all of them.
std::vector<std::size_t> axes(const Mesh& mesh, std::optional<std::uint32_t> cluster_axis,
                              std::size_t first);

/// The parts of a tensor, with the elements of all devices that are on a line with one of this
/// process. Every process has to call it.
std::vector<Tensor> parts_along(const Mesh& mesh, const Tensor& tensor, std::size_t axis);

/// Copies a tensor to another device of the mesh.
Tensor sent(const Tensor& part, MeshDevice* device);

/// The row-major index of a device at a position of the mesh.
/// @throws std::runtime_error if the mesh has no such position; `name` is used in the message.
std::size_t chip_at(const Mesh& mesh, const ttnn::MeshCoordinate& coord, const char* name);

}  // namespace ttcodegen::cpu
