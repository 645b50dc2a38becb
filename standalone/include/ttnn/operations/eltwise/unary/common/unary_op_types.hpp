#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace ttnn::operations::unary {

/// Forms of gelu, since 0.81.1: with the error function, from a table, and with the tangent.
enum class GeluVariant { ACCURATE, FAST_LUT, TANH };

/// Elementwise operations, alone or fused into other operations.
enum class UnaryOpType {
    EXP,
    RECIP,
    GELU,
    RELU,
    SQRT,
    SIGMOID,
    LOG,
    LOG1P,
    TANH,
    LOG2,
    LOG10,
    SIN,
    COS,
    COSH,
    SINH,
    ABS,
    ABS_INT32,
    SIGN,
    SQUARE,
    EQZ,
    NEZ,
    GTZ,
    LTZ,
    GEZ,
    LEZ,
    RELU_MAX,
    RELU_MIN,
    POWER,
    POWER_ITERATIVE,
    LEAKY_RELU,
    ELU,
    EXP2,
    HEAVISIDE,
    EXPM1,
    SIGNBIT,
    ASIN,
    ACOS,
    ACOSH,
    RSQRT,
    RELU6,
    ATAN,
    ASINH,
    ATANH,
    ERF,
    ERFC,
    ISINF,
    ISPOSINF,
    ISNEGINF,
    ISNAN,
    LOGICAL_NOT_UNARY,
    ISFINITE,
    ERFINV,
    I0,
    I1,
    TAN,
    RSUB,
    RDIV,
    SILU,
    SOFTPLUS,
    IDENTITY,
    NEG,
    ADD_UNARY_SFPU,
    SUB_UNARY_SFPU,
    MUL_UNARY_SFPU,
    DIV_UNARY_SFPU,
    UNARY_NE,
    UNARY_EQ,
    UNARY_GT,
    UNARY_LT,
    UNARY_GE,
    UNARY_LE,
    TILED_PROD,
    TYPECAST,
    BITCAST,
    BITWISE_XOR,
    BITWISE_NOT,
    BITWISE_AND,
    BITWISE_OR,
    RIGHT_SHIFT,
    FLOOR,
    CEIL,
    TRUNC,
    FRAC,
    ROUND,
    LEFT_SHIFT,
    REMAINDER,
    FMOD,
    DROPOUT,
    FILL,
    PRELU_SFPU,
    ZERO_POINT,
    ALT_COMPLEX_ROTATE90,
    MISH,
    HARDMISH,
    MAXIMUM,
    MINIMUM,
    TANHSHRINK,
    THRESHOLD,
    SOFTSHRINK,
    HARDSHRINK,
    HARDTANH,
    HARDSIGMOID,
    HARDSWISH,
    WHERE_TSS,
    SOFTSIGN,
    CELU,
    CLAMP_TSS,
    SELU,
    RPOW,
    CBRT,
    LOGSIGMOID,
    LOGIT,
    XIELU,
    LGAMMA,
    DIGAMMA,
    POLYGAMMA,
};

enum class VecMode {
    None = 0,
    R = 1,
    C = 2,
    RC = 4,
    RC_custom = 6,
    Invalid = 0xFF,
};

/// An elementwise operation with its parameters, all of one of the types `Ts`.
template <typename... Ts>
    requires(... and (std::integral<Ts> or std::floating_point<Ts>))
struct BasicUnaryWithParam {
    std::variant<BasicUnaryWithParam<Ts>...> base;

    template <typename T>
        requires(... or std::same_as<T, Ts>)
    BasicUnaryWithParam(UnaryOpType op_type, const std::vector<T>& params)
        : base{std::in_place_type<BasicUnaryWithParam<T>>, op_type, params} {}
    template <typename T>
        requires(... or std::same_as<T, Ts>)
    BasicUnaryWithParam(UnaryOpType op_type, std::initializer_list<T> params)
        : base{std::in_place_type<BasicUnaryWithParam<T>>, op_type, params} {}
    template <typename T>
        requires(... or std::same_as<T, Ts>)
    BasicUnaryWithParam(UnaryOpType op_type, T param)
        : base{std::in_place_type<BasicUnaryWithParam<T>>, op_type, param} {}
    template <typename T>
        requires(... or std::same_as<T, Ts>)
    BasicUnaryWithParam(UnaryOpType op_type, T param0, T param1)
        : base{std::in_place_type<BasicUnaryWithParam<T>>, op_type, param0, param1} {}
    BasicUnaryWithParam(UnaryOpType op_type) : base{std::in_place_index<0>, op_type} {}
    template <typename T>
        requires(... or std::same_as<T, Ts>)
    BasicUnaryWithParam(const BasicUnaryWithParam<T>& other) : base{other} {}

    UnaryOpType type() const noexcept {
        return std::visit([](const auto& operation) { return operation.type(); }, base);
    }
    bool has_parameter() const noexcept {
        return std::visit([](const auto& operation) { return operation.has_parameter(); }, base);
    }
    bool empty() const noexcept { return !has_parameter(); }
    std::variant<std::span<const Ts>...> get_params() const noexcept {
        return std::visit<std::variant<std::span<const Ts>...>>(
            [](const auto& operation) { return operation.get_params(); }, base);
    }
};

template <typename T>
struct BasicUnaryWithParam<T> {
    UnaryOpType op_type;
    std::vector<T> params{};

    BasicUnaryWithParam(UnaryOpType op_type_, const std::vector<T>& params_)
        : op_type{op_type_}, params{params_} {}
    BasicUnaryWithParam(UnaryOpType op_type_, std::initializer_list<T> params_)
        : op_type{op_type_}, params{params_} {}
    BasicUnaryWithParam(UnaryOpType op_type_, T param) : op_type{op_type_}, params{param} {}
    BasicUnaryWithParam(UnaryOpType op_type_, T param0, T param1)
        : op_type{op_type_}, params{param0, param1} {}
    BasicUnaryWithParam(UnaryOpType op_type_) : op_type{op_type_} {}

    UnaryOpType type() const noexcept { return op_type; }
    bool has_parameter() const noexcept { return !params.empty(); }
    bool empty() const noexcept { return params.empty(); }
    std::span<const T> get_params() const noexcept { return params; }
};

using EltwiseUnaryWithParam = BasicUnaryWithParam<float, std::int32_t, std::uint32_t>;
using UnaryWithParam = BasicUnaryWithParam<float>;
using EltwiseFusedActivations = std::vector<EltwiseUnaryWithParam>;
using FusedActivations = std::vector<UnaryWithParam>;
using ScalarVariant = std::variant<std::uint32_t, std::int32_t, float>;

}  // namespace ttnn::operations::unary
