#pragma once

// DRAM and L1 use of a device's tensors in bytes, as on hardware.

#include <cstddef>
#include <memory>
#include <mutex>

#include "ttnn/types.hpp"

namespace ttcodegen::cpu {

/// Current and peak memory use of the tensors of one device.
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

/// Memory use of a tensor and its views, until the last of them is freed.
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

/// Bytes of a tensor in device memory: whole tiles in tile layout, the shards of all cores if it is
/// sharded.
std::size_t bytes_on_device(const tt::tt_metal::TensorSpec& spec);

}  // namespace ttcodegen::cpu
