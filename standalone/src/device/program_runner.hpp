#pragma once

#include <cstddef>
#include <vector>

#include "device/emulated_device.hpp"
#include "device/program.hpp"

namespace ttcodegen::device {

/// A program and a chip that runs it.
struct ChipProgram {
    std::size_t chip;
    tt::tt_metal::detail::ProgramImpl* program;
};

/// Places the circular buffers of programs, compiles their kernels and runs them to their end, chip
/// by chip; those without compute kernels may wait for what other chips send.
/// @throws std::runtime_error if memory does not fit, a kernel does not compile or fails, or the
/// processors wait in vain.
void run_programs(EmulatedDevice& device, const std::vector<ChipProgram>& programs);

}  // namespace ttcodegen::device
