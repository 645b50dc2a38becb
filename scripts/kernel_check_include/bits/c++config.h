// The host's configuration of libstdc++ for a target that has neither threads nor an operating
// system.

#pragma once

#include_next <bits/c++config.h>

#undef _GLIBCXX_HAS_GTHREADS
#undef _GLIBCXX_HAVE_LINUX_FUTEX
#undef _GLIBCXX_HAVE_TIMESPEC_GET
