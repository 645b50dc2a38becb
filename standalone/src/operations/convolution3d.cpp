#include "compute/convolution.hpp"
#include "core/chips.hpp"
#include "tt-metalium/math.hpp"
#include "ttnn/operations/experimental/conv3d/conv3d.hpp"
#include "ttnn/operations/experimental/conv3d/prepare_conv3d_weights.hpp"

namespace ttnn::experimental {
namespace {

using namespace ttcodegen::cpu;
using prim::Conv3dConfig;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::Shape;
using tt::tt_metal::Tensor;

constexpr uint32_t kChannelAlignment = 32;

void check_operands(const Tensor& input, const Tensor& weights, const std::optional<Tensor>& bias,
                    uint32_t out_channels, uint32_t groups) {
    require_on_device(input, "Activation tensor");
    TT_FATAL(input.logical_shape().rank() == 5, "Activation tensor must have 5 dimensions. got {}",
             input.logical_shape().rank());
    TT_FATAL(input.layout() == Layout::ROW_MAJOR, "Activation tensor must be row-major.");
    TT_FATAL(input.dtype() == DataType::BFLOAT16 || input.dtype() == DataType::FLOAT32,
             "Activation tensor must be bfloat16 or float32. got {}", input.dtype());
    TT_FATAL(weights.dtype() == input.dtype(),
             "Input and weight tensors must have the same dtype. got {} vs {}", input.dtype(),
             weights.dtype());
    if (bias) {
        require_on_device(*bias, "Bias tensor");
        TT_FATAL(bias->layout() == Layout::TILE, "Bias tensor must be tiled.");
        TT_FATAL(bias->dtype() == input.dtype(),
                 "Bias tensor must have the same dtype as input tensor. got {} vs {}",
                 bias->dtype(), input.dtype());
        const Shape& shape = bias->logical_shape();
        TT_FATAL(shape.rank() == 2, "Bias tensor must have 2 dimensions. got {}", shape.rank());
        TT_FATAL(shape[0] == 1 && shape[1] == out_channels,
                 "Bias must match output channels. got {} vs {}", shape, out_channels);
    }
    TT_FATAL(groups > 0 && input.logical_shape()[4] % groups == 0,
             "Input channels must be divisible by groups. Got input channels {} and groups {}",
             input.logical_shape()[4], groups);
    TT_FATAL(out_channels % groups == 0,
             "Output channels must be divisible by groups. Got output channels {} and groups {}",
             out_channels, groups);
}

ConvolutionAxis axis_of(uint32_t input, uint32_t kernel, uint32_t stride, uint32_t padding,
                        uint32_t dilation) {
    TT_FATAL(kernel > 0 && stride > 0 && dilation > 0,
             "kernel_size, stride and dilation must be positive, got {}, {} and {}", kernel, stride,
             dilation);
    const int64_t room =
        int64_t{input} + 2 * int64_t{padding} - int64_t{dilation} * (kernel - 1) - 1;
    TT_FATAL(room >= 0,
             "Effective kernel size exceeds padded dimension (size={}, padding={}, kernel={}, "
             "dilation={})",
             input, padding, kernel, dilation);
    return {input, room / stride + 1, kernel, stride, dilation, padding, 1};
}

/// Strides of weights in torch's layout on the host: (out, in / groups, depth, height, width).
WeightStrides plain_strides(const Tensor& weights, Convolution& convolution) {
    const Shape& shape = weights.logical_shape();
    const int64_t channels = int64_t{shape[1]} * convolution.groups;
    TT_FATAL(!on_device(weights), "Unprepared weight tensor must be on host");
    TT_FATAL(shape[0] == convolution.out_channels && shape[2] == convolution.axes[0].kernel &&
                 shape[3] == convolution.axes[1].kernel && shape[4] == convolution.axes[2].kernel,
             "The weights {} do not fit {} output channels and the kernel size", shape,
             convolution.out_channels);
    TT_FATAL(tt::round_up(channels, kChannelAlignment) == convolution.pixel_channels,
             "Weight patch size must match input patch size: {} channels, filled up to {}, meet an "
             "input of {} channels",
             channels, tt::round_up(channels, kChannelAlignment), convolution.pixel_channels);
    convolution.in_channels = channels;
    const int64_t taps = convolution.taps();
    return {convolution.group_out() * shape[1] * taps, shape[1] * taps, taps, 1, 0};
}

/// Strides of weights from prepare_conv3d_weights: (blocks x taps x channels of a block, out).
WeightStrides prepared_strides(const Tensor& weights, Convolution& convolution, int64_t block) {
    const Shape& shape = weights.logical_shape();
    const int64_t taps = convolution.taps();
    TT_FATAL(shape[0] == taps * convolution.in_channels,
             "Weight patch size must match input patch size. got {} vs {}", shape[0],
             taps * convolution.in_channels);
    TT_FATAL(shape[1] == convolution.out_channels,
             "Weight output channels must match input output channels. got {} vs {}", shape[1],
             convolution.out_channels);
    TT_FATAL(convolution.in_channels % block == 0,
             "Input channels ({}) must be divisible by C_in_block ({})", convolution.in_channels,
             block);
    convolution.groups = 1;  // prepared weights hold zeros between the groups
    const int64_t row = shape[1];
    return {0, 1, row, block * row, 0, block, taps * block * row};
}

}  // namespace

Tensor conv3d(const Tensor& input_tensor, const Tensor& weight_tensor,
              std::optional<ttnn::MeshDevice*> device, const std::optional<Tensor>& bias_tensor,
              const std::optional<Conv3dConfig>& config, DataType dtype_, uint32_t output_channels_,
              const std::array<uint32_t, 3>& kernel_size_, const std::array<uint32_t, 3>& stride_,
              const std::array<uint32_t, 3>& padding_, const std::array<uint32_t, 3>& dilation_,
              const std::string& padding_mode_, uint32_t groups_,
              const std::optional<MemoryConfig>& memory_config,
              std::optional<DeviceComputeKernelConfig> compute_kernel_config) {
    TTCODEGEN_ON_EACH_CHIP(conv3d, input_tensor, weight_tensor, device, bias_tensor, config, dtype_,
                           output_channels_, kernel_size_, stride_, padding_, dilation_,
                           padding_mode_, groups_, memory_config, compute_kernel_config);
    check_operands(input_tensor, weight_tensor, bias_tensor, output_channels_, groups_);
    TT_FATAL(padding_mode_ == "zeros" || padding_mode_ == "replicate",
             "Padding mode must be zeros or replicate. got {}", padding_mode_);
    const Shape& shape = input_tensor.logical_shape();
    Convolution convolution;
    convolution.batch = shape[0];
    for (int i = 0; i < 3; ++i) {
        const auto axis = static_cast<std::size_t>(i);
        convolution.axes[axis] = axis_of(shape[i + 1], kernel_size_[axis], stride_[axis],
                                         padding_[axis], dilation_[axis]);
    }
    convolution.in_channels = shape[4];
    convolution.pixel_channels = shape[4];
    convolution.out_channels = output_channels_;
    convolution.groups = groups_;
    convolution.replicate = padding_mode_ == "replicate";
    WeightStrides strides;
    const std::size_t rank = weight_tensor.logical_shape().rank();
    if (rank == 5) {
        TT_FATAL(device.has_value(),
                 "Device must be provided when weight tensor is unprepared (rank 5)");
        strides = plain_strides(weight_tensor, convolution);
    } else if (rank == 2) {
        const int64_t block = config ? config->C_in_block : kChannelAlignment;
        strides = prepared_strides(weight_tensor, convolution,
                                   block > 0 ? block : convolution.in_channels);
    } else {
        TT_THROW("Unsupported weight tensor rank: {}", rank);
    }
    const Shape result_shape({shape[0], static_cast<uint32_t>(convolution.axes[0].output),
                              static_cast<uint32_t>(convolution.axes[1].output),
                              static_cast<uint32_t>(convolution.axes[2].output), output_channels_});
    const Tensor result = allocate_like(input_tensor, result_shape, dtype_, Layout::ROW_MAJOR,
                                        memory_config.value_or(MemoryConfig{}));
    ProductOutput output;
    output.data = buffer_of(result).data();
    output.dtype = dtype_;
    output.stride = output_channels_;
    std::optional<FloatElements> bias;
    if (bias_tensor) {
        bias.emplace(*bias_tensor);
        output.bias = bias->data();
    }
    const Arithmetic arithmetic =
        arithmetic_of(compute_kernel_config, ComputeDefault::convolution3d,
                      std::array{input_tensor.dtype(), weight_tensor.dtype()}, false);
    convolve(input_tensor, weight_tensor, strides, weight_tensor.dtype(), convolution, arithmetic,
             output);
    return result;
}

}  // namespace ttnn::experimental

namespace ttnn::operations::experimental::conv3d {

Tensor prepare_conv3d_weights(const Tensor& weights, uint32_t groups, uint32_t C_in_block,
                              uint32_t alignment, MeshDevice* device) {
    TTCODEGEN_ON_EACH_CHIP(prepare_conv3d_weights, weights, groups, C_in_block, alignment, device);
    using namespace ttcodegen::cpu;
    const Shape& shape = weights.logical_shape();
    TT_FATAL(shape.rank() == 5, "conv3d weights have rank 5, got {}", shape);
    TT_FATAL(groups > 0 && alignment > 0 && shape[0] % groups == 0,
             "{} output channels are not divisible by {} groups", shape[0], groups);
    const std::size_t channels = shape[1];
    const std::size_t outputs = shape[0];
    const std::size_t taps = std::size_t{shape[2]} * shape[3] * shape[4];
    const std::size_t aligned = tt::round_up(channels * groups, alignment);
    const std::size_t block = C_in_block == 0 ? aligned : C_in_block;
    TT_FATAL(aligned % block == 0, "C_in_aligned must be divisible by C_in_block");
    const FloatElements elements(weights);
    std::vector<float> matrix(aligned * taps * outputs);
    for (std::size_t output = 0; output < outputs; ++output) {
        const std::size_t first = output / (outputs / groups) * channels;
        for (std::size_t i = 0; i < channels; ++i) {
            const std::size_t channel = first + i;
            for (std::size_t tap = 0; tap < taps; ++tap) {
                const std::size_t row = (channel / block * taps + tap) * block + channel % block;
                matrix[row * outputs + output] = elements[(output * channels + i) * taps + tap];
            }
        }
    }
    const Shape result({static_cast<uint32_t>(aligned * taps), shape[0]});
    Tensor prepared =
        allocate(make_spec(result, weights.dtype(), weights.layout(), weights.memory_config()),
                 device != nullptr ? device : device_of(weights));
    store_floats(matrix.data(), matrix.size(), weights.dtype(), buffer_of(prepared).data());
    return prepared;
}

}  // namespace ttnn::operations::experimental::conv3d
