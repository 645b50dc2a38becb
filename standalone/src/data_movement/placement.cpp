// Placement and layout of tensors: device and host, memory configs, page layouts.

#include <algorithm>

#include "core/chips.hpp"
#include "core/convert.hpp"
#include "core/result_shards.hpp"
#include "core/shard_rules.hpp"
#include "core/tensor_data.hpp"
#include "ttnn/operations/copy/typecast/typecast.hpp"
#include "ttnn/operations/core/core.hpp"
#include "ttnn/operations/eltwise/unary/unary.hpp"
#include "ttnn/tensor/tensor_ops.hpp"

namespace ttcodegen::cpu {

namespace {

bool can_be_tilized(DataType dtype) { return !is_block(dtype) && dtype != DataType::UINT8; }

/// Returns whether the copy between interleaved memories supports the data type.
bool can_be_copied(DataType dtype) { return dtype != DataType::UINT16 && dtype != DataType::UINT8; }

Tensor host_to_layout(const Tensor& tensor, Layout layout) {
    const bool stays_tiled = is_block(tensor.dtype()) && layout == Layout::ROW_MAJOR;
    return stays_tiled ? tensor
                       : convert(tensor, tensor.dtype(), layout, tensor.memory_config(), nullptr);
}

void check_asked_shards(const MemoryConfig& memory_config, Layout layout) {
    if (!memory_config.is_sharded() || memory_config.nd_shard_spec()) {
        return;
    }
    TT_FATAL(memory_config.shard_spec(), "A sharded memory config needs a shard spec");
    const auto& shape = memory_config.shard_spec()->shape;
    TT_FATAL(layout != Layout::TILE || (shape[0] % 32 == 0 && shape[1] % 32 == 0),
             "Shard shape {}x{} must be a multiple of the tile's, 32x32", shape[0], shape[1]);
}

bool is_by(const MemoryConfig& memory, TensorMemoryLayout kind) {
    return memory.memory_layout() == kind;
}

/// Refuses tensors that cannot be untilized with unpadding
/// (untilize_with_unpadding_device_operation.cpp of tt-metal 0.70.1).
void check_unpadded(const Tensor& tensor, const MemoryConfig& target) {
    const MemoryConfig& source = tensor.memory_config();
    if (!source.is_sharded()) {
        TT_FATAL(!target.is_sharded(), "Output memory config layout must be INTERLEAVED but got {}",
                 target.memory_layout());
        return;
    }
    if (!source.shard_spec()) {
        return;
    }
    const Shape& padded = tensor.padded_shape();
    TT_FATAL(target.is_sharded() || padded.volume() == std::uint64_t{padded[-2]} * padded[-1],
             "Can only write unbatched output interleaved");
    if (is_by(source, TensorMemoryLayout::BLOCK_SHARDED)) {
        TT_FATAL(source.shard_spec()->grid.ranges().size() == 1,
                 "Expected single grid range and got {}",
                 source.shard_spec()->grid.ranges().size());
        TT_FATAL(!target.is_sharded(),
                 "Output memory config layout must be INTERLEAVED for block sharded input but got "
                 "{}",
                 target.memory_layout());
        return;
    }
    TT_FATAL(!target.is_sharded() || target.memory_layout() == source.memory_layout(),
             "Output memory config layout ({}) must match input tensor memory layout ({})",
             target.memory_layout(), source.memory_layout());
    if (is_by(source, TensorMemoryLayout::WIDTH_SHARDED)) {
        const std::uint32_t width = tensor.logical_shape()[-1];
        const std::uint32_t shard = source.shard_spec()->shape[1];
        TT_FATAL(!target.is_sharded() || padded[-1] == width ||
                     (width + shard - 1) / shard == source.shard_spec()->num_cores(),
                 "Input tensor width ({}) must equal output width ({}) or output width / shard "
                 "width must equal num cores",
                 padded[-1], width);
    }
}

/// Refuses shards that cannot be untilized (untilize_device_operation.cpp of tt-metal
/// 0.70.1).
void check_untilized(const Tensor& tensor, DataType dtype, const MemoryConfig& target) {
    const MemoryConfig& source = tensor.memory_config();
    TT_FATAL(!source.is_sharded() || source.is_l1(),
             "Multicore implementation doesn't support DRAM sharding");
    if (tensor.logical_shape().rank() < 2) {
        return;
    }
    if (tensor.padded_shape() != tensor.logical_shape()) {
        check_unpadded(tensor, target);
        return;
    }
    if (target.is_sharded()) {
        check_row_pages(target, dtype);
    }
    TT_FATAL(!is_by(target, TensorMemoryLayout::BLOCK_SHARDED) || target.is_l1(),
             "We don't support DRAM block sharding");
}

/// Refuses row-major shards that cannot be tilized (to_layout_op.cpp, tilize_device_operation.cpp
/// of tt-metal 0.70.1).
void check_tilized(const Tensor& tensor) {
    if (!tensor.is_sharded()) {
        return;
    }
    TT_FATAL(tensor.logical_shape().rank() >= 2,
             "ttnn::to_layout: Cannot convert a sharded device tensor with rank {} to TILE_LAYOUT.",
             tensor.logical_shape().rank());
    const auto& shards = tensor.memory_config().shard_spec();
    const Shape& shape = tensor.logical_shape();
    const bool is_padded = shape[-1] % kTileSide != 0 || shape[-2] % kTileSide != 0;
    TT_FATAL(is_padded || !shards ||
                 (shards->shape[0] % kTileSide == 0 && shards->shape[1] % kTileSide == 0),
             "ttnn::to_layout: Sharded tensor must have shard shape that is a multiple of "
             "TILE_SIZE!");
    check_row_pages(tensor.memory_config(), tensor.dtype());
}

}  // namespace

}  // namespace ttcodegen::cpu

namespace tt::tt_metal {

namespace cpu = ttcodegen::cpu;

Tensor Tensor::to_device(distributed::MeshDevice* mesh_device,
                         ttsl::optional_reference<const MemoryConfig> mem_config,
                         std::optional<QueueId> /*cq_id*/) const {
    TT_FATAL(mesh_device != nullptr, "Need target device in order to move tensor to device!");
    if (cpu::on_device(*this)) {
        return *this;
    }
    cpu::refuse_write_in_capture();
    if (const auto mesh = cpu::participants(*this, mesh_device); mesh.count > 0) {
        return cpu::on_each_chip(mesh, [&] { return to_device(mesh_device, mem_config); });
    }
    mesh_device = cpu::chip_device(mesh_device);
    const MemoryConfig& target = mem_config ? *mem_config : memory_config();
    return cpu::convert(*this, dtype(), layout(), target, mesh_device);
}

Tensor Tensor::to_layout(Layout target_layout) const {
    if (layout() == target_layout) {
        return *this;
    }
    if (const auto mesh = cpu::participants(*this); mesh.count > 0) {
        return cpu::on_each_chip(mesh, [&] { return to_layout(target_layout); });
    }
    TT_FATAL(!cpu::on_device(*this), "Bring the tensor to the host before changing its layout");
    return cpu::host_to_layout(*this, target_layout);
}

Tensor Tensor::cpu(bool /*blocking*/, std::optional<QueueId> /*cq_id*/) const {
    if (!ttcodegen::cpu::on_device(*this)) {
        return *this;
    }
    ttcodegen::cpu::refuse_read_in_capture();
    if (const auto mesh = ttcodegen::cpu::participants(*this); mesh.count > 0) {
        return ttcodegen::cpu::on_each_chip(mesh, [&] { return cpu(); });
    }
    return ttcodegen::cpu::convert(*this, dtype(), layout(), memory_config(), nullptr);
}

void copy_to_device(const Tensor& host_tensor, Tensor& device_tensor,
                    std::optional<QueueId> /*cq_id*/) {
    cpu::refuse_write_in_capture();
    TT_FATAL(!cpu::on_device(host_tensor), "The tensor to copy from is on the device");
    TT_FATAL(cpu::on_device(device_tensor), "The tensor to copy to is on the host");
    TT_FATAL(host_tensor.logical_shape() == device_tensor.logical_shape(),
             "Host tensor has different shape");
    TT_FATAL(host_tensor.dtype() == device_tensor.dtype(), "Host tensor has different dtype");
    TT_FATAL(host_tensor.layout() == device_tensor.layout(),
             "Host tensor has different page config");
    const auto& parts = cpu::parts_of(device_tensor);
    if (parts.empty()) {
        cpu::convert_into(host_tensor, device_tensor);
        return;
    }
    // A single tensor is replicated to all devices of a mesh.
    const auto& host_parts = cpu::parts_of(host_tensor);
    TT_FATAL(host_parts.empty() || host_parts.size() == parts.size(),
             "A tensor of {} parts is not for a mesh of {} devices", host_parts.size(),
             parts.size());
    const cpu::LocalChips local = cpu::local_chips(parts.size());
    for (std::size_t chip = local.begin; chip < local.end; ++chip) {
        cpu::convert_into(host_parts.empty() ? host_tensor : host_parts[chip], parts[chip]);
    }
}

}  // namespace tt::tt_metal

namespace ttnn {

namespace cpu = ttcodegen::cpu;

Tensor to_layout(const Tensor& tensor, Layout layout, const std::optional<DataType>& dtype,
                 const std::optional<MemoryConfig>& memory_config,
                 const std::optional<CoreRangeSet>& sub_core_grids, float pad_value) {
    TTCODEGEN_ON_EACH_CHIP(to_layout, tensor, layout, dtype, memory_config, sub_core_grids,
                           pad_value);
    if (tensor.layout() == layout) {
        return tensor;
    }
    TT_FATAL(layout != Layout::INVALID, "A tensor's layout is ROW_MAJOR or TILE");
    if (!cpu::on_device(tensor)) {
        return cpu::host_to_layout(tensor, layout);
    }
    const DataType from = tensor.dtype();
    DataType to = from == DataType::BFLOAT8_B ? DataType::BFLOAT16 : from;
    if (layout == Layout::ROW_MAJOR) {
        cpu::check_untilized(tensor, to, cpu::output_memory_config(tensor, memory_config));
    } else {
        cpu::check_tilized(tensor);
        TT_FATAL(cpu::can_be_tilized(from),
                 "Can only tilize bfloat16/float32 or int32/uint32/uint16 tensors, not {}", from);
        to = dtype.value_or(from);
    }
    return cpu::convert(tensor, to, layout,
                        layout == Layout::TILE ? cpu::tilized_memory(tensor, memory_config)
                                               : cpu::output_memory_config(tensor, memory_config),
                        cpu::device_of(tensor));
}

Tensor to_dtype(const Tensor& tensor, const DataType& dtype) {
    TTCODEGEN_ON_EACH_CHIP(to_dtype, tensor, dtype);
    TT_FATAL(!cpu::on_device(tensor), "Expected Tensor with HostStorage, got {}",
             tensor.storage_type());
    const Layout layout = cpu::is_block(dtype) ? Layout::TILE : tensor.layout();
    return cpu::convert(tensor, dtype, layout, tensor.memory_config(), nullptr);
}

Tensor to_memory_config(const Tensor& tensor, const MemoryConfig& memory_config,
                        std::optional<DataType> dtype, const std::optional<Tensor>& output_tensor) {
    TTCODEGEN_ON_EACH_CHIP(to_memory_config, tensor, memory_config, dtype, output_tensor);
    TT_FATAL(cpu::on_device(tensor),
             "Device Operations expect tensor with Device storage in inputs");
    cpu::buffer_of(tensor);
    if (tensor.memory_config() == memory_config && !output_tensor) {
        return tensor;
    }
    const DataType from = tensor.dtype();
    const DataType to = dtype.value_or(from);
    // Whole shards of any data type can be moved between interleaved and sharded memory.
    const Shape& shape = tensor.logical_shape();
    const bool whole_shards =
        tensor.layout() == Layout::TILE || (shape[-1] % 32 == 0 && shape[-2] % 32 == 0);
    const bool interleaved = !tensor.memory_config().is_sharded() && !memory_config.is_sharded();
    TT_FATAL((!interleaved && whole_shards) || cpu::can_be_copied(from),
             "ttnn.copy only supports float, bfloat and int32 inputs but got {}", from);
    TT_FATAL(!interleaved || cpu::can_be_copied(to),
             "ttnn.copy only supports float, bfloat and int32 output tensors but got {}", to);
    TT_FATAL(from == to || tensor.layout() == Layout::TILE,
             "Only tile layout supports dtype conversion");
    cpu::check_asked_shards(memory_config, tensor.layout());
    // Shards of the same width are resharded row by row; others go through interleaved memory.
    const auto& read = tensor.memory_config().shard_spec();
    const auto& written = memory_config.shard_spec();
    if (tensor.layout() == Layout::ROW_MAJOR && read && written &&
        read->shape[1] == written->shape[1]) {
        cpu::check_row_pages(memory_config, from);
    }
    const auto is_by_width = [](const MemoryConfig& memory) {
        return memory.memory_layout() == TensorMemoryLayout::WIDTH_SHARDED;
    };
    TT_FATAL(tensor.layout() != Layout::TILE || !is_by_width(tensor.memory_config()) ||
                 !is_by_width(memory_config) || !tensor.memory_config().is_l1() ||
                 !memory_config.is_dram(),
             "Only L1 buffers can have an associated circular buffer!");
    if (output_tensor) {
        cpu::convert_into(tensor, *output_tensor);
        return *output_tensor;
    }
    return cpu::convert(tensor, to, tensor.layout(), memory_config, cpu::device_of(tensor));
}

Tensor typecast(const Tensor& input, const DataType& output_dtype,
                const std::optional<MemoryConfig>& memory_config,
                const std::optional<Tensor>& optional_output_tensor,
                const std::optional<CoreRangeSet>& sub_core_grids) {
    TTCODEGEN_ON_EACH_CHIP(typecast, input, output_dtype, memory_config, optional_output_tensor,
                           sub_core_grids);
    TT_FATAL(!optional_output_tensor || optional_output_tensor->dtype() == output_dtype,
             "If both output dtype and output tensor provided dtype should match");
    const bool device = cpu::on_device(input);
    const bool to_tiles = cpu::is_block(output_dtype) && input.layout() == Layout::ROW_MAJOR;
    TT_FATAL(!device || !to_tiles, "A row-major tensor on the device cannot become {}",
             output_dtype);
    if (optional_output_tensor) {
        cpu::typecast_into(input, *optional_output_tensor);
        return *optional_output_tensor;
    }
    TT_FATAL(!device || !memory_config ||
                 memory_config->memory_layout() == input.memory_config().memory_layout(),
             "Typecast operation requires Input and Output memory layout to match.");
    if (device && input.is_sharded() && input.layout() == Layout::ROW_MAJOR) {
        cpu::check_row_pages(input.memory_config(), input.dtype());
    }
    return cpu::typecast(input, output_dtype, to_tiles ? Layout::TILE : input.layout(),
                         cpu::output_memory_config(input, memory_config), cpu::device_of(input));
}

Tensor bitcast(const Tensor& input, const DataType& output_dtype,
               const std::optional<MemoryConfig>& memory_config,
               const std::optional<Tensor>& optional_output_tensor,
               const std::optional<CoreRangeSet>& sub_core_grids) {
    TTCODEGEN_ON_EACH_CHIP(bitcast, input, output_dtype, memory_config, optional_output_tensor,
                           sub_core_grids);
    TT_FATAL(!optional_output_tensor || optional_output_tensor->dtype() == output_dtype,
             "If both output dtype and output tensor provided dtype should match");
    TT_FATAL(
        !optional_output_tensor || optional_output_tensor->logical_shape() == input.logical_shape(),
        "The output tensor must have the input's shape");
    cpu::require_on_device(input, "Input tensor");
    // Elements of block floats share exponents, so their bits cannot be reinterpreted.
    const auto has_size = [&input](DataType dtype) {
        return !cpu::is_block(dtype) && cpu::stored_size(dtype) == cpu::stored_size(input.dtype());
    };
    TT_FATAL(has_size(input.dtype()) && has_size(output_dtype),
             "Elements of {} cannot be read as elements of {}", input.dtype(), output_dtype);
    const Tensor output = optional_output_tensor.value_or(
        cpu::allocate_like(input, input.logical_shape(), output_dtype, input.layout(),
                           cpu::output_memory_config(input, memory_config)));
    const cpu::Buffer& source = cpu::buffer_of(input);
    cpu::Buffer& target = cpu::buffer_of(output);
    target.forget_derived();
    std::copy_n(source.data(), source.bytes(), target.data());
    return output;
}

namespace operations::core {

Tensor to_device(const Tensor& tensor, MeshDevice* mesh_device,
                 const std::optional<MemoryConfig>& memory_config,
                 std::optional<QueueId> /*queue_id*/) {
    TTCODEGEN_REPORTED(to_device, tensor, mesh_device, memory_config);
    return tensor.to_device(mesh_device, memory_config);
}

Tensor from_device(const Tensor& tensor, bool blocking, std::optional<QueueId> queue_id) {
    TTCODEGEN_REPORTED(from_device, tensor, blocking, queue_id);
    return tensor.cpu(blocking, queue_id);
}

void deallocate(Tensor& tensor, bool force) { tensor.deallocate(force); }

Tensor reallocate(const Tensor& input_tensor, const std::optional<MemoryConfig>& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(reallocate, input_tensor, memory_config);
    cpu::require_on_device(input_tensor, "Input tensor");
    return cpu::convert(input_tensor, input_tensor.dtype(), input_tensor.layout(),
                        cpu::output_memory_config(input_tensor, memory_config),
                        cpu::device_of(input_tensor));
}

}  // namespace operations::core

}  // namespace ttnn
