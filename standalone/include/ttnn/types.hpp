#pragma once

#include <cstddef>

#include "tt-metalium/buffer_types.hpp"
#include "tt-metalium/global_circular_buffer.hpp"
#include "tt-metalium/sub_device_types.hpp"
#include "ttnn/distributed/types.hpp"
#include "ttnn/tensor/tensor.hpp"
#include "ttnn/tensor/types.hpp"

namespace ttnn {
namespace types {

using IDevice = tt::tt_metal::IDevice;

constexpr auto TILE_SIZE = 32;

using tt::tt_metal::BufferType;
using tt::tt_metal::DataType;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::ShardOrientation;
using tt::tt_metal::TensorMemoryLayout;

// Not `inline`, as in the release: each translation unit has its own objects.
static const auto DRAM_MEMORY_CONFIG =
    MemoryConfig{TensorMemoryLayout::INTERLEAVED, BufferType::DRAM};
static const auto L1_MEMORY_CONFIG = MemoryConfig{TensorMemoryLayout::INTERLEAVED, BufferType::L1};
static const auto L1_BLOCK_SHARDED_MEMORY_CONFIG =
    MemoryConfig{TensorMemoryLayout::BLOCK_SHARDED, BufferType::L1};
static const auto L1_HEIGHT_SHARDED_MEMORY_CONFIG =
    MemoryConfig{TensorMemoryLayout::HEIGHT_SHARDED, BufferType::L1};
static const auto L1_WIDTH_SHARDED_MEMORY_CONFIG =
    MemoryConfig{TensorMemoryLayout::WIDTH_SHARDED, BufferType::L1};

using tt::tt_metal::Layout;
static constexpr auto ROW_MAJOR_LAYOUT = Layout::ROW_MAJOR;
static constexpr auto TILE_LAYOUT = Layout::TILE;

using tt::tt_metal::StorageType;
static constexpr auto DEVICE_STORAGE_TYPE = StorageType::DEVICE;
static constexpr auto HOST_STORAGE_TYPE = StorageType::HOST;

using tt::tt_metal::CoreCoord;
using tt::tt_metal::CoreRange;
using tt::tt_metal::CoreRangeSet;

struct CoreGrid {
    std::size_t x;
    std::size_t y;

    CoreGrid(std::size_t x_size, std::size_t y_size) : x(x_size), y(y_size) {}
    CoreCoord to_CoreCoord() const { return CoreCoord(x, y); }
};

using tt::tt_metal::experimental::GlobalCircularBuffer;

}  // namespace types

using namespace types;

}  // namespace ttnn
