// Split of a hidden dimension into attention heads, and concatenation of heads.

#include <algorithm>
#include <array>
#include <cstring>

#include "core/chips.hpp"
#include "core/tensor_data.hpp"
#include "data_movement/strided_copy.hpp"
#include "operations/head_memory.hpp"
#include "ttnn/operations/experimental/transformer/nlp_concat_heads/nlp_concat_heads.hpp"
#include "ttnn/operations/experimental/transformer/nlp_concat_heads_decode/nlp_concat_heads_decode.hpp"
#include "ttnn/operations/experimental/transformer/nlp_create_qkv_heads/nlp_create_qkv_heads.hpp"
#include "ttnn/operations/experimental/transformer/nlp_create_qkv_heads_decode/nlp_create_qkv_heads_decode.hpp"
#include "ttnn/operations/transformer/concatenate_heads/concatenate_heads.hpp"
#include "ttnn/operations/transformer/split_query_key_value_and_split_heads/split_query_key_value_and_split_heads.hpp"

namespace ttnn {
namespace {

using namespace ttcodegen::cpu;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::Shape;
using tt::tt_metal::Tensor;
using tt::tt_metal::TensorMemoryLayout;

/// The columns of a group of heads in a tensor (users x positions, hidden).
struct HeadColumns {
    std::size_t first = 0;
    std::size_t heads = 0;
    std::size_t width = 0;
};

std::ptrdiff_t stride(std::size_t value) { return static_cast<std::ptrdiff_t>(value); }

void check_input(const Tensor& input) {
    TT_FATAL(on_device(input), "Device Operations expect tensor with Device storage in inputs");
    TT_FATAL(input.layout() == Layout::TILE, "Input tensor layout must be TILE but got {}",
             input.layout());
    const DataType dtype = input.dtype();
    TT_FATAL(
        dtype == DataType::FLOAT32 || dtype == DataType::BFLOAT16 || dtype == DataType::BFLOAT8_B,
        "Unsupported data format {}", dtype);
}

/// Copies heads of rows (users, positions) to (users, heads, positions, width), or with the last
/// two dimensions transposed, from head `to` of the output on.
void copy_heads(const Tensor& input, std::size_t users, std::size_t positions,
                const HeadColumns& columns, bool transpose, const Tensor& output,
                std::size_t to = 0) {
    const std::size_t hidden = input.logical_volume() / (users * positions);
    const std::size_t size = stored_size(input.dtype());
    const std::size_t head = positions * columns.width;
    const std::size_t user = output.logical_shape()[1] * head;
    Buffer& target = buffer_of(output);
    target.forget_derived();
    const Strides target_strides =
        transpose ? Strides{stride(user), stride(head), 1, stride(positions)}
                  : Strides{stride(user), stride(head), stride(columns.width), 1};
    strided_copy({buffer_of(input).data() + columns.first * size,
                  {stride(positions * hidden), stride(columns.width), stride(hidden), 1}},
                 {target.data() + to * head * size, target_strides},
                 {users, columns.heads, positions, columns.width}, size);
    finish_block_float(output);
}

/// Concatenates (users, heads, positions, width) to rows (users, positions) of heads x width.
void join_heads(const Tensor& input, const Tensor& output) {
    const Shape& shape = input.logical_shape();
    const std::size_t heads = shape[1];
    const std::size_t positions = shape[2];
    const std::size_t width = shape[3];
    const std::size_t head = positions * width;
    strided_copy(
        {buffer_of(input).data(), {stride(heads * head), stride(width), stride(head), 1}},
        {buffer_of(output).data(), {stride(heads * head), stride(heads * width), stride(width), 1}},
        {shape[0], positions, heads, width}, stored_size(input.dtype()));
    finish_block_float(output);
}

/// The heads of a fused projection.
struct Projection {
    const Tensor& queries;
    const std::optional<Tensor>& keys_and_values;
    std::size_t users;
    std::size_t positions;
    std::size_t heads;
    std::size_t kv_heads;
    std::size_t width;
};

/// Copies the heads of a block-sharded projection, whose columns are groups: the query heads that
/// share a key head, the key head and the value head
/// (create_qkv_heads_program_factory.cpp of tt-metal 0.70.1).
void copy_groups(const Projection& projection, bool transpose_keys,
                 const std::array<const Tensor*, 3>& outputs) {
    const std::size_t shared = projection.heads / projection.kv_heads;
    for (std::size_t group = 0; group < projection.kv_heads; ++group) {
        std::size_t first = group * (shared + 2) * projection.width;
        for (std::size_t kind = 0; kind < outputs.size(); ++kind) {
            const std::size_t heads = kind == 0 ? shared : 1;
            copy_heads(projection.queries, projection.users, projection.positions,
                       {first, heads, projection.width}, kind == 1 && transpose_keys,
                       *outputs[kind], group * heads);
            first += heads * projection.width;
        }
    }
}

std::tuple<Tensor, Tensor, Tensor> split(const Projection& projection, bool transpose_keys,
                                         const HeadMemory& memory) {
    const auto make = [&](std::size_t heads, bool transpose, const MemoryConfig& placement) {
        auto rows = static_cast<uint32_t>(projection.positions);
        auto columns = static_cast<uint32_t>(projection.width);
        if (transpose) {
            std::swap(rows, columns);
        }
        const Shape shape(
            {static_cast<uint32_t>(projection.users), static_cast<uint32_t>(heads), rows, columns});
        return allocate_like(projection.queries, shape, projection.queries.dtype(), Layout::TILE,
                             placement);
    };
    const Tensor queries = make(projection.heads, false, memory[0]);
    const Tensor keys = make(projection.kv_heads, transpose_keys, memory[1]);
    const Tensor values = make(projection.kv_heads, false, memory[2]);
    if (projection.queries.memory_config().memory_layout() == TensorMemoryLayout::BLOCK_SHARDED) {
        copy_groups(projection, transpose_keys, {&queries, &keys, &values});
        return {queries, keys, values};
    }
    const Tensor& source = projection.keys_and_values.value_or(projection.queries);
    const std::size_t first = projection.keys_and_values ? 0 : projection.heads * projection.width;
    const std::size_t kv_width = projection.kv_heads * projection.width;
    const auto copy = [&](const Tensor& input, std::size_t begin, std::size_t heads, bool transpose,
                          const Tensor& output) {
        copy_heads(input, projection.users, projection.positions, {begin, heads, projection.width},
                   transpose, output);
    };
    copy(projection.queries, 0, projection.heads, false, queries);
    copy(source, first, projection.kv_heads, transpose_keys, keys);
    copy(source, first + kv_width, projection.kv_heads, false, values);
    return {queries, keys, values};
}

}  // namespace

namespace transformer {

Tensor concatenate_heads(const Tensor& input_tensor,
                         const std::optional<MemoryConfig>& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(concatenate_heads, input_tensor, memory_config);
    const Shape& shape = input_tensor.logical_shape();
    TT_FATAL(shape.rank() == 4, "Input tensor must have rank 4. Shape: {}", shape);
    check_input(input_tensor);
    TT_FATAL(shape[3] % 32 == 0,
             "Head size must be a multiple of 32 but was found to be {}. Update the matmul that "
             "uses the output of this operation to include padding in the weights.",
             shape[3]);
    // Sharded heads are gathered to an interleaved tensor if the result is interleaved.
    const bool is_gathered = memory_config && !memory_config->is_sharded();
    const MemoryConfig memory =
        is_gathered ? *memory_config : joined_heads_memory(input_tensor, memory_config);
    const Tensor output =
        allocate_like(input_tensor, Shape({shape[0], shape[2], shape[1] * shape[3]}),
                      input_tensor.dtype(), Layout::TILE, memory);
    join_heads(input_tensor, output);
    return output;
}

std::tuple<Tensor, Tensor, Tensor> split_query_key_value_and_split_heads(
    const Tensor& input_tensor, const std::optional<Tensor>& input_tensor_kv, uint32_t num_heads,
    std::optional<uint32_t> num_kv_heads, bool transpose_key,
    const std::optional<MemoryConfig>& memory_config, bool ignored) {
    TTCODEGEN_ON_EACH_CHIP(split_query_key_value_and_split_heads, input_tensor, input_tensor_kv,
                           num_heads, num_kv_heads, transpose_key, memory_config, ignored);
    const Shape& shape = input_tensor.logical_shape();
    TT_FATAL(shape.rank() == 3, "Invalid input tensor: expected 3 dimensions, but found {}.",
             shape.rank());
    TT_FATAL(input_tensor.layout() == Layout::TILE,
             "Invalid layout: input tensor must use TILE_LAYOUT, but found {}.",
             input_tensor.layout());
    check_input(input_tensor);
    const uint32_t kv_heads = num_kv_heads.value_or(num_heads);
    TT_FATAL(num_heads > 0 && kv_heads > 0, "The number of heads must be positive");
    const uint32_t divisor = input_tensor_kv ? num_heads : num_heads + 2 * kv_heads;
    const uint32_t width = shape[2] / divisor;
    TT_FATAL(shape[2] % divisor == 0 && width % 32 == 0,
             "Invalid head size: {}. The head size must be a multiple of the tile width (32). "
             "Please adjust the dimensions accordingly.",
             width);
    if (input_tensor_kv) {
        check_input(*input_tensor_kv);
        const Shape expected({shape[0], shape[1], 2 * kv_heads * width});
        TT_FATAL(input_tensor_kv->logical_shape() == expected &&
                     input_tensor_kv->dtype() == input_tensor.dtype(),
                 "The key and value tensor must have the shape {} and the type {}, got {} and {}",
                 expected, input_tensor.dtype(), input_tensor_kv->logical_shape(),
                 input_tensor_kv->dtype());
    }
    return split({input_tensor, input_tensor_kv, shape[0], shape[1], num_heads, kv_heads, width},
                 transpose_key,
                 split_heads_memory(input_tensor, {num_heads, kv_heads, width}, transpose_key,
                                    memory_config));
}

}  // namespace transformer

namespace experimental {

Tensor nlp_concat_heads(const Tensor& input_tensor,
                        const std::optional<MemoryConfig>& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(nlp_concat_heads, input_tensor, memory_config);
    const Shape& shape = input_tensor.logical_shape();
    if (shape.rank() != 4) {
        TT_THROW("ShapeBase[] index out of range. nlp_concat_heads takes tensors of rank 4, got {}",
                 shape);
    }
    check_input(input_tensor);
    const MemoryConfig memory = joined_heads_memory(input_tensor, memory_config);
    const Tensor output =
        allocate_like(input_tensor, Shape({shape[0], 1, shape[2], shape[1] * shape[3]}),
                      input_tensor.dtype(), Layout::TILE, memory);
    join_heads(input_tensor, output);
    return output;
}

Tensor nlp_concat_heads_decode(const Tensor& input_tensor, uint32_t num_heads,
                               const std::optional<MemoryConfig>& ignored,
                               const std::optional<Tensor>& optional_output_tensor,
                               const std::optional<CoreRangeSet>& ignored_2) {
    TTCODEGEN_ON_EACH_CHIP(nlp_concat_heads_decode, input_tensor, num_heads, ignored,
                           optional_output_tensor, ignored_2);
    const Shape& shape = input_tensor.logical_shape();
    TT_FATAL(shape.rank() == 4 && shape[0] == 1, "seqlen=1 for decode, got the shape {}", shape);
    check_input(input_tensor);
    TT_FATAL(shape[1] <= 32, "currently only support less than 32 users");
    TT_FATAL(num_heads > 0 && num_heads <= input_tensor.padded_shape()[2],
             "The input has {} heads, {} are requested", shape[2], num_heads);
    TT_FATAL(input_tensor.is_sharded(), "Input tensor must be sharded");
    TT_FATAL(input_tensor.memory_config().memory_layout() == TensorMemoryLayout::HEIGHT_SHARDED,
             "Input tensor memory layout must be HEIGHT_SHARDED but got {}",
             input_tensor.memory_config().memory_layout());
    check_joined_decode(input_tensor);
    const uint32_t hidden = num_heads * shape[3];
    const Shape result_shape({1, 1, 32, hidden});
    if (optional_output_tensor) {
        TT_FATAL(optional_output_tensor->logical_shape() == result_shape &&
                     optional_output_tensor->dtype() == input_tensor.dtype(),
                 "The output tensor must have the shape {}", result_shape);
    }
    const Tensor output =
        optional_output_tensor
            ? *optional_output_tensor
            : allocate_like(input_tensor, result_shape, input_tensor.dtype(), Layout::TILE,
                            joined_decode_memory(input_tensor, num_heads));
    Buffer& target = buffer_of(output);
    target.forget_derived();
    std::memset(target.data(), 0, target.bytes());
    const std::size_t size = stored_size(input_tensor.dtype());
    // Heads beyond those of the input are padding.
    const std::size_t copied = std::size_t{std::min(num_heads, shape[2])} * shape[3] * size;
    for (std::size_t user = 0; user < shape[1]; ++user) {
        std::memcpy(target.data() + user * hidden * size,
                    buffer_of(input_tensor).data() + user * shape[2] * shape[3] * size, copied);
    }
    return output;
}

std::tuple<Tensor, Tensor, Tensor> nlp_create_qkv_heads(
    const Tensor& input_tensor_q, const std::optional<Tensor>& input_tensor_kv,
    uint32_t num_q_heads, std::optional<uint32_t> num_kv_heads, bool transpose_k_heads,
    const std::optional<MemoryConfig>& memory_config,
    const std::optional<std::vector<std::optional<Tensor>>>& optional_output_tensors) {
    TTCODEGEN_ON_EACH_CHIP(nlp_create_qkv_heads, input_tensor_q, input_tensor_kv, num_q_heads,
                           num_kv_heads, transpose_k_heads, memory_config, optional_output_tensors);
    TT_FATAL(!optional_output_tensors,
             "nlp_create_qkv_heads: preallocated outputs are not supported by the CPU backend");
    const Shape& shape = input_tensor_q.logical_shape();
    if (shape.rank() != 4) {
        TT_THROW(
            "ShapeBase[] index out of range. nlp_create_qkv_heads takes tensors of rank 4, got "
            "{}",
            shape);
    }
    check_input(input_tensor_q);
    TT_FATAL(shape[1] == 1, "Unsupported input sequence length {} is not equal to 1", shape[1]);
    TT_FATAL(shape[2] % 32 == 0, "Unsupported input shape {}", shape);
    const uint32_t kv_heads = num_kv_heads.value_or(num_q_heads);
    TT_FATAL(num_q_heads > 0 && kv_heads > 0, "The number of heads must be positive");
    TT_FATAL(num_q_heads >= kv_heads, "Number of Q heads ({}) must be >= number of KV heads ({})",
             num_q_heads, kv_heads);
    const uint32_t divisor = input_tensor_kv ? num_q_heads : num_q_heads + 2 * kv_heads;
    TT_FATAL(shape[3] % divisor == 0, "Unsupported input shape {} for {} heads", shape, divisor);
    const uint32_t width = shape[3] / divisor;
    TT_FATAL(width % 32 == 0, "Head size must be a multiple of 32 but was found to be {}", width);
    if (input_tensor_kv) {
        check_input(*input_tensor_kv);
        const Shape& kv_shape = input_tensor_kv->logical_shape();
        TT_FATAL(kv_shape.rank() == 4 && kv_shape[0] == shape[0] && kv_shape[2] == shape[2],
                 "KV tensor seq_len dim must be same as Q tensor seq_len!");
        TT_FATAL(kv_shape[3] == 2 * kv_heads * width, "Head dims must be the same for Q and K, V");
        TT_FATAL(input_tensor_kv->dtype() == input_tensor_q.dtype(),
                 "KV tensor dtype must be same as Q tensor dtype!");
        TT_FATAL(kv_shape[1] == 1, "Unsupported input sequence length {} of the KV tensor",
                 kv_shape[1]);
        check_separate_keys(input_tensor_q, *input_tensor_kv, width);
    }
    return split(
        {input_tensor_q, input_tensor_kv, shape[0], shape[2], num_q_heads, kv_heads, width},
        transpose_k_heads,
        created_heads_memory(input_tensor_q, {num_q_heads, kv_heads, width}, transpose_k_heads,
                             memory_config));
}

std::tuple<Tensor, Tensor, Tensor> nlp_create_qkv_heads_decode(
    const Tensor& input_tensor, uint32_t num_heads, std::optional<const uint32_t> num_kv_heads,
    std::optional<std::array<Tensor, 3>>& optional_output_tensors,
    std::optional<const bool> overlap_qk_coregrid, const std::optional<const Tensor>& batch_offset,
    std::optional<const uint32_t> slice_size, const std::optional<MemoryConfig>& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(nlp_create_qkv_heads_decode, input_tensor, num_heads, num_kv_heads,
                           optional_output_tensors, overlap_qk_coregrid, batch_offset, slice_size,
                           memory_config);
    TT_FATAL(!optional_output_tensors && !batch_offset && !slice_size,
             "nlp_create_qkv_heads_decode: preallocated outputs and batch slices are not supported "
             "by the CPU backend");
    check_input(input_tensor);
    TT_FATAL(!is_block(input_tensor.dtype()), "Unsupported data format {}", input_tensor.dtype());
    const Shape& shape = input_tensor.logical_shape();
    TT_FATAL(
        shape.rank() == 4 && shape[0] == 1 && shape[1] == 1 && shape[2] <= 32 && shape[3] % 32 == 0,
        "Unsupported input shape = {}", shape);
    const uint32_t users = shape[2];
    const uint32_t kv_heads = num_kv_heads.value_or(num_heads);
    TT_FATAL(num_heads > 0 && kv_heads > 0 && num_heads <= 32,
             "The number of heads must be positive and at most 32");
    TT_FATAL(num_heads >= kv_heads,
             "num_q_heads={} must be greater than or equal to num_kv_heads={}", num_heads,
             kv_heads);
    const uint32_t divisor = num_heads + 2 * kv_heads;
    TT_FATAL(shape[3] % divisor == 0,
             "Input shape {} must be divisible by num_heads + 2*num_kv_heads = {}", shape[3],
             divisor);
    const uint32_t width = shape[3] / divisor;
    const std::size_t size = stored_size(input_tensor.dtype());
    const HeadMemory memory = decode_heads_memory(
        input_tensor, {num_heads, kv_heads, width},
        !input_tensor.is_sharded() || overlap_qk_coregrid.value_or(true), memory_config);
    const auto take = [&](uint32_t first, uint32_t heads, const MemoryConfig& placement) {
        const Tensor output = allocate_like(input_tensor, Shape({1, users, heads, width}),
                                            input_tensor.dtype(), Layout::TILE, placement);
        const std::size_t bytes = std::size_t{heads} * width * size;
        for (std::size_t user = 0; user < users; ++user) {
            std::memcpy(buffer_of(output).data() + user * bytes,
                        buffer_of(input_tensor).data() +
                            (user * shape[3] + std::size_t{first} * width) * size,
                        bytes);
        }
        return output;
    };
    return {take(0, num_heads, memory[0]), take(num_heads, kv_heads, memory[1]),
            take(num_heads + kv_heads, kv_heads, memory[2])};
}

}  // namespace experimental

}  // namespace ttnn
