#pragma once

#include "ttcodegen/device/processor.hpp"

namespace ttcodegen::device {

inline void assert_that(bool condition, const char* text, Location here = Location::current()) {
    if (!condition) {
        Processor& processor = current();
        processor.functions->fail(processor, here, "ASSERT(%s) does not hold", text);
    }
}

}  // namespace ttcodegen::device

#define ASSERT(condition, ...) \
    ::ttcodegen::device::assert_that(static_cast<bool>(condition), #condition)
#define LIGHTWEIGHT_KERNEL_ASSERT(condition) ASSERT(condition)
