#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace tt::assert::detail {

std::string text_of_integer(long long value);
std::string text_of_unsigned(unsigned long long value);
std::string text_of_float(double value);

/// Replaces each `{}` of `format` by the next argument.
std::string format_message(std::string_view format, std::initializer_list<std::string> arguments);

/// Throws std::runtime_error; `kind` is TT_FATAL or TT_THROW.
[[noreturn]] void throw_failure(const char* kind, const std::string& message);

/// Formats one message argument; types of tt-metal provide an overload of `describe`.
template <typename T>
std::string text_of(const T& value) {
    if constexpr (std::is_convertible_v<const T&, std::string_view>) {
        return std::string(std::string_view(value));
    } else if constexpr (std::same_as<T, bool>) {
        return value ? "true" : "false";
    } else if constexpr (std::floating_point<T>) {
        return text_of_float(static_cast<double>(value));
    } else if constexpr (std::signed_integral<T>) {
        return text_of_integer(value);
    } else if constexpr (std::unsigned_integral<T>) {
        return text_of_unsigned(value);
    } else {
        return describe(value);
    }
}

template <typename... Args>
[[noreturn, gnu::cold, gnu::noinline]] void fail(const char* kind, std::string_view format,
                                                 const Args&... args) {
    throw_failure(kind, format_message(format, {text_of(args)...}));
}

}  // namespace tt::assert::detail

#define TT_THROW(...) ::tt::assert::detail::fail("TT_THROW", __VA_ARGS__)

#define TT_FATAL(condition, ...)                                 \
    do {                                                         \
        if (!(condition)) [[unlikely]] {                         \
            ::tt::assert::detail::fail("TT_FATAL", __VA_ARGS__); \
        }                                                        \
    } while (0)

#define TT_ASSERT(condition, ...) \
    do {                          \
        (void)(condition);        \
    } while (0)
