/// Reports of programs, collected for the process and written as JSON on request.
#pragma once

#include "device/program.hpp"

namespace ttcodegen::device {

/// Appends to the file that TTCODEGEN_DEVICE_REPORT names, if it is set.
void write_report(const ProgramReport& report);

}  // namespace ttcodegen::device
