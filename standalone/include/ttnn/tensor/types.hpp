#pragma once

#include <cstddef>

#include "tt-metalium/experimental/tensor/tensor_types.hpp"
#include "ttnn/tensor/shape/shape.hpp"

namespace tt::tt_metal {

/// Storage on the host or on a device.
enum class StorageType {
    HOST = 0,
    DEVICE = 1,
};

static constexpr std::size_t MAX_NUM_DIMENSIONS = 8;

}  // namespace tt::tt_metal
