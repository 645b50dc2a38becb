// Normalizations of the last dimension.

#include <array>
#include <cmath>

#include "compute/arithmetic.hpp"
#include "compute/rows.hpp"
#include "core/chips.hpp"
#include "core/result_shards.hpp"
#include "core/tensor_data.hpp"
#include "ttnn/operations/normalization/layernorm/layernorm.hpp"
#include "ttnn/operations/normalization/rmsnorm/rmsnorm.hpp"

namespace ttnn {
namespace {

using namespace ttcodegen::cpu;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::Shape;
using tt::tt_metal::Tensor;

using OptionalTensor = std::optional<const Tensor>;

/// Checks the scale or offset of rows: one row of tiles, or row-major in pieces of 32.
void check_row_parameter(const Tensor& input, const Tensor& parameter, std::string_view name) {
    require_on_device(parameter, name);
    const uint32_t width = input.logical_shape()[-1];
    const Shape& shape = parameter.logical_shape();
    if (parameter.layout() == Layout::TILE) {
        TT_FATAL(shape.rank() > 0 && shape[-1] == width,
                 "Input and {} inner dimensions must match, got input: {} vs {}: {}", name, width,
                 name, shape);
        for (std::size_t dim = 0; dim + 2 < shape.rank(); ++dim) {
            TT_FATAL(shape.view()[dim] == 1, "{} must be one row, got {}", name, shape);
        }
        TT_FATAL(parameter.padded_shape()[-2] == kTileSide,
                 "{} tensor height must equal tile height ({}), got: {}", name, kTileSide,
                 parameter.padded_shape()[-2]);
        return;
    }
    TT_FATAL(parameter.dtype() == DataType::FLOAT32 || parameter.dtype() == DataType::BFLOAT16,
             "{} tensor must be FLOAT32 or BFLOAT16, got: {}", name, parameter.dtype());
    TT_FATAL(shape.rank() > 0 && shape[-1] == 32 && shape.volume() == input.padded_shape()[-1],
             "{} tensor dimensions must align with input tensor. Got {} shape: {}, input padded "
             "shape: {}, tile_width: 32",
             name, name, shape, input.padded_shape());
}

void check_arguments(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                     const OptionalTensor& residual) {
    require_on_device(input, "Input tensor to layernorm");
    const DataType dtype = input.dtype();
    TT_FATAL(
        dtype == DataType::FLOAT32 || dtype == DataType::BFLOAT16 || dtype == DataType::BFLOAT8_B,
        "Input tensor must be FLOAT32, BFLOAT16, or BFLOAT8_B, got: {}", dtype);
    TT_FATAL(input.memory_config().memory_layout() != TensorMemoryLayout::HEIGHT_SHARDED,
             "Height sharded inputs are not supported.");
    TT_FATAL(input.layout() == Layout::TILE || !input.is_sharded(),
             "ROW_MAJOR input is not supported with sharded tensors");
    TT_FATAL(!weight || !bias || weight->layout() == bias->layout(),
             "Gamma and beta must have the same layout!");
    if (weight) {
        check_row_parameter(input, *weight, "Gamma");
    }
    if (bias) {
        check_row_parameter(input, *bias, "Beta");
    }
    if (residual) {
        require_on_device(*residual, "Residual tensor");
        TT_FATAL(residual->layout() == Layout::TILE,
                 "Residual tensor must have TILE layout, got: {}", residual->layout());
        TT_FATAL(residual->logical_shape() == input.logical_shape(),
                 "Input and residual shapes must match, got input: {} vs residual: {}",
                 input.logical_shape(), residual->logical_shape());
    }
}

/// The first row of a scale or offset, if given.
struct RowParameter {
    explicit RowParameter(const OptionalTensor& tensor) {
        if (tensor) {
            elements.emplace(*tensor);
        }
    }
    const float* data() const { return elements ? elements->data() : nullptr; }
    std::optional<FloatElements> elements;
};

/// (value - mean) / deviation, step by step through the registers of the matrix engine: operands
/// are truncated, and results pass through the destination register.
void normalize_row(float* values, std::size_t width, float epsilon, bool subtract_mean,
                   const Arithmetic& arithmetic) {
    const MantissaCut second = arithmetic.second();
    const MantissaCut source = arithmetic.source();
    const auto count = static_cast<float>(width);
    if (subtract_mean) {
        const auto add_cut = [second](float a, float b) { return a + second(b); };
        const auto add = [](float a, float b) { return a + b; };
        const float mean =
            arithmetic.in_destination(fold_lanes(values, width, 0.0F, add_cut, add) / count);
        for (std::size_t i = 0; i < width; ++i) {
            values[i] = arithmetic.in_destination(source(values[i]) - source(mean));
        }
    }
    const auto add_square = [&](float sum, float value) {
        return sum + second(arithmetic.in_destination(arithmetic.product(value, value)));
    };
    const auto add = [](float a, float b) { return a + b; };
    const float variance =
        arithmetic.in_destination(fold_lanes(values, width, 0.0F, add_square, add) / count);
    const float factor = arithmetic.in_destination(1.0F / std::sqrt(source(variance) + epsilon));
    for (std::size_t i = 0; i < width; ++i) {
        values[i] = arithmetic.in_destination(arithmetic.product(values[i], factor));
    }
}

using NormProgram = std::optional<const ttnn::prim::LayerNormProgramConfig>;

/// Returns whether a program writes its result over its input, whatever memory is requested.
bool runs_in_place(const NormProgram& program) {
    const auto* config =
        program ? std::get_if<ttnn::prim::LayerNormShardedMultiCoreProgramConfig>(&*program)
                : nullptr;
    return config != nullptr && config->inplace;
}

/// The memory config of the result; a sharding without shard spec uses the input's.
MemoryConfig normalized_memory(const Tensor& input, const std::optional<MemoryConfig>& asked) {
    if (is_bare(asked) && input.is_sharded()) {
        return asked->with_shard_spec(input.memory_config().shard_spec());
    }
    return output_memory_config(input, asked);
}

/// Refuses sharded programs that tt-metal 0.70.1 refuses
/// (layernorm_device_operation.cpp).
void check_norm_program(const Tensor& input,
                        const ttnn::prim::LayerNormShardedMultiCoreProgramConfig& config,
                        const MemoryConfig& target, bool has_narrow_sums) {
    TT_FATAL(!config.inplace || target.is_sharded(),
             "Output memory config must be sharded for inplace operation");
    TT_FATAL(config.block_h > 0 && config.block_w > 0 && config.subblock_w > 0,
             "block_h, block_w and subblock_w must be greater than 0");
    TT_FATAL(config.block_w % config.subblock_w == 0, "block_w must be divisible by subblock_w.");
    // The destination register holds four tiles of 32 bits, or eight of 16.
    const std::size_t most = has_narrow_sums ? 8 : 4;
    TT_FATAL(config.subblock_w <= most,
             "subblock_wt={}, but the destination registers hold {} tiles", config.subblock_w,
             most);
    TT_FATAL(input.shard_spec(), "A program of sharded rows needs a sharded input");
    const auto& shards = *input.shard_spec();
    const auto grid = shards.grid.bounding_box().grid_size();
    const auto asked = config.compute_with_storage_grid_size;
    TT_FATAL(grid.x <= asked.x && grid.y <= asked.y,
             "Bounding box dimensions must be smaller than compute grid size, got {}x{} vs {}x{}",
             grid.x, grid.y, asked.x, asked.y);
    const auto physical = input.tensor_spec().physical_shape();
    const std::size_t height = physical.height() / kTileSide;
    const std::size_t width = physical.width() / kTileSide;
    const auto check = [&](std::size_t rows, std::size_t columns) {
        const std::size_t high = height / rows;
        const std::size_t wide = (width + columns - 1) / columns;
        TT_FATAL(wide == config.block_w, "block_w ({}) must equal to K (in tiles) / num_cores ({})",
                 config.block_w, wide);
        TT_FATAL(high == config.block_h, "block_h ({}) must equal to M (in tiles) / num_cores ({})",
                 config.block_h, high);
    };
    TT_FATAL(config.block_h * kTileSide == shards.shape[0],
             "Block height * tile_height must match shard shape[0], got {} vs {}",
             config.block_h * kTileSide, shards.shape[0]);
    TT_FATAL(config.block_w * kTileSide == shards.shape[1],
             "Block width * tile_width must match shard shape[1], got {} vs {}",
             config.block_w * kTileSide, shards.shape[1]);
    if (height == config.block_h) {
        check(1, shards.num_cores());
    } else if (shards.orientation == tt::tt_metal::ShardOrientation::ROW_MAJOR) {
        check(grid.y, grid.x);
    } else {
        check(grid.x, grid.y);
    }
}

void check_norm_placement(const Tensor& input, const OptionalTensor& residual,
                          const MemoryConfig& target, const NormProgram& program,
                          bool has_narrow_sums) {
    if (input.is_sharded()) {
        TT_FATAL(input.memory_config().memory_layout() != TensorMemoryLayout::HEIGHT_SHARDED,
                 "Height sharded inputs are not supported.");
        TT_FATAL(
            target.is_sharded() && target.memory_layout() == input.memory_config().memory_layout(),
            "Sharded inputs require sharded outputs.");
        TT_FATAL(target.buffer_type() == input.memory_config().buffer_type(),
                 "Input and output buffer types must match");
        TT_FATAL(!input.memory_config().is_dram(),
                 "Only L1 buffers can have an associated circular buffer!");
        if (const auto& shards = input.shard_spec()) {
            const auto box = shards->grid.bounding_box().grid_size();
            TT_FATAL(shards->num_cores() == box.x * box.y,
                     "Sharded layernorm does not support non-rectangular core grids. The shard "
                     "spec grid has {} cores but its bounding box spans {} cores ({} x {}).",
                     shards->num_cores(), box.x * box.y, box.x, box.y);
        }
        const auto elements = [](const MemoryConfig& memory) {
            return memory.shard_spec() ? memory.shard_spec()->numel() : 0;
        };
        TT_FATAL(elements(target) >= elements(input.memory_config()),
                 "Cannot set circular buffer size: shards of the input are larger than the "
                 "result's");
        TT_FATAL(!residual || residual->memory_config() == input.memory_config(),
                 "Both a and b should have the same memory config");
    }
    if (const auto* config =
            program ? std::get_if<ttnn::prim::LayerNormShardedMultiCoreProgramConfig>(&*program)
                    : nullptr) {
        check_norm_program(input, *config, target, has_narrow_sums);
    }
}

Tensor normalize_rows(const Tensor& input, float epsilon, const OptionalTensor& weight,
                      const OptionalTensor& bias, const OptionalTensor& residual,
                      const std::optional<MemoryConfig>& memory_config, bool subtract_mean,
                      const Arithmetic& arithmetic, const NormProgram& program) {
    const Shape& shape = input.logical_shape();
    const MemoryConfig target =
        runs_in_place(program) ? input.memory_config() : normalized_memory(input, memory_config);
    check_norm_placement(input, residual, target, program, arithmetic.narrow_sums);
    const Tensor output = allocate_like(input, shape, input.dtype(), input.layout(), target);
    const std::size_t width = shape.rank() > 0 ? shape[-1] : 1;
    const RowParameter scale(weight);
    const RowParameter offset(bias);
    const RowParameter addend(residual);
    map_rows(input, output, width, [&](std::size_t row, float* values) {
        if (const float* added = addend.data()) {
            for (std::size_t i = 0; i < width; ++i) {
                values[i] = arithmetic.in_destination(arithmetic.source()(values[i]) +
                                                      arithmetic.source()(added[row * width + i]));
            }
        }
        normalize_row(values, width, epsilon, subtract_mean, arithmetic);
        const MantissaCut source = arithmetic.source();
        if (const float* scales = scale.data()) {
            for (std::size_t i = 0; i < width; ++i) {
                values[i] = arithmetic.in_destination(arithmetic.product(values[i], scales[i]));
            }
        }
        if (const float* offsets = offset.data()) {
            for (std::size_t i = 0; i < width; ++i) {
                values[i] = arithmetic.in_destination(source(values[i]) + source(offsets[i]));
            }
        }
    });
    return output;
}

}  // namespace

Tensor layer_norm(const Tensor& input_tensor, float epsilon,
                  const std::optional<const Tensor>& weight,
                  const std::optional<const Tensor>& bias,
                  const std::optional<const Tensor>& residual_input_tensor,
                  const std::optional<MemoryConfig>& memory_config,
                  const std::optional<const prim::LayerNormProgramConfig>& program_config,
                  std::optional<const DeviceComputeKernelConfig> compute_kernel_config,
                  const std::optional<const Tensor>& ignored) {
    TTCODEGEN_ON_EACH_CHIP(layer_norm, input_tensor, epsilon, weight, bias, residual_input_tensor,
                           memory_config, program_config, compute_kernel_config, ignored);
    TT_FATAL(input_tensor.logical_shape().rank() > 0,
             "LayerNorm operation not supported for 0D tensors. (rank=0)");
    check_arguments(input_tensor, weight, bias, residual_input_tensor);
    TT_FATAL(input_tensor.layout() == Layout::TILE || input_tensor.logical_shape()[-1] % 32 == 0,
             "ROW_MAJOR input requires W ({}) to be a multiple of tile width (32)",
             input_tensor.logical_shape()[-1]);
    return normalize_rows(input_tensor, epsilon, weight, bias, residual_input_tensor, memory_config,
                          true,
                          arithmetic_of(compute_kernel_config, ComputeDefault::layer_norm,
                                        std::array{input_tensor.dtype()}, false),
                          program_config);
}

Tensor rms_norm(const Tensor& input_tensor, float epsilon,
                const std::optional<const Tensor>& weight, const std::optional<const Tensor>& bias,
                const std::optional<const Tensor>& residual_input_tensor,
                const std::optional<MemoryConfig>& memory_config,
                const std::optional<const prim::LayerNormProgramConfig>& program_config,
                std::optional<const DeviceComputeKernelConfig> compute_kernel_config) {
    TTCODEGEN_ON_EACH_CHIP(rms_norm, input_tensor, epsilon, weight, bias, residual_input_tensor,
                           memory_config, program_config, compute_kernel_config);
    TT_FATAL(input_tensor.layout() == Layout::TILE,
             "ttnn::rms_norm does not support ROW_MAJOR input tensors. Use TILE layout.");
    check_arguments(input_tensor, weight, bias, residual_input_tensor);
    return normalize_rows(input_tensor, epsilon, weight, bias, residual_input_tensor, memory_config,
                          false,
                          arithmetic_of(compute_kernel_config, ComputeDefault::rms_norm,
                                        std::array{input_tensor.dtype()}, false),
                          program_config);
}

}  // namespace ttnn
