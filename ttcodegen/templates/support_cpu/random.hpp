#pragma once

#include <numeric>
#include <random>

#include "support/cpu/ordering.hpp"

namespace support::cpu {

/// A uniform number in [0, 1). The distributions of the standard library differ between
/// implementations.
inline double drawn(std::mt19937_64& generator) {
    return static_cast<double>(generator() >> 11) * 0x1p-53;
}

/// Generator of 32 random bits for each element of a tile.
class TileGenerator {
  public:
    explicit TileGenerator(std::uint32_t seed) : state_(seed) {}

    std::uint32_t operator()() {
        state_ = state_ * 1664525U + 1013904223U;
        std::uint32_t bits = state_;
        bits = (bits ^ (bits >> 16)) * 0x7feb352dU;
        return bits ^ (bits >> 15);
    }

  private:
    std::uint32_t state_;
};

/// Random bits for the elements of a tensor: those of the device programs, which draw a tile at a
/// time, face by face, with `seed` plus the index of the tile as its seed.
inline std::vector<std::uint32_t> random_bits(const Shape& shape, std::uint64_t seed) {
    constexpr std::size_t side = 32;
    constexpr std::size_t face = side / 2;
    const std::size_t width = shape.empty() ? 1 : shape.back();
    const std::size_t height = shape.size() < 2 ? 1 : shape[shape.size() - 2];
    std::vector<std::uint32_t> found(count_of(shape));
    auto tile_seed = static_cast<std::uint32_t>(seed);
    for (std::size_t batch = 0; batch < found.size(); batch += height * width) {
        for (std::size_t row = 0; row < height; row += side) {
            for (std::size_t column = 0; column < width; column += side) {
                TileGenerator next(tile_seed++);
                for (std::size_t i = 0; i < side * side; ++i) {
                    const std::uint32_t bits = next();
                    const std::size_t part = i / (face * face);
                    const std::size_t y = row + part / 2 * face + i / face % face;
                    const std::size_t x = column + part % 2 * face + i % face;
                    if (y < height && x < width) {
                        found[batch + y * width + x] = bits;
                    }
                }
            }
        }
    }
    return found;
}

struct Rand {
    double low = 0;
    double scale = 1;
    std::uint64_t seed = 0;
};

/// Uniformly distributed numbers in [low, low + scale).
inline Tensor rand(const Type& type, const Rand& attributes) {
    const auto low = static_cast<float>(attributes.low);
    const auto scale = static_cast<float>(attributes.scale);
    std::vector<double> values;
    for (const std::uint32_t bits : random_bits(type.shape, attributes.seed)) {
        const float part = static_cast<float>(bits >> 9) * 0x1p-23F * scale;
        values.push_back(part + low);
    }
    return rounded(type, std::move(values));
}

struct Dropout {
    double prob = 0;
    double scale = 1;
    std::uint64_t seed = 0;
};

/// Zeroes elements with a probability and scales the others.
inline Tensor dropout(const Type& type, const Tensor& input, const Dropout& attributes) {
    const auto threshold = static_cast<std::uint32_t>(0x7fffffff * attributes.prob);
    const std::vector<std::uint32_t> bits = random_bits(input.shape, attributes.seed);
    std::vector<double> values = input.elements;
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = bits[i] >> 1 >= threshold ? values[i] * attributes.scale : 0;
    }
    return rounded(type, std::move(values));
}

struct Sampling {
    std::uint64_t seed = 0;
};

/// Samples the index of a value of each row by softmax of value times `temp`, among the `k` largest
/// values (top-k) and of those the fewest whose probability reaches `p` (top-p).
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
