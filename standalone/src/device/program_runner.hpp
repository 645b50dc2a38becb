#pragma once

#include "device/emulated_device.hpp"
#include "device/program.hpp"

namespace ttcodegen::device {

/// Places a program's circular buffers, compiles its kernels and runs it on a chip to its end.
/// @throws std::runtime_error if its memory does not fit, a kernel does not compile or fails, or
/// the processors wait in vain.
void run_program(EmulatedDevice& device, std::size_t chip,
                 tt::tt_metal::detail::ProgramImpl& program);

}  // namespace ttcodegen::device
