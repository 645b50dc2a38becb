#pragma once

// The prologue of operations: calls are recorded while a trace is captured, and reported on
// request.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/call_report.hpp"
#include "core/tensor_data.hpp"
#include "core/trace.hpp"
#include "tt_stl/optional_reference.hpp"

namespace ttcodegen::cpu {

/// Notes that an operation was called with these operands: its programs are compiled from then on.
void note_call(const char* name, const Tensors& operands);

/// Refuses to capture an operation that was not called with such operands: its kernels would have
/// to be sent to the device.
void require_called(const char* name, const Tensors& operands);

template <typename... Arguments>
void noted(const char* name, const Arguments&... arguments) {
    if (is_outermost_call()) {
        note_call(name, tensors_among(arguments...));
    }
}

/// A tensor on the same memory that does not count as its owner.
Tensor unowned(const Tensor& tensor);

// Storage of arguments in a recorded call: nothing that they refer to, except devices, is destroyed
// before the trace.
template <typename T>
T kept_argument(const T& value) {
    return value;
}
inline Tensor kept_argument(const Tensor& tensor) { return unowned(tensor); }
inline std::reference_wrapper<MeshDevice> kept_argument(const MeshDevice& device) {
    return const_cast<MeshDevice&>(device);
}
/// Copies the elements of a span.
template <typename T>
struct KeptSpan {
    std::vector<std::remove_const_t<T>> elements;
};
template <typename T>
KeptSpan<T> kept_argument(const std::span<T>& values) {
    return {{values.begin(), values.end()}};
}
template <typename T>
std::optional<std::remove_const_t<T>> kept_argument(const ttsl::optional_reference<T>& value);
template <typename T>
std::optional<T> kept_argument(const std::optional<T>& value);
template <typename T>
std::vector<T> kept_argument(const std::vector<T>& values);
template <typename... T>
std::variant<T...> kept_argument(const std::variant<T...>& value);

template <typename T>
std::optional<std::remove_const_t<T>> kept_argument(const ttsl::optional_reference<T>& value) {
    return value ? std::optional<std::remove_const_t<T>>(kept_argument(*value)) : std::nullopt;
}
template <typename T>
std::optional<T> kept_argument(const std::optional<T>& value) {
    return value ? std::optional<T>(kept_argument(*value)) : std::nullopt;
}
template <typename T>
std::vector<T> kept_argument(const std::vector<T>& values) {
    std::vector<T> kept;
    for (const T& value : values) {
        kept.push_back(kept_argument(value));
    }
    return kept;
}
template <typename... T>
std::variant<T...> kept_argument(const std::variant<T...>& value) {
    return std::visit([](const auto& held) -> std::variant<T...> { return kept_argument(held); },
                      value);
}

/// Converts a stored argument to the parameter of a function.
template <typename T>
T& as_argument(T& kept) {
    return kept;
}
template <typename T>
std::span<T> as_argument(KeptSpan<T>& kept) {
    return kept.elements;
}

/// The memory that a recorded call reads and writes.
class RecordedCall {
  public:
    RecordedCall(const char* name, const Tensors& operands, const Tensors& results);

    /// Returns whether the call runs on the device rather than on the host.
    bool is_on_device() const { return is_on_device_; }
    /// Refuses a call whose operands were freed: hardware would read what was stored there since.
    void require_operands() const;
    /// Moves results of a replay to the buffers of the recorded call's results.
    void store(const Tensors& results) const;

  private:
    struct Operand {
        std::weak_ptr<Allocation> allocation;
    };
    const char* name_;
    bool is_on_device_ = false;
    /// Buffers from before the capture; null for those that the trace allocates itself.
    std::vector<Operand> operands_;
    std::vector<std::shared_ptr<Buffer>> results_;
};

/// Adds a call to the capture if it is one for the device.
/// @param call_again Makes the call another time, and adds its results to its argument.
void record_call(const char* name, const Tensors& operands, const Tensors& results,
                 std::function<void(Tensors&)> call_again);

/// Result of `call` for these arguments, recorded for the trace that is captured. Every signature
/// of the API instantiates this, so everything that does not depend on the types is elsewhere.
template <typename Call, typename... Arguments>
[[gnu::cold, gnu::noinline]] auto recorded(const char* name, const Call& call,
                                           Arguments&&... arguments) {
    const OutermostCall outermost;
    const Tensors operands = tensors_among(arguments...);
    const auto kept = std::make_shared<std::tuple<decltype(kept_argument(arguments))...>>(
        kept_argument(arguments)...);
    auto result = call(arguments...);
    Tensors results;
    results.see(result);
    record_call(name, operands, results, [call, kept](Tensors& now) {
        now.see(std::apply([&](auto&... each) { return call(as_argument(each)...); }, *kept));
    });
    return result;
}

/// Returns whether a call that begins now is to be recorded.
inline bool records_calls() { return current_capture() != nullptr && is_outermost_call(); }

}  // namespace ttcodegen::cpu

/// Prologue of an operation: during a capture, and with reporting on, returns the result of the
/// function. The arguments are all parameters of the function, except trailing ones that it
/// ignores.
#define TTCODEGEN_CALL(function, ...) TTCODEGEN_CALL_AS(#function, function, __VA_ARGS__)

/// The same, named after the calling function, for functions that serve many operations.
#define TTCODEGEN_CALL_AS(name, function, ...)                                    \
    if (ttcodegen::cpu::records_calls()) {                                        \
        return ttcodegen::cpu::recorded(                                          \
            name, [](auto&&... each) { return function(each...); }, __VA_ARGS__); \
    }                                                                             \
    ttcodegen::cpu::noted(name, __VA_ARGS__);                                     \
    TTCODEGEN_REPORTED_AS(name, function, __VA_ARGS__)
