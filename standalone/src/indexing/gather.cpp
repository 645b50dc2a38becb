#include "ttnn/operations/data_movement/gather/gather.hpp"

#include <cstring>

#include "core/chips.hpp"
#include "core/convert.hpp"
#include "core/result_shards.hpp"
#include "indexing/lanes.hpp"
#include "ttnn/operations/data_movement/scatter/scatter.hpp"

namespace ttcodegen::cpu {

namespace {

void check_dim(const char* operation, int dim, std::size_t rank) {
    const auto signed_rank = static_cast<int>(rank);
    TT_FATAL(dim >= -signed_rank && dim < signed_rank,
             "{}: dim {} is out of range for tensor rank {}", operation, dim, rank);
}

/// Handling of indices out of range; the release's scatter skips them.
enum class Outside { kRefuse, kSkip };

/// Iterates over the elements of `index`: `body(position in index, position in a tensor of
/// `shape`)`, the latter with the index instead of the coordinate along `axis`.
template <typename Body>
void for_each_indexed(const Tensor& index, const Shape& shape, std::size_t axis, Outside outside,
                      const Body& body) {
    const Shape& index_shape = index.logical_shape();
    const auto strides = element_strides(shape);
    const auto indices = load_integers(index);
    const auto size = static_cast<std::int64_t>(shape.view()[axis]);
    ttsl::SmallVector<std::size_t> position(index_shape.rank(), 0);
    const std::size_t count = index_shape.volume();
    for (std::size_t i = 0; i < count; ++i) {
        const bool inside = indices[i] >= 0 && indices[i] < size;
        TT_FATAL(inside || outside == Outside::kSkip,
                 "Index {} is out of range for a dimension of size {}", indices[i], size);
        std::size_t target = 0;
        for (std::size_t d = 0; d < position.size(); ++d) {
            target += (d == axis ? static_cast<std::size_t>(indices[i]) : position[d]) * strides[d];
        }
        if (inside) {
            body(i, target);
        }
        for (std::size_t d = position.size(); d-- > 0;) {
            if (++position[d] < index_shape.view()[d]) {
                break;
            }
            position[d] = 0;
        }
    }
}

/// Checks that `index` is within `shape` in each dimension but `axis`.
void check_extent(const Shape& index, const Shape& shape, std::size_t axis, const char* what) {
    for (std::size_t i = 0; i < index.rank(); ++i) {
        TT_FATAL(i == axis || index.view()[i] <= shape.view()[i],
                 "index_shape[{}] <= {}_shape[{}] == false (index_shape: {}, {}_shape: {})", i,
                 what, i, index, what, shape);
    }
}

enum class Reduction { kReplace, kAdd, kMultiply };

Reduction reduction_of(const std::optional<std::string>& name) {
    TT_FATAL(!name || *name == "add" || *name == "multiply",
             "reduce must be either 'add' or 'multiply' (case-sensitive), got {}", *name);
    return !name ? Reduction::kReplace : *name == "add" ? Reduction::kAdd : Reduction::kMultiply;
}

/// Positions in `source` of the elements of `index`, which may be smaller.
std::size_t source_position(std::size_t position, const Shape& index,
                            const ttsl::SmallVector<std::size_t>& strides) {
    std::size_t target = 0;
    for (std::size_t d = index.rank(); d-- > 0;) {
        target += position % index.view()[d] * strides[d];
        position /= index.view()[d];
    }
    return target;
}

template <typename Value>
void combine(Reduction reduction, Value& target, Value value) {
    target = reduction == Reduction::kAdd        ? target + value
             : reduction == Reduction::kMultiply ? target * value
                                                 : value;
}

void check_scatter(const Tensor& input, int dim, const Tensor& index, const Tensor& source) {
    TT_FATAL(on_device(input) && on_device(index) && on_device(source),
             "Device Operations expect tensor with Device storage in inputs");
    const DataType dtype = input.dtype();
    const Shape& shape = input.logical_shape();
    check_dim("scatter", dim, shape.rank());
    TT_FATAL(is_integer(index.dtype()), "index_dtype is not integer, it is {}.", index.dtype());
    TT_FATAL(dtype == source.dtype(),
             "input_dtype differs from src_dtype (input_dtype: {}, src_dtype: {}).", dtype,
             source.dtype());
    const bool tiles = input.layout() == Layout::TILE;
    TT_FATAL(!tiles || dtype != DataType::FLOAT32,
             "Scatter doesn't work for fp32 tiled tensors yet - input tensor is {} {}.", dtype,
             input.layout());
    TT_FATAL(!tiles || (dtype != DataType::UINT8 && dtype != DataType::BFLOAT4_B),
             "data type must be bfloat16, float32, uint32, int32, or uint16");
    TT_FATAL(index.logical_shape().rank() == shape.rank(),
             "input_rank must be equal to index_rank (input_rank == {}, index_rank == {})",
             shape.rank(), index.logical_shape().rank());
    TT_FATAL(source.logical_shape().rank() == shape.rank(),
             "input_rank must be equal to source_rank (input_rank == {}, source_rank == {})",
             shape.rank(), source.logical_shape().rank());
    const std::size_t axis = normalize_dim(dim, shape.rank());
    // The scattered rows of int32 tiles are in L1 as a whole.
    TT_FATAL(
        !tiles || (dtype != DataType::INT32 && index.dtype() != DataType::INT32) ||
            index.logical_shape().view()[axis] <= 256,
        "Scatter doesn't work for int32 tensors that have scatter row longer than 256 elements");
    check_extent(index.logical_shape(), shape, axis, "input");
    check_extent(index.logical_shape(), source.logical_shape(), shape.rank(), "source");
}

Tensor scatter(const Tensor& input, int dim, const Tensor& index, const Tensor& source,
               const std::optional<MemoryConfig>& memory_config, Reduction reduction) {
    check_scatter(input, dim, index, source);
    const std::size_t axis = normalize_dim(dim, input.logical_shape().rank());
    const DataType dtype =
        input.dtype() == DataType::BFLOAT8_B ? DataType::BFLOAT16 : input.dtype();
    const Tensor output = convert(input, dtype, input.layout(),
                                  output_memory_config(input, memory_config), device_of(input));
    const auto strides = element_strides(source.logical_shape());
    const Shape& index_shape = index.logical_shape();
    if (is_integer(dtype)) {
        const auto values = load_integers(output);
        const auto updates = load_integers(source);
        for_each_indexed(index, input.logical_shape(), axis, Outside::kSkip,
                         [&](std::size_t i, std::size_t target) {
                             combine(reduction, values[target],
                                     updates[source_position(i, index_shape, strides)]);
                         });
        store_integers(values.get(), output.logical_volume(), dtype, buffer_of(output).data());
        return output;
    }
    const FloatElements before(output);
    std::vector<float> values(before.span().begin(), before.span().end());
    const FloatElements updates(source);
    for_each_indexed(
        index, input.logical_shape(), axis, Outside::kSkip, [&](std::size_t i, std::size_t target) {
            combine(reduction, values[target], updates[source_position(i, index_shape, strides)]);
        });
    store_floats(values.data(), values.size(), dtype, buffer_of(output).data());
    return output;
}

Tensor gather(const Tensor& input, int dim, const Tensor& index,
              const std::optional<MemoryConfig>& memory_config,
              const std::optional<Tensor>& output_tensor) {
    TT_FATAL(on_device(input) && on_device(index),
             "Device Operations expect tensor with Device storage in inputs");
    require_interleaved(input, memory_config);
    require_interleaved(index, memory_config);
    const Shape& shape = input.logical_shape();
    check_dim("gather", dim, shape.rank());
    TT_FATAL(index.dtype() == DataType::UINT32 || index.dtype() == DataType::UINT16,
             "Index tensor must be of type UINT32 or UINT16. Got: {}", index.dtype());
    TT_FATAL(input.layout() == Layout::TILE,
             "The input tensor must be in tiled format. Current layout: {}", input.layout());
    TT_FATAL(index.layout() == Layout::TILE,
             "The input index tensor must be in tiled format. Current layout: {}", index.layout());
    TT_FATAL(index.logical_shape().rank() == shape.rank(),
             "Input and index must have the same rank: {} and {}", shape, index.logical_shape());
    TT_FATAL(shape.rank() != 1, "Can't convert shape rank");
    const std::size_t axis = normalize_dim(dim, shape.rank());
    check_extent(index.logical_shape(), shape, axis, "input");
    const Tensor output =
        output_tensor ? *output_tensor
                      : allocate_like(input, index.logical_shape(), input.dtype(), Layout::TILE,
                                      output_memory_config(input, memory_config));
    TT_FATAL(output.logical_shape() == index.logical_shape() && output.dtype() == input.dtype(),
             "The output tensor must have the index tensor's shape and the input's data type");
    const std::size_t element = stored_size(input.dtype());
    const std::byte* from = buffer_of(input).data();
    std::byte* to = buffer_of(output).data();
    for_each_indexed(index, shape, axis, Outside::kRefuse, [&](std::size_t i, std::size_t source) {
        std::memcpy(to + i * element, from + source * element, element);
    });
    finish_block_float(output);
    return output;
}

}  // namespace

}  // namespace ttcodegen::cpu

namespace ttnn {

namespace cpu = ttcodegen::cpu;

Tensor gather(const Tensor& input_tensor, std::int8_t dim, const Tensor& input_index_tensor,
              bool sparse_grad, const std::optional<MemoryConfig>& memory_config,
              std::optional<Tensor> optional_output_tensor,
              const std::optional<CoreRangeSet>& sub_core_grids) {
    TTCODEGEN_ON_EACH_CHIP(gather, input_tensor, dim, input_index_tensor, sparse_grad,
                           memory_config, optional_output_tensor, sub_core_grids);
    TT_FATAL(!sparse_grad, "Sparse gradient is not supported yet.");
    return cpu::gather(input_tensor, dim, input_index_tensor, memory_config,
                       optional_output_tensor);
}

Tensor scatter(const Tensor& input_tensor, const std::int32_t& dim, const Tensor& index_tensor,
               const Tensor& source_tensor, const std::optional<MemoryConfig>& memory_config,
               const std::optional<std::string>& opt_reduction_string,
               const std::optional<CoreRangeSet>& sub_core_grid) {
    TTCODEGEN_ON_EACH_CHIP(scatter, input_tensor, dim, index_tensor, source_tensor, memory_config,
                           opt_reduction_string, sub_core_grid);
    return cpu::scatter(input_tensor, dim, index_tensor, source_tensor, memory_config,
                        cpu::reduction_of(opt_reduction_string));
}

Tensor scatter_add(const Tensor& input_tensor, const std::int32_t& dim, const Tensor& index_tensor,
                   const Tensor& source_tensor, const std::optional<MemoryConfig>& memory_config,
                   const std::optional<CoreRangeSet>& sub_core_grid) {
    TTCODEGEN_ON_EACH_CHIP(scatter_add, input_tensor, dim, index_tensor, source_tensor,
                           memory_config, sub_core_grid);
    return cpu::scatter(input_tensor, dim, index_tensor, source_tensor, memory_config,
                        cpu::Reduction::kAdd);
}

}  // namespace ttnn
