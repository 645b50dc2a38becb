#include "compute/sharding.hpp"

#include <algorithm>
#include <array>

#include "core/device.hpp"
#include "device/architecture.hpp"
#include "tt-metalium/math.hpp"
#include "tt-metalium/mesh_device.hpp"

namespace ttcodegen::cpu {
namespace {

using tt::tt_metal::CoreCoord;
using tt::tt_metal::CoreRange;
using tt::tt_metal::CoreRangeSet;
using tt::tt_metal::ShardOrientation;
using tt::tt_metal::ShardSpec;

struct WorkerGrid {
    std::uint32_t width;
    std::uint32_t height;
};

/// The worker grid of the emulated architecture.
WorkerGrid worker_grid() {
    const CoreCoord grid = device::default_architecture().worker_grid;
    return {static_cast<std::uint32_t>(grid.x), static_cast<std::uint32_t>(grid.y)};
}

std::uint32_t parts(std::uint32_t size, std::uint32_t part) {
    return std::max(1U, tt::div_up(size, part));
}

std::uint32_t rounded(std::uint32_t size, std::uint32_t unit) { return parts(size, unit) * unit; }

/// The maximum number of cores, up to `most`, none of which is idle if each takes a multiple of
/// `at_once` parts.
std::uint32_t filled_cores(std::uint32_t count, std::uint32_t most, std::uint32_t at_once = 1) {
    std::uint32_t cores = most;
    while (cores > 1) {
        const std::uint32_t padded = rounded(count, cores * at_once);
        if (padded - count < padded / cores) {
            break;
        }
        --cores;
    }
    return cores;
}

/// The largest number of cores, up to `most`, that divides both counts.
std::uint32_t dividing_cores(std::uint32_t count, std::uint32_t other, std::uint32_t most) {
    std::uint32_t cores = most;
    while (count % cores != 0 || other % cores != 0) {
        --cores;
    }
    return cores;
}

/// The first `count` cores in row-major order.
CoreRangeSet first_cores(std::uint32_t count) {
    std::vector<CoreRange> ranges;
    const std::uint32_t width = worker_grid().width;
    const std::uint32_t full_rows = count / width;
    if (full_rows > 0) {
        ranges.emplace_back(CoreCoord(0, 0), CoreCoord(width - 1, full_rows - 1));
    }
    if (count % width > 0) {
        ranges.emplace_back(CoreCoord(0, full_rows), CoreCoord(count % width - 1, full_rows));
    }
    return CoreRangeSet(ranges);
}

/// The cores of a block-sharded tensor: those of the channels form a row or a column.
CoreRangeSet block_of_cores(std::uint32_t row_cores, std::uint32_t channel_cores,
                            ShardOrientation orientation) {
    const bool is_turned = orientation == ShardOrientation::COL_MAJOR;
    const CoreCoord last(is_turned ? row_cores - 1 : channel_cores - 1,
                         is_turned ? channel_cores - 1 : row_cores - 1);
    return CoreRangeSet(CoreRange(CoreCoord(0, 0), last));
}

}  // namespace

std::uint32_t ImageDivision::row_cores() const {
    if (scheme == TensorMemoryLayout::WIDTH_SHARDED) {
        return 1;
    }
    if (scheme == TensorMemoryLayout::HEIGHT_SHARDED) {
        return grid.num_cores();
    }
    const CoreCoord size = grid.bounding_box().grid_size();
    return static_cast<std::uint32_t>(orientation == ShardOrientation::COL_MAJOR ? size.x : size.y);
}

std::uint32_t ImageDivision::channel_cores() const {
    if (scheme == TensorMemoryLayout::HEIGHT_SHARDED) {
        return 1;
    }
    if (scheme == TensorMemoryLayout::WIDTH_SHARDED) {
        return grid.num_cores();
    }
    const CoreCoord size = grid.bounding_box().grid_size();
    return static_cast<std::uint32_t>(orientation == ShardOrientation::COL_MAJOR ? size.y : size.x);
}

ImageDivision divide_image(TensorMemoryLayout scheme, const ImageParts& parts,
                           ShardOrientation orientation) {
    const auto [width, height] = worker_grid();
    const std::uint32_t cores = width * height;
    switch (scheme) {
        case TensorMemoryLayout::HEIGHT_SHARDED:
            return {scheme, first_cores(filled_cores(parts.rows, cores, parts.rows_at_once)),
                    ShardOrientation::ROW_MAJOR};
        case TensorMemoryLayout::WIDTH_SHARDED:
            return {scheme,
                    first_cores(parts.pads_channels
                                    ? filled_cores(parts.channels, cores)
                                    : dividing_cores(parts.channels, parts.channels, cores)),
                    ShardOrientation::ROW_MAJOR};
        case TensorMemoryLayout::BLOCK_SHARDED: {
            const bool is_turned = orientation == ShardOrientation::COL_MAJOR;
            const std::uint32_t rows =
                filled_cores(parts.rows, is_turned ? width : height, parts.rows_at_once);
            const std::uint32_t most = is_turned ? height : width;
            const std::uint32_t channels =
                parts.pads_channels ? filled_cores(parts.channels, most)
                                    : dividing_cores(parts.result_channels, parts.channels, most);
            return {scheme, block_of_cores(rows, channels, orientation), orientation};
        }
        default:
            TT_THROW("Height, Block or Width Sharded Layouts are supported, but got {}", scheme);
    }
}

ImageDivision divide_result(const ImageDivision& image, std::uint32_t channel_parts,
                            std::optional<std::uint32_t> channel_cores) {
    const auto [width, height] = worker_grid();
    const bool is_turned = image.orientation == ShardOrientation::COL_MAJOR;
    ImageDivision result = image;
    if (image.scheme == TensorMemoryLayout::WIDTH_SHARDED) {
        result.grid =
            first_cores(filled_cores(channel_parts, channel_cores.value_or(width * height)));
    } else if (image.scheme == TensorMemoryLayout::BLOCK_SHARDED) {
        const std::uint32_t most = channel_cores.value_or(is_turned ? height : width);
        result.grid =
            block_of_cores(image.row_cores(), filled_cores(channel_parts, most), image.orientation);
    }
    return result;
}

ImageDivision division_of(const MemoryConfig& memory_config) {
    const ShardSpec& shards = memory_config.shard_spec().value();
    return {memory_config.memory_layout(), shards.grid, shards.orientation};
}

MemoryConfig divided_l1(const ImageDivision& division, std::uint32_t rows, std::uint32_t channels,
                        std::uint32_t row_unit, std::uint32_t channel_unit) {
    const std::uint32_t row_cores = division.row_cores();
    const std::uint32_t channel_cores = division.channel_cores();
    const std::array<std::uint32_t, 2> shape{
        rounded(rows, row_cores * row_unit) / row_cores,
        rounded(channels, channel_cores * channel_unit) / channel_cores};
    return MemoryConfig(division.scheme, BufferType::L1,
                        ShardSpec(division.grid, shape, division.orientation));
}

MemoryConfig sharded_l1(TensorMemoryLayout scheme, std::uint32_t rows, std::uint32_t columns,
                        std::uint32_t unit) {
    constexpr std::uint32_t column_unit = 32;
    const std::uint32_t channels = parts(columns, column_unit);
    const ImageDivision division = divide_image(
        scheme, {parts(rows, unit), channels, channels, 1, true}, ShardOrientation::ROW_MAJOR);
    return divided_l1(division, rows, columns, unit,
                      scheme == TensorMemoryLayout::HEIGHT_SHARDED ? 1 : column_unit);
}

void require_l1_small(const MeshDevice* device) {
    TT_FATAL(device == nullptr || device->impl().l1_small_size > 0,
             "Out of Memory: Not enough space to allocate L1_SMALL buffer: open the device with "
             "l1_small_size, or keep the configuration in DRAM (config_tensors_in_dram)");
}

}  // namespace ttcodegen::cpu
