#pragma once

// How a call of an operation begins: it is recorded while a trace is captured, and reported if that
// is requested.

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

/// Remembers that an operation was called on these operands: its programs are compiled then.
void note_call(const char* name, const Tensors& operands);

/// Refuses to capture an operation that was not called on such operands: its kernels would have to
/// be sent to the device.
void require_called(const char* name, const Tensors& operands);

template <typename... Arguments>
void noted(const char* name, const Arguments&... arguments) {
    if (is_outermost_call()) {
        Tensors operands;
        (operands.see(arguments), ...);
        note_call(name, operands);
    }
}

/// A tensor on the same memory that does not count as one who holds it.
Tensor unowned(const Tensor& tensor);

// Arguments as a recorded call keeps them: nothing that they refer to ends before the trace does,
// but for devices.
template <typename T>
T kept_argument(const T& value) {
    return value;
}
inline Tensor kept_argument(const Tensor& tensor) { return unowned(tensor); }
inline std::reference_wrapper<MeshDevice> kept_argument(const MeshDevice& device) {
    return const_cast<MeshDevice&>(device);
}
/// The elements of a span.
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

/// What a function takes for an argument that was kept.
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

    /// Whether the call is one for the device, rather than for the host.
    bool is_on_device() const { return is_on_device_; }
    /// Refuses a call whose operands are gone, which on a card would read what others wrote there.
    void require_operands() const;
    /// Puts what the call returned now where it returned it when it was recorded.
    void store(const Tensors& results) const;

  private:
    struct Operand {
        std::weak_ptr<Allocation> allocation;
    };
    const char* name_;
    bool is_on_device_ = false;
    /// What was there before the capture; null for what the trace makes itself.
    std::vector<Operand> operands_;
    std::vector<std::shared_ptr<Buffer>> results_;
};

/// What `call` returns for these arguments, recorded for the trace that is captured.
template <typename Call, typename... Arguments>
auto recorded(const char* name, const Call& call, Arguments&&... arguments) {
    const OutermostCall outermost;
    Tensors operands;
    (operands.see(arguments), ...);
    auto kept = std::make_tuple(kept_argument(arguments)...);
    auto result = call(arguments...);
    Tensors results;
    results.see(result);
    const RecordedCall record(name, operands, results);
    if (record.is_on_device()) {
        current_capture()->add_programs(1, [=, kept = std::move(kept)]() mutable {
            record.require_operands();
            const auto call_again = [&](auto&... each) {
                const auto again = [&] { return call(as_argument(each)...); };
                return reports_calls() ? reported(name, again, each...) : again();
            };
            Tensors now;
            now.see(std::apply(call_again, kept));
            record.store(now);
        });
    }
    return result;
}

/// Whether a call that begins now is one to record.
inline bool records_calls() { return current_capture() != nullptr && is_outermost_call(); }

}  // namespace ttcodegen::cpu

/// Begins an operation: while a trace is captured, and where calls are reported, returns what the
/// function gives. The arguments are all of the function's own, but for those at the end that it
/// ignores.
#define TTCODEGEN_CALL(function, ...) TTCODEGEN_CALL_AS(#function, function, __VA_ARGS__)

/// The same under the name of the function that called this one, which serves many operations.
#define TTCODEGEN_CALL_AS(name, function, ...)                                    \
    if (ttcodegen::cpu::records_calls()) {                                        \
        return ttcodegen::cpu::recorded(                                          \
            name, [](auto&&... each) { return function(each...); }, __VA_ARGS__); \
    }                                                                             \
    ttcodegen::cpu::noted(name, __VA_ARGS__);                                     \
    TTCODEGEN_REPORTED_AS(name, function, __VA_ARGS__)
