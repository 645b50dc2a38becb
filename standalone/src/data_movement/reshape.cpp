#include "ttnn/operations/data_movement/reshape_view/reshape.hpp"

#include "core/chips.hpp"
#include "core/convert.hpp"
#include "core/result_shards.hpp"
#include "core/tensor_data.hpp"
#include "data_movement/reshape.hpp"
#include "ttnn/operations/core/core.hpp"
#include "ttnn/operations/data_movement/squeeze/squeeze.hpp"
#include "ttnn/operations/data_movement/unsqueeze/unsqueeze.hpp"
#include "ttnn/operations/data_movement/view/view.hpp"

namespace ttcodegen::cpu {

namespace {

/// Returns whether the new shape describes the same memory: rows stay rows and tiles stay tiles.
bool is_view(const Tensor& tensor, const Shape& shape) {
    const Shape& own = tensor.logical_shape();
    if (own[-1] != shape[-1]) {
        return false;
    }
    return tensor.layout() == Layout::ROW_MAJOR || own[-2] == shape[-2] ||
           (own[-2] % 32 == 0 && shape[-2] % 32 == 0);
}

bool can_be_reshaped(const Tensor& tensor) {
    switch (tensor.dtype()) {
        case DataType::BFLOAT16:
        case DataType::FLOAT32:
        case DataType::UINT32:
        case DataType::INT32:
            return true;
        case DataType::BFLOAT8_B:
            return tensor.layout() == Layout::TILE;
        default:
            return false;
    }
}

}  // namespace

Tensor reshape(const Tensor& tensor, const Shape& shape,
               const std::optional<MemoryConfig>& memory_config) {
    TT_FATAL(shape.volume() == tensor.logical_volume(),
             "Invalid arguments to reshape: {} has another number of elements than {}",
             tensor.logical_shape(), shape);
    if (shape == tensor.logical_shape() && !memory_config) {
        return tensor;
    }
    const bool device = on_device(tensor);
    const bool keeps = !memory_config || *memory_config == tensor.memory_config() ||
                       (tensor.is_sharded() && is_bare(memory_config));
    const bool bare = device && memory_config && is_bare(memory_config);
    TT_FATAL(!bare || tensor.is_sharded(), "Shard spec has no value");
    TT_FATAL(!is_sharded_in_dram(tensor) || (memory_config && !bare) ||
                 (!bare && is_view(tensor, shape)),
             "Input tensor must be in L1");
    const MemoryConfig target = !device || (keeps && is_view(tensor, shape))
                                    ? (keeps ? tensor.memory_config() : *memory_config)
                                    : moved_memory(tensor, shape, memory_config, false);
    const TensorSpec spec = make_spec(shape, tensor.dtype(), tensor.layout(), target);
    if (target == tensor.memory_config() && (!device || is_view(tensor, shape))) {
        return make_view(tensor, spec);
    }
    TT_FATAL(!device || can_be_reshaped(tensor),
             "Can only work with bfloat16/float32 or int32/uint32 tensors, not {}", tensor.dtype());
    const Tensor output = allocate(spec, device_of(tensor));
    convert_into(tensor, output);
    // Shared exponents depend on rows, which have changed.
    finish_block_float(output);
    return output;
}

Shape infer_shape(const Tensor& tensor, ttsl::Span<const std::int32_t> sizes) {
    std::uint64_t known = 1;
    std::size_t inferred = 0;
    for (const std::int32_t size : sizes) {
        TT_FATAL(size >= -1, "Invalid arguments to reshape: a dimension of size {}", size);
        inferred += size == -1 ? 1 : 0;
        known *= size == -1 ? 1 : static_cast<std::uint64_t>(size);
    }
    TT_FATAL(inferred <= 1, "Shape cannot have more than 1 elements that is set to -1!");
    ttsl::SmallVector<std::uint32_t> shape;
    for (const std::int32_t size : sizes) {
        const bool infer = size == -1 && known != 0;
        shape.push_back(infer        ? static_cast<std::uint32_t>(tensor.logical_volume() / known)
                        : size == -1 ? 0U
                                     : static_cast<std::uint32_t>(size));
    }
    return Shape(std::move(shape));
}

}  // namespace ttcodegen::cpu

namespace ttnn {

namespace cpu = ttcodegen::cpu;

Tensor reshape(const Tensor& input_tensor, const Shape& logical_shape,
               const std::optional<MemoryConfig>& memory_config,
               const std::optional<PadValue>& pad_value, TileReshapeMapMode map_mode,
               const std::optional<CoreRangeSet>& sub_core_grid) {
    TTCODEGEN_ON_EACH_CHIP(reshape, input_tensor, logical_shape, memory_config, pad_value, map_mode,
                           sub_core_grid);
    return cpu::reshape(input_tensor, logical_shape, memory_config);
}

Tensor reshape(const Tensor& input_tensor, ttsl::Span<const std::int32_t> shape_vector,
               const std::optional<MemoryConfig>& memory_config,
               const std::optional<PadValue>& pad_value, TileReshapeMapMode map_mode,
               const std::optional<CoreRangeSet>& sub_core_grid) {
    TTCODEGEN_ON_EACH_CHIP(reshape, input_tensor, shape_vector, memory_config, pad_value, map_mode,
                           sub_core_grid);
    return cpu::reshape(input_tensor, cpu::infer_shape(input_tensor, shape_vector), memory_config);
}

namespace operations::core {

Tensor unsqueeze_to_4D(const Tensor& tensor) {
    TTCODEGEN_ON_EACH_CHIP(unsqueeze_to_4D, tensor);
    if (tensor.logical_shape().rank() == 4) {
        return tensor;
    }
    TT_FATAL(tensor.logical_shape().rank() < 4,
             "Tensor rank is greater than 4, cannot unsqueeze: {}", tensor.logical_shape());
    return cpu::reshape(tensor, tensor.logical_shape().to_rank(4), std::nullopt);
}

Tensor squeeze_from_4D(const Tensor& tensor, int rank) {
    TTCODEGEN_ON_EACH_CHIP(squeeze_from_4D, tensor, rank);
    TT_FATAL(tensor.logical_shape().rank() == 4, "Tensor has to be of rank 4!");
    TT_FATAL(rank >= 1 && rank <= 4,
             "Cannot use squeeze_from_4D to set the tensor to the rank of {}", rank);
    return cpu::reshape(tensor, tensor.logical_shape().to_rank(static_cast<std::size_t>(rank)),
                        std::nullopt);
}

}  // namespace operations::core

Tensor view(const Tensor& input_tensor, const Shape& logical_shape) {
    TTCODEGEN_ON_EACH_CHIP(view, input_tensor, logical_shape);
    cpu::require_on_device(input_tensor, "Tensor to view");
    TT_FATAL(input_tensor.logical_shape()[-1] == logical_shape[-1],
             "The last dimension can not change in view, attempting to change last dimension from "
             "{} to {}, use reshape instead",
             input_tensor.logical_shape()[-1], logical_shape[-1]);
    TT_FATAL(cpu::is_view(input_tensor, logical_shape),
             "A view cannot change the second last dimension of tiles from {} to {}",
             input_tensor.logical_shape()[-2], logical_shape[-2]);
    return cpu::reshape(input_tensor, logical_shape, std::nullopt);
}

Tensor view(const Tensor& input_tensor, ttsl::Span<const std::int32_t> shape_vector) {
    TTCODEGEN_ON_EACH_CHIP(view, input_tensor, shape_vector);
    return view(input_tensor, cpu::infer_shape(input_tensor, shape_vector));
}

Tensor squeeze(const Tensor& input_tensor, const SmallVector<int>& dim) {
    TTCODEGEN_ON_EACH_CHIP(squeeze, input_tensor, dim);
    const Shape& shape = input_tensor.logical_shape();
    SmallVector<char> removed(shape.rank(), 0);
    for (const int axis : dim) {
        const std::size_t position = cpu::normalize_dim(axis, shape.rank());
        removed[position] = shape.view()[position] == 1 ? 1 : 0;
    }
    SmallVector<std::uint32_t> sizes;
    for (std::size_t i = 0; i < shape.rank(); ++i) {
        if (removed[i] == 0) {
            sizes.push_back(shape.view()[i]);
        }
    }
    return cpu::reshape(input_tensor, Shape(std::move(sizes)), std::nullopt);
}

Tensor squeeze(const Tensor& input_tensor, int dim) {
    TTCODEGEN_ON_EACH_CHIP(squeeze, input_tensor, dim);
    return squeeze(input_tensor, SmallVector<int>{dim});
}

Tensor squeeze(const Tensor& input_tensor) {
    TTCODEGEN_ON_EACH_CHIP(squeeze, input_tensor);
    SmallVector<int> dims;
    for (std::size_t i = 0; i < input_tensor.logical_shape().rank(); ++i) {
        dims.push_back(static_cast<int>(i));
    }
    return squeeze(input_tensor, dims);
}

Tensor unsqueeze(const Tensor& input_tensor, int dim) {
    TTCODEGEN_ON_EACH_CHIP(unsqueeze, input_tensor, dim);
    const Shape& shape = input_tensor.logical_shape();
    const std::size_t axis = cpu::normalize_dim(dim, shape.rank() + 1);
    SmallVector<std::uint32_t> sizes(shape.begin(), shape.end());
    const std::uint32_t one = 1;
    sizes.insert(sizes.begin() + axis, one);
    return cpu::reshape(input_tensor, Shape(std::move(sizes)), std::nullopt);
}

}  // namespace ttnn
