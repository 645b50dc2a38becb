#pragma once

#include <cstdint>

#include "support/tensors.hpp"

namespace support {

struct Module;

/// Optional parts of an executable. Options that need a part that is null are rejected.
struct ProgramParts {
    /// Random values for inputs and weights without a file: see support/drawing.hpp.
    Array (*draw)(const TensorDescription& tensor, std::uint64_t seed) = nullptr;
    /// Compares outputs with golden ones: see support/comparison.hpp.
    bool (*compare)(const ArrayView& actual, const ArrayView& expected,
                    const Tolerance& tolerance) = nullptr;
    /// Follows the help on the options.
    const char* further_help = "";
};

/// The command line of a module's executable; `--help` lists its options.
///
/// @return the exit status: 0, 1 if outputs differ from the golden ones, 2 for wrong usage, 3 if a
/// file cannot be read or written or a run fails. What went wrong is on standard error.
int run_program(const Module& module, const ProgramParts& parts, int argc, char** argv);

/// Reports an error and ends the process without running destructors: after a failure on the
/// device, or during kernel compilation, the library crashes when devices and its threads are torn
/// down.
[[noreturn]] void leave(const char* message, int status);

}  // namespace support
