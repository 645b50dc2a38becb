#pragma once

#include "api/compute/cb_api.h"
#include "api/compute/common_globals.h"
#include "api/compute/compute_kernel_hw_startup.h"
#include "api/compute/pack.h"
#include "api/compute/reconfig_data_format.h"
#include "api/compute/reg_api.h"
#include "api/compute/sentinel/compute_kernel_sentinel.h"

/// The address of a run-time argument of the core.
inline const std::uint32_t* get_arg_pointer(int arg_idx, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    if (arg_idx < 0 || static_cast<std::uint32_t>(arg_idx) >= processor.num_arguments) {
        processor.functions->fail(processor, here,
                                  "run-time argument %d is read, but the core has %u", arg_idx,
                                  processor.num_arguments);
    }
    return processor.arguments + arg_idx;
}

template <typename T>
T get_arg_val(int arg_idx, TTCODEGEN_HERE) {
    static_assert(sizeof(T) == sizeof(std::uint32_t), "Arguments have 4 bytes");
    return __builtin_bit_cast(T, *get_arg_pointer(arg_idx, here));
}

template <typename T>
T get_common_arg_val(int arg_idx, TTCODEGEN_HERE) {
    static_assert(sizeof(T) == sizeof(std::uint32_t), "Arguments have 4 bytes");
    auto& processor = ttcodegen::device::current();
    if (arg_idx < 0 || static_cast<std::uint32_t>(arg_idx) >= processor.num_common_arguments) {
        processor.functions->fail(processor, here,
                                  "common run-time argument %d is read, but the kernel has %u",
                                  arg_idx, processor.num_common_arguments);
    }
    return __builtin_bit_cast(T, processor.common_arguments[arg_idx]);
}

inline std::uint8_t get_absolute_logical_x() { return ttcodegen::device::current().logical_x; }
inline std::uint8_t get_absolute_logical_y() { return ttcodegen::device::current().logical_y; }
inline std::uint8_t get_relative_logical_x() { return ttcodegen::device::current().relative_x; }
inline std::uint8_t get_relative_logical_y() { return ttcodegen::device::current().relative_y; }
