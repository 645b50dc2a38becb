#include "core/chips.hpp"
#include "core/tensor_data.hpp"
#include "ttnn/operations/conv/conv2d/prepare_conv2d_weights.hpp"

namespace ttnn::operations::conv::conv2d {
namespace {

using namespace ttcodegen::cpu;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::Shape;
using tt::tt_metal::Tensor;

/// Stores values in tiles in the DRAM of a device, block floats with the rounding of the host.
Tensor on_device_in_tiles(const std::vector<float>& values, const Shape& shape, DataType dtype,
                          MeshDevice* device) {
    TT_FATAL(device != nullptr, "A device is needed to prepare weights");
    Tensor result = allocate(make_spec(shape, dtype, Layout::TILE, MemoryConfig{}), device);
    store_floats(values.data(), values.size(), dtype, buffer_of(result).data());
    finish_block_float(result, BlockRounding::Host);
    return result;
}

void require_float(DataType dtype) {
    if (dtype != DataType::BFLOAT16 && dtype != DataType::FLOAT32) {
        TT_THROW("Unsupported data type");
    }
}

}  // namespace

Tensor prepare_conv_weights(const Tensor& weight_tensor, const MemoryConfig& input_memory_config,
                            Layout input_layout, const std::string& weights_format,
                            uint32_t in_channels, uint32_t out_channels, uint32_t batch_size,
                            uint32_t input_height, uint32_t input_width,
                            std::array<uint32_t, 2> kernel_size, std::array<uint32_t, 2> stride,
                            std::variant<std::array<uint32_t, 2>, std::array<uint32_t, 4>> padding,
                            std::array<uint32_t, 2> dilation, bool has_bias, uint32_t groups,
                            MeshDevice* device, DataType input_dtype,
                            const std::optional<const DataType>& output_dtype,
                            const std::optional<const Conv2dConfig>& conv_config_,
                            const std::optional<const DeviceComputeKernelConfig>& compute_config_,
                            const std::optional<const Conv2dSliceConfig>& dram_slice_config_) {
    TTCODEGEN_ON_EACH_CHIP(prepare_conv_weights, weight_tensor, input_memory_config, input_layout,
                           weights_format, in_channels, out_channels, batch_size, input_height,
                           input_width, kernel_size, stride, padding, dilation, has_bias, groups,
                           device, input_dtype, output_dtype, conv_config_, compute_config_,
                           dram_slice_config_);
    TT_FATAL(!on_device(weight_tensor), "Host conv weights should be placed on host");
    TT_FATAL(weight_tensor.layout() == Layout::ROW_MAJOR,
             "Host conv weights layout should be in row_major layout");
    const Shape& shape = weight_tensor.logical_shape();
    TT_FATAL(shape.rank() == 4, "Host conv weights should be 4D tensor");
    require_float(weight_tensor.dtype());
    TT_FATAL(groups > 0 && in_channels % groups == 0 && out_channels % groups == 0,
             "{} input and {} output channels must be divisible by {} groups", in_channels,
             out_channels, groups);
    TT_FATAL(shape == Shape({out_channels, in_channels / groups, kernel_size[0], kernel_size[1]}),
             "Convolution weights must have the shape ({}, {}, {}, {}), got {}", out_channels,
             in_channels / groups, kernel_size[0], kernel_size[1], shape);
    const std::size_t channels = shape[1];
    const std::size_t outputs = shape[0];
    const std::size_t taps = std::size_t{kernel_size[0]} * kernel_size[1];
    const FloatElements elements(weight_tensor);
    std::vector<float> matrix(taps * in_channels * outputs);
    for (std::size_t output = 0; output < outputs; ++output) {
        const std::size_t first = output / (outputs / groups) * channels;
        for (std::size_t channel = 0; channel < channels; ++channel) {
            const float* source = elements.data() + (output * channels + channel) * taps;
            for (std::size_t tap = 0; tap < taps; ++tap) {
                matrix[(tap * in_channels + first + channel) * outputs + output] = source[tap];
            }
        }
    }
    const Conv2dConfig config = conv_config_.value_or(Conv2dConfig{});
    return on_device_in_tiles(
        matrix, Shape({1, 1, static_cast<uint32_t>(taps) * in_channels, out_channels}),
        config.weights_dtype.value_or(weight_tensor.dtype()), device);
}

Tensor prepare_conv_bias(const Tensor& bias_tensor, const MemoryConfig& input_memory_config,
                         Layout input_layout, uint32_t in_channels, uint32_t out_channels,
                         uint32_t batch_size, uint32_t input_height, uint32_t input_width,
                         std::array<uint32_t, 2> kernel_size, std::array<uint32_t, 2> stride,
                         std::variant<std::array<uint32_t, 2>, std::array<uint32_t, 4>> padding,
                         std::array<uint32_t, 2> dilation, uint32_t groups, MeshDevice* device,
                         DataType input_dtype, const std::optional<const DataType>& output_dtype,
                         const std::optional<const Conv2dConfig>& conv_config_,
                         const std::optional<const DeviceComputeKernelConfig>& compute_config_,
                         const std::optional<const Conv2dSliceConfig>& dram_slice_config_) {
    TTCODEGEN_ON_EACH_CHIP(prepare_conv_bias, bias_tensor, input_memory_config, input_layout,
                           in_channels, out_channels, batch_size, input_height, input_width,
                           kernel_size, stride, padding, dilation, groups, device, input_dtype,
                           output_dtype, conv_config_, compute_config_, dram_slice_config_);
    TT_FATAL(!on_device(bias_tensor), "conv bias should be placed on host");
    const Conv2dConfig config = conv_config_.value_or(Conv2dConfig{});
    TT_FATAL(config.weights_dtype.has_value(),
             "prepare_conv_bias requires conv_config.weights_dtype to be set.");
    const Shape& shape = bias_tensor.logical_shape();
    TT_FATAL(shape.rank() == 4, "Host conv bias should be 4D tensor");
    TT_FATAL(bias_tensor.layout() == Layout::ROW_MAJOR,
             "Host conv bias layout should be in row_major layout");
    TT_FATAL(shape.volume() == shape[3], "Host conv bias shape is not correct");
    TT_FATAL(shape[3] == out_channels, "Bias must have the same length as output channels");
    require_float(bias_tensor.dtype());
    const FloatElements elements(bias_tensor);
    const std::vector<float> values(elements.span().begin(), elements.span().end());
    return on_device_in_tiles(values, Shape({1, 1, 1, out_channels}), *config.weights_dtype,
                              device);
}

}  // namespace ttnn::operations::conv::conv2d
