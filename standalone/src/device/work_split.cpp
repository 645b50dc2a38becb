#include "tt-metalium/work_split.hpp"

#include "core/describe.hpp"

namespace tt::tt_metal {

namespace {

/// Cores in an order that runs fastest along one axis of the grid.
class CoreOrder {
  public:
    CoreOrder(CoreCoord grid, bool row_wise)
        : row_wise_(row_wise),
          fast_(row_wise ? grid.x : grid.y),
          slow_(row_wise ? grid.y : grid.x) {}

    std::size_t size() const { return fast_ * slow_; }
    std::size_t index(CoreCoord core) const {
        return row_wise_ ? core.y * fast_ + core.x : core.x * fast_ + core.y;
    }

    /// Up to three rectangles: the rest of the first line, whole lines, the start of the last.
    CoreRangeSet range(std::size_t first, std::size_t count) const {
        std::vector<CoreRange> ranges;
        if (first % fast_ != 0 && count > fast_ - first % fast_) {
            const std::size_t taken = fast_ - first % fast_;
            ranges.push_back(rectangle(first, first + taken - 1));
            first += taken;
            count -= taken;
        }
        if (count > fast_) {
            const std::size_t taken = count / fast_ * fast_;
            ranges.push_back(rectangle(first, first + taken - 1));
            first += taken;
            count -= taken;
        }
        if (count > 0) {
            ranges.push_back(rectangle(first, first + count - 1));
        }
        return CoreRangeSet(std::move(ranges));
    }

  private:
    CoreCoord core(std::size_t index) const {
        return row_wise_ ? CoreCoord{index % fast_, index / fast_}
                         : CoreCoord{index / fast_, index % fast_};
    }
    CoreRange rectangle(std::size_t first, std::size_t last) const {
        return {core(first), core(last)};
    }

    bool row_wise_;
    std::size_t fast_;
    std::size_t slow_;
};

}  // namespace

int find_max_divisor(std::uint32_t val, std::uint32_t start_max_div) {
    // The release omits 5 and 7.
    for (std::uint32_t divisor = start_max_div; divisor >= 1; --divisor) {
        if (divisor != 7 && divisor != 5 && val % divisor == 0) {
            return static_cast<int>(divisor);
        }
    }
    return 1;
}

int find_max_block_size(std::uint32_t val, std::uint32_t max_block_size) {
    for (std::uint32_t divisor = max_block_size; divisor >= 1; --divisor) {
        if (val % divisor == 0) {
            return static_cast<int>(divisor);
        }
    }
    return 1;
}

CoreRangeSet num_cores_to_corerangeset(CoreCoord start_core, std::uint32_t target_num_cores,
                                       CoreCoord grid_size, bool row_wise) {
    TT_FATAL(start_core.x < grid_size.x && start_core.y < grid_size.y,
             "Start core must be within grid size");
    const CoreOrder order(grid_size, row_wise);
    const std::size_t first = order.index(start_core);
    TT_FATAL(target_num_cores <= order.size() - first,
             "Target number of cores {} is greater than total number of available cores {}",
             target_num_cores, order.size() - first);
    return order.range(first, target_num_cores);
}

CoreRangeSet num_cores_to_corerangeset(std::uint32_t target_num_cores, CoreCoord grid_size,
                                       bool row_wise) {
    return num_cores_to_corerangeset({0, 0}, target_num_cores, grid_size, row_wise);
}

std::tuple<std::uint32_t, CoreRangeSet, CoreRangeSet, CoreRangeSet, std::uint32_t, std::uint32_t>
split_work_to_cores(CoreCoord grid_size, std::uint32_t units_to_divide, bool row_wise) {
    if (units_to_divide == 0) {
        return {0, CoreRangeSet(), CoreRangeSet(), CoreRangeSet(), 0, 0};
    }
    const CoreOrder order(grid_size, row_wise);
    const auto cores =
        static_cast<std::uint32_t>(std::min<std::size_t>(order.size(), units_to_divide));
    const std::uint32_t with_more = units_to_divide % cores;
    const std::uint32_t units = units_to_divide / cores;
    if (with_more == 0) {
        return {cores, order.range(0, cores), order.range(0, cores), CoreRangeSet(), units, 0};
    }
    return {cores,
            order.range(0, cores),
            order.range(0, with_more),
            order.range(with_more, cores - with_more),
            units + 1,
            units};
}

}  // namespace tt::tt_metal
