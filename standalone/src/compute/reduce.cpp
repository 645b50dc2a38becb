#include "compute/reduce.hpp"

namespace ttcodegen::cpu {
namespace {

struct Dimension {
    std::size_t size;
    std::size_t stride;
};

/// Offsets of all positions in row-major order.
std::vector<std::size_t> offsets_of(const std::vector<Dimension>& dimensions) {
    std::vector<std::size_t> offsets{0};
    for (const auto& [size, stride] : dimensions) {
        std::vector<std::size_t> extended;
        extended.reserve(offsets.size() * size);
        for (const std::size_t offset : offsets) {
            for (std::size_t i = 0; i < size; ++i) {
                extended.push_back(offset + i * stride);
            }
        }
        offsets = std::move(extended);
    }
    return offsets;
}

}  // namespace

ReductionPlan::ReductionPlan(const Shape& shape, const std::vector<bool>& is_reduced) {
    const auto strides = element_strides(shape);
    std::vector<Dimension> merged;
    std::vector<bool> kinds;
    for (std::size_t dim = 0; dim < shape.rank(); ++dim) {
        const std::size_t size = shape.view()[dim];
        if (size == 1) {
            continue;
        }
        if (!merged.empty() && kinds.back() == is_reduced[dim]) {
            merged.back() = {merged.back().size * size, strides[dim]};
        } else {
            merged.push_back({size, strides[dim]});
            kinds.push_back(is_reduced[dim]);
        }
    }
    if (!merged.empty()) {
        run_ = merged.back().size;
        run_is_reduced_ = kinds.back();
        merged.pop_back();
        kinds.pop_back();
    }
    std::vector<Dimension> kept;
    std::vector<Dimension> reduced;
    for (std::size_t i = 0; i < merged.size(); ++i) {
        (kinds[i] ? reduced : kept).push_back(merged[i]);
    }
    kept_ = offsets_of(kept);
    reduced_ = offsets_of(reduced);
}

}  // namespace ttcodegen::cpu
