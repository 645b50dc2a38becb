#pragma once

#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// A new tensor with the elements of `input` in another data type, layout or place: floats round to
/// nearest even, floats to integers truncate and saturate, integers wrap but to 16 bits saturate.
Tensor convert(const Tensor& input, DataType dtype, Layout layout,
               const MemoryConfig& memory_config, MeshDevice* device);
/// The tensor itself where it has the data type, else a converted one in the same memory.
Tensor with_type(const Tensor& input, DataType dtype);
/// Stores the elements of `input` in `output`, which has the same number of them.
void convert_into(const Tensor& input, const Tensor& output);

}  // namespace ttcodegen::cpu
