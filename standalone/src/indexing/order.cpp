// Operations that compare elements along a dimension: sort, topk, argmax.

#include <cmath>
#include <numeric>
#include <type_traits>
#include <vector>

#include "core/chips.hpp"
#include "core/result_shards.hpp"
#include "indexing/lanes.hpp"
#include "ttnn/operations/data_movement/sort/sort.hpp"
#include "ttnn/operations/reduction/argmax/argmax.hpp"
#include "ttnn/operations/reduction/topk/topk.hpp"

namespace ttcodegen::cpu {

namespace {

/// Dimensions below this size have u16 indices.
constexpr std::size_t kWideIndices = 65536;

DataType index_type(std::size_t size) {
    return size < kWideIndices ? DataType::UINT16 : DataType::UINT32;
}

void store_index(const Tensor& indices, std::size_t position, std::size_t index) {
    const auto wide = static_cast<std::int64_t>(index);
    const DataType dtype = indices.dtype();
    store_integers(&wide, 1, dtype, buffer_of(indices).data() + position * stored_size(dtype));
}

/// Compares floats; NaN is the greatest value.
bool less(float a, float b) { return a < b || (std::isnan(b) && !std::isnan(a)); }

/// The first `count` values of each lane in sorted order, and their indices. The sort is
/// stable.
std::vector<Tensor> ordered(const Tensor& input, std::size_t dim, std::size_t count,
                            bool descending, const std::optional<MemoryConfig>& memory_config,
                            const std::optional<std::tuple<Tensor&, Tensor&>>& outputs) {
    const Shape& shape = input.logical_shape();
    const Lanes lanes(shape, dim);
    const Shape result = with_size(shape, dim, count);
    const MemoryConfig& target = output_memory_config(input, memory_config);
    const Tensor values = outputs
                              ? std::get<0>(*outputs)
                              : allocate_like(input, result, input.dtype(), input.layout(), target);
    const Tensor indices =
        outputs ? std::get<1>(*outputs)
                : allocate_like(input, result, index_type(lanes.size), input.layout(), target);
    TT_FATAL(values.logical_shape() == result && indices.logical_shape() == result,
             "The output tensors must have the shape {}", result);
    TT_FATAL(indices.dtype() == DataType::UINT16 || indices.dtype() == DataType::UINT32,
             "Output indices tensor dtype must be UINT16 or UINT32. Got output indices tensor "
             "dtype: {}",
             indices.dtype());
    const FloatElements elements_of_input(input);
    const DataType dtype = values.dtype();
    std::byte* stored = buffer_of(values).data();
    const Lanes result_lanes(result, dim);
    for_each_lane(lanes, [&](std::size_t lane) {
        const float* first = elements_of_input.data() + lanes.first(lane);
        std::vector<std::size_t> order(lanes.size);
        std::iota(order.begin(), order.end(), std::size_t{0});
        const auto before = [&](std::size_t a, std::size_t b) {
            const float left = first[a * lanes.inner];
            const float right = first[b * lanes.inner];
            if (less(left, right) || less(right, left)) {
                return descending ? less(right, left) : less(left, right);
            }
            return a < b;
        };
        std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
                          order.end(), before);
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t position = result_lanes.first(lane) + i * lanes.inner;
            store_floats(first + order[i] * lanes.inner, 1, dtype,
                         stored + position * stored_size(dtype));
            store_index(indices, position, order[i]);
        }
    });
    finish_block_float(values);
    return {values, indices};
}

void check_argmax_input(const Tensor& input, bool has_dim) {
    TT_FATAL(on_device(input), "Input tensor must be on device");
    const DataType dtype = input.dtype();
    if (input.layout() == Layout::TILE) {
        TT_FATAL(dtype == DataType::BFLOAT16 || dtype == DataType::FLOAT32,
                 "Only BFLOAT16, FLOAT32 are supported for inputs with TILE layout, got {}", dtype);
        TT_FATAL(has_dim || input.logical_shape().rank() == 0,
                 "For inputs with TILE layout, dim parameter must be specified!");
    } else {
        TT_FATAL(dtype != DataType::UINT8 && !is_block(dtype),
                 "Only BFLOAT16, FLOAT32, INT32, UINT32, and UINT16 are supported for inputs with "
                 "ROW_MAJOR layout, got {}",
                 dtype);
    }
}

Tensor argmax_output(const Tensor& input, const Shape& shape,
                     const std::optional<MemoryConfig>& memory_config,
                     const std::optional<Tensor>& output) {
    if (!output) {
        // Scalars and empty tensors are not computed: the result is made like the input.
        const bool is_trivial = input.logical_shape().rank() == 0 || input.logical_volume() == 0;
        TT_FATAL(!input.is_sharded() || memory_config,
                 "The shards of the input are none of the result, whose memory must be given");
        return allocate_like(input, shape, DataType::UINT32,
                             is_trivial ? input.layout() : Layout::ROW_MAJOR,
                             output_memory_config(input, memory_config));
    }
    TT_FATAL(output->dtype() == DataType::UINT32, "Only UINT32 is supported for outputs, got {}",
             output->dtype());
    TT_FATAL(output->layout() == Layout::ROW_MAJOR,
             "Output tensor must have ROW_MAJOR layout, got {}", output->layout());
    TT_FATAL(output->logical_shape() == shape, "The output tensor must have the shape {}", shape);
    return *output;
}

template <typename Value>
bool is_nan(Value value) {
    if constexpr (std::is_floating_point_v<Value>) {
        return std::isnan(value);
    } else {
        return false;
    }
}

/// The first position of the maximum of `count` values. For bfloat16 the kernel compares bits, so
/// NaN is greater than all numbers; for f32 it is never the maximum.
template <typename Value>
std::uint32_t largest(const Value* values, std::size_t count, bool prefers_nan) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < count; ++i) {
        const bool differ = is_nan(values[i]) != is_nan(values[best]);
        const bool better = differ ? is_nan(values[i]) == prefers_nan : values[i] > values[best];
        best = better ? i : best;
    }
    return static_cast<std::uint32_t>(best);
}

template <typename Values>
void store_largest(const Values& values, std::size_t size, bool prefers_nan, const Tensor& output) {
    const auto indices = mutable_elements<std::uint32_t>(output);
    for (std::size_t i = 0; i < indices.size(); ++i) {
        indices[i] = largest(values + i * size, size, prefers_nan);
    }
}

Tensor argmax(const Tensor& input, const std::optional<int>& dim, bool keepdim,
              const std::optional<MemoryConfig>& memory_config,
              const std::optional<Tensor>& output_tensor) {
    check_argmax_input(input, dim.has_value());
    const Shape& shape = input.logical_shape();
    const std::size_t rank = shape.rank();
    std::size_t size = shape.volume();
    ttsl::SmallVector<std::uint32_t> sizes;
    // A scalar has no dimension to be out of range.
    if (dim && rank > 0) {
        const auto signed_rank = static_cast<int>(rank);
        TT_FATAL(*dim >= -signed_rank && *dim < signed_rank,
                 "Invalid reduction dimension {} for input tensor with rank {}", *dim, rank);
        const std::size_t axis = normalize_dim(*dim, rank);
        TT_FATAL(axis + 1 == rank,
                 "Only argmax on last dim is supported! Got dim={} (normalized={}), expected {}",
                 *dim, axis, rank - 1);
        size = shape.view()[axis];
        TT_FATAL(size > 0, "Expected reduction dim {} to have non-zero size", axis);
        sizes.append(shape.begin(), shape.end() - 1);
        if (keepdim) {
            sizes.push_back(1);
        }
    } else {
        TT_FATAL(size > 0, "Expected reduction dim 0 to have non-zero size");
        sizes.resize(keepdim ? rank : 0, 1);
    }
    const Tensor output =
        argmax_output(input, Shape(std::move(sizes)), memory_config, output_tensor);
    if (is_integer(input.dtype())) {
        store_largest(load_integers(input).get(), size, false, output);
    } else {
        store_largest(FloatElements(input).data(), size, input.dtype() == DataType::BFLOAT16,
                      output);
    }
    return output;
}

}  // namespace

}  // namespace ttcodegen::cpu

namespace ttnn {

namespace cpu = ttcodegen::cpu;

std::vector<Tensor> sort(const Tensor& input, std::int8_t dim, bool descending, bool stable,
                         const std::optional<MemoryConfig>& memory_config,
                         std::optional<std::tuple<Tensor&, Tensor&>> optional_output_tensors) {
    TTCODEGEN_ON_EACH_CHIP(sort, input, dim, descending, stable, memory_config,
                           optional_output_tensors);
    cpu::require_on_device(input, "Tensor to sort");
    cpu::require_interleaved(input, memory_config);
    const std::size_t rank = input.logical_shape().rank();
    const std::size_t axis = cpu::normalize_dim(dim, rank);
    TT_FATAL(input.layout() == Layout::TILE ||
                 (input.logical_shape().view()[axis] == 1 && axis + 1 < rank),
             "The input must be in tiled format");
    const DataType dtype = input.dtype();
    TT_FATAL(dtype == DataType::BFLOAT16 || dtype == DataType::UINT16 || dtype == DataType::FLOAT32,
             "Input tensor data type must be BFLOAT16, UINT16, or FLOAT32, got {}", dtype);
    TT_FATAL(rank < 5 || axis + 1 == rank,
             "A tensor of rank {} can be sorted along its last dimension only", rank);
    return cpu::ordered(input, axis, input.logical_shape().view()[axis], descending, memory_config,
                        optional_output_tensors);
}

std::vector<Tensor> topk(const Tensor& input, std::uint32_t k, std::int8_t dim, bool largest,
                         bool sorted, const std::optional<MemoryConfig>& memory_config,
                         const std::optional<CoreRangeSet>& sub_core_grids,
                         const std::optional<Tensor>& indices_tensor,
                         std::optional<std::tuple<Tensor&, Tensor&>> preallocated_output_tensors) {
    TTCODEGEN_ON_EACH_CHIP(topk, input, k, dim, largest, sorted, memory_config, sub_core_grids,
                           indices_tensor, preallocated_output_tensors);
    TT_FATAL(cpu::on_device(input), "Input tensor must be on device");
    TT_FATAL(!cpu::output_memory_config(input, memory_config).is_sharded(),
             "Sharded implementation not supported yet");
    TT_FATAL(input.layout() == Layout::TILE, "The input must be in tiled format");
    const DataType dtype = input.dtype();
    TT_FATAL(dtype == DataType::BFLOAT16 || dtype == DataType::BFLOAT8_B,
             "Input tensor must be BFLOAT16, or BFLOAT8_B, got: {}", dtype);
    TT_FATAL(!indices_tensor, "The CPU backend numbers the elements itself: no indices_tensor");
    const Shape& shape = input.logical_shape();
    const auto rank = static_cast<int>(shape.rank());
    TT_FATAL(dim >= -rank && dim < rank,
             "Dimension for topk is out of range (expected to be in range of [{}, {}])", -rank,
             rank - 1);
    const std::size_t axis = cpu::normalize_dim(dim, shape.rank());
    TT_FATAL(k <= shape.view()[axis],
             "K cannot be larger than the dimension size! K={}, dimension size={}", k,
             shape.view()[axis]);
    if (k == 0) {
        // Without elements both results are the same empty tensor of values.
        const Tensor nothing =
            cpu::allocate_like(input, cpu::with_size(shape, axis, 0), dtype, Layout::TILE,
                               cpu::output_memory_config(input, memory_config));
        return {nothing, nothing};
    }
    return cpu::ordered(input, axis, k, largest, memory_config, preallocated_output_tensors);
}

Tensor argmax(const Tensor& input_tensor, const std::optional<int>& dim, bool keepdim,
              const std::optional<CoreRangeSet>& sub_core_grids, bool use_multicore,
              const std::optional<MemoryConfig>& memory_config,
              std::optional<Tensor> optional_output_tensor) {
    TTCODEGEN_ON_EACH_CHIP(argmax, input_tensor, dim, keepdim, sub_core_grids, use_multicore,
                           memory_config, optional_output_tensor);
    cpu::require_interleaved(input_tensor, memory_config);
    TT_FATAL(!use_multicore || input_tensor.layout() == Layout::ROW_MAJOR,
             "Multicore argmax only supports ROW_MAJOR layout for inputs, got {}",
             input_tensor.layout());
    return cpu::argmax(input_tensor, dim, keepdim, memory_config, optional_output_tensor);
}

}  // namespace ttnn
