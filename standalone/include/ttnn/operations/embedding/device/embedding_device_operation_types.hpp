#pragma once

namespace ttnn::prim {

enum class EmbeddingsType { GENERIC, PADDED, BINARY };

}  // namespace ttnn::prim
