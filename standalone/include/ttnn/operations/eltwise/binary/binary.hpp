#pragma once

#include <cstdint>
#include <optional>

#include "tt_stl/span.hpp"
#include "ttcodegen/release.hpp"
#include "ttnn/operations/eltwise/binary/common/binary_op_types.hpp"
#include "ttnn/operations/eltwise/unary/common/unary_op_types.hpp"
#include "ttnn/types.hpp"

// Elementwise operations of two tensors, or a tensor and a number, on the device. Shapes broadcast
// as in numpy. The result has `output_dtype`, by default the first operand's data type, also for
// comparisons (1 and 0); it is row-major only where both operands are. `lhs_activations` and
// `rhs_activations` are applied to the operands, `post_activations` to the result before rounding.

namespace ttnn {

#define TTCODEGEN_ACTIVATIONS                                                            \
    ttsl::Span<const operations::unary::EltwiseUnaryWithParam>                           \
        post_activations = {},                                                           \
        ttsl::Span<const operations::unary::EltwiseUnaryWithParam> lhs_activations = {}, \
        ttsl::Span<const operations::unary::EltwiseUnaryWithParam> rhs_activations = {}
#define TTCODEGEN_RESULT                                                                      \
    const std::optional<const DataType>&output_dtype = std::nullopt,                          \
                              const std::optional<MemoryConfig>&memory_config = std::nullopt, \
                              const std::optional<Tensor>&output = std::nullopt
#define TTCODEGEN_CORES                                                                    \
    const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt TTCODEGEN_ADDED_8101( \
        , const std::optional<tt::tt_metal::SubDeviceId>& sub_device_id = std::nullopt)
#define TTCODEGEN_NUMBER \
    TTCODEGEN_ADDED_8101(operations::unary::ScalarVariant) TTCODEGEN_REMOVED_8101(float)

/// In 0.81.1 `use_legacy` is `fast_and_approximate_mode`, of the same type.
#define TTCODEGEN_BINARY(name)                                                                    \
    Tensor name(const Tensor& lhs, const Tensor& rhs, TTCODEGEN_RESULT, TTCODEGEN_ACTIVATIONS,    \
                const std::optional<bool>& use_legacy = std::nullopt, TTCODEGEN_CORES);           \
    Tensor name(const Tensor& lhs, TTCODEGEN_NUMBER rhs, TTCODEGEN_RESULT, TTCODEGEN_ACTIVATIONS, \
                const std::optional<bool>& use_legacy = std::nullopt, TTCODEGEN_CORES);
TTCODEGEN_BINARY(add)
TTCODEGEN_BINARY(subtract)
#undef TTCODEGEN_BINARY

#define TTCODEGEN_BINARY(name)                                                                    \
    Tensor name(const Tensor& lhs, const Tensor& rhs, TTCODEGEN_RESULT, TTCODEGEN_ACTIVATIONS,    \
                TTCODEGEN_REMOVED_8101(const std::optional<bool>& use_legacy = std::nullopt, )    \
                    TTCODEGEN_CORES);                                                             \
    Tensor name(const Tensor& lhs, TTCODEGEN_NUMBER rhs, TTCODEGEN_RESULT, TTCODEGEN_ACTIVATIONS, \
                TTCODEGEN_REMOVED_8101(const std::optional<bool>& use_legacy = std::nullopt, )    \
                    TTCODEGEN_CORES);
TTCODEGEN_BINARY(eq)
TTCODEGEN_BINARY(ne)
TTCODEGEN_BINARY(ge)
TTCODEGEN_BINARY(gt)
TTCODEGEN_BINARY(le)
TTCODEGEN_BINARY(lt)
TTCODEGEN_BINARY(logical_and)
TTCODEGEN_BINARY(logical_or)
TTCODEGEN_BINARY(logical_xor)
TTCODEGEN_BINARY(ldexp)
TTCODEGEN_BINARY(logaddexp)
TTCODEGEN_BINARY(logaddexp2)
TTCODEGEN_BINARY(squared_difference)
TTCODEGEN_BINARY(logical_right_shift)
TTCODEGEN_BINARY(xlogy)
#undef TTCODEGEN_BINARY

/// Comparisons of a scalar with a tensor.
#define TTCODEGEN_BINARY(name) Tensor name(float lhs, const Tensor& rhs, TTCODEGEN_RESULT);
TTCODEGEN_BINARY(eq)
TTCODEGEN_BINARY(ne)
TTCODEGEN_BINARY(ge)
TTCODEGEN_BINARY(gt)
TTCODEGEN_BINARY(le)
TTCODEGEN_BINARY(lt)
#undef TTCODEGEN_BINARY

#define TTCODEGEN_BINARY(name)                                                                    \
    Tensor name(const Tensor& lhs, const Tensor& rhs, TTCODEGEN_RESULT, TTCODEGEN_ACTIVATIONS,    \
                TTCODEGEN_REMOVED_8101(const std::optional<bool>& use_legacy = std::nullopt, )    \
                    const std::optional<bool>& fast_and_approximate_mode = std::nullopt,          \
                TTCODEGEN_CORES);                                                                 \
    Tensor name(const Tensor& lhs, TTCODEGEN_NUMBER rhs, TTCODEGEN_RESULT, TTCODEGEN_ACTIVATIONS, \
                TTCODEGEN_REMOVED_8101(const std::optional<bool>& use_legacy = std::nullopt, )    \
                    const std::optional<bool>& fast_and_approximate_mode = std::nullopt,          \
                TTCODEGEN_CORES);
TTCODEGEN_BINARY(divide)
TTCODEGEN_BINARY(multiply)
#undef TTCODEGEN_BINARY

Tensor multiply(const Tensor& lhs, const Tensor& rhs, bool fast_and_approximate_mode);
Tensor multiply(const Tensor& lhs, TTCODEGEN_NUMBER rhs, bool fast_and_approximate_mode);

/// The result is written to `lhs`.
#define TTCODEGEN_BINARY(name)                                                   \
    Tensor name(const Tensor& lhs, const Tensor& rhs, TTCODEGEN_ACTIVATIONS,     \
                std::optional<bool> use_legacy = std::nullopt, TTCODEGEN_CORES); \
    Tensor name(const Tensor& lhs, TTCODEGEN_NUMBER rhs, TTCODEGEN_ACTIVATIONS,  \
                std::optional<bool> use_legacy = std::nullopt, TTCODEGEN_CORES);
TTCODEGEN_BINARY(add_)
TTCODEGEN_BINARY(subtract_)
TTCODEGEN_BINARY(rsub_)
#undef TTCODEGEN_BINARY

#define TTCODEGEN_BINARY(name)                                                          \
    Tensor name(const Tensor& lhs, const Tensor& rhs, TTCODEGEN_ACTIVATIONS,            \
                TTCODEGEN_REMOVED_8101(std::optional<bool> use_legacy = std::nullopt, ) \
                    TTCODEGEN_CORES);                                                   \
    Tensor name(const Tensor& lhs, TTCODEGEN_NUMBER rhs, TTCODEGEN_ACTIVATIONS,         \
                TTCODEGEN_REMOVED_8101(std::optional<bool> use_legacy = std::nullopt, ) \
                    TTCODEGEN_CORES);
TTCODEGEN_BINARY(ldexp_)
TTCODEGEN_BINARY(logaddexp_)
TTCODEGEN_BINARY(logaddexp2_)
TTCODEGEN_BINARY(squared_difference_)
TTCODEGEN_BINARY(gt_)
TTCODEGEN_BINARY(ge_)
TTCODEGEN_BINARY(le_)
TTCODEGEN_BINARY(lt_)
TTCODEGEN_BINARY(eq_)
TTCODEGEN_BINARY(ne_)
TTCODEGEN_BINARY(logical_and_)
TTCODEGEN_BINARY(logical_or_)
TTCODEGEN_BINARY(logical_xor_)
TTCODEGEN_BINARY(bias_gelu_)
#undef TTCODEGEN_BINARY

#define TTCODEGEN_BINARY(name)                                                          \
    Tensor name(const Tensor& lhs, const Tensor& rhs, TTCODEGEN_ACTIVATIONS,            \
                TTCODEGEN_REMOVED_8101(std::optional<bool> use_legacy = std::nullopt, ) \
                    std::optional<bool>                                                 \
                        fast_and_approximate_mode = std::nullopt,                       \
                TTCODEGEN_CORES);                                                       \
    Tensor name(const Tensor& lhs, TTCODEGEN_NUMBER rhs, TTCODEGEN_ACTIVATIONS,         \
                TTCODEGEN_REMOVED_8101(std::optional<bool> use_legacy = std::nullopt, ) \
                    std::optional<bool>                                                 \
                        fast_and_approximate_mode = std::nullopt,                       \
                TTCODEGEN_CORES);
TTCODEGEN_BINARY(divide_)
TTCODEGEN_BINARY(multiply_)
#undef TTCODEGEN_BINARY

/// lhs + alpha * rhs, and lhs - alpha * rhs.
Tensor addalpha(const Tensor& lhs, const Tensor& rhs, float alpha,
                const std::optional<MemoryConfig>& memory_config = std::nullopt,
                const std::optional<Tensor>& output = std::nullopt);
Tensor subalpha(const Tensor& lhs, const Tensor& rhs, float alpha,
                const std::optional<MemoryConfig>& memory_config = std::nullopt,
                const std::optional<Tensor>& output = std::nullopt);

/// Bitwise operations: both operands of the same integer data type.
#define TTCODEGEN_BINARY(name)                                                             \
    Tensor name(const Tensor& lhs, const Tensor& rhs,                                      \
                const std::optional<MemoryConfig>& memory_config = std::nullopt,           \
                const std::optional<Tensor>& output = std::nullopt, TTCODEGEN_ACTIVATIONS, \
                TTCODEGEN_REMOVED_8101(std::optional<bool> use_legacy = std::nullopt, )    \
                    TTCODEGEN_CORES);                                                      \
    Tensor name(const Tensor& lhs, std::int32_t rhs,                                       \
                const std::optional<MemoryConfig>& memory_config = std::nullopt,           \
                const std::optional<Tensor>& output = std::nullopt, TTCODEGEN_ACTIVATIONS, \
                TTCODEGEN_REMOVED_8101(std::optional<bool> use_legacy = std::nullopt, )    \
                    TTCODEGEN_CORES);
TTCODEGEN_BINARY(bitwise_and)
TTCODEGEN_BINARY(bitwise_or)
TTCODEGEN_BINARY(bitwise_xor)
TTCODEGEN_BINARY(bitwise_left_shift)
TTCODEGEN_BINARY(bitwise_right_shift)
TTCODEGEN_BINARY(logical_left_shift)
#undef TTCODEGEN_BINARY

Tensor hypot(const Tensor& input_tensor_a, const Tensor& input_tensor_b,
             const std::optional<MemoryConfig>& memory_config = std::nullopt,
             const std::optional<Tensor>& optional_output_tensor = std::nullopt);

#undef TTCODEGEN_ACTIVATIONS
#undef TTCODEGEN_RESULT
#undef TTCODEGEN_CORES
#undef TTCODEGEN_NUMBER

}  // namespace ttnn
