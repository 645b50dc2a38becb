#pragma once

#include <cstddef>
#include <span>

namespace ttsl {

/// The release's alias of std::span; mangled names contain std::span.
template <typename T, std::size_t Extent = std::dynamic_extent>
using Span = std::span<T, Extent>;

}  // namespace ttsl

namespace tt {
namespace stl {
using namespace ::ttsl;
}  // namespace stl
}  // namespace tt
