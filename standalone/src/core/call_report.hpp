#pragma once

// What a program calls of ttnn: how long each call took, what it read and what it gave. It is
// reported to the file that TTCODEGEN_CALL_REPORT names, if it is set, a line of JSON for each
// call. What an operation calls of others is part of it, and has no line of its own.

#include <cstdint>
#include <utility>
#include <vector>

#include "core/arguments.hpp"
#include "ttnn/types.hpp"

namespace ttcodegen::cpu {

/// Whether the thread is in a call that is reported or recorded.
bool is_inside_call();
/// Whether a call that begins now on this thread is one of the program, of all chips.
bool is_outermost_call();
/// Whether a call that begins now on this thread is one to report.
bool reports_calls();

/// Makes calls part of the one that is under way, for as long as it lives.
class OutermostCall {
  public:
    OutermostCall();
    ~OutermostCall();
    OutermostCall(const OutermostCall&) = delete;
    OutermostCall& operator=(const OutermostCall&) = delete;
    OutermostCall(OutermostCall&&) = delete;
    OutermostCall& operator=(OutermostCall&&) = delete;
};

/// The tensors among arguments or results; those that are none, such as absent ones, left out.
class Tensors : public ArgumentVisitor<Tensors> {
  public:
    std::vector<tt::tt_metal::Tensor> found;

    using ArgumentVisitor::see;
    void see(const tt::tt_metal::Tensor& tensor);
};

/// Measures a call for as long as it lives, or until it returned.
class ReportedCall {
  public:
    ReportedCall(const char* name, std::uint64_t read_bytes);

    /// Stops the clocks and writes the line.
    void returned(const Tensors& results) const;

  private:
    OutermostCall outermost_;
    const char* name_;
    std::uint64_t read_bytes_;
    std::int64_t begin_;
    std::int64_t processor_begin_;
};

/// Bytes of tensors as stored, on all chips.
std::uint64_t bytes_of(const Tensors& tensors);

/// What `call` returns, which is reported as a call of `name` with these arguments.
template <typename Call, typename... Arguments>
auto reported(const char* name, const Call& call, const Arguments&... arguments) {
    std::uint64_t read_bytes = 0;
    {
        // The operation sees who else holds its operands: nobody does for the report.
        Tensors operands;
        (operands.see(arguments), ...);
        read_bytes = bytes_of(operands);
    }
    const ReportedCall measured(name, read_bytes);
    auto result = call();
    Tensors results;
    results.see(result);
    measured.returned(results);
    return result;
}

}  // namespace ttcodegen::cpu

/// Where calls are reported, returns what the function gives and reports it. The arguments are all
/// of the function's own, but for those at the end that it ignores.
#define TTCODEGEN_REPORTED(function, ...) TTCODEGEN_REPORTED_AS(#function, function, __VA_ARGS__)

/// The same under the name of the function that called this one, which serves many operations.
#define TTCODEGEN_REPORTED_AS(name, function, ...)                                                 \
    if (ttcodegen::cpu::reports_calls()) {                                                         \
        return ttcodegen::cpu::reported(name, [&] { return function(__VA_ARGS__); }, __VA_ARGS__); \
    }
