// Operations that join the devices of a mesh.

#include "core/chips.hpp"
#include "core/convert.hpp"
#include "core/device.hpp"
#include "core/memory_use.hpp"
#include "data_movement/slice.hpp"
#include "mesh/fabric.hpp"
#include "ttnn/operations/ccl/all_gather/all_gather.hpp"
#include "ttnn/operations/ccl/all_reduce/all_reduce.hpp"
#include "ttnn/operations/ccl/mesh_partition/mesh_partition.hpp"
#include "ttnn/operations/ccl/reduce_scatter/reduce_scatter.hpp"
#include "ttnn/operations/data_movement/concat/concat.hpp"

namespace ttcodegen::cpu {

namespace {

/// The mesh of a collective.
struct Mesh {
    MeshDevice* device;
    Fabric& fabric;
};

/// The mesh of a tensor on devices; none if it is on a single one.
std::optional<Mesh> mesh_of(const Tensor& tensor, const char* name) {
    const std::vector<Tensor>& parts = parts_of(tensor);
    require_on_device(parts.empty() ? tensor : parts.front(), name);
    if (parts.empty()) {
        return std::nullopt;
    }
    MeshDevice* device = device_of(tensor);
    return Mesh{device, *device->impl().fabric};
}

/// The mesh whose links a collective uses.
/// @throws std::runtime_error as the library does, for what it does not take.
Mesh linked_mesh_of(const Tensor& tensor, const char* name,
                    std::optional<std::uint32_t> cluster_axis) {
    const std::optional<Mesh> mesh = mesh_of(tensor, name);
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

void require_rows(const Tensor& tensor, const char* name) {
    TT_FATAL(tensor.logical_shape().rank() >= 2, "{} requires tensor of rank 2 or greater", name);
}

/// The axes that a collective goes along, beginning with `first` if it is to go along all.
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

/// What a tensor becomes on another device of the mesh.
Tensor sent(const Tensor& part, MeshDevice* device) {
    return device_of(part) == device
               ? part
               : convert(part, part.dtype(), part.layout(), part.memory_config(), device);
}

Tensor gathered(const Mesh& mesh, const Tensor& tensor, std::size_t dim, std::size_t axis,
                const std::optional<MemoryConfig>& memory_config) {
    const std::vector<Tensor>& parts = parts_of(tensor);
    std::vector<Tensor> results(parts.size());
    for (const auto& line : mesh.fabric.lines(axis)) {
        for (const std::size_t chip : line) {
            std::vector<Tensor> all;
            for (const std::size_t other : line) {
                all.push_back(sent(parts[other], device_of(parts[chip])));
            }
            results[chip] = ttnn::concat(all, static_cast<int>(dim),
                                         memory_config.value_or(parts[chip].memory_config()));
        }
    }
    mesh.fabric.count_gather(axis, bytes_on_device(tensor.tensor_spec()));
    return joined(results, mesh.device);
}

/// The sum of tensors of one shape, added up in their order and rounded once; on the device of the
/// first.
Tensor sum(const std::vector<Tensor>& tensors, const MemoryConfig& memory_config) {
    const Tensor& first = tensors.front();
    const Tensor result =
        allocate_like(first, first.logical_shape(), first.dtype(), first.layout(), memory_config);
    const std::size_t count = first.logical_volume();
    if (is_integer(first.dtype())) {
        const auto total = load_integers(first);
        for (std::size_t i = 1; i < tensors.size(); ++i) {
            const auto values = load_integers(tensors[i]);
            for (std::size_t k = 0; k < count; ++k) {
                total[k] += values[k];
            }
        }
        store_integers(total.get(), count, result.dtype(), buffer_of(result).data());
        return result;
    }
    const FloatElements start(first);
    std::vector<float> total(start.span().begin(), start.span().end());
    for (std::size_t i = 1; i < tensors.size(); ++i) {
        const FloatElements values(tensors[i]);
        for (std::size_t k = 0; k < count; ++k) {
            total[k] += values[k];
        }
    }
    store_floats(total.data(), count, result.dtype(), buffer_of(result).data());
    finish_block_float(result);
    return result;
}

/// The sums along an axis, on each device of it.
std::vector<Tensor> reduced(const Mesh& mesh, const Tensor& tensor, std::size_t axis,
                            const std::optional<MemoryConfig>& memory_config) {
    const std::vector<Tensor>& parts = parts_of(tensor);
    const MemoryConfig& memory = output_memory_config(tensor, memory_config);
    std::vector<Tensor> results(parts.size());
    for (const auto& line : mesh.fabric.lines(axis)) {
        std::vector<Tensor> all;
        for (const std::size_t chip : line) {
            all.push_back(parts[chip]);
        }
        const Tensor total = sum(all, memory);
        for (const std::size_t chip : line) {
            results[chip] = sent(total, device_of(parts[chip]));
        }
    }
    return results;
}

std::uint64_t share_bytes(const Mesh& mesh, const Tensor& tensor, std::size_t axis) {
    return bytes_on_device(tensor.tensor_spec()) / mesh.fabric.size(axis);
}

/// The share of each device of the tensors that it has, by its place along an axis.
Tensor shared_out(const Mesh& mesh, const std::vector<Tensor>& wholes, std::size_t dim,
                  std::size_t axis, const std::optional<MemoryConfig>& memory_config) {
    const std::size_t size = wholes.front().logical_shape().view()[dim];
    const std::size_t count = mesh.fabric.size(axis);
    TT_FATAL(size % count == 0, "input shape {} must be divisible by cluster axis size {}",
             wholes.front().logical_shape(), count);
    std::vector<Tensor> results(wholes.size());
    for (const auto& line : mesh.fabric.lines(axis)) {
        for (std::size_t place = 0; place < line.size(); ++place) {
            results[line[place]] = slice_along(wholes[line[place]], dim, place * (size / count),
                                               (place + 1) * (size / count), memory_config);
        }
    }
    return joined(results, mesh.device);
}

}  // namespace

}  // namespace ttcodegen::cpu

namespace ttnn {

namespace cpu = ttcodegen::cpu;

Tensor all_gather(const Tensor& input_tensor, std::int32_t dim,
                  std::optional<std::uint32_t> cluster_axis,
                  const std::optional<tt::tt_metal::SubDeviceId>& /*subdevice_id*/,
                  const std::optional<MemoryConfig>& memory_config,
                  const std::optional<Tensor>& optional_output_tensor,
                  std::optional<std::uint32_t> /*num_links*/,
                  std::optional<tt::tt_fabric::Topology> /*topology*/,
                  std::optional<std::uint32_t> /*chunks_per_sync*/,
                  std::optional<std::uint32_t> /*num_workers_per_link*/,
                  std::optional<std::uint32_t> /*num_buffers_per_channel*/,
                  const std::optional<CoreRangeSet>& /*sub_core_grid*/,
                  bool /*use_l1_small_for_semaphores*/) {
    TT_FATAL(!optional_output_tensor, "The CPU backend gathers into a new tensor");
    const cpu::Mesh mesh = cpu::linked_mesh_of(input_tensor, "all_gather", cluster_axis);
    cpu::require_rows(input_tensor, "AllGather");
    const std::size_t axis = cpu::normalize_dim(dim, input_tensor.logical_shape().rank());
    Tensor result = input_tensor;
    for (const std::size_t each : cpu::axes(mesh, cluster_axis, 1)) {
        result = cpu::gathered(mesh, result, axis, each, memory_config);
    }
    return result;
}

Tensor all_reduce(const Tensor& input_tensor, std::optional<std::uint32_t> cluster_axis,
                  const std::optional<tt::tt_metal::SubDeviceId>& /*subdevice_id*/,
                  const std::optional<MemoryConfig>& memory_config,
                  std::optional<std::uint32_t> /*num_links*/,
                  std::optional<tt::tt_fabric::Topology> /*topology*/) {
    const cpu::Mesh mesh = cpu::linked_mesh_of(input_tensor, "all_reduce", cluster_axis);
    TT_FATAL(input_tensor.padded_shape().rank() >= 2,
             "Expected input tensor to be of at least rank 2");
    Tensor result = input_tensor;
    for (const std::size_t axis : cpu::axes(mesh, cluster_axis, 0)) {
        const std::uint64_t share = cpu::share_bytes(mesh, result, axis);
        result = cpu::joined(cpu::reduced(mesh, result, axis, memory_config), mesh.device);
        mesh.fabric.count_reduce_scatter(axis, share);
        mesh.fabric.count_gather(axis, share);
    }
    return result;
}

Tensor reduce_scatter(const Tensor& input_tensor, std::int32_t dim,
                      std::optional<std::uint32_t> cluster_axis,
                      const std::optional<tt::tt_metal::SubDeviceId>& /*subdevice_id*/,
                      const std::optional<MemoryConfig>& memory_config,
                      const std::optional<MemoryConfig>& /*intermediate_memory_config*/,
                      const std::optional<Tensor>& optional_output_tensor,
                      std::optional<std::uint32_t> /*num_links*/,
                      std::optional<tt::tt_fabric::Topology> /*topology*/,
                      std::optional<std::uint32_t> /*chunks_per_sync*/,
                      std::optional<std::uint32_t> /*num_workers_per_link*/,
                      std::optional<std::uint32_t> /*num_buffers_per_channel*/,
                      const std::optional<DeviceComputeKernelConfig>& /*compute_kernel_config*/,
                      bool /*use_l1_small_for_semaphores*/) {
    TT_FATAL(!optional_output_tensor, "The CPU backend scatters into a new tensor");
    const cpu::Mesh mesh = cpu::linked_mesh_of(input_tensor, "reduce_scatter", cluster_axis);
    cpu::require_rows(input_tensor, "reduce_scatter");
    const std::size_t divided = cpu::normalize_dim(dim, input_tensor.logical_shape().rank());
    Tensor result = input_tensor;
    for (const std::size_t axis : cpu::axes(mesh, cluster_axis, 0)) {
        const std::uint64_t share = cpu::share_bytes(mesh, result, axis);
        const auto totals = cpu::reduced(mesh, result, axis, std::nullopt);
        result = cpu::shared_out(mesh, totals, divided, axis,
                                 cpu::output_memory_config(result, memory_config));
        mesh.fabric.count_reduce_scatter(axis, share);
    }
    return result;
}

Tensor mesh_partition(const Tensor& input_tensor, std::int32_t dim,
                      std::optional<std::uint32_t> cluster_axis,
                      const std::optional<MemoryConfig>& memory_config) {
    const std::optional<cpu::Mesh> mesh = cpu::mesh_of(input_tensor, "mesh_partition");
    if (!mesh) {
        return input_tensor;
    }
    TT_FATAL(!cluster_axis || *cluster_axis < 2, "Only support cluster axis of None, 0 or 1");
    if (cluster_axis && mesh->fabric.size(*cluster_axis) == 1) {
        return input_tensor;
    }
    const std::size_t divided = cpu::normalize_dim(dim, input_tensor.logical_shape().rank());
    Tensor result = input_tensor;
    // Among all devices row by row: first among the rows of the mesh, then within each.
    for (const std::size_t axis : cpu::axes(*mesh, cluster_axis, 0)) {
        result = cpu::shared_out(*mesh, cpu::parts_of(result), divided, axis,
                                 cpu::output_memory_config(result, memory_config));
    }
    const bool in_tiles = result.layout() == tt::tt_metal::Layout::TILE;
    TT_FATAL(!in_tiles ||
                 result.logical_shape().view()[divided] == result.padded_shape().view()[divided],
             "for tiled inputs, partitioning along dim {} should not create padding in output "
             "shape {}",
             dim, result.logical_shape());
    return result;
}

}  // namespace ttnn
