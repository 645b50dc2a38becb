#pragma once

// The L1 of the cores as managed by tt-metal's allocator: one address space for all banks, tensors
// from the top down, circular buffers of a program from the bottom up (measured, tt-metal 0.70.1;
// docs/library-rules.md).

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "tt-metalium/mesh_device.hpp"
#include "ttnn/types.hpp"

namespace ttcodegen::cpu {

/// Allocations of each bank, by address.
class L1Banks {
  public:
    /// @param base The begin of the memory of programs.
    /// @param top The end of the memory of tensors.
    L1Banks(std::size_t base, std::size_t top) : base_(base), top_(top) {}

    /// The address of a new allocation, the highest that is free; nothing if it fits no gap.
    std::optional<std::size_t> allocate(std::size_t bytes);
    void free(std::size_t address);
    /// The lowest address of a tensor, if there is one.
    std::optional<std::size_t> lowest() const;
    std::size_t base() const { return base_; }
    std::size_t capacity() const { return top_ - base_; }
    std::size_t allocated() const;

  private:
    std::size_t base_;
    std::size_t top_;
    mutable std::mutex mutex_;
    /// Sizes in bytes by address.
    std::map<std::size_t, std::size_t> taken_;
};

/// The allocation of a tensor in the banks.
class L1Part {
  public:
    L1Part(std::shared_ptr<L1Banks> banks, std::size_t address)
        : banks_(std::move(banks)), address_(address) {}
    ~L1Part() { banks_->free(address_); }
    L1Part(const L1Part&) = delete;
    L1Part& operator=(const L1Part&) = delete;
    L1Part(L1Part&&) = delete;
    L1Part& operator=(L1Part&&) = delete;

  private:
    std::shared_ptr<L1Banks> banks_;
    std::size_t address_;
};

/// The size of a 32x32 tile in bytes.
std::size_t tile_bytes(tt::tt_metal::DataType dtype);

/// Bytes of a tensor in each L1 bank; none if it is in DRAM.
std::size_t l1_bank_bytes(const tt::tt_metal::TensorSpec& spec, std::size_t banks);

/// Allocates L1 for a tensor; null if it is in DRAM. Refuses a tensor that does not fit.
std::unique_ptr<L1Part> take_l1(const tt::tt_metal::TensorSpec& spec,
                                tt::tt_metal::distributed::MeshDevice* device);

/// Bytes between the begin of the memory of programs and the lowest tensor.
std::size_t l1_below_tensors(tt::tt_metal::distributed::MeshDevice* device);

/// Refuses a program whose circular buffers do not fit below the tensors.
void require_circular_buffers(tt::tt_metal::distributed::MeshDevice* device, std::size_t bytes);

}  // namespace ttcodegen::cpu
