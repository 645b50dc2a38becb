#include <algorithm>
#include <deque>
#include <span>
#include <utility>

#include "core/calls.hpp"
#include "core/device.hpp"
#include "core/tensor_data.hpp"
#include "mesh/ranks.hpp"
#include "tt-metalium/experimental/sockets/mesh_socket.hpp"
#include "ttnn/operations/experimental/ccl/send_recv_async/recv_async/recv_async.hpp"
#include "ttnn/operations/experimental/ccl/send_recv_async/send_async/send_async.hpp"

namespace ttcodegen::cpu {

using tt::tt_metal::distributed::SocketConfig;
using tt::tt_metal::distributed::SocketEndpoint;
using tt::tt_metal::distributed::multihost::DistributedContext;
using tt::tt_metal::distributed::multihost::Rank;
using tt::tt_metal::distributed::multihost::Tag;

namespace {

/// Messages of sockets, among others that processes exchange.
const Tag socket_tag(0x50c);

}  // namespace

/// Other side of an end of a socket, which it sends to or receives from: in this process, or
/// another process.
class SocketEnd {
  public:
    explicit SocketEnd(MeshDevice* device) : device_(device) {}
    virtual ~SocketEnd() = default;
    MeshDevice* device() const { return device_; }
    virtual void send(std::span<std::byte> bytes) = 0;
    /// @throws std::runtime_error if nothing was sent, or something of another size.
    virtual void receive(std::span<std::byte> bytes) = 0;

  private:
    MeshDevice* device_;
};

namespace {

using Queue = std::deque<std::vector<std::byte>>;

/// An end whose other end is in this process.
class LocalEnd : public SocketEnd {
  public:
    LocalEnd(MeshDevice* device, std::shared_ptr<Queue> queue)
        : SocketEnd(device), queue_(std::move(queue)) {}
    void send(std::span<std::byte> bytes) override {
        queue_->emplace_back(bytes.begin(), bytes.end());
    }
    void receive(std::span<std::byte> bytes) override {
        TT_FATAL(!queue_->empty(), "recv_async: nothing was sent, the device would wait forever");
        TT_FATAL(queue_->front().size() == bytes.size(),
                 "recv_async: a tensor of {} bytes was sent, the output has {}",
                 queue_->front().size(), bytes.size());
        std::ranges::copy(queue_->front(), bytes.begin());
        queue_->pop_front();
    }

  private:
    std::shared_ptr<Queue> queue_;
};

/// An end whose other end is in another process.
class RemoteEnd : public SocketEnd {
  public:
    RemoteEnd(MeshDevice* device, Rank other) : SocketEnd(device), other_(other) {}
    void send(std::span<std::byte> bytes) override {
        DistributedContext::get_current_world()->send({bytes.data(), bytes.size()}, other_,
                                                      socket_tag);
    }
    void receive(std::span<std::byte> bytes) override {
        DistributedContext::get_current_world()->recv({bytes.data(), bytes.size()}, other_,
                                                      socket_tag);
    }

  private:
    Rank other_;
};

std::span<std::byte> stored_bytes(const Tensor& tensor) {
    Buffer& buffer = buffer_of(tensor);
    return {buffer.data(), buffer.bytes()};
}

SocketEnd& end_of(const tt::tt_metal::distributed::MeshSocket& socket, SocketEndpoint type,
                  const Tensor& tensor, const char* name) {
    TT_FATAL(socket.get_socket_endpoint_type() == type, "{} needs the {} end of the socket", name,
             type == SocketEndpoint::SENDER ? "sending" : "receiving");
    require_on_device(tensor, name);
    TT_FATAL(device_of(tensor) == socket.end()->device(),
             "{}: the tensor is on another device than the socket", name);
    return *socket.end();
}

}  // namespace

}  // namespace ttcodegen::cpu

namespace tt::tt_metal::distributed {

MeshSocket::MeshSocket(const std::shared_ptr<MeshDevice>& device, const SocketConfig& config)
    : config_(config) {
    const multihost::Rank rank = multihost::DistributedContext::get_current_world()->rank();
    TT_FATAL(config.sender_rank != config.receiver_rank,
             "A socket between processes has two of them, and both ranks are {}",
             *config.sender_rank);
    TT_FATAL(rank == config.sender_rank || rank == config.receiver_rank,
             "The process {} is no end of a socket from {} to {}", *rank, *config.sender_rank,
             *config.receiver_rank);
    const bool sends = rank == config.sender_rank;
    socket_endpoint_type_ = sends ? SocketEndpoint::SENDER : SocketEndpoint::RECEIVER;
    end_ = std::make_shared<ttcodegen::cpu::RemoteEnd>(
        device.get(), sends ? config.receiver_rank : config.sender_rank);
}

std::pair<MeshSocket, MeshSocket> MeshSocket::create_socket_pair(
    const std::shared_ptr<MeshDevice>& sender, const std::shared_ptr<MeshDevice>& receiver,
    const SocketConfig& base_config) {
    const auto queue = std::make_shared<ttcodegen::cpu::Queue>();
    const auto end = [&](const std::shared_ptr<MeshDevice>& device, SocketEndpoint type) {
        return MeshSocket(base_config, type,
                          std::make_shared<ttcodegen::cpu::LocalEnd>(device.get(), queue));
    };
    return {end(sender, SocketEndpoint::SENDER), end(receiver, SocketEndpoint::RECEIVER)};
}

const SocketConfig& MeshSocket::get_config() const { return config_; }

}  // namespace tt::tt_metal::distributed

namespace ttnn::experimental {

namespace cpu = ttcodegen::cpu;
using tt::tt_metal::distributed::MeshSocket;
using tt::tt_metal::distributed::SocketEndpoint;

std::vector<Tensor> send_async(const Tensor& input_tensor, const MeshSocket& mesh_socket) {
    cpu::end_of(mesh_socket, SocketEndpoint::SENDER, input_tensor, "send_async")
        .send(cpu::stored_bytes(input_tensor));
    return {};
}

std::vector<Tensor> recv_async(const Tensor& output_tensor, const MeshSocket& mesh_socket) {
    cpu::SocketEnd& end =
        cpu::end_of(mesh_socket, SocketEndpoint::RECEIVER, output_tensor, "recv_async");
    cpu::buffer_of(output_tensor).forget_derived();
    end.receive(cpu::stored_bytes(output_tensor));
    return {output_tensor};
}

}  // namespace ttnn::experimental
