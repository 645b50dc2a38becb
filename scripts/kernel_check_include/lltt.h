// The interface of the instruction replay buffer, as far as the device headers of the release use
// it.
//
// The real header comes with the vendor's compiler. These declarations are written from how the
// device headers call them and serve to check types.

#pragma once

#include <cstdint>

namespace lltt {

/// Whether instructions are executed while they are recorded.
enum ExecBool : bool { NoExec, Exec };

template <ExecBool = NoExec>
void record(std::uint32_t start, std::uint32_t length);

void replay(std::uint32_t start, std::uint32_t length);

/// The instruction that replays; a constant where the arguments are.
constexpr std::uint32_t replay_insn(std::uint32_t start, std::uint32_t length) {
    return start + length;
}

}  // namespace lltt
