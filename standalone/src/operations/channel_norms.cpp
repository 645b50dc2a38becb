// Normalizations of channels or groups of channels.

#include <array>
#include <cmath>
#include <vector>

#include "compute/arithmetic.hpp"
#include "compute/reduce.hpp"
#include "compute/rows.hpp"
#include "core/chips.hpp"
#include "core/tensor_data.hpp"
#include "operations/group_norm_memory.hpp"
#include "ttnn/operations/normalization/batch_norm/batch_norm.hpp"
#include "ttnn/operations/normalization/groupnorm/groupnorm.hpp"

namespace ttnn {
namespace {

using namespace ttcodegen::cpu;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::Shape;
using tt::tt_metal::Tensor;

void check_channel_parameter(const Tensor& input, const std::optional<Tensor>& parameter,
                             std::optional<DataType>& common, std::string_view name) {
    if (!parameter) {
        return;
    }
    require_on_device(*parameter, name);
    TT_FATAL(parameter->logical_shape().rank() == 4, "batch_norm supports tensors of rank 4");
    TT_FATAL(!common || *common == parameter->dtype(),
             "batch_norm: {} dtype ({}) must match other parameter tensors dtype ({})", name,
             parameter->dtype(), *common);
    common = parameter->dtype();
    TT_FATAL(*common == DataType::BFLOAT16 || *common == DataType::FLOAT32,
             "batch_norm only supports bfloat16, float32. Got: {}", *common);
    TT_FATAL(parameter->layout() == Layout::TILE, "{} tensor must be tilized", name);
    const Shape& shape = parameter->logical_shape();
    const Shape& input_shape = input.logical_shape();
    TT_FATAL(shape[1] == input_shape[1], "{}_shape[1] must be the same as input's channel size.",
             name);
    TT_FATAL((shape[0] == 1 || shape[0] == input_shape[0]) && shape[2] == 1 && shape[3] == 1,
             "{} must have the shape (1 or {}, {}, 1, 1), got {}", name, input_shape[0],
             input_shape[1], shape);
}

void check_batch_norm_input(const Tensor& input) {
    const std::size_t rank = input.logical_shape().rank();
    TT_FATAL(rank >= 4, "batch_norm not supported for tensors with rank < 4. (rank={})", rank);
    TT_FATAL(rank == 4, "batch_norm supports tensors of rank 4");
    TT_FATAL(on_device(input),
             "Invalid input tensor storage type: Input tensor must be on device. (storage type={})",
             input.storage_type());
    TT_FATAL(input.dtype() == DataType::BFLOAT16 || input.dtype() == DataType::FLOAT32,
             "batch_norm only supports bfloat16, float32. Got: {}", input.dtype());
    TT_FATAL(input.layout() == Layout::TILE, "Input tensor must be must be tilized");
    TT_FATAL(!input.is_sharded(), "Input tensor must be interleaved");
}

/// One value for each image and channel; `fallback` if there is no tensor.
std::vector<float> per_channel(const std::optional<Tensor>& tensor, const Shape& shape,
                               float fallback) {
    const std::size_t count = std::size_t{shape[0]} * shape[1];
    std::vector<float> values(count, fallback);
    if (tensor) {
        const FloatElements elements(*tensor);
        for (std::size_t i = 0; i < count; ++i) {
            values[i] = elements[i % elements.span().size()];
        }
    }
    return values;
}

/// running = (1 - momentum) * running + momentum * batch, in place.
void update_running(const std::optional<Tensor>& running, const std::vector<float>& batch,
                    float momentum) {
    if (!running) {
        return;
    }
    std::vector<float> values(running->logical_volume());
    const FloatElements old(*running);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = (1.0F - momentum) * old[i] + momentum * batch[i % batch.size()];
    }
    Buffer& buffer = buffer_of(*running);
    buffer.forget_derived();
    store_floats(values.data(), values.size(), running->dtype(), buffer.data());
}

/// The steps of ttnn's kernels for (x - mean) / deviation * scale + offset.
///
/// They run in the vector engine if sums have 32 bits or any tensor is Float32, else in the matrix
/// engine. Intermediate values in memory are Float32 if any tensor is, else bfloat16.
struct ChannelSteps {
    Arithmetic arithmetic;
    bool has_float32 = false;

    float read(float value) const {
        return arithmetic.narrow_sums ? arithmetic.source()(value) : value;
    }
    float packed(float value) const { return has_float32 ? value : round_to_bf16(value); }
    float times(float a, float b) const {
        const bool in_matrix_engine = arithmetic.narrow_sums && !has_float32;
        return arithmetic.in_destination(in_matrix_engine ? arithmetic.product(a, b) : a * b);
    }
    float factor(float variance, float epsilon) const {
        const float widened = arithmetic.in_destination(read(variance) + packed(epsilon));
        return read(packed(arithmetic.in_destination(1.0F / std::sqrt(widened))));
    }
    float operator()(float value, float mean, float factor, float scale, float offset) const {
        const float centered = arithmetic.in_destination(read(value) - read(mean));
        const float scaled = times(read(packed(times(centered, factor))), read(scale));
        return arithmetic.in_destination(read(packed(scaled)) + read(offset));
    }
};

}  // namespace

Tensor batch_norm(const Tensor& input, std::optional<Tensor> running_mean,
                  std::optional<Tensor> running_var, bool training, float eps, float momentum,
                  const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                  const std::optional<Tensor>& output,
                  const std::optional<MemoryConfig>& memory_config,
                  const std::optional<DeviceComputeKernelConfig>& compute_kernel_config) {
    TTCODEGEN_ON_EACH_CHIP(batch_norm, input, running_mean, running_var, training, eps, momentum,
                           weight, bias, output, memory_config, compute_kernel_config);
    check_batch_norm_input(input);
    TT_FATAL(training || (running_mean && running_var),
             "running_mean and running_var must be defined in evaluation mode");
    std::optional<DataType> common;
    check_channel_parameter(input, running_mean, common, "batch_mean");
    check_channel_parameter(input, running_var, common, "batch_var");
    check_channel_parameter(input, weight, common, "weight");
    check_channel_parameter(input, bias, common, "bias");
    const Shape& shape = input.logical_shape();
    if (output) {
        TT_FATAL(output->dtype() == input.dtype(),
                 "batch_norm: output dtype ({}) must match input dtype ({})", output->dtype(),
                 input.dtype());
        TT_FATAL(output->logical_shape() == shape, "batch_norm: output must have the shape {}",
                 shape);
    }
    const std::size_t channels = shape[1];
    std::vector<float> means;
    std::vector<float> variances;
    if (training) {
        const FloatElements elements(input);
        const ReductionPlan plan(shape, {true, false, true, true});
        const auto count = static_cast<float>(plan.inputs_of_each());
        means.resize(channels);
        variances.resize(channels);
        reduce<float>(plan, elements.data(), nullptr, means.data(), SumOperation{});
        std::transform(means.begin(), means.end(), means.begin(),
                       [count](float sum) { return sum / count; });
        reduce<float>(plan, elements.data(), means.data(), variances.data(), SquareSumOperation{});
        std::transform(variances.begin(), variances.end(), variances.begin(),
                       [count](float sum) { return sum / count; });
        update_running(running_mean, means, momentum);
        update_running(running_var, variances, momentum);
    } else {
        means = per_channel(running_mean, shape, 0.0F);
        variances = per_channel(running_var, shape, 1.0F);
    }
    const auto scales = per_channel(weight, shape, 1.0F);
    const auto offsets = per_channel(bias, shape, 0.0F);
    const Tensor result = output ? *output
                                 : allocate_like(input, shape, input.dtype(), Layout::TILE,
                                                 output_memory_config(input, memory_config));
    const std::size_t pixels = std::size_t{shape[2]} * shape[3];
    const ChannelSteps steps{arithmetic_of(compute_kernel_config, ComputeDefault::batch_norm,
                                           std::array{input.dtype()}, false),
                             input.dtype() == DataType::FLOAT32 || common == DataType::FLOAT32};
    map_rows(input, result, pixels, [&](std::size_t row, float* values) {
        const std::size_t statistic = row % means.size();
        const float factor = steps.factor(variances[statistic], eps);
        for (std::size_t i = 0; i < pixels; ++i) {
            values[i] = steps(values[i], means[statistic], factor, scales[row], offsets[row]);
        }
    });
    return result;
}

namespace {

/// The steps of ttnn's kernel for (x - mean) / deviation * scale + offset: all in the matrix
/// engine, with bfloat16 intermediate values.
struct GroupSteps {
    Arithmetic arithmetic;

    float packed(float value) const { return round_to_bf16(arithmetic.in_destination(value)); }
    float factor(float variance, float epsilon) const {
        const float widened = packed(variance) + round_to_bf16(epsilon);
        return packed(1.0F / std::sqrt(arithmetic.in_destination(widened)));
    }
    float operator()(float value, float mean, float factor, float scale, float offset) const {
        const float normalized = packed(arithmetic.product(packed(value - mean), factor));
        return packed(packed(arithmetic.product(normalized, scale)) + offset);
    }
};

void check_group_norm(const Tensor& input, int num_groups, bool inplace) {
    TT_FATAL(on_device(input),
             "Invalid input tensor storage type: Input tensor must be on device. (storage type={})",
             input.storage_type());
    const Shape& shape = input.logical_shape();
    TT_FATAL(shape.rank() == 4, "Invalid tensor shape: Input tensor must have rank 4. (rank={})",
             shape.rank());
    TT_FATAL(input.dtype() == DataType::BFLOAT16, "Input tensor must be BFLOAT16, got: {}",
             input.dtype());
    TT_FATAL(shape[1] == 1, "input tensor shape[1] must be 1!");
    TT_FATAL(num_groups > 0 && shape[3] % static_cast<uint32_t>(num_groups) == 0,
             "Invalid channel configuration: Number of channels ({}) must be divisible by the "
             "number of groups ({}).",
             shape[3], num_groups);
    const bool is_tiled = input.layout() == Layout::TILE;
    const uint32_t tiled_channels = (shape[3] + 31) / 32 * 32;
    TT_FATAL(!is_tiled || tiled_channels % static_cast<uint32_t>(num_groups) == 0,
             "channel must be divisible by num_groups!");
    if (!is_tiled && tiled_channels != shape[3]) {
        TT_THROW("group_norm: Cannot find any valid core grid for the given configuration of {}",
                 shape);
    }
    TT_FATAL(!(inplace && is_tiled),
             "In-place operation not supported: Tile layout requires non-inplace tensors. "
             "(inplace=true)");
    if (inplace && !input.is_sharded()) {
        TT_THROW("inplace groupnorm not supported for unsharded tensors");
    }
    TT_FATAL(is_tiled || shape[0] * shape[2] % 32 == 0,
             "Invalid tensor dimensions: The product of NHW dimensions ({}) must be divisible by "
             "the tile size (32).",
             shape[0] * shape[2]);
}

void check_group_parameter(const std::optional<Tensor>& parameter, uint32_t channels,
                           std::string_view name) {
    if (!parameter) {
        return;
    }
    require_on_device(*parameter, name);
    TT_FATAL(parameter->layout() == Layout::ROW_MAJOR, "{} tensor must have ROW_MAJOR layout",
             name);
    const Shape& shape = parameter->logical_shape();
    TT_FATAL(shape.rank() > 0 && shape[-1] == 32,
             "{} tensor inner dimension must equal tile width (32), got: {}", name, shape);
    TT_FATAL(parameter->dtype() == DataType::BFLOAT16, "{} tensor must be BFLOAT16, got: {}", name,
             parameter->dtype());
    TT_FATAL(shape.volume() >= channels, "{} tensor must have {} values, got {}", name, channels,
             shape);
}

}  // namespace

Tensor group_norm(const Tensor& input_tensor, int num_groups, float epsilon,
                  const std::optional<Tensor>& input_mask, const std::optional<Tensor>& weight,
                  const std::optional<Tensor>& bias, const std::optional<Tensor>& ignored,
                  const std::optional<MemoryConfig>& memory_config,
                  std::optional<DataType> ignored_2, std::optional<CoreGrid> core_grid,
                  std::optional<bool> inplace, std::optional<Layout> output_layout,
                  std::optional<int> ignored_4,
                  std::optional<DeviceComputeKernelConfig> compute_kernel_config,
                  const std::optional<Tensor>& ignored_5, bool use_welford) {
    TTCODEGEN_ON_EACH_CHIP(group_norm, input_tensor, num_groups, epsilon, input_mask, weight, bias,
                           ignored, memory_config, ignored_2, core_grid, inplace, output_layout,
                           ignored_4, compute_kernel_config, ignored_5, use_welford);
    const bool in_place = inplace.value_or(false);
    check_group_norm(input_tensor, num_groups, in_place);
    const MemoryConfig result_memory = group_norm_memory(input_tensor,
                                                         {.groups = num_groups,
                                                          .grid = core_grid,
                                                          .in_place = in_place,
                                                          .has_mask = input_mask.has_value()},
                                                         memory_config);
    const Shape& shape = input_tensor.logical_shape();
    const std::size_t channels = shape[3];
    check_group_parameter(weight, shape[3], "Gamma");
    check_group_parameter(bias, shape[3], "Beta");
    if (input_mask) {
        TT_FATAL(input_mask->logical_shape().rank() == 4 &&
                     input_mask->logical_shape()[1] == static_cast<uint32_t>(num_groups),
                 "Input mask dim1 must match number of groups, got: {} vs {}",
                 input_mask->logical_shape(), num_groups);
        const uint32_t group_width = shape[3] / static_cast<uint32_t>(num_groups);
        TT_FATAL(group_width % 32 != 0 || input_mask->logical_shape()[3] == group_width,
                 "input mask width ({}) must have the same width as block_wt * tile_width ({})",
                 input_mask->logical_shape()[3], group_width);
    }
    const auto groups = static_cast<std::size_t>(num_groups);
    const Shape grouped({shape[0], shape[2], static_cast<uint32_t>(groups),
                         static_cast<uint32_t>(channels / groups)});
    const GroupSteps steps{
        arithmetic_of(compute_kernel_config,
                      use_welford ? ComputeDefault::batch_norm : ComputeDefault::group_norm,
                      std::array{input_tensor.dtype()}, false)};
    const FloatElements elements(input_tensor);
    const ReductionPlan plan(grouped, {false, true, false, true});
    const auto count = static_cast<float>(plan.inputs_of_each());
    std::vector<float> means(plan.outputs());
    std::vector<float> factors(plan.outputs());
    reduce<float>(plan, elements.data(), nullptr, means.data(), SumOperation{});
    std::transform(means.begin(), means.end(), means.begin(),
                   [&](float sum) { return steps.packed(sum / count); });
    reduce<float>(plan, elements.data(), means.data(), factors.data(), SquareSumOperation{});
    std::transform(factors.begin(), factors.end(), factors.begin(),
                   [&](float sum) { return steps.factor(sum / count, epsilon); });
    const auto per_channel_of = [&](const std::optional<Tensor>& tensor, float fallback) {
        std::vector<float> values(channels, fallback);
        if (tensor) {
            const FloatElements stored(*tensor);
            std::copy_n(stored.data(), channels, values.begin());
        }
        return values;
    };
    const auto scales = per_channel_of(weight, 1.0F);
    const auto offsets = per_channel_of(bias, 0.0F);
    const Tensor output =
        in_place ? input_tensor
                 : allocate_like(input_tensor, shape, input_tensor.dtype(),
                                 output_layout.value_or(input_tensor.layout()), result_memory);
    map_rows(input_tensor, output, channels, [&](std::size_t row, float* values) {
        const std::size_t image = row / shape[2];
        for (std::size_t channel = 0; channel < channels; ++channel) {
            const std::size_t group = image * groups + channel / (channels / groups);
            values[channel] = steps(values[channel], means[group], factors[group], scales[channel],
                                    offsets[channel]);
        }
    });
    return output;
}

}  // namespace ttnn
