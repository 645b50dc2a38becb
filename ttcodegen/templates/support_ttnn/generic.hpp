#pragma once

#include <cstdint>
#include <initializer_list>
#include <tt-metalium/core_coord.hpp>
#include <tt-metalium/program_descriptors.hpp>
#include <tt-metalium/tt_backend_api_types.hpp>
#include <ttnn/tensor/tensor.hpp>
#include <vector>

namespace support {

/// A circular buffer on each of the cores.
tt::tt_metal::CBDescriptor circular_buffer(const tt::tt_metal::CoreRange& cores, std::uint8_t index,
                                           tt::DataFormat data_format, std::uint32_t pages,
                                           std::uint32_t page_size);

/// A semaphore on each of the cores.
tt::tt_metal::SemaphoreDescriptor semaphore(const tt::tt_metal::CoreRange& cores, std::uint32_t id,
                                            std::uint32_t initial_value);

/// The compile-time arguments of a kernel's TensorAccessorArgs, one tensor after the
/// other.
std::vector<std::uint32_t> accessor_args(std::initializer_list<const ttnn::Tensor*> tensors);

}  // namespace support
