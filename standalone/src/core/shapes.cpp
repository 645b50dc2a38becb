#include <numeric>

#include "core/describe.hpp"
#include "tt-metalium/mesh_coord.hpp"
#include "tt-metalium/shape2d.hpp"
#include "ttnn/tensor/layout/alignment.hpp"

namespace tt::tt_metal {

namespace detail {

void normalized_index_out_of_range(std::int32_t index, std::int32_t full_size,
                                   std::int32_t orig_size) {
    TT_THROW("Index is out of bounds for the dimension: index {} must be in range [{}, {}]", index,
             -full_size, orig_size - 1);
}

}  // namespace detail

// Ranks below 4 get leading ones, so that shape[-4] is valid for any shape.
void ShapeBase::init() {
    constexpr std::size_t kReadableRank = 4;
    original_size_ = value_.size();
    if (original_size_ < kReadableRank) {
        const Container ones(kReadableRank - original_size_, 1);
        value_.insert(value_.begin(), ones.begin(), ones.end());
    }
}

std::size_t ShapeBase::size() const { return original_size_; }
bool ShapeBase::empty() const { return original_size_ == 0; }
ShapeBase::Container::const_iterator ShapeBase::cbegin() const {
    return value_.cend() - static_cast<std::ptrdiff_t>(original_size_);
}
ShapeBase::Container::const_iterator ShapeBase::cend() const { return value_.cend(); }
ShapeBase::Container::const_iterator ShapeBase::begin() const { return cbegin(); }
ShapeBase::Container::const_iterator ShapeBase::end() const { return cend(); }
ttsl::Span<const std::uint32_t> ShapeBase::view() const { return {cbegin(), cend()}; }

bool ShapeBase::operator==(const ShapeBase& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
}
bool ShapeBase::operator==(const Container& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
}
bool ShapeBase::operator==(const std::vector<std::uint32_t>& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
}

bool Shape::operator==(const Shape& other) const { return ShapeBase::operator==(other); }
bool Shape::operator==(const ShapeBase::Container& other) const {
    return ShapeBase::operator==(other);
}
std::size_t Shape::rank() const { return size(); }
std::uint64_t Shape::volume() const {
    return std::accumulate(begin(), end(), std::uint64_t{1}, std::multiplies<>());
}
std::uint32_t Shape::get_normalized_index(std::int64_t index) const {
    const auto signed_rank = static_cast<std::int64_t>(rank());
    TT_FATAL(index >= -signed_rank && index < signed_rank,
             "Index is out of bounds for the rank, should be between {} and {} however is {}",
             -signed_rank, signed_rank - 1, index);
    return static_cast<std::uint32_t>(index < 0 ? index + signed_rank : index);
}
std::array<std::uint32_t, 4> Shape::to_array_4D() const {
    TT_FATAL(rank() <= 4, "A shape of rank {} does not fit four dimensions", rank());
    return {(*this)[-4], (*this)[-3], (*this)[-2], (*this)[-1]};
}
Shape Shape::to_rank(std::size_t new_rank) const {
    ttsl::SmallVector<std::uint32_t> sizes(begin(), end());
    while (sizes.size() > new_rank) {
        TT_FATAL(sizes.front() == 1, "Can't convert shape rank: dimension 0 is {}", sizes.front());
        sizes.erase(sizes.begin());
    }
    if (sizes.size() < new_rank) {
        const ttsl::SmallVector<std::uint32_t> ones(new_rank - sizes.size(), 1);
        sizes.insert(sizes.begin(), ones.begin(), ones.end());
    }
    return Shape(sizes);
}

bool Alignment::operator==(const Alignment& other) const { return ShapeBase::operator==(other); }
bool Alignment::operator==(const ttsl::SmallVector<std::uint32_t>& other) const {
    return ShapeBase::operator==(other);
}

Shape2D::Shape2D(std::size_t height, std::size_t width) : height_(height), width_(width) {}
Shape2D::Shape2D(const std::pair<std::size_t, std::size_t>& size)
    : Shape2D(size.first, size.second) {}
Shape2D::Shape2D(const std::array<std::size_t, 2>& size) : Shape2D(size[0], size[1]) {}
Shape2D::Shape2D(const std::array<std::uint32_t, 2>& size) : Shape2D(size[0], size[1]) {}
Shape2D::operator std::pair<std::size_t, std::size_t>() const { return {height_, width_}; }
Shape2D::operator std::array<std::size_t, 2>() const { return {height_, width_}; }
Shape2D::operator std::array<std::uint32_t, 2>() const {
    return {static_cast<std::uint32_t>(height_), static_cast<std::uint32_t>(width_)};
}
Shape2D Shape2D::operator*(std::size_t scalar) const { return {height_ * scalar, width_ * scalar}; }
bool Shape2D::operator==(const Shape2D& other) const {
    return height_ == other.height_ && width_ == other.width_;
}
std::size_t Shape2D::height() const { return height_; }
std::size_t Shape2D::width() const { return width_; }

namespace distributed {

MeshShape::MeshShape(std::uint32_t s) : MeshShape({s}) {}
MeshShape::MeshShape(std::uint32_t s0, std::uint32_t s1) : MeshShape({s0, s1}) {}
MeshShape::MeshShape(std::uint32_t s0, std::uint32_t s1, std::uint32_t s2)
    : MeshShape({s0, s1, s2}) {}
MeshShape::MeshShape(const ttsl::SmallVector<std::uint32_t>& shape) : ShapeBase(shape) {
    compute_strides();
}
MeshShape::MeshShape(ttsl::SmallVector<std::uint32_t>&& shape) : ShapeBase(std::move(shape)) {
    compute_strides();
}
MeshShape::MeshShape(std::initializer_list<std::uint32_t> ilist) : ShapeBase(ilist) {
    compute_strides();
}
MeshShape::MeshShape(ttsl::Span<const std::uint32_t> span) : ShapeBase(span) { compute_strides(); }

void MeshShape::compute_strides() {
    strides_.resize(dims());
    std::size_t stride = 1;
    for (std::size_t i = dims(); i-- > 0;) {
        strides_[i] = stride;
        stride *= begin()[i];
    }
}
std::size_t MeshShape::dims() const { return size(); }
std::size_t MeshShape::get_stride(std::size_t dim) const { return strides_[dim]; }
std::size_t MeshShape::mesh_size() const {
    return std::accumulate(begin(), end(), std::size_t{1}, std::multiplies<>());
}
bool operator==(const MeshShape& lhs, const MeshShape& rhs) {
    return static_cast<const ShapeBase&>(lhs) == static_cast<const ShapeBase&>(rhs);
}
bool operator!=(const MeshShape& lhs, const MeshShape& rhs) { return !(lhs == rhs); }

MeshCoordinate::MeshCoordinate(std::uint32_t c) : value_({c}) {}
MeshCoordinate::MeshCoordinate(std::uint32_t c0, std::uint32_t c1) : value_({c0, c1}) {}
MeshCoordinate::MeshCoordinate(std::uint32_t c0, std::uint32_t c1, std::uint32_t c2)
    : value_({c0, c1, c2}) {}
MeshCoordinate::MeshCoordinate(ttsl::Span<const std::uint32_t> coords)
    : value_(coords.begin(), coords.end()) {}
MeshCoordinate MeshCoordinate::zero_coordinate(std::size_t dimensions) {
    MeshCoordinate zero(0);
    zero.value_ = ttsl::SmallVector<std::uint32_t>(dimensions, 0);
    return zero;
}
std::size_t MeshCoordinate::dims() const { return value_.size(); }
ttsl::Span<const std::uint32_t> MeshCoordinate::coords() const {
    return {value_.data(), value_.size()};
}
std::uint32_t MeshCoordinate::operator[](std::int32_t dim) const {
    return value_[static_cast<std::size_t>(
        tt_metal::detail::normalized_index(dim, value_.size(), value_.size()))];
}
bool operator==(const MeshCoordinate& lhs, const MeshCoordinate& rhs) {
    return lhs.value_ == rhs.value_;
}
bool operator!=(const MeshCoordinate& lhs, const MeshCoordinate& rhs) { return !(lhs == rhs); }

MeshCoordinateRange::MeshCoordinateRange(const MeshCoordinate& start, const MeshCoordinate& end)
    : start_(start), end_(end) {
    TT_FATAL(start.dims() == end.dims(), "The corners of a range have {} and {} dimensions",
             start.dims(), end.dims());
    for (std::size_t i = 0; i < start.dims(); ++i) {
        TT_FATAL(start.coords()[i] <= end.coords()[i], "The start of a range is after its end");
    }
}
MeshCoordinateRange::MeshCoordinateRange(const MeshShape& shape)
    : start_(MeshCoordinate::zero_coordinate(shape.dims())), end_(start_) {
    ttsl::SmallVector<std::uint32_t> last(shape.dims(), 0);
    for (std::size_t i = 0; i < last.size(); ++i) {
        last[i] = shape[static_cast<std::int32_t>(i)] - 1;
    }
    end_ = MeshCoordinate(ttsl::Span<const std::uint32_t>(last.data(), last.size()));
}
MeshCoordinateRange::MeshCoordinateRange(const MeshCoordinate& coord)
    : start_(coord), end_(coord) {}

std::size_t MeshCoordinateRange::dims() const { return start_.dims(); }
const MeshCoordinate& MeshCoordinateRange::start_coord() const { return start_; }
const MeshCoordinate& MeshCoordinateRange::end_coord() const { return end_; }
bool MeshCoordinateRange::contains(const MeshCoordinate& coord) const {
    return intersects(MeshCoordinateRange(coord));
}
bool MeshCoordinateRange::intersects(const MeshCoordinateRange& range) const {
    bool meet = dims() == range.dims();
    for (std::size_t i = 0; meet && i < dims(); ++i) {
        meet = start_.coords()[i] <= range.end_.coords()[i] &&
               range.start_.coords()[i] <= end_.coords()[i];
    }
    return meet;
}
bool operator==(const MeshCoordinateRange& lhs, const MeshCoordinateRange& rhs) {
    return lhs.start_ == rhs.start_ && lhs.end_ == rhs.end_;
}
bool operator!=(const MeshCoordinateRange& lhs, const MeshCoordinateRange& rhs) {
    return !(lhs == rhs);
}

}  // namespace distributed

}  // namespace tt::tt_metal

std::size_t std::hash<tt::tt_metal::distributed::MeshCoordinateRange>::operator()(
    const tt::tt_metal::distributed::MeshCoordinateRange& range) const noexcept {
    std::size_t hash = 0;
    for (const auto* corner : {&range.start_coord(), &range.end_coord()}) {
        for (const std::uint32_t coordinate : corner->coords()) {
            hash = hash * 31 + coordinate;
        }
    }
    return hash;
}
