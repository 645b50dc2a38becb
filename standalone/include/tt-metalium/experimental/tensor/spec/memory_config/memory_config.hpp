#pragma once

#include <optional>
#include <utility>

#include "tt-metalium/experimental/tensor/tensor_types.hpp"

namespace tt::tt_metal {

/// Memory and sharding of a tensor; interleaved DRAM by default.
class MemoryConfig final {
  public:
    MemoryConfig() = default;
    explicit MemoryConfig(TensorMemoryLayout memory_layout,
                          BufferType buffer_type = BufferType::DRAM,
                          std::optional<ShardSpec> shard_spec = std::nullopt);
    explicit MemoryConfig(BufferType buffer_type,
                          std::optional<NdShardSpec> nd_shard_spec = std::nullopt);
    // Nearly every function of the API copies one, shards and all: it is not repeated in each.
    [[gnu::noinline]] MemoryConfig(const MemoryConfig& other) = default;
    [[gnu::noinline]] MemoryConfig& operator=(const MemoryConfig& other) = default;
    [[gnu::noinline]] MemoryConfig(MemoryConfig&& other) noexcept = default;
    [[gnu::noinline]] MemoryConfig& operator=(MemoryConfig&& other) noexcept = default;
    [[gnu::noinline]] ~MemoryConfig() = default;

    TensorMemoryLayout memory_layout() const { return memory_layout_; }
    BufferType buffer_type() const { return buffer_type_; }
    const std::optional<ShardSpec>& shard_spec() const { return shard_spec_; }
    const std::optional<NdShardSpec>& nd_shard_spec() const { return nd_shard_spec_; }
    bool created_with_nd_shard_spec() const { return created_with_nd_shard_spec_; }

    MemoryConfig with_shard_spec(std::optional<ShardSpec> shard_spec) const {
        return MemoryConfig(memory_layout_, buffer_type_, std::move(shard_spec));
    }

    bool is_sharded() const;
    bool is_l1() const;
    bool is_dram() const;

  private:
    TensorMemoryLayout memory_layout_ = TensorMemoryLayout::INTERLEAVED;
    BufferType buffer_type_ = BufferType::DRAM;
    std::optional<ShardSpec> shard_spec_ = std::nullopt;
    std::optional<NdShardSpec> nd_shard_spec_ = std::nullopt;
    bool created_with_nd_shard_spec_ = false;
};

bool operator==(const MemoryConfig& config_a, const MemoryConfig& config_b);
bool operator!=(const MemoryConfig& config_a, const MemoryConfig& config_b);

}  // namespace tt::tt_metal
