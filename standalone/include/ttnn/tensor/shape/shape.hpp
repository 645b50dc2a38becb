#pragma once

#include "tt-metalium/shape.hpp"

namespace ttnn {

using tt::tt_metal::Shape;

}  // namespace ttnn
