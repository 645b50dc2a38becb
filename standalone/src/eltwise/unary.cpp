#include "ttnn/operations/eltwise/unary/unary.hpp"

#include <cmath>
#include <map>
#include <mutex>
#include <numbers>
#include <tuple>
#include <variant>

#include "core/chips.hpp"
#include "core/numeric.hpp"
#include "core/result_shards.hpp"
#include "eltwise/evaluate.hpp"
#include "eltwise/unary_functions.hpp"

namespace ttcodegen::cpu {

namespace {

using Table = std::array<std::uint16_t, 65536>;

// Minimum elements for which a table of all 65536 bfloat16 results is cheaper.
constexpr std::size_t kTableThreshold = 65536;

/// The table of a costly function for all bfloat16 values; created on first use.
const Table& bf16_table(const UnaryFunction& function, UnaryParameters parameters) {
    using Key = std::tuple<UnaryOpType, double, double>;
    static std::mutex mutex;
    static std::map<Key, std::unique_ptr<Table>> tables;
    const std::lock_guard lock(mutex);
    auto& table = tables[{function.type, parameters.first, parameters.second}];
    if (!table) {
        table = std::make_unique<Table>();
        parallel_for(table->size(), kChunk, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                float value = bf16_value(static_cast<std::uint16_t>(i));
                function.floats(&value, &value, 1, parameters);
                (*table)[i] = bf16_bits(value);
            }
        });
    }
    return *table;
}

void evaluate_by_table(const Tensor& input, const Tensor& output, const Table& table) {
    const auto from = elements<std::uint16_t>(input);
    const auto to = mutable_elements<std::uint16_t>(output);
    parallel_for(from.size(), kElementwiseGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            to[i] = table[from[i]];
        }
    });
}

void evaluate_unary(const Tensor& input, const Tensor& output, const UnaryFunction& function,
                    UnaryParameters parameters) {
    const Shape& shape = output.logical_shape();
    const bool bf16 = input.dtype() == DataType::BFLOAT16 && output.dtype() == DataType::BFLOAT16;
    if (bf16 && function.costly && shape.volume() >= kTableThreshold) {
        evaluate_by_table(input, output, bf16_table(function, parameters));
    } else if (function.integers != nullptr && is_integer(input.dtype()) &&
               std::trunc(parameters.first) == parameters.first &&
               std::trunc(parameters.second) == parameters.second) {
        evaluate(std::array{OperandReader<std::int64_t>(input, shape)}, output,
                 [&](const auto& inputs, std::int64_t* values, std::size_t count) {
                     function.integers(inputs[0], values, count, parameters);
                 });
    } else {
        evaluate(std::array{OperandReader<float>(input, shape)}, output,
                 [&](const auto& inputs, float* values, std::size_t count) {
                     function.floats(inputs[0], values, count, parameters);
                 });
    }
}

/// The tensor for the result: the given one, or a new one like the input.
Tensor unary_output(const Tensor& input, const std::optional<MemoryConfig>& memory_config,
                    const std::optional<Tensor>& output_tensor) {
    require_on_device(input, "Unary: Input tensor");
    if (!output_tensor) {
        return allocate_like(input, input.logical_shape(), input.dtype(), input.layout(),
                             unary_memory(input, memory_config));
    }
    require_on_device(*output_tensor, "Unary: Output tensor");
    TT_FATAL(
        output_tensor->layout() == input.layout(),
        "Unary: Output format (tile/row-major) must match input when preallocated. Output: {}, "
        "Input: {}",
        output_tensor->layout(), input.layout());
    TT_FATAL(output_tensor->logical_shape() == input.logical_shape(),
             "Unary: Output shape {} must match the input's, {}", output_tensor->logical_shape(),
             input.logical_shape());
    return *output_tensor;
}

}  // namespace

Tensor unary_operation(const Tensor& input, UnaryOpType type, UnaryParameters parameters,
                       const std::optional<MemoryConfig>& memory_config,
                       const std::optional<Tensor>& output_tensor, const char* name) {
    TTCODEGEN_CALL_AS(name, unary_operation, input, type, parameters, memory_config, output_tensor);
    TTCODEGEN_ON_CHIPS(Any, unary_operation, input, type, parameters, memory_config, output_tensor);
    const Tensor output = unary_output(input, memory_config, output_tensor);
    const DataType dtype = input.dtype();
    TT_FATAL(type != UnaryOpType::LOGICAL_NOT_UNARY || dtype != DataType::UINT8,
             "Unsupported data type for logical_not: {}", dtype);
    TT_FATAL(
        type != UnaryOpType::LGAMMA || dtype == DataType::BFLOAT16 || dtype == DataType::FLOAT32,
        "Unsupported data type for lgamma: {}", dtype);
    evaluate_unary(input, output, unary_function(type), parameters);
    return output;
}

}  // namespace ttcodegen::cpu

namespace ttnn {

namespace cpu = ttcodegen::cpu;
using operations::unary::UnaryOpType;

#define TAIL                                                                                    \
    const std::optional<MemoryConfig>&memory_config, const std::optional<Tensor>&output_tensor, \
        const std::optional<CoreRangeSet>&

#define UNARY(name, TYPE, ...)                                                              \
    Tensor name(const Tensor& input, TAIL) {                                                \
        return cpu::unary_operation(input, UnaryOpType::TYPE, {__VA_ARGS__}, memory_config, \
                                    output_tensor);                                         \
    }
UNARY(abs, ABS);
UNARY(neg, NEG);
UNARY(acos, ACOS);
UNARY(asin, ASIN);
UNARY(asinh, ASINH);
UNARY(atan, ATAN);
UNARY(atanh, ATANH);
UNARY(cos, COS);
UNARY(acosh, ACOSH);
UNARY(cosh, COSH);
UNARY(sinh, SINH);
UNARY(erfinv, ERFINV);
UNARY(exp2, EXP2);
UNARY(expm1, EXPM1);
UNARY(gez, GEZ);
UNARY(gtz, GTZ);
UNARY(i0, I0);
UNARY(i1, I1);
UNARY(isfinite, ISFINITE);
UNARY(isinf, ISINF);
UNARY(isnan, ISNAN);
UNARY(isneginf, ISNEGINF);
UNARY(isposinf, ISPOSINF);
UNARY(lez, LEZ);
UNARY(logical_not, LOGICAL_NOT_UNARY);
UNARY(ltz, LTZ);
UNARY(nez, NEZ);
UNARY(reciprocal, RECIP);
UNARY(relu, RELU);
UNARY(relu6, RELU6);
UNARY(sign, SIGN);
UNARY(signbit, SIGNBIT);
UNARY(silu, SILU);
UNARY(sin, SIN);
UNARY(square, SQUARE);
UNARY(tan, TAN);
UNARY(bitwise_not, BITWISE_NOT);
UNARY(floor, FLOOR);
UNARY(ceil, CEIL);
UNARY(trunc, TRUNC);
UNARY(frac, FRAC);
UNARY(hardsigmoid, HARDSIGMOID);
UNARY(hardswish, HARDSWISH);
UNARY(softsign, SOFTSIGN);
UNARY(cbrt, CBRT);
UNARY(lgamma, LGAMMA);
UNARY(digamma, DIGAMMA);
UNARY(eqz, EQZ);
UNARY(hardmish, HARDMISH);
UNARY(identity, IDENTITY);
UNARY(log_sigmoid, LOGSIGMOID);
UNARY(swish, SILU);
UNARY(tanhshrink, TANHSHRINK);
UNARY(erfc, ERFC);
UNARY(deg2rad, MUL_UNARY_SFPU, std::numbers::pi / 180.0, 0.0);
UNARY(rad2deg, MUL_UNARY_SFPU, 180.0 / std::numbers::pi, 0.0);
#undef UNARY

#define UNARY(name, TYPE)                                                                        \
    Tensor name(const Tensor& input, bool /*fast_and_approximate_mode*/, TAIL) {                 \
        return cpu::unary_operation(input, UnaryOpType::TYPE, {}, memory_config, output_tensor); \
    }
UNARY(exp, EXP);
UNARY(erf, ERF);
UNARY(gelu, GELU);
UNARY(log, LOG);
UNARY(log10, LOG10);
UNARY(log2, LOG2);
UNARY(log1p, LOG1P);
UNARY(rsqrt, RSQRT);
UNARY(sqrt, SQRT);
UNARY(mish, MISH);
UNARY(sigmoid_accurate, SIGMOID);
#undef UNARY

#define UNARY(name, TYPE)                                                                      \
    Tensor name(const Tensor& input, float parameter, TAIL) {                                  \
        return cpu::unary_operation(input, UnaryOpType::TYPE, {parameter, 0.0}, memory_config, \
                                    output_tensor);                                            \
    }
UNARY(heaviside, HEAVISIDE);
UNARY(leaky_relu, LEAKY_RELU);
UNARY(relu_max, RELU_MAX);
UNARY(relu_min, RELU_MIN);
UNARY(unary_remainder, REMAINDER);
UNARY(celu, CELU);
UNARY(rpow, RPOW);
UNARY(unary_fmod, FMOD);
UNARY(prelu_sfpu, PRELU_SFPU);
UNARY(hardshrink, HARDSHRINK);
UNARY(elu, ELU);
UNARY(softshrink, SOFTSHRINK);
#undef UNARY

#define UNARY(name, TYPE)                                                                 \
    Tensor name(const Tensor& input, float parameter_a, float parameter_b, TAIL) {        \
        return cpu::unary_operation(input, UnaryOpType::TYPE, {parameter_a, parameter_b}, \
                                    memory_config, output_tensor);                        \
    }
UNARY(threshold, THRESHOLD);
UNARY(softplus, SOFTPLUS);
UNARY(hardtanh, HARDTANH);
UNARY(selu, SELU);
UNARY(clamp_tss, CLAMP_TSS);
#undef UNARY

#define UNARY(name, TYPE)                                                                       \
    Tensor name(const Tensor& input, operations::unary::ScalarVariant parameter, TAIL) {        \
        return cpu::unary_operation(input, UnaryOpType::TYPE, {cpu::as_double(parameter), 0.0}, \
                                    memory_config, output_tensor);                              \
    }
UNARY(fill, FILL);
UNARY(power, POWER);
UNARY(gt_unary, UNARY_GT);
UNARY(lt_unary, UNARY_LT);
UNARY(ne_unary, UNARY_NE);
UNARY(eq_unary, UNARY_EQ);
UNARY(ge_unary, UNARY_GE);
UNARY(le_unary, UNARY_LE);
#undef UNARY

Tensor clamp_tss(const Tensor& input, std::int32_t min_val, std::int32_t max_val, TAIL) {
    return cpu::unary_operation(input, UnaryOpType::CLAMP_TSS,
                                {static_cast<double>(min_val), static_cast<double>(max_val)},
                                memory_config, output_tensor);
}

Tensor round(const Tensor& input, const std::optional<std::int32_t>& parameter, TAIL) {
    return cpu::unary_operation(input, UnaryOpType::ROUND,
                                {static_cast<double>(parameter.value_or(0)), 0.0}, memory_config,
                                output_tensor);
}

Tensor logit(const Tensor& input, std::optional<float> eps, TAIL) {
    return cpu::unary_operation(input, UnaryOpType::LOGIT, {eps.value_or(-1.0F), 0.0},
                                memory_config, output_tensor);
}

Tensor tanh(const Tensor& input, const std::optional<MemoryConfig>& memory_config,
            const std::optional<Tensor>& output_tensor, bool /*approx*/,
            const std::optional<CoreRangeSet>& /*sub_core_grids*/) {
    return cpu::unary_operation(input, UnaryOpType::TANH, {}, memory_config, output_tensor);
}

Tensor rdiv(const Tensor& input, float value, const std::optional<std::string>& rounding_mode,
            TAIL) {
    TTCODEGEN_CALL(rdiv, input, value, rounding_mode, memory_config, output_tensor);
    TT_FATAL(!rounding_mode || *rounding_mode == "trunc" || *rounding_mode == "floor",
             "Incorrect rounding mode (expected None, 'trunc', or 'floor')");
    const Tensor quotient =
        cpu::unary_operation(input, UnaryOpType::RDIV, {value, 0.0}, memory_config, output_tensor);
    if (!rounding_mode) {
        return quotient;
    }
    const UnaryOpType rounding =
        *rounding_mode == "floor" ? UnaryOpType::FLOOR : UnaryOpType::TRUNC;
    return cpu::unary_operation(quotient, rounding, {}, memory_config, quotient);
}

Tensor power_iterative(const Tensor& input, std::uint32_t exponent, TAIL) {
    return cpu::unary_operation(input, UnaryOpType::POWER_ITERATIVE,
                                {static_cast<double>(exponent), 0.0}, memory_config, output_tensor);
}

Tensor sigmoid(const Tensor& input, int /*vector_mode*/, operations::unary::SigmoidMode /*mode*/,
               TAIL) {
    return cpu::unary_operation(input, UnaryOpType::SIGMOID, {}, memory_config, output_tensor);
}

Tensor unary_chain(const Tensor& input,
                   const std::vector<operations::unary::EltwiseUnaryWithParam>& ops_chain, TAIL) {
    TTCODEGEN_CALL(unary_chain, input, ops_chain, memory_config, output_tensor);
    TT_FATAL(!ops_chain.empty(), "Op chain cannot be empty");
    if (const auto mesh = cpu::participants(input, output_tensor); mesh.count > 0) {
        return cpu::on_each_chip(
            mesh, [&] { return unary_chain(input, ops_chain, memory_config, output_tensor); });
    }
    const Tensor output =
        cpu::unary_operation(input, UnaryOpType::IDENTITY, {}, memory_config, output_tensor);
    cpu::evaluate(std::array{cpu::OperandReader<float>(input, input.logical_shape())}, output,
                  [&](const auto& inputs, float* values, std::size_t count) {
                      std::copy_n(inputs[0], count, values);
                      cpu::apply_activations(ops_chain, values, count);
                  });
    return output;
}

#undef TAIL

}  // namespace ttnn
