#pragma once

#include <compare>
#include <utility>

namespace ttsl {

/// A value whose type is distinct from others with the same representation.
template <typename T, typename Tag = decltype([]() {})>
class StrongType {
  public:
    using value_type = T;
    using tag_type = Tag;

    constexpr StrongType() noexcept : value_{} {}
    constexpr explicit StrongType(T value) noexcept : value_(std::move(value)) {}

    constexpr const T& operator*() const { return value_; }
    constexpr const T& get() const { return value_; }
    constexpr auto operator<=>(const StrongType&) const = default;

  private:
    T value_;
};

}  // namespace ttsl

namespace tt {
namespace stl {
using namespace ::ttsl;
}  // namespace stl
}  // namespace tt
