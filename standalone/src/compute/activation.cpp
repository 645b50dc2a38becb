#include "compute/activation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include "compute/exponential.hpp"
#include "core/describe.hpp"

namespace ttcodegen::cpu {
namespace {

struct NamedActivation {
    std::string_view name;
    UnaryOpType type;
    std::optional<float> parameter;
};

// The names that fused activations go by in ttnn.
constexpr std::array kNamedActivations{
    NamedActivation{"relu", UnaryOpType::RELU, {}},
    NamedActivation{"relu6", UnaryOpType::RELU6, {}},
    NamedActivation{"gelu", UnaryOpType::GELU, 0.0F},
    NamedActivation{"gelu_approx", UnaryOpType::GELU, 1.0F},
    NamedActivation{"silu", UnaryOpType::SILU, {}},
    NamedActivation{"sigmoid", UnaryOpType::SIGMOID, {}},
    NamedActivation{"sigmoid_approx", UnaryOpType::SIGMOID, {}},
    NamedActivation{"hardsigmoid", UnaryOpType::HARDSIGMOID, {}},
    NamedActivation{"sqrt", UnaryOpType::SQRT, {}},
    NamedActivation{"rsqrt", UnaryOpType::RSQRT, {}},
    NamedActivation{"exp", UnaryOpType::EXP, {}},
    NamedActivation{"recip", UnaryOpType::RECIP, {}},
    NamedActivation{"log", UnaryOpType::LOG, {}},
    NamedActivation{"log1p", UnaryOpType::LOG1P, {}},
    NamedActivation{"tanh", UnaryOpType::TANH, {}},
    NamedActivation{"log2", UnaryOpType::LOG2, {}},
    NamedActivation{"log10", UnaryOpType::LOG10, {}},
    NamedActivation{"sin", UnaryOpType::SIN, {}},
    NamedActivation{"cos", UnaryOpType::COS, {}},
    NamedActivation{"abs", UnaryOpType::ABS, {}},
    NamedActivation{"sign", UnaryOpType::SIGN, {}},
    NamedActivation{"square", UnaryOpType::SQUARE, {}},
    NamedActivation{"softplus", UnaryOpType::SOFTPLUS, {}},
    NamedActivation{"mish", UnaryOpType::MISH, {}},
    NamedActivation{"neg", UnaryOpType::NEG, {}},
    NamedActivation{"floor", UnaryOpType::FLOOR, {}},
    NamedActivation{"ceil", UnaryOpType::CEIL, {}},
};

float parameter_of(const UnaryWithParam& activation, std::size_t index, float otherwise) {
    const auto parameters = activation.get_params();
    return index < parameters.size() ? parameters[index] : otherwise;
}

template <typename Function>
void apply(float* values, std::size_t count, const Function& function) {
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = function(values[i]);
    }
}

float gelu(float x) { return 0.5F * x * (1.0F + std::erf(x * std::numbers::sqrt2_v<float> / 2)); }

float softplus(float x) { return x > 20.0F ? x : std::log1p(std::exp(x)); }

}  // namespace

UnaryWithParam activation_of_name(const std::string& name) {
    const auto* found = std::find_if(kNamedActivations.begin(), kNamedActivations.end(),
                                     [&](const auto& entry) { return entry.name == name; });
    if (found == kNamedActivations.end()) {
        TT_THROW("Unknown unary op: {}", name);
    }
    return found->parameter ? UnaryWithParam(found->type, *found->parameter)
                            : UnaryWithParam(found->type);
}

void apply_activation(const UnaryWithParam& activation, float* values, std::size_t count) {
    const auto map = [&](const auto& function) { apply(values, count, function); };
    switch (activation.type()) {
        case UnaryOpType::IDENTITY:
            return;
        case UnaryOpType::RELU:
            return map([](float x) { return x < 0.0F ? 0.0F : x; });
        case UnaryOpType::RELU6:
            return map([](float x) { return x < 0.0F ? 0.0F : x > 6.0F ? 6.0F : x; });
        case UnaryOpType::LEAKY_RELU: {
            const float slope = parameter_of(activation, 0, 0.01F);
            return map([slope](float x) { return x < 0.0F ? slope * x : x; });
        }
        case UnaryOpType::ELU: {
            const float alpha = parameter_of(activation, 0, 1.0F);
            return map([alpha](float x) { return x < 0.0F ? alpha * std::expm1(x) : x; });
        }
        case UnaryOpType::GELU:
            return map(gelu);
        case UnaryOpType::SILU:
            return map([](float x) { return x * logistic(x); });
        case UnaryOpType::SIGMOID:
            return map(logistic);
        case UnaryOpType::HARDSIGMOID:
            return map([](float x) { return std::clamp(x / 6.0F + 0.5F, 0.0F, 1.0F); });
        case UnaryOpType::HARDSWISH:
            return map([](float x) { return x * std::clamp(x / 6.0F + 0.5F, 0.0F, 1.0F); });
        case UnaryOpType::SOFTPLUS:
            return map(softplus);
        case UnaryOpType::MISH:
            return map([](float x) { return x * std::tanh(softplus(x)); });
        case UnaryOpType::TANH:
            return map([](float x) { return std::tanh(x); });
        case UnaryOpType::EXP:
            return map(exponential);
        case UnaryOpType::SQRT:
            return map([](float x) { return std::sqrt(x); });
        case UnaryOpType::RSQRT:
            return map([](float x) { return 1.0F / std::sqrt(x); });
        case UnaryOpType::RECIP:
            return map([](float x) { return 1.0F / x; });
        case UnaryOpType::LOG:
            return map([](float x) { return std::log(x); });
        case UnaryOpType::LOG1P:
            return map([](float x) { return std::log1p(x); });
        case UnaryOpType::LOG2:
            return map([](float x) { return std::log2(x); });
        case UnaryOpType::LOG10:
            return map([](float x) { return std::log10(x); });
        case UnaryOpType::SIN:
            return map([](float x) { return std::sin(x); });
        case UnaryOpType::COS:
            return map([](float x) { return std::cos(x); });
        case UnaryOpType::ABS:
            return map([](float x) { return std::abs(x); });
        case UnaryOpType::SIGN:
            return map([](float x) { return x > 0.0F ? 1.0F : x < 0.0F ? -1.0F : x; });
        case UnaryOpType::SQUARE:
            return map([](float x) { return x * x; });
        case UnaryOpType::NEG:
            return map([](float x) { return -x; });
        case UnaryOpType::FLOOR:
            return map([](float x) { return std::floor(x); });
        case UnaryOpType::CEIL:
            return map([](float x) { return std::ceil(x); });
        default:
            TT_THROW("Unary op {} cannot be fused into another operation",
                     static_cast<int>(activation.type()));
    }
}

}  // namespace ttcodegen::cpu
