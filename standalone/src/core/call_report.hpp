#pragma once

// Reports of ttnn calls: time, operands and results. Reports are written to the file named by
// TTCODEGEN_CALL_REPORT, if it is set, as a line of JSON per call. Calls that an operation makes
// itself are part of its line.

#include <cstdint>
#include <utility>
#include <vector>

#include "core/arguments.hpp"
#include "ttnn/types.hpp"

namespace ttcodegen::cpu {

/// Returns whether the thread is in a call that is reported or recorded.
bool is_inside_call();
/// Returns whether a call that begins now on this thread is the program's own, for all devices.
bool is_outermost_call();
/// Returns whether a call that begins now on this thread is to be reported.
bool reports_calls();

/// Attributes calls to the current outermost call while the object lives.
class OutermostCall {
  public:
    OutermostCall();
    ~OutermostCall();
    OutermostCall(const OutermostCall&) = delete;
    OutermostCall& operator=(const OutermostCall&) = delete;
    OutermostCall(OutermostCall&&) = delete;
    OutermostCall& operator=(OutermostCall&&) = delete;
};

/// The tensors among arguments or results, without absent ones.
class Tensors : public ArgumentVisitor<Tensors> {
  public:
    std::vector<tt::tt_metal::Tensor> found;

    using ArgumentVisitor::see;
    void see(const tt::tt_metal::Tensor& tensor);
};

/// Collects the tensors among arguments. Out of line, for several places of each operation need it.
template <typename... Arguments>
[[gnu::cold, gnu::noinline]] Tensors tensors_among(const Arguments&... arguments) {
    Tensors tensors;
    (tensors.see(arguments), ...);
    return tensors;
}

/// Measures a call until it returns or the object is destroyed.
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

/// Bytes of tensors as stored, on all devices.
std::uint64_t bytes_of(const Tensors& tensors);

/// Returns the result of `call`, reported as a call of `name` with these arguments.
template <typename Call, typename... Arguments>
[[gnu::cold, gnu::noinline]] auto reported(const char* name, const Call& call,
                                           const Arguments&... arguments) {
    // Operations check the owners of their operands, so the report must not hold any.
    const ReportedCall measured(name, bytes_of(tensors_among(arguments...)));
    auto result = call();
    Tensors results;
    results.see(result);
    measured.returned(results);
    return result;
}

}  // namespace ttcodegen::cpu

/// With reporting on, calls the function, reports it and returns its result. The arguments are all
/// parameters of the function, except trailing ones that it ignores.
#define TTCODEGEN_REPORTED(function, ...) TTCODEGEN_REPORTED_AS(#function, function, __VA_ARGS__)

/// The same, named after the calling function, for functions that serve many operations.
#define TTCODEGEN_REPORTED_AS(name, function, ...)                                                 \
    if (ttcodegen::cpu::reports_calls()) {                                                         \
        return ttcodegen::cpu::reported(name, [&] { return function(__VA_ARGS__); }, __VA_ARGS__); \
    }
