#include "ttnn/operations/data_movement/repeat/repeat.hpp"

#include <algorithm>

#include "core/chips.hpp"
#include "core/result_shards.hpp"
#include "data_movement/reshape.hpp"
#include "data_movement/strided_copy.hpp"
#include "ttnn/operations/data_movement/concat/concat.hpp"
#include "ttnn/operations/data_movement/expand/expand.hpp"
#include "ttnn/operations/data_movement/repeat_interleave/repeat_interleave.hpp"
#include "ttnn/operations/data_movement/roll/roll.hpp"

namespace ttcodegen::cpu {

namespace {

/// Repeats dimension i `counts[i]` times, and each of its elements `inner[i]` times.
Tensor repeated(const Tensor& input, const Extents& counts, const Extents& inner,
                const std::optional<MemoryConfig>& memory_config) {
    const Shape& shape = input.logical_shape();
    const Strides own = signed_strides(shape);
    ttsl::SmallVector<std::uint32_t> sizes;
    for (std::size_t i = 0; i < shape.rank(); ++i) {
        sizes.push_back(static_cast<std::uint32_t>(counts[i] * inner[i]) * shape.view()[i]);
    }
    const Shape result(std::move(sizes));
    const Tensor output = allocate_like(input, result, input.dtype(), input.layout(),
                                        output_memory_config(input, memory_config));
    const Strides whole = signed_strides(result);
    Extents loops;
    Strides from;
    Strides to;
    for (std::size_t i = 0; i < shape.rank(); ++i) {
        const auto within = static_cast<std::ptrdiff_t>(inner[i]);
        const auto size = static_cast<std::ptrdiff_t>(shape.view()[i]);
        const Extents triple{counts[i], shape.view()[i], inner[i]};
        loops.append(triple.begin(), triple.end());
        const Strides source{0, own[i], 0};
        from.append(source.begin(), source.end());
        const Strides target{whole[i] * within * size, whole[i] * within, whole[i]};
        to.append(target.begin(), target.end());
    }
    strided_copy({buffer_of(input).data(), from}, {buffer_of(output).data(), to}, loops,
                 stored_size(input.dtype()));
    finish_block_float(output);
    return output;
}

bool all_ones(const Extents& counts) {
    return std::all_of(counts.begin(), counts.end(), [](std::size_t count) { return count == 1; });
}

Tensor repeat(const Tensor& input, ttsl::Span<const std::uint32_t> repetitions,
              const std::optional<MemoryConfig>& memory_config) {
    require_on_device(input, "Tensor to repeat");
    TT_FATAL(!is_sharded_in_dram(input), "Input tensor must be in L1");
    const Shape& shape = input.logical_shape();
    const std::size_t rank = std::max(shape.rank(), repetitions.size());
    const Tensor tensor =
        rank == shape.rank() ? input : reshape(input, shape.to_rank(rank), std::nullopt);
    Extents counts(rank - repetitions.size(), 1);
    counts.append(repetitions.begin(), repetitions.end());
    TT_FATAL(std::find(counts.begin(), counts.end(), std::size_t{0}) == counts.end(),
             "Tensor volume is not 0, but shape volume is 0");
    if (all_ones(counts)) {
        return tensor;
    }
    const DataType dtype = input.dtype();
    const bool block = dtype == DataType::BFLOAT8_B && input.layout() == Layout::TILE;
    TT_FATAL(block || (!is_block(dtype) && dtype != DataType::UINT8),
             "A tensor of {} cannot be repeated", dtype);
    return repeated(tensor, counts, Extents(rank, 1), memory_config);
}

}  // namespace

}  // namespace ttcodegen::cpu

namespace ttnn {

namespace cpu = ttcodegen::cpu;

Tensor repeat(const Tensor& input_tensor, const SmallVector<std::uint32_t>& repetition_vector,
              const std::optional<MemoryConfig>& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(repeat, input_tensor, repetition_vector, memory_config);
    return cpu::repeat(input_tensor, {repetition_vector.data(), repetition_vector.size()},
                       memory_config);
}

Tensor repeat(const Tensor& input_tensor, const Shape& repeat_dims) {
    TTCODEGEN_ON_EACH_CHIP(repeat, input_tensor, repeat_dims);
    return cpu::repeat(input_tensor, repeat_dims.view(), std::nullopt);
}

Tensor repeat_interleave(const Tensor& input, std::uint32_t repeats, std::int32_t dim,
                         const std::optional<MemoryConfig>& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(repeat_interleave, input, repeats, dim, memory_config);
    cpu::require_on_device(input, "Tensor to repeat");
    const std::size_t rank = input.logical_shape().rank();
    const std::size_t axis = cpu::normalize_dim(dim, rank);
    TT_FATAL(repeats > 0, "ttnn.concat: expected a non-empty list of Tensors!");
    if (repeats == 1) {
        return input;
    }
    TT_FATAL(rank > 1, "A tensor of rank 1 cannot be repeated by repeat_interleave");
    TT_FATAL(!input.memory_config().is_sharded(),
             "Sharded output and inputs must have the same memory layout.");
    cpu::Extents inner(rank, 1);
    inner[axis] = repeats;
    // The result is in DRAM whatever is requested, like the result of a concatenation without a
    // memory config.
    return cpu::repeated(input, cpu::Extents(rank, 1), inner, MemoryConfig{});
}

Tensor expand(const Tensor& tensor, ttsl::Span<const std::int32_t> shape_vector,
              const std::optional<MemoryConfig>& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(expand, tensor, shape_vector, memory_config);
    const Shape& shape = tensor.logical_shape();
    TT_FATAL(shape_vector.size() >= shape.rank(),
             "A tensor of rank {} cannot be expanded to rank {}", shape.rank(),
             shape_vector.size());
    const std::size_t added = shape_vector.size() - shape.rank();
    SmallVector<std::uint32_t> counts;
    for (std::size_t i = 0; i < shape_vector.size(); ++i) {
        const std::uint32_t size = i < added ? 1 : shape.view()[i - added];
        const bool keep =
            shape_vector[i] == -1 || static_cast<std::uint32_t>(shape_vector[i]) == size;
        TT_FATAL(keep || size == 1, "Only size 1 dimensions can be expanded in the output shape");
        counts.push_back(keep ? 1 : static_cast<std::uint32_t>(shape_vector[i]));
    }
    return cpu::repeat(tensor, {counts.data(), counts.size()}, memory_config);
}

Tensor roll(const Tensor& input, int shifts, int dim) {
    TTCODEGEN_ON_EACH_CHIP(roll, input, shifts, dim);
    cpu::require_on_device(input, "Tensor to roll");
    const Shape& shape = input.logical_shape();
    const std::size_t axis = cpu::normalize_dim(dim, shape.rank());
    const auto size = static_cast<std::int64_t>(shape.view()[axis]);
    const std::int64_t shift = size == 0 ? 0 : ((shifts % size) + size) % size;
    if (shift == 0) {
        return input;
    }
    const Tensor output =
        cpu::allocate_like(input, shape, input.dtype(), input.layout(), input.memory_config());
    const cpu::Strides strides = cpu::signed_strides(shape);
    const std::size_t step =
        static_cast<std::size_t>(strides[axis]) * cpu::stored_size(input.dtype());
    const auto shifted = static_cast<std::size_t>(shift);
    cpu::Extents head = cpu::extents(shape);
    cpu::Extents tail = head;
    head[axis] -= shifted;
    tail[axis] = shifted;
    const std::byte* source = cpu::buffer_of(input).data();
    std::byte* target = cpu::buffer_of(output).data();
    cpu::strided_copy({source, strides}, {target + shifted * step, strides}, head,
                      cpu::stored_size(input.dtype()));
    cpu::strided_copy({source + head[axis] * step, strides}, {target, strides}, tail,
                      cpu::stored_size(input.dtype()));
    cpu::finish_block_float(output);
    return output;
}

Tensor roll(const Tensor& input_tensor, const SmallVector<int>& shifts,
            const SmallVector<int>& input_dims) {
    TTCODEGEN_ON_EACH_CHIP(roll, input_tensor, shifts, input_dims);
    TT_FATAL(shifts.size() == input_dims.size(), "Shifts and dimensions must have the same size");
    Tensor rolled = input_tensor;
    for (std::size_t i = 0; i < shifts.size(); ++i) {
        rolled = roll(rolled, shifts[i], input_dims[i]);
    }
    return rolled;
}

}  // namespace ttnn
