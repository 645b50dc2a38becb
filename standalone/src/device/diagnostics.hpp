/// The texts of diagnostics: which processor of which core, at which line of which kernel.
#pragma once

#include <string>
#include <vector>

#include "device/run.hpp"

namespace ttcodegen::device {

/// BRISC, NCRISC or TRISC, as the firmware calls them.
const char* processor_name(ProcessorKind kind);
/// `core (x=1,y=2) [NoC (19,20)], NCRISC`
std::string describe_processor(const ProcessorState& state);
/// `(x=0,y=0)-(x=7,y=3), (x=0,y=4)`: as rectangles, by first and last core.
std::string describe_cores(std::vector<CoreCoord> cores);
/// `reader.cpp:12`, with the kernel's path as the program gave it.
std::string describe_line(const ProcessorState& state, const Location& here);
/// `circular buffer 3 (cb_in)`
std::string describe_circular_buffer(const ProcessorState& state, std::uint32_t index);
/// What a suspended processor waits for, and what there is.
std::string describe_wait(const ProcessorState& state);
/// The whole message of a failure of this processor.
std::string failure_message(const ProcessorState& state, const Location& here,
                            const std::string& what);
/// The same for what is known to be wrong, but not on which line.
std::string failure_message(const ProcessorState& state, const std::string& what);
/// What is at an offset of a core's L1, for messages.
std::string describe_l1(const CoreState& core, const ProcessorState& state, std::uint32_t offset);

std::string format(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace ttcodegen::device
