#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tt-metalium/buffer_types.hpp"
#include "tt-metalium/distributed_context.hpp"
#include "tt-metalium/experimental/fabric/fabric_types.hpp"
#include "tt-metalium/mesh_device.hpp"
#include "tt-metalium/sub_device_types.hpp"

namespace ttcodegen::cpu {
class SocketEnd;
}  // namespace ttcodegen::cpu

namespace tt::tt_metal::distributed {

/// A core of a device of a mesh.
struct MeshCoreCoord {
    MeshCoordinate device_coord = MeshCoordinate(0);
    CoreCoord core_coord = CoreCoord(0, 0);

    MeshCoreCoord() = default;
    MeshCoreCoord(const MeshCoordinate& device_coord_, const CoreCoord& core_coord_)
        : device_coord(device_coord_), core_coord(core_coord_) {}
};

struct SocketConnection {
    MeshCoreCoord sender_core;
    MeshCoreCoord receiver_core;

    SocketConnection() = default;
    SocketConnection(const MeshCoreCoord& sender_core_, const MeshCoreCoord& receiver_core_)
        : sender_core(sender_core_), receiver_core(receiver_core_) {}
};

/// The memory of the receiver that pages wait in.
struct SocketMemoryConfig {
    BufferType socket_storage_type = BufferType::L1;
    std::uint32_t fifo_size = 0;
    std::optional<SubDeviceId> sender_sub_device = std::nullopt;
    std::optional<SubDeviceId> receiver_sub_device = std::nullopt;
};

struct SocketConfig {
    std::vector<SocketConnection> socket_connection_config;
    SocketMemoryConfig socket_mem_config;
    std::optional<tt_fabric::MeshId> sender_mesh_id = std::nullopt;
    std::optional<tt_fabric::MeshId> receiver_mesh_id = std::nullopt;
    multihost::Rank sender_rank{0};
    multihost::Rank receiver_rank{0};
    std::shared_ptr<multihost::DistributedContext> distributed_context = nullptr;
};

enum class SocketEndpoint : std::uint8_t { SENDER, RECEIVER };

/// An end of a connection over which a device sends tensors to another one, of the same process or
/// of another.
class MeshSocket {
  public:
    /// The end of this process, the sender's or the receiver's by the ranks of the configuration.
    /// @throws std::runtime_error if this process is neither.
    MeshSocket(const std::shared_ptr<MeshDevice>& device, const SocketConfig& config);
    /// Both ends of a connection within this process.
    static std::pair<MeshSocket, MeshSocket> create_socket_pair(
        const std::shared_ptr<MeshDevice>& sender, const std::shared_ptr<MeshDevice>& receiver,
        const SocketConfig& base_config);
    const SocketConfig& get_config() const;
    SocketEndpoint get_socket_endpoint_type() const { return socket_endpoint_type_; }

    /// Of the CPU backend: what the operations that send and receive use.
    const std::shared_ptr<ttcodegen::cpu::SocketEnd>& end() const { return end_; }

  private:
    MeshSocket(SocketConfig config, SocketEndpoint type,
               std::shared_ptr<ttcodegen::cpu::SocketEnd> end)
        : config_(std::move(config)), socket_endpoint_type_(type), end_(std::move(end)) {}

    SocketConfig config_;
    SocketEndpoint socket_endpoint_type_;
    std::shared_ptr<ttcodegen::cpu::SocketEnd> end_;
};

}  // namespace tt::tt_metal::distributed
