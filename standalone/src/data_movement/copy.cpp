// Copies, and conversions between explicitly named layouts.

#include "ttnn/operations/data_movement/copy/copy.hpp"

#include "core/chips.hpp"
#include "core/convert.hpp"
#include "core/result_shards.hpp"
#include "core/shard_rules.hpp"
#include "core/tensor_data.hpp"
#include "data_movement/slice.hpp"
#include "ttnn/operations/core/core.hpp"
#include "ttnn/operations/data_movement/clone/clone.hpp"
#include "ttnn/operations/data_movement/move/move.hpp"
#include "ttnn/operations/data_movement/sharded/interleaved_to_sharded/interleaved_to_sharded.hpp"
#include "ttnn/operations/data_movement/sharded/reshard/reshard.hpp"
#include "ttnn/operations/data_movement/sharded/sharded_to_interleaved/sharded_to_interleaved.hpp"
#include "ttnn/operations/data_movement/tilize/tilize.hpp"
#include "ttnn/operations/data_movement/tilize_with_val_padding/tilize_with_val_padding.hpp"
#include "ttnn/operations/data_movement/untilize/untilize.hpp"
#include "ttnn/operations/data_movement/untilize_with_unpadding/untilize_with_unpadding.hpp"

namespace ttnn {

namespace cpu = ttcodegen::cpu;

namespace {

void check_copy(const Tensor& input, DataType output) {
    cpu::require_on_device(input, "Tensor to copy");
    const DataType dtype = input.dtype();
    TT_FATAL(dtype != DataType::UINT16 && dtype != DataType::UINT8,
             "ttnn.copy only supports float, bfloat and int32 inputs but got {}", dtype);
    TT_FATAL(output != DataType::UINT16 && output != DataType::UINT8,
             "ttnn.copy only supports float, bfloat and int32 output tensors but got {}", output);
    TT_FATAL(dtype == output || input.layout() == Layout::TILE,
             "Only tile layout supports dtype conversion");
}

Tensor copy_into(const Tensor& source, const Tensor& target) {
    check_copy(source, target.dtype());
    cpu::require_on_device(target, "Output tensor");
    TT_FATAL(source.logical_shape() == target.logical_shape() && source.layout() == target.layout(),
             "A tensor of shape {} cannot be copied to one of shape {}", source.logical_shape(),
             target.logical_shape());
    cpu::convert_into(source, target);
    return target;
}

Tensor in_tiles(const Tensor& input, const std::optional<MemoryConfig>& memory_config,
                std::optional<DataType> dtype) {
    cpu::require_on_device(input, "Tensor to tilize");
    TT_FATAL(input.dtype() != DataType::UINT8 && !cpu::is_block(input.dtype()),
             "Can only tilize bfloat16/float32 or int32/uint32/uint16 tensors");
    return cpu::convert(input, dtype.value_or(input.dtype()), Layout::TILE,
                        cpu::tilized_memory(input, memory_config), cpu::device_of(input));
}

}  // namespace

Tensor clone(const Tensor& input, const std::optional<DataType>& dtype,
             const std::optional<MemoryConfig>& memory_config,
             const std::optional<DeviceComputeKernelConfig>& compute_kernel_config) {
    TTCODEGEN_ON_EACH_CHIP(clone, input, dtype, memory_config, compute_kernel_config);
    cpu::require_on_device(input, "Clone: input");
    const DataType target = dtype.value_or(input.dtype());
    TT_FATAL(target == input.dtype() || input.layout() == Layout::TILE,
             "Clone: data type conversion is only supported with tile layout");
    TT_FATAL(
        !memory_config || memory_config->memory_layout() == input.memory_config().memory_layout(),
        "Clone: mixed sharded/interleaved layout not currently supported. Both input and "
        "output must have the same layout.");
    TT_FATAL(!input.is_sharded() || !memory_config || !input.shard_spec() ||
                 memory_config->shard_spec() == input.memory_config().shard_spec(),
             "Clone: input and output shard specs must be identical (same grid, shape, and "
             "orientation)");
    return cpu::convert(input, target, input.layout(),
                        cpu::output_memory_config(input, memory_config), cpu::device_of(input));
}

Tensor copy(const Tensor& src_tensor, const Tensor& dst_tensor) {
    TTCODEGEN_ON_EACH_CHIP(copy, src_tensor, dst_tensor);
    return copy_into(src_tensor, dst_tensor);
}

Tensor assign(const Tensor& input_a, const Tensor& input_b) {
    TTCODEGEN_ON_EACH_CHIP(assign, input_a, input_b);
    return copy_into(input_a, input_b);
}

Tensor assign(const Tensor& input, const MemoryConfig& output_mem_config,
              std::optional<const DataType> output_dtype,
              const std::optional<Tensor>& optional_output_tensor) {
    TTCODEGEN_ON_EACH_CHIP(assign, input, output_mem_config, output_dtype, optional_output_tensor);
    if (optional_output_tensor) {
        return copy_into(input, *optional_output_tensor);
    }
    const DataType dtype = output_dtype ? *output_dtype : input.dtype();
    check_copy(input, dtype);
    return cpu::convert(input, dtype, input.layout(), output_mem_config, cpu::device_of(input));
}

Tensor move(const Tensor& input_tensor, const std::optional<MemoryConfig>& output_mem_config) {
    TTCODEGEN_ON_EACH_CHIP(move, input_tensor, output_mem_config);
    TT_FATAL(!input_tensor.is_sharded() || !output_mem_config || output_mem_config->is_sharded(),
             "Expected output tensor memory config to be sharded");
    return reallocate(input_tensor, output_mem_config);
}

Tensor tilize(const Tensor& input, const std::optional<MemoryConfig>& memory_config,
              std::optional<DataType> output_dtype, bool use_multicore, bool use_low_perf,
              const std::optional<CoreRangeSet>& sub_core_grids) {
    TTCODEGEN_ON_EACH_CHIP(tilize, input, memory_config, output_dtype, use_multicore, use_low_perf,
                           sub_core_grids);
    TT_FATAL(input.layout() == Layout::ROW_MAJOR, "Can only tilize row major data");
    TT_FATAL(input.logical_shape()[-1] % 32 == 0,
             "Input tensor width must be divisible by TILE_WIDTH");
    TT_FATAL(input.logical_shape()[-2] % 32 == 0,
             "Input tensor height must be divisible by TILE_HEIGHT");
    return in_tiles(input, memory_config, output_dtype);
}

Tensor tilize_with_val_padding(const Tensor& input, const Shape& output_padded_shape,
                               tt::tt_metal::PadValue pad_value,
                               const std::optional<MemoryConfig>& memory_config,
                               std::optional<DataType> output_dtype, bool use_multicore,
                               const std::optional<CoreRangeSet>& sub_core_grids) {
    TTCODEGEN_ON_EACH_CHIP(tilize_with_val_padding, input, output_padded_shape, pad_value,
                           memory_config, output_dtype, use_multicore, sub_core_grids);
    if (input.layout() == Layout::TILE) {
        return input;
    }
    TT_FATAL(output_padded_shape[-1] % 32 == 0 && output_padded_shape[-2] % 32 == 0,
             "To be tilizable output tensor shape {} must be divisible by tile size (32, 32)",
             output_padded_shape);
    const Tensor tiles = in_tiles(input, memory_config, output_dtype);
    TT_FATAL(tiles.padded_shape() == output_padded_shape,
             "The CPU backend pads {} to whole tiles, {}, not to {}", input.logical_shape(),
             tiles.padded_shape(), output_padded_shape);
    return tiles;
}

Tensor tilize_with_val_padding(const Tensor& input,
                               const SmallVector<std::uint32_t>& output_padded_shape,
                               tt::tt_metal::PadValue pad_value,
                               const std::optional<MemoryConfig>& memory_config,
                               std::optional<DataType> output_dtype, bool use_multicore,
                               const std::optional<CoreRangeSet>& sub_core_grids) {
    TTCODEGEN_ON_EACH_CHIP(tilize_with_val_padding, input, output_padded_shape, pad_value,
                           memory_config, output_dtype, use_multicore, sub_core_grids);
    return tilize_with_val_padding(input, Shape(output_padded_shape), pad_value, memory_config,
                                   output_dtype, use_multicore, sub_core_grids);
}

Tensor tilize_with_zero_padding(const Tensor& input,
                                const std::optional<MemoryConfig>& memory_config,
                                std::optional<DataType> output_dtype, bool use_multicore,
                                const std::optional<CoreRangeSet>& sub_core_grids) {
    TTCODEGEN_ON_EACH_CHIP(tilize_with_zero_padding, input, memory_config, output_dtype,
                           use_multicore, sub_core_grids);
    return input.layout() == Layout::TILE ? input : in_tiles(input, memory_config, output_dtype);
}

Tensor untilize(const Tensor& input, const std::optional<MemoryConfig>& memory_config,
                bool use_multicore, const std::optional<CoreRangeSet>& sub_core_grids) {
    TTCODEGEN_ON_EACH_CHIP(untilize, input, memory_config, use_multicore, sub_core_grids);
    TT_FATAL(input.layout() == Layout::TILE, "Can only untilize tile major data");
    cpu::require_on_device(input, "Tensor to untilize");
    return to_layout(input, Layout::ROW_MAJOR, std::nullopt, memory_config);
}

Tensor untilize_with_unpadding(const Tensor& input, const Shape& output_tensor_end,
                               const std::optional<MemoryConfig>& memory_config, bool use_multicore,
                               const std::optional<CoreRangeSet>& sub_core_grids) {
    TTCODEGEN_ON_EACH_CHIP(untilize_with_unpadding, input, output_tensor_end, memory_config,
                           use_multicore, sub_core_grids);
    const Tensor rows = untilize(input, memory_config, use_multicore, sub_core_grids);
    const Shape& shape = rows.logical_shape();
    TT_FATAL(output_tensor_end.rank() == shape.rank(),
             "The end {} must have as many dimensions as the tensor, {}", output_tensor_end, shape);
    cpu::Extents ends;
    for (std::size_t i = 0; i < shape.rank(); ++i) {
        const std::size_t end = std::size_t{output_tensor_end.view()[i]} + 1;
        TT_FATAL(end <= shape.view()[i], "The end {} is beyond the tensor, {}", output_tensor_end,
                 shape);
        ends.push_back(end);
    }
    return cpu::slice(rows, cpu::Extents(shape.rank(), 0), ends, cpu::Extents(shape.rank(), 1));
}

Tensor interleaved_to_sharded(const Tensor& input_tensor, const MemoryConfig& sharded_memory_config,
                              const std::optional<DataType>& data_type_arg,
                              const std::optional<bool>& keep_l1_aligned,
                              const std::optional<Tensor>& preallocated_output) {
    TTCODEGEN_ON_EACH_CHIP(interleaved_to_sharded, input_tensor, sharded_memory_config,
                           data_type_arg, keep_l1_aligned, preallocated_output);
    TT_FATAL(!input_tensor.is_sharded(),
             "Input tensor memory layout must be INTERLEAVED, but got {}",
             input_tensor.memory_config().memory_layout());
    TT_FATAL(sharded_memory_config.is_sharded(), "Output memory config must be sharded");
    TT_FATAL(sharded_memory_config.memory_layout() != TensorMemoryLayout::BLOCK_SHARDED ||
                 sharded_memory_config.is_l1(),
             "We don't support DRAM block sharding");
    if (input_tensor.layout() == Layout::ROW_MAJOR) {
        cpu::check_row_pages(sharded_memory_config, input_tensor.dtype());
    }
    const DataType dtype = data_type_arg.value_or(input_tensor.dtype());
    TT_FATAL(!cpu::is_block(dtype) || input_tensor.layout() == Layout::TILE,
             "Output dtype BFLOAT8_B/BFLOAT4_B requires TILE layout, but input tensor layout is "
             "ROW_MAJOR");
    return to_memory_config(input_tensor, sharded_memory_config, data_type_arg,
                            preallocated_output);
}

Tensor sharded_to_interleaved(const Tensor& input_tensor, const MemoryConfig& memory_config,
                              const std::optional<DataType>& output_dtype) {
    TTCODEGEN_ON_EACH_CHIP(sharded_to_interleaved, input_tensor, memory_config, output_dtype);
    if (!input_tensor.is_sharded()) {
        return input_tensor;
    }
    TT_FATAL(!memory_config.is_sharded(), "The memory config must be interleaved");
    TT_FATAL(input_tensor.memory_config().is_l1(), "Input tensor must be in L1");
    if (input_tensor.layout() == Layout::ROW_MAJOR) {
        cpu::check_row_pages(input_tensor.memory_config(), input_tensor.dtype());
    }
    return to_memory_config(input_tensor, memory_config, output_dtype);
}

namespace {

/// Refuses rows that tt-metal 0.70.1 does not move: a row of a shard is a page.
void check_resharded_rows(const Tensor& input, const MemoryConfig& target) {
    constexpr std::size_t alignment = 16;
    const std::size_t read = input.memory_config().shard_spec().value().shape[1];
    const std::size_t written = target.shard_spec().value().shape[1];
    for (const std::size_t width : {read, written}) {
        const std::size_t bytes = width * cpu::stored_size(input.dtype());
        TT_FATAL(bytes % alignment == 0,
                 "Row-major shard width {} with data type {} gives page size {} bytes, which must "
                 "be aligned to 16 bytes",
                 width, input.dtype(), bytes);
    }
    const auto kind = target.memory_layout();
    const auto from = input.memory_config().memory_layout();
    const bool is_turned = kind != from && kind != TensorMemoryLayout::BLOCK_SHARDED &&
                           from != TensorMemoryLayout::BLOCK_SHARDED;
    TT_FATAL(!is_turned || !target.is_dram(),
             "Number of input and output pages must match: rows of {} and of {} elements", read,
             written);
}

}  // namespace

Tensor reshard(const Tensor& input_tensor, const MemoryConfig& memory_config,
               const std::optional<Tensor>& optional_output_tensor) {
    TTCODEGEN_ON_EACH_CHIP(reshard, input_tensor, memory_config, optional_output_tensor);
    TT_FATAL(input_tensor.is_sharded() && memory_config.is_sharded(),
             "Input tensor and memory config must be sharded");
    if (input_tensor.layout() == Layout::ROW_MAJOR && memory_config.shard_spec()) {
        check_resharded_rows(input_tensor, memory_config);
    }
    return to_memory_config(input_tensor, memory_config, std::nullopt, optional_output_tensor);
}

}  // namespace ttnn
