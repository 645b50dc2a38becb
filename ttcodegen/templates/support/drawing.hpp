#pragma once

#include <cstddef>
#include <cstdint>

#include "support/model.hpp"

namespace support {

/// Random values for an input or weight; a function of its description and the seed alone.
Array draw(const TensorDescription& tensor, std::uint64_t seed);

/// Sets random values for those weights of a function that have no file and are not set.
void draw_missing_weights(Model& model, std::size_t function, std::uint64_t seed);

}  // namespace support
