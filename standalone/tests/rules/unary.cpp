// Elementwise operations of one tensor.

#include "ttnn/operations/eltwise/unary/unary.hpp"

#include "call.hpp"
#include "ttnn/operations/data_movement/clone/clone.hpp"
#include "ttnn/operations/eltwise/binary/binary_composite.hpp"
#include "ttnn/operations/eltwise/unary/unary_composite.hpp"
#include "ttnn/operations/experimental/dropout/dropout.hpp"
#include "wrap.hpp"

namespace rules {

namespace {

constexpr float kSoftplusThreshold = 20.0F;

/// Common arguments of unary operations.
struct Common {
    explicit Common(Call& call) : memory_config(call.memory_config()) {
        call.take(kWideRows);
        for (const char* other : {"same spec", "other dtype", "other shape", "other layout"}) {
            if (call.take(std::string("output_tensor ") + other)) {
                output = call.input(1);
            }
        }
    }

    std::optional<MemoryConfig> memory_config;
    std::optional<Tensor> output;
};

/// Operations of the input alone.
template <typename Function>
void plain(Operations& operations, const char* name, Function function) {
    operations[name] = [function](Call& call) -> Results {
        const Common common(call);
        return function(call.input(0), common.memory_config, common.output);
    };
}

/// With fast_and_approximate_mode.
template <typename Function>
void approximate(Operations& operations, const char* name, Function function) {
    operations[name] = [function](Call& call) -> Results {
        const bool fast = call.flag("fast_and_approximate_mode", false);
        const Common common(call);
        return function(call.input(0), fast, common.memory_config, common.output);
    };
}

/// With one scalar, args=(x,) or alpha=x, or `otherwise`.
template <typename Function>
void with_number(Operations& operations, const char* name, float otherwise, Function function) {
    operations[name] = [function, otherwise](Call& call) -> Results {
        float parameter = call.number("alpha").value_or(otherwise);
        if (const auto arguments = call.value("args")) {
            parameter = std::stof(arguments->substr(1));
        }
        const Common common(call);
        return function(call.input(0), parameter, common.memory_config, common.output);
    };
}

void add_plain(Operations& operations) {
    plain(operations, TTNN(abs));
    plain(operations, TTNN(neg));
    plain(operations, TTNN(acos));
    plain(operations, TTNN(asin));
    plain(operations, TTNN(asinh));
    plain(operations, TTNN(atan));
    plain(operations, TTNN(atanh));
    plain(operations, TTNN(cos));
    plain(operations, TTNN(acosh));
    plain(operations, TTNN(cosh));
    plain(operations, TTNN(sinh));
    plain(operations, TTNN(erfinv));
    plain(operations, TTNN(exp2));
    plain(operations, TTNN(expm1));
    plain(operations, TTNN(gez));
    plain(operations, TTNN(gtz));
    plain(operations, TTNN(i0));
    plain(operations, TTNN(i1));
    plain(operations, TTNN(isfinite));
    plain(operations, TTNN(isinf));
    plain(operations, TTNN(isnan));
    plain(operations, TTNN(isneginf));
    plain(operations, TTNN(isposinf));
    plain(operations, TTNN(lez));
    plain(operations, TTNN(logical_not));
    plain(operations, TTNN(ltz));
    plain(operations, TTNN(nez));
    plain(operations, TTNN(reciprocal));
    plain(operations, TTNN(relu));
    plain(operations, TTNN(relu6));
    plain(operations, TTNN(sign));
    plain(operations, TTNN(signbit));
    plain(operations, TTNN(silu));
    plain(operations, TTNN(sin));
    plain(operations, TTNN(square));
    plain(operations, TTNN(tan));
    plain(operations, TTNN(tanh));
    plain(operations, TTNN(bitwise_not));
    plain(operations, TTNN(floor));
    plain(operations, TTNN(ceil));
    plain(operations, TTNN(trunc));
    plain(operations, TTNN(frac));
    plain(operations, TTNN(hardsigmoid));
    plain(operations, TTNN(hardswish));
    plain(operations, TTNN(softsign));
    plain(operations, TTNN(cbrt));
    plain(operations, TTNN(lgamma));
    plain(operations, TTNN(digamma));
    plain(operations, TTNN(eqz));
    plain(operations, TTNN(hardmish));
    plain(operations, TTNN(identity));
    plain(operations, TTNN(log_sigmoid));
    plain(operations, TTNN(swish));
    plain(operations, TTNN(tanhshrink));
    plain(operations, TTNN(erfc));
    plain(operations, TTNN(deg2rad));
    plain(operations, TTNN(rad2deg));
}

void add_with_parameters(Operations& operations) {
    approximate(operations, TTNN(exp));
    approximate(operations, TTNN(erf));
    approximate(operations, TTNN(gelu));
    approximate(operations, TTNN(log));
    approximate(operations, TTNN(log10));
    approximate(operations, TTNN(log2));
    approximate(operations, TTNN(log1p));
    approximate(operations, TTNN(rsqrt));
    approximate(operations, TTNN(sqrt));
    approximate(operations, TTNN(mish));
    approximate(operations, TTNN(sigmoid_accurate));
    with_number(operations, "heaviside", 0.5F,
                [](const auto&... arguments) { return ttnn::heaviside(arguments...); });
    with_number(operations, "leaky_relu", 0.1F,
                [](const auto&... arguments) { return ttnn::leaky_relu(arguments...); });
    with_number(operations, "relu_max", 1.0F,
                [](const auto&... arguments) { return ttnn::relu_max(arguments...); });
    with_number(operations, "relu_min", 0.0F,
                [](const auto&... arguments) { return ttnn::relu_min(arguments...); });
    with_number(operations, "celu", 1.0F,
                [](const auto&... arguments) { return ttnn::celu(arguments...); });
    with_number(operations, "elu", 1.0F,
                [](const auto&... arguments) { return ttnn::elu(arguments...); });
    with_number(operations, "hardshrink", 0.5F,
                [](const auto&... arguments) { return ttnn::hardshrink(arguments...); });
    with_number(operations, "softshrink", 0.5F,
                [](const auto&... arguments) { return ttnn::softshrink(arguments...); });
    with_number(operations, "fill", 0.0F,
                [](const auto&... arguments) { return ttnn::fill(arguments...); });
    with_number(
        operations, "rdiv", 1.0F,
        [](const Tensor& input, float value, const auto& memory_config, const auto& output) {
            return ttnn::rdiv(input, value, std::nullopt, memory_config, output);
        });
}

/// With two scalars, args=(x, y) or the words `named`, or `otherwise`.
template <typename Function>
void with_numbers(Operations& operations, const char* name, const char* named,
                  std::pair<float, float> otherwise, Function function) {
    operations[name] = [function, named, otherwise](Call& call) -> Results {
        auto [a, b] = otherwise;
        if (const auto arguments = call.value("args")) {
            a = std::stof(arguments->substr(1));
            b = std::stof(arguments->substr(arguments->find(',') + 1));
        }
        call.take(named);
        const Common common(call);
        return function(call.input(0), a, b, common.memory_config, common.output);
    };
}

Results triangle(Call& call, bool upper) {
    const auto diagonal = static_cast<std::int32_t>(call.integer("diagonal").value_or(0));
    call.take("4D");
    if (call.take("output_tensor same spec")) {
        throw Unmapped{"output_tensor is an argument of the Python binding only"};
    }
    return upper ? ttnn::triu(call.input(0), diagonal) : ttnn::tril(call.input(0), diagonal);
}

Results clone(Call& call) {
    const auto dtype = call.dtype();
    const Common common(call);
    if (common.output) {
        throw Unmapped{"output_tensor is an argument of the Python binding only"};
    }
    return ttnn::clone(call.input(0), dtype, common.memory_config, std::nullopt);
}

}  // namespace

void add_unary(Operations& operations) {
    add_plain(operations);
    add_with_parameters(operations);
    with_numbers(operations, "threshold", "", {0.0F, 0.0F},
                 [](const auto&... arguments) { return ttnn::threshold(arguments...); });
    with_numbers(operations, "softplus", "beta,threshold", {1.0F, kSoftplusThreshold},
                 [](const auto&... arguments) { return ttnn::softplus(arguments...); });
    with_numbers(operations, "hardtanh", "min_val,max_val", {-1.0F, 1.0F},
                 [](const auto&... arguments) { return ttnn::hardtanh(arguments...); });
    with_numbers(operations, "selu", "", {1.0507F, 1.67326F},
                 [](const auto&... arguments) { return ttnn::selu(arguments...); });
    operations["round"] = [](Call& call) -> Results {
        const auto decimals = call.integer("decimals");
        const Common common(call);
        return ttnn::round(call.input(0), decimals, common.memory_config, common.output);
    };
    operations["logit"] = [](Call& call) -> Results {
        const auto epsilon = call.number("eps");
        const Common common(call);
        return ttnn::logit(call.input(0), epsilon, common.memory_config, common.output);
    };
    operations["sigmoid"] = [](Call& call) -> Results {
        const auto mode = static_cast<int>(call.integer("vector_mode").value_or(4));
        const Common common(call);
        return ttnn::sigmoid(call.input(0), mode, ttnn::operations::unary::SigmoidMode::ACCURATE,
                             common.memory_config, common.output);
    };
    operations["prelu"] = [](Call& call) -> Results {
        const auto arguments = call.value("args");
        if (!arguments) {
            throw Unmapped{"the CPU backend has no prelu with a tensor of weights"};
        }
        call.take("output_tensor same spec");
        return ttnn::prelu(call.input(0), std::stof(arguments->substr(1)));
    };
    operations["unary_chain"] = [](Call& call) -> Results {
        call.take("RELU,EXP");
        using ttnn::operations::unary::UnaryOpType;
        return ttnn::unary_chain(call.input(0), {UnaryOpType::RELU, UnaryOpType::EXP});
    };
    operations["tril"] = [](Call& call) { return triangle(call, false); };
    operations["triu"] = [](Call& call) { return triangle(call, true); };
    operations["clone"] = clone;
    operations["experimental.dropout"] = [](Call& call) -> Results {
        call.take("p=0.5");
        return ttnn::experimental::dropout(call.input(0), 0.5F, 2.0F, 1);
    };
}

}  // namespace rules
