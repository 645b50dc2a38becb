#include "support/buckets.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

namespace support {

namespace {

std::uint64_t extent_size(const Extent& extent, std::span<const std::uint64_t> sizes) {
    const std::int64_t dynamic =
        extent.dimension < 0
            ? 0
            : extent.scale *
                  static_cast<std::int64_t>(sizes[static_cast<std::size_t>(extent.dimension)]);
    return static_cast<std::uint64_t>(extent.offset + dynamic);
}

std::vector<std::uint64_t> sized_shape(const BucketTensor& tensor,
                                       std::span<const std::uint64_t> sizes) {
    std::vector<std::uint64_t> shape;
    for (const Extent& extent : tensor.extents) {
        shape.push_back(extent_size(extent, sizes));
    }
    return shape;
}

/// Copies the elements that two row-major arrays have in common: those at the beginning of all
/// dimensions.
void copy_common(const std::byte* from, std::span<const std::uint64_t> from_shape, std::byte* to,
                 std::span<const std::uint64_t> to_shape, std::size_t element) {
    if (from_shape.empty()) {
        std::memcpy(to, from, element);
        return;
    }
    const std::size_t common = std::min(from_shape[0], to_shape[0]);
    if (from_shape.size() == 1) {
        if (common != 0) {
            std::memcpy(to, from, common * element);
        }
        return;
    }
    const std::size_t from_step = element_count(from_shape.subspan(1)) * element;
    const std::size_t to_step = element_count(to_shape.subspan(1)) * element;
    for (std::size_t i = 0; i < common; ++i) {
        copy_common(from + i * from_step, from_shape.subspan(1), to + i * to_step,
                    to_shape.subspan(1), element);
    }
}

/// The array in another shape, with `value` where it has no elements.
Array in_shape(const ArrayView& array, std::vector<std::uint64_t> shape, double value) {
    const std::size_t element = element_size(array.type);
    Array found{array.type, std::move(shape), {}};
    found.bytes.resize(element_count(found.shape) * element);
    if (value != 0) {
        const std::vector<std::byte> one = stored(std::span(&value, 1), array.type);
        for (std::size_t i = 0; i < found.bytes.size(); i += element) {
            std::memcpy(&found.bytes[i], one.data(), element);
        }
    }
    copy_common(static_cast<const std::byte*>(array.data), array.shape, found.bytes.data(),
                found.shape, element);
    return found;
}

/// The shape with names of dynamic dimensions: "(batch, 2*length)".
std::string expected_shape(const Buckets& buckets, const BucketTensor& tensor) {
    std::string text = "(";
    for (const Extent& extent : tensor.extents) {
        text += text.size() > 1 ? ", " : "";
        if (extent.dimension < 0) {
            text += std::to_string(extent.offset);
            continue;
        }
        text += extent.scale == 1 ? "" : std::to_string(extent.scale) + "*";
        text += buckets.dimensions[static_cast<std::size_t>(extent.dimension)].name;
        text += extent.offset == 0 ? "" : " + " + std::to_string(extent.offset);
    }
    return text + ")";
}

}  // namespace

BucketModel::BucketModel(const Buckets& buckets, const std::string& data, Device device)
    : buckets_(buckets), model_(buckets.module, data, std::move(device)) {}

bool BucketModel::has_weight(std::size_t function, std::size_t weight) const {
    return model_.has_weight(function == 0 ? buckets_.buckets.front().function : function - 1,
                             weight);
}

void BucketModel::set_weight(std::size_t function, std::size_t weight, const ArrayView& values) {
    if (function != 0) {
        model_.set_weight(function - 1, weight, values);
        return;
    }
    for (const SizedFunction& bucket : buckets_.buckets) {
        model_.set_weight(bucket.function, weight, values);
    }
}

void BucketModel::prepare(std::size_t function) {
    if (function != 0) {
        model_.prepare(function - 1);
        return;
    }
    for (const SizedFunction& bucket : buckets_.buckets) {
        model_.prepare(bucket.function);
    }
}

std::vector<Array> BucketModel::run(std::size_t function, std::span<const ArrayView> inputs,
                                    RunTimes* times) {
    if (function != 0) {
        return model_.run(function - 1, inputs, times);
    }
    const std::vector<std::uint64_t> sizes = sizes_of(inputs);
    const SizedFunction& bucket = bucket_for(sizes);
    std::vector<Array> padded;
    std::vector<ArrayView> views;
    padded.reserve(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const BucketTensor& tensor = buckets_.inputs[i];
        padded.push_back(in_shape(inputs[i], sized_shape(tensor, bucket.sizes), tensor.padding));
        views.push_back(padded.back().view());
    }
    std::vector<Array> outputs = model_.run(bucket.function, views, times);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        outputs[i] = in_shape(outputs[i].view(), sized_shape(buckets_.outputs[i], sizes), 0);
    }
    return outputs;
}

std::vector<std::uint64_t> BucketModel::sizes_of(std::span<const ArrayView> inputs) const {
    const auto descriptions = buckets_.functions.front().inputs;
    if (inputs.size() != buckets_.inputs.size()) {
        throw std::runtime_error("expected " + std::to_string(buckets_.inputs.size()) +
                                 " inputs, found " + std::to_string(inputs.size()));
    }
    std::vector<std::optional<std::uint64_t>> found(buckets_.dimensions.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const BucketTensor& tensor = buckets_.inputs[i];
        const auto shape = inputs[i].shape;
        bool fits = shape.size() == tensor.extents.size();
        for (std::size_t axis = 0; fits && axis < shape.size(); ++axis) {
            const Extent& extent = tensor.extents[axis];
            const std::int64_t rest = static_cast<std::int64_t>(shape[axis]) - extent.offset;
            if (extent.dimension < 0) {
                fits = rest == 0;
                continue;
            }
            fits = rest >= 0 && rest % extent.scale == 0;
            if (fits) {
                const auto size = static_cast<std::uint64_t>(rest / extent.scale);
                auto& known = found[static_cast<std::size_t>(extent.dimension)];
                fits = known.value_or(size) == size;
                known = size;
            }
        }
        if (!fits) {
            throw std::runtime_error(std::string("'") + descriptions[i].name +
                                     "': expected the shape " + expected_shape(buckets_, tensor) +
                                     ", found " + shape_text(shape) +
                                     "; a dimension of several inputs has one size");
        }
    }
    std::vector<std::uint64_t> sizes;
    for (std::size_t i = 0; i < found.size(); ++i) {
        const DynamicDimension& dimension = buckets_.dimensions[i];
        sizes.push_back(found[i].value_or(0));
        if (sizes.back() < dimension.least) {
            throw std::runtime_error(
                std::string(dimension.name) + " of " + std::to_string(sizes.back()) +
                " is too small: the model takes " + std::to_string(dimension.least));
        }
    }
    return sizes;
}

const SizedFunction& BucketModel::bucket_for(std::span<const std::uint64_t> sizes) const {
    // The first that fits is the smallest: each dimension has its sizes from small to large.
    for (const SizedFunction& bucket : buckets_.buckets) {
        if (std::ranges::equal(sizes, bucket.sizes, std::ranges::less_equal())) {
            return bucket;
        }
    }
    std::string text;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const std::uint64_t most = buckets_.buckets.back().sizes[i];
        if (sizes[i] > most) {
            text += text.empty() ? "" : ", ";
            text += std::string(buckets_.dimensions[i].name) + " of " + std::to_string(sizes[i]) +
                    " is too large: the largest bucket has " + std::to_string(most);
        }
    }
    throw std::runtime_error(text);
}

}  // namespace support
