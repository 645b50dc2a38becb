#include "ttnn/operations/data_movement/concat/concat.hpp"

#include <algorithm>

#include "core/chips.hpp"
#include "core/convert.hpp"
#include "data_movement/reshape.hpp"
#include "data_movement/strided_copy.hpp"
#include "ttnn/operations/data_movement/stack/stack.hpp"

namespace ttcodegen::cpu {

namespace {

bool fits_tiles(const std::vector<Tensor>& tensors, std::size_t axis) {
    return std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& tensor) {
        return axis + 2 < tensor.logical_shape().rank() ||
               tensor.logical_shape().view()[axis] % 32 == 0;
    });
}

/// Unaligned tiles are concatenated as rows, block floats through bf16.
DataType joined_type(const std::vector<Tensor>& tensors, std::size_t axis) {
    const DataType dtype = tensors.front().dtype();
    if (tensors.front().layout() == Layout::ROW_MAJOR || fits_tiles(tensors, axis)) {
        return dtype;
    }
    TT_FATAL(dtype != DataType::UINT8 && dtype != DataType::BFLOAT4_B,
             "Can only tilize bfloat16/float32 or int32/uint32/uint16 tensors, not {}", dtype);
    return dtype == DataType::BFLOAT8_B ? DataType::BFLOAT16 : dtype;
}

void check(const std::vector<Tensor>& tensors, std::size_t axis,
           const std::optional<MemoryConfig>& memory_config) {
    const Tensor& first = tensors.front();
    for (const Tensor& tensor : tensors) {
        require_on_device(tensor, "Tensor to concatenate");
        TT_FATAL(tensor.dtype() == first.dtype(), "All Tensors should have same dtypes.");
        TT_FATAL(!tensor.memory_config().is_sharded() || memory_config || tensors.size() == 1,
                 "Sharded tensors need the memory config of the result");
        const Shape& shape = tensor.logical_shape();
        TT_FATAL(shape.rank() == first.logical_shape().rank(),
                 "Tensors to concatenate must have the same rank: {} and {}", shape,
                 first.logical_shape());
        for (std::size_t i = 0; i < shape.rank(); ++i) {
            TT_FATAL(i == axis || shape.view()[i] == first.logical_shape().view()[i],
                     "All dimensions must be the same size except for the dimension along which "
                     "the contenation is taking place: {} and {}",
                     shape, first.logical_shape());
        }
    }
}

Tensor concat(const std::vector<Tensor>& tensors, std::size_t axis,
              const std::optional<MemoryConfig>& memory_config,
              const std::optional<Tensor>& output_tensor) {
    const Tensor& first = tensors.front();
    ttsl::SmallVector<std::uint32_t> sizes(first.logical_shape().begin(),
                                           first.logical_shape().end());
    for (std::size_t i = 1; i < tensors.size(); ++i) {
        sizes[axis] += tensors[i].logical_shape().view()[axis];
    }
    const Shape shape(std::move(sizes));
    const DataType dtype = joined_type(tensors, axis);
    const Tensor output = output_tensor ? *output_tensor
                                        : allocate_like(first, shape, dtype, first.layout(),
                                                        memory_config.value_or(MemoryConfig{}));
    TT_FATAL(output.logical_shape() == shape && output.dtype() == dtype,
             "Output tensor of shape {} does not fit the result, {}", output.logical_shape(),
             shape);
    const Strides strides = signed_strides(shape);
    const std::size_t element = stored_size(dtype);
    std::byte* target = buffer_of(output).data();
    for (const Tensor& tensor : tensors) {
        const Tensor source = with_type(tensor, dtype);
        const Shape& own = tensor.logical_shape();
        strided_copy({buffer_of(source).data(), signed_strides(own)}, {target, strides},
                     extents(own), element);
        target += static_cast<std::size_t>(strides[axis]) * element * own.view()[axis];
    }
    finish_block_float(output);
    return output;
}

/// Checks that shards can be concatenated (measured; docs/library-rules.md).
void check_placement(const std::vector<Tensor>& tensors, std::size_t axis,
                     const MemoryConfig& output) {
    const MemoryConfig& first = tensors.front().memory_config();
    for (const Tensor& tensor : tensors) {
        const MemoryConfig& memory = tensor.memory_config();
        TT_FATAL(memory.is_sharded() == first.is_sharded(),
                 "All tensors must be sharded or all must be interleaved");
        TT_FATAL(!memory.is_sharded() || memory.shard_spec(),
                 "Sharded tensors must have a shard_spec, got: {}", memory.memory_layout());
        TT_FATAL(!memory.is_sharded() || memory.shard_spec()->grid == first.shard_spec()->grid,
                 "Sharded tensors must have the same grid.");
        TT_FATAL(memory.memory_layout() == first.memory_layout(),
                 "Sharded tensors must have the same memory layout.");
    }
    if (!first.is_sharded()) {
        TT_FATAL(!output.is_sharded(),
                 "Cannot concat interleaved inputs into a sharded output. Either shard the inputs "
                 "first or use an interleaved output memory config");
        return;
    }
    const TensorMemoryLayout kind = first.memory_layout();
    TT_FATAL(kind != TensorMemoryLayout::BLOCK_SHARDED, "Block sharded inputs are not supported");
    TT_FATAL(kind != TensorMemoryLayout::WIDTH_SHARDED || tensors.size() > 2,
             "Width sharded inputs are not supported for two tensors concat yet");
    TT_FATAL(output.memory_layout() == kind,
             "Sharded output and inputs must have the same memory layout.");
    TT_FATAL(output.shard_spec() && output.shard_spec()->grid == first.shard_spec()->grid,
             "Sharded output and inputs must have the same grid.");
    const std::size_t rank = tensors.front().logical_shape().rank();
    TT_FATAL(axis + 2 >= rank, "Only width or height concat on sharded tensors");
    TT_FATAL(axis + 1 == rank || kind == TensorMemoryLayout::WIDTH_SHARDED,
             "Only support height concat on width-sharded tensors.");
    TT_FATAL(axis + 2 == rank || kind == TensorMemoryLayout::HEIGHT_SHARDED,
             "Only support width concat on height-sharded tensors.");
}

}  // namespace

}  // namespace ttcodegen::cpu

namespace ttnn {

namespace cpu = ttcodegen::cpu;

Tensor concat(const std::vector<Tensor>& input_tensors, int dim,
              const std::optional<MemoryConfig>& memory_config,
              const std::optional<Tensor>& optional_output_tensor, unsigned int groups,
              const std::optional<CoreRangeSet>& sub_core_grids) {
    TTCODEGEN_ON_EACH_CHIP(concat, input_tensors, dim, memory_config, optional_output_tensor,
                           groups, sub_core_grids);
    TT_FATAL(!input_tensors.empty(), "ttnn.concat: expected a non-empty list of Tensors!");
    TT_FATAL(groups == 1, "The CPU backend concatenates in one group, not in {}", groups);
    const Tensor& first = input_tensors.front();
    const std::size_t axis = cpu::normalize_dim(dim, first.logical_shape().rank());
    cpu::check(input_tensors, axis, memory_config);
    if (input_tensors.size() > 1) {
        cpu::check_placement(input_tensors, axis, memory_config.value_or(MemoryConfig{}));
    }
    if (input_tensors.size() == 1 && !optional_output_tensor &&
        memory_config.value_or(MemoryConfig{}) == first.memory_config()) {
        return first;
    }
    return cpu::concat(input_tensors, axis, memory_config, optional_output_tensor);
}

Tensor stack(const std::vector<Tensor>& input_tensors, int dim) {
    TTCODEGEN_ON_EACH_CHIP(stack, input_tensors, dim);
    TT_FATAL(!input_tensors.empty(), "ttnn.stack: expected a non-empty list of Tensors!");
    const Shape& shape = input_tensors.front().logical_shape();
    const std::size_t axis = cpu::normalize_dim(dim, shape.rank() + 1);
    SmallVector<std::uint32_t> sizes(shape.begin(), shape.end());
    const std::uint32_t one = 1;
    sizes.insert(sizes.begin() + axis, one);
    std::vector<Tensor> unsqueezed;
    for (const Tensor& tensor : input_tensors) {
        TT_FATAL(tensor.logical_shape() == shape,
                 "All input tensors must have the same shape to be stacked: {} and {}",
                 tensor.logical_shape(), shape);
        unsqueezed.push_back(cpu::reshape(tensor, Shape(sizes), std::nullopt));
    }
    return concat(unsqueezed, static_cast<int>(axis));
}

}  // namespace ttnn
