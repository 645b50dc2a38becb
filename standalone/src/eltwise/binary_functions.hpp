#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "core/tensor_data.hpp"
#include "eltwise/unary_functions.hpp"
#include "ttnn/operations/eltwise/binary/common/binary_op_types.hpp"

namespace ttcodegen::cpu {

using ttnn::operations::binary::BinaryOpType;

/// Supported data types of the operands.
enum class OperandTypes {
    kAny,
    /// Both of the same type: i32, u32 or u16.
    kSameBits,
    /// Any of i32, u32 and u16.
    kBits,
    /// Any of i32 and u32.
    kWideBits,
    /// Both i32.
    kInt32,
};

/// An elementwise operation of two operands over runs of values; an input may be `output`.
struct BinaryFunction {
    BinaryOpType type;
    OperandTypes types;
    const char* name;
    void (*floats)(const float* a, const float* b, float* output, std::size_t count);
    /// Null where integers are computed with floats.
    void (*integers)(const std::int64_t* a, const std::int64_t* b, std::int64_t* output,
                     std::size_t count);
};

const BinaryFunction& binary_function(BinaryOpType type);

/// Options of a binary operation.
struct BinaryOptions {
    std::optional<DataType> dtype = std::nullopt;
    std::optional<MemoryConfig> memory_config = std::nullopt;
    std::optional<Tensor> output = std::nullopt;
    std::span<const EltwiseUnaryWithParam> post_activations = {};
    std::span<const EltwiseUnaryWithParam> lhs_activations = {};
    std::span<const EltwiseUnaryWithParam> rhs_activations = {};
};

using Operand = std::variant<Tensor, double>;

/// Evaluates `type`; at least one operand is a tensor, whose data type (the first one's, if both
/// are) is the default of the result. Reported as a call of the calling operation.
Tensor binary_operation(const Operand& lhs, const Operand& rhs, BinaryOpType type,
                        const BinaryOptions& options, const char* name = __builtin_FUNCTION());

}  // namespace ttcodegen::cpu
