#include "support/device_writes.hpp"

#include <ttnn/tensor/tensor_ops.hpp>

namespace support {

void write(const ArrayView& array, const TensorDescription& description, ttnn::Tensor& tensor) {
    TensorDescription on_host = description;
    on_host.memory = Memory::host;
    tt::tt_metal::copy_to_device(to_tensor(array, on_host, *tensor.device()), tensor);
}

}  // namespace support
