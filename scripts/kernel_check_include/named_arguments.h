// The release's function does not fail on an unknown name where its result is no constant. This
// finds names that are spelled in the kernel; those that it computes are left to the function.

#pragma once

#include <string_view>

#include "api/compile_time_args.h"

namespace kernel_check {

/// Whether an argument has the name that a literal spells; true of anything else.
constexpr bool is_given(std::string_view spelling) {
    if (spelling.front() != '"') {
        return true;
    }
    for (const auto& argument : named_args_map) {
        if (argument.first == spelling.substr(1, spelling.size() - 2)) {
            return true;
        }
    }
    return false;
}

/// A class for each use, so that each fails by itself.
template <bool given, int use>
struct ExpectedArgument {
    static_assert(given, "there is no compile-time argument of this name");
    static constexpr bool is_checked = true;
};

}  // namespace kernel_check

#define get_named_compile_time_arg_val(name)                                                      \
    (static_cast<void>(                                                                           \
         kernel_check::ExpectedArgument<kernel_check::is_given(#name), __COUNTER__>::is_checked), \
     get_named_ct_arg(name))
