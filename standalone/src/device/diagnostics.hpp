/// Texts of diagnostics: processor, core, kernel and line.
#pragma once

#include <string>
#include <vector>

#include "device/run.hpp"

namespace ttcodegen::device {

/// BRISC, NCRISC or TRISC, the names of the firmware.
const char* processor_name(ProcessorKind kind);
/// `core (x=1,y=2) [NoC (19,20)], NCRISC`
std::string describe_processor(const ProcessorState& state);
/// `(x=0,y=0)-(x=7,y=3), (x=0,y=4)`: as rectangles, by first and last core.
std::string describe_cores(std::vector<CoreCoord> cores);
/// `reader.cpp:12`, with the kernel's path as passed by the program.
std::string describe_line(const ProcessorState& state, const Location& here);
/// `circular buffer 3 (cb_in)`
std::string describe_circular_buffer(const ProcessorState& state, std::uint32_t index);
/// The condition that a suspended processor waits for, and the current state.
std::string describe_wait(const ProcessorState& state);
/// The complete message of a failure of this processor.
std::string failure_message(const ProcessorState& state, const Location& here,
                            const std::string& what);
/// The same for an error whose line is unknown.
std::string failure_message(const ProcessorState& state, const std::string& what);
/// A description of an offset in a core's L1, for messages.
std::string describe_l1(const CoreState& core, const ProcessorState& state, std::uint32_t offset);

std::string format(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace ttcodegen::device
