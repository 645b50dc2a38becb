#pragma once

#include <cstdint>
#include <optional>

#include "ttcodegen/release.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Repeats a tensor repetition_vector[i] times along dimension i.
ttnn::Tensor repeat(
    const ttnn::Tensor& input_tensor, const ttnn::SmallVector<std::uint32_t>& repetition_vector,
    const std::optional<MemoryConfig>& memory_config = std::nullopt TTCODEGEN_ADDED_8101(
        , const std::optional<Tensor>& optional_output_tensor = std::nullopt));
ttnn::Tensor repeat(const ttnn::Tensor& input_tensor,
                    const ttnn::Shape& repeat_dims TTCODEGEN_ADDED_8101(
                        , const std::optional<Tensor>& optional_output_tensor = std::nullopt));

}  // namespace ttnn
