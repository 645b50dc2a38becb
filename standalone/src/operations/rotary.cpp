#include <array>
#include <string_view>

#include "compute/arithmetic.hpp"
#include "compute/rows.hpp"
#include "core/chips.hpp"
#include "core/shard_rules.hpp"
#include "core/tensor_data.hpp"
#include "tt-metalium/work_split.hpp"
#include "ttnn/operations/experimental/transformer/rotary_embedding/rotary_embedding.hpp"
#include "ttnn/operations/experimental/transformer/rotary_embedding_llama/rotary_embedding_llama.hpp"

namespace ttnn::experimental {
namespace {

using namespace ttcodegen::cpu;
using tt::tt_metal::CoreCoord;
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
    TT_FATAL(cosines.dtype() == sines.dtype(), "Cos and Sin dtypes must match, got {} and {}",
             cosines.dtype(), sines.dtype());
}

/// Rotates a row of x: x * cos + rotated * sin, with `rotated` given. The products are stored in
/// the data type of cos and sin.
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

/// The memory config of rotated rows: height shards are kept; interleaved rows are sharded over as
/// many cores as divide their tiles.
MemoryConfig rotary_memory(const Tensor& input, const std::optional<MemoryConfig>& asked) {
    const MemoryConfig memory = asked.value_or(input.memory_config());
    const auto& padded = input.padded_shape();
    check_whole_rows(input);
    if (!memory.is_sharded()) {
        return memory;
    }
    TT_FATAL(memory.memory_layout() != TensorMemoryLayout::WIDTH_SHARDED,
             "Output memory config layout must not be WIDTH_SHARDED but got {}",
             memory.memory_layout());
    if (input.is_sharded()) {
        return memory.with_shard_spec(input.memory_config().shard_spec());
    }
    const CoreCoord grid = input.device()->compute_with_storage_grid_size();
    const auto blocks = static_cast<uint32_t>(padded.volume()) / padded[-1] / kTileSide;
    auto cores = static_cast<uint32_t>(grid.x * grid.y);
    while (blocks % cores != 0) {
        --cores;
    }
    return memory.with_shard_spec(
        ShardSpec(tt::tt_metal::num_cores_to_corerangeset(cores, grid, true),
                  std::array<uint32_t, 2>{blocks / cores * kTileSide, padded[-1]}));
}

/// In prefill mode the tables and the matrix are interleaved, or hold one tile's rows per core.
void check_prefill_tables(const Tensor& input, const std::array<const Tensor*, 2>& tables,
                          const Tensor& matrix) {
    const auto check = [](const Tensor& tensor, uint32_t width, std::string_view name) {
        if (!tensor.is_sharded()) {
            return;
        }
        TT_FATAL(tensor.memory_config().memory_layout() == TensorMemoryLayout::HEIGHT_SHARDED,
                 "{} must be either INTERLEAVED or HEIGHT_SHARDED for prefill RoPE", name);
        const auto shape = tensor.memory_config().shard_spec().value().shape;
        TT_FATAL(shape[0] == kTileSide,
                 "HEIGHT_SHARDED {} shard height must equal TILE_HEIGHT for prefill RoPE", name);
        TT_FATAL(shape[1] == width,
                 "HEIGHT_SHARDED {} shard width must equal {} for prefill RoPE, got {}", name,
                 width, shape[1]);
    };
    TT_FATAL(tables[0]->is_sharded() == tables[1]->is_sharded(),
             "Cos and sin must both be HEIGHT_SHARDED or both be INTERLEAVED for prefill RoPE");
    for (const Tensor* table : tables) {
        TT_FATAL(!table->is_sharded() || table->logical_shape()[1] == 1,
                 "HEIGHT_SHARDED cos/sin in prefill RoPE requires head-broadcast "
                 "(cos.shape[1]==1), got {}",
                 table->logical_shape()[1]);
        check(*table, input.padded_shape()[-1], "Cos or sin tensor");
    }
    check(matrix, kTileSide, "Transformation matrix");
}

/// Refuses tables and matrices that are not sharded as the program of a mode reads them.
void check_llama_memory(const Tensor& input, const std::array<const Tensor*, 2>& tables,
                        const Tensor& matrix, bool is_decode_mode, const MemoryConfig& memory) {
    const auto is_by_height = [](const Tensor& tensor) {
        return tensor.memory_config().memory_layout() == TensorMemoryLayout::HEIGHT_SHARDED;
    };
    TT_FATAL(input.memory_config().memory_layout() == memory.memory_layout(),
             "Input tensor and output tensor must have same memory layout");
    if (!is_decode_mode) {
        TT_FATAL(!input.is_sharded(), "Input tensor must be interleaved in prefill mode");
        check_prefill_tables(input, tables, matrix);
        return;
    }
    TT_FATAL(is_by_height(input), "Sharded inputs for RoPE must be HEIGHT_SHARDED.");
    for (const Tensor* table : tables) {
        TT_FATAL(is_by_height(*table), "cos tensor for RoPE must be HEIGHT_SHARDED.");
        TT_FATAL(table->memory_config().shard_spec()->shape[0] == kTileSide,
                 "In decode mode, RoPE only supports n_heads (shard_shape[0]) less than equal to "
                 "TILE_HEIGHT");
    }
    TT_FATAL(is_by_height(matrix), "transformation matrix for RoPE must be HEIGHT_SHARDED.");
    const auto shape = matrix.memory_config().shard_spec()->shape;
    TT_FATAL(shape[0] == kTileSide && shape[1] == kTileSide,
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
    // ttnn returns the sequence padded to whole tiles; here the padding holds zeros.
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
    TT_FATAL(matrix[0] == 1 && matrix[1] == 1,
             "Transformation matrix must have 1st & 2nd dim equal to 1, got {}", matrix);
    TT_FATAL(shape[3] <= 128 || !compute_kernel_config || !compute_kernel_config->fp32_dest_acc_en,
             "If head_dim is > 128, fp32_dest_acc_en must be False");
    check_llama_memory(input_tensor, {&cos_cache, &sin_cache}, trans_mat, is_decode_mode,
                       output_memory_config(input_tensor, memory_config));
    if (is_decode_mode) {
        const CoreCoord grid = input_tensor.device()->compute_with_storage_grid_size();
        TT_FATAL(shape[1] <= grid.x * grid.y,
                 "In decode mode, RoPE is parallelized over batch dimension, and therefore, batch "
                 "size ({}) must be less than or equal to the number of cores ({})",
                 shape[1], grid.x * grid.y);
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
                // In a matmul the first operand is in source B.
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
