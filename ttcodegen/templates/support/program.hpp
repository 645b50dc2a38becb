#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "support/tensors.hpp"

namespace support {

struct Function;
struct Module;
class Runnable;

/// Wrong usage of an executable.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The value of an option as a number.
template <typename T>
T number(std::string_view option, std::string_view text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
        throw UsageError(std::string(option) + " needs a number, found '" + std::string(text) +
                         "'");
    }
    return value;
}

/// Optional parts of an executable. Options that need a part that is null are rejected.
struct ProgramParts {
    /// Random values for inputs and weights without a file: see support/drawing.hpp.
    Array (*draw)(const TensorDescription& tensor, std::uint64_t seed) = nullptr;
    /// Compares outputs with golden ones: see support/comparison.hpp.
    bool (*compare)(const ArrayView& actual, const ArrayView& expected,
                    const Tolerance& tolerance) = nullptr;
    /// The functions to call, if they differ from those of the module.
    std::span<const Function> functions = {};
    /// Opens the devices for these functions; null opens the mesh of the module.
    std::unique_ptr<Runnable> (*open)(const std::string& data, std::uint64_t device) = nullptr;
    /// The number of functions, from the first on, that run where the options name none; 0 for all.
    std::size_t unnamed_functions = 0;
    /// Follows the help on the options.
    const char* further_help = "";
    /// False for a process that repeats the computation of another one, which writes and compares.
    bool writes_outputs = true;
};

/// Called before an error is reported, unless it is null.
inline void (*before_report)() = nullptr;

/// Ends the other processes of a program that runs as several; null for one process.
inline void (*end_others)(int status) = nullptr;

/// The command line of a module's executable; `--help` lists its options.
///
/// @return the exit status: 0, 1 if outputs differ from the golden ones, 2 for wrong usage, 3 if a
/// file cannot be read or written or a run fails. What went wrong is on standard error.
int run_program(const Module& module, const ProgramParts& parts, int argc, char** argv);

/// Reports an error and ends the process without running destructors: after a failure on the
/// device, or during kernel compilation, the library crashes when devices and its threads are torn
/// down.
[[noreturn]] void leave(const std::string& message, int status);

}  // namespace support
