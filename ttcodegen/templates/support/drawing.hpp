#pragma once

#include <cstddef>
#include <cstdint>

#include "support/model.hpp"

namespace support {

/// Random values for an input or weight. They depend on nothing but its description and the seed.
Array draw(const TensorDescription& tensor, std::uint64_t seed);

/// Gives random values to the weights of a function that have none: no file, and none set.
void draw_missing_weights(Model& model, std::size_t function, std::uint64_t seed);

}  // namespace support
