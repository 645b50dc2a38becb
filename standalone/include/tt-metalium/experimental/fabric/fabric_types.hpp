#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "tt_stl/strong_type.hpp"

namespace tt::tt_fabric {

/// Topology and routing of the fabric.
enum class FabricConfig : std::uint32_t {
    DISABLED = 0,
    FABRIC_1D_NEIGHBOR_EXCHANGE = 1,
    FABRIC_1D = 2,
    FABRIC_1D_RING = 3,
    FABRIC_2D = 4,
    FABRIC_2D_TORUS_X = 5,
    FABRIC_2D_TORUS_Y = 6,
    FABRIC_2D_TORUS_XY = 7,
    CUSTOM = 8
};

enum class FabricTensixConfig : std::uint32_t { DISABLED = 0, MUX = 1, UDM = 2 };

enum class FabricUDMMode : std::uint32_t { DISABLED = 0, ENABLED = 1 };

enum class FabricManagerMode : std::uint32_t {
    INIT_FABRIC = 1 << 0,
    TERMINATE_FABRIC = 1 << 1,
    ENABLED = (INIT_FABRIC & TERMINATE_FABRIC),
    DEFAULT = (INIT_FABRIC | TERMINATE_FABRIC)
};

struct FabricRouterConfig {
    std::optional<std::size_t> max_packet_payload_size_bytes = std::nullopt;
};

enum class FabricReliabilityMode : std::uint32_t {
    STRICT_SYSTEM_HEALTH_SETUP_MODE = 0,
    RELAXED_SYSTEM_HEALTH_SETUP_MODE = 1,
    DYNAMIC_RECONFIGURATION_SETUP_MODE = 2
};

using MeshId = ttsl::StrongType<std::uint32_t, struct MeshIdTag>;

/// A device as a node of the fabric.
class FabricNodeId {
  public:
    explicit FabricNodeId(MeshId mesh_id_val, std::uint32_t chip_id_val);
    MeshId mesh_id{0};
    std::uint32_t chip_id = 0;
};

}  // namespace tt::tt_fabric
