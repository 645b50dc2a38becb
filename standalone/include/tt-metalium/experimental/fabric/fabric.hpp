#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tt-metalium/core_coord.hpp"
#include "tt-metalium/experimental/fabric/fabric_edm_types.hpp"
#include "tt-metalium/experimental/fabric/fabric_types.hpp"
#include "tt-metalium/program.hpp"
#include "umd/device/types/core_coordinates.hpp"

namespace tt::tt_fabric {

/// The size of a packet's header, which precedes its payload in a worker's L1.
std::size_t get_tt_fabric_packet_header_size_bytes();
/// The maximum payload of a packet.
std::size_t get_tt_fabric_max_payload_size_bytes();

/// Appends the runtime arguments from which a kernel builds a connection to the ethernet core that
/// sends to `dst_fabric_node_id`; adds semaphores for it to the program.
/// @throws std::runtime_error if the devices are no neighbours, or the fabric is not configured.
template <typename ProgramOrDescriptor = tt::tt_metal::Program>
void append_fabric_connection_rt_args(const FabricNodeId& src_fabric_node_id,
                                      const FabricNodeId& dst_fabric_node_id,
                                      std::uint32_t link_idx,
                                      ProgramOrDescriptor& worker_program_or_desc,
                                      const tt::tt_metal::CoreCoord& worker_core,
                                      std::vector<std::uint32_t>& worker_args,
                                      CoreType core_type = CoreType::WORKER);

/// Configures the links of the meshes that are opened after it; collectives need it.
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
