#include "tt-metalium/buffer.hpp"

#include <cstring>

#include "core/describe.hpp"
#include "core/device.hpp"
#include "core/trace.hpp"
#include "device/buffer_pages.hpp"
#include "tt-metalium/host_api.hpp"
#include "tt-metalium/math.hpp"
#include "tt-metalium/mesh_device.hpp"

namespace ttcodegen::device {

using tt::tt_metal::Buffer;
using tt::tt_metal::BufferType;

namespace {

/// Addresses of a buffer's pages in this process; null for pages that do not exist.
class PageAddresses {
  public:
    PageAddresses(const Buffer& buffer, std::size_t chip)
        : buffer_(buffer),
          device_(emulated_device(buffer.device())),
          turn_(device_.turn()),
          memory_(device_.memory(chip)) {
        if (!is_sharded(buffer.buffer_layout())) {
            return;
        }
        const auto mapping = generate_buffer_page_mapping(buffer);
        sharded_.resize(buffer.num_pages(), nullptr);
        for (std::size_t core = 0; core < mapping.core_host_page_indices.size(); ++core) {
            const auto& pages = mapping.core_host_page_indices[core];
            for (std::size_t i = 0; i < pages.size(); ++i) {
                if (pages[i] < sharded_.size()) {
                    sharded_[pages[i]] =
                        bank(mapping.all_cores[core]) + i * buffer.aligned_page_size();
                }
            }
        }
    }

    std::byte* operator[](std::size_t page) const {
        if (is_sharded(buffer_.buffer_layout())) {
            return sharded_[page];
        }
        const std::size_t banks = buffer_.is_dram() ? device_.architecture().dram_banks.size()
                                                    : device_.architecture().num_workers();
        return start(static_cast<std::uint32_t>(page % banks)) +
               page / banks * buffer_.aligned_page_size();
    }

  private:
    std::byte* start(std::uint32_t bank) const {
        return (buffer_.is_dram() ? memory_.dram(bank) : memory_.l1(bank)) + buffer_.address();
    }
    std::byte* bank(CoreCoord core) const {
        return start(buffer_.is_dram() ? static_cast<std::uint32_t>(core.x)
                                       : device_.worker_index(core));
    }

    const Buffer& buffer_;
    EmulatedDevice& device_;
    L1Addresses::Turn turn_;
    Memory& memory_;
    std::vector<std::byte*> sharded_;
};

}  // namespace

EmulatedDevice& emulated_device(tt::tt_metal::IDevice* device) {
    auto* mesh = dynamic_cast<tt::tt_metal::distributed::MeshDevice*>(device);
    TT_FATAL(mesh != nullptr, "A buffer needs a mesh device");
    return mesh->impl().emulated();
}

void write_pages(const Buffer& buffer, std::size_t chip, const std::byte* data, std::size_t offset,
                 std::size_t size) {
    const PageAddresses places(buffer, chip);
    const std::size_t page_size = buffer.page_size();
    for (std::size_t page = offset / page_size; page < (offset + size) / page_size; ++page) {
        std::byte* place = places[page];
        TT_FATAL(place != nullptr, "Page {} of the buffer is in none of its shards", page);
        std::memcpy(place, data + page * page_size - offset, page_size);
        // The padding of a page is transferred with it, and has no owner.
        std::memset(place + page_size, 0, buffer.aligned_page_size() - page_size);
    }
}

void read_pages(const Buffer& buffer, std::size_t chip, std::byte* data, std::size_t offset,
                std::size_t size) {
    const PageAddresses places(buffer, chip);
    const std::size_t page_size = buffer.page_size();
    for (std::size_t page = offset / page_size; page < (offset + size) / page_size; ++page) {
        const std::byte* place = places[page];
        TT_FATAL(place != nullptr, "Page {} of the buffer is in none of its shards", page);
        std::size_t marked = 0;
        TT_FATAL(find_mark(place, page_size, marked) == Written::Yes,
                 "The host reads byte {} of page {} of a buffer at {}, which nobody wrote", marked,
                 page, buffer.address());
        std::memcpy(data + page * page_size - offset, place, page_size);
    }
}

bool read_written_pages(const Buffer& buffer, std::size_t chip, std::byte* data) {
    const PageAddresses places(buffer, chip);
    const std::size_t page_size = buffer.page_size();
    bool any = false;
    for (std::size_t page = 0; page < buffer.num_pages(); ++page) {
        const std::byte* place = places[page];
        TT_FATAL(place != nullptr, "Page {} of the buffer is in none of its shards", page);
        std::size_t marked = 0;
        if (find_mark(place, page_size, marked) == Written::Yes) {
            std::memcpy(data + page * page_size, place, page_size);
            any = true;
        } else {
            std::memset(data + page * page_size, 0xff, page_size);
        }
    }
    return any;
}

}  // namespace ttcodegen::device

namespace tt::tt_metal {

using ttcodegen::device::Allocator;
using ttcodegen::device::emulated_device;
using ttcodegen::device::EmulatedDevice;

namespace {

Allocator& allocator_of(EmulatedDevice& device, BufferType buffer_type) {
    switch (buffer_type) {
        case BufferType::DRAM:
            return device.dram();
        case BufferType::L1:
            return device.l1();
        case BufferType::L1_SMALL:
            return device.l1_small();
        default:
            TT_THROW("The CPU backend has buffers in DRAM, L1 and L1_SMALL only");
    }
}

void validate(DeviceAddr size, DeviceAddr page_size, const BufferShardingArgs& sharding) {
    TT_FATAL(page_size != 0 || size == 0, "A buffer of {} bytes needs a page size", size);
    TT_FATAL(size == 0 || size % page_size == 0,
             "For valid non-interleaved buffers page size {} must equal buffer size {}. For "
             "interleaved-buffers page size should be divisible by buffer size",
             page_size, size);
    const bool has_shards =
        sharding.shard_spec().has_value() || sharding.buffer_distribution_spec().has_value();
    TT_FATAL(is_sharded(sharding.buffer_layout()) == has_shards,
             "Buffer was specified as {}sharded but {} shard_spec or buffer_distribution_spec",
             has_shards ? "not " : "", has_shards ? "has a" : "has no");
}

}  // namespace

bool is_sharded(const TensorMemoryLayout& layout) {
    return layout != TensorMemoryLayout::INTERLEAVED;
}

std::array<std::uint32_t, 2> ShardSpecBuffer::shape_in_pages() const {
    const auto [height, width] = tensor_shard_spec.shape;
    return {page_shape[0] == 0 ? 0 : height / page_shape[0],
            page_shape[1] == 0 ? 0 : width / page_shape[1]};
}

DeviceAddr ShardSpecBuffer::num_pages() const {
    const auto [height, width] = shape_in_pages();
    return DeviceAddr{height} * width;
}

Buffer::Buffer(IDevice* device, DeviceAddr size, DeviceAddr page_size, BufferType buffer_type,
               const BufferShardingArgs& sharding_args, std::optional<bool> bottom_up,
               std::optional<SubDeviceId> /*sub_device_id*/, bool owns_data, Private)
    : device_(device),
      size_(size),
      page_size_(page_size),
      buffer_type_(buffer_type),
      buffer_layout_(sharding_args.buffer_layout()),
      bottom_up_(bottom_up.value_or(buffer_type == BufferType::DRAM)),
      owns_data_(owns_data),
      shard_spec_(sharding_args.shard_spec()),
      buffer_distribution_spec_(sharding_args.buffer_distribution_spec()) {
    TT_FATAL(device != nullptr, "A buffer needs a device");
    validate(size, page_size, sharding_args);
}

std::shared_ptr<Buffer> Buffer::create(IDevice* device, DeviceAddr size, DeviceAddr page_size,
                                       BufferType buffer_type,
                                       const BufferShardingArgs& sharding_args,
                                       std::optional<bool> bottom_up,
                                       std::optional<SubDeviceId> sub_device_id) {
    auto buffer = std::make_shared<Buffer>(device, size, page_size, buffer_type, sharding_args,
                                           bottom_up, sub_device_id, true, Private());
    buffer->allocate_impl();
    return buffer;
}

std::shared_ptr<Buffer> Buffer::create(IDevice* device, DeviceAddr address, DeviceAddr size,
                                       DeviceAddr page_size, BufferType buffer_type,
                                       const BufferShardingArgs& sharding_args,
                                       std::optional<bool> bottom_up,
                                       std::optional<SubDeviceId> sub_device_id) {
    auto buffer = std::make_shared<Buffer>(device, size, page_size, buffer_type, sharding_args,
                                           bottom_up, sub_device_id, false, Private());
    EmulatedDevice& emulated = emulated_device(device);
    Allocator& allocator = allocator_of(emulated, buffer_type);
    // Memory that is allocated already stays its owner's; otherwise it is claimed here.
    if (!allocator.end_of(address)) {
        allocator.claim(address, buffer->aligned_size_per_bank());
    }
    buffer->emulated_ = emulated.weak_from_this();
    buffer->address_ = address;
    buffer->allocated_ = true;
    return buffer;
}

Buffer::~Buffer() { deallocate(); }

void Buffer::allocate_impl() {
    EmulatedDevice& device = emulated_device(device_);
    const DeviceAddr bytes = aligned_size_per_bank();
    const auto direction = bottom_up_ ? Allocator::Direction::Up : Allocator::Direction::Down;
    const std::size_t banks =
        is_dram() ? device.architecture().dram_banks.size() : device.architecture().num_workers();
    Allocator& allocator = allocator_of(device, buffer_type_);
    const auto found = allocator.allocate(bytes, direction);
    TT_FATAL(found.has_value(),
             "Out of Memory: Not enough space to allocate {} B {} buffer across {} banks, where "
             "each bank needs to store {} B, but the largest free block has {} B",
             size_, is_dram() ? "DRAM" : "L1", banks, bytes, allocator.largest_free());
    emulated_ = device.weak_from_this();
    address_ = *found;
    allocated_ = true;
    const auto mark = [&device, banks, bytes, address = address_, in_dram = is_dram()] {
        const auto turn = device.turn();
        for (std::size_t chip = 0; chip < device.chips(); ++chip) {
            ttcodegen::device::Memory& memory = device.memory(chip);
            for (std::uint32_t bank = 0; bank < banks; ++bank) {
                std::byte* place = in_dram ? memory.dram(bank) : memory.l1(bank);
                ttcodegen::device::mark_never_written(place + address, bytes);
            }
        }
    };
    mark();
    if (auto* const capture = ttcodegen::cpu::current_capture()) {
        capture->add([mark, &allocator, bytes, address = address_] {
            allocator.claim(address, bytes);
            mark();
        });
    }
}

void Buffer::deallocate() {
    const auto device = emulated_.lock();
    if (allocated_ && owns_data_ && device != nullptr) {
        Allocator& allocator = allocator_of(*device, buffer_type_);
        allocator.release(address_);
        if (auto* const capture = ttcodegen::cpu::current_capture()) {
            capture->add([&allocator, address = address_] { allocator.release(address); });
        }
    }
    allocated_ = false;
}

bool Buffer::is_allocated() const { return allocated_ && !emulated_.expired(); }

std::uint32_t Buffer::address() const {
    TT_FATAL(is_allocated(), "The buffer is not allocated: it has no address");
    return static_cast<std::uint32_t>(address_);
}

DeviceAddr Buffer::page_size() const { return page_size_; }

std::uint32_t Buffer::num_pages() const {
    return page_size_ == 0 ? 0 : static_cast<std::uint32_t>(size_ / page_size_);
}

std::uint32_t Buffer::num_dev_pages() const {
    if (!is_sharded(buffer_layout_)) {
        return num_pages();
    }
    if (buffer_distribution_spec_) {
        return static_cast<std::uint32_t>(buffer_distribution_spec_->max_num_dev_pages_per_core() *
                                          *num_cores());
    }
    return static_cast<std::uint32_t>(shard_spec_->num_pages() * *num_cores());
}

CoreType Buffer::core_type() const { return is_dram() ? CoreType::DRAM : CoreType::WORKER; }
bool Buffer::is_l1() const {
    return buffer_type_ == BufferType::L1 || buffer_type_ == BufferType::L1_SMALL;
}
bool Buffer::is_dram() const { return buffer_type_ == BufferType::DRAM; }

DeviceAddr Buffer::page_address(DeviceAddr bank_id, DeviceAddr page_index) const {
    const auto& architecture = emulated_device(device_).architecture();
    const DeviceAddr banks =
        is_dram() ? architecture.dram_banks.size() : architecture.num_workers();
    TT_FATAL(bank_id < banks, "Invalid Bank ID: {} exceeds total numbers of banks ({})!", bank_id,
             banks);
    return address() + page_index / banks * aligned_page_size();
}

std::uint32_t Buffer::alignment() const {
    const auto& architecture = emulated_device(device_).architecture();
    return is_dram() ? architecture.dram_alignment : architecture.l1_alignment;
}

DeviceAddr Buffer::aligned_page_size() const { return tt::round_up(page_size_, alignment()); }

DeviceAddr Buffer::aligned_size() const { return num_dev_pages() * aligned_page_size(); }

DeviceAddr Buffer::aligned_size_per_bank() const {
    const auto& architecture = emulated_device(device_).architecture();
    if (buffer_distribution_spec_) {
        return buffer_distribution_spec_->max_num_dev_pages_per_core() * aligned_page_size();
    }
    if (shard_spec_) {
        return shard_spec_->num_pages() * aligned_page_size();
    }
    const DeviceAddr banks =
        is_dram() ? architecture.dram_banks.size() : architecture.num_workers();
    return tt::div_up(num_pages(), banks) * aligned_page_size();
}

const std::optional<BufferDistributionSpec>& Buffer::buffer_distribution_spec() const {
    return buffer_distribution_spec_;
}

ShardSpecBuffer Buffer::shard_spec() const {
    TT_FATAL(shard_spec_.has_value(), "Buffer is sharded, but no shard parameters specified");
    return *shard_spec_;
}

std::optional<std::uint32_t> Buffer::num_cores() const {
    if (!is_sharded(buffer_layout_)) {
        return std::nullopt;
    }
    if (buffer_distribution_spec_) {
        return static_cast<std::uint32_t>(buffer_distribution_spec_->num_cores_with_data());
    }
    return shard_spec_->tensor_shard_spec.num_cores();
}

std::shared_ptr<Buffer> CreateBuffer(const InterleavedBufferConfig& config) {
    return Buffer::create(config.device, config.size, config.page_size, config.buffer_type);
}

std::shared_ptr<Buffer> CreateBuffer(const ShardedBufferConfig& config) {
    return Buffer::create(config.device, config.size, config.page_size, config.buffer_type,
                          BufferShardingArgs(config.shard_parameters, config.buffer_layout));
}

void DeallocateBuffer(Buffer& buffer) { buffer.deallocate(); }

}  // namespace tt::tt_metal
