#include "device/memory.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tt-metalium/math.hpp"
#include "tt_stl/assert.hpp"
#include "ttcodegen/device/processor.hpp"

namespace ttcodegen::device {

namespace {

/// An in-memory file, since a core's L1 may have to be mapped a second time, and the L1 of all
/// chips, one after the other, at one address.
int l1_file(std::size_t bytes) {
    const int file = memfd_create("ttcodegen-l1", MFD_CLOEXEC);
    TT_FATAL(file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0,
             "The system gives no memory for the L1 of the emulated device ({} bytes)", bytes);
    return file;
}

void* reserve_addresses(std::size_t bytes) {
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1, 0);
}

/// Raises the limit on data by what the DRAM has: addresses count, though pages are only taken
/// when they are used.
bool raise_data_limit(std::size_t bytes) {
    rlimit limit{};
    if (getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return false;
    }
    const rlim_t wanted = limit.rlim_cur + bytes;
    if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < wanted) {
        return false;
    }
    limit.rlim_cur = wanted;
    return setrlimit(RLIMIT_DATA, &limit) == 0;
}

Mapping map_dram(std::size_t bytes) {
    void* memory = reserve_addresses(bytes);
    if (memory == MAP_FAILED && raise_data_limit(bytes)) {
        memory = reserve_addresses(bytes);
    }
    TT_FATAL(memory != MAP_FAILED,
             "The system gives no {} bytes of addresses for the DRAM of the emulated device; its "
             "pages are taken only when they are used",
             bytes);
    return {static_cast<std::byte*>(memory), bytes};
}

void fill_words(std::byte* memory, std::size_t bytes, std::uint64_t mark) {
    // Marks are at multiples of eight, whatever the alignment of the range.
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    std::byte* first = memory + (tt::round_up(address, 8) - address);
    const std::size_t skipped = static_cast<std::size_t>(first - memory);
    for (std::size_t i = 0; skipped + i + 8 <= bytes; i += 8) {
        std::memcpy(first + i, &mark, 8);
    }
}

}  // namespace

Mapping::Mapping(Mapping&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      file_(std::exchange(other.file_, -1)),
      holds_address_(other.holds_address_) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    std::swap(file_, other.file_);
    std::swap(holds_address_, other.holds_address_);
    return *this;
}

Mapping::~Mapping() {
    if (memory_ != nullptr && holds_address_) {
        munmap(memory_, bytes_);
    }
    if (file_ >= 0) {
        close(file_);
    }
}

Memory::Memory(const Architecture& architecture)
    : architecture_(architecture),
      addresses_(L1Addresses::of_process(std::size_t{kL1Window} * architecture.num_workers())),
      l1_(addresses_.begin(), std::size_t{kL1Window} * architecture.num_workers(),
          l1_file(std::size_t{kL1Window} * architecture.num_workers()), /*holds_address=*/false),
      dram_(map_dram(architecture.dram_banks.size() * std::size_t{architecture.dram_bank_size})) {}

Memory::~Memory() { addresses_.unmap(mapped_); }

std::byte* Memory::l1(std::uint32_t worker) const {
    return l1_.data() + std::size_t{kL1Window} * worker;
}

std::byte* Memory::dram(std::uint32_t bank) const {
    return dram_.data() + std::size_t{architecture_.dram_bank_size} * bank;
}

std::optional<std::uint64_t> Allocator::allocate(std::uint64_t bytes) {
    return allocate(bytes, direction_);
}

std::optional<std::uint64_t> Allocator::allocate(std::uint64_t bytes, Direction direction) {
    const std::uint64_t size = tt::round_up(std::max<std::uint64_t>(bytes, 1), alignment_);
    if (direction == Direction::Up) {
        std::uint64_t address = tt::round_up(begin_, alignment_);
        for (const auto& [start, end] : used_) {
            if (address + size <= start) {
                break;
            }
            address = std::max(address, tt::round_up(end, alignment_));
        }
        if (address + size > end_) {
            return std::nullopt;
        }
        used_[address] = address + size;
        return address;
    }
    std::uint64_t end = end_ / alignment_ * alignment_;
    for (auto range = used_.rbegin(); range != used_.rend(); ++range) {
        if (range->second + size <= end) {
            break;
        }
        end = std::min(end, range->first / alignment_ * alignment_);
    }
    if (end < begin_ + size) {
        return std::nullopt;
    }
    used_[end - size] = end;
    return end - size;
}

void Allocator::claim(std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t end = address + tt::round_up(std::max<std::uint64_t>(bytes, 1), alignment_);
    std::uint64_t& known = used_[address];
    known = std::max(known, end);
}

void Allocator::release(std::uint64_t address) { used_.erase(address); }

std::uint64_t Allocator::largest_free() const {
    std::uint64_t largest = 0;
    std::uint64_t from = begin_;
    for (const auto& [start, end] : used_) {
        largest = std::max(largest, start > from ? start - from : 0);
        from = std::max(from, end);
    }
    return std::max(largest, end_ > from ? end_ - from : 0);
}

std::optional<std::uint64_t> Allocator::lowest_used() const {
    return used_.empty() ? std::nullopt : std::optional(used_.begin()->first);
}

std::optional<std::uint64_t> Allocator::end_of(std::uint64_t address) const {
    auto after = used_.upper_bound(address);
    if (after == used_.begin()) {
        return std::nullopt;
    }
    --after;
    return address < after->second ? std::optional(after->second) : std::nullopt;
}

void mark_never_written(std::byte* memory, std::size_t bytes) {
    fill_words(memory, bytes, kNeverWritten);
}

void mark_in_flight(std::byte* memory, std::size_t bytes) { fill_words(memory, bytes, kInFlight); }

Written find_mark(const std::byte* memory, std::size_t bytes, std::size_t& offset) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    const std::size_t skipped = tt::round_up(address, 8) - address;
    if (bytes < skipped + 8) {
        return Written::Yes;
    }
    const std::byte* words = memory + skipped;
    const std::size_t count = (bytes - skipped) / 8;
    // Whole blocks first, without a branch per word, so that the compiler vectorizes.
    constexpr std::size_t kBlock = 32;
    for (std::size_t begin = 0; begin < count; begin += kBlock) {
        const std::size_t end = std::min(begin + kBlock, count);
        std::uint64_t marked = 0;
        for (std::size_t i = begin; i < end; ++i) {
            std::uint64_t word;
            std::memcpy(&word, words + 8 * i, 8);
            marked |= static_cast<std::uint64_t>(word == kNeverWritten) |
                      static_cast<std::uint64_t>(word == kInFlight);
        }
        if (marked == 0) {
            continue;
        }
        for (std::size_t i = begin; i < end; ++i) {
            std::uint64_t word;
            std::memcpy(&word, words + 8 * i, 8);
            if (word == kNeverWritten || word == kInFlight) {
                offset = skipped + 8 * i;
                return word == kInFlight ? Written::InFlight : Written::Never;
            }
        }
    }
    return Written::Yes;
}

}  // namespace ttcodegen::device
