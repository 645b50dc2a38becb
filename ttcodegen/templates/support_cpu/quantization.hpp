#pragma once

#include "support/cpu/tensor.hpp"

namespace support::cpu {

/// Parameters of affine quantization: `scale * (integer - zero_point)`.
struct Quantization {
    /// One value per tensor, or one per index along the axis.
    std::vector<double> scale = {};
    std::vector<double> zero_point = {};
};

/// The axis of per-axis parameters, and the range that integers are clamped to.
struct Storage {
    std::size_t axis = 0;
    std::optional<double> min = {};
    std::optional<double> max = {};
};

/// Applies `convert` to each element with the parameters of its index along the axis. It computes
/// in float32, as the device does, so that rounding to integers agrees.
template <typename Convert>
Tensor with_numbers(const Type& type, const Tensor& input, const Storage& storage,
                    Convert convert) {
    const std::size_t stride = input.shape.empty() ? 1 : strides_of(input.shape)[storage.axis];
    const std::size_t size = input.shape.empty() ? 1 : input.shape[storage.axis];
    std::vector<double> values(input.elements.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double value = convert(static_cast<float>(input.elements[i]), i / stride % size);
        values[i] = std::clamp(value, storage.min.value_or(value), storage.max.value_or(value));
    }
    return rounded(type, std::move(values));
}

inline float number_at(const std::vector<double>& numbers, std::size_t place) {
    return static_cast<float>(numbers[numbers.size() > 1 ? place : 0]);
}

inline Tensor quantize(const Type& type, const Tensor& input, const Quantization& numbers,
                       const Storage& storage) {
    return with_numbers(type, input, storage, [&](float x, std::size_t place) {
        return std::nearbyint(x / number_at(numbers.scale, place)) +
               number_at(numbers.zero_point, place);
    });
}

inline Tensor dequantize(const Type& type, const Tensor& input, const Quantization& numbers,
                         const Storage& storage) {
    return with_numbers(type, input, storage, [&](float x, std::size_t place) {
        return (x - number_at(numbers.zero_point, place)) * number_at(numbers.scale, place);
    });
}

inline Tensor requantize(const Type& type, const Tensor& input, const Quantization& from,
                         const Quantization& to, const Storage& storage) {
    return with_numbers(type, input, storage, [&](float x, std::size_t place) {
        const float real = (x - number_at(from.zero_point, place)) * number_at(from.scale, place);
        return std::nearbyint(real / number_at(to.scale, place)) + number_at(to.zero_point, place);
    });
}

// The same with parameters that are tensors.

inline Tensor quantize_unrolled(const Type& type, const Tensor& input, const Tensor& scale,
                                const Tensor& zero_point, const Storage& storage) {
    return quantize(type, input, {scale.elements, zero_point.elements}, storage);
}

inline Tensor dequantize_unrolled(const Type& type, const Tensor& input, const Tensor& scale,
                                  const Tensor& zero_point, const Storage& storage) {
    return dequantize(type, input, {scale.elements, zero_point.elements}, storage);
}

inline Tensor requantize_unrolled(const Type& type, const Tensor& input, const Tensor& in_scale,
                                  const Tensor& in_zero_point, const Tensor& out_scale,
                                  const Tensor& out_zero_point, const Storage& storage) {
    return requantize(type, input, {in_scale.elements, in_zero_point.elements},
                      {out_scale.elements, out_zero_point.elements}, storage);
}

}  // namespace support::cpu
