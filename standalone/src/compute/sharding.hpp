#pragma once

#include <cstdint>

#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// How the rows and the channels of an image are divided among cores.
struct ImageDivision {
    TensorMemoryLayout scheme = TensorMemoryLayout::HEIGHT_SHARDED;
    tt::tt_metal::CoreRangeSet grid;
    tt::tt_metal::ShardOrientation orientation = tt::tt_metal::ShardOrientation::ROW_MAJOR;

    std::uint32_t row_cores() const;
    std::uint32_t channel_cores() const;
    bool operator==(const ImageDivision& other) const = default;
};

/// How many parts there are to divide, in units that must not be cut.
struct ImageParts {
    std::uint32_t rows;
    /// Those of the image that is read, and those of the result.
    std::uint32_t channels;
    std::uint32_t result_channels;
    /// Rows that stay together on one core, in parts.
    std::uint32_t rows_at_once = 1;
    /// Whether the last core may have fewer channels than the others.
    bool pads_channels = false;
};

/// The division that the release works out for the worker cores of the card
/// (conv::determine_parallel_config of 0.70.1): as many cores as divide the parts evenly, or leave
/// none of them without work.
ImageDivision divide_image(TensorMemoryLayout scheme, const ImageParts& parts,
                           tt::tt_metal::ShardOrientation orientation);

/// The same image divided by rows, with the channels of a result on as many cores as they fill
/// (conv::determine_output_parallel_config); `channel_cores` are the most that there are of them.
ImageDivision divide_result(const ImageDivision& image, std::uint32_t channel_parts,
                            std::uint32_t channel_cores);

/// How a sharded tensor is divided.
ImageDivision division_of(const MemoryConfig& memory_config);

/// L1 memory of rows x channels elements in shards of whole units.
MemoryConfig divided_l1(const ImageDivision& division, std::uint32_t rows, std::uint32_t channels,
                        std::uint32_t row_unit, std::uint32_t channel_unit);

/// L1 memory of rows x columns elements distributed over the worker cores: by rows, by columns
/// or by blocks. `unit` is the minimum height of a shard, 32 for tiles.
MemoryConfig sharded_l1(TensorMemoryLayout scheme, std::uint32_t rows, std::uint32_t columns,
                        std::uint32_t unit);

/// Refuses windowed operations on a device that has no room for their configuration.
void require_l1_small(const MeshDevice* device);

}  // namespace ttcodegen::cpu
