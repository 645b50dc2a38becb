#pragma once

#include <compare>
#include <cstddef>
#include <functional>

namespace tt {

/// A pair of x and y; core coordinates are of this type.
struct xy_pair {
    constexpr xy_pair() : x{}, y{} {}
    constexpr xy_pair(std::size_t x_value, std::size_t y_value) : x(x_value), y(y_value) {}

    constexpr auto operator<=>(const xy_pair&) const = default;

    std::size_t x;
    std::size_t y;
};

}  // namespace tt

using tt_xy_pair = tt::xy_pair;

template <>
struct std::hash<tt::xy_pair> {
    std::size_t operator()(const tt::xy_pair& pair) const {
        return std::hash<std::size_t>{}(pair.x) ^ (std::hash<std::size_t>{}(pair.y) << 1);
    }
};
