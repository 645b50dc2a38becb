#include "mesh/ranks.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "core/chips.hpp"
#include "core/tensor_data.hpp"
#include "tt-metalium/distributed_context.hpp"
#include "ttcodegen/mpi/factory.hpp"

namespace tt::tt_metal::distributed::multihost {

namespace {

ttcodegen::cpu::ContextFactory factory = nullptr;

/// A program of one process.
class SingleHostContext : public DistributedContext {
  public:
    Rank rank() const override { return Rank(0); }
    Size size() const override { return Size(1); }
    bool supports_fault_tolerance() const override { return false; }
    void barrier() const override {}
    void broadcast(ttsl::Span<std::byte> /*buffer*/, Rank /*root*/) const override {}
    void all_gather(ttsl::Span<std::byte> send_buf, ttsl::Span<std::byte> recv_buf) const override {
        std::ranges::copy(send_buf, recv_buf.begin());
    }
    void abort(int error_code) const override { std::_Exit(error_code); }
};

ContextPtr& world() {
    static ContextPtr current;
    return current;
}

[[noreturn]] void refuse(const char* function) {
    TT_THROW("The CPU backend has no {} between processes", function);
}

}  // namespace

void DistributedContext::create(int argc, char** argv) {
    if (world() == nullptr) {
        world() = factory != nullptr ? factory(argc, argv) : std::make_shared<SingleHostContext>();
    }
}

const ContextPtr& DistributedContext::get_current_world() {
    if (world() == nullptr) {
        world() = std::make_shared<SingleHostContext>();
    }
    return world();
}

void DistributedContext::set_current_world(const ContextPtr& ctx) { world() = ctx; }
bool DistributedContext::is_initialized() { return world() != nullptr; }

std::optional<SubcontextId> DistributedContext::subcontext_id() const { return std::nullopt; }
int DistributedContext::subcontext_count() const { return 1; }
Size DistributedContext::subcontext_size(SubcontextId /*subcontext_id*/) const { return size(); }
ttsl::Span<const int> DistributedContext::subcontext_sizes() const { refuse("subcontext_sizes"); }
Rank DistributedContext::local_to_world_rank(SubcontextId /*subcontext_id*/,
                                             Rank local_rank) const {
    return local_rank;
}
void DistributedContext::send(ttsl::Span<std::byte> /*buffer*/, Rank /*dest*/, Tag /*tag*/) const {
    refuse("send");
}
void DistributedContext::ssend(ttsl::Span<std::byte> /*buffer*/, Rank /*dest*/, Tag /*tag*/) const {
    refuse("ssend");
}
void DistributedContext::recv(ttsl::Span<std::byte> /*buffer*/, Rank /*source*/,
                              Tag /*tag*/) const {
    refuse("recv");
}
RequestPtr DistributedContext::isend(ttsl::Span<std::byte> /*buffer*/, Rank /*dest*/,
                                     Tag /*tag*/) const {
    refuse("isend");
}
RequestPtr DistributedContext::irecv(ttsl::Span<std::byte> /*buffer*/, Rank /*source*/,
                                     Tag /*tag*/) const {
    refuse("irecv");
}
void DistributedContext::gather(ttsl::Span<std::byte> /*send_buf*/,
                                ttsl::Span<std::byte> /*recv_buf*/, Rank /*root*/) const {
    refuse("gather");
}
void DistributedContext::scatter(ttsl::Span<std::byte> /*send_buf*/,
                                 ttsl::Span<std::byte> /*recv_buf*/, Rank /*root*/) const {
    refuse("scatter");
}
void DistributedContext::all_to_all(ttsl::Span<std::byte> /*send_buf*/,
                                    ttsl::Span<std::byte> /*recv_buf*/) const {
    refuse("all_to_all");
}
void DistributedContext::all_reduce(ttsl::Span<std::byte> /*send_buf*/,
                                    ttsl::Span<std::byte> /*recv_buf*/, ReduceOp /*op*/,
                                    DType /*dtype*/) const {
    refuse("all_reduce");
}
void DistributedContext::reduce(ttsl::Span<std::byte> /*send_buf*/,
                                ttsl::Span<std::byte> /*recv_buf*/, ReduceOp /*op*/,
                                DType /*dtype*/, Rank /*root*/) const {
    refuse("reduce");
}
void DistributedContext::reduce_scatter(ttsl::Span<std::byte> /*send_buf*/,
                                        ttsl::Span<std::byte> /*recv_buf*/, ReduceOp /*op*/,
                                        DType /*dtype*/) const {
    refuse("reduce_scatter");
}
void DistributedContext::scan(ttsl::Span<std::byte> /*send_buf*/,
                              ttsl::Span<std::byte> /*recv_buf*/, ReduceOp /*op*/,
                              DType /*dtype*/) const {
    refuse("scan");
}
ContextPtr DistributedContext::duplicate() const { refuse("duplicate"); }
ContextPtr DistributedContext::split(Color /*color*/, Key /*key*/) const { refuse("split"); }
ContextPtr DistributedContext::create_sub_context(ttsl::Span<int> /*ranks*/) const {
    refuse("create_sub_context");
}
void DistributedContext::translate_ranks_to_other_ctx(ttsl::Span<int> /*ranks*/,
                                                      const ContextPtr& /*other_ctx*/,
                                                      ttsl::Span<int> /*translated_ranks*/) const {
    refuse("translate_ranks_to_other_ctx");
}
void DistributedContext::revoke_and_shrink() { refuse("revoke_and_shrink"); }
bool DistributedContext::is_revoked() { return false; }
std::size_t DistributedContext::snoop_incoming_msg_size(Rank /*source*/, Tag /*tag*/) const {
    refuse("snoop_incoming_msg_size");
}

}  // namespace tt::tt_metal::distributed::multihost

namespace ttcodegen::cpu {

using tt::tt_metal::distributed::multihost::DistributedContext;
using tt::tt_metal::distributed::multihost::Rank;

void set_context_factory(ContextFactory factory) {
    tt::tt_metal::distributed::multihost::factory = factory;
}

LocalChips local_chips(std::size_t chips) {
    const DistributedContext& world = *DistributedContext::get_current_world();
    const auto ranks = static_cast<std::size_t>(*world.size());
    if (ranks == 1 || chips <= 1) {
        return {0, chips, chips};
    }
    TT_FATAL(chips % ranks == 0, "A mesh of {} devices does not divide among {} processes", chips,
             ranks);
    const std::size_t each = chips / ranks;
    const std::size_t begin = static_cast<std::size_t>(*world.rank()) * each;
    return {begin, begin + each, chips};
}

bool is_first_rank() { return *DistributedContext::get_current_world()->rank() == 0; }

Tensor remote_part(const TensorSpec& spec, MeshDevice* device) {
    const auto allocation = std::make_shared<Allocation>();
    Tensor part;
    part.tensor_attributes =
        std::make_shared<tt::tt_metal::TensorAttributes>(spec, device, allocation, allocation);
    return part;
}

bool is_remote(const Tensor& tensor) {
    const auto& allocation = *attributes(tensor).allocation;
    return allocation.allocated && allocation.buffer == nullptr;
}

std::vector<Tensor> gathered_parts(const Tensor& tensor) {
    std::vector<Tensor> parts = parts_of(tensor);
    const LocalChips local = local_chips(parts.size());
    if (local.are_all()) {
        return parts;
    }
    const DistributedContext& world = *DistributedContext::get_current_world();
    const std::size_t each = local.end - local.begin;
    const std::size_t bytes = buffer_of(parts[local.begin]).bytes();
    std::vector<std::byte> received(parts.size() / each * bytes);
    for (std::size_t place = 0; place < each; ++place) {
        Buffer& own = buffer_of(parts[local.begin + place]);
        world.all_gather({own.data(), bytes}, received);
        for (std::size_t rank = 0; rank < parts.size() / each; ++rank) {
            Tensor& part = parts[rank * each + place];
            if (!local.contains(rank * each + place)) {
                part = allocate(part.tensor_spec(), device_of(part));
                std::copy_n(received.data() + rank * bytes, bytes, buffer_of(part).data());
            }
        }
    }
    return parts;
}

Tensor broadcast_part(const Tensor& tensor, std::size_t chip) {
    Tensor part = parts_of(tensor).at(chip);
    const LocalChips local = local_chips(parts_of(tensor).size());
    if (local.are_all()) {
        return part;
    }
    if (!local.contains(chip)) {
        part = allocate(part.tensor_spec(), device_of(part));
    }
    Buffer& elements = buffer_of(part);
    DistributedContext::get_current_world()->broadcast({elements.data(), elements.bytes()},
                                                       Rank(static_cast<int>(local.rank_of(chip))));
    return part;
}

}  // namespace ttcodegen::cpu
