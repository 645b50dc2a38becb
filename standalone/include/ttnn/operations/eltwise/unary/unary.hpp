#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ttcodegen/release.hpp"
#include "ttnn/operations/eltwise/unary/common/unary_op_types.hpp"
#include "ttnn/types.hpp"

// Elementwise operations of one tensor on the device. All take every data type and both layouts and
// return the input's data type, layout and shape in `memory_config`, by default the input's. An
// `optional_output_tensor` receives the result and is returned.

namespace ttnn::operations::unary {

enum class SigmoidMode {
    FAST_APPROXIMATE,
    ACCURATE_FAST_EXP,
    ACCURATE,
};

}  // namespace ttnn::operations::unary

namespace ttnn {

#define TTCODEGEN_UNARY_TAIL                                                      \
    const std::optional<tt::tt_metal::MemoryConfig>&memory_config = std::nullopt, \
          const std::optional<Tensor>&optional_output_tensor = std::nullopt,      \
          const std::optional<CoreRangeSet>&sub_core_grids = std::nullopt

#define TTCODEGEN_UNARY(name) Tensor name(const Tensor& input_tensor, TTCODEGEN_UNARY_TAIL);
TTCODEGEN_UNARY(abs)
TTCODEGEN_UNARY(neg)
TTCODEGEN_UNARY(acos)
TTCODEGEN_UNARY(asin)
TTCODEGEN_UNARY(asinh)
TTCODEGEN_UNARY(atan)
TTCODEGEN_UNARY(atanh)
TTCODEGEN_UNARY(cos)
TTCODEGEN_UNARY(acosh)
TTCODEGEN_UNARY(cosh)
TTCODEGEN_UNARY(sinh)
TTCODEGEN_UNARY(erfinv)
TTCODEGEN_UNARY(exp2)
TTCODEGEN_UNARY(expm1)
TTCODEGEN_UNARY(gez)
TTCODEGEN_UNARY(gtz)
TTCODEGEN_UNARY(i0)
TTCODEGEN_UNARY(i1)
TTCODEGEN_UNARY(isfinite)
TTCODEGEN_UNARY(isinf)
TTCODEGEN_UNARY(isnan)
TTCODEGEN_UNARY(isneginf)
TTCODEGEN_UNARY(isposinf)
TTCODEGEN_UNARY(lez)
TTCODEGEN_UNARY(logical_not)
TTCODEGEN_UNARY(ltz)
TTCODEGEN_UNARY(nez)
TTCODEGEN_UNARY(reciprocal)
TTCODEGEN_UNARY(relu)
TTCODEGEN_UNARY(relu6)
TTCODEGEN_UNARY(sign)
TTCODEGEN_UNARY(signbit)
TTCODEGEN_UNARY(silu)
TTCODEGEN_UNARY(sin)
TTCODEGEN_UNARY(square)
TTCODEGEN_UNARY(tan)
TTCODEGEN_UNARY(bitwise_not)
TTCODEGEN_UNARY(floor)
TTCODEGEN_UNARY(ceil)
TTCODEGEN_UNARY(trunc)
TTCODEGEN_UNARY(frac)
TTCODEGEN_UNARY(hardsigmoid)
TTCODEGEN_UNARY(hardswish)
TTCODEGEN_UNARY(softsign)
TTCODEGEN_UNARY(cbrt)
TTCODEGEN_UNARY(lgamma)
TTCODEGEN_UNARY(digamma)
TTCODEGEN_UNARY(eqz)
TTCODEGEN_UNARY(hardmish)
TTCODEGEN_UNARY(identity)
TTCODEGEN_UNARY(log_sigmoid)
TTCODEGEN_UNARY(swish)
TTCODEGEN_UNARY(tanhshrink)
TTCODEGEN_UNARY(erfc)
TTCODEGEN_UNARY(deg2rad)
TTCODEGEN_UNARY(rad2deg)
#undef TTCODEGEN_UNARY

// The CPU backend makes no approximations, so the flag has no effect.
#define TTCODEGEN_UNARY(name)                                                       \
    Tensor name(const Tensor& input_tensor, bool fast_and_approximate_mode = false, \
                TTCODEGEN_UNARY_TAIL);
TTCODEGEN_UNARY(exp)
TTCODEGEN_UNARY(erf)
TTCODEGEN_UNARY(gelu)
TTCODEGEN_UNARY(log)
TTCODEGEN_UNARY(log10)
TTCODEGEN_UNARY(log2)
TTCODEGEN_UNARY(log1p)
TTCODEGEN_UNARY(rsqrt)
TTCODEGEN_UNARY(sqrt)
TTCODEGEN_UNARY(mish)
TTCODEGEN_UNARY(sigmoid_accurate)
#undef TTCODEGEN_UNARY

#define TTCODEGEN_UNARY(name) \
    Tensor name(const Tensor& input_tensor, float parameter, TTCODEGEN_UNARY_TAIL);
TTCODEGEN_UNARY(heaviside)
TTCODEGEN_UNARY(leaky_relu)
TTCODEGEN_UNARY(celu)
TTCODEGEN_UNARY(rpow)
TTCODEGEN_UNARY(unary_fmod)
TTCODEGEN_UNARY(prelu_sfpu)
#undef TTCODEGEN_UNARY

#define TTCODEGEN_UNARY(name)                                          \
    Tensor name(const Tensor& input_tensor,                            \
                TTCODEGEN_ADDED_8101(operations::unary::ScalarVariant) \
                    TTCODEGEN_REMOVED_8101(float) parameter,           \
                TTCODEGEN_UNARY_TAIL);
TTCODEGEN_UNARY(relu_max)
TTCODEGEN_UNARY(relu_min)
TTCODEGEN_UNARY(unary_remainder)
#undef TTCODEGEN_UNARY

Tensor hardshrink(const Tensor& input_tensor, float parameter = 0.5F, TTCODEGEN_UNARY_TAIL);
Tensor elu(const Tensor& input_tensor, float parameter = 1.0F, TTCODEGEN_UNARY_TAIL);
Tensor softshrink(const Tensor& input_tensor, float parameter = 0.5F, TTCODEGEN_UNARY_TAIL);

/// `parameter_b` where the input is not greater than `parameter_a`.
Tensor threshold(const Tensor& input_tensor, float parameter_a, float parameter_b,
                 TTCODEGEN_UNARY_TAIL);
/// `parameter_a` is beta, `parameter_b` the threshold above which the function is the identity.
Tensor softplus(const Tensor& input_tensor, float parameter_a, float parameter_b,
                TTCODEGEN_UNARY_TAIL);
Tensor hardtanh(const Tensor& input_tensor, float parameter_a = -1.0F, float parameter_b = 1.0F,
                TTCODEGEN_UNARY_TAIL);
Tensor selu(const Tensor& input_tensor, float parameter_a = 1.050700987F,
            float parameter_b = 1.673263242F, TTCODEGEN_UNARY_TAIL);

#define TTCODEGEN_UNARY(name)                                                           \
    Tensor name(const Tensor& input_tensor, operations::unary::ScalarVariant parameter, \
                TTCODEGEN_UNARY_TAIL);
TTCODEGEN_UNARY(fill)
TTCODEGEN_UNARY(power)
TTCODEGEN_UNARY(gt_unary)
TTCODEGEN_UNARY(lt_unary)
TTCODEGEN_UNARY(ne_unary)
TTCODEGEN_UNARY(eq_unary)
TTCODEGEN_UNARY(ge_unary)
TTCODEGEN_UNARY(le_unary)
#undef TTCODEGEN_UNARY

/// Rounds to `parameter` decimal places, by default to integers.
Tensor round(const Tensor& input_tensor,
             const std::optional<std::int32_t>& parameter = std::nullopt, TTCODEGEN_UNARY_TAIL);
Tensor logit(const Tensor& input_tensor, std::optional<float> eps = std::nullopt,
             TTCODEGEN_UNARY_TAIL);
Tensor clamp_tss(const Tensor& input_tensor, float min_val, float max_val, TTCODEGEN_UNARY_TAIL);
Tensor clamp_tss(const Tensor& input_tensor, std::int32_t min_val, std::int32_t max_val,
                 TTCODEGEN_UNARY_TAIL);
Tensor tanh(const Tensor& input,
            const std::optional<tt::tt_metal::MemoryConfig>& memory_config = std::nullopt,
            const std::optional<Tensor>& optional_output_tensor = std::nullopt, bool approx = false,
            const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt);
/// Reinterprets the bits as another type of the same size.
Tensor bitcast(const Tensor& input_tensor, const tt::tt_metal::DataType& output_dtype,
               TTCODEGEN_UNARY_TAIL);
/// `value` / input; `rounding_mode` is "floor", "trunc" or none.
Tensor rdiv(const Tensor& input_tensor, float value,
            const std::optional<std::string>& rounding_mode = std::nullopt, TTCODEGEN_UNARY_TAIL);
Tensor power_iterative(const Tensor& input_tensor, std::uint32_t exponent, TTCODEGEN_UNARY_TAIL);
Tensor sigmoid(const Tensor& input,
               int vector_mode = static_cast<std::int32_t>(operations::unary::VecMode::RC),
               operations::unary::SigmoidMode mode = operations::unary::SigmoidMode::ACCURATE,
               TTCODEGEN_UNARY_TAIL);
/// Applies the operations in order, without rounding between them.
Tensor unary_chain(const Tensor& input_tensor,
                   const std::vector<operations::unary::EltwiseUnaryWithParam>& ops_chain,
                   TTCODEGEN_UNARY_TAIL);

#undef TTCODEGEN_UNARY_TAIL

}  // namespace ttnn
