// Operations of training steps.

#include <cmath>
#include <numbers>

#include "core/chips.hpp"
#include "core/parallel.hpp"
#include "core/tensor_data.hpp"
#include "ttnn/operations/experimental/dropout/dropout.hpp"
#include "ttnn/operations/experimental/unary_backward/gelu_backward/gelu_backward.hpp"

namespace ttnn::experimental {
namespace {

using namespace ttcodegen::cpu;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::Tensor;

void check_operand(const Tensor& tensor, std::string_view operation) {
    TT_FATAL(on_device(tensor),
             "{} operation requires input to be on Device. Input storage type: {}", operation,
             tensor.storage_type());
    TT_FATAL(
        tensor.layout() == Layout::TILE,
        "{} operation requires tensor to be in Tile layout when working with non-sharded input "
        "tensor. Input tensor layout: {}",
        operation, tensor.layout());
}

/// The given output, checked, or a new one like `input`.
Tensor output_for(const Tensor& input, const std::optional<Tensor>& output,
                  const std::optional<MemoryConfig>& memory_config, std::string_view operation) {
    if (!output) {
        return allocate_like(input, input.logical_shape(), input.dtype(), input.layout(),
                             output_memory_config(input, memory_config));
    }
    TT_FATAL(output->logical_shape() == input.logical_shape() && output->dtype() == input.dtype(),
             "When preallocted output tensor is used, {} operation requires its shape and type to "
             "match: {} and {}, got {} and {}",
             operation, input.logical_shape(), input.dtype(), output->logical_shape(),
             output->dtype());
    return *output;
}

/// A number in [0, 1) from seed and position (the finaliser of MurmurHash3).
float uniform(uint32_t seed, std::size_t position) {
    uint64_t bits = (position + 1) * 0x9e3779b97f4a7c15U + seed;
    bits = (bits ^ (bits >> 33)) * 0xff51afd7ed558ccdU;
    bits = (bits ^ (bits >> 33)) * 0xc4ceb9fe1a85ec53U;
    bits ^= bits >> 33;
    return static_cast<float>(bits >> 40) * 0x1p-24F;
}

/// The derivative of x * Phi(x), with the normal cumulative distribution Phi.
float exact_slope(float x) {
    const float phi = 0.5F * (1.0F + std::erf(x * (std::numbers::sqrt2_v<float> / 2)));
    const float density = std::exp(-0.5F * x * x) *
                          (std::numbers::inv_sqrtpi_v<float> / std::numbers::sqrt2_v<float>);
    return phi + x * density;
}

/// The derivative of the tanh approximation.
float approximate_slope(float x) {
    constexpr float factor = std::numbers::sqrt2_v<float> * std::numbers::inv_sqrtpi_v<float>;
    constexpr float cubic = 0.044715F;
    const float t = std::tanh(factor * (x + cubic * x * x * x));
    return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * factor * (1.0F + 3.0F * cubic * x * x);
}

}  // namespace

Tensor dropout(const Tensor& input_tensor, float prob, float scale, uint32_t seed, bool ignored,
               const std::optional<MemoryConfig>& memory_config,
               const std::optional<Tensor>& optional_output_tensor) {
    TTCODEGEN_ON_EACH_CHIP(dropout, input_tensor, prob, scale, seed, ignored, memory_config,
                           optional_output_tensor);
    check_operand(input_tensor, "Dropout");
    TT_FATAL(
        input_tensor.dtype() == DataType::BFLOAT16,
        "Dropout operation requires input and output data types to match. Input data type: {}, "
        "Output data type: {}",
        input_tensor.dtype(), DataType::BFLOAT16);
    const Tensor output =
        output_for(input_tensor, optional_output_tensor, memory_config, "Dropout");
    const FloatElements values(input_tensor);
    std::vector<float> kept(values.span().begin(), values.span().end());
    for (std::size_t i = 0; i < kept.size(); ++i) {
        kept[i] = uniform(seed, i) < prob ? 0.0F : kept[i] * scale;
    }
    Buffer& buffer = buffer_of(output);
    buffer.forget_derived();
    store_floats(kept.data(), kept.size(), output.dtype(), buffer.data());
    return output;
}

Tensor gelu_bw(const Tensor& grad_output_tensor, const Tensor& input_tensor,
               const std::string& approximate, const std::optional<MemoryConfig>& memory_config,
               std::optional<Tensor> input_grad_tensor) {
    TTCODEGEN_ON_EACH_CHIP(gelu_bw, grad_output_tensor, input_tensor, approximate, memory_config,
                           input_grad_tensor);
    check_operand(grad_output_tensor, "GELU_BW");
    check_operand(input_tensor, "GELU_BW");
    TT_FATAL(!input_tensor.is_sharded(),
             "GELU_BW operation does not support sharded input tensor.");
    TT_FATAL(approximate == "none" || approximate == "tanh",
             "Incorrect approximate mode (expected 'none', 'tanh'), got '{}'", approximate);
    TT_FATAL(grad_output_tensor.logical_shape() == input_tensor.logical_shape(),
             "The gradient {} and the input {} must have the same shape",
             grad_output_tensor.logical_shape(), input_tensor.logical_shape());
    const Tensor output = output_for(input_tensor, input_grad_tensor, memory_config, "GELU_BW");
    const FloatElements gradients(grad_output_tensor);
    const FloatElements inputs(input_tensor);
    const auto slope = approximate == "tanh" ? approximate_slope : exact_slope;
    std::vector<float> result(inputs.span().size());
    parallel_for(result.size(), 4096, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            result[i] = gradients[i] * slope(inputs[i]);
        }
    });
    Buffer& buffer = buffer_of(output);
    buffer.forget_derived();
    store_floats(result.data(), result.size(), output.dtype(), buffer.data());
    finish_block_float(output);
    return output;
}

}  // namespace ttnn::experimental
