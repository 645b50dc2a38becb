#pragma once

#include <string_view>

#include "support/cpu/tensor.hpp"

/// Collectives of a mesh: each takes the shards of a tensor on all devices and returns those of the
/// result; `Type` is the type of a shard of the result.
namespace support::cpu {

/// The shards of a tensor on the devices of a mesh, in row-major order.
using Parts = std::vector<Tensor>;

/// Numbers of rows and columns of devices.
using MeshSizes = std::array<std::size_t, 2>;

using ChipGroups = std::vector<std::vector<std::size_t>>;

/// The devices of each column, for axis 0, or of each row, for axis 1.
inline ChipGroups groups_along(const MeshSizes& mesh, std::size_t axis) {
    ChipGroups groups(mesh[1 - axis]);
    for (std::size_t chip = 0; chip < mesh[0] * mesh[1]; ++chip) {
        groups[axis == 1 ? chip / mesh[1] : chip % mesh[1]].push_back(chip);
    }
    return groups;
}

/// A tensor as rows along a dimension: `count`, the product of the dimensions before it, and
/// `step`, the product of those after it.
struct Rows {
    std::size_t count = 1;
    std::size_t step = 1;

    Rows(const Shape& shape, std::size_t dim) {
        for (std::size_t axis = 0; axis < shape.size(); ++axis) {
            (axis < dim ? count : step) *= axis == dim ? 1 : shape[axis];
        }
    }
};

/// Concatenates tensors of one shape along a dimension.
inline Tensor joined(const std::vector<const Tensor*>& parts, std::size_t dim) {
    Tensor whole = {parts.front()->element, parts.front()->shape, {}};
    const Rows rows(whole.shape, dim);
    const std::size_t length = whole.shape[dim] * rows.step;
    whole.shape[dim] *= parts.size();
    whole.elements.reserve(rows.count * length * parts.size());
    for (std::size_t row = 0; row < rows.count; ++row) {
        for (const Tensor* part : parts) {
            const auto first = part->elements.begin() + static_cast<std::ptrdiff_t>(row * length);
            whole.elements.insert(whole.elements.end(), first,
                                  first + static_cast<std::ptrdiff_t>(length));
        }
    }
    return whole;
}

/// Slices part `place` of `count` equal parts of a tensor along a dimension.
inline Tensor share(const Tensor& whole, std::size_t dim, std::size_t count, std::size_t place) {
    Tensor part = {whole.element, whole.shape, {}};
    part.shape[dim] /= count;
    const Rows rows(whole.shape, dim);
    const std::size_t length = part.shape[dim] * rows.step;
    part.elements.reserve(rows.count * length);
    for (std::size_t row = 0; row < rows.count; ++row) {
        const auto first =
            whole.elements.begin() + static_cast<std::ptrdiff_t>((row * count + place) * length);
        part.elements.insert(part.elements.end(), first,
                             first + static_cast<std::ptrdiff_t>(length));
    }
    return part;
}

/// A collective along axes of the mesh, applied in order, on a dimension of a tensor.
struct Exchange {
    MeshSizes mesh = {1, 1};
    std::vector<std::size_t> axes = {};
    std::size_t dim = 0;
    /// The reduction of the values of several devices: sum, max, min, mean or prod.
    std::string_view reduction = "sum";
};

/// Replaces the shards of each group of devices along an axis by `join(group)`.
template <typename Join>
void join_along(Parts& parts, const MeshSizes& mesh, std::size_t axis, Join join) {
    for (const std::vector<std::size_t>& group : groups_along(mesh, axis)) {
        std::vector<const Tensor*> tensors;
        for (const std::size_t chip : group) {
            tensors.push_back(&parts[chip]);
        }
        const Tensor result = join(tensors);
        for (const std::size_t chip : group) {
            parts[chip] = result;
        }
    }
}

/// Leaves each device along an axis its slice of its tensor.
inline void split_along(Parts& parts, const MeshSizes& mesh, std::size_t axis, std::size_t dim) {
    for (const std::vector<std::size_t>& group : groups_along(mesh, axis)) {
        for (std::size_t place = 0; place < group.size(); ++place) {
            parts[group[place]] = share(parts[group[place]], dim, group.size(), place);
        }
    }
}

/// Reduces several tensors elementwise, in the order of the devices.
inline Tensor reduced(const std::vector<const Tensor*>& tensors, std::string_view how) {
    Tensor result = *tensors.front();
    for (std::size_t chip = 1; chip < tensors.size(); ++chip) {
        for (std::size_t i = 0; i < result.elements.size(); ++i) {
            const double value = tensors[chip]->elements[i];
            double& sum = result.elements[i];
            sum = how == "max"    ? std::max(sum, value)
                  : how == "min"  ? std::min(sum, value)
                  : how == "prod" ? sum * value
                                  : sum + value;
        }
    }
    if (how == "mean") {
        for (double& sum : result.elements) {
            sum /= static_cast<double>(tensors.size());
        }
    }
    return result;
}

inline Parts rounded(const Type& type, Parts parts) {
    for (Tensor& part : parts) {
        part = rounded(type, std::move(part.elements));
    }
    return parts;
}

inline Parts all_gather(const Type& type, Parts parts, const Exchange& exchange) {
    for (const std::size_t axis : exchange.axes) {
        join_along(parts, exchange.mesh, axis,
                   [&](const auto& group) { return joined(group, exchange.dim); });
    }
    return rounded(type, std::move(parts));
}

inline Parts all_reduce(const Type& type, Parts parts, const Exchange& exchange) {
    for (const std::size_t axis : exchange.axes) {
        join_along(parts, exchange.mesh, axis,
                   [&](const auto& group) { return reduced(group, exchange.reduction); });
    }
    return rounded(type, std::move(parts));
}

inline Parts reduce_scatter(const Type& type, Parts parts, const Exchange& exchange) {
    for (const std::size_t axis : exchange.axes) {
        join_along(parts, exchange.mesh, axis,
                   [&](const auto& group) { return reduced(group, exchange.reduction); });
        split_along(parts, exchange.mesh, axis, exchange.dim);
    }
    return rounded(type, std::move(parts));
}

inline Parts mesh_partition(const Type& type, Parts parts, const Exchange& exchange) {
    for (const std::size_t axis : exchange.axes) {
        split_along(parts, exchange.mesh, axis, exchange.dim);
    }
    return rounded(type, std::move(parts));
}

/// For each axis of the mesh, the dimension that is sharded along it; -1 for none.
struct Placements {
    MeshSizes mesh = {1, 1};
    std::array<int, 2> dims = {-1, -1};
};

/// Shards a tensor, taken from the first device, over the mesh.
inline Parts distribute(const Type& type, Parts parts, const Placements& placements) {
    const Tensor whole = parts.front();
    std::fill(parts.begin(), parts.end(), whole);
    for (const std::size_t axis : {0, 1}) {
        if (placements.dims[axis] >= 0) {
            split_along(parts, placements.mesh, axis,
                        static_cast<std::size_t>(placements.dims[axis]));
        }
    }
    return rounded(type, std::move(parts));
}

/// Concatenates shards on each device; an axis without sharding takes the first replica.
inline Parts compose(const Type& type, Parts parts, const Placements& placements) {
    for (const std::size_t axis : {1, 0}) {
        join_along(parts, placements.mesh, axis, [&](const auto& group) {
            const int dim = placements.dims[axis];
            return dim >= 0 ? joined(group, static_cast<std::size_t>(dim)) : *group.front();
        });
    }
    return rounded(type, std::move(parts));
}

/// Groups of devices that exchange shards with each other.
struct Grouping {
    ChipGroups groups = {};
    /// The dimension that is split among them, and the one along which parts are concatenated.
    std::size_t split = 0;
    std::size_t concat = 0;
};

inline Parts all_to_all(const Type& type, const Parts& parts, const Grouping& grouping) {
    Parts result = parts;
    for (const std::vector<std::size_t>& group : grouping.groups) {
        for (std::size_t place = 0; place < group.size(); ++place) {
            Parts pieces;
            std::vector<const Tensor*> tensors;
            pieces.reserve(group.size());
            for (const std::size_t chip : group) {
                pieces.push_back(share(parts[chip], grouping.split, group.size(), place));
                tensors.push_back(&pieces.back());
            }
            result[group[place]] = joined(tensors, grouping.concat);
        }
    }
    return rounded(type, std::move(result));
}

/// Sends the shard of each pair's first device to the second; devices that are no pair's second get
/// zeros.
struct Sendings {
    std::vector<std::array<std::size_t, 2>> pairs = {};
};

inline Parts collective_permute(const Type& type, const Parts& parts, const Sendings& sendings) {
    Parts result(parts.size(),
                 {type.element, type.shape, std::vector<double>(count_of(type.shape))});
    for (const auto& [source, target] : sendings.pairs) {
        result[target] = parts[source];
    }
    return result;
}

}  // namespace support::cpu
