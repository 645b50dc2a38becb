#pragma once

#include <optional>
#include <vector>

#include "ttcodegen/release.hpp"
#include "ttnn/core.hpp"
#include "ttnn/operations/eltwise/unary/common/unary_op_types.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

#if TTCODEGEN_TT_METAL >= 8101
/// The gradient of gelu, for each operand that has one.
std::vector<std::optional<Tensor>> gelu_bw(
    const Tensor& grad_tensor, const Tensor& input_tensor,
    operations::unary::GeluVariant variant = operations::unary::GeluVariant::ACCURATE,
    const std::optional<MemoryConfig>& memory_config = std::nullopt,
    std::optional<Tensor> input_grad = std::nullopt);
#endif

}  // namespace ttnn
