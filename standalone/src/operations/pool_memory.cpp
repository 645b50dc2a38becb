#include "operations/pool_memory.hpp"

#include <algorithm>
#include <array>

#include "compute/sharding.hpp"

namespace ttcodegen::cpu {
namespace {

using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::ShardOrientation;

constexpr std::uint32_t kTile = 32;
constexpr std::uint32_t kFace = 16;

std::uint32_t parts(std::uint32_t size, std::uint32_t part) { return (size + part - 1) / part; }

/// Pools divide pixels where nothing is in tiles, and channels in halves of tiles.
ImageDivision division(TensorMemoryLayout scheme, const PooledImage& image, Layout input,
                       std::uint32_t alignment) {
    const bool has_tiles = image.layout == Layout::TILE;
    const std::uint32_t width = has_tiles || input == Layout::TILE ? kTile : kFace;
    const std::uint32_t channels = parts(image.channels, width);
    // Blocks must divide the input by its alignment as well; columns are of the same parts.
    const std::uint32_t read =
        scheme == TensorMemoryLayout::BLOCK_SHARDED ? parts(image.channels, alignment) : channels;
    return divide_image(scheme, {parts(image.rows, has_tiles ? kTile : 1), read, channels},
                        ShardOrientation::ROW_MAJOR);
}

std::uint32_t tile_bytes(DataType dtype) {
    switch (dtype) {
        case DataType::BFLOAT8_B:
            return 1088;
        case DataType::BFLOAT4_B:
            return 576;
        default:
            return 2048;
    }
}

/// What of a pool's circular buffers depends on how the image is divided, in bytes
/// (calculate_pool_cb_sizes); elements are of two bytes, block floats are unpacked.
std::uint64_t circular_buffers(const ImageDivision& division, const PooledImage& image) {
    constexpr std::uint64_t bytes = 2;
    const std::uint32_t shards = division.channel_cores();
    const bool has_tiles = image.layout == Layout::TILE;
    const std::uint64_t tiles = parts(image.channels, shards * kTile);
    const std::uint64_t written = parts(image.channels, shards * (has_tiles ? kTile : kFace));
    const std::uint32_t rest = image.channels / shards % kTile;
    const bool is_large = image.kernel > (rest != 0 && rest <= kFace ? kTile / 2 : kTile);
    const std::uint64_t at_once = image.returns_indices ? 1 : image.is_average && is_large ? 4 : 8;
    const std::uint64_t height = image.kernel <= kFace && !image.returns_indices
                                     ? static_cast<std::uint64_t>(image.kernel)
                                     : kTile;
    const std::uint64_t wide = image.returns_indices || tiles > at_once ? at_once : tiles;
    const std::uint64_t read = (wide * kTile * height + 1023) / 1024 * 1024 * bytes;
    const auto shape =
        divided_l1(division, image.rows, image.channels,
                   division.scheme == TensorMemoryLayout::WIDTH_SHARDED ? 1 : kTile, kTile)
            .shard_spec()
            .value()
            .shape;
    const auto aligned = [](std::uint64_t size) { return (size + 31) / 32 * 32; };
    std::uint64_t total = 4 * read;
    if (has_tiles) {
        total += kTile * bytes * kTile * tiles;
        total += aligned(std::uint64_t{shape[0]} * shape[1] / 1024 * tile_bytes(image.dtype));
    } else {
        total += aligned(std::min(kFace, shape[1]) * bytes * shape[0] * written);
    }
    if (image.returns_indices && is_large) {
        total += 2 * 1024 * bytes;
    }
    if (image.config_in_dram) {
        total += std::uint64_t{shape[0]} * 6 * (image.has_one_scalar ? 1 : 2);
    }
    return total;
}

/// The scheme with the smallest circular buffers; of equal ones by rows, then by columns.
ImageDivision least_division(const PooledImage& image, Layout input) {
    const auto candidate = [&](TensorMemoryLayout scheme) {
        return division(scheme, image, input, kTile);
    };
    ImageDivision best = candidate(TensorMemoryLayout::HEIGHT_SHARDED);
    for (const auto scheme :
         {TensorMemoryLayout::WIDTH_SHARDED, TensorMemoryLayout::BLOCK_SHARDED}) {
        const ImageDivision other = candidate(scheme);
        if (circular_buffers(other, image) < circular_buffers(best, image)) {
            best = other;
        }
    }
    return best;
}

ImageDivision division_of_input(const Tensor& input, std::optional<TensorMemoryLayout> scheme) {
    TT_FATAL(!scheme, "A sharding scheme should not be specified for a sharded input tensor.");
    const ImageDivision division = division_of(input.memory_config());
    TT_FATAL(division.orientation == ShardOrientation::ROW_MAJOR,
             "Only row major orientation is supported.");
    return division;
}

}  // namespace

MemoryConfig pooled_memory(const Tensor& input, const PooledImage& image,
                           std::optional<TensorMemoryLayout> scheme) {
    const bool has_tiles = image.layout == Layout::TILE;
    // Channels of rows are aligned to 16 bytes.
    const std::uint32_t alignment = input.layout() == Layout::TILE ? kTile : 8;
    const ImageDivision chosen = input.memory_config().shard_spec()
                                     ? division_of_input(input, scheme)
                                 : scheme ? division(*scheme, image, input.layout(), alignment)
                                          : least_division(image, input.layout());
    return divided_l1(chosen, image.rows, image.channels, has_tiles ? kTile : 1,
                      has_tiles ? kTile : kFace);
}

}  // namespace ttcodegen::cpu
