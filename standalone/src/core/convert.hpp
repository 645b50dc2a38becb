#pragma once

#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// A copy of `input` in another data type, layout or memory: floats round to nearest even, floats
/// to integers truncate and saturate, integers wrap, except to 16 bits, where they saturate.
Tensor convert(const Tensor& input, DataType dtype, Layout layout,
               const MemoryConfig& memory_config, MeshDevice* device);
/// The tensor itself if it has the data type, else a converted copy in the same memory.
Tensor with_type(const Tensor& input, DataType dtype);
/// The same as the device's `typecast` makes it of a tensor on it; of others as the host does.
Tensor typecast(const Tensor& input, DataType dtype, Layout layout,
                const MemoryConfig& memory_config, MeshDevice* device);
void typecast_into(const Tensor& input, const Tensor& output);
/// Stores the elements of `input` in `output`, which has the same number of them.
void convert_into(const Tensor& input, const Tensor& output);

}  // namespace ttcodegen::cpu
