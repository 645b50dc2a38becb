#include <array>

#include "compute/arithmetic.hpp"
#include "compute/rows.hpp"
#include "core/chips.hpp"
#include "core/tensor_data.hpp"
#include "tt-metalium/work_split.hpp"
#include "ttnn/operations/experimental/transformer/rotary_embedding/rotary_embedding.hpp"
#include "ttnn/operations/experimental/transformer/rotary_embedding_llama/rotary_embedding_llama.hpp"

namespace ttnn::experimental {
namespace {

using namespace ttcodegen::cpu;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::Shape;
using tt::tt_metal::ShardSpec;
using tt::tt_metal::Tensor;

void check_tables(const Tensor& cosines, const Tensor& sines) {
    require_on_device(cosines, "Cosine cache");
    require_on_device(sines, "Sine cache");
    TT_FATAL(cosines.logical_shape() == sines.logical_shape(), "Cos and Sin dims must match");
}

/// Turns a row of x by its angles: x * cos + rotated * sin, `rotated` given. The products go
/// through memory in the type of the angles.
class Turn {
  public:
    Turn(const std::optional<const ttnn::DeviceComputeKernelConfig>& config, const Tensor& input,
         const Tensor& angles)
        : arithmetic_(
              arithmetic_of(config, ComputeDefault::rotary, std::array{input.dtype()}, false)),
          is_wide_(angles.dtype() == DataType::FLOAT32) {}

    const Arithmetic& arithmetic() const { return arithmetic_; }

    void operator()(float* values, const float* rotated, const float* cosines, const float* sines,
                    std::size_t width) const {
        const MantissaCut source = arithmetic_.source();
        for (std::size_t i = 0; i < width; ++i) {
            const float straight = packed(arithmetic_.product(values[i], cosines[i]));
            const float across = packed(arithmetic_.product(rotated[i], sines[i]));
            values[i] = arithmetic_.in_destination(source(straight) + source(across));
        }
    }

  private:
    float packed(float product) const {
        return is_wide_ ? arithmetic_.in_destination(product) : round_to_bf16(product);
    }

    Arithmetic arithmetic_;
    bool is_wide_;
};

/// The placement of the rotated rows: shards by height stay; rows that are interleaved go to as
/// many cores as divide their tiles.
MemoryConfig rotary_memory(const Tensor& input, const std::optional<MemoryConfig>& asked) {
    const MemoryConfig memory = asked.value_or(input.memory_config());
    const auto& padded = input.padded_shape();
    if (input.is_sharded()) {
        const ShardSpec spec = input.memory_config().shard_spec().value();
        TT_FATAL(input.memory_config().memory_layout() != TensorMemoryLayout::WIDTH_SHARDED,
                 "Input tensor memory layout must not be WIDTH_SHARDED but got {}",
                 input.memory_config().memory_layout());
        TT_FATAL(spec.shape[1] == padded[-1],
                 "Input tensor shard width ({}) must equal padded width ({})", spec.shape[1],
                 padded[-1]);
    }
    if (!memory.is_sharded()) {
        return memory;
    }
    TT_FATAL(memory.memory_layout() != TensorMemoryLayout::WIDTH_SHARDED,
             "Output memory config layout must not be WIDTH_SHARDED but got {}",
             memory.memory_layout());
    if (input.is_sharded()) {
        return memory.with_shard_spec(input.memory_config().shard_spec());
    }
    constexpr uint32_t tile = 32;
    constexpr uint32_t side = 8;
    const auto blocks = static_cast<uint32_t>(padded.volume()) / padded[-1] / tile;
    uint32_t cores = side * side;
    while (blocks % cores != 0) {
        --cores;
    }
    return memory.with_shard_spec(
        ShardSpec(tt::tt_metal::num_cores_to_corerangeset(cores, {side, side}, true),
                  std::array<uint32_t, 2>{blocks / cores * tile, padded[-1]}));
}

/// Refuses tables and matrices that are not placed as the program of a mode reads them.
void check_llama_memory(const Tensor& input, const std::array<const Tensor*, 2>& tables,
                        const Tensor& matrix, bool is_decode_mode, const MemoryConfig& memory) {
    constexpr uint32_t tile = 32;
    const auto is_by_height = [](const Tensor& tensor) {
        return tensor.memory_config().memory_layout() == TensorMemoryLayout::HEIGHT_SHARDED;
    };
    TT_FATAL(input.memory_config().memory_layout() == memory.memory_layout(),
             "Input tensor and output tensor must have same memory layout");
    if (!is_decode_mode) {
        TT_FATAL(!input.is_sharded(), "Input tensor must be interleaved in prefill mode");
        return;
    }
    TT_FATAL(is_by_height(input), "Sharded inputs for RoPE must be HEIGHT_SHARDED.");
    for (const Tensor* table : tables) {
        TT_FATAL(is_by_height(*table), "cos tensor for RoPE must be HEIGHT_SHARDED.");
        TT_FATAL(table->memory_config().shard_spec()->shape[0] == tile,
                 "In decode mode, RoPE only supports n_heads (shard_shape[0]) less than equal to "
                 "TILE_HEIGHT");
    }
    TT_FATAL(is_by_height(matrix), "transformation matrix for RoPE must be HEIGHT_SHARDED.");
    const auto shape = matrix.memory_config().shard_spec()->shape;
    TT_FATAL(shape[0] == tile && shape[1] == tile,
             "Transformation matrix must have 3rd and 4th dim equal to TILE_HEIGHT");
}

}  // namespace

Tensor rotary_embedding(
    const Tensor& input_tensor, const Tensor& cos_cache, const Tensor& sin_cache,
    std::optional<uint32_t> token_index, const std::optional<MemoryConfig>& memory_config,
    std::optional<const ttnn::DeviceComputeKernelConfig> compute_kernel_config) {
    TTCODEGEN_ON_EACH_CHIP(rotary_embedding, input_tensor, cos_cache, sin_cache, token_index,
                           memory_config, compute_kernel_config);
    TT_FATAL(on_device(input_tensor), "Input tensor must be on device");
    check_tables(cos_cache, sin_cache);
    TT_FATAL(input_tensor.layout() == Layout::TILE || input_tensor.dtype() != DataType::UINT8,
             "Can only tilize bfloat16/float32 or int32/uint32/uint16 tensors");
    const Shape& shape = input_tensor.logical_shape();
    TT_FATAL(shape.rank() == 4, "rotary_embedding takes tensors of rank 4, got {}", shape);
    TT_FATAL(shape[3] % 64 == 0, "Input X dimension ({}) must be divisible by 64 for tiling.",
             shape[3]);
    const Shape& table = cos_cache.logical_shape();
    TT_FATAL(
        table.rank() == 4 && table[0] == 1 && table[1] == 1 && table[3] == shape[3],
        "Cosine cache dimensions must match input dimensions. Expected (1, 1, {}), but got {}.",
        shape[3], table);
    TT_FATAL(token_index ? *token_index < table[2] : shape[2] <= table[2],
             "The caches have {} positions, position {} is requested", table[2],
             token_index ? *token_index : shape[2] - 1);
    const std::size_t width = shape[3];
    const std::size_t positions = shape[2];
    // ttnn gives the sequence back padded to whole tiles; here the padding holds zeros.
    const std::size_t padded = (positions + 31) / 32 * 32;
    const Tensor output = allocate_like(
        input_tensor, Shape({shape[0], shape[1], static_cast<uint32_t>(padded), shape[3]}),
        input_tensor.dtype(), Layout::TILE, rotary_memory(input_tensor, memory_config));
    const Turn turn(compute_kernel_config, input_tensor, cos_cache);
    const FloatElements elements(input_tensor);
    const FloatElements cosines(cos_cache);
    const FloatElements sines(sin_cache);
    std::byte* stored = buffer_of(output).data();
    const std::size_t row_bytes = width * stored_size(output.dtype());
    parallel_for(
        std::size_t{shape[0]} * shape[1] * padded, 64, [&](std::size_t begin, std::size_t end) {
            std::vector<float> values(width);
            std::vector<float> rotated(width);
            for (std::size_t row = begin; row < end; ++row) {
                const std::size_t position = row % padded;
                std::fill(values.begin(), values.end(), 0.0F);
                if (position < positions) {
                    const float* source =
                        elements.data() + (row / padded * positions + position) * width;
                    for (std::size_t i = 0; i < width / 2; ++i) {
                        rotated[i] = -source[i + width / 2];
                        rotated[i + width / 2] = source[i];
                    }
                    const std::size_t angle = token_index.value_or(static_cast<uint32_t>(position));
                    std::copy_n(source, width, values.begin());
                    turn(values.data(), rotated.data(), cosines.data() + angle * width,
                         sines.data() + angle * width, width);
                }
                store_floats(values.data(), width, output.dtype(), stored + row * row_bytes);
            }
        });
    finish_block_float(output);
    return output;
}

Tensor rotary_embedding_llama(
    const Tensor& input_tensor, const Tensor& cos_cache, const Tensor& sin_cache,
    const Tensor& trans_mat, bool is_decode_mode, const std::optional<MemoryConfig>& memory_config,
    std::optional<const ttnn::DeviceComputeKernelConfig> compute_kernel_config) {
    TTCODEGEN_ON_EACH_CHIP(rotary_embedding_llama, input_tensor, cos_cache, sin_cache, trans_mat,
                           is_decode_mode, memory_config, compute_kernel_config);
    for (const Tensor* operand : {&input_tensor, &cos_cache, &sin_cache, &trans_mat}) {
        require_on_device(*operand, "input tensor to rotary embedding");
        TT_FATAL(operand->layout() == Layout::TILE,
                 "input tensor to rotary embedding must be tilized");
        TT_FATAL(operand->dtype() == DataType::BFLOAT16,
                 "All input tensors must have dtype = bfloat16");
    }
    check_tables(cos_cache, sin_cache);
    const Shape& shape = input_tensor.logical_shape();
    const Shape& table = cos_cache.logical_shape();
    const Shape& matrix = trans_mat.logical_shape();
    TT_FATAL(shape.rank() == 4 && table.rank() == 4 && matrix.rank() == 4,
             "rotary_embedding_llama takes tensors of rank 4");
    TT_FATAL(shape[0] == 1 && shape[3] == table[3] && shape[3] % 32 == 0 && shape[3] <= 256,
             "Unsupported input shape {} with caches of shape {}", shape, table);
    TT_FATAL(matrix[3] == 32 && matrix[2] >= 32,
             "Transformation matrix must have 4th dim equal to TILE_WIDTH");
    check_llama_memory(input_tensor, {&cos_cache, &sin_cache}, trans_mat, is_decode_mode,
                       output_memory_config(input_tensor, memory_config));
    if (is_decode_mode) {
        TT_FATAL(table[1] == shape[1], "Cos and Sin must have the same batch size as the input");
    } else {
        TT_FATAL(table[0] == 1 && (table[1] == 1 || table[1] == shape[1]),
                 "Cos and Sin must have 1 head or those of the input, got {}", table);
        TT_FATAL(shape[2] <= table[2], "The caches have {} positions, the input {}", table[2],
                 shape[2]);
    }
    const std::size_t width = shape[3];
    const FloatElements cosines(cos_cache);
    const FloatElements sines(sin_cache);
    const FloatElements transform(trans_mat);
    const Tensor output = allocate_like(input_tensor, shape, DataType::BFLOAT16, Layout::TILE,
                                        output_memory_config(input_tensor, memory_config));
    const Turn turn(compute_kernel_config, input_tensor, cos_cache);
    map_rows(input_tensor, output, width, [&](std::size_t row, float* values) {
        std::array<float, 256> rotated{};
        for (std::size_t i = 0; i < width; ++i) {
            for (std::size_t k = 0; k < 32; ++k) {
                // Of a product of matrices, the first operand is in source B.
                rotated[i] +=
                    turn.arithmetic().product(transform[k * 32 + i % 32], values[i / 32 * 32 + k]);
            }
            rotated[i] = round_to_bf16(rotated[i]);
        }
        // Prefill: a row of angles for each position. Decode: one for each user.
        const std::size_t position = is_decode_mode ? 0 : row % shape[2];
        const std::size_t outer = row / shape[2];
        const std::size_t table_row = (table[1] == 1 ? 0 : outer * table[2]) + position;
        turn(values, rotated.data(), cosines.data() + table_row * width,
             sines.data() + table_row * width, width);
    });
    return output;
}

}  // namespace ttnn::experimental
