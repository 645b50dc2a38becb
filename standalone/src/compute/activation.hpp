#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>

#include "ttnn/operations/eltwise/unary/common/unary_op_types.hpp"

namespace ttcodegen::cpu {

using ttnn::operations::unary::UnaryOpType;
using ttnn::operations::unary::UnaryWithParam;

/// The activation of a name; refuses unknown ones with "Unknown unary op: <name>".
UnaryWithParam activation_of_name(const std::string& name);

/// Applies an activation to floats in place; refuses an operation that cannot be fused.
void apply_activation(const UnaryWithParam& activation, float* values, std::size_t count);

}  // namespace ttcodegen::cpu
