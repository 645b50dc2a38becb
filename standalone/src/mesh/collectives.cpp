// Collective operations.

#include <algorithm>
#include <array>

#include "core/chips.hpp"
#include "core/convert.hpp"
#include "core/device.hpp"
#include "core/memory_use.hpp"
#include "core/parallel.hpp"
#include "data_movement/slice.hpp"
#include "mesh/linked_mesh.hpp"
#include "ttnn/operations/ccl/all_gather/all_gather.hpp"
#include "ttnn/operations/ccl/all_reduce/all_reduce.hpp"
#include "ttnn/operations/ccl/broadcast/broadcast.hpp"
#include "ttnn/operations/ccl/mesh_partition/mesh_partition.hpp"
#include "ttnn/operations/ccl/reduce_scatter/reduce_scatter.hpp"
#include "ttnn/operations/data_movement/concat/concat.hpp"
#include "ttnn/operations/experimental/ccl/all_to_all_async_generic/all_to_all_async_generic.hpp"
#include "ttnn/operations/point_to_point/point_to_point.hpp"

namespace ttcodegen::cpu {

namespace {

/// Minimum elements per thread of a reduction.
constexpr std::size_t kGrain = std::size_t{1} << 14;

void require_rows(const Tensor& tensor, const char* name) {
    TT_FATAL(tensor.logical_shape().rank() >= 2, "{} requires tensor of rank 2 or greater", name);
}

Tensor gathered(const Mesh& mesh, const Tensor& tensor, std::size_t dim, std::size_t axis,
                const std::optional<MemoryConfig>& memory_config) {
    const std::vector<Tensor> parts = parts_along(mesh, tensor, axis);
    return on_all(mesh, [&](std::size_t chip) {
        std::vector<Tensor> all;
        for (const std::size_t other : mesh.fabric.line_of(chip, axis)) {
            all.push_back(sent(parts[other], device_of(parts[chip])));
        }
        return ttnn::concat(all, static_cast<int>(dim),
                            memory_config.value_or(parts[chip].memory_config()));
    });
}

/// Sums tensors of one shape in their order and rounds once; on the device of the
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

/// Sums along an axis, on each device of it.
Tensor reduced(const Mesh& mesh, const Tensor& tensor, std::size_t axis,
               const std::optional<MemoryConfig>& memory_config) {
    const std::vector<Tensor> parts = parts_along(mesh, tensor, axis);
    const MemoryConfig& memory = output_memory_config(tensor, memory_config);
    std::vector<Tensor> totals(parts.size());
    const LocalChips local = local_chips(parts.size());
    for (const auto& line : mesh.fabric.lines(axis)) {
        if (std::ranges::none_of(line, [&](std::size_t chip) { return local.contains(chip); })) {
            continue;
        }
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

/// Slices the tensor of each device by the device's position along an axis.
Tensor partitioned(const Mesh& mesh, const Tensor& whole, std::size_t dim, std::size_t axis,
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

/// Counts the traffic between two devices of one row or one column.
void count_sent(const Mesh& mesh, std::size_t sender, std::size_t receiver, std::uint64_t bytes) {
    for (const std::size_t axis : {1, 0}) {
        if (mesh.fabric.line_of(sender, axis)[mesh.fabric.place_of(receiver, axis)] == receiver) {
            mesh.fabric.count_sent(axis, sender, receiver, bytes, false);
            return;
        }
    }
    TT_FATAL(false, "Routing coordinates of devices {} and {} invalid for 1D fabric", sender,
             receiver);
}

/// Refuses shards that the kernels of `all_to_all_async_generic` cannot divide: the dimension of
/// rows is divided in half tiles, that of columns in whole ones.
void require_divisible(const Tensor& tensor, std::size_t joined, std::size_t divided,
                       std::size_t devices) {
    const auto& shape = tensor.logical_shape().view();
    TT_FATAL(shape[divided] % devices == 0,
             "AllToAllAsync: input tensor dimension {} must be divisible by num_devices {}",
             shape[divided], devices);
    for (const auto& [dim, size] :
         {std::pair{joined, std::size_t{shape[joined]}}, {divided, shape[divided] / devices}}) {
        const std::size_t from_last = shape.size() - 1 - dim;
        TT_FATAL(from_last != 1 || size % 16 == 0,
                 "{} dimension support only 0 or 16 padding, so must be divisible by 16", dim);
        TT_FATAL(from_last != 0 || size % 32 == 0,
                 "{} dimension doesn't support padding, so must be divisible by 32", dim);
    }
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
        result = cpu::partitioned(mesh, totals, divided, axis,
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
    // Over all devices in row-major order: first over the rows of the mesh, then within each.
    for (const std::size_t axis : cpu::axes(*mesh, cluster_axis, 0)) {
        result = cpu::partitioned(*mesh, result, divided, axis,
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
    const Tensor sent = cpu::broadcast_part(input_tensor, sender);
    if (cpu::local_chips(parts.size()).contains(receiver)) {
        cpu::convert_into(sent, cpu::parts_of(result)[receiver]);
    }
    return result;
}

Tensor broadcast(const Tensor& input_tensor, const MeshCoordinate& sender_coord,
                 std::optional<std::uint32_t> num_links,
                 const std::optional<MemoryConfig>& memory_config, ccl::Topology topology,
                 std::optional<std::uint32_t> cluster_axis,
                 std::optional<tt::tt_metal::SubDeviceId> /*subdevice_id*/) {
    TTCODEGEN_CALL(broadcast, input_tensor, sender_coord, num_links, memory_config, topology,
                   cluster_axis);
    const cpu::Mesh mesh = cpu::linked_mesh_of(input_tensor, "broadcast", cluster_axis, num_links);
    const std::vector<std::size_t> along = cpu::axes(mesh, cluster_axis, 1);
    TT_FATAL(along.size() == 1,
             "broadcast op is only supported for a linear tensor topology shape");
    TT_FATAL(mesh.fabric.size(1 - along.front()) == 1,
             "The devices of {} lines would wait for a sender, and there is one",
             mesh.fabric.size(1 - along.front()));
    const std::size_t sender = cpu::chip_at(mesh, sender_coord, "sender");
    const std::vector<Tensor>& parts = cpu::parts_of(input_tensor);
    const MemoryConfig& memory = cpu::output_memory_config(input_tensor, memory_config);
    const std::uint64_t bytes = cpu::bytes_on_device(input_tensor.tensor_spec());
    const std::size_t count = parts.size();
    const bool round = mesh.fabric.goes_round(along.front(), topology);
    // A single packet visits all devices of a direction.
    const std::array<std::size_t, 2> ends = {
        round ? (sender + count / 2) % count : count - 1,
        round ? (sender + count - (count - 1) / 2) % count : 0};
    for (const std::size_t end : ends) {
        mesh.fabric.count_sent(along.front(), sender, end, bytes, round);
    }
    const Tensor source = cpu::broadcast_part(input_tensor, sender);
    return cpu::on_all(mesh, [&](std::size_t chip) {
        return cpu::convert(source, source.dtype(), source.layout(), memory,
                            cpu::device_of(parts[chip]));
    });
}

namespace experimental {

Tensor all_to_all_async_generic(const Tensor& input_tensor, std::int32_t in_dim,
                                std::int32_t out_dim,
                                const std::optional<Tensor>& persistent_output_buffer,
                                std::optional<std::uint32_t> num_links,
                                const std::optional<MemoryConfig>& memory_config,
                                std::optional<ccl::Topology> topology,
                                std::optional<tt::tt_metal::SubDeviceId> /*subdevice_id*/,
                                std::optional<std::uint32_t> cluster_axis) {
    TTCODEGEN_CALL(all_to_all_async_generic, input_tensor, in_dim, out_dim,
                   persistent_output_buffer, num_links, memory_config, topology, std::nullopt,
                   cluster_axis);
    TT_FATAL(!persistent_output_buffer, "The CPU backend exchanges into a new tensor");
    const cpu::Mesh mesh =
        cpu::linked_mesh_of(input_tensor, "all_to_all_async", cluster_axis, num_links);
    const auto rank = static_cast<std::int32_t>(input_tensor.logical_shape().rank());
    TT_FATAL(in_dim >= 0 && in_dim < rank, "in_dim out of range");
    TT_FATAL(out_dim >= 0 && out_dim < rank, "out_dim out of range");
    TT_FATAL(in_dim != out_dim, "in_dim and out_dim are both {}", in_dim);
    TT_FATAL(input_tensor.layout() == tt::tt_metal::Layout::TILE, "Unsupported input layout {}.",
             input_tensor.layout());
    const std::vector<std::size_t> along = cpu::axes(mesh, cluster_axis, 1);
    TT_FATAL(along.size() == 1, "all_to_all_async goes along one axis of the mesh");
    const std::size_t axis = along.front();
    const std::size_t devices = mesh.fabric.size(axis);
    const auto joined = static_cast<std::size_t>(in_dim);
    const auto divided = static_cast<std::size_t>(out_dim);
    cpu::require_divisible(input_tensor, joined, divided, devices);
    const bool round = mesh.fabric.goes_round(axis, topology);
    const std::uint64_t share = cpu::share_bytes(mesh, input_tensor, axis);
    for (const auto& line : mesh.fabric.lines(axis)) {
        for (const std::size_t sender : line) {
            for (const std::size_t receiver : line) {
                mesh.fabric.count_sent(axis, sender, receiver, share, round);
            }
        }
    }
    const std::vector<Tensor> parts = cpu::parts_along(mesh, input_tensor, axis);
    const std::size_t size = input_tensor.logical_shape().view()[divided] / devices;
    return cpu::on_all(mesh, [&](std::size_t chip) {
        const std::size_t place = mesh.fabric.place_of(chip, axis);
        std::vector<Tensor> all;
        for (const std::size_t other : mesh.fabric.line_of(chip, axis)) {
            const Tensor share =
                cpu::slice_along(parts[other], divided, place * size, (place + 1) * size);
            all.push_back(cpu::sent(share, cpu::device_of(parts[chip])));
        }
        return ttnn::concat(all, in_dim, cpu::output_memory_config(input_tensor, memory_config));
    });
}

}  // namespace experimental

}  // namespace ttnn
