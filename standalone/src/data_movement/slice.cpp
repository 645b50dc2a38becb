#include "ttnn/operations/data_movement/slice/slice.hpp"

#include <algorithm>

#include "core/chips.hpp"
#include "core/convert.hpp"
#include "core/result_shards.hpp"
#include "data_movement/slice.hpp"
#include "data_movement/strided_copy.hpp"
#include "ttnn/operations/data_movement/chunk/chunk.hpp"
#include "ttnn/operations/data_movement/split/split.hpp"

namespace ttcodegen::cpu {

namespace {

/// Returns whether the slice begins at a tile: whole tiles are moved then, and the rest is padding.
bool begins_at_tile(const Shape& shape, const Extents& begins, const Extents& steps) {
    const std::size_t rank = shape.rank();
    // A vector is in the first row of its tiles, which is not a whole tile.
    if (rank < 2) {
        return false;
    }
    for (std::size_t i = rank - 2; i < rank; ++i) {
        if (begins[i] % kTileSide != 0 || steps[i] != 1) {
            return false;
        }
    }
    return true;
}

bool is_strided(const Extents& steps) {
    return std::any_of(steps.begin(), steps.end(), [](std::size_t step) { return step != 1; });
}

/// The data type of the result; refuses slices that the device does not support.
DataType sliced_type(const Tensor& input, const Extents& begins, const Extents& steps,
                     bool is_empty) {
    const DataType dtype = input.dtype();
    if (input.layout() == Layout::ROW_MAJOR) {
        return dtype;
    }
    TT_FATAL(dtype != DataType::BFLOAT8_B || !is_strided(steps),
             "Strided slice is not supported for BFLOAT8 tensors");
    if (is_empty || begins_at_tile(input.logical_shape(), begins, steps)) {
        return dtype;
    }
    TT_FATAL(dtype != DataType::BFLOAT4_B && dtype != DataType::UINT8,
             "A slice of a tensor of {} must begin at a tile", dtype);
    return dtype == DataType::BFLOAT8_B ? DataType::BFLOAT16 : dtype;
}

MemoryConfig sliced_memory(const Tensor& input, const Shape& result,
                           const std::optional<MemoryConfig>& asked, bool whole, bool strided) {
    if (asked || whole || !input.is_sharded()) {
        return output_memory_config(input, asked);
    }
    TT_FATAL(!strided, "Strided slice is not supported for sharded tensor");
    TT_FATAL(input.memory_config().memory_layout() != TensorMemoryLayout::BLOCK_SHARDED,
             "ttnn::slice does not support implicit memory_config inheritance for BLOCK_SHARDED "
             "tensors");
    TT_FATAL(input.layout() == Layout::ROW_MAJOR ||
                 (result[-1] % kTileSide == 0 && result[-2] % kTileSide == 0),
             "Physical shards of a slice must be tile {32, 32} sized!");
    return moved_memory(input, result, std::nullopt, false);
}

}  // namespace

Tensor slice(const Tensor& input, const Extents& begins, const Extents& ends, const Extents& steps,
             const std::optional<MemoryConfig>& memory_config,
             const std::optional<Tensor>& output_tensor) {
    const Shape& shape = input.logical_shape();
    ttsl::SmallVector<std::uint32_t> sizes;
    const Strides strides = signed_strides(shape);
    Strides stepped;
    std::ptrdiff_t first = 0;
    bool whole = true;
    for (std::size_t i = 0; i < shape.rank(); ++i) {
        sizes.push_back(
            static_cast<std::uint32_t>((ends[i] - begins[i] + steps[i] - 1) / steps[i]));
        whole = whole && sizes.back() == shape.view()[i];
        stepped.push_back(strides[i] * static_cast<std::ptrdiff_t>(steps[i]));
        first += strides[i] * static_cast<std::ptrdiff_t>(begins[i]);
    }
    buffer_of(input);
    const Shape result(std::move(sizes));
    const MemoryConfig target =
        sliced_memory(input, result, memory_config, whole, is_strided(steps));
    if (whole && !output_tensor && target == input.memory_config()) {
        return input;
    }
    TT_FATAL(on_device(input), "Device Operations expect tensor with Device storage in inputs");
    if (is_sharded_in_dram(input)) {
        TT_FATAL(input.layout() == Layout::TILE,
                 "Only L1 buffers can have an associated circular buffer!");
        TT_FATAL(begins_at_tile(shape, begins, steps),
                 "Multicore implementation doesn't support DRAM sharding");
    }
    const DataType dtype = sliced_type(input, begins, steps, result.volume() == 0);
    const Tensor output = output_tensor
                              ? *output_tensor
                              : allocate_like(input, result, dtype, input.layout(), target);
    TT_FATAL(output.logical_shape() == result && output.dtype() == dtype,
             "Output tensor of shape {} and {} does not fit the slice, {} and {}",
             output.logical_shape(), output.dtype(), result, dtype);
    const Tensor source = with_type(input, dtype);
    Buffer& buffer = buffer_of(output);
    buffer.forget_derived();
    const std::size_t element = stored_size(dtype);
    strided_copy({buffer_of(source).data() + static_cast<std::size_t>(first) * element, stepped},
                 {buffer.data(), signed_strides(result)}, extents(result), element);
    finish_block_float(output);
    return output;
}

Tensor slice_along(const Tensor& input, std::size_t dim, std::size_t begin, std::size_t end,
                   const std::optional<MemoryConfig>& memory_config) {
    Extents begins(input.logical_shape().rank(), 0);
    Extents ends = extents(input.logical_shape());
    begins[dim] = begin;
    ends[dim] = end;
    const Extents steps(begins.size(), 1);
    return slice(input, begins, ends, steps, memory_config);
}

namespace {

/// The caller's bounds, clamped to the shape; negative ones count from the end.
template <typename T>
Tensor slice_with_bounds(const Tensor& input, ttsl::Span<const T> begins, ttsl::Span<const T> ends,
                         ttsl::Span<const T> steps,
                         const std::optional<MemoryConfig>& memory_config,
                         const std::optional<Tensor>& output_tensor) {
    const Shape& shape = input.logical_shape();
    const std::size_t rank = shape.rank();
    TT_FATAL(begins.size() == rank && ends.size() == rank && steps.size() == rank,
             "Input rank {} and begins {}, ends {}, step {} must have the same size", rank,
             begins.size(), ends.size(), steps.size());
    Extents from;
    Extents to;
    Extents by;
    for (std::size_t i = 0; i < rank; ++i) {
        const auto size = static_cast<std::int64_t>(shape.view()[i]);
        const auto wrapped = [size](std::int64_t bound) {
            return bound < 0 ? bound + size : bound;
        };
        const std::int64_t begin = wrapped(static_cast<std::int64_t>(begins[i]));
        const std::int64_t end = wrapped(static_cast<std::int64_t>(ends[i]));
        const auto step = static_cast<std::int64_t>(steps[i]);
        TT_FATAL(step > 0, "The step of a slice must be positive, not {}", step);
        TT_FATAL(end <= size, "Ends {} must be less than or equal to the shape of the tensor {}",
                 end, size);
        TT_FATAL(begin >= 0 && begin <= end, "Begins {} must be less than or equal to ends {}",
                 begin, end);
        from.push_back(static_cast<std::size_t>(begin));
        to.push_back(static_cast<std::size_t>(end));
        by.push_back(static_cast<std::size_t>(step));
    }
    return slice(input, from, to, by, memory_config, output_tensor);
}

}  // namespace

}  // namespace ttcodegen::cpu

namespace ttnn {

namespace cpu = ttcodegen::cpu;

template <typename T>
Tensor slice(const Tensor& input_tensor, ttsl::Span<const T> begins, ttsl::Span<const T> ends,
             ttsl::Span<const T> step, const std::optional<MemoryConfig>& memory_config,
             const std::optional<Tensor>& optional_output_tensor,
             const std::optional<float>& pad_value,
             const std::optional<CoreRangeSet>& sub_core_grids) {
    TTCODEGEN_ON_EACH_CHIP(slice, input_tensor, begins, ends, step, memory_config,
                           optional_output_tensor, pad_value, sub_core_grids);
    return cpu::slice_with_bounds<T>(input_tensor, begins, ends, step, memory_config,
                                     optional_output_tensor);
}

template <typename T, std::size_t N>
Tensor slice(const Tensor& input_tensor, const std::array<T, N>& output_tensor_start,
             const std::array<T, N>& output_tensor_end, const std::array<T, N>& step,
             const std::optional<MemoryConfig>& memory_config,
             const std::optional<Tensor>& optional_output_tensor,
             const std::optional<float>& pad_value,
             const std::optional<CoreRangeSet>& sub_core_grids) {
    TTCODEGEN_ON_EACH_CHIP(slice, input_tensor, output_tensor_start, output_tensor_end, step,
                           memory_config, optional_output_tensor, pad_value, sub_core_grids);
    return cpu::slice_with_bounds<T>(input_tensor, output_tensor_start, output_tensor_end, step,
                                     memory_config, optional_output_tensor);
}

template <typename T>
Tensor slice(const Tensor& input_tensor, const Tensor& output_tensor_start,
             const Tensor& output_tensor_end, const std::optional<SmallVector<T>>& step,
             const std::optional<MemoryConfig>& memory_config,
             const std::optional<Tensor>& optional_output_tensor,
             const std::optional<float>& pad_value, const std::optional<std::uint32_t>& slice_dim,
             const std::optional<std::uint32_t>& num_devices,
             const std::optional<CoreRangeSet>& sub_core_grids) {
    TTCODEGEN_ON_EACH_CHIP(slice, input_tensor, output_tensor_start, output_tensor_end, step,
                           memory_config, optional_output_tensor, pad_value, slice_dim, num_devices,
                           sub_core_grids);
    const bool whole_steps =
        !step || std::all_of(step->begin(), step->end(), [](T size) { return size == 1; });
    if (input_tensor.layout() == Layout::TILE && whole_steps) {
        TT_FATAL(slice_dim && num_devices,
                 "slice_dim and num_devices must be provided for device-only tensor args slice");
    } else {
        // The release reads the bounds back as numbers of the type T, which is uint32_t.
        for (const Tensor& bounds : {output_tensor_start, output_tensor_end}) {
            TT_FATAL(bounds.dtype() == DataType::UINT32,
                     "Unsupported data type for to_vector: got {}, expected: UINT32",
                     bounds.dtype());
        }
    }
    const auto begins = cpu::load_integers(output_tensor_start);
    const auto ends = cpu::load_integers(output_tensor_end);
    const SmallVector<T> steps =
        step.value_or(SmallVector<T>(input_tensor.logical_shape().rank(), 1));
    const SmallVector<std::int64_t> wide_steps(steps.begin(), steps.end());
    return cpu::slice_with_bounds<std::int64_t>(
        input_tensor, {begins.get(), output_tensor_start.logical_volume()},
        {ends.get(), output_tensor_end.logical_volume()}, {wide_steps.data(), wide_steps.size()},
        memory_config, optional_output_tensor);
}

#define INSTANTIATE_SLICE(T)                                                            \
    template Tensor slice<T>(const Tensor&, ttsl::Span<const T>, ttsl::Span<const T>,   \
                             ttsl::Span<const T>, const std::optional<MemoryConfig>&,   \
                             const std::optional<Tensor>&, const std::optional<float>&, \
                             const std::optional<CoreRangeSet>&);
INSTANTIATE_SLICE(std::int32_t)
INSTANTIATE_SLICE(std::uint32_t)
#undef INSTANTIATE_SLICE
template Tensor slice<std::uint32_t, 4>(const Tensor&, const std::array<std::uint32_t, 4>&,
                                        const std::array<std::uint32_t, 4>&,
                                        const std::array<std::uint32_t, 4>&,
                                        const std::optional<MemoryConfig>&,
                                        const std::optional<Tensor>&, const std::optional<float>&,
                                        const std::optional<CoreRangeSet>&);
template Tensor slice<std::uint32_t>(const Tensor&, const Tensor&, const Tensor&,
                                     const std::optional<SmallVector<std::uint32_t>>&,
                                     const std::optional<MemoryConfig>&,
                                     const std::optional<Tensor>&, const std::optional<float>&,
                                     const std::optional<std::uint32_t>&,
                                     const std::optional<std::uint32_t>&,
                                     const std::optional<CoreRangeSet>&);

std::vector<Tensor> split(const Tensor& input_tensor, const SmallVector<std::int64_t>& split_sizes,
                          std::int64_t dim, const std::optional<MemoryConfig>& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(split, input_tensor, split_sizes, dim, memory_config);
    const Shape& shape = input_tensor.logical_shape();
    const std::size_t axis = cpu::normalize_dim(dim, shape.rank());
    std::vector<Tensor> parts;
    std::size_t begin = 0;
    for (const std::int64_t size : split_sizes) {
        TT_FATAL(size >= 0 && begin + static_cast<std::size_t>(size) <= shape.view()[axis],
                 "Split sizes exceed the dimension of size {}", shape.view()[axis]);
        const std::size_t end = begin + static_cast<std::size_t>(size);
        parts.push_back(cpu::slice_along(input_tensor, axis, begin, end, memory_config));
        begin = end;
    }
    TT_FATAL(begin == shape.view()[axis], "Split sizes sum to {}, but the dimension has {}", begin,
             shape.view()[axis]);
    return parts;
}

std::vector<Tensor> split(const Tensor& input_tensor, std::int64_t split_size, std::int64_t dim,
                          const std::optional<MemoryConfig>& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(split, input_tensor, split_size, dim, memory_config);
    TT_FATAL(split_size > 0, "The size of a split must be positive, not {}", split_size);
    const Shape& shape = input_tensor.logical_shape();
    const auto size =
        static_cast<std::int64_t>(shape.view()[cpu::normalize_dim(dim, shape.rank())]);
    SmallVector<std::int64_t> sizes;
    for (std::int64_t begin = 0; begin < size; begin += split_size) {
        sizes.push_back(std::min(split_size, size - begin));
    }
    return split(input_tensor, sizes, dim, memory_config);
}

std::vector<Tensor> chunk(const Tensor& input_tensor, std::uint32_t num_chunks, int dim) {
    TTCODEGEN_ON_EACH_CHIP(chunk, input_tensor, num_chunks, dim);
    TT_FATAL(num_chunks > 0, "The number of chunks must be positive");
    const Shape& shape = input_tensor.logical_shape();
    const std::uint32_t size = shape.view()[cpu::normalize_dim(dim, shape.rank())];
    const std::uint32_t chunk_size = (size + num_chunks - 1) / num_chunks;
    return split(input_tensor, static_cast<std::int64_t>(chunk_size), dim, std::nullopt);
}

}  // namespace ttnn
