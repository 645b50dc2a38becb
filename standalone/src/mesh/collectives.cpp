// Operations that join the devices of a mesh.

#include "core/chips.hpp"
#include "core/convert.hpp"
#include "core/device.hpp"
#include "core/memory_use.hpp"
#include "core/parallel.hpp"
#include "data_movement/slice.hpp"
#include "mesh/fabric.hpp"
#include "ttnn/operations/ccl/all_gather/all_gather.hpp"
#include "ttnn/operations/ccl/all_reduce/all_reduce.hpp"
#include "ttnn/operations/ccl/mesh_partition/mesh_partition.hpp"
#include "ttnn/operations/ccl/reduce_scatter/reduce_scatter.hpp"
#include "ttnn/operations/data_movement/concat/concat.hpp"
#include "ttnn/operations/point_to_point/point_to_point.hpp"

namespace ttcodegen::cpu {

namespace {

/// Elements a thread adds up at least.
constexpr std::size_t kGrain = std::size_t{1} << 14;

/// The mesh of a collective.
struct Mesh {
    MeshDevice* device;
    Fabric& fabric;
};

/// What each device of a mesh makes of what there is on the others.
Tensor on_all(const Mesh& mesh, const std::function<Tensor(std::size_t)>& make) {
    std::vector<Tensor> results(mesh.device->num_devices());
    for_each_chip(results.size(), ChipOrder::Any,
                  [&](std::size_t chip) { results[chip] = make(chip); });
    return joined(results, mesh.device);
}

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
    return on_all(mesh, [&](std::size_t chip) {
        std::vector<Tensor> all;
        for (const std::size_t other : mesh.fabric.line_of(chip, axis)) {
            all.push_back(sent(parts[other], device_of(parts[chip])));
        }
        return ttnn::concat(all, static_cast<int>(dim),
                            memory_config.value_or(parts[chip].memory_config()));
    });
}

/// The sum of tensors of one shape, added up in their order and rounded once; on the device of the
/// first.
Tensor sum(const std::vector<Tensor>& tensors, const MemoryConfig& memory_config) {
    const Tensor& first = tensors.front();
    const Tensor result =
        allocate_like(first, first.logical_shape(), first.dtype(), first.layout(), memory_config);
    const DataType dtype = first.dtype();
    const auto add = [&]<typename Value>(Value /*type*/, const auto& load, const auto& store) {
        parallel_for(first.logical_volume(), kGrain, [&](std::size_t begin, std::size_t end) {
            const std::size_t count = end - begin;
            const std::size_t offset = begin * stored_size(dtype);
            std::vector<Value> total(count);
            std::vector<Value> values(count);
            load(buffer_of(first).data() + offset, dtype, count, total.data());
            for (std::size_t i = 1; i < tensors.size(); ++i) {
                load(buffer_of(tensors[i]).data() + offset, dtype, count, values.data());
                for (std::size_t k = 0; k < count; ++k) {
                    total[k] += values[k];
                }
            }
            store(total.data(), count, dtype, buffer_of(result).data() + offset);
        });
    };
    if (is_integer(dtype)) {
        add(std::int64_t{}, [](auto... arguments) { load_integers(arguments...); }, store_integers);
    } else {
        add(float{}, load_floats, store_floats);
        finish_block_float(result);
    }
    return result;
}

/// The sums along an axis, on each device of it.
Tensor reduced(const Mesh& mesh, const Tensor& tensor, std::size_t axis,
               const std::optional<MemoryConfig>& memory_config) {
    const std::vector<Tensor>& parts = parts_of(tensor);
    const MemoryConfig& memory = output_memory_config(tensor, memory_config);
    std::vector<Tensor> totals(parts.size());
    for (const auto& line : mesh.fabric.lines(axis)) {
        std::vector<Tensor> all;
        for (const std::size_t chip : line) {
            all.push_back(parts[chip]);
        }
        const Tensor total = sum(all, memory);
        for (const std::size_t chip : line) {
            totals[chip] = total;
        }
    }
    return on_all(mesh,
                  [&](std::size_t chip) { return sent(totals[chip], device_of(parts[chip])); });
}

std::uint64_t share_bytes(const Mesh& mesh, const Tensor& tensor, std::size_t axis) {
    return bytes_on_device(tensor.tensor_spec()) / mesh.fabric.size(axis);
}

/// The share of each device of what it has, by its position along an axis.
Tensor shared_out(const Mesh& mesh, const Tensor& whole, std::size_t dim, std::size_t axis,
                  const std::optional<MemoryConfig>& memory_config) {
    const std::vector<Tensor>& wholes = parts_of(whole);
    const std::size_t size = whole.logical_shape().view()[dim];
    const std::size_t count = mesh.fabric.size(axis);
    TT_FATAL(size % count == 0, "input shape {} must be divisible by cluster axis size {}",
             whole.logical_shape(), count);
    return on_all(mesh, [&](std::size_t chip) {
        const std::size_t place = mesh.fabric.place_of(chip, axis);
        return slice_along(wholes[chip], dim, place * (size / count), (place + 1) * (size / count),
                           memory_config);
    });
}

/// The number of a device at a position of the mesh.
std::size_t chip_at(const Mesh& mesh, const ttnn::MeshCoordinate& coord, const char* name) {
    TT_FATAL(coord.dims() == 2 && coord[0] < mesh.fabric.size(0) && coord[1] < mesh.fabric.size(1),
             "Mesh device must contain {} coordinate device", name);
    return coord[0] * mesh.fabric.size(1) + coord[1];
}

/// Counts what goes over the links between two devices of a line.
void count_sent(const Mesh& mesh, std::size_t sender, std::size_t receiver, std::uint64_t bytes) {
    for (const std::size_t axis : {1, 0}) {
        const std::vector<std::size_t> line = mesh.fabric.line_of(sender, axis);
        const std::size_t from = mesh.fabric.place_of(sender, axis);
        const std::size_t to = mesh.fabric.place_of(receiver, axis);
        if (line[to] == receiver) {
            const std::size_t hops = from < to ? to - from : from - to;
            mesh.fabric.send(sender, line[from < to ? from + 1 : from - 1], hops, bytes);
            return;
        }
    }
    TT_FATAL(false, "Routing coordinates of devices {} and {} invalid for 1D fabric", sender,
             receiver);
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
                  std::optional<std::uint32_t> num_links,
                  std::optional<tt::tt_fabric::Topology> topology,
                  std::optional<std::uint32_t> /*chunks_per_sync*/,
                  std::optional<std::uint32_t> /*num_workers_per_link*/,
                  std::optional<std::uint32_t> /*num_buffers_per_channel*/,
                  const std::optional<CoreRangeSet>& /*sub_core_grid*/,
                  bool /*use_l1_small_for_semaphores*/) {
    TTCODEGEN_CALL(all_gather, input_tensor, dim, cluster_axis, std::nullopt, memory_config,
                   optional_output_tensor, num_links, topology);
    TT_FATAL(!optional_output_tensor, "The CPU backend gathers into a new tensor");
    const cpu::Mesh mesh = cpu::linked_mesh_of(input_tensor, "all_gather", cluster_axis, num_links);
    cpu::require_rows(input_tensor, "AllGather");
    const std::size_t axis = cpu::normalize_dim(dim, input_tensor.logical_shape().rank());
    Tensor result = input_tensor;
    for (const std::size_t each : cpu::axes(mesh, cluster_axis, 1)) {
        const bool round = mesh.fabric.goes_round(each, topology);
        const std::uint64_t part = cpu::bytes_on_device(result.tensor_spec());
        result = cpu::gathered(mesh, result, axis, each, memory_config);
        mesh.fabric.count_gather(each, part, round);
    }
    return result;
}

Tensor all_reduce(const Tensor& input_tensor, std::optional<std::uint32_t> cluster_axis,
                  const std::optional<tt::tt_metal::SubDeviceId>& /*subdevice_id*/,
                  const std::optional<MemoryConfig>& memory_config,
                  std::optional<std::uint32_t> num_links,
                  std::optional<tt::tt_fabric::Topology> topology) {
    TTCODEGEN_CALL(all_reduce, input_tensor, cluster_axis, std::nullopt, memory_config, num_links,
                   topology);
    const cpu::Mesh mesh = cpu::linked_mesh_of(input_tensor, "all_reduce", cluster_axis, num_links);
    TT_FATAL(input_tensor.padded_shape().rank() >= 2,
             "Expected input tensor to be of at least rank 2");
    Tensor result = input_tensor;
    for (const std::size_t axis : cpu::axes(mesh, cluster_axis, 0)) {
        const bool round = mesh.fabric.goes_round(axis, topology);
        const std::uint64_t share = cpu::share_bytes(mesh, result, axis);
        result = cpu::reduced(mesh, result, axis, memory_config);
        mesh.fabric.count_reduce_scatter(axis, share, round);
        mesh.fabric.count_gather(axis, share, round);
    }
    return result;
}

Tensor reduce_scatter(const Tensor& input_tensor, std::int32_t dim,
                      std::optional<std::uint32_t> cluster_axis,
                      const std::optional<tt::tt_metal::SubDeviceId>& /*subdevice_id*/,
                      const std::optional<MemoryConfig>& memory_config,
                      const std::optional<MemoryConfig>& /*intermediate_memory_config*/,
                      const std::optional<Tensor>& optional_output_tensor,
                      std::optional<std::uint32_t> num_links,
                      std::optional<tt::tt_fabric::Topology> topology,
                      std::optional<std::uint32_t> /*chunks_per_sync*/,
                      std::optional<std::uint32_t> /*num_workers_per_link*/,
                      std::optional<std::uint32_t> /*num_buffers_per_channel*/,
                      const std::optional<DeviceComputeKernelConfig>& /*compute_kernel_config*/,
                      bool /*use_l1_small_for_semaphores*/) {
    TTCODEGEN_CALL(reduce_scatter, input_tensor, dim, cluster_axis, std::nullopt, memory_config,
                   std::nullopt, optional_output_tensor, num_links, topology);
    TT_FATAL(!optional_output_tensor, "The CPU backend scatters into a new tensor");
    const cpu::Mesh mesh =
        cpu::linked_mesh_of(input_tensor, "reduce_scatter", cluster_axis, num_links);
    cpu::require_rows(input_tensor, "reduce_scatter");
    const std::size_t divided = cpu::normalize_dim(dim, input_tensor.logical_shape().rank());
    Tensor result = input_tensor;
    for (const std::size_t axis : cpu::axes(mesh, cluster_axis, 0)) {
        const bool round = mesh.fabric.goes_round(axis, topology);
        const std::uint64_t share = cpu::share_bytes(mesh, result, axis);
        const Tensor totals = cpu::reduced(mesh, result, axis, std::nullopt);
        result = cpu::shared_out(mesh, totals, divided, axis,
                                 cpu::output_memory_config(result, memory_config));
        mesh.fabric.count_reduce_scatter(axis, share, round);
    }
    return result;
}

Tensor mesh_partition(const Tensor& input_tensor, std::int32_t dim,
                      std::optional<std::uint32_t> cluster_axis,
                      const std::optional<MemoryConfig>& memory_config) {
    TTCODEGEN_CALL(mesh_partition, input_tensor, dim, cluster_axis, memory_config);
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
        result = cpu::shared_out(*mesh, result, divided, axis,
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

Tensor point_to_point(const Tensor& input_tensor, const MeshCoordinate& receiver_coord,
                      const MeshCoordinate& sender_coord, ccl::Topology topology,
                      const std::optional<Tensor>& optional_output_tensor,
                      const std::optional<Tensor>& optional_intermediate_tensor) {
    TTCODEGEN_CALL(point_to_point, input_tensor, receiver_coord, sender_coord, topology,
                   optional_output_tensor, optional_intermediate_tensor);
    TT_FATAL(!optional_intermediate_tensor, "The CPU backend sends without another tensor");
    const cpu::Mesh mesh =
        cpu::linked_mesh_of(input_tensor, "point_to_point", std::nullopt, std::nullopt);
    TT_FATAL(!input_tensor.is_sharded(), "Point to point does not yet support sharded configs");
    TT_FATAL(sender_coord != receiver_coord, "Can't send/receive to the same device");
    const std::size_t sender = cpu::chip_at(mesh, sender_coord, "sender");
    const std::size_t receiver = cpu::chip_at(mesh, receiver_coord, "receiver");
    if (optional_output_tensor) {
        TT_FATAL(optional_output_tensor->layout() == input_tensor.layout(),
                 "Output tensor must have same layout as input");
        TT_FATAL(optional_output_tensor->tensor_spec() == input_tensor.tensor_spec(),
                 "Optional output tensor spec does not match computed output spec");
        TT_FATAL(cpu::device_of(*optional_output_tensor) == mesh.device,
                 "Output tensor must be allocated on same mesh device as input tensor");
    }
    cpu::count_sent(mesh, sender, receiver, cpu::bytes_on_device(input_tensor.tensor_spec()));
    const std::vector<Tensor>& parts = cpu::parts_of(input_tensor);
    const Tensor result = optional_output_tensor.value_or(cpu::on_all(mesh, [&](std::size_t chip) {
        return cpu::allocate_like(parts[chip], input_tensor.logical_shape(), input_tensor.dtype(),
                                  input_tensor.layout(), input_tensor.memory_config());
    }));
    cpu::convert_into(parts[sender], cpu::parts_of(result)[receiver]);
    return result;
}

}  // namespace ttnn
