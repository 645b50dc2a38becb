#pragma once

#include <numeric>
#include <random>

#include "support/cpu/ordering.hpp"

namespace support::cpu {

/// A number from 0 to below 1. The distributions of the standard library differ from one to
/// another.
inline double drawn(std::mt19937_64& generator) {
    return static_cast<double>(generator() >> 11) * 0x1p-53;
}

struct Rand {
    double low = 0;
    double high = 1;
    std::uint64_t seed = 0;
};

/// Uniformly distributed numbers.
inline Tensor rand(const Type& type, const Rand& attributes) {
    std::mt19937_64 generator(attributes.seed);
    std::vector<double> values(count_of(type.shape));
    for (double& value : values) {
        value = attributes.low + (attributes.high - attributes.low) * drawn(generator);
    }
    return rounded(type, std::move(values));
}

struct Dropout {
    double prob = 0;
    double scale = 1;
    std::uint64_t seed = 0;
};

/// Elements become 0 with a probability, the others are scaled.
inline Tensor dropout(const Type& type, const Tensor& input, const Dropout& attributes) {
    std::mt19937_64 generator(attributes.seed);
    std::vector<double> values = input.elements;
    for (double& value : values) {
        value = drawn(generator) >= attributes.prob ? value * attributes.scale : 0;
    }
    return rounded(type, std::move(values));
}

struct Sampling {
    std::uint64_t seed = 0;
};

/// For each row the index of one of its values, by its probability: that of the exponential of
/// value times `temp` among the `k` greatest ones, as few of them as have the probability `p`.
inline Tensor sampling(const Type& type, const Tensor& input_values, const Tensor& input_indices,
                       const Tensor& k, const Tensor& p, const Tensor& temp,
                       const Sampling& attributes) {
    std::mt19937_64 generator(attributes.seed);
    const std::size_t size = input_values.shape.back();
    std::vector<double> values;
    for (std::size_t row = 0; row < input_values.elements.size() / size; ++row) {
        const auto at = [&](const Tensor& of_rows) {
            return of_rows.elements[of_rows.elements.size() > 1 ? row : 0];
        };
        const double* const scores = input_values.elements.data() + row * size;
        std::vector<std::size_t> order(size);
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
            return comes_before(scores[a] * at(temp), scores[b] * at(temp), true);
        });
        order.resize(std::min(size, static_cast<std::size_t>(std::max(at(k), 1.0))));
        std::vector<double> weights;
        for (const std::size_t place : order) {
            weights.push_back(std::exp((scores[place] - scores[order[0]]) * at(temp)));
        }
        const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
        double before = 0;
        std::size_t kept = 0;
        while (kept < weights.size() && (kept == 0 || before < at(p) * total)) {
            before += weights[kept++];
        }
        double number = drawn(generator) * before;
        std::size_t chosen = 0;
        while (chosen + 1 < kept && number >= weights[chosen]) {
            number -= weights[chosen++];
        }
        values.push_back(input_indices.elements[row * size + order[chosen]]);
    }
    return rounded(type, std::move(values));
}

}  // namespace support::cpu
