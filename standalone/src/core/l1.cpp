#include "core/l1.hpp"

#include <algorithm>

#include "core/chips.hpp"
#include "core/device.hpp"
#include "core/tensor_data.hpp"
#include "core/trace.hpp"
#include "device/architecture.hpp"
#include "tt-metalium/math.hpp"

namespace ttcodegen::cpu {

namespace {

constexpr std::size_t kRowAlignment = 16;

}  // namespace

std::optional<std::size_t> L1Banks::allocate(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    // Searches the free gaps from the highest allocation down.
    std::size_t end = top_;
    for (auto part = taken_.rbegin(); part != taken_.rend(); ++part) {
        if (end - (part->first + part->second) >= bytes) {
            break;
        }
        end = part->first;
    }
    if (end < base_ + bytes) {
        return std::nullopt;
    }
    taken_[end - bytes] = bytes;
    return end - bytes;
}

void L1Banks::free(std::size_t address) {
    const std::lock_guard lock(mutex_);
    taken_.erase(address);
}

std::optional<std::size_t> L1Banks::lowest() const {
    const std::lock_guard lock(mutex_);
    return taken_.empty() ? std::nullopt : std::optional(taken_.begin()->first);
}

std::size_t L1Banks::allocated() const {
    const std::lock_guard lock(mutex_);
    std::size_t sum = 0;
    for (const auto& [address, bytes] : taken_) {
        sum += bytes;
    }
    return sum;
}

std::size_t tile_bytes(DataType dtype) {
    return tt::tt_metal::Tile().get_tile_size(
        tt::tt_metal::datatype_to_dataformat_converter(dtype));
}

std::size_t l1_bank_bytes(const TensorSpec& spec, std::size_t banks) {
    const MemoryConfig& memory = spec.memory_config();
    if (!memory.is_l1()) {
        return 0;
    }
    std::size_t height = spec.physical_shape().height();
    std::size_t width = spec.physical_shape().width();
    const bool sharded = memory.shard_spec().has_value();
    if (sharded) {
        height = memory.shard_spec()->shape[0];
        width = memory.shard_spec()->shape[1];
    }
    std::size_t pages = height;
    std::size_t page = 0;
    if (spec.layout() == Layout::TILE) {
        pages = height / kTileSide * (width / kTileSide);
        page = tile_bytes(spec.data_type());
    } else {
        const std::size_t element = is_block(spec.data_type()) ? 1 : stored_size(spec.data_type());
        page = tt::round_up(width * element, kRowAlignment);
    }
    const std::size_t alignment = device::default_architecture().dram_alignment;
    return tt::round_up((sharded ? pages : tt::div_up(pages, banks)) * page, alignment);
}

std::unique_ptr<L1Part> take_l1(const TensorSpec& spec, MeshDevice* device) {
    const auto grid = device->compute_with_storage_grid_size();
    const std::size_t cores = grid.x * grid.y;
    const std::size_t bytes = l1_bank_bytes(spec, cores);
    if (bytes == 0 || is_replaying()) {
        return nullptr;
    }
    const std::shared_ptr<L1Banks>& banks = chip_device(device)->impl().l1;
    const auto address = banks->allocate(bytes);
    TT_FATAL(address.has_value(),
             "Out of Memory: Not enough space to allocate {} B L1 buffer across {} banks, where "
             "each bank needs to store {} B, but bank size is {} B (allocated: {} B, free: {} B)",
             bytes * cores, cores, bytes, banks->capacity(), banks->allocated(),
             banks->capacity() - banks->allocated());
    return std::make_unique<L1Part>(banks, *address);
}

std::size_t l1_below_tensors(MeshDevice* device) {
    const L1Banks& banks = *chip_device(device)->impl().l1;
    return banks.lowest().value_or(device->l1_size_per_core()) - banks.base();
}

void require_circular_buffers(MeshDevice* device, std::size_t bytes) {
    const L1Banks& banks = *chip_device(device)->impl().l1;
    const std::size_t end = banks.base() + bytes;
    if (end > device->l1_size_per_core()) {
        TT_THROW(
            "Statically allocated circular buffers grow to {} B which is beyond max L1 size of {} "
            "B",
            end, device->l1_size_per_core());
    }
    if (const auto lowest = banks.lowest(); lowest && end > *lowest) {
        TT_THROW(
            "Statically allocated circular buffers clash with L1 buffers. L1 buffer allocated at "
            "{} and static circular buffer region ends at {}",
            *lowest, end);
    }
}

}  // namespace ttcodegen::cpu
