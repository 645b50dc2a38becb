#include "ttnn/operations/eltwise/binary/binary.hpp"

#include "core/call_report.hpp"
#include "eltwise/binary_functions.hpp"
#include "ttnn/operations/eltwise/binary/binary_composite.hpp"

namespace ttnn {

namespace cpu = ttcodegen::cpu;
using operations::binary::BinaryOpType;
using operations::unary::EltwiseUnaryWithParam;

namespace {

using Activations = ttsl::Span<const EltwiseUnaryWithParam>;

std::optional<DataType> data_type(const std::optional<const DataType>& dtype) {
    return dtype ? std::optional<DataType>(*dtype) : std::nullopt;
}

/// Division of i32 by i32 gives f32; other quotients keep the first operand's data type, whatever
/// is requested.
std::optional<DataType> quotient_type(const Tensor& lhs, const Tensor* rhs,
                                      const std::optional<const DataType>& dtype) {
    const bool int32 =
        lhs.dtype() == DataType::INT32 && (rhs == nullptr || rhs->dtype() == DataType::INT32);
    TT_FATAL(!int32 || !dtype || *dtype == DataType::FLOAT32,
             "For integer division, supported output dtype is FLOAT32");
    return int32 ? std::optional(DataType::FLOAT32) : std::nullopt;
}

cpu::Operand operand(const Tensor& tensor) { return tensor; }
cpu::Operand operand(std::int32_t value) { return static_cast<double>(value); }

}  // namespace

#define CORES const std::optional<CoreRangeSet>&
#define ACTIVATIONS Activations post, Activations lhs_operations, Activations rhs_operations
#define RESULT                                                                                  \
    const std::optional<const DataType>&dtype, const std::optional<MemoryConfig>&memory_config, \
        const std::optional<Tensor>&output
#define EVALUATE(TYPE, DTYPE)         \
    return cpu::binary_operation(     \
        lhs, rhs, BinaryOpType::TYPE, \
        {DTYPE, memory_config, output, post, lhs_operations, rhs_operations})

#define BINARY(name, TYPE)                                                 \
    Tensor name(const Tensor& lhs, const Tensor& rhs, RESULT, ACTIVATIONS, \
                const std::optional<bool>& /*use_legacy*/, CORES) {        \
        EVALUATE(TYPE, data_type(dtype));                                  \
    }                                                                      \
    Tensor name(const Tensor& lhs, float rhs, RESULT, ACTIVATIONS,         \
                const std::optional<bool>& /*use_legacy*/, CORES) {        \
        EVALUATE(TYPE, data_type(dtype));                                  \
    }
BINARY(add, ADD);
BINARY(subtract, SUB);
BINARY(eq, EQ);
BINARY(ne, NE);
BINARY(ge, GE);
BINARY(gt, GT);
BINARY(le, LE);
BINARY(lt, LT);
BINARY(logical_and, LOGICAL_AND);
BINARY(logical_or, LOGICAL_OR);
BINARY(logical_xor, LOGICAL_XOR);
BINARY(ldexp, LDEXP);
BINARY(logaddexp, LOGADDEXP);
BINARY(logaddexp2, LOGADDEXP2);
BINARY(squared_difference, SQUARED_DIFFERENCE);
BINARY(logical_right_shift, LOGICAL_RIGHT_SHIFT);
BINARY(xlogy, XLOGY);
#undef BINARY

#define BINARY(name, TYPE)                                                       \
    Tensor name(float lhs, const Tensor& rhs, RESULT) {                          \
        return cpu::binary_operation(lhs, rhs, BinaryOpType::TYPE,               \
                                     {data_type(dtype), memory_config, output}); \
    }
BINARY(eq, EQ);
BINARY(ne, NE);
BINARY(ge, GE);
BINARY(gt, GT);
BINARY(le, LE);
BINARY(lt, LT);
#undef BINARY

Tensor multiply(const Tensor& lhs, const Tensor& rhs, RESULT, ACTIVATIONS,
                const std::optional<bool>& /*use_legacy*/,
                const std::optional<bool>& /*fast_and_approximate_mode*/, CORES) {
    EVALUATE(MUL, data_type(dtype));
}
Tensor multiply(const Tensor& lhs, float rhs, RESULT, ACTIVATIONS,
                const std::optional<bool>& /*use_legacy*/,
                const std::optional<bool>& /*fast_and_approximate_mode*/, CORES) {
    EVALUATE(MUL, data_type(dtype));
}
Tensor multiply(const Tensor& lhs, const Tensor& rhs, bool /*fast_and_approximate_mode*/) {
    return cpu::binary_operation(lhs, rhs, BinaryOpType::MUL, {});
}
Tensor multiply(const Tensor& lhs, float rhs, bool /*fast_and_approximate_mode*/) {
    return cpu::binary_operation(lhs, rhs, BinaryOpType::MUL, {});
}

Tensor divide(const Tensor& lhs, const Tensor& rhs, RESULT, ACTIVATIONS,
              const std::optional<bool>& /*use_legacy*/,
              const std::optional<bool>& /*fast_and_approximate_mode*/, CORES) {
    return cpu::binary_operation(lhs, rhs, BinaryOpType::DIV,
                                 {quotient_type(lhs, &rhs, dtype), memory_config, output, post,
                                  lhs_operations, rhs_operations});
}
Tensor divide(const Tensor& lhs, float rhs, RESULT, ACTIVATIONS,
              const std::optional<bool>& /*use_legacy*/,
              const std::optional<bool>& /*fast_and_approximate_mode*/, CORES) {
    return cpu::binary_operation(lhs, rhs, BinaryOpType::DIV,
                                 {quotient_type(lhs, nullptr, dtype), memory_config, output, post,
                                  lhs_operations, rhs_operations});
}

#define IN_PLACE(TYPE)                \
    return cpu::binary_operation(     \
        lhs, rhs, BinaryOpType::TYPE, \
        {std::nullopt, std::nullopt, lhs, post, lhs_operations, rhs_operations})

#define BINARY(name, TYPE)                                                                       \
    Tensor name(const Tensor& lhs, const Tensor& rhs, ACTIVATIONS, std::optional<bool>, CORES) { \
        IN_PLACE(TYPE);                                                                          \
    }                                                                                            \
    Tensor name(const Tensor& lhs, float rhs, ACTIVATIONS, std::optional<bool>, CORES) {         \
        IN_PLACE(TYPE);                                                                          \
    }
BINARY(add_, ADD);
BINARY(subtract_, SUB);
BINARY(ldexp_, LDEXP);
BINARY(logaddexp_, LOGADDEXP);
BINARY(logaddexp2_, LOGADDEXP2);
BINARY(squared_difference_, SQUARED_DIFFERENCE);
BINARY(gt_, GT);
BINARY(ge_, GE);
BINARY(le_, LE);
BINARY(lt_, LT);
BINARY(eq_, EQ);
BINARY(ne_, NE);
BINARY(logical_and_, LOGICAL_AND);
BINARY(logical_or_, LOGICAL_OR);
BINARY(logical_xor_, LOGICAL_XOR);
BINARY(rsub_, RSUB);
BINARY(bias_gelu_, BIAS_GELU);
#undef BINARY

Tensor multiply_(const Tensor& lhs, const Tensor& rhs, ACTIVATIONS, std::optional<bool>,
                 std::optional<bool>, CORES) {
    IN_PLACE(MUL);
}
Tensor multiply_(const Tensor& lhs, float rhs, ACTIVATIONS, std::optional<bool>,
                 std::optional<bool>, CORES) {
    IN_PLACE(MUL);
}
Tensor divide_(const Tensor& lhs, const Tensor& rhs, ACTIVATIONS, std::optional<bool>,
               std::optional<bool>, CORES) {
    TT_FATAL(!quotient_type(lhs, &rhs, std::nullopt),
             "For integer division, supported output dtype is FLOAT32");
    IN_PLACE(DIV);
}
Tensor divide_(const Tensor& lhs, float rhs, ACTIVATIONS, std::optional<bool>, std::optional<bool>,
               CORES) {
    TT_FATAL(!quotient_type(lhs, nullptr, std::nullopt),
             "For integer division, supported output dtype is FLOAT32");
    IN_PLACE(DIV);
}

Tensor addalpha(const Tensor& lhs, const Tensor& rhs, float alpha,
                const std::optional<MemoryConfig>& memory_config,
                const std::optional<Tensor>& output) {
    const EltwiseUnaryWithParam scale{operations::unary::UnaryOpType::MUL_UNARY_SFPU, alpha};
    return cpu::binary_operation(lhs, rhs, BinaryOpType::ADD,
                                 {std::nullopt, memory_config, output, {}, {}, {&scale, 1}});
}
Tensor subalpha(const Tensor& lhs, const Tensor& rhs, float alpha,
                const std::optional<MemoryConfig>& memory_config,
                const std::optional<Tensor>& output) {
    const EltwiseUnaryWithParam scale{operations::unary::UnaryOpType::MUL_UNARY_SFPU, alpha};
    return cpu::binary_operation(lhs, rhs, BinaryOpType::SUB,
                                 {std::nullopt, memory_config, output, {}, {}, {&scale, 1}});
}

#define BITS(name, TYPE, RHS)                                                                   \
    Tensor name(const Tensor& lhs, RHS rhs, const std::optional<MemoryConfig>& memory_config,   \
                const std::optional<Tensor>& output, ACTIVATIONS, std::optional<bool>, CORES) { \
        return cpu::binary_operation(                                                           \
            lhs, operand(rhs), BinaryOpType::TYPE,                                              \
            {std::nullopt, memory_config, output, post, lhs_operations, rhs_operations});       \
    }
#define BINARY(name, TYPE)          \
    BITS(name, TYPE, const Tensor&) \
    BITS(name, TYPE, std::int32_t)
BINARY(bitwise_and, BITWISE_AND);
BINARY(bitwise_or, BITWISE_OR);
BINARY(bitwise_xor, BITWISE_XOR);
BINARY(bitwise_left_shift, LEFT_SHIFT);
BINARY(bitwise_right_shift, RIGHT_SHIFT);
BINARY(logical_left_shift, LEFT_SHIFT);
#undef BINARY
#undef BITS

Tensor hypot(const Tensor& a, const Tensor& b, const std::optional<MemoryConfig>& memory_config,
             const std::optional<Tensor>& output) {
    return cpu::binary_operation(a, b, BinaryOpType::HYPOT, {std::nullopt, memory_config, output});
}

// binary_composite.hpp

#define MEMORY const std::optional<MemoryConfig>& memory_config
// The release takes a data type here but gives the result the first operand's.
#define IGNORED_TYPE                                \
    const std::optional<const DataType>& /*dtype*/, \
        const std::optional<MemoryConfig>&memory_config, const std::optional<Tensor>&output

Tensor pow(const Tensor& lhs, std::int32_t exponent, MEMORY, const std::optional<Tensor>& output) {
    return cpu::binary_operation(lhs, static_cast<double>(exponent), BinaryOpType::POWER,
                                 {std::nullopt, memory_config, output});
}
Tensor pow(const Tensor& lhs, float exponent, MEMORY, const std::optional<Tensor>& output) {
    return cpu::binary_operation(lhs, exponent, BinaryOpType::POWER,
                                 {std::nullopt, memory_config, output});
}
Tensor pow(float lhs, const Tensor& rhs, IGNORED_TYPE, ACTIVATIONS, std::optional<bool>) {
    EVALUATE(POWER, std::nullopt);
}
Tensor pow(const Tensor& lhs, const Tensor& rhs, IGNORED_TYPE, ACTIVATIONS, std::optional<bool>) {
    EVALUATE(POWER, std::nullopt);
}

namespace {

/// The operation of `div` for a rounding mode, and the result's data type.
Tensor rounded_quotient(const Tensor& lhs, const cpu::Operand& rhs,
                        const std::optional<std::string>& rounding_mode, cpu::BinaryOptions options,
                        const char* name = __builtin_FUNCTION()) {
    TT_FATAL(!rounding_mode || *rounding_mode == "trunc" || *rounding_mode == "floor",
             "Incorrect rounding mode (expected None, 'trunc', or 'floor')");
    if (rounding_mode) {
        const BinaryOpType type =
            *rounding_mode == "floor" ? BinaryOpType::DIV_FLOOR : BinaryOpType::DIV_TRUNC;
        return cpu::binary_operation(lhs, rhs, type, options, name);
    }
    // A requested data type is used for integer division only.
    options.dtype =
        quotient_type(lhs, std::get_if<Tensor>(&rhs),
                      lhs.dtype() == DataType::INT32 ? std::optional<const DataType>(options.dtype)
                                                     : std::nullopt);
    return cpu::binary_operation(lhs, rhs, BinaryOpType::DIV, options, name);
}

}  // namespace

Tensor div(const Tensor& lhs, const Tensor& rhs, bool /*fast_and_approximate_mode*/,
           const std::optional<std::string>& rounding_mode,
           const std::optional<const DataType>& dtype, MEMORY, const std::optional<Tensor>& output,
           ACTIVATIONS, const std::optional<bool>& /*use_legacy*/, CORES) {
    return rounded_quotient(
        lhs, rhs, rounding_mode,
        {data_type(dtype), memory_config, output, post, lhs_operations, rhs_operations});
}
Tensor div(const Tensor& lhs, float rhs, bool /*fast_and_approximate_mode*/,
           const std::optional<std::string>& rounding_mode,
           const std::optional<const DataType>& dtype, MEMORY, std::optional<Tensor> output,
           ACTIVATIONS, const std::optional<bool>& /*use_legacy*/, CORES) {
    return rounded_quotient(
        lhs, rhs, rounding_mode,
        {data_type(dtype), memory_config, output, post, lhs_operations, rhs_operations});
}

Tensor fmod(const Tensor& lhs, const Tensor& rhs, MEMORY, CORES) {
    return cpu::binary_operation(lhs, rhs, BinaryOpType::FMOD, {std::nullopt, memory_config});
}
Tensor fmod(const Tensor& lhs, float rhs, MEMORY, CORES) {
    return cpu::binary_operation(lhs, rhs, BinaryOpType::FMOD, {std::nullopt, memory_config});
}

Tensor remainder(const Tensor& lhs, const Tensor& rhs, RESULT, ACTIVATIONS,
                 const std::optional<bool>& /*use_legacy*/, CORES) {
    const DataType first = lhs.dtype();
    TT_FATAL(first != DataType::UINT32 && first != DataType::UINT16 && first != DataType::UINT8,
             "Unsupported data type for remainder {}", first);
    EVALUATE(REMAINDER, data_type(dtype));
}
Tensor remainder(const Tensor& lhs, float rhs, IGNORED_TYPE, ACTIVATIONS,
                 const std::optional<bool>& /*use_legacy*/, CORES) {
    EVALUATE(REMAINDER, std::nullopt);
}

#define BINARY(name, TYPE)                                                       \
    Tensor name(const Tensor& lhs, const Tensor& rhs, IGNORED_TYPE, ACTIVATIONS, \
                std::optional<bool>) {                                           \
        EVALUATE(TYPE, std::nullopt);                                            \
    }
BINARY(lcm, LCM);
BINARY(gcd, GCD);
BINARY(maximum, MAXIMUM);
BINARY(minimum, MINIMUM);
#undef BINARY

#define BINARY(name, TYPE)                                                               \
    Tensor name(const Tensor& lhs, operations::unary::ScalarVariant value, IGNORED_TYPE, \
                ACTIVATIONS, std::optional<bool>) {                                      \
        const double rhs = cpu::as_double(value);                                        \
        EVALUATE(TYPE, std::nullopt);                                                    \
    }
BINARY(maximum, MAXIMUM);
BINARY(minimum, MINIMUM);
#undef BINARY

Tensor rsub(const Tensor& lhs, const Tensor& rhs, RESULT, ACTIVATIONS, std::optional<bool>) {
    EVALUATE(RSUB, data_type(dtype));
}
Tensor rsub(const Tensor& lhs, float rhs, RESULT, ACTIVATIONS, std::optional<bool>) {
    EVALUATE(RSUB, data_type(dtype));
}

Tensor prelu(const Tensor& input, float weight, MEMORY) {
    TTCODEGEN_CALL(prelu, input, weight, memory_config);
    return prelu_sfpu(input, weight, memory_config);
}

Tensor atan2(const Tensor& y, const Tensor& x, MEMORY) {
    return cpu::binary_operation(y, x, BinaryOpType::ATAN2, {std::nullopt, memory_config});
}

}  // namespace ttnn
