/// The memories of an emulated device and their allocators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "device/architecture.hpp"
#include "device/l1_addresses.hpp"

namespace ttcodegen::device {

/// Pages that the system allocates on first access; freed with the object.
class Mapping {
  public:
    Mapping() = default;
    /// @param holds_address The object owns the address range and frees it at its end.
    Mapping(std::byte* memory, std::size_t bytes, int file = -1, bool holds_address = true)
        : memory_(memory), bytes_(bytes), file_(file), holds_address_(holds_address) {}
    Mapping(Mapping&& other) noexcept;
    Mapping& operator=(Mapping&& other) noexcept;
    ~Mapping();

    std::byte* data() const { return memory_; }
    std::size_t size() const { return bytes_; }
    /// The file of a shared mapping, so that it can be mapped a second time; -1 if there is
    /// none.
    int file() const { return file_; }

  private:
    std::byte* memory_ = nullptr;
    std::size_t bytes_ = 0;
    int file_ = -1;
    bool holds_address_ = true;
};

/// L1 of all workers, below 2 GiB so that kernels can hold addresses in 32 bits, and DRAM.
class Memory {
  public:
    /// @throws std::runtime_error if the system has not enough memory.
    explicit Memory(const Architecture& architecture);
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    Memory(Memory&&) = delete;
    Memory& operator=(Memory&&) = delete;

    /// The addresses of L1, which all chips of the process share. Users of L1 take turns
    /// there.
    L1Addresses& addresses() const { return addresses_; }
    /// Maps this L1 to the addresses, if that of another chip is mapped.
    /// @throws std::runtime_error if the system refuses.
    void map_l1() {
        if (addresses_.mapped() != mapped_) {
            mapped_ = addresses_.map(l1_.file(), l1_.size());
        }
    }

    std::byte* l1(std::uint32_t worker) const;
    std::byte* dram(std::uint32_t bank) const;
    const Mapping& l1_arena() const { return l1_; }

  private:
    const Architecture& architecture_;
    L1Addresses& addresses_;
    std::uint64_t mapped_ = ~std::uint64_t{0};
    Mapping l1_;
    Mapping dram_;
};

/// Allocates addresses of one kind of memory; an allocation has the same addresses in every bank.
class Allocator {
  public:
    enum class Direction { Up, Down };

    Allocator(std::uint64_t begin, std::uint64_t end, std::uint32_t alignment, Direction direction)
        : begin_(begin), end_(end), alignment_(alignment), direction_(direction) {}

    /// First fit from the bottom or the top.
    /// @param bytes In each bank; rounded up to the alignment.
    /// @return Nothing if no gap is large enough.
    std::optional<std::uint64_t> allocate(std::uint64_t bytes);
    std::optional<std::uint64_t> allocate(std::uint64_t bytes, Direction direction);
    /// Allocates addresses chosen by the caller, even if they overlap others.
    void claim(std::uint64_t address, std::uint64_t bytes);
    void release(std::uint64_t address);

    std::uint64_t begin() const { return begin_; }
    std::uint64_t end() const { return end_; }
    std::uint64_t largest_free() const;
    /// The lowest address in use, if any is.
    std::optional<std::uint64_t> lowest_used() const;
    /// The end of the allocation that contains `address`; nothing if none does.
    std::optional<std::uint64_t> end_of(std::uint64_t address) const;
    /// Calls `visit(begin, end)` for each allocation, in ascending order.
    template <typename Visit>
    void for_each(Visit visit) const {
        for (const auto& [begin, end] : used_) {
            visit(begin, end);
        }
    }

  private:
    std::uint64_t begin_;
    std::uint64_t end_;
    std::uint32_t alignment_;
    Direction direction_;
    std::map<std::uint64_t, std::uint64_t> used_;  ///< Start to end.
};

/// Marks memory as never written; see kNeverWritten.
void mark_never_written(std::byte* memory, std::size_t bytes);
void mark_in_flight(std::byte* memory, std::size_t bytes);

enum class Written { Yes, Never, InFlight };
/// Searches for a mark in any eight bytes of this memory at a multiple of eight.
/// @param offset On return the first marked byte.
Written find_mark(const std::byte* memory, std::size_t bytes, std::size_t& offset);

}  // namespace ttcodegen::device
