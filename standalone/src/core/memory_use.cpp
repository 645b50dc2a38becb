#include "core/memory_use.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "core/l1.hpp"
#include "core/tensor_data.hpp"
#include "mesh/ranks.hpp"

namespace ttcodegen::cpu {

MemoryUse::Bytes& MemoryUse::of(BufferType memory) {
    return memory == BufferType::L1 || memory == BufferType::L1_SMALL ? l1_ : dram_;
}

void MemoryUse::take(BufferType memory, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    Bytes& use = of(memory);
    use.allocated += bytes;
    use.peak = std::max(use.peak, use.allocated);
}

void MemoryUse::give(BufferType memory, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    of(memory).allocated -= bytes;
}

void MemoryUse::report() const {
    const char* path = std::getenv("TTCODEGEN_MEMORY_REPORT");
    if (path == nullptr || *path == '\0' || !is_first_rank()) {
        return;
    }
    const std::lock_guard lock(mutex_);
    std::ofstream file(path, std::ios::trunc);
    file << "{\"peak_bytes\": {\"dram\": " << dram_.peak << ", \"l1\": " << l1_.peak << "}}\n";
    file.flush();
    TT_FATAL(file.good(), "Cannot write the report '{}' (TTCODEGEN_MEMORY_REPORT)", path);
}

MemoryShare::MemoryShare(std::shared_ptr<MemoryUse> use, const TensorSpec& spec)
    : use_(std::move(use)),
      memory_(spec.memory_config().buffer_type()),
      bytes_(bytes_on_device(spec)) {
    use_->take(memory_, bytes_);
}

MemoryShare::~MemoryShare() { use_->give(memory_, bytes_); }

std::size_t bytes_on_device(const TensorSpec& spec) {
    std::size_t height = spec.physical_shape().height();
    std::size_t width = spec.physical_shape().width();
    std::size_t shards = 1;
    if (const auto& shard_spec = spec.memory_config().shard_spec()) {
        height = shard_spec->shape[0];
        width = shard_spec->shape[1];
        shards = shard_spec->num_cores();
    }
    if (spec.layout() == Layout::TILE) {
        return shards * (height / kTileSide) * (width / kTileSide) * tile_bytes(spec.data_type());
    }
    return shards * height * width * stored_size(spec.data_type());
}

}  // namespace ttcodegen::cpu
