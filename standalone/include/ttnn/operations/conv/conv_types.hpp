#pragma once

namespace ttnn {

/// Index of each alternative of a convolution's result variant.
enum class ConvResultType {
    OUTPUT = 0,
    OUTPUT_DIM,
    OUTPUT_WEIGHTS_AND_BIAS,
    OUTPUT_DIM_WEIGHTS_AND_BIAS
};

}  // namespace ttnn
