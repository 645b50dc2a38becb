#pragma once

#include <cstdint>

namespace ttnn::operations::sliding_window {

/// Padding of the input: zeros, or the nearest pixel of its edge.
enum class PaddingMode : uint8_t {
    Zeros,
    Replicate,
};

}  // namespace ttnn::operations::sliding_window
