/// Handling of faults in kernels: an invalid memory access must not end the process.
#pragma once

#include "device/run.hpp"

namespace ttcodegen::device {

/// Ends the run with a message on a fault on one of its fibers, and on a kernel that computes for
/// some seconds of processor time without calling the kernel API: ten, or the value of the
/// environment variable TTCODEGEN_KERNEL_SECONDS. Active while the object lives.
///
/// Plain offsets in a core's own L1, as known to the host, are unmapped addresses in this process;
/// a kernel that dereferences one gets the core's L1 mapped at its offsets until another core
/// runs.
class KernelSignals {
  public:
    explicit KernelSignals(Run& run);
    ~KernelSignals();
    KernelSignals(const KernelSignals&) = delete;
    KernelSignals& operator=(const KernelSignals&) = delete;

    /// Called before a fiber of this core is resumed.
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
