/// Instrumentation of a kernel's own stores, which detects those outside of its memory.
///
/// The backend compiles kernels with -fsanitize=kernel-address: GCC and Clang make each store call
/// one of the functions below, which replace the sanitizer's runtime. Stores outside of L1, mostly
/// to the stack, are allowed.
#pragma once

#ifdef TTCODEGEN_CHECK_STORES

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ttcodegen/device/processor.hpp"

#define TTCODEGEN_UNCHECKED __attribute__((no_sanitize_address, visibility("hidden")))

namespace ttcodegen::device {

TTCODEGEN_UNCHECKED inline Processor& storing_processor() {
    // Same as current(), which is itself instrumented.
    const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    return **reinterpret_cast<Processor**>((frame | (kStackBytes - 1)) - (sizeof(Processor*) - 1));
}

TTCODEGEN_UNCHECKED inline void check_store(std::uintptr_t address, std::size_t bytes) {
    Processor& processor = storing_processor();
    const StoreBounds& bounds = processor.store_bounds;
    const std::uintptr_t offset = address - bounds.last;
    if (offset < bounds.last_bytes && bytes <= bounds.last_bytes - offset) {
        return;
    }
    if (address - bounds.arena < bounds.arena_bytes || address < processor.l1_size) {
        processor.functions->check_store(processor, address, bytes);
    }
}

}  // namespace ttcodegen::device

extern "C" {

#define TTCODEGEN_ACCESS(bytes)                                                      \
    TTCODEGEN_UNCHECKED void __asan_store##bytes##_noabort(std::uintptr_t address) { \
        ttcodegen::device::check_store(address, bytes);                              \
    }                                                                                \
    TTCODEGEN_UNCHECKED void __asan_load##bytes##_noabort(std::uintptr_t) {}
TTCODEGEN_ACCESS(1)
TTCODEGEN_ACCESS(2)
TTCODEGEN_ACCESS(4)
TTCODEGEN_ACCESS(8)
TTCODEGEN_ACCESS(16)
#undef TTCODEGEN_ACCESS

TTCODEGEN_UNCHECKED void __asan_storeN_noabort(std::uintptr_t address, std::size_t bytes) {
    ttcodegen::device::check_store(address, bytes);
}
TTCODEGEN_UNCHECKED void __asan_loadN_noabort(std::uintptr_t, std::size_t) {}
TTCODEGEN_UNCHECKED void __asan_handle_no_return() {}

// These are left to the runtime as well.
TTCODEGEN_UNCHECKED void* memcpy(void* to, const void* from, std::size_t bytes) noexcept {
    ttcodegen::device::check_store(reinterpret_cast<std::uintptr_t>(to), bytes);
    return ttcodegen::device::storing_processor().functions->move_memory(to, from, bytes);
}
TTCODEGEN_UNCHECKED void* memmove(void* to, const void* from, std::size_t bytes) noexcept {
    ttcodegen::device::check_store(reinterpret_cast<std::uintptr_t>(to), bytes);
    return ttcodegen::device::storing_processor().functions->move_memory(to, from, bytes);
}
TTCODEGEN_UNCHECKED void* memset(void* to, int value, std::size_t bytes) noexcept {
    ttcodegen::device::check_store(reinterpret_cast<std::uintptr_t>(to), bytes);
    return ttcodegen::device::storing_processor().functions->fill_memory(to, value, bytes);
}

}  // extern "C"

#undef TTCODEGEN_UNCHECKED

#endif
