#pragma once

#include <cstdint>
#include <optional>

#include "tt-metalium/experimental/fabric/fabric_edm_types.hpp"
#include "tt-metalium/experimental/fabric/fabric_types.hpp"

namespace tt::tt_fabric {

/// Says how the devices of meshes that are opened after it are linked; collectives need it.
void SetFabricConfig(
    FabricConfig fabric_config,
    FabricReliabilityMode reliability_mode = FabricReliabilityMode::STRICT_SYSTEM_HEALTH_SETUP_MODE,
    std::optional<std::uint8_t> num_routing_planes = std::nullopt,
    FabricTensixConfig fabric_tensix_config = FabricTensixConfig::DISABLED,
    FabricUDMMode fabric_udm_mode = FabricUDMMode::DISABLED,
    FabricManagerMode fabric_manager = FabricManagerMode::DEFAULT,
    FabricRouterConfig router_config = FabricRouterConfig{});

FabricConfig GetFabricConfig();

}  // namespace tt::tt_fabric
