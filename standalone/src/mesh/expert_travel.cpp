// Mixture of experts: all-to-all dispatch and combine of tokens.

#include <algorithm>
#include <memory>

#include "core/chips.hpp"
#include "core/memory_use.hpp"
#include "core/tensor_data.hpp"
#include "mesh/linked_mesh.hpp"
#include "ttnn/operations/ccl/all_to_all_combine/all_to_all_combine.hpp"
#include "ttnn/operations/ccl/all_to_all_dispatch/all_to_all_dispatch.hpp"

namespace ttcodegen::cpu {

namespace {

/// The assignment of experts to devices, from the mapping table of a device.
class ExpertPlacement {
  public:
    explicit ExpertPlacement(const Tensor& mapping)
        : devices_(mapping.logical_shape()[-1]),
          experts_(mapping.logical_shape()[-2]),
          owned_(load_integers(mapping)) {}

    bool owns(std::size_t device, std::int64_t expert) const {
        return expert >= 0 && static_cast<std::size_t>(expert) < experts_ &&
               owned_[(static_cast<std::size_t>(expert) * devices_) + device] != 0;
    }

    /// The experts of a device, in order.
    std::vector<std::int64_t> of(std::size_t device) const {
        std::vector<std::int64_t> found;
        for (std::size_t expert = 0; expert < experts_; ++expert) {
            if (owns(device, static_cast<std::int64_t>(expert))) {
                found.push_back(static_cast<std::int64_t>(expert));
            }
        }
        return found;
    }

  private:
    std::size_t devices_;
    std::size_t experts_;
    std::unique_ptr<std::int64_t[]> owned_;
};

void require_rows_of(const Tensor& tensor, DataType dtype, const char* name) {
    TT_FATAL(tensor.layout() == Layout::ROW_MAJOR, "{} tensor must be in row major layout", name);
    TT_FATAL(tensor.dtype() == dtype, "{} tensor must be {}", name, dtype);
    TT_FATAL(tensor.logical_shape().rank() == 4, "{} tensor must be of rank 4", name);
}

void require_expert_mapping(const Mesh& mesh, const Tensor& mapping) {
    require_rows_of(mapping, DataType::UINT16, "Mapping");
    const std::size_t devices = mesh.device->num_devices();
    TT_FATAL(mapping.logical_shape()[-1] == devices,
             "The mapping tensor names {} devices, and the mesh has {}",
             mapping.logical_shape()[-1], devices);
}

std::size_t bytes_of_row(const Tensor& tensor) {
    return tensor.logical_shape()[-1] * stored_size(tensor.dtype());
}

std::size_t rows_of(const Tensor& tensor) {
    return tensor.logical_shape().volume() / tensor.logical_shape()[-1];
}

/// Concatenates the rows of the devices of a line, on each of them.
Tensor gathered_rows(const Mesh& mesh, const Tensor& tensor, const Shape& shape, std::size_t axis,
                     const MemoryConfig& memory) {
    const std::vector<Tensor> parts = parts_along(mesh, tensor, axis);
    return on_all(mesh, [&](std::size_t chip) {
        const Tensor result =
            allocate_like(parts[chip], shape, tensor.dtype(), tensor.layout(), memory);
        std::byte* target = buffer_of(result).data();
        for (const std::size_t other : mesh.fabric.line_of(chip, axis)) {
            const std::size_t size = rows_of(tensor) * bytes_of_row(tensor);
            target = std::copy_n(buffer_of(parts[other]).data(), size, target);
        }
        return result;
    });
}

/// Counts the traffic of a dispatch: a token is sent once to each device with one of its experts.
void count_dispatch(const Mesh& mesh, const Tensor& tokens, const Tensor& experts,
                    const Tensor& mapping, std::size_t axis, bool round) {
    const std::size_t k = experts.logical_shape()[-1];
    const std::uint64_t bytes = bytes_of_row(tokens);
    const std::vector<Tensor> mappings = gathered_parts(mapping);
    const std::vector<Tensor> chosen = gathered_parts(experts);
    for (std::size_t sender = 0; sender < parts_of(tokens).size(); ++sender) {
        const ExpertPlacement homes(mappings[sender]);
        const auto named = load_integers(chosen[sender]);
        const std::vector<std::size_t> line = mesh.fabric.line_of(sender, axis);
        for (std::size_t token = 0; token < rows_of(tokens); ++token) {
            for (const std::size_t receiver : line) {
                const auto* first = named.get() + (token * k);
                if (std::any_of(first, first + k, [&](std::int64_t expert) {
                        return homes.owns(receiver, expert);
                    })) {
                    mesh.fabric.count_sent(axis, sender, receiver, bytes, round);
                }
            }
        }
    }
}

/// The axis of dispatch and combine, which must be given.
std::size_t dispatch_axis(const std::optional<std::uint32_t>& axis) {
    TT_FATAL(axis.has_value(), "Axis must be specified at the moment");
    return *axis;
}

}  // namespace

}  // namespace ttcodegen::cpu

namespace ttnn {

namespace cpu = ttcodegen::cpu;

std::array<Tensor, 2> all_to_all_dispatch(
    const Tensor& input_tensor, const Tensor& expert_indices_tensor,
    const Tensor& expert_mapping_tensor, std::optional<std::uint32_t> axis,
    const std::optional<std::array<Tensor, 2>>& optional_output_tensors,
    std::optional<std::uint32_t> num_links, std::optional<tt::tt_fabric::Topology> topology,
    const std::optional<MemoryConfig>& memory_config,
    const std::optional<tt::tt_metal::SubDeviceId>& /*subdevice_id*/,
    const std::optional<std::uint32_t>& output_concat_dim) {
    TT_FATAL(!optional_output_tensors, "The CPU backend dispatches into new tensors");
    TTCODEGEN_CALL(all_to_all_dispatch, input_tensor, expert_indices_tensor, expert_mapping_tensor,
                   axis, std::nullopt, num_links, topology, memory_config, std::nullopt,
                   output_concat_dim);
    const std::size_t along = cpu::dispatch_axis(axis);
    const cpu::Mesh mesh =
        cpu::linked_mesh_of(input_tensor, "all_to_all_dispatch", axis, num_links);
    cpu::require_rows_of(input_tensor, DataType::BFLOAT16, "Input");
    cpu::require_rows_of(expert_indices_tensor, DataType::UINT16, "Indices");
    cpu::require_expert_mapping(mesh, expert_mapping_tensor);
    const auto& tokens = input_tensor.logical_shape();
    const auto& experts = expert_indices_tensor.logical_shape();
    for (int dim = 0; dim < 3; ++dim) {
        TT_FATAL(tokens[dim] == experts[dim],
                 "Input and indices tensor must have the same shape for all dimensions except the "
                 "last. Mismatch at dimension {} with shape {} and {}",
                 dim, tokens[dim], experts[dim]);
    }
    const std::uint32_t dim = output_concat_dim.value_or(1);
    TT_FATAL(dim == 1 || dim == 2, "Output concat dimension must be 1 or 2, got {}", dim);
    // The kernels write the tokens of one device after those of the previous one in either case.
    TT_FATAL(dim == 1 || tokens[0] == 1,
             "Tokens of batches of {} are not joined along their sequences", tokens[0]);
    const MemoryConfig& memory = cpu::output_memory_config(input_tensor, memory_config);
    TT_FATAL(!memory.is_sharded(), "Output memory config must not be sharded");
    const auto devices = static_cast<std::uint32_t>(mesh.fabric.size(along));
    const std::uint32_t batch = tokens[0] * (dim == 1 ? devices : 1);
    const std::uint32_t sequence = tokens[1] * (dim == 2 ? devices : 1);
    const bool round = mesh.fabric.goes_round(along, topology);
    cpu::count_dispatch(mesh, input_tensor, expert_indices_tensor, expert_mapping_tensor, along,
                        round);
    mesh.fabric.count_gather(along, cpu::bytes_on_device(expert_indices_tensor.tensor_spec()),
                             round);
    return {cpu::gathered_rows(mesh, input_tensor, Shape({1, batch, sequence, tokens[-1]}), along,
                               memory),
            cpu::gathered_rows(mesh, expert_indices_tensor,
                               Shape({1, batch, sequence, experts[-1]}), along, memory)};
}

Tensor all_to_all_combine(const Tensor& input_tensor, const Tensor& expert_mapping_tensor,
                          const Tensor& expert_metadata_tensor, bool locally_reduced,
                          std::optional<std::uint32_t> num_links,
                          std::optional<tt::tt_fabric::Topology> topology,
                          const std::optional<MemoryConfig>& memory_config,
                          const std::optional<std::uint32_t>& axis,
                          const std::optional<std::uint32_t>& output_shard_dim,
                          const std::optional<tt::tt_metal::SubDeviceId>& /*subdevice_id*/,
                          const std::optional<Tensor>& optional_output_tensor) {
    TTCODEGEN_CALL(all_to_all_combine, input_tensor, expert_mapping_tensor, expert_metadata_tensor,
                   locally_reduced, num_links, topology, memory_config, axis, output_shard_dim,
                   std::nullopt, optional_output_tensor);
    TT_FATAL(!optional_output_tensor, "The CPU backend combines into a new tensor");
    TT_FATAL(!locally_reduced, "The CPU backend combines what each expert made, not their sums");
    const std::size_t along = cpu::dispatch_axis(axis);
    const cpu::Mesh mesh = cpu::linked_mesh_of(input_tensor, "all_to_all_combine", axis, num_links);
    cpu::require_rows_of(input_tensor, DataType::BFLOAT16, "Input");
    cpu::require_rows_of(expert_metadata_tensor, DataType::UINT16, "Metadata");
    cpu::require_expert_mapping(mesh, expert_mapping_tensor);
    const auto& made = input_tensor.logical_shape();
    const auto& named = expert_metadata_tensor.logical_shape();
    const std::uint32_t experts = expert_mapping_tensor.logical_shape()[-2];
    const auto count = static_cast<std::uint32_t>(mesh.device->num_devices());
    TT_FATAL(experts % count == 0, "Number of experts {} should be evenly divisible by devices: {}",
             experts, count);
    TT_FATAL(made[0] == experts / count, "Expected input shape dim 0: {} to be equal to {}",
             made[0], experts / count);
    const std::uint32_t dim = output_shard_dim.value_or(1);
    TT_FATAL(dim == 1 || dim == 2, "Output shard dimension must be 1 or 2, got {}", dim);
    const auto devices = static_cast<std::uint32_t>(mesh.fabric.size(along));
    TT_FATAL(named[dim] % devices == 0, "{} {} must be divisible by axis group {}",
             dim == 1 ? "Batch" : "Sequence length", named[dim], devices);
    TT_FATAL(dim == 1 || named[1] == 1,
             "Tokens of batches of {} are not divided along their sequences", named[1]);
    const MemoryConfig& memory = cpu::output_memory_config(input_tensor, memory_config);
    TT_FATAL(!memory.is_sharded(), "Output memory config must not be sharded");
    const std::size_t k = named[-1];
    const std::size_t tokens = cpu::rows_of(expert_metadata_tensor);
    const std::size_t share = tokens / devices;
    const std::size_t bytes = cpu::bytes_of_row(input_tensor);
    const bool round = mesh.fabric.goes_round(along, topology);
    const Shape shape({named[-1], named[1] / (dim == 1 ? devices : 1),
                       named[2] / (dim == 2 ? devices : 1), made[-1]});
    const std::vector<Tensor> parts = cpu::gathered_parts(input_tensor);
    const std::vector<Tensor> mappings = cpu::gathered_parts(expert_mapping_tensor);
    const std::vector<Tensor> chosen = cpu::gathered_parts(expert_metadata_tensor);
    // Traffic is counted in sequence, since the devices share links.
    std::vector<Tensor> results;
    for (const Tensor& part : parts) {
        results.push_back(
            cpu::allocate_like(part, shape, input_tensor.dtype(), input_tensor.layout(), memory));
        std::fill_n(cpu::buffer_of(results.back()).data(), k * share * bytes, std::byte{0});
    }
    for (std::size_t sender = 0; sender < parts.size(); ++sender) {
        const cpu::ExpertPlacement homes(mappings[sender]);
        const std::vector<std::int64_t> local = homes.of(sender);
        TT_FATAL(local.size() <= made[0], "Device {} has {} experts, and results of {}", sender,
                 local.size(), made[0]);
        const auto metadata = cpu::load_integers(chosen[sender]);
        const std::vector<std::size_t> line = mesh.fabric.line_of(sender, along);
        const std::byte* rows = cpu::buffer_of(parts[sender]).data();
        for (std::size_t token = 0; token < tokens; ++token) {
            const std::size_t receiver = line[token / share];
            std::byte* target = cpu::buffer_of(results[receiver]).data();
            for (std::size_t at = 0; at < k; ++at) {
                const auto found = std::ranges::find(local, metadata[(token * k) + at]);
                if (found != local.end()) {
                    const auto expert = static_cast<std::size_t>(found - local.begin());
                    std::copy_n(rows + (((expert * tokens) + token) * bytes), bytes,
                                target + (((at * share) + (token % share)) * bytes));
                    mesh.fabric.count_sent(along, sender, receiver, bytes, round);
                }
            }
        }
    }
    return cpu::joined(results, mesh.device);
}

}  // namespace ttnn
