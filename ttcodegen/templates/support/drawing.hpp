#pragma once

#include <cstddef>
#include <cstdint>

#include "support/model.hpp"

namespace support {

/// SplitMix64 (Steele, Lea, Flood 2014): small, and the same on every machine, unlike <random>'s
/// distributions.
class RandomNumbers {
  public:
    explicit RandomNumbers(std::uint64_t seed) : state_(seed) {}

    std::uint64_t bits() {
        std::uint64_t value = state_ += 0x9e3779b97f4a7c15;
        value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
        value = (value ^ value >> 27) * 0x94d049bb133111eb;
        return value ^ value >> 31;
    }

    /// Uniform in [0, 1).
    double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

  private:
    std::uint64_t state_;
};

/// Random values for an input or weight; a function of its description and the seed alone.
Array draw(const TensorDescription& tensor, std::uint64_t seed);

/// Sets random values for those weights of a function that have no file and are not set.
void draw_missing_weights(Model& model, std::size_t function, std::uint64_t seed);

}  // namespace support
