#pragma once

#include <span>

#include "support/generation.hpp"

namespace support {

struct Module;

/// The options of the generation, for `--help`.
extern const char* const generation_help;

/// Returns whether arguments of the command line request the generation of tokens.
bool is_generation(std::span<char* const> arguments);

/// The command line of an executable that generates tokens.
///
/// @param generate generates tokens as the options say: see src/generate.cpp.
/// @return the exit status: 0, 1 if no tokens can be generated, 2 for wrong usage. What went wrong
/// is on standard error.
int run_generation(const Module& module,
                   void (*generate)(const Module& module, const GenerationOptions& options),
                   std::span<char* const> arguments);

}  // namespace support
