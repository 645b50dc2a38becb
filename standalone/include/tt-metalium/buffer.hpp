#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "tt-metalium/buffer_distribution_spec.hpp"
#include "tt-metalium/buffer_page_mapping.hpp"
#include "tt-metalium/buffer_types.hpp"
#include "tt-metalium/core_coord.hpp"
#include "tt-metalium/hal_types.hpp"
#include "tt-metalium/sub_device_types.hpp"
#include "umd/device/types/core_coordinates.hpp"

namespace ttcodegen::device {
class EmulatedDevice;
}

namespace tt::tt_metal {

class IDevice;

/// The cores of a sharded tensor, and the height and width of one shard in elements.
struct ShardSpec {
    CoreRangeSet grid;
    std::array<std::uint32_t, 2> shape;
    ShardOrientation orientation = ShardOrientation::ROW_MAJOR;

    ShardSpec(const CoreRangeSet& core_sets_, const std::array<std::uint32_t, 2>& shard_shape_,
              const ShardOrientation& shard_orientation_ = ShardOrientation::ROW_MAJOR)
        : grid(core_sets_), shape(shard_shape_), orientation(shard_orientation_) {}

    std::uint32_t num_cores() const { return grid.num_cores(); }
    std::uint32_t numel() const { return shape[0] * shape[1]; }

    bool operator==(const ShardSpec& other) const;
    bool operator!=(const ShardSpec& other) const;
};

/// A shard specification with the shape of a page in elements and of the tensor in pages.
struct ShardSpecBuffer {
    ShardSpec tensor_shard_spec;
    std::array<std::uint32_t, 2> page_shape{};
    std::array<std::uint32_t, 2> tensor2d_shape_in_pages{};

    ShardSpecBuffer(const CoreRangeSet& core_sets_,
                    const std::array<std::uint32_t, 2>& shard_shape_,
                    const ShardOrientation& shard_orientation_,
                    const std::array<std::uint32_t, 2>& page_shape,
                    const std::array<std::uint32_t, 2>& tensor2d_shape_in_pages)
        : tensor_shard_spec(core_sets_, shard_shape_, shard_orientation_),
          page_shape(page_shape),
          tensor2d_shape_in_pages(tensor2d_shape_in_pages) {}
    ShardSpecBuffer(const ShardSpec& shard_spec, const std::array<std::uint32_t, 2>& page_shape,
                    const std::array<std::uint32_t, 2>& tensor2d_shape_in_pages)
        : tensor_shard_spec(shard_spec),
          page_shape(page_shape),
          tensor2d_shape_in_pages(tensor2d_shape_in_pages) {}

    CoreRangeSet grid() const { return tensor_shard_spec.grid; }
    std::array<std::uint32_t, 2> shape() const { return tensor_shard_spec.shape; }
    ShardOrientation orientation() const { return tensor_shard_spec.orientation; }
    void set_shard_spec(const ShardSpec& shard_spec) { tensor_shard_spec = shard_spec; }

    /// Height and width of one shard in pages.
    std::array<std::uint32_t, 2> shape_in_pages() const;
    DeviceAddr num_pages() const;
};

struct BufferConfig {
    IDevice* device;
    DeviceAddr size;       ///< Bytes.
    DeviceAddr page_size;  ///< Bytes of what is interleaved.
    BufferType buffer_type;
};

using InterleavedBufferConfig = BufferConfig;

struct ShardedBufferConfig {
    IDevice* device{};
    DeviceAddr size{};
    DeviceAddr page_size{};
    BufferType buffer_type = BufferType::L1;
    TensorMemoryLayout buffer_layout = TensorMemoryLayout::HEIGHT_SHARDED;
    ShardSpecBuffer shard_parameters;
};

/// The sharding of a buffer, if it is sharded.
class BufferShardingArgs {
  public:
    BufferShardingArgs() = default;
    BufferShardingArgs(std::nullopt_t) {}
    BufferShardingArgs(BufferDistributionSpec buffer_distribution_spec)
        : buffer_distribution_spec_(std::move(buffer_distribution_spec)),
          buffer_layout_(TensorMemoryLayout::BLOCK_SHARDED) {}
    BufferShardingArgs(std::optional<BufferDistributionSpec> buffer_distribution_spec)
        : buffer_distribution_spec_(std::move(buffer_distribution_spec)),
          buffer_layout_(buffer_distribution_spec_.has_value() ? TensorMemoryLayout::BLOCK_SHARDED
                                                               : TensorMemoryLayout::INTERLEAVED) {}
    BufferShardingArgs(ShardSpecBuffer shard_spec, TensorMemoryLayout buffer_layout)
        : shard_spec_(std::move(shard_spec)), buffer_layout_(buffer_layout) {}
    BufferShardingArgs(std::optional<ShardSpecBuffer> shard_spec, TensorMemoryLayout buffer_layout)
        : shard_spec_(std::move(shard_spec)), buffer_layout_(buffer_layout) {}
    BufferShardingArgs(std::optional<BufferDistributionSpec> buffer_distribution_spec,
                       std::optional<ShardSpecBuffer> shard_spec, TensorMemoryLayout buffer_layout)
        : buffer_distribution_spec_(std::move(buffer_distribution_spec)),
          shard_spec_(std::move(shard_spec)),
          buffer_layout_(buffer_layout) {}

    const std::optional<BufferDistributionSpec>& buffer_distribution_spec() const {
        return buffer_distribution_spec_;
    }
    const std::optional<ShardSpecBuffer>& shard_spec() const { return shard_spec_; }
    TensorMemoryLayout buffer_layout() const { return buffer_layout_; }

  private:
    std::optional<BufferDistributionSpec> buffer_distribution_spec_;
    std::optional<ShardSpecBuffer> shard_spec_;
    TensorMemoryLayout buffer_layout_ = TensorMemoryLayout::INTERLEAVED;
};

bool is_sharded(const TensorMemoryLayout& layout);

/// A part of a buffer, in bytes.
struct BufferRegion {
    DeviceAddr offset = 0;
    DeviceAddr size = 0;

    BufferRegion() = delete;
    BufferRegion(DeviceAddr offset, DeviceAddr size) : offset(offset), size(size) {}
};

/// Device memory: pages that are interleaved over banks, or shards on cores.
class Buffer final : public std::enable_shared_from_this<Buffer> {
    struct Private {
        explicit Private() = default;
    };

  public:
    /// @throws std::runtime_error if pages do not divide the size, or memory is exhausted.
    static std::shared_ptr<Buffer> create(IDevice* device, DeviceAddr size, DeviceAddr page_size,
                                          BufferType buffer_type,
                                          const BufferShardingArgs& sharding_args = std::nullopt,
                                          std::optional<bool> bottom_up = std::nullopt,
                                          std::optional<SubDeviceId> sub_device_id = std::nullopt);
    /// Creates a buffer at a given address.
    static std::shared_ptr<Buffer> create(IDevice* device, DeviceAddr address, DeviceAddr size,
                                          DeviceAddr page_size, BufferType buffer_type,
                                          const BufferShardingArgs& sharding_args = std::nullopt,
                                          std::optional<bool> bottom_up = std::nullopt,
                                          std::optional<SubDeviceId> sub_device_id = std::nullopt);

    Buffer(const Buffer& other) = delete;
    Buffer& operator=(const Buffer& other) = delete;
    Buffer(Buffer&& other) = delete;
    Buffer& operator=(Buffer&& other) = delete;
    ~Buffer();

    IDevice* device() const { return device_; }
    DeviceAddr size() const { return size_; }
    bool is_allocated() const;
    /// The address, the same in all banks.
    std::uint32_t address() const;
    DeviceAddr page_size() const;
    std::uint32_t num_pages() const;
    std::uint32_t num_dev_pages() const;
    BufferType buffer_type() const { return buffer_type_; }
    CoreType core_type() const;
    bool is_l1() const;
    bool is_dram() const;
    TensorMemoryLayout buffer_layout() const { return buffer_layout_; }
    bool bottom_up() const { return bottom_up_; }
    /// Address of a page in its bank.
    DeviceAddr page_address(DeviceAddr bank_id, DeviceAddr page_index) const;
    std::uint32_t alignment() const;
    DeviceAddr aligned_page_size() const;
    DeviceAddr aligned_size() const;
    DeviceAddr aligned_size_per_bank() const;
    const std::optional<BufferDistributionSpec>& buffer_distribution_spec() const;
    bool has_shard_spec() const { return shard_spec_.has_value(); }
    ShardSpecBuffer shard_spec() const;
    std::optional<std::uint32_t> num_cores() const;

    Buffer(IDevice* device, DeviceAddr size, DeviceAddr page_size, BufferType buffer_type,
           const BufferShardingArgs& sharding_args, std::optional<bool> bottom_up,
           std::optional<SubDeviceId> sub_device_id, bool owns_data, Private);

  private:
    friend void DeallocateBuffer(Buffer& buffer);
    void allocate_impl();
    void deallocate();

    IDevice* const device_;
    /// Expires when the device is closed, which frees the buffer's memory.
    std::weak_ptr<ttcodegen::device::EmulatedDevice> emulated_;
    const DeviceAddr size_;
    const DeviceAddr page_size_;
    const BufferType buffer_type_;
    const TensorMemoryLayout buffer_layout_;
    const bool bottom_up_;
    const bool owns_data_;
    std::optional<ShardSpecBuffer> shard_spec_;
    std::optional<BufferDistributionSpec> buffer_distribution_spec_;
    DeviceAddr address_ = 0;
    bool allocated_ = false;
};

/// The mapping of the pages of a sharded buffer to cores.
UncompressedBufferPageMapping generate_buffer_page_mapping(const Buffer& buffer);

}  // namespace tt::tt_metal
