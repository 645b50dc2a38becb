#include "compute/convolution.hpp"

#include <cstring>

#include "compute/sharding.hpp"
#include "core/chips.hpp"
#include "operations/convolution_memory.hpp"
#include "ttnn/operations/conv/conv1d/conv1d.hpp"
#include "ttnn/operations/conv/conv2d/conv2d.hpp"
#include "ttnn/operations/conv/conv_transpose2d/conv_transpose2d.hpp"

namespace ttnn {
namespace {

using namespace ttcodegen::cpu;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::Shape;
using tt::tt_metal::Tensor;

using Pair = std::array<uint32_t, 2>;
using Padding = std::variant<Pair, std::array<uint32_t, 4>>;

/// Common arguments of all convolutions.
struct ConvolutionArguments {
    const Tensor& input;
    const Tensor& weights;
    MeshDevice* device;
    Convolution convolution;
    /// (out_channels, in_channels / groups), exchanged for a transposed convolution.
    bool is_transposed = false;
    bool mirror_kernel = false;
    std::optional<DataType> dtype;
    const std::optional<const Tensor>& bias;
    Conv2dConfig config;
    std::optional<DeviceComputeKernelConfig> compute;
    std::optional<MemoryConfig> memory_config;
    bool is_one_dimensional = false;
    std::optional<Conv2dSliceConfig> slices = std::nullopt;
};

/// Top, bottom, left, right.
std::array<int64_t, 4> padding_sides(const Padding& padding) {
    if (const auto* pair = std::get_if<Pair>(&padding)) {
        return {(*pair)[0], (*pair)[0], (*pair)[1], (*pair)[1]};
    }
    const auto& sides = std::get<1>(padding);
    return {sides[0], sides[1], sides[2], sides[3]};
}

ConvolutionAxis forward_axis(int64_t input, int64_t kernel, int64_t stride, int64_t dilation,
                             int64_t before, int64_t after) {
    TT_FATAL(kernel > 0 && stride > 0 && dilation > 0,
             "kernel_size, stride and dilation must be positive, got {}, {} and {}", kernel, stride,
             dilation);
    const int64_t room = input + before + after - dilation * (kernel - 1) - 1;
    TT_FATAL(input > 0 && room >= 0,
             "The kernel of size {} with dilation {} is larger than the padded input of size {}",
             kernel, dilation, input + before + after);
    return {input, room / stride + 1, kernel, stride, dilation, before, 1};
}

/// The axis of the convolution over dilated inputs that equals the transposed convolution.
ConvolutionAxis transposed_axis(int64_t input, int64_t kernel, int64_t stride, int64_t dilation,
                                int64_t before, int64_t after, int64_t output_padding) {
    TT_FATAL(kernel > 0 && stride > 0 && dilation > 0,
             "kernel_size, stride and dilation must be positive, got {}, {} and {}", kernel, stride,
             dilation);
    const int64_t reach = dilation * (kernel - 1);
    const int64_t output = (input - 1) * stride - before - after + reach + output_padding + 1;
    TT_FATAL(input > 0 && output > 0, "The transposed convolution has no output: its size is {}",
             output);
    return {input, output, kernel, 1, dilation, reach - before, stride};
}

/// Returns whether weights are a matrix in tiles on the device, as prepare_conv_weights makes it.
bool are_prepared(const ConvolutionArguments& arguments) {
    const Tensor& weights = arguments.weights;
    return !arguments.is_transposed && on_device(weights) && weights.layout() == Layout::TILE;
}

void check_prepared_weights(const ConvolutionArguments& arguments) {
    const Tensor& weights = arguments.weights;
    const Convolution& convolution = arguments.convolution;
    // Weights of another type are taken back to the host, to be prepared again, in tiles.
    TT_FATAL(arguments.config.weights_dtype.value_or(weights.dtype()) == weights.dtype(),
             "Host conv weights layout should be in row_major layout");
    const auto rows = static_cast<uint32_t>(convolution.taps() * convolution.in_channels);
    const Shape expected({1, 1, rows, static_cast<uint32_t>(convolution.out_channels)});
    TT_FATAL(weights.logical_shape() == expected,
             "Prepared convolution weights must have the shape {}, got {}", expected,
             weights.logical_shape());
}

void check_weights(const ConvolutionArguments& arguments) {
    const Tensor& weights = arguments.weights;
    const Convolution& convolution = arguments.convolution;
    TT_FATAL(convolution.groups > 0 && convolution.in_channels % convolution.groups == 0 &&
                 convolution.out_channels % convolution.groups == 0,
             "{} input and {} output channels must be divisible by {} groups",
             convolution.in_channels, convolution.out_channels, convolution.groups);
    if (are_prepared(arguments)) {
        check_prepared_weights(arguments);
        return;
    }
    TT_FATAL(weights.layout() == Layout::ROW_MAJOR,
             "Host conv weights layout should be in row_major layout");
    // Weights on the device count as prepared, except those of a transposed convolution.
    TT_FATAL(!arguments.is_transposed || !on_device(weights), "Weights should be in TILE layout.");
    const DataType dtype = weights.dtype();
    if (dtype != DataType::BFLOAT16 && dtype != DataType::FLOAT32) {
        TT_THROW("Unsupported data type {} of convolution weights", dtype);
    }
    int64_t first = convolution.out_channels;
    int64_t second = convolution.group_in();
    if (arguments.is_transposed) {
        first = convolution.in_channels;
        second = convolution.group_out();
    }
    const Shape& shape = weights.logical_shape();
    TT_FATAL(shape.rank() == 4 && shape[0] == first && shape[1] == second &&
                 shape[2] == convolution.axes[1].kernel && shape[3] == convolution.axes[2].kernel,
             "Convolution weights must have the shape ({}, {}, {}, {}), got {}", first, second,
             convolution.axes[1].kernel, convolution.axes[2].kernel, shape);
}

void check_bias(const Tensor& bias, DataType weights, int64_t out_channels) {
    // Tiles on the device count as prepared.
    const bool is_prepared =
        on_device(bias) && bias.layout() == Layout::TILE && bias.dtype() == weights;
    TT_FATAL(bias.layout() == Layout::ROW_MAJOR || is_prepared,
             "Host conv bias layout should be in row_major layout");
    const Shape& shape = bias.logical_shape();
    if (shape.rank() != 4) {
        TT_THROW(
            "ShapeBase[] index out of range. A convolution bias has the shape (1, 1, 1, {}), "
            "got {}",
            out_channels, shape);
    }
    TT_FATAL(shape[3] == out_channels, "Bias must have the same length as output channels");
    TT_FATAL(shape.volume() == shape[3], "Host conv bias shape is not correct");
}

void check_input(const ConvolutionArguments& arguments) {
    const Tensor& input = arguments.input;
    const Convolution& convolution = arguments.convolution;
    const DataType dtype = input.dtype();
    TT_FATAL(
        dtype == DataType::BFLOAT16 || dtype == DataType::FLOAT32 || dtype == DataType::BFLOAT8_B,
        "Can only work with bfloat16/float32 tensors, got {}", dtype);
    const int64_t volume = convolution.batch * convolution.axes[1].input *
                           convolution.axes[2].input * convolution.in_channels;
    TT_FATAL(static_cast<int64_t>(input.logical_volume()) == volume,
             "Attempting to reshape between two shapes with different volumes: the input {} has "
             "not the {} elements of batch {}, height {}, width {} and {} channels",
             input.logical_shape(), volume, convolution.batch, convolution.axes[1].input,
             convolution.axes[2].input, convolution.in_channels);
    const ConvolutionAxis& height = convolution.axes[1];
    const ConvolutionAxis& width = convolution.axes[2];
    const bool has_window = height.kernel > 1 || width.kernel > 1;
    if (has_window && !arguments.config.config_tensors_in_dram) {
        require_l1_small(arguments.device);
    }
}

WeightStrides weight_strides(const ConvolutionArguments& arguments) {
    const Convolution& convolution = arguments.convolution;
    const int64_t taps = convolution.taps();
    const int64_t channels = convolution.group_in();
    const int64_t outputs = convolution.group_out();
    if (are_prepared(arguments)) {
        // A column for each output channel, with zeros for the channels of other groups.
        const int64_t row = convolution.out_channels;
        return {channels * row + outputs, 1, row, convolution.in_channels * row, 0};
    }
    if (!arguments.is_transposed) {
        return {outputs * channels * taps, channels * taps, taps, 1, 0};
    }
    // A transposed convolution reads its kernel backwards, unless it is mirrored already.
    const int64_t direction = arguments.mirror_kernel ? -1 : 1;
    return {channels * outputs * taps, taps, outputs * taps, direction,
            arguments.mirror_kernel ? taps - 1 : 0};
}

/// Returns whether stride and kernel of an axis are equal, and divide the image.
bool can_fold(const ConvolutionAxis& axis) {
    return axis.stride == axis.kernel && axis.dilation == 1 && axis.padding == 0 &&
           axis.input == axis.output * axis.stride;
}

MemoryConfig result_memory(const ConvolutionArguments& arguments, DataType dtype) {
    const Convolution& convolution = arguments.convolution;
    const ConvolutionAxis& height = convolution.axes[1];
    const ConvolutionAxis& width = convolution.axes[2];
    const auto is_one_pixel = [](const ConvolutionAxis& axis) {
        return axis.kernel == 1 && axis.stride == 1 && axis.dilation == 1 &&
               axis.input == axis.output;
    };
    ConvolvedImage image;
    image.rows = static_cast<uint32_t>(convolution.pixels());
    image.height = static_cast<uint32_t>(height.output);
    image.width = static_cast<uint32_t>(width.output);
    image.in_channels = static_cast<uint32_t>(convolution.in_channels);
    image.out_channels = static_cast<uint32_t>(convolution.out_channels);
    image.is_product = is_one_pixel(height) && is_one_pixel(width);
    image.can_fold = !image.is_product && can_fold(height) && can_fold(width);
    image.is_transposed = arguments.is_transposed;
    image.is_one_dimensional = arguments.is_one_dimensional;
    image.is_strided = height.stride != 1 || width.stride != 1;
    image.is_dilated = height.dilation != 1 || width.dilation != 1;
    image.dtype = dtype;
    return convolved_memory(arguments.input, image, arguments.config, arguments.memory_config,
                            arguments.slices);
}

Tensor run(const ConvolutionArguments& arguments) {
    check_input(arguments);
    check_weights(arguments);
    TT_FATAL(arguments.device != nullptr || on_device(arguments.input),
             "A convolution needs a device");
    const Convolution& convolution = arguments.convolution;
    MeshDevice* device =
        arguments.device != nullptr ? arguments.device : device_of(arguments.input);
    const DataType dtype = arguments.dtype.value_or(arguments.input.dtype());
    const MemoryConfig memory_config = result_memory(arguments, dtype);
    const Layout layout =
        memory_config.is_l1() && !is_block(dtype) ? arguments.config.output_layout : Layout::TILE;
    const Shape shape({1, 1, static_cast<uint32_t>(convolution.pixels()),
                       static_cast<uint32_t>(convolution.out_channels)});
    const Tensor result = allocate(make_spec(shape, dtype, layout, memory_config), device);
    ProductOutput output;
    output.data = buffer_of(result).data();
    output.dtype = dtype;
    output.stride = convolution.out_channels;
    output.activation = arguments.config.activation;
    std::optional<FloatElements> bias;
    if (arguments.bias) {
        check_bias(*arguments.bias, arguments.weights.dtype(), convolution.out_channels);
        bias.emplace(*arguments.bias);
        output.bias = bias->data();
    }
    const DataType weights_dtype =
        arguments.config.weights_dtype.value_or(arguments.weights.dtype());
    const Arithmetic arithmetic = arithmetic_of(arguments.compute, ComputeDefault::convolution,
                                                std::array{arguments.input.dtype(), weights_dtype},
                                                dtype == DataType::FLOAT32);
    convolve(arguments.input, arguments.weights, weight_strides(arguments), weights_dtype,
             convolution, arithmetic, output);
    finish_block_float(result);
    if (arguments.config.deallocate_activation && on_device(arguments.input) &&
        arguments.input.memory_config().is_l1()) {
        Tensor(arguments.input).deallocate(true);
    }
    return result;
}

/// The result of return_weights_and_bias: device weights for later calls.
std::tuple<Tensor, std::optional<Tensor>> device_parameters(const ConvolutionArguments& arguments) {
    const auto placed = [&](const Tensor& tensor) {
        if (on_device(tensor)) {
            return tensor;
        }
        const Tensor copy = allocate(tensor.tensor_spec(), arguments.device);
        std::memcpy(buffer_of(copy).data(), buffer_of(tensor).data(), buffer_of(tensor).bytes());
        return copy;
    };
    return {placed(arguments.weights),
            arguments.bias ? std::optional(placed(*arguments.bias)) : std::nullopt};
}

/// The requested alternative of Conv2dResultWithOptions and similar types.
template <typename Result, typename Size>
Result with_options(const ConvolutionArguments& arguments, const Tensor& output, const Size& size,
                    bool return_size, bool return_parameters) {
    if (return_size && return_parameters) {
        return std::tuple(output, size, device_parameters(arguments));
    }
    if (return_size) {
        return std::tuple(output, size);
    }
    if (return_parameters) {
        return std::tuple(output, device_parameters(arguments));
    }
    return output;
}

std::tuple<OutputHeight, OutputWidth> output_size(const Convolution& convolution) {
    return {static_cast<uint32_t>(convolution.axes[1].output),
            static_cast<uint32_t>(convolution.axes[2].output)};
}

}  // namespace

Conv2dResultWithOptions conv2d(
    const Tensor& input_tensor, const Tensor& weight_tensor, MeshDevice* device,
    uint32_t in_channels, uint32_t out_channels, uint32_t batch_size, uint32_t input_height,
    uint32_t input_width, std::array<uint32_t, 2> kernel_size, std::array<uint32_t, 2> stride,
    std::variant<std::array<uint32_t, 2>, std::array<uint32_t, 4>> padding,
    std::array<uint32_t, 2> dilation, uint32_t groups, const std::optional<const DataType>& dtype,
    const std::optional<const Tensor>& bias_tensor,
    const std::optional<const Conv2dConfig>& conv_config_,
    const std::optional<const DeviceComputeKernelConfig>& compute_config_,
    const std::optional<const MemoryConfig>& memory_config_,
    const std::optional<const Conv2dSliceConfig>& dram_slice_config, bool return_output_dim,
    bool return_weights_and_bias) {
    TTCODEGEN_ON_EACH_CHIP(conv2d, input_tensor, weight_tensor, device, in_channels, out_channels,
                           batch_size, input_height, input_width, kernel_size, stride, padding,
                           dilation, groups, dtype, bias_tensor, conv_config_, compute_config_,
                           memory_config_, dram_slice_config, return_output_dim,
                           return_weights_and_bias);
    const auto [top, bottom, left, right] = padding_sides(padding);
    const Conv2dConfig config = conv_config_.value_or(Conv2dConfig{});
    Convolution convolution{
        batch_size,
        {ConvolutionAxis{},
         forward_axis(input_height, kernel_size[0], stride[0], dilation[0], top, bottom),
         forward_axis(input_width, kernel_size[1], stride[1], dilation[1], left, right)},
        in_channels,
        out_channels,
        groups,
        config.padding_mode == prim::sliding_window::PaddingMode::Replicate};
    const ConvolutionArguments arguments{
        input_tensor,   weight_tensor, device,           convolution, false,
        false,          dtype,         bias_tensor,      config,      compute_config_,
        memory_config_, false,         dram_slice_config};
    return with_options<Conv2dResultWithOptions>(arguments, run(arguments),
                                                 output_size(convolution), return_output_dim,
                                                 return_weights_and_bias);
}

Conv1dResult conv1d(const Tensor& input_tensor, const Tensor& weight_tensor, MeshDevice* device,
                    uint32_t in_channels, uint32_t out_channels, uint32_t batch_size,
                    uint32_t input_length, uint32_t kernel_size, uint32_t stride,
                    std::variant<std::array<uint32_t, 2>, uint32_t> padding, uint32_t dilation,
                    uint32_t groups, const std::optional<const DataType>& dtype,
                    const std::optional<const Tensor>& bias_tensor,
                    const std::optional<const Conv1dConfig>& conv_config,
                    const std::optional<const DeviceComputeKernelConfig>& compute_config,
                    const std::optional<const MemoryConfig>& memory_config, bool return_output_dim,
                    bool return_weights_and_bias) {
    TTCODEGEN_ON_EACH_CHIP(conv1d, input_tensor, weight_tensor, device, in_channels, out_channels,
                           batch_size, input_length, kernel_size, stride, padding, dilation, groups,
                           dtype, bias_tensor, conv_config, compute_config, memory_config,
                           return_output_dim, return_weights_and_bias);
    const auto* sides = std::get_if<Pair>(&padding);
    const int64_t before = sides != nullptr ? (*sides)[0] : std::get<uint32_t>(padding);
    const int64_t after = sides != nullptr ? (*sides)[1] : before;
    const Shape& shape = weight_tensor.logical_shape();
    TT_FATAL(shape.rank() == 3 || shape.rank() == 4,
             "conv1d weights must have the shape (out_channels, in_channels / groups, kernel), got "
             "{}",
             shape);
    // A view as weights of height 1; forms derived from them are cached with them.
    const Tensor weights =
        shape.rank() == 4
            ? weight_tensor
            : make_view(weight_tensor,
                        make_spec(Shape({shape[0], shape[1], 1, shape[2]}), weight_tensor.dtype(),
                                  weight_tensor.layout(), weight_tensor.memory_config()));
    const Conv2dConfig config = conv_config.value_or(Conv1dConfig{});
    const Convolution convolution{
        batch_size,
        {ConvolutionAxis{}, ConvolutionAxis{},
         forward_axis(input_length, kernel_size, stride, dilation, before, after)},
        in_channels,
        out_channels,
        groups,
        config.padding_mode == prim::sliding_window::PaddingMode::Replicate};
    const ConvolutionArguments arguments{input_tensor, weights,        device,        convolution,
                                         false,        false,          dtype,         bias_tensor,
                                         config,       compute_config, memory_config, true};
    return with_options<Conv1dResult>(arguments, run(arguments),
                                      std::get<1>(output_size(convolution)), return_output_dim,
                                      return_weights_and_bias);
}

ConvTranspose2dResultWithOptions conv_transpose2d(
    const Tensor& input_tensor, const Tensor& weight_tensor, MeshDevice* device,
    uint32_t in_channels, uint32_t out_channels, uint32_t batch_size, uint32_t input_height,
    uint32_t input_width, std::array<uint32_t, 2> kernel_size, std::array<uint32_t, 2> stride,
    std::variant<std::array<uint32_t, 2>, std::array<uint32_t, 4>> padding,
    std::array<uint32_t, 2> output_padding, std::array<uint32_t, 2> dilation, uint32_t groups,
    const std::optional<const DataType>& dtype, const std::optional<const Tensor>& bias_tensor,
    const std::optional<const Conv2dConfig>& conv_config_,
    const std::optional<const DeviceComputeKernelConfig>& compute_config,
    const std::optional<const MemoryConfig>& memory_config,
    const std::optional<const Conv2dSliceConfig>& dram_slice_config, bool mirror_kernel,
    bool return_output_dim, bool return_weights_and_bias) {
    TTCODEGEN_ON_EACH_CHIP(conv_transpose2d, input_tensor, weight_tensor, device, in_channels,
                           out_channels, batch_size, input_height, input_width, kernel_size, stride,
                           padding, output_padding, dilation, groups, dtype, bias_tensor,
                           conv_config_, compute_config, memory_config, dram_slice_config,
                           mirror_kernel, return_output_dim, return_weights_and_bias);
    const auto [top, bottom, left, right] = padding_sides(padding);
    const Convolution convolution{batch_size,
                                  {ConvolutionAxis{},
                                   transposed_axis(input_height, kernel_size[0], stride[0],
                                                   dilation[0], top, bottom, output_padding[0]),
                                   transposed_axis(input_width, kernel_size[1], stride[1],
                                                   dilation[1], left, right, output_padding[1])},
                                  in_channels,
                                  out_channels,
                                  groups,
                                  false};
    const ConvolutionArguments arguments{input_tensor,
                                         weight_tensor,
                                         device,
                                         convolution,
                                         true,
                                         mirror_kernel,
                                         dtype,
                                         bias_tensor,
                                         conv_config_.value_or(Conv2dConfig{}),
                                         compute_config,
                                         memory_config,
                                         false,
                                         dram_slice_config};
    return with_options<ConvTranspose2dResultWithOptions>(
        arguments, run(arguments), output_size(convolution), return_output_dim,
        return_weights_and_bias);
}

}  // namespace ttnn
