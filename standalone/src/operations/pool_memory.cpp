#include "operations/pool_memory.hpp"

#include <algorithm>
#include <array>

#include "compute/sharding.hpp"
#include "core/l1.hpp"
#include "device/architecture.hpp"
#include "tt-metalium/math.hpp"

namespace ttcodegen::cpu {
namespace {

using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::ShardOrientation;

/// The division of a pool: into single pixels if nothing is tiled, channels into half tiles.
ImageDivision division(TensorMemoryLayout scheme, const PooledImage& image, Layout input,
                       std::uint32_t alignment) {
    const bool has_tiles = image.layout == Layout::TILE;
    const std::uint32_t width = has_tiles || input == Layout::TILE ? kTileSide : kFaceSide;
    const std::uint32_t channels = tt::div_up(image.channels, width);
    // Block shards must divide the input by its alignment as well; columns have the same parts.
    const std::uint32_t read = scheme == TensorMemoryLayout::BLOCK_SHARDED
                                   ? tt::div_up(image.channels, alignment)
                                   : channels;
    return divide_image(scheme, {tt::div_up(image.rows, has_tiles ? kTileSide : 1), read, channels},
                        ShardOrientation::ROW_MAJOR);
}

/// Bytes of a pool's circular buffers that depend on the division of the image
/// (calculate_pool_cb_sizes); elements have two bytes, block floats are unpacked.
std::uint64_t circular_buffers(const ImageDivision& division, const PooledImage& image) {
    constexpr std::uint64_t bytes = 2;
    const std::uint32_t shards = division.channel_cores();
    const bool has_tiles = image.layout == Layout::TILE;
    const std::uint64_t tiles = tt::div_up(image.channels, shards * kTileSide);
    const std::uint64_t written =
        tt::div_up(image.channels, shards * (has_tiles ? kTileSide : kFaceSide));
    const bool is_large = image.kernel > reduced_at_once(image.channels / shards);
    const std::uint64_t at_once = image.returns_indices ? 1 : image.is_average && is_large ? 4 : 8;
    const std::uint64_t height = image.kernel <= kFaceSide && !image.returns_indices
                                     ? static_cast<std::uint64_t>(image.kernel)
                                     : kTileSide;
    const std::uint64_t wide = image.returns_indices || tiles > at_once ? at_once : tiles;
    const std::uint64_t read = tt::round_up(wide * kTileSide * height, kTileElements) * bytes;
    const auto shape =
        divided_l1(division, image.rows, image.channels,
                   division.scheme == TensorMemoryLayout::WIDTH_SHARDED ? 1 : kTileSide, kTileSide)
            .shard_spec()
            .value()
            .shape;
    // Circular buffers are aligned to it, in bytes.
    const std::uint64_t alignment = device::default_architecture().dram_alignment;
    std::uint64_t total = 4 * read;
    if (has_tiles) {
        total += kTileSide * bytes * kTileSide * tiles;
        total += tt::round_up(
            std::uint64_t{shape[0]} * shape[1] / kTileElements * tile_bytes(image.dtype),
            alignment);
    } else {
        total +=
            tt::round_up(std::min(kFaceSide, shape[1]) * bytes * shape[0] * written, alignment);
    }
    if (image.returns_indices && is_large) {
        total += 2 * kTileElements * bytes;
    }
    if (image.config_in_dram) {
        total += std::uint64_t{shape[0]} * 6 * (image.has_one_scalar ? 1 : 2);
    }
    return total;
}

/// The scheme with the smallest circular buffers; among equal ones height before width.
ImageDivision smallest_division(const PooledImage& image, Layout input) {
    const auto candidate = [&](TensorMemoryLayout scheme) {
        return division(scheme, image, input, kTileSide);
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

std::int64_t reduced_at_once(std::uint32_t channels) {
    const std::uint32_t rest = channels % kTileSide;
    return rest != 0 && rest <= kFaceSide ? kFaceSide : kTileSide;
}

MemoryConfig pooled_memory(const Tensor& input, const PooledImage& image,
                           std::optional<TensorMemoryLayout> scheme) {
    if (scheme == TensorMemoryLayout::INTERLEAVED) {
        TT_THROW("Pool2d supports Height, Block or Width Sharded Layouts but got {}", *scheme);
    }
    const bool has_tiles = image.layout == Layout::TILE;
    // Channels of row-major shards are aligned to 16 bytes.
    const std::uint32_t alignment = input.layout() == Layout::TILE ? kTileSide : 8;
    const ImageDivision chosen = input.memory_config().shard_spec()
                                     ? division_of_input(input, scheme)
                                 : scheme ? division(*scheme, image, input.layout(), alignment)
                                          : smallest_division(image, input.layout());
    return divided_l1(chosen, image.rows, image.channels, has_tiles ? kTileSide : 1,
                      has_tiles ? kTileSide : kFaceSide);
}

}  // namespace ttcodegen::cpu
