#include "compute/activation.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "eltwise/unary_functions.hpp"

namespace ttcodegen::cpu {
namespace {

struct NamedActivation {
    std::string_view name;
    UnaryOpType type;
    std::optional<float> parameter;
};

// The names of fused activations in ttnn.
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
    const EltwiseUnaryWithParam operation(activation);
    apply_activations({&operation, 1}, values, count);
}

}  // namespace ttcodegen::cpu
