// Mailboxes between the processors of a core, which kernels name but are not made to use.
#pragma once

#include <cstdint>

namespace ckernel {

enum ThreadId { UnpackThreadId, MathThreadId, PackThreadId, BriscThreadId };

inline void mailbox_write(ThreadId, std::uint32_t) { __builtin_trap(); }
inline std::uint32_t mailbox_read(ThreadId) { __builtin_trap(); }

}  // namespace ckernel

using ckernel::mailbox_read;
