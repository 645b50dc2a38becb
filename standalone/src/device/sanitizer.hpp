/// Detection of AddressSanitizer for compiler and preprocessor, and related declarations.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define TTCODEGEN_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TTCODEGEN_ASAN 1
#endif
#endif
#ifdef TTCODEGEN_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace ttcodegen::device {

#ifdef TTCODEGEN_ASAN
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

}  // namespace ttcodegen::device
