#include "ttnn/operations/embedding/embedding.hpp"

#include <cstring>
#include <vector>

#include "core/chips.hpp"
#include "core/parallel.hpp"
#include "core/tensor_data.hpp"
#include "ttnn/operations/embedding_backward/embedding_backward.hpp"

namespace ttnn {
namespace {

using namespace ttcodegen::cpu;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::Shape;
using tt::tt_metal::Tensor;

/// The indices, checked to be below `limit`: hardware would read past the table.
std::unique_ptr<int64_t[]> checked_indices(const Tensor& indices, std::size_t limit) {
    TT_FATAL(indices.dtype() == DataType::UINT32 || indices.dtype() == DataType::BFLOAT16,
             "Input must be UINT32 or BFLOAT16");
    auto values = load_integers(indices);
    for (std::size_t i = 0; i < indices.logical_volume(); ++i) {
        TT_FATAL(values[i] >= 0 && values[i] < static_cast<int64_t>(limit),
                 "Index {} at position {} is outside of the table of {} rows", values[i], i, limit);
    }
    return values;
}

void check_table(const Tensor& table) {
    TT_FATAL(on_device(table), "Expected Tensor with DeviceStorage, got {}", table.storage_type());
    const Shape& shape = table.logical_shape();
    TT_FATAL(shape.rank() > 0, "The weights must have at least one dimension");
    for (std::size_t dim = 0; dim + 2 < shape.rank(); ++dim) {
        TT_FATAL(shape.view()[dim] == 1,
                 "First two dimensions for the weights must be 1 but got the shape {}", shape);
    }
    TT_FATAL(table.dtype() == DataType::BFLOAT16 ||
                 (table.dtype() == DataType::BFLOAT8_B && table.layout() == Layout::TILE),
             "Weights tensor must have BFLOAT16 dtype");
}

/// Refuses shards of a result that is written in tiles, unless each holds whole rows of indices and
/// an equal part of the table's columns.
void check_tile_shards(const Tensor& indices, const Tensor& table, Layout layout,
                       const std::optional<MemoryConfig>& memory_config) {
    const bool is_in_tiles = layout == Layout::TILE &&
                             indices.padded_shape()[-1] % kTileSide == 0 &&
                             table.logical_shape()[-1] % kTileSide == 0;
    if (!is_in_tiles || !memory_config || !memory_config->is_sharded()) {
        return;
    }
    TT_FATAL(memory_config->shard_spec().has_value(),
             "Sharded memory config must have a shard spec");
    const auto shape = memory_config->shard_spec()->shape;
    const auto volume = indices.padded_shape().volume();
    TT_FATAL(volume % shape[0] == 0, "Input tensor volume {} must be a multiple of shard height {}",
             volume, shape[0]);
    TT_FATAL(table.logical_shape()[-1] % shape[1] == 0,
             "Number of columns in table {} must be factor of shard width {}",
             table.logical_shape()[-1], shape[1]);
}

/// (B, S, D) for indices (B, ..., S), and (S, D) for a vector.
Shape embedded_shape(const Shape& indices, uint32_t width) {
    TT_FATAL(indices.rank() > 0, "The indices must have at least one dimension");
    for (std::size_t dim = 1; dim + 1 < indices.rank(); ++dim) {
        TT_FATAL(indices.view()[dim] == 1,
                 "ttnn.embedding drops the middle dimensions of its indices, got the shape {}: "
                 "reshape them to two dimensions",
                 indices);
    }
    return indices.rank() == 1 ? Shape({indices[0], width})
                               : Shape({indices[0], indices[-1], width});
}

}  // namespace

Tensor embedding(const Tensor& input_tensor, const Tensor& weight_arg,
                 const std::optional<int>& pad_token, const std::optional<Layout>& layout,
                 ttnn::prim::EmbeddingsType embeddings_type, std::optional<const DataType> dtype,
                 const std::optional<MemoryConfig>& memory_config,
                 const std::optional<Tensor>& optional_output_tensor) {
    TTCODEGEN_ON_EACH_CHIP(embedding, input_tensor, weight_arg, pad_token, layout, embeddings_type,
                           dtype, memory_config, optional_output_tensor);
    TT_FATAL(on_device(input_tensor),
             "Device Operations expect tensor with Device storage in inputs");
    TT_FATAL(embeddings_type != prim::EmbeddingsType::PADDED || pad_token,
             "Pad token must be specified when PADDED Embeddings Type is specified");
    TT_FATAL(!input_tensor.is_sharded() && !weight_arg.is_sharded(),
             "Embedding does not currently support sharded inputs");
    TT_FATAL(layout.value_or(weight_arg.layout()) == Layout::TILE || !memory_config ||
                 !memory_config->is_sharded() ||
                 memory_config->memory_layout() == TensorMemoryLayout::HEIGHT_SHARDED,
             "Embedding only supports height sharded Row Major outputs");
    check_table(weight_arg);
    check_tile_shards(input_tensor, weight_arg, layout.value_or(weight_arg.layout()),
                      memory_config);
    const Shape& table_shape = weight_arg.logical_shape();
    const std::size_t rows = table_shape.rank() > 1 ? table_shape[-2] : 1;
    const std::size_t width = table_shape[-1];
    const auto indices = checked_indices(input_tensor, rows);
    const Shape shape = embedded_shape(input_tensor.logical_shape(), static_cast<uint32_t>(width));
    const Layout result_layout = layout.value_or(weight_arg.layout());
    // The data type is applied if the result is tiled.
    const DataType result_type =
        result_layout == Layout::TILE ? dtype.value_or(DataType::BFLOAT16) : DataType::BFLOAT16;
    if (optional_output_tensor) {
        TT_FATAL(optional_output_tensor->logical_shape() == shape,
                 "The output tensor must have the shape {}", shape);
    }
    const Tensor output = optional_output_tensor
                              ? *optional_output_tensor
                              : allocate_like(input_tensor, shape, result_type, result_layout,
                                              memory_config.value_or(input_tensor.memory_config()));
    const DataType table_type = weight_arg.dtype();
    const std::byte* table = buffer_of(weight_arg).data();
    const std::size_t table_row = width * stored_size(table_type);
    const std::size_t output_row = width * stored_size(output.dtype());
    Buffer& target = buffer_of(output);
    target.forget_derived();
    const std::size_t grain = std::max<std::size_t>(1, (std::size_t{1} << 15) / (width + 1));
    parallel_for(input_tensor.logical_volume(), grain, [&](std::size_t begin, std::size_t end) {
        std::vector<float> values(width);
        for (std::size_t i = begin; i < end; ++i) {
            const std::byte* source = table + static_cast<std::size_t>(indices[i]) * table_row;
            std::byte* destination = target.data() + i * output_row;
            if (table_type == output.dtype()) {
                std::memcpy(destination, source, output_row);
            } else {
                load_floats(source, table_type, width, values.data());
                store_floats(values.data(), width, output.dtype(), destination);
            }
        }
    });
    finish_block_float(output);
    return output;
}

Tensor embedding_bw(const Tensor& input_tensor_arg, const Tensor& weight_tensor_arg,
                    const Tensor& output_gradient_tensor_arg, std::optional<const DataType> dtype,
                    const std::optional<MemoryConfig>& memory_config,
                    const std::optional<Tensor>& optional_output_tensor) {
    TTCODEGEN_ON_EACH_CHIP(embedding_bw, input_tensor_arg, weight_tensor_arg,
                           output_gradient_tensor_arg, dtype, memory_config,
                           optional_output_tensor);
    const Tensor& gradient = output_gradient_tensor_arg;
    require_on_device(input_tensor_arg, "Index tensor");
    require_on_device(gradient, "Gradient tensor");
    TT_FATAL(input_tensor_arg.layout() == Layout::ROW_MAJOR,
             "Index tensor layout must be ROW_MAJOR but got {}", input_tensor_arg.layout());
    TT_FATAL(gradient.layout() == Layout::TILE, "Gradient tensor layout must be TILE but got {}",
             gradient.layout());
    TT_FATAL(gradient.dtype() == DataType::BFLOAT16 || gradient.dtype() == DataType::BFLOAT8_B,
             "Output gradient tensor must be BFLOAT16 or BFLOAT8_B");
    TT_FATAL(dtype.value_or(gradient.dtype()) == gradient.dtype(),
             "Output and input gradient tensors must have the same dtype");
    const Shape& index_shape = input_tensor_arg.logical_shape();
    const Shape& shape = gradient.logical_shape();
    TT_FATAL(index_shape.rank() > 0 && index_shape[-1] % 32 == 0,
             "Number of columns in the index tensor must be divisible by tile width");
    TT_FATAL(shape.rank() == 4 && shape[0] == 1 && shape[1] == 1,
             "First two dimensions for the gradient tensor must be 1, got the shape {}", shape);
    TT_FATAL(shape[3] % 32 == 0,
             "Number of columns in the gradient tensor must be divisible by tile width");
    TT_FATAL(
        shape[2] == input_tensor_arg.logical_volume(),
        "Number of rows in gradient tensor must be equal to number of indices in index tensor");
    const uint32_t rows = weight_tensor_arg.logical_shape()[-2];
    const std::size_t width = shape[3];
    const auto indices = checked_indices(input_tensor_arg, rows);
    const FloatElements gradients(gradient);
    std::vector<float> sums(rows * width);
    for (std::size_t i = 0; i < shape[2]; ++i) {
        float* sum = sums.data() + static_cast<std::size_t>(indices[i]) * width;
        const float* added = gradients.data() + i * width;
        for (std::size_t j = 0; j < width; ++j) {
            sum[j] += added[j];
        }
    }
    const Shape result_shape({1, 1, rows, shape[3]});
    if (!optional_output_tensor) {
        return tensor_from_floats(gradient, result_shape, gradient.dtype(), Layout::TILE,
                                  memory_config.value_or(gradient.memory_config()), sums);
    }
    TT_FATAL(optional_output_tensor->logical_shape() == result_shape,
             "The output tensor must have the shape {}", result_shape);
    Buffer& buffer = buffer_of(*optional_output_tensor);
    buffer.forget_derived();
    store_floats(sums.data(), sums.size(), optional_output_tensor->dtype(), buffer.data());
    finish_block_float(*optional_output_tensor);
    return *optional_output_tensor;
}

}  // namespace ttnn
