#pragma once

namespace tt::tt_fabric {

/// How the devices that a collective joins are linked.
enum class Topology { NeighborExchange = 0, Linear = 1, Ring = 2, Mesh = 3, Torus = 4 };

}  // namespace tt::tt_fabric
