#pragma once

// How many bytes of DRAM and L1 the tensors of a device take, as on a card.

#include <cstddef>
#include <memory>
#include <mutex>

#include "ttnn/types.hpp"

namespace ttcodegen::cpu {

/// What the tensors of one device take, and the most that they took at a time.
class MemoryUse {
  public:
    void take(tt::tt_metal::BufferType memory, std::size_t bytes);
    void give(tt::tt_metal::BufferType memory, std::size_t bytes);

    /// Writes the peaks as JSON to the file that TTCODEGEN_MEMORY_REPORT names, if it is set.
    void report() const;

  private:
    struct Bytes {
        std::size_t allocated = 0;
        std::size_t peak = 0;
    };
    Bytes& of(tt::tt_metal::BufferType memory);

    mutable std::mutex mutex_;
    Bytes dram_;
    Bytes l1_;
};

/// The bytes that a tensor and its views take together, for as long as one of them has memory.
class MemoryShare {
  public:
    MemoryShare(std::shared_ptr<MemoryUse> use, const tt::tt_metal::TensorSpec& spec);
    ~MemoryShare();
    MemoryShare(const MemoryShare&) = delete;
    MemoryShare& operator=(const MemoryShare&) = delete;
    MemoryShare(MemoryShare&&) = delete;
    MemoryShare& operator=(MemoryShare&&) = delete;

  private:
    std::shared_ptr<MemoryUse> use_;
    tt::tt_metal::BufferType memory_;
    std::size_t bytes_;
};

/// Bytes of a tensor in its memory: whole tiles in tile layout, the shards of all cores if it is
/// sharded.
std::size_t bytes_on_device(const tt::tt_metal::TensorSpec& spec);

}  // namespace ttcodegen::cpu
