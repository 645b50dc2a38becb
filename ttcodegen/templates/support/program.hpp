#pragma once

namespace support {

struct Module;

/// The command line of a module's executable; `--help` lists its options.
///
/// @return the exit status: 0, 1 if outputs differ from the golden ones, 2 for wrong usage, 3 if a
/// file cannot be read or written or a run fails. What went wrong is on standard error.
int run_program(const Module& module, int argc, char** argv);

}  // namespace support
