#pragma once

#include <array>
#include <cstdint>

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

struct NamedArgument {
    const char* name;
    std::uint32_t value;
};

constexpr NamedArgument kNamedArguments[] = {KERNEL_COMPILE_TIME_ARG_MAP};

constexpr bool same_name(const char* a, const char* b) {
    while (*a != '\0' && *a == *b) {
        ++a;
        ++b;
    }
    return *a == *b;
}

}  // namespace ttcodegen::device

/// Called by a constant expression, an unknown name does not compile.
constexpr std::uint32_t get_named_ct_arg(const char* name) {
    for (const auto& argument : ttcodegen::device::kNamedArguments) {
        if (ttcodegen::device::same_name(argument.name, name)) {
            return argument.value;
        }
    }
    __builtin_unreachable();
}

constexpr std::uint32_t get_named_compile_time_arg_val(const char* name) {
    return get_named_ct_arg(name);
}
#endif
