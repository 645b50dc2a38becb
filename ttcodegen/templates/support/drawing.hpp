#pragma once

#include <cstdint>
#include <string_view>

#include "support/array.hpp"

namespace support {

enum class Distribution : std::int32_t { uniform, normal, integer, boolean };

/// How values of a tensor are drawn: uniform in [low, high), normal with mean `low` and standard
/// deviation `high`, whole numbers from `low` to `high` inclusive, or zeros and ones.
struct Drawing {
    Distribution distribution;
    double low;
    double high;
};

/// An array of drawn values. It depends on nothing but the arguments.
Array draw(ElementType type, std::span<const std::uint64_t> shape, const Drawing& drawing,
           std::uint64_t seed, std::string_view name);

}  // namespace support
