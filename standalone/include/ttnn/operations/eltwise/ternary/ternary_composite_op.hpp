#pragma once

#include <optional>

#include "ttnn/operations/core/core.hpp"
#include "ttnn/operations/eltwise/binary/binary.hpp"
#include "ttnn/operations/eltwise/ternary/ternary.hpp"
#include "ttnn/operations/eltwise/unary/unary.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// a * b + c.
Tensor mac(const Tensor& a, const Tensor& b, const Tensor& c,
           const std::optional<MemoryConfig>& memory_config);
Tensor mac(const Tensor& a, float b, float c, const std::optional<MemoryConfig>& memory_config);

}  // namespace ttnn
