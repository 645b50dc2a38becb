#include "ttnn/operations/eltwise/quantization/quantization.hpp"

#include <cmath>

#include "core/chips.hpp"
#include "data_movement/reshape.hpp"
#include "eltwise/evaluate.hpp"

namespace ttcodegen::cpu {

namespace {

using Scale = std::variant<Tensor, float>;
using ZeroPoint = std::variant<Tensor, std::int32_t>;

/// Reads a scale or zero point for each of the input's elements.
template <typename Number>
OperandReader<float> reader(const std::variant<Tensor, Number>& value, const Shape& shape,
                            std::optional<std::int32_t> axis, const char* what) {
    const Tensor* tensor = std::get_if<Tensor>(&value);
    if (tensor == nullptr) {
        return OperandReader<float>(static_cast<float>(std::get<Number>(value)));
    }
    require_on_device(*tensor, what);
    if (!axis) {
        TT_FATAL(tensor->logical_volume() == 1,
                 "Per-tensor quantization only takes scalar-tensor scales");
        return OperandReader<float>(FloatElements(*tensor)[0]);
    }
    const auto rank = static_cast<std::int32_t>(shape.rank());
    TT_FATAL(*axis >= -rank && *axis < rank, "Axis {} is outside the range [{}, {}]", *axis, -rank,
             rank - 1);
    const std::size_t position = normalize_dim(*axis, shape.rank());
    TT_FATAL(tensor->logical_volume() == shape.view()[position],
             "Size of the scale tensor doesn't match the size of the input tensor along the given "
             "axis");
    ttsl::SmallVector<std::uint32_t> sizes(shape.rank(), 1);
    sizes[position] = shape.view()[position];
    return OperandReader<float>(
        make_view(*tensor, make_spec(Shape(std::move(sizes)), tensor->dtype(), Layout::ROW_MAJOR,
                                     tensor->memory_config())),
        shape);
}

OperandReader<float> zero_point_reader(const ZeroPoint& value, const Shape& shape,
                                       std::optional<std::int32_t> axis) {
    const Tensor* tensor = std::get_if<Tensor>(&value);
    TT_FATAL(tensor == nullptr || tensor->dtype() == DataType::INT32,
             "Quantization only takes int32 zero-points for now");
    return reader(value, shape, axis, "Zero-point tensor");
}

Tensor quantization_output(const Tensor& input, DataType dtype,
                           const std::optional<MemoryConfig>& memory_config,
                           const std::optional<Tensor>& output) {
    if (!output) {
        return allocate_like(input, input.logical_shape(), dtype, input.layout(),
                             output_memory_config(input, memory_config));
    }
    TT_FATAL(output->logical_shape() == input.logical_shape() && output->dtype() == dtype,
             "The output tensor must have the input's shape and the data type {}", dtype);
    return *output;
}

}  // namespace

}  // namespace ttcodegen::cpu

namespace ttnn {

namespace cpu = ttcodegen::cpu;

Tensor quantize(const Tensor& input, const std::variant<Tensor, float>& scale,
                const std::variant<Tensor, std::int32_t>& zero_point,
                std::optional<std::int32_t> axis, const std::optional<const DataType>& output_dtype,
                const std::optional<MemoryConfig>& memory_config,
                std::optional<Tensor> optional_output_tensor) {
    TTCODEGEN_ON_EACH_CHIP(quantize, input, scale, zero_point, axis, output_dtype, memory_config,
                           optional_output_tensor);
    cpu::require_on_device(input, "Input tensor");
    TT_FATAL(!cpu::is_integer(input.dtype()), "Quantize only takes floating-point number inputs");
    TT_FATAL(!output_dtype || *output_dtype == DataType::INT32,
             "Quantize only supports int32 outputs for now");
    const Shape& shape = input.logical_shape();
    const auto scales = cpu::reader(scale, shape, axis, "Scale tensor");
    const auto zero_points = cpu::zero_point_reader(zero_point, shape, axis);
    const Tensor output =
        cpu::quantization_output(input, DataType::INT32, memory_config, optional_output_tensor);
    cpu::evaluate(std::array{cpu::OperandReader<float>(input, shape), scales, zero_points}, output,
                  [](const auto& inputs, float* values, std::size_t count) {
                      for (std::size_t i = 0; i < count; ++i) {
                          values[i] = std::nearbyint(inputs[0][i] / inputs[1][i]) + inputs[2][i];
                      }
                  });
    return output;
}

Tensor requantize(const Tensor& input, const std::variant<Tensor, float>& in_scale,
                  const std::variant<Tensor, std::int32_t>& in_zero_point,
                  const std::variant<Tensor, float>& out_scale,
                  const std::variant<Tensor, std::int32_t>& out_zero_point,
                  std::optional<std::int32_t> axis,
                  const std::optional<const DataType>& output_dtype,
                  const std::optional<MemoryConfig>& memory_config,
                  std::optional<Tensor> optional_output_tensor) {
    TTCODEGEN_ON_EACH_CHIP(requantize, input, in_scale, in_zero_point, out_scale, out_zero_point,
                           axis, output_dtype, memory_config, optional_output_tensor);
    cpu::require_on_device(input, "Input tensor");
    TT_FATAL(input.dtype() == DataType::INT32, "Requantize only supports int32 inputs for now");
    TT_FATAL(!output_dtype || *output_dtype == DataType::INT32,
             "Requantize only supports int32 outputs for now");
    const Shape& shape = input.logical_shape();
    const std::array readers{cpu::OperandReader<float>(input, shape),
                             cpu::reader(in_scale, shape, axis, "Scale tensor"),
                             cpu::zero_point_reader(in_zero_point, shape, axis),
                             cpu::reader(out_scale, shape, axis, "Scale tensor"),
                             cpu::zero_point_reader(out_zero_point, shape, axis)};
    const Tensor output =
        cpu::quantization_output(input, DataType::INT32, memory_config, optional_output_tensor);
    cpu::evaluate(readers, output, [](const auto& inputs, float* values, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            const float value = (inputs[0][i] - inputs[2][i]) * inputs[1][i];
            values[i] = std::nearbyint(value / inputs[3][i]) + inputs[4][i];
        }
    });
    return output;
}

Tensor dequantize(const Tensor& input, const std::variant<Tensor, float>& scale,
                  const std::variant<Tensor, std::int32_t>& zero_point,
                  std::optional<std::int32_t> axis,
                  const std::optional<const DataType>& output_dtype,
                  const std::optional<MemoryConfig>& memory_config,
                  std::optional<Tensor> optional_output_tensor) {
    TTCODEGEN_ON_EACH_CHIP(dequantize, input, scale, zero_point, axis, output_dtype, memory_config,
                           optional_output_tensor);
    cpu::require_on_device(input, "Input tensor");
    TT_FATAL(input.dtype() == DataType::INT32, "Dequantize only supports int32 inputs for now");
    const DataType dtype = output_dtype ? *output_dtype : DataType::BFLOAT16;
    TT_FATAL(dtype == DataType::BFLOAT16 || dtype == DataType::FLOAT32,
             "Dequantize only supports bf16/f32 outputs for now");
    const Shape& shape = input.logical_shape();
    const auto scales = cpu::reader(scale, shape, axis, "Scale tensor");
    const auto zero_points = cpu::zero_point_reader(zero_point, shape, axis);
    const Tensor output =
        cpu::quantization_output(input, dtype, memory_config, optional_output_tensor);
    cpu::evaluate(std::array{cpu::OperandReader<float>(input, shape), scales, zero_points}, output,
                  [](const auto& inputs, float* values, std::size_t count) {
                      for (std::size_t i = 0; i < count; ++i) {
                          values[i] = (inputs[0][i] - inputs[2][i]) * inputs[1][i];
                      }
                  });
    return output;
}

}  // namespace ttnn
