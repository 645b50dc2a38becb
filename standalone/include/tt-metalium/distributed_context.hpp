#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "tt_stl/span.hpp"
#include "tt_stl/strong_type.hpp"

namespace tt::tt_metal::distributed::multihost {

enum class ReduceOp : std::uint8_t { SUM, MAX, MIN, PROD, LAND, LOR, BAND, BOR };

enum class DType : std::uint8_t {
    INT8,
    UINT8,
    INT16,
    UINT16,
    INT32,
    UINT32,
    INT64,
    UINT64,
    FLOAT32,
    FLOAT64,
    BOOL,
    BYTE,
    COMPLEX_FLOAT,
    COMPLEX_DOUBLE,
};

using Rank = ttsl::StrongType<int, struct RankTag>;
using Tag = ttsl::StrongType<int, struct TagTag>;
using Color = ttsl::StrongType<int, struct ColorTag>;
using Key = ttsl::StrongType<int, struct KeyTag>;
using Size = ttsl::StrongType<int, struct SizeTag>;
using SubcontextId = ttsl::StrongType<int, struct SubcontextIdTag>;
using DistributedContextId = ttsl::StrongType<int, struct DistributedContextIdTag>;

class Request;
class DistributedContext;

using RequestPtr = std::shared_ptr<Request>;
using ContextPtr = std::shared_ptr<DistributedContext>;

/// The processes that run a program together. The CPU backend has what its programs need, and
/// refuses the other functions, which are declared so that those have their places in the table.
class DistributedContext {
  public:
    /// Starts the communication between the processes; without a launcher there is one.
    static void create(int argc, char** argv);
    static const ContextPtr& get_current_world();
    static void set_current_world(const ContextPtr& ctx);
    static bool is_initialized();

    [[nodiscard]] virtual Rank rank() const = 0;
    [[nodiscard]] virtual Size size() const = 0;
    [[nodiscard]] virtual bool supports_fault_tolerance() const = 0;
    [[nodiscard]] virtual std::optional<SubcontextId> subcontext_id() const;
    [[nodiscard]] virtual int subcontext_count() const;
    [[nodiscard]] virtual Size subcontext_size(SubcontextId subcontext_id) const;
    [[nodiscard]] virtual ttsl::Span<const int> subcontext_sizes() const;
    [[nodiscard]] virtual Rank local_to_world_rank(SubcontextId subcontext_id,
                                                   Rank local_rank) const;
    virtual void barrier() const = 0;
    virtual void send(ttsl::Span<std::byte> buffer, Rank dest, Tag tag) const;
    virtual void ssend(ttsl::Span<std::byte> buffer, Rank dest, Tag tag) const;
    virtual void recv(ttsl::Span<std::byte> buffer, Rank source, Tag tag) const;
    [[nodiscard]] virtual RequestPtr isend(ttsl::Span<std::byte> buffer, Rank dest, Tag tag) const;
    [[nodiscard]] virtual RequestPtr irecv(ttsl::Span<std::byte> buffer, Rank source,
                                           Tag tag) const;
    virtual void broadcast(ttsl::Span<std::byte> buffer, Rank root) const = 0;
    virtual void gather(ttsl::Span<std::byte> send_buf, ttsl::Span<std::byte> recv_buf,
                        Rank root) const;
    virtual void scatter(ttsl::Span<std::byte> send_buf, ttsl::Span<std::byte> recv_buf,
                         Rank root) const;
    virtual void all_gather(ttsl::Span<std::byte> send_buf,
                            ttsl::Span<std::byte> recv_buf) const = 0;
    virtual void all_to_all(ttsl::Span<std::byte> send_buf, ttsl::Span<std::byte> recv_buf) const;
    virtual void all_reduce(ttsl::Span<std::byte> send_buf, ttsl::Span<std::byte> recv_buf,
                            ReduceOp op, DType dtype) const;
    virtual void reduce(ttsl::Span<std::byte> send_buf, ttsl::Span<std::byte> recv_buf, ReduceOp op,
                        DType dtype, Rank root) const;
    virtual void reduce_scatter(ttsl::Span<std::byte> send_buf, ttsl::Span<std::byte> recv_buf,
                                ReduceOp op, DType dtype) const;
    virtual void scan(ttsl::Span<std::byte> send_buf, ttsl::Span<std::byte> recv_buf, ReduceOp op,
                      DType dtype) const;
    [[nodiscard]] virtual ContextPtr duplicate() const;
    [[nodiscard]] virtual ContextPtr split(Color color, Key key) const;
    [[nodiscard]] virtual ContextPtr create_sub_context(ttsl::Span<int> ranks) const;
    virtual void translate_ranks_to_other_ctx(ttsl::Span<int> ranks, const ContextPtr& other_ctx,
                                              ttsl::Span<int> translated_ranks) const;
    /// Ends all processes.
    virtual void abort(int error_code) const = 0;
    virtual void revoke_and_shrink();
    [[nodiscard]] virtual bool is_revoked();
    virtual std::size_t snoop_incoming_msg_size(Rank source, Tag tag) const;
    virtual ~DistributedContext() = default;

  protected:
    DistributedContextId id_{0};
};

}  // namespace tt::tt_metal::distributed::multihost
