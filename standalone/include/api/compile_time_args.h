#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#ifndef KERNEL_COMPILE_TIME_ARGS
#define KERNEL_COMPILE_TIME_ARGS
#endif

namespace ttcodegen::device {

template <typename... Values>
constexpr auto argument_list(Values... values) {
    return std::array<std::uint32_t, sizeof...(Values)>{static_cast<std::uint32_t>(values)...};
}

}  // namespace ttcodegen::device

constexpr auto kernel_compile_time_args =
    ttcodegen::device::argument_list(KERNEL_COMPILE_TIME_ARGS);

template <std::uint32_t Idx>
constexpr std::uint32_t get_ct_arg() {
    static_assert(Idx < kernel_compile_time_args.size(),
                  "The kernel was created with fewer compile-time arguments");
    return kernel_compile_time_args[Idx];
}

#define get_compile_time_arg_val(arg_idx) get_ct_arg<arg_idx>()

#ifdef KERNEL_COMPILE_TIME_ARG_MAP
namespace ttcodegen::device {
constexpr std::pair<std::string_view, std::uint32_t> kNamedArguments[] = {
    KERNEL_COMPILE_TIME_ARG_MAP};
}

/// Called by a constant expression, an unknown name does not compile.
constexpr std::uint32_t get_named_ct_arg(std::string_view name) {
    for (const auto& [known, value] : ttcodegen::device::kNamedArguments) {
        if (known == name) {
            return value;
        }
    }
    __builtin_unreachable();
}

constexpr std::uint32_t get_named_compile_time_arg_val(std::string_view name) {
    return get_named_ct_arg(name);
}
#endif
