#pragma once

#include <algorithm>

#include "core/parallel.hpp"
#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// A tensor seen as lanes along one dimension: `outer` x `size` x `inner` elements.
struct Lanes {
    Lanes(const Shape& shape, std::size_t dim) {
        for (std::size_t i = 0; i < shape.rank(); ++i) {
            std::size_t& factor = i < dim ? outer : i == dim ? size : inner;
            factor *= shape.view()[i];
        }
    }

    std::size_t outer = 1;
    std::size_t size = 1;
    std::size_t inner = 1;

    std::size_t count() const { return outer * inner; }
    /// The offset of the first element of a lane; the stride is `inner`.
    std::size_t first(std::size_t lane) const { return lane / inner * size * inner + lane % inner; }
};

/// Calls `body(lane)` for each lane, from several threads.
template <typename Body>
void for_each_lane(const Lanes& lanes, const Body& body) {
    const std::size_t grain =
        std::max<std::size_t>(1, 16384 / std::max<std::size_t>(lanes.size, 1));
    parallel_for(lanes.count(), grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t lane = begin; lane < end; ++lane) {
            body(lane);
        }
    });
}

/// The shape with the size of one dimension replaced.
inline Shape with_size(const Shape& shape, std::size_t dim, std::size_t size) {
    ttsl::SmallVector<std::uint32_t> sizes(shape.begin(), shape.end());
    sizes[dim] = static_cast<std::uint32_t>(size);
    return Shape(std::move(sizes));
}

}  // namespace ttcodegen::cpu
