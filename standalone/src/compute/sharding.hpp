#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// The sharding of an image's rows and channels over cores.
struct ImageDivision {
    TensorMemoryLayout scheme = TensorMemoryLayout::HEIGHT_SHARDED;
    tt::tt_metal::CoreRangeSet grid;
    tt::tt_metal::ShardOrientation orientation = tt::tt_metal::ShardOrientation::ROW_MAJOR;

    std::uint32_t row_cores() const;
    std::uint32_t channel_cores() const;
    bool operator==(const ImageDivision& other) const = default;
};

/// Numbers of indivisible parts of an image.
struct ImageParts {
    std::uint32_t rows;
    /// Parts of the channels of the input and of the result.
    std::uint32_t channels;
    std::uint32_t result_channels;
    /// Rows that stay together on one core, in parts.
    std::uint32_t rows_at_once = 1;
    /// The last core may have fewer channels than the others.
    bool pads_channels = false;
};

/// The release's division over the worker cores of the device
/// (conv::determine_parallel_config of 0.70.1): as many cores as divide the parts evenly, or
/// leave none of them without work.
ImageDivision divide_image(TensorMemoryLayout scheme, const ImageParts& parts,
                           tt::tt_metal::ShardOrientation orientation);

/// The same image divided by rows, with the channels of a result on as many cores as they fill
/// (conv::determine_output_parallel_config): at most `channel_cores`, by default as many as the
/// worker cores of the device allow.
ImageDivision divide_result(const ImageDivision& image, std::uint32_t channel_parts,
                            std::optional<std::uint32_t> channel_cores);

/// The division of a sharded tensor.
ImageDivision division_of(const MemoryConfig& memory_config);

/// An L1 memory config for rows x channels elements in shards of whole units.
MemoryConfig divided_l1(const ImageDivision& division, std::uint32_t rows, std::uint32_t channels,
                        std::uint32_t row_unit, std::uint32_t channel_unit);

/// An L1 memory config for rows x columns elements, sharded over the worker cores by height, by
/// width or in blocks. `unit` is the minimum height of a shard, 32 for tiles.
MemoryConfig sharded_l1(TensorMemoryLayout scheme, std::uint32_t rows, std::uint32_t columns,
                        std::uint32_t unit);

/// Refuses sliding window operations on a device without L1_SMALL for their configuration.
void require_l1_small(const MeshDevice* device);

}  // namespace ttcodegen::cpu
