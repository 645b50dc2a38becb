/// Mapping of the pages of a sharded buffer to cores.
#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/describe.hpp"
#include "tt-metalium/buffer.hpp"
#include "tt-metalium/buffer_distribution_spec.hpp"

namespace tt::tt_metal {

namespace {

using Sizes = std::vector<std::size_t>;

std::size_t divide_up(std::size_t value, std::size_t divisor) {
    return (value + divisor - 1) / divisor;
}

Sizes sizes_of(const Shape& shape) { return {shape.cbegin(), shape.cend()}; }

/// Row-major index of `coordinates` in a box of `sizes`.
std::size_t linear_index(const Sizes& coordinates, const Sizes& sizes) {
    std::size_t index = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        index = index * sizes[i] + coordinates[i];
    }
    return index;
}

/// The coordinates of a row-major index.
Sizes coordinates_of(std::size_t index, const Sizes& sizes) {
    Sizes coordinates(sizes.size());
    for (std::size_t i = sizes.size(); i-- > 0;) {
        coordinates[i] = index % sizes[i];
        index /= sizes[i];
    }
    return coordinates;
}

std::vector<CoreCoord> cores_in_order(const CoreRangeSet& cores, ShardOrientation orientation) {
    std::vector<CoreCoord> all;
    for (const CoreRange& range : cores.ranges()) {
        const CoreCoord start = range.start_coord;
        const CoreCoord grid = range.grid_size();
        const bool by_rows = orientation == ShardOrientation::ROW_MAJOR;
        const std::size_t inner = by_rows ? grid.x : grid.y;
        for (std::size_t i = 0; i < range.size(); ++i) {
            const std::size_t fast = i % inner;
            const std::size_t slow = i / inner;
            all.push_back(by_rows ? CoreCoord{start.x + fast, start.y + slow}
                                  : CoreCoord{start.x + slow, start.y + fast});
        }
    }
    return all;
}

Shape in_pages(Shape shape, const Shape2D& page_shape) {
    if (shape.rank() >= 1) {
        shape[-1] = static_cast<std::uint32_t>(divide_up(shape[-1], page_shape.width()));
    }
    if (shape.rank() >= 2) {
        shape[-2] = static_cast<std::uint32_t>(divide_up(shape[-2], page_shape.height()));
    }
    return shape;
}

/// Cores of a two-dimensional distribution: the corner of the grid that has shards.
std::vector<CoreCoord> grid_cores(const Shape& tensor, const Shape& shard,
                                  const CoreRangeSet& cores, ShardOrientation orientation) {
    TT_FATAL(shard.rank() <= 2, "2D grid distribution is only supported for 2D sharding!");
    TT_FATAL(cores.ranges().size() == 1,
             "2D grid distribution is only supported for one contiguous core grid!");
    const CoreRange grid = cores.ranges()[0];
    const std::size_t height = tensor.volume() == 0 ? 0 : tensor.volume() / tensor[-1];
    std::size_t along_width = std::max<std::size_t>(divide_up(tensor[-1], shard[-1]), 1);
    std::size_t along_height = std::max<std::size_t>(divide_up(height, shard[-2]), 1);
    if (orientation != ShardOrientation::ROW_MAJOR) {
        std::swap(along_width, along_height);
    }
    TT_FATAL(along_width <= grid.grid_size().x,
             "Number of shards along width must not exceed core grid width!");
    TT_FATAL(along_height <= grid.grid_size().y,
             "Number of shards along height must not exceed core grid height!");
    const CoreRange used(grid.start_coord, {grid.start_coord.x + along_width - 1,
                                            grid.start_coord.y + along_height - 1});
    return cores_in_order(CoreRangeSet(used), orientation);
}

/// Dimensions that no shard divides are folded into the following one, as in the release: kernels
/// are passed the folded shapes.
std::pair<Shape, Shape> fold_shapes(const Shape& tensor_shape, const Shape& shard_shape) {
    TT_FATAL(tensor_shape.rank() >= 1, "Tensor rank must be at least 1!");
    TT_FATAL(shard_shape.rank() >= 1, "Shard rank must be at least 1!");
    TT_FATAL(shard_shape.volume() != 0, "Shard shape must have non zero volume!");
    TT_FATAL(tensor_shape.rank() >= shard_shape.rank(),
             "Tensor shape rank ({}) can't be less than shard shape rank ({})!",
             tensor_shape.rank(), shard_shape.rank());
    ttsl::SmallVector<std::uint32_t> tensor;
    ttsl::SmallVector<std::uint32_t> shard;
    bool whole_so_far = false;
    bool last_divides = false;
    std::uint64_t tensor_volume = 1;
    std::uint64_t shard_volume = 1;
    const auto rank = static_cast<std::int32_t>(shard_shape.rank());
    for (std::int32_t dim = -1; dim >= -rank; --dim) {
        const std::uint32_t tensor_size = tensor_shape[dim];
        const std::uint32_t shard_size = shard_shape[dim];
        if (dim < -1 && (whole_so_far || (shard_size == 1 && last_divides))) {
            tensor.data()[tensor.size() - 1] *= tensor_size;
            shard.data()[shard.size() - 1] *= shard_size;
        } else {
            tensor.push_back(tensor_size);
            shard.push_back(shard_size);
            whole_so_far = true;
        }
        whole_so_far = whole_so_far && tensor_size == shard_size;
        last_divides = tensor_size % shard_size == 0;
        tensor_volume *= tensor_size;
        shard_volume *= shard_size;
        if (tensor_volume == tensor_shape.volume() && shard_volume == shard_shape.volume()) {
            break;
        }
    }
    for (std::int32_t dim = -rank - 1; dim >= -static_cast<std::int32_t>(tensor_shape.rank());
         --dim) {
        tensor.data()[tensor.size() - 1] *= tensor_shape[dim];
    }
    std::reverse(tensor.begin(), tensor.end());
    std::reverse(shard.begin(), shard.end());
    return {Shape(std::move(tensor)), Shape(std::move(shard))};
}

/// Pages of a two-dimensional tensor, shard by shard, in the order of ttnn's layouts.
class ShardedPages {
  public:
    explicit ShardedPages(const Buffer& buffer)
        : spec_(buffer.shard_spec()),
          by_height_(buffer.buffer_layout() == TensorMemoryLayout::HEIGHT_SHARDED),
          shard_(spec_.shape_in_pages()),
          tensor_(spec_.tensor2d_shape_in_pages) {}

    std::vector<std::uint32_t> shard(std::size_t index) const {
        std::vector<std::uint32_t> pages(std::size_t{shard_[0]} * shard_[1],
                                         UncompressedBufferPageMapping::PADDING);
        if (by_height_) {
            // Shards take whole runs of pages, independent of the tensor's width.
            const std::size_t total = std::size_t{tensor_[0]} * tensor_[1];
            for (std::size_t i = 0; i < pages.size() && index * pages.size() + i < total; ++i) {
                pages[i] = static_cast<std::uint32_t>(index * pages.size() + i);
            }
            return pages;
        }
        const std::size_t columns = shard_[1] == 0 ? 1 : divide_up(tensor_[1], shard_[1]);
        const std::size_t top = index / columns * shard_[0];
        const std::size_t left = index % columns * shard_[1];
        for (std::size_t row = 0; row < shard_[0] && top + row < tensor_[0]; ++row) {
            for (std::size_t column = 0; column < shard_[1] && left + column < tensor_[1];
                 ++column) {
                pages[row * shard_[1] + column] =
                    static_cast<std::uint32_t>((top + row) * tensor_[1] + left + column);
            }
        }
        return pages;
    }

  private:
    ShardSpecBuffer spec_;
    bool by_height_;
    std::array<std::uint32_t, 2> shard_;
    std::array<std::uint32_t, 2> tensor_;
};

}  // namespace

namespace detail {

UncompressedBufferPageMapping compute_page_mapping(const Shape& tensor_shape,
                                                   const Shape& shard_shape,
                                                   const std::vector<CoreCoord>& cores) {
    UncompressedBufferPageMapping mapping;
    mapping.all_cores = cores;
    if (tensor_shape.volume() == 0) {
        return mapping;
    }
    const Sizes tensor = sizes_of(tensor_shape);
    const Sizes shard = sizes_of(shard_shape);
    Sizes grid(tensor.size());
    for (std::size_t i = 0; i < grid.size(); ++i) {
        grid[i] = divide_up(tensor[i], shard[i]);
    }
    const std::size_t num_shards =
        std::accumulate(grid.begin(), grid.end(), std::size_t{1}, std::multiplies<>());
    const std::size_t shards_per_core = divide_up(num_shards, cores.size());
    const std::size_t shard_pages = shard_shape.volume();
    mapping.core_host_page_indices.assign(
        cores.size(), std::vector<std::uint32_t>(shards_per_core * shard_pages,
                                                 UncompressedBufferPageMapping::PADDING));
    for (std::size_t page = 0; page < tensor_shape.volume(); ++page) {
        const Sizes at = coordinates_of(page, tensor);
        Sizes shard_at(at.size());
        Sizes within(at.size());
        for (std::size_t i = 0; i < at.size(); ++i) {
            shard_at[i] = at[i] / shard[i];
            within[i] = at[i] % shard[i];
        }
        const std::size_t id = linear_index(shard_at, grid);
        mapping.core_host_page_indices[id % cores.size()][id / cores.size() * shard_pages +
                                                          linear_index(within, shard)] =
            static_cast<std::uint32_t>(page);
    }
    return mapping;
}

}  // namespace detail

BufferDistributionSpec BufferDistributionSpec::from_shard_spec(
    Shape tensor_shape, Shape shard_shape, Shape2D page_shape, const CoreRangeSet& core_range_set,
    ShardOrientation shard_orientation, ShardDistributionStrategy shard_distribution_strategy) {
    return {in_pages(std::move(tensor_shape), page_shape),
            in_pages(std::move(shard_shape), page_shape), core_range_set, shard_orientation,
            shard_distribution_strategy};
}

BufferDistributionSpec::BufferDistributionSpec(
    const Shape& tensor_shape_in_pages, const Shape& shard_shape_in_pages,
    const CoreRangeSet& core_range_set, ShardOrientation shard_orientation,
    ShardDistributionStrategy shard_distribution_strategy)
    : cores_(shard_distribution_strategy == ShardDistributionStrategy::ROUND_ROBIN_1D
                 ? cores_in_order(core_range_set, shard_orientation)
                 : grid_cores(tensor_shape_in_pages, shard_shape_in_pages, core_range_set,
                              shard_orientation)) {
    std::tie(tensor_shape_in_pages_, shard_shape_in_pages_) =
        fold_shapes(tensor_shape_in_pages, shard_shape_in_pages);
    init_precomputed_data();
}

BufferDistributionSpec::BufferDistributionSpec(const Shape& tensor_shape_in_pages,
                                               const Shape& shard_shape_in_pages,
                                               std::vector<CoreCoord> cores)
    : cores_(std::move(cores)) {
    std::tie(tensor_shape_in_pages_, shard_shape_in_pages_) =
        fold_shapes(tensor_shape_in_pages, shard_shape_in_pages);
    init_precomputed_data();
}

void BufferDistributionSpec::init_precomputed_data() {
    TT_FATAL(tensor_shape_in_pages_.volume() == 0 || !cores_.empty(),
             "Can't distribute non zero volume tensor over an empty set of cores");
    num_shards_ = tensor_shape_in_pages_.volume() == 0 ? 0 : 1;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(tensor_shape_in_pages_.rank()); ++i) {
        num_shards_ *= divide_up(tensor_shape_in_pages_[i], shard_shape_in_pages_[i]);
    }
}

std::size_t BufferDistributionSpec::num_shards() const { return num_shards_; }
std::size_t BufferDistributionSpec::num_cores_with_data() const {
    return std::min(num_cores(), num_shards());
}
std::size_t BufferDistributionSpec::max_num_shards_per_core() const {
    return cores_.empty() ? 0 : divide_up(num_shards(), cores_.size());
}
std::size_t BufferDistributionSpec::max_num_dev_pages_per_core() const {
    return max_num_shards_per_core() * shard_shape_in_pages_.volume();
}

UncompressedBufferPageMapping generate_buffer_page_mapping(const Buffer& buffer) {
    if (buffer.size() == 0) {
        return {};
    }
    if (buffer.buffer_distribution_spec()) {
        return buffer.buffer_distribution_spec()->compute_page_mapping();
    }
    UncompressedBufferPageMapping mapping;
    const ShardSpecBuffer spec = buffer.shard_spec();
    mapping.all_cores = cores_in_order(spec.grid(), spec.orientation());
    const ShardedPages pages(buffer);
    for (std::size_t i = 0; i < mapping.all_cores.size(); ++i) {
        mapping.core_host_page_indices.push_back(pages.shard(i));
    }
    return mapping;
}

}  // namespace tt::tt_metal
