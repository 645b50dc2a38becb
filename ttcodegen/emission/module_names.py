"""Names of modules for C++ and CMake: reserved ones, and a default that is kept short."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ttcodegen.emitc.spelling import file_stem

# CMake keeps these target names to itself (policy CMP0037), and a target for the executable, the
# objects and the support sources is next to that of the module. `-ldl` and the like would be taken
# for a target of that name.
_RESERVED_TARGETS = frozenset(
    """
    all all_build clean depend edit_cache experimental continuous nightly help install list
    install_strip install_local package package_source preinstall rebuild_cache run_tests test
    test_memcheck zero_check codegen support dl pthread
    """.split()
)

# What the C library declares in the global namespace, where the module's namespace is as well:
# functions, types and variables without an underscore that read like a model's name.
_TAKEN_BY_C = frozenset(
    """
    abort abs accept access acos acosh alarm asin asinh atan atan2 atanh atexit basename bind brk
    calloc canonicalize cbrt ceil chdir chmod clock clone close confstr connect copysign cos cosh
    creat crypt daemon daylight difftime div drem dup environ erf erfc exit exp exp10 exp2 expm1
    fabs fcntl fdim ffs fileno finite floor fma fmax fmaximum fmin fminimum fmod fork free frexp
    fromfp fsync gamma getline gettext hypot ilogb index initstate j0 j1 jn kill labs ldexp ldiv
    lgamma link listen lockf log log10 log1p log2 logb lrint lround lseek malloc mblen memcpy
    memset mkdir mktemp mktime mmap modf nan nanosleep nearbyint nice open optarg opterr optind
    pause perror pipe poll popen pow printf profil putenv puts qsort raise rand random read
    readahead readlink realloc realpath recv reject remainder remove remquo rename revoke rewind
    rindex rint rmdir round roundeven scalb scalbn scanf seed48 select send setenv setstate
    shutdown sigaction signal significand sigstack sin sincos sinh sleep socket splice sqrt srand
    srandom stat strcat strchr strcmp strlen swab symlink sync syscall sysconf sysinfo system tan
    tanh tee tempnam tgamma time timespec timeval timezone tm tmpfile tmpnam tolower totalorder
    toupper trunc truncate ulong umask unlink uint ushort usleep utimes valloc vfork wait write y0
    y1 yn
    """.split()
)


# The other files in src/, and what else is called like a module.
_OTHER_SOURCES = re.compile(
    r"main|generate|capi|entry_points|programs(?:_\d+)?|tuning|cpu_functions|ttcodegen"
)


def module_name(text: str, taken: Iterable[str] = ()) -> str:
    """The name of a module for C++ and CMake that reads like `text` (the stem of a file)."""
    name = file_stem(text, "model")
    reserved = (
        name.lower() in _RESERVED_TARGETS
        or name in _TAKEN_BY_C
        or _OTHER_SOURCES.fullmatch(name.lower()) is not None
        or name in ("support", *taken)
    )
    return f"{name}_model" if reserved else name


LONGEST_NAME = 30
"""The most characters of a module's name that nobody chose."""


def default_module_name(text: str) -> str:
    """The name of a module after the stem of its file or the like, kept short: the last part of a
    path that is written with `__`, and as many of its words as fit."""
    words = file_stem(text.rpartition("__")[2] if len(text) > LONGEST_NAME else text).split("_")
    while len(words) > 1 and len("_".join(words)) > LONGEST_NAME:
        words.pop()
    return "_".join(words)[:LONGEST_NAME]
