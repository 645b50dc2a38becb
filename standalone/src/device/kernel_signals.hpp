/// Faults of kernels: what a kernel does to memory that is not there must not end the process.
#pragma once

#include "device/run.hpp"

namespace ttcodegen::device {

/// While it lives, a fault on a fiber of the run ends the run with a message, and so does a kernel
/// that computes for some seconds of processor time without calling the kernel API: ten, or what
/// the environment variable TTCODEGEN_KERNEL_SECONDS says.
///
/// A kernel that dereferences the plain offset of its own L1, which the host knows but this process
/// has at another address, is served: the core's L1 is mapped at its offsets until another core
/// runs.
class KernelSignals {
  public:
    explicit KernelSignals(Run& run);
    ~KernelSignals();
    KernelSignals(const KernelSignals&) = delete;
    KernelSignals& operator=(const KernelSignals&) = delete;

    /// Called before a fiber of this core goes on.
    void enter(const CoreState& core);

  private:
    friend struct SignalAccess;
    Run& run_;
    const CoreState* mapped_ = nullptr;
    std::uint64_t seen_progress_ = 0;
    unsigned silent_seconds_ = 0;
    unsigned allowed_seconds_;
    bool timer_made_ = false;
    void* timer_ = nullptr;
};

}  // namespace ttcodegen::device
