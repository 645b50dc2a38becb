#pragma once

#include <cstddef>
#include <vector>

#include "tt-metalium/buffer_page_mapping.hpp"
#include "tt-metalium/buffer_types.hpp"
#include "tt-metalium/core_coord.hpp"
#include "tt-metalium/shape.hpp"
#include "tt-metalium/shape2d.hpp"

namespace tt::tt_metal {

namespace detail {

UncompressedBufferPageMapping compute_page_mapping(const Shape& tensor_shape,
                                                   const Shape& shard_shape,
                                                   const std::vector<CoreCoord>& cores);

}  // namespace detail

/// The assignment of the pages of a sharded buffer to cores, shard by shard.
class BufferDistributionSpec {
  public:
    static BufferDistributionSpec from_shard_spec(
        Shape tensor_shape, Shape shard_shape, Shape2D page_shape,
        const CoreRangeSet& core_range_set, ShardOrientation shard_orientation,
        ShardDistributionStrategy shard_distribution_strategy =
            ShardDistributionStrategy::ROUND_ROBIN_1D);
    BufferDistributionSpec(const Shape& tensor_shape_in_pages, const Shape& shard_shape_in_pages,
                           const CoreRangeSet& core_range_set, ShardOrientation shard_orientation,
                           ShardDistributionStrategy shard_distribution_strategy =
                               ShardDistributionStrategy::ROUND_ROBIN_1D);
    BufferDistributionSpec(const Shape& tensor_shape_in_pages, const Shape& shard_shape_in_pages,
                           std::vector<CoreCoord> cores);

    const Shape& tensor_shape_in_pages() const { return tensor_shape_in_pages_; }
    const Shape& shard_shape_in_pages() const { return shard_shape_in_pages_; }
    std::size_t num_shards() const;
    std::size_t max_num_shards_per_core() const;
    std::size_t max_num_dev_pages_per_core() const;
    std::size_t num_cores() const { return cores_.size(); }
    std::size_t num_cores_with_data() const;
    const std::vector<CoreCoord>& cores() const { return cores_; }

    UncompressedBufferPageMapping compute_page_mapping() const {
        return detail::compute_page_mapping(tensor_shape_in_pages_, shard_shape_in_pages_, cores_);
    }

  private:
    void init_precomputed_data();

    Shape tensor_shape_in_pages_;
    Shape shard_shape_in_pages_;
    std::vector<CoreCoord> cores_;
    std::size_t num_shards_ = 0;
};

}  // namespace tt::tt_metal
