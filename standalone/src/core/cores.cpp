#include <algorithm>

#include "core/describe.hpp"
#include "tt-metalium/buffer.hpp"
#include "tt-metalium/core_coord.hpp"

namespace tt::tt_metal {

namespace {

std::string describe_core(const CoreCoord& core) {
    return tt::assert::detail::format_message(
        "(x={},y={})", {tt::assert::detail::text_of(core.x), tt::assert::detail::text_of(core.y)});
}

}  // namespace

CoreRange::CoreRange(const CoreCoord& point) : start_coord(point), end_coord(point) {}
CoreRange::CoreRange(const CoreCoord& start, const CoreCoord& end)
    : start_coord(start), end_coord(end) {
    TT_FATAL(end.x >= start.x && end.y >= start.y,
             "Invalid core range for start_coord: {}, end_coord: {}", describe_core(start),
             describe_core(end));
}
bool CoreRange::intersects(const CoreRange& other) const {
    return start_coord.x <= other.end_coord.x && other.start_coord.x <= end_coord.x &&
           start_coord.y <= other.end_coord.y && other.start_coord.y <= end_coord.y;
}
bool CoreRange::contains(const CoreCoord& other) const {
    return other.x >= start_coord.x && other.x <= end_coord.x && other.y >= start_coord.y &&
           other.y <= end_coord.y;
}
bool CoreRange::contains(const CoreRange& other) const {
    return contains(other.start_coord) && contains(other.end_coord);
}
std::string CoreRange::str() const {
    return tt::assert::detail::format_message(
        "[{} - {}]", {describe_core(start_coord), describe_core(end_coord)});
}
std::size_t CoreRange::size() const { return grid_size().x * grid_size().y; }
CoreCoord CoreRange::grid_size() const {
    return {end_coord.x - start_coord.x + 1, end_coord.y - start_coord.y + 1};
}

CoreRangeSet::CoreRangeSet(ttsl::Span<const CoreRange> core_ranges)
    : ranges_(core_ranges.begin(), core_ranges.end()) {
    validate_no_overlap();
}
CoreRangeSet::CoreRangeSet(const std::set<CoreRange>& core_ranges)
    : ranges_(core_ranges.begin(), core_ranges.end()) {
    validate_no_overlap();
}
CoreRangeSet::CoreRangeSet(const CoreRange& core_range) : ranges_{core_range} {}
CoreRangeSet::CoreRangeSet(ttsl::Span<const CoreCoord> core_coords)
    : ranges_(core_coords.begin(), core_coords.end()) {
    validate_no_overlap();
}
CoreRangeSet::CoreRangeSet(const CoreRangeSet& other) = default;
CoreRangeSet::CoreRangeSet(CoreRangeSet&& other) noexcept : ranges_(std::move(other.ranges_)) {}
CoreRangeSet::CoreRangeSet(std::vector<CoreRange>&& core_ranges) : ranges_(std::move(core_ranges)) {
    validate_no_overlap();
}

void CoreRangeSet::validate_no_overlap() {
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
        for (std::size_t j = i + 1; j < ranges_.size(); ++j) {
            TT_FATAL(!ranges_[i].intersects(ranges_[j]),
                     "Cannot create CoreRangeSet with specified core ranges because core ranges {} "
                     "and {} overlap!",
                     ranges_[i].str(), ranges_[j].str());
        }
    }
}

bool CoreRangeSet::empty() const { return ranges_.empty(); }
std::size_t CoreRangeSet::size() const { return ranges_.size(); }
bool CoreRangeSet::contains(const CoreCoord& other) const {
    return std::any_of(ranges_.begin(), ranges_.end(),
                       [&](const CoreRange& range) { return range.contains(other); });
}
bool CoreRangeSet::contains(const CoreRange& other) const {
    return std::any_of(ranges_.begin(), ranges_.end(),
                       [&](const CoreRange& range) { return range.contains(other); });
}
const std::vector<CoreRange>& CoreRangeSet::ranges() const { return ranges_; }
std::string CoreRangeSet::str() const {
    std::string text = "{";
    for (const CoreRange& range : ranges_) {
        text += (text.size() > 1 ? ", " : "") + range.str();
    }
    return text + "}";
}
std::uint32_t CoreRangeSet::num_cores() const {
    std::size_t cores = 0;
    for (const CoreRange& range : ranges_) {
        cores += range.size();
    }
    return static_cast<std::uint32_t>(cores);
}
CoreRange CoreRangeSet::bounding_box() const {
    TT_FATAL(!ranges_.empty(), "Cannot get bounding_box of an empty CoreRangeSet!");
    CoreCoord low = ranges_.front().start_coord;
    CoreCoord high = ranges_.front().end_coord;
    for (const CoreRange& range : ranges_) {
        low = {std::min(low.x, range.start_coord.x), std::min(low.y, range.start_coord.y)};
        high = {std::max(high.x, range.end_coord.x), std::max(high.y, range.end_coord.y)};
    }
    return {low, high};
}

bool operator==(const CoreRangeSet& a, const CoreRangeSet& b) { return a.ranges() == b.ranges(); }
bool operator!=(const CoreRangeSet& a, const CoreRangeSet& b) { return !(a == b); }

bool ShardSpec::operator==(const ShardSpec& other) const {
    return grid == other.grid && shape == other.shape && orientation == other.orientation;
}
bool ShardSpec::operator!=(const ShardSpec& other) const { return !(*this == other); }

}  // namespace tt::tt_metal
