#include "support/generic.hpp"

#include <tt-metalium/tensor_accessor_args.hpp>

namespace support {

using tt::tt_metal::CBDescriptor;
using tt::tt_metal::CBFormatDescriptor;
using tt::tt_metal::CoreRange;
using tt::tt_metal::SemaphoreDescriptor;

CBDescriptor circular_buffer(const CoreRange& cores, std::uint8_t index, tt::DataFormat data_format,
                             std::uint32_t pages, std::uint32_t page_size) {
    CBFormatDescriptor format;
    format.buffer_index = index;
    format.data_format = data_format;
    format.page_size = page_size;
    CBDescriptor buffer;
    buffer.total_size = pages * page_size;
    buffer.core_ranges = cores;
    buffer.format_descriptors.push_back(format);
    return buffer;
}

SemaphoreDescriptor semaphore(const CoreRange& cores, std::uint32_t id,
                              std::uint32_t initial_value) {
    SemaphoreDescriptor made;
    made.id = id;
    made.core_ranges = cores;
    made.initial_value = initial_value;
    return made;
}

std::vector<std::uint32_t> accessor_args(std::initializer_list<const ttnn::Tensor*> tensors) {
    std::vector<std::uint32_t> args;
    for (const ttnn::Tensor* tensor : tensors) {
        tt::tt_metal::TensorAccessorArgs(*tensor->buffer()).append_to(args);
    }
    return args;
}

}  // namespace support
