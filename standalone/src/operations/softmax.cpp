#include "ttnn/operations/normalization/softmax/softmax.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "compute/approximation.hpp"
#include "compute/rows.hpp"
#include "core/chips.hpp"
#include "core/result_shards.hpp"
#include "core/tensor_data.hpp"

namespace ttnn {
namespace {

using namespace ttcodegen::cpu;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::Shape;
using tt::tt_metal::Tensor;

std::size_t checked_dim(int dim, std::size_t rank) {
    const auto position = static_cast<int64_t>(dim) + (dim < 0 ? static_cast<int64_t>(rank) : 0);
    if (position < 0 || position >= static_cast<int64_t>(rank)) {
        TT_THROW("Dimension out of range. Dim: {}", dim);
    }
    return static_cast<std::size_t>(position);
}

/// Checks the input; `takes_rows` if ttnn accepts a row-major input of this shape.
void check_input(const Tensor& input, bool takes_rows) {
    TT_FATAL(on_device(input),
             "input_tensor.device() == nullptr, No device found, move input_tensor to device");
    const DataType dtype = input.dtype();
    TT_FATAL(
        dtype == DataType::FLOAT32 || dtype == DataType::BFLOAT16 || dtype == DataType::BFLOAT8_B,
        "Input tensor must be FLOAT32, BFLOAT16, or BFLOAT8_B, got: {}", dtype);
    TT_FATAL(takes_rows || input.layout() == Layout::TILE || input.logical_volume() == 0,
             "Inputs to softmax must be tilized");
}

/// The steps of a softmax in the registers of the engines.
struct SoftmaxSteps {
    Arithmetic arithmetic;
    /// The kernel is the one for attention, for the last dimension of rank 4: it computes the
    /// exponential together with the difference, as an approximation.
    bool is_fused = false;

    static SoftmaxSteps of(const Tensor& input,
                           const std::optional<const DeviceComputeKernelConfig>& config,
                           bool is_fused) {
        return {arithmetic_of(config, ComputeDefault::softmax, std::array{input.dtype()},
                              input.dtype() == DataType::FLOAT32),
                is_fused};
    }

    float maximum(float value) const { return arithmetic.source()(value); }

    float power(float value, float maximum) const {
        const float difference = arithmetic.in_destination(arithmetic.source()(value) - maximum);
        if (!is_fused) {
            return arithmetic.in_destination(exponential(arithmetic.source()(difference)));
        }
        return arithmetic.in_destination(arithmetic.approximate ? fast_exponential(difference)
                                                                : exponential(difference));
    }

    float factor(float sum) const {
        return arithmetic.in_destination(iterated_reciprocal(sum, arithmetic));
    }

    void row(float* values, std::size_t count) const {
        const float largest = maximum(maximum_of(values, count));
        for (std::size_t i = 0; i < count; ++i) {
            values[i] = power(values[i], largest);
        }
        const float multiplier = factor(sum(values, count));
        for (std::size_t i = 0; i < count; ++i) {
            values[i] = arithmetic.product(values[i], multiplier);
        }
    }

    float sum(const float* values, std::size_t count) const {
        const auto add_cut = [cut = arithmetic.second()](float a, float b) { return a + cut(b); };
        const auto add = [](float a, float b) { return a + b; };
        if (!arithmetic.narrow_sums) {
            return fold_lanes(values, count, 0.0F, add_cut, add);
        }
        float total = 0.0F;
        for (std::size_t i = 0; i < count; i += kTile) {
            total = arithmetic.in_destination(
                total + fold_lanes(values + i, std::min(kTile, count - i), 0.0F, add_cut, add));
        }
        return total;
    }

    static constexpr std::size_t kTile = kTileSide;
};

/// Softmax along a dimension with a stride of `stride` elements.
void softmax_columns(const Tensor& input, const Tensor& output, std::size_t size,
                     std::size_t stride, const SoftmaxSteps& steps) {
    constexpr std::size_t chunk = 64;
    const FloatElements elements(input);
    std::byte* stored = buffer_of(output).data();
    const std::size_t chunks = (stride + chunk - 1) / chunk;
    const std::size_t groups = input.logical_volume() / size / stride;
    const auto run = [&](std::size_t begin, std::size_t end) {
        std::vector<float> values(size * chunk);
        std::vector<float> column(size);
        for (std::size_t task = begin; task < end; ++task) {
            const std::size_t first = task / chunks * size * stride + task % chunks * chunk;
            const std::size_t count = std::min(chunk, stride - task % chunks * chunk);
            for (std::size_t j = 0; j < count; ++j) {
                for (std::size_t i = 0; i < size; ++i) {
                    column[i] = elements[first + i * stride + j];
                }
                steps.row(column.data(), size);
                for (std::size_t i = 0; i < size; ++i) {
                    values[i * chunk + j] = column[i];
                }
            }
            for (std::size_t i = 0; i < size; ++i) {
                store_floats(values.data() + i * chunk, count, output.dtype(),
                             stored + (first + i * stride) * stored_size(output.dtype()));
            }
        }
    };
    parallel_for(groups * chunks, std::max<std::size_t>(1, (std::size_t{1} << 13) / size / chunk),
                 run);
    finish_block_float(output);
}

/// The mask row that is added to a row of the input.
enum class MaskRows : std::uint8_t {
    /// The first row of its batch.
    first,
    /// The row at the same height in the mask of its batch.
    same_height,
    /// The row with the same index.
    own,
};

/// Use of a mask by a call.
struct MaskUse {
    bool is_causal = false;
    bool has_sharded_program = false;
};

void check_interleaved_mask(const Shape& shape, const Shape& mask_shape, bool is_by_rows,
                            bool is_causal) {
    TT_FATAL(mask_shape[0] == shape[0],
             "Input and mask batch sizes must match, got input: {} vs mask: {}", shape[0],
             mask_shape[0]);
    TT_FATAL(mask_shape[1] == 1, "Mask intermediate dimension 1 must be 1, got: {}", mask_shape[1]);
    if (is_by_rows) {
        TT_FATAL(mask_shape[3] == kTileSide && mask_shape[2] * kTileSide == shape[3],
                 "Non-sharded mask shape must match expected shape");
        return;
    }
    TT_FATAL(!is_causal || mask_shape[2] == shape[2], "A causal mask must have height {}, got: {}",
             shape[2], mask_shape[2]);
    TT_FATAL(mask_shape[3] == shape[3], "Mask width must be {}, got: {}", shape[3], mask_shape[3]);
}

/// Refuses masks that the release refuses, and those whose elements its kernels read beyond the end
/// or at other positions.
///
/// Source: softmax_device_operation.cpp and the kernels of tt-metal 0.70.1, which add the first row
/// of a mask that is not causal to all rows.
MaskRows checked_mask(const Tensor& input, const Tensor& mask, const MaskUse& use) {
    require_on_device(mask, "mask");
    TT_FATAL(mask.layout() == Layout::TILE || mask.dtype() != DataType::UINT8,
             "Can only tilize bfloat16/float32 or int32/uint32/uint16 tensors");
    const Shape& shape = input.logical_shape();
    const Shape& mask_shape = mask.logical_shape();
    TT_FATAL(shape.rank() == 4 && mask_shape.rank() == 4,
             "Input and mask must have rank 4, got shapes {} and {}", shape, mask_shape);
    const bool is_row_major = mask.layout() == Layout::ROW_MAJOR;
    if (mask.is_sharded()) {
        TT_FATAL(!is_row_major, "Sharded mask must have TILE layout");
        TT_FATAL(mask.padded_shape() == input.padded_shape(),
                 "Sharded mask shape must match input tensor shape");
        TT_FATAL(use.is_causal && use.has_sharded_program,
                 "A sharded mask must be causal, for a program of sharded rows");
        return MaskRows::own;
    }
    TT_FATAL(!is_row_major || !use.is_causal, "A causal mask must have TILE layout");
    check_interleaved_mask(shape, mask_shape, is_row_major && use.has_sharded_program,
                           use.is_causal);
    return use.is_causal ? MaskRows::same_height : MaskRows::first;
}

void scale_mask_softmax_into(const Tensor& input, const Tensor& output, std::optional<float> scale,
                             const std::optional<const Tensor>& mask, const MaskUse& use,
                             const std::optional<const DeviceComputeKernelConfig>& compute) {
    const SoftmaxSteps steps = SoftmaxSteps::of(input, compute, true);
    check_input(input, false);
    TT_FATAL(mask || !scale, "Scale value must not be set when mask is not present");
    std::optional<FloatElements> mask_values;
    MaskRows mask_rows = MaskRows::first;
    std::size_t mask_of_batch = 0;
    if (mask) {
        mask_rows = checked_mask(input, *mask, use);
        mask_values.emplace(*mask);
        mask_of_batch = mask->logical_volume() / mask->logical_shape()[0];
    }
    const Shape& shape = input.logical_shape();
    const std::size_t width = shape[-1];
    const std::size_t height = shape.rank() > 1 ? shape[-2] : 1;
    const std::size_t rows_of_batch = shape.rank() == 4 ? shape[1] * height : 1;
    const auto place_in_mask = [&](std::size_t row) {
        switch (mask_rows) {
            case MaskRows::own:
                return row * width;
            case MaskRows::same_height:
                return row / rows_of_batch * mask_of_batch + row % height * width;
            case MaskRows::first:
                break;
        }
        return row / rows_of_batch * mask_of_batch;
    };
    map_rows(input, output, width, [&](std::size_t row, float* values) {
        if (scale) {
            for (std::size_t i = 0; i < width; ++i) {
                values[i] *= *scale;
            }
        }
        if (mask_values) {
            const float* added = mask_values->data() + place_in_mask(row);
            for (std::size_t i = 0; i < width; ++i) {
                values[i] += added[i];
            }
        }
        steps.row(values, width);
    });
}

/// Refuses sharded programs that tt-metal 0.70.1 refuses
/// (softmax_device_operation.cpp).
void check_softmax_program(const Tensor& input, const SoftmaxProgramConfig& program,
                           const std::optional<const Tensor>& mask = std::nullopt) {
    const auto* config = std::get_if<SoftmaxShardedMultiCoreProgramConfig>(&program);
    if (config == nullptr) {
        return;
    }
    TT_FATAL(input.memory_config().shard_spec().has_value(),
             "output_mem_config must have a shard_spec when using "
             "SoftmaxShardedMultiCoreProgramConfig");
    const auto& shape = input.memory_config().shard_spec()->shape;
    TT_FATAL(config->subblock_w > 0, "subblock_w must be greater than 0");
    TT_FATAL(config->block_h == shape[0] / kTileSide,
             "block_h ({}) must match the shard height in tiles ({})", config->block_h,
             shape[0] / kTileSide);
    TT_FATAL(config->block_w == shape[1] / kTileSide,
             "block_w ({}) must match the shard width in tiles ({})", config->block_w,
             shape[1] / kTileSide);
    if (!mask || mask->is_sharded()) {
        return;
    }
    TT_FATAL(config->block_w * kTileSide == input.padded_shape()[-1],
             "shard width must equal to input tensor shape[3]!");
    TT_FATAL(config->block_w % config->subblock_w == 0,
             "block_w must be divisible by subblock_w, got {} and {}", config->block_w,
             config->subblock_w);
    const std::size_t blocks =
        input.padded_shape().volume() / (config->block_w * config->block_h * kTileSide * kTileSide);
    const std::size_t cores =
        config->compute_with_storage_grid_size.x * config->compute_with_storage_grid_size.y;
    TT_FATAL(blocks == cores, "number of shards ({}) must equal to number of cores ({})", blocks,
             cores);
}

}  // namespace

Tensor softmax(const Tensor& input_tensor, int dim,
               const std::optional<MemoryConfig>& memory_config,
               std::optional<const DeviceComputeKernelConfig> compute_kernel_config, bool ignored) {
    TTCODEGEN_ON_EACH_CHIP(softmax, input_tensor, dim, memory_config, compute_kernel_config,
                           ignored);
    const Shape& shape = input_tensor.logical_shape();
    const std::size_t rank = shape.rank();
    const std::size_t position = checked_dim(dim, rank);
    check_input(input_tensor, (rank == 4 && position == 3) || (rank == 3 && position == 1));
    TT_FATAL(!is_sharded_in_dram(input_tensor) || input_tensor.layout() == Layout::TILE,
             "Only L1 buffers can have an associated circular buffer!");
    const Tensor output =
        allocate_like(input_tensor, shape, input_tensor.dtype(),
                      input_tensor.logical_volume() == 0 ? input_tensor.layout() : Layout::TILE,
                      output_memory_config(input_tensor, memory_config));
    const std::size_t size = shape.view()[position];
    const std::size_t stride = element_strides(shape)[position];
    // ttnn compares the dimension at rank 4 with the dimension of the tensor itself.
    const bool is_fused = rank <= 4 && position + (4 - rank) + 1 == rank;
    const SoftmaxSteps steps = SoftmaxSteps::of(input_tensor, compute_kernel_config, is_fused);
    if (input_tensor.logical_volume() == 0) {
        return output;
    }
    if (stride == 1) {
        map_rows(input_tensor, output, size,
                 [&](std::size_t, float* values) { steps.row(values, size); });
    } else {
        softmax_columns(input_tensor, output, size, stride, steps);
    }
    return output;
}

Tensor scale_mask_softmax(const Tensor& input_tensor, std::optional<float> scale,
                          const std::optional<const Tensor>& mask,
                          const std::optional<MemoryConfig>& memory_config, bool is_causal_mask,
                          std::optional<const DeviceComputeKernelConfig> compute_kernel_config,
                          bool ignored) {
    TTCODEGEN_ON_EACH_CHIP(scale_mask_softmax, input_tensor, scale, mask, memory_config,
                           is_causal_mask, compute_kernel_config, ignored);
    TT_FATAL(!mask || mask->padded_shape()[-2] == 1 || mask->padded_shape()[-2] == kTileSide,
             "Mask height must be 1 or input tensor tile height, got: {}",
             mask->padded_shape()[-2]);
    const Tensor output =
        allocate_like(input_tensor, input_tensor.logical_shape(), input_tensor.dtype(),
                      Layout::TILE, output_memory_config(input_tensor, memory_config));
    scale_mask_softmax_into(input_tensor, output, scale, mask, {.is_causal = is_causal_mask},
                            compute_kernel_config);
    return output;
}

Tensor softmax_in_place(const Tensor& input_tensor, int dim,
                        const SoftmaxProgramConfig& program_config,
                        std::optional<const DeviceComputeKernelConfig> compute_kernel_config,
                        bool ignored) {
    TTCODEGEN_ON_EACH_CHIP(softmax_in_place, input_tensor, dim, program_config,
                           compute_kernel_config, ignored);
    const std::size_t rank = input_tensor.logical_shape().rank();
    const std::size_t position = checked_dim(dim, rank);
    if (rank > 4) {
        TT_THROW("Tensor rank is greater than 4");
    }
    TT_FATAL(position == 3 || input_tensor.logical_volume() == 0,
             "Invalid dimension: {}. Currently softmax inplace supports dim -1.", position);
    check_softmax_program(input_tensor, program_config);
    scale_mask_softmax_into(input_tensor, input_tensor, std::nullopt, std::nullopt, {},
                            compute_kernel_config);
    return input_tensor;
}

Tensor scale_mask_softmax_in_place(
    const Tensor& input_tensor, std::optional<float> scale, const std::optional<const Tensor>& mask,
    const SoftmaxProgramConfig& program_config, bool is_causal_mask,
    std::optional<const DeviceComputeKernelConfig> compute_kernel_config, bool ignored) {
    TTCODEGEN_ON_EACH_CHIP(scale_mask_softmax_in_place, input_tensor, scale, mask, program_config,
                           is_causal_mask, compute_kernel_config, ignored);
    const MaskUse use{
        .is_causal = is_causal_mask,
        .has_sharded_program =
            std::holds_alternative<SoftmaxShardedMultiCoreProgramConfig>(program_config)};
    TT_FATAL(!mask || use.has_sharded_program || mask->layout() == Layout::TILE,
             "Mask must have TILE layout");
    check_softmax_program(input_tensor, program_config, mask);
    scale_mask_softmax_into(input_tensor, input_tensor, scale, mask, use, compute_kernel_config);
    return input_tensor;
}

}  // namespace ttnn
