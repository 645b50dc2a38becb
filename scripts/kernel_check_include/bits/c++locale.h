// Replaces the host's header, which needs the locales of the GNU C library.

#pragma once

#include <clocale>

#define _GLIBCXX_NUM_CATEGORIES 0

namespace std {

typedef int* __c_locale;

int __convert_from_v(const __c_locale&, char*, int, const char*, ...);

}  // namespace std
