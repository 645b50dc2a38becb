#include "compute/sharding.hpp"

#include <algorithm>

#include "core/device.hpp"
#include "tt-metalium/mesh_device.hpp"

namespace ttcodegen::cpu {
namespace {

using tt::tt_metal::CoreCoord;
using tt::tt_metal::CoreRange;
using tt::tt_metal::CoreRangeSet;
using tt::tt_metal::ShardSpec;

constexpr std::uint32_t kGridWidth = 8;
constexpr std::uint32_t kGridHeight = 8;

std::uint32_t parts(std::uint32_t size, std::uint32_t part) {
    return std::max(1U, (size + part - 1) / part);
}

/// The size of each of at most `most` equal parts, a multiple of `unit`.
std::uint32_t part_size(std::uint32_t size, std::uint32_t most, std::uint32_t unit) {
    return parts(parts(size, unit), std::min(most, parts(size, unit))) * unit;
}

/// The first `count` cores, row after row.
CoreRangeSet first_cores(std::uint32_t count) {
    std::vector<CoreRange> ranges;
    const std::uint32_t full_rows = count / kGridWidth;
    if (full_rows > 0) {
        ranges.emplace_back(CoreCoord(0, 0), CoreCoord(kGridWidth - 1, full_rows - 1));
    }
    if (count % kGridWidth > 0) {
        ranges.emplace_back(CoreCoord(0, full_rows), CoreCoord(count % kGridWidth - 1, full_rows));
    }
    return CoreRangeSet(ranges);
}

}  // namespace

MemoryConfig sharded_l1(TensorMemoryLayout scheme, std::uint32_t rows, std::uint32_t columns,
                        std::uint32_t unit) {
    constexpr std::uint32_t column_unit = 32;
    constexpr std::uint32_t cores = kGridWidth * kGridHeight;
    const auto config = [&](const CoreRangeSet& grid, std::uint32_t height, std::uint32_t width) {
        return MemoryConfig(scheme, BufferType::L1,
                            ShardSpec(grid, std::array<std::uint32_t, 2>{height, width}));
    };
    if (scheme == TensorMemoryLayout::HEIGHT_SHARDED) {
        const std::uint32_t height = part_size(rows, cores, unit);
        return config(first_cores(parts(rows, height)), height, columns);
    }
    if (scheme == TensorMemoryLayout::WIDTH_SHARDED) {
        const std::uint32_t width = part_size(columns, cores, column_unit);
        return config(first_cores(parts(columns, width)), parts(rows, unit) * unit, width);
    }
    if (scheme == TensorMemoryLayout::BLOCK_SHARDED) {
        const std::uint32_t height = part_size(rows, kGridHeight, unit);
        const std::uint32_t width = part_size(columns, kGridWidth, column_unit);
        const CoreCoord last(parts(columns, width) - 1, parts(rows, height) - 1);
        return config(CoreRangeSet(CoreRange(CoreCoord(0, 0), last)), height, width);
    }
    TT_THROW("Only height, width, or block sharding strategies are supported.");
}

void require_l1_small(const MeshDevice* device) {
    TT_FATAL(device == nullptr || device->impl().l1_small_size > 0,
             "Out of Memory: Not enough space to allocate L1_SMALL buffer: open the device with "
             "l1_small_size, or keep the configuration in DRAM (config_tensors_in_dram)");
}

}  // namespace ttcodegen::cpu
