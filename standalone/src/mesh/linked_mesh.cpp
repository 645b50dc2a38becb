#include "mesh/linked_mesh.hpp"

#include "core/chips.hpp"
#include "core/convert.hpp"
#include "core/device.hpp"

namespace ttcodegen::cpu {

Tensor on_all(const Mesh& mesh, const std::function<Tensor(std::size_t)>& make) {
    std::vector<Tensor> results(mesh.device->num_devices());
    for_each_chip(results.size(), ChipOrder::Any,
                  [&](std::size_t chip) { results[chip] = make(chip); });
    return joined(results, mesh.device);
}

std::optional<Mesh> mesh_of(const Tensor& tensor, const char* name) {
    const std::vector<Tensor>& parts = parts_of(tensor);
    require_on_device(parts.empty() ? tensor : parts[local_chips(parts.size()).begin], name);
    if (parts.empty()) {
        return std::nullopt;
    }
    MeshDevice* device = device_of(tensor);
    return Mesh{device, *device->impl().fabric};
}

Mesh linked_mesh_of(const Tensor& tensor, const char* name,
                    std::optional<std::uint32_t> cluster_axis,
                    std::optional<std::uint32_t> num_links) {
    const std::optional<Mesh> mesh = mesh_of(tensor, name);
    TT_FATAL(num_links != 0, "num_links should be more than 0 but has 0");
    TT_FATAL(mesh.has_value(), "{} op will only work for num_devices > 1, but has 1", name);
    TT_FATAL(!cluster_axis || *cluster_axis < 2, "Cluster axis {} is not one of the mesh: 0 or 1",
             cluster_axis.value_or(0));
    TT_FATAL(!cluster_axis || mesh->fabric.size(*cluster_axis) > 1,
             "{} op will only work for num_devices > 1, but has 1 along axis {}", name,
             cluster_axis.value_or(0));
    TT_FATAL(mesh->fabric.is_enabled(),
             "{} needs the fabric: call tt::tt_fabric::SetFabricConfig before the mesh is opened",
             name);
    return *mesh;
}

std::vector<std::size_t> axes(const Mesh& mesh, std::optional<std::uint32_t> cluster_axis,
                              std::size_t first) {
    if (cluster_axis) {
        return {*cluster_axis};
    }
    std::vector<std::size_t> found;
    for (const std::size_t axis : {first, 1 - first}) {
        if (mesh.fabric.size(axis) > 1) {
            found.push_back(axis);
        }
    }
    return found;
}

std::vector<Tensor> parts_along(const Mesh& mesh, const Tensor& tensor, std::size_t axis) {
    const LocalChips local = local_chips(parts_of(tensor).size());
    for (const auto& line : mesh.fabric.lines(axis)) {
        if (local.rank_of(line.front()) != local.rank_of(line.back())) {
            return gathered_parts(tensor);
        }
    }
    return parts_of(tensor);
}

Tensor sent(const Tensor& part, MeshDevice* device) {
    return device_of(part) == device
               ? part
               : convert(part, part.dtype(), part.layout(), part.memory_config(), device);
}

std::size_t chip_at(const Mesh& mesh, const ttnn::MeshCoordinate& coord, const char* name) {
    TT_FATAL(coord.dims() == 2 && coord[0] < mesh.fabric.size(0) && coord[1] < mesh.fabric.size(1),
             "Mesh device must contain {} coordinate device", name);
    return coord[0] * mesh.fabric.size(1) + coord[1];
}

}  // namespace ttcodegen::cpu
