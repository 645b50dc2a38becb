#pragma once

#include <optional>

#include "ttcodegen/release.hpp"
#include "ttnn/operations/eltwise/ternary/common/ternary_op_types.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// `value_true` where `predicate` is not zero, `value_false` elsewhere. The result has the data
/// type of the first of them that is a tensor; with two scalars, the predicate's (f32 for i32 and
/// u32). Since 0.81.1 a scalar goes with tensors of one data type that has it, or with a predicate
/// of integers and values that are floats.
Tensor where(const Tensor& predicate, const operations::ternary::TensorScalarVariant& value_true,
             const operations::ternary::TensorScalarVariant& value_false,
             const std::optional<MemoryConfig>& memory_config = std::nullopt,
             const std::optional<Tensor>& output = std::nullopt,
             const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt TTCODEGEN_RULES_8101);

/// input_a + value * input_b * input_c.
Tensor addcmul(const Tensor& input_a, const Tensor& input_b, const Tensor& input_c,
               operations::ternary::ScalarVariant value = 1.0F,
               const std::optional<MemoryConfig>& memory_config = std::nullopt,
               const std::optional<Tensor>& output = std::nullopt);

/// input_a + value * input_b / input_c.
Tensor addcdiv(const Tensor& input_a, const Tensor& input_b, const Tensor& input_c,
               float value = 1.0F, const std::optional<MemoryConfig>& memory_config = std::nullopt,
               const std::optional<Tensor>& output = std::nullopt);

/// input + weight * (end - input).
Tensor lerp(const Tensor& input, const Tensor& end, float weight,
            const std::optional<MemoryConfig>& memory_config = std::nullopt,
            const std::optional<Tensor>& output = std::nullopt);
Tensor lerp(const Tensor& input, const Tensor& end, const Tensor& weight,
            const std::optional<MemoryConfig>& memory_config = std::nullopt,
            const std::optional<Tensor>& output = std::nullopt);

}  // namespace ttnn
