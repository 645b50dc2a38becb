#pragma once

namespace tt::tt_fabric {

/// The topology of the links between the devices of a collective.
enum class Topology { NeighborExchange = 0, Linear = 1, Ring = 2, Mesh = 3, Torus = 4 };

}  // namespace tt::tt_fabric
