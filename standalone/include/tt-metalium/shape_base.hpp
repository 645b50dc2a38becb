#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "tt_stl/small_vector.hpp"
#include "tt_stl/span.hpp"

namespace tt::tt_metal {

namespace detail {

[[noreturn]] void normalized_index_out_of_range(std::int32_t index, std::int32_t full_size,
                                                std::int32_t orig_size);

/// Normalizes `index` for a container that holds `original_size` sizes after leading ones.
inline std::int32_t normalized_index(std::int32_t index, std::size_t original_size,
                                     std::size_t container_size) {
    const auto rank = static_cast<std::int32_t>(original_size);
    const auto full = static_cast<std::int32_t>(container_size);
    if (index < -full || index >= rank) {
        normalized_index_out_of_range(index, full, rank);
    }
    return index < 0 ? full + index : full - rank + index;
}

}  // namespace detail

/// Sizes with negative indexing; ranks below 4 are extended with leading ones.
class ShapeBase {
  public:
    using coord_type = std::uint32_t;
    using Container = ttsl::SmallVector<std::uint32_t>;

    ShapeBase() { init(); }
    explicit ShapeBase(const Container& shape) : value_(shape) { init(); }
    explicit ShapeBase(Container&& shape) : value_(std::move(shape)) { init(); }
    explicit ShapeBase(std::initializer_list<std::uint32_t> sizes) : value_(sizes) { init(); }
    template <std::size_t N>
    explicit ShapeBase(const std::array<std::uint32_t, N>& sizes)
        : value_(sizes.begin(), sizes.end()) {
        init();
    }
    explicit ShapeBase(ttsl::Span<const std::uint32_t> sizes) : value_(sizes.begin(), sizes.end()) {
        init();
    }

    template <std::size_t N>
    bool operator==(const std::array<std::uint32_t, N>& other) const {
        return value_.size() == N && std::equal(value_.begin(), value_.end(), other.begin());
    }
    bool operator==(const ShapeBase& other) const;
    bool operator==(const Container& other) const;
    bool operator==(const std::vector<std::uint32_t>& other) const;

    std::uint32_t operator[](std::int32_t index) const {
        return value_[static_cast<std::size_t>(
            detail::normalized_index(index, original_size_, value_.size()))];
    }
    std::uint32_t& operator[](std::int32_t index) {
        return value_[static_cast<std::size_t>(
            detail::normalized_index(index, original_size_, value_.size()))];
    }

    Container::const_iterator cbegin() const;
    Container::const_iterator cend() const;
    Container::const_iterator begin() const;
    Container::const_iterator end() const;

    ttsl::Span<const std::uint32_t> view() const;
    bool empty() const;

  protected:
    void init();
    std::size_t size() const;

    Container value_;

  private:
    std::size_t original_size_ = 0;
};

}  // namespace tt::tt_metal
