#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace tt::tt_metal {

class CircularBuffer;
struct ProgramDescriptor;

namespace detail {
class ProgramImpl;
}  // namespace detail

using ProgramId = std::uint64_t;

/// Kernels, circular buffers and semaphores that run together.
class Program {
  public:
    Program();
    /// @throws std::runtime_error like the functions that add parts to a program.
    explicit Program(const ProgramDescriptor& descriptor);
    explicit Program(std::shared_ptr<detail::ProgramImpl> impl);
    ~Program() noexcept;

    Program(const Program& other) = delete;
    Program& operator=(const Program& other) = delete;
    Program(Program&& other) noexcept;
    Program& operator=(Program&& other) noexcept;

    void set_runtime_id(ProgramId id);
    ProgramId get_runtime_id() const;
    std::vector<std::shared_ptr<CircularBuffer>> circular_buffers() const;

    detail::ProgramImpl& impl() { return *internal_; }
    const detail::ProgramImpl& impl() const { return *internal_; }

  private:
    std::shared_ptr<detail::ProgramImpl> internal_;
};

}  // namespace tt::tt_metal
