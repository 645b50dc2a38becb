#pragma once

#include <cstddef>
#include <vector>

#include "device/emulated_device.hpp"
#include "device/program.hpp"

namespace ttcodegen::device {

/// A program and the chip that runs it.
struct ChipProgram {
    std::size_t chip;
    tt::tt_metal::detail::ProgramImpl* program;
};

/// Places the circular buffers of programs, compiles their kernels and runs them to completion,
/// chip by chip; those without compute kernels may wait for packets of other chips.
/// @throws std::runtime_error if memory does not fit, a kernel does not compile or fails, or
/// processors deadlock.
void run_programs(EmulatedDevice& device, const std::vector<ChipProgram>& programs);

}  // namespace ttcodegen::device
