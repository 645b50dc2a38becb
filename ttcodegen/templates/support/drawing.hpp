#pragma once

#include <cstdint>

#include "support/tensors.hpp"

namespace support {

/// Random values for an input or weight. They depend on nothing but its description and the seed.
Array draw(const TensorDescription& tensor, std::uint64_t seed);

}  // namespace support
