#include "core/tensor_pages.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/device.hpp"
#include "device/compute/tile_format.hpp"
#include "tt-metalium/tile.hpp"

namespace ttcodegen::cpu {

namespace {

using device::compute::DataFormat;
using device::compute::SourcePrecision;
using tt::tt_metal::BufferDistributionSpec;
using tt::tt_metal::BufferShardingArgs;
using tt::tt_metal::ShardDistributionStrategy;
using tt::tt_metal::ShardSpec;
using tt::tt_metal::ShardSpecBuffer;

DataFormat format_of(const Tensor& tensor) {
    return tt::tt_metal::datatype_to_dataformat_converter(tensor.dtype());
}

/// Height and width of a page in elements.
std::array<std::uint32_t, 2> page_shape(const TensorSpec& spec) {
    if (spec.layout() == Layout::TILE) {
        return {kTileSide, kTileSide};
    }
    const auto& shards = spec.memory_config().shard_spec();
    return {1,
            shards ? shards->shape[1] : static_cast<std::uint32_t>(spec.physical_shape().width())};
}

std::size_t page_bytes(const Tensor& tensor) {
    const TensorSpec& spec = tensor.tensor_spec();
    return spec.layout() == Layout::TILE ? device::compute::tile_bytes(format_of(tensor))
                                         : page_shape(spec)[1] * stored_size(tensor.dtype());
}

BufferShardingArgs sharding_of(const TensorSpec& spec) {
    const MemoryConfig& memory = spec.memory_config();
    if (!memory.is_sharded()) {
        return std::nullopt;
    }
    TT_FATAL(memory.shard_spec().has_value(),
             "The CPU backend runs programs on tensors in shards of two dimensions only");
    const auto page = page_shape(spec);
    const std::array<std::uint32_t, 2> pages = {
        static_cast<std::uint32_t>(spec.physical_shape().height()) / page[0],
        static_cast<std::uint32_t>(spec.physical_shape().width()) / page[1]};
    const ShardSpec& shards = *memory.shard_spec();
    const auto strategy = memory.memory_layout() == TensorMemoryLayout::BLOCK_SHARDED
                              ? ShardDistributionStrategy::GRID_2D
                              : ShardDistributionStrategy::ROUND_ROBIN_1D;
    const BufferDistributionSpec distribution(
        Shape({pages[0], pages[1]}), Shape({shards.shape[0] / page[0], shards.shape[1] / page[1]}),
        shards.grid, shards.orientation, strategy);
    return {distribution, ShardSpecBuffer(shards, page, pages), memory.memory_layout()};
}

/// The tiles of a tensor's matrices.
struct Matrices {
    explicit Matrices(const Shape& shape)
        : columns(shape.rank() > 0 ? shape[-1] : 1), rows(shape.rank() > 1 ? shape[-2] : 1) {
        const std::size_t elements = shape.volume();
        count = elements == 0 ? 0 : elements / (rows * columns);
        tiles_across = (columns + kTileSide - 1) / kTileSide;
        tiles_down = (rows + kTileSide - 1) / kTileSide;
    }

    std::size_t tiles() const { return count * tiles_down * tiles_across; }

    /// Calls `copy(element, place, count)` for each row of each face of a tile that holds elements:
    /// `count` elements, starting at `element`, are stored at `place` of the tile.
    template <typename Copy>
    void for_each_row(std::size_t tile, const Copy& copy) const {
        const std::size_t matrix = tile / (tiles_down * tiles_across);
        const std::size_t first_row = tile / tiles_across % tiles_down * kTileSide;
        const std::size_t first_column = tile % tiles_across * kTileSide;
        for (std::size_t row = 0; row < std::min<std::size_t>(kTileSide, rows - first_row); ++row) {
            const std::size_t element = (matrix * rows + first_row + row) * columns + first_column;
            const std::size_t place =
                row / kFaceSide * 2 * kFaceSide * kFaceSide + row % kFaceSide * kFaceSide;
            const std::size_t width = std::min<std::size_t>(kTileSide, columns - first_column);
            for (std::size_t column = 0; column < width; column += kFaceSide) {
                copy(element + column, place + column / kFaceSide * kFaceSide * kFaceSide,
                     std::min<std::size_t>(kFaceSide, width - column));
            }
        }
    }

    std::size_t columns;
    std::size_t rows;
    std::size_t count = 0;
    std::size_t tiles_across = 0;
    std::size_t tiles_down = 0;
};

/// A stored element in the representation of device registers: floats as such, integers in 32 bits.
std::uint32_t word_of(const std::byte* stored, DataType dtype) {
    std::uint32_t word = 0;
    std::memcpy(&word, stored, stored_size(dtype));
    return dtype == DataType::BFLOAT16 ? word << 16 : word;
}

void store_word(std::uint32_t word, DataType dtype, std::byte* stored) {
    const std::uint32_t value = dtype == DataType::BFLOAT16 ? word >> 16 : word;
    std::memcpy(stored, &value, stored_size(dtype));
}

}  // namespace

tt::tt_metal::Buffer& memory_of(const Tensor& tensor) {
    const auto& found = attributes(tensor);
    TT_FATAL(found.device != nullptr, "Expected Tensor with DeviceStorage, got {}",
             tensor.storage_type());
    TT_FATAL(found.allocation->allocated, "Buffer is not allocated");
    auto& memory = found.allocation->memory;
    if (memory == nullptr || !memory->is_allocated()) {
        const TensorSpec& spec = found.spec;
        const auto page = page_shape(spec);
        const std::size_t pages =
            spec.physical_shape().height() / page[0] * (spec.physical_shape().width() / page[1]);
        const std::size_t bytes = page_bytes(tensor);
        memory =
            tt::tt_metal::Buffer::create(found.device, pages * bytes, bytes,
                                         spec.memory_config().buffer_type(), sharding_of(spec));
    }
    return *memory;
}

std::shared_ptr<tt::tt_metal::Buffer> lasting_memory_of(const Tensor& tensor) {
    const auto& memory = memory_of(tensor);
    return tt::tt_metal::Buffer::create(attributes(tensor).device, memory.address(), memory.size(),
                                        memory.page_size(), memory.buffer_type(),
                                        sharding_of(attributes(tensor).spec));
}

std::vector<std::byte> pages_of(const Tensor& tensor) {
    const std::byte* stored = buffer_of(tensor).data();
    const DataType dtype = tensor.dtype();
    const std::size_t size = stored_size(dtype);
    if (tensor.layout() != Layout::TILE) {
        return {stored, stored + tensor.logical_volume() * size};
    }
    const Matrices matrices(tensor.logical_shape());
    const std::size_t bytes = page_bytes(tensor);
    std::vector<std::byte> pages(matrices.tiles() * bytes);
    for (std::size_t tile = 0; tile < matrices.tiles(); ++tile) {
        std::array<std::uint32_t, kTileElements> words{};
        matrices.for_each_row(tile, [&](std::size_t element, std::size_t place, std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) {
                words[place + i] = word_of(stored + (element + i) * size, dtype);
            }
        });
        device::compute::pack_words(words.data(), format_of(tensor), pages.data() + tile * bytes);
    }
    return pages;
}

void store_pages(const Tensor& tensor, const std::vector<std::byte>& pages) {
    Buffer& buffer = buffer_of(tensor);
    buffer.forget_derived();
    std::byte* stored = buffer.data();
    const DataType dtype = tensor.dtype();
    const std::size_t size = stored_size(dtype);
    if (tensor.layout() != Layout::TILE) {
        std::memcpy(stored, pages.data(), pages.size());
        return;
    }
    const Matrices matrices(tensor.logical_shape());
    const std::size_t bytes = page_bytes(tensor);
    for (std::size_t tile = 0; tile < matrices.tiles(); ++tile) {
        std::array<std::uint32_t, kTileElements> words{};
        device::compute::unpack_words(pages.data() + tile * bytes, format_of(tensor),
                                      SourcePrecision::Float32, words.data());
        matrices.for_each_row(tile, [&](std::size_t element, std::size_t place, std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) {
                store_word(words[place + i], dtype, stored + (element + i) * size);
            }
        });
    }
}

}  // namespace ttcodegen::cpu

namespace tt::tt_metal {

Buffer* Tensor::buffer() const { return &ttcodegen::cpu::memory_of(*this); }

}  // namespace tt::tt_metal
