#pragma once

#include "tt-metalium/experimental/fabric/fabric_edm_types.hpp"

namespace ttnn::ccl {

using tt::tt_fabric::Topology;

}  // namespace ttnn::ccl
