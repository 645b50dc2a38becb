// The processes of a program that MPI has started. Compiled with the program: the CPU backend
// itself does not depend on MPI.

#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "ttcodegen/mpi/factory.hpp"

namespace {

using namespace tt::tt_metal::distributed::multihost;

void check(int status, const char* call) {
    if (status != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING] = {};
        int length = 0;
        MPI_Error_string(status, text, &length);
        throw std::runtime_error(std::string(call) + " failed: " + text);
    }
}

class MPIContext : public DistributedContext {
  public:
    MPIContext() { check(MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN), "MPI"); }

    Rank rank() const override {
        int rank = 0;
        check(MPI_Comm_rank(world_, &rank), "MPI_Comm_rank");
        return Rank(rank);
    }
    Size size() const override {
        int size = 0;
        check(MPI_Comm_size(world_, &size), "MPI_Comm_size");
        return Size(size);
    }
    bool supports_fault_tolerance() const override { return false; }
    void barrier() const override { check(MPI_Barrier(world_), "MPI_Barrier"); }

    void broadcast(ttsl::Span<std::byte> buffer, Rank root) const override {
        // Counts of MPI are of the type int.
        for (std::size_t done = 0; done < buffer.size(); done += kLargest) {
            const auto part = buffer.subspan(done, std::min(kLargest, buffer.size() - done));
            check(MPI_Bcast(part.data(), static_cast<int>(part.size()), MPI_BYTE, *root, world_),
                  "MPI_Bcast");
        }
    }
    void all_gather(ttsl::Span<std::byte> send_buf, ttsl::Span<std::byte> recv_buf) const override {
        if (send_buf.size() > kLargest) {
            const std::size_t ranks = recv_buf.size() / send_buf.size();
            for (std::size_t each = 0; each < ranks; ++each) {
                const auto part = recv_buf.subspan(each * send_buf.size(), send_buf.size());
                if (static_cast<int>(each) == *rank()) {
                    std::copy(send_buf.begin(), send_buf.end(), part.begin());
                }
                broadcast(part, Rank(static_cast<int>(each)));
            }
            return;
        }
        const int count = static_cast<int>(send_buf.size());
        check(MPI_Allgather(send_buf.data(), count, MPI_BYTE, recv_buf.data(), count, MPI_BYTE,
                            world_),
              "MPI_Allgather");
    }
    void send(ttsl::Span<std::byte> buffer, Rank dest, Tag tag) const override {
        for (std::size_t done = 0; done < buffer.size(); done += kLargest) {
            const auto part = buffer.subspan(done, std::min(kLargest, buffer.size() - done));
            check(
                MPI_Send(part.data(), static_cast<int>(part.size()), MPI_BYTE, *dest, *tag, world_),
                "MPI_Send");
        }
    }
    void recv(ttsl::Span<std::byte> buffer, Rank source, Tag tag) const override {
        for (std::size_t done = 0; done < buffer.size(); done += kLargest) {
            const auto part = buffer.subspan(done, std::min(kLargest, buffer.size() - done));
            MPI_Status status;
            check(MPI_Recv(part.data(), static_cast<int>(part.size()), MPI_BYTE, *source, *tag,
                           world_, &status),
                  "MPI_Recv");
            int count = 0;
            check(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
            if (count != static_cast<int>(part.size())) {
                throw std::runtime_error("process " + std::to_string(*source) + " sent " +
                                         std::to_string(count) + " bytes, expected " +
                                         std::to_string(part.size()));
            }
        }
    }
    void abort(int error_code) const override { MPI_Abort(world_, error_code); }

  private:
    static constexpr std::size_t kLargest = INT_MAX;
    MPI_Comm world_ = MPI_COMM_WORLD;
};

ContextPtr start(int argc, char** argv) {
    int provided = 0;
    check(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    std::atexit([] { MPI_Finalize(); });
    return std::make_shared<MPIContext>();
}

[[maybe_unused]] const bool is_set = (ttcodegen::cpu::set_context_factory(start), true);

}  // namespace
