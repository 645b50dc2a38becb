#pragma once

#include <optional>

#include "device/embedding_device_operation.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Looks up rows of `weight_arg` (V, D) by u32 or bf16 indices (B, S): (B, S, D), in the weight's
/// layout unless `layout` is given.
ttnn::Tensor embedding(
    const Tensor& input_tensor, const Tensor& weight_arg,
    const std::optional<int>& pad_token = std::nullopt,
    const std::optional<Layout>& layout = std::nullopt,
    ttnn::prim::EmbeddingsType embeddings_type = ttnn::prim::EmbeddingsType::GENERIC,
    std::optional<const DataType> dtype = std::nullopt,
    const std::optional<MemoryConfig>& memory_config = std::nullopt,
    const std::optional<Tensor>& optional_output_tensor = std::nullopt);

}  // namespace ttnn
