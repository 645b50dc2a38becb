#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "core/tensor_data.hpp"
#include "ttnn/operations/eltwise/unary/common/unary_op_types.hpp"

namespace ttcodegen::cpu {

using ttnn::operations::unary::EltwiseUnaryWithParam;
using ttnn::operations::unary::UnaryOpType;

/// The scalar parameters of an elementwise operation.
struct UnaryParameters {
    double first = 0.0;
    double second = 0.0;
};

/// An elementwise operation of one operand over runs of values; `input` may be `output`.
struct UnaryFunction {
    UnaryOpType type;
    /// Set if a table of all bfloat16 results is faster than computing each element.
    bool costly;
    void (*floats)(const float* input, float* output, std::size_t count, UnaryParameters);
    /// Null where integers are computed with floats.
    void (*integers)(const std::int64_t* input, std::int64_t* output, std::size_t count,
                     UnaryParameters);
};

/// Floored modulo: the result has the sign of the divisor.
inline float remainder_of(float x, float divisor) {
    const float rest = std::fmod(x, divisor);
    return rest != 0.0F && (rest < 0.0F) != (divisor < 0.0F) ? rest + divisor : rest;
}

/// The value of a scalar argument, whichever of the types it was given as.
template <typename... Scalars>
double as_double(const std::variant<Scalars...>& scalar) {
    return std::visit([](auto value) { return static_cast<double>(value); }, scalar);
}

/// @throws std::runtime_error for an operation that the CPU backend does not support.
const UnaryFunction& unary_function(UnaryOpType type);

UnaryParameters parameters_of(const EltwiseUnaryWithParam& operation);

/// Applies fused operations to a run of values in place.
void apply_activations(std::span<const EltwiseUnaryWithParam> activations, float* values,
                       std::size_t count);

/// The common part of unary operations: checks, evaluation, result. Reported as a call of the
/// calling operation.
Tensor unary_operation(const Tensor& input, UnaryOpType type, UnaryParameters parameters,
                       const std::optional<MemoryConfig>& memory_config,
                       const std::optional<Tensor>& output_tensor,
                       const char* name = __builtin_FUNCTION());

}  // namespace ttcodegen::cpu
