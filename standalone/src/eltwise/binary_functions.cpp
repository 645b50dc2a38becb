#include "eltwise/binary_functions.hpp"

#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <span>

#include "core/chips.hpp"
#include "core/result_shards.hpp"
#include "eltwise/evaluate.hpp"
#include "eltwise/smooth_functions.hpp"

namespace ttcodegen::cpu {

namespace {

using Int = std::int64_t;

// Sums and products of 32-bit integers wrap as on the device; unsigned arithmetic never overflows.
constexpr Int wrapping_add(Int a, Int b) {
    return static_cast<Int>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
constexpr Int wrapping_multiply(Int a, Int b) {
    return static_cast<Int>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
Int quotient(Int a, Int b) { return b == 0 ? 0 : a / b; }
Int floor_quotient(Int a, Int b) {
    return b == 0 ? 0 : a / b - static_cast<Int>(a % b != 0 && (a < 0) != (b < 0));
}
Int floor_remainder(Int a, Int b) {
    const Int rest = b == 0 ? 0 : a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
Int power(Int base, Int exponent) {
    if (exponent < 0) {
        return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
    }
    Int result = 1;
    for (; exponent > 0; exponent >>= 1) {
        result = (exponent & 1) != 0 ? wrapping_multiply(result, base) : result;
        base = wrapping_multiply(base, base);
    }
    return result;
}
float log_add_exp(float a, float b) {
    const float high = a > b ? a : b;
    return a == b ? a + std::numbers::ln2_v<float> : high + std::log1p(std::exp(-std::fabs(a - b)));
}
float log_add_exp2(float a, float b) {
    const float high = a > b ? a : b;
    return a == b ? a + 1.0F
                  : high + std::log1p(std::exp2(-std::fabs(a - b))) * std::numbers::log2e_v<float>;
}
bool shifts_out(Int bits) { return bits < 0 || bits >= 32; }
Int shift_left(Int a, Int b) {
    return shifts_out(b) ? 0 : static_cast<Int>(static_cast<std::uint64_t>(a) << b);
}
Int shift_right(Int a, Int b) { return shifts_out(b) ? (a < 0 ? -1 : 0) : a >> b; }
Int logical_shift_right(Int a, Int b) {
    return shifts_out(b) ? 0 : static_cast<Int>(static_cast<std::uint32_t>(a) >> b);
}

template <auto Function>
void floats(const float* a, const float* b, float* output, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        output[i] = Function(a[i], b[i]);
    }
}
template <auto Function>
void integers(const Int* a, const Int* b, Int* output, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        output[i] = Function(a[i], b[i]);
    }
}

/// Rows: the expressions for floats and for integers.
#define ROW(TYPE, TYPES, FLOAT_EXPRESSION, INTEGER_EXPRESSION)                        \
    BinaryFunction {                                                                  \
        BinaryOpType::TYPE, OperandTypes::TYPES, #TYPE,                               \
            floats<([]([[maybe_unused]] float a, [[maybe_unused]] float b) -> float { \
                return FLOAT_EXPRESSION;                                              \
            })>,                                                                      \
            integers<([](Int a, Int b) -> Int { return INTEGER_EXPRESSION; })>        \
    }
#define SAME(TYPE, EXPRESSION) ROW(TYPE, kAny, EXPRESSION, EXPRESSION)
#define FLOAT(TYPE, EXPRESSION)                                                     \
    BinaryFunction {                                                                \
        BinaryOpType::TYPE, OperandTypes::kAny, #TYPE,                              \
            floats<([](float a, float b) -> float { return EXPRESSION; })>, nullptr \
    }
#define BITS(TYPE, TYPES, EXPRESSION) ROW(TYPE, TYPES, 0.0F, EXPRESSION)

constexpr std::array kBinaryFunctions = {
    ROW(ADD, kAny, a + b, wrapping_add(a, b)),
    ROW(SUB, kAny, a - b, wrapping_add(a, -b)),
    ROW(RSUB, kAny, b - a, wrapping_add(b, -a)),
    ROW(MUL, kAny, a* b, wrapping_multiply(a, b)),
    ROW(DIV, kAny, a / b, quotient(a, b)),
    ROW(DIV_FLOOR, kAny, std::floor(a / b), floor_quotient(a, b)),
    ROW(DIV_TRUNC, kAny, std::trunc(a / b), quotient(a, b)),
    ROW(REMAINDER, kAny, remainder_of(a, b), floor_remainder(a, b)),
    ROW(FMOD, kAny, std::fmod(a, b), b == 0 ? 0 : a % b),
    ROW(POWER, kAny, std::pow(a, b), power(a, b)),
    // NaN propagates from either operand.
    SAME(MAXIMUM, a > b || a != a ? a : b),
    SAME(MINIMUM, a < b || a != a ? a : b),
    ROW(SQUARED_DIFFERENCE, kAny, (a - b) * (a - b), wrapping_multiply(a - b, a - b)),
    SAME(EQ, a == b),
    SAME(NE, a != b),
    SAME(LT, a < b),
    SAME(LE, a <= b),
    SAME(GT, a > b),
    SAME(GE, a >= b),
    SAME(LOGICAL_AND, a != 0 && b != 0),
    SAME(LOGICAL_OR, a != 0 || b != 0),
    SAME(LOGICAL_XOR, (a != 0) != (b != 0)),
    BITS(BITWISE_AND, kSameBits, a& b),
    BITS(BITWISE_OR, kSameBits, a | b),
    BITS(BITWISE_XOR, kSameBits, a ^ b),
    BITS(LEFT_SHIFT, kBits, shift_left(a, b)),
    BITS(RIGHT_SHIFT, kBits, shift_right(a, b)),
    BITS(LOGICAL_RIGHT_SHIFT, kWideBits, logical_shift_right(a, b)),
    BITS(GCD, kInt32, std::gcd(a, b)),
    BITS(LCM, kInt32, std::lcm(a, b)),
    FLOAT(ATAN2, std::atan2(a, b)),
    FLOAT(HYPOT, std::hypot(a, b)),
    FLOAT(LDEXP, a* std::exp2(b)),
    FLOAT(LOGADDEXP, log_add_exp(a, b)),
    FLOAT(LOGADDEXP2, log_add_exp2(a, b)),
    FLOAT(XLOGY, a == 0.0F && b == b ? 0.0F : a * std::log(b)),
    FLOAT(BIAS_GELU, gelu_of(a + b)),
};

#undef ROW
#undef SAME
#undef FLOAT
#undef BITS

const Tensor* tensor_of(const Operand& operand) { return std::get_if<Tensor>(&operand); }

bool is_bits(DataType dtype) {
    return dtype == DataType::INT32 || dtype == DataType::UINT32 || dtype == DataType::UINT16;
}

/// Checks the data types; a scalar takes the other operand's.
void check_types(const BinaryFunction& function, DataType a, DataType b) {
    bool valid = true;
    switch (function.types) {
        case OperandTypes::kAny:
            break;
        case OperandTypes::kSameBits:
            valid = a == b && is_bits(a);
            break;
        case OperandTypes::kBits:
            valid = is_bits(a) && is_bits(b);
            break;
        case OperandTypes::kWideBits:
            valid = is_bits(a) && is_bits(b) && a != DataType::UINT16 && b != DataType::UINT16;
            break;
        case OperandTypes::kInt32:
            valid = a == DataType::INT32 && b == DataType::INT32;
            break;
    }
    TT_FATAL(valid, "Unsupported binary op for FPU BinaryOpType::{} with {} and {}", function.name,
             a, b);
}

template <typename Value>
OperandReader<Value> reader(const Operand& operand, const Shape& shape) {
    if (const Tensor* tensor = tensor_of(operand)) {
        return OperandReader<Value>(*tensor, shape);
    }
    return OperandReader<Value>(static_cast<Value>(std::get<double>(operand)));
}

bool is_whole(const Operand& operand) {
    if (const Tensor* tensor = tensor_of(operand)) {
        return is_integer(tensor->dtype());
    }
    const double value = std::get<double>(operand);
    return value == std::trunc(value) && std::fabs(value) < 9.0e18;
}

/// The `values` after `activations`; in `scratch` if there are any.
const float* activated(std::span<const EltwiseUnaryWithParam> activations, const float* values,
                       float* scratch, std::size_t count) {
    if (activations.empty()) {
        return values;
    }
    if (values != scratch) {
        std::copy_n(values, count, scratch);
    }
    apply_activations(activations, scratch, count);
    return scratch;
}

void evaluate_binary(const Operand& lhs, const Operand& rhs, const BinaryFunction& function,
                     const BinaryOptions& options, const Tensor& output) {
    const Shape& shape = output.logical_shape();
    const bool plain = options.post_activations.empty() && options.lhs_activations.empty() &&
                       options.rhs_activations.empty();
    const bool whole_result = is_integer(output.dtype()) || function.type != BinaryOpType::DIV;
    if (function.integers != nullptr && plain && whole_result && is_whole(lhs) && is_whole(rhs)) {
        evaluate(std::array{reader<Int>(lhs, shape), reader<Int>(rhs, shape)}, output,
                 [&](const auto& inputs, Int* values, std::size_t count) {
                     function.integers(inputs[0], inputs[1], values, count);
                 });
        return;
    }
    evaluate(std::array{reader<float>(lhs, shape), reader<float>(rhs, shape)}, output,
             [&](const auto& inputs, float* values, std::size_t count) {
                 if (plain) {
                     function.floats(inputs[0], inputs[1], values, count);
                     return;
                 }
                 float scratch[2][kChunk];
                 const float* a = activated(options.lhs_activations, inputs[0], scratch[0], count);
                 const float* b = activated(options.rhs_activations, inputs[1], scratch[1], count);
                 function.floats(a, b, values, count);
                 apply_activations(options.post_activations, values, count);
             });
}

Tensor binary_output(const Tensor& first, const Tensor* second, const Shape& shape,
                     const BinaryOptions& options) {
    const bool row_major = first.layout() == Layout::ROW_MAJOR &&
                           (second == nullptr || second->layout() == Layout::ROW_MAJOR);
    if (!options.output) {
        const Layout layout = row_major ? Layout::ROW_MAJOR : Layout::TILE;
        const std::array operands{&first, second};
        const MemoryConfig memory_config =
            elementwise_memory(std::span(operands).first(second != nullptr ? 2 : 1), shape, layout,
                               options.memory_config);
        // Rows are computed in tiles, and untilized again for a row-major result.
        TT_FATAL(
            !row_major || second == nullptr || !memory_config.is_sharded() || memory_config.is_l1(),
            "Multicore implementation doesn't support DRAM sharding");
        return allocate_like(first, shape, options.dtype.value_or(first.dtype()), layout,
                             memory_config);
    }
    const Tensor& output = *options.output;
    require_on_device(output, "Output tensor");
    TT_FATAL(!options.dtype || *options.dtype == output.dtype(),
             "If both output dtype and output tensor are provided, their dtypes should match");
    TT_FATAL(!row_major, "Optional output tensor with Row Major input is not supported");
    TT_FATAL(output.logical_shape() == shape,
             "Shape of Output tensor {} provided does not match the broadcasted output shape {}",
             output.logical_shape(), shape);
    return output;
}

}  // namespace

const BinaryFunction& binary_function(BinaryOpType type) {
    const auto row =
        std::find_if(kBinaryFunctions.begin(), kBinaryFunctions.end(),
                     [&](const BinaryFunction& function) { return function.type == type; });
    TT_FATAL(row != kBinaryFunctions.end(), "The CPU backend has no binary operation number {}",
             static_cast<int>(type));
    return *row;
}

namespace {

/// A call that stores its options, so that it can be replayed.
auto call_binary(const BinaryOptions& options) {
    const auto held = [](std::span<const EltwiseUnaryWithParam> activations) {
        return std::vector<EltwiseUnaryWithParam>(activations.begin(), activations.end());
    };
    return
        [post = held(options.post_activations), of_lhs = held(options.lhs_activations),
         of_rhs = held(options.rhs_activations)](
            const Operand& lhs, const Operand& rhs, BinaryOpType type,
            const std::optional<DataType>& dtype, const std::optional<MemoryConfig>& memory_config,
            const std::optional<Tensor>& output) {
            return binary_operation(lhs, rhs, type,
                                    {dtype, memory_config, output, post, of_lhs, of_rhs});
        };
}

}  // namespace

Tensor binary_operation(const Operand& lhs, const Operand& rhs, BinaryOpType type,
                        const BinaryOptions& options, const char* name) {
    if (records_calls()) {
        // References in the options end with the call.
        return recorded(name, call_binary(options), lhs, rhs, type, options.dtype,
                        options.memory_config, options.output);
    }
    noted(name, lhs, rhs, options.output);
    if (reports_calls()) {
        return reported(name, [&] { return binary_operation(lhs, rhs, type, options); }, lhs, rhs);
    }
    if (const auto mesh = participants(lhs, rhs, options.output); mesh.count > 0) {
        return on_each_chip(mesh, [&] { return binary_operation(lhs, rhs, type, options); });
    }
    const BinaryFunction& function = binary_function(type);
    const Tensor* a = tensor_of(lhs);
    const Tensor* b = tensor_of(rhs);
    if (a != nullptr) {
        require_on_device(*a, "Input tensor A");
    }
    if (b != nullptr) {
        require_on_device(*b, "Input tensor B");
    }
    const Tensor& first = a != nullptr ? *a : *b;
    const Tensor* second = a != nullptr ? b : nullptr;
    const Tensor& last = b != nullptr ? *b : *a;
    const Shape shape = broadcast_shape(first.logical_shape(), last.logical_shape());
    check_types(function, first.dtype(), last.dtype());
    const Tensor output = binary_output(first, second, shape, options);
    evaluate_binary(lhs, rhs, function, options, output);
    return output;
}

}  // namespace ttcodegen::cpu
