#pragma once

#include <cstddef>

#include "tt-metalium/experimental/tensor/tensor_types.hpp"
#include "ttnn/tensor/shape/shape.hpp"

namespace tt::tt_metal {

/// Host memory or a device's.
enum class StorageType {
    HOST = 0,
    DEVICE = 1,
};

static constexpr std::size_t MAX_NUM_DIMENSIONS = 8;

}  // namespace tt::tt_metal
