/// Runtime arguments and coordinates, for all kinds of kernels.
#pragma once

#include "ttcodegen/device/processor.hpp"

namespace ttcodegen::device {

/// Runtime argument `index` of the core or, if `common`, of the kernel.
/// @throws the error of `fail`, if there are fewer arguments.
inline const std::uint32_t* argument(int index, bool common, Location here) {
    Processor& processor = current();
    const std::uint32_t count = common ? processor.num_common_arguments : processor.num_arguments;
    if (index < 0 || static_cast<std::uint32_t>(index) >= count) {
        processor.functions->fail(processor, here,
                                  "%s run-time argument %d is read, but %u were set",
                                  common ? "common" : "unique", index, count);
    }
    return (common ? processor.common_arguments : processor.arguments) + index;
}

}  // namespace ttcodegen::device

inline std::uintptr_t get_arg_addr(
    int arg_idx, ttcodegen::device::Location here = ttcodegen::device::Location::current()) {
    return reinterpret_cast<std::uintptr_t>(ttcodegen::device::argument(arg_idx, false, here));
}

inline std::uintptr_t get_common_arg_addr(
    int arg_idx, ttcodegen::device::Location here = ttcodegen::device::Location::current()) {
    return reinterpret_cast<std::uintptr_t>(ttcodegen::device::argument(arg_idx, true, here));
}

template <typename T>
T get_arg_val(int arg_idx,
              ttcodegen::device::Location here = ttcodegen::device::Location::current()) {
    static_assert(sizeof(T) == sizeof(std::uint32_t), "Arguments have 4 bytes");
    return __builtin_bit_cast(T, *ttcodegen::device::argument(arg_idx, false, here));
}

template <typename T>
T get_common_arg_val(int arg_idx,
                     ttcodegen::device::Location here = ttcodegen::device::Location::current()) {
    static_assert(sizeof(T) == sizeof(std::uint32_t), "Arguments have 4 bytes");
    return __builtin_bit_cast(T, *ttcodegen::device::argument(arg_idx, true, here));
}

inline std::uint8_t get_absolute_logical_x() { return ttcodegen::device::current().logical_x; }
inline std::uint8_t get_absolute_logical_y() { return ttcodegen::device::current().logical_y; }
inline std::uint8_t get_relative_logical_x() { return ttcodegen::device::current().relative_x; }
inline std::uint8_t get_relative_logical_y() { return ttcodegen::device::current().relative_y; }
