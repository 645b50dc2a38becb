#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tt-metalium/shape_base.hpp"
#include "tt_stl/small_vector.hpp"

namespace tt::tt_metal {

/// The shape of a tensor, rank 0 to 8.
class Shape final : protected ShapeBase {
  public:
    using ShapeBase::ShapeBase;
    using ShapeBase::operator[];
    using ShapeBase::begin;
    using ShapeBase::cbegin;
    using ShapeBase::cend;
    using ShapeBase::Container;
    using ShapeBase::coord_type;
    using ShapeBase::empty;
    using ShapeBase::end;
    using ShapeBase::size;
    using ShapeBase::view;

    template <std::size_t N>
    bool operator==(const std::array<std::uint32_t, N>& other) const {
        return value_.size() == N && std::equal(value_.begin(), value_.end(), other.begin());
    }
    bool operator==(const Shape& other) const;
    bool operator==(const ShapeBase::Container& other) const;

    [[nodiscard]] std::size_t rank() const;
    /// The number of elements; 1 for rank 0.
    [[nodiscard]] std::uint64_t volume() const;

    std::uint32_t get_normalized_index(std::int64_t index) const;
    std::array<std::uint32_t, 4> to_array_4D() const;
    Shape to_rank(std::size_t new_rank) const;
};

}  // namespace tt::tt_metal
