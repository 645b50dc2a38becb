"""Finds what builds C++ here: a compiler, CMake and Ninja."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ttcodegen.foundation.diagnostics import CompileError

_COMPILERS = ("c++", "g++", "clang++")
_VERSIONED = re.compile(r"(?:g\+\+|clang\+\+)-(\d+)")

_MINIMUM_VERSIONS = {"gnu": 11, "clang": 14}
"""The first versions whose C++20 the emitted code compiles with (concepts, std::span, bit_cast)."""

_COMPILER_REMEDY = (
    "install GCC 11 or Clang 14, or newer (on Debian and Ubuntu: apt install g++), "
    "or name a compiler in the environment variable CXX"
)
_PACKAGE_REMEDY = "install it with 'pip install cmake ninja' or from your distribution"


class BuildError(CompileError):
    """The C++ did not build: no tools, or an error that a log describes."""


@dataclass(frozen=True)
class Toolchain:
    """A C++ compiler with the tools to drive it."""

    compiler: str
    """The path of the compiler."""
    family: str
    """gnu or clang: CMake's `CMAKE_CXX_COMPILER_ID` in lower case."""
    version: str
    """As CMake's `CMAKE_CXX_COMPILER_VERSION`, "12.2.0" for instance."""
    flags: str
    """Flags of the user's: those that CXX holds after the compiler, and CXXFLAGS."""
    cmake: str
    ninja: str

    @property
    def name(self) -> str:
        """Compiler family and version, "gnu-12.2.0" for instance."""
        return f"{self.family}-{self.version}"


def find_toolchain() -> Toolchain:
    """The compiler that CXX names, else the first fit one on PATH; CMake and Ninja.

    Raises:
        BuildError: if one of them is missing or too old.
    """
    compiler, flags, family, version = _find_compiler()
    cmake = _packaged_program("cmake", Path("data", "bin", "cmake")) or shutil.which("cmake")
    if cmake is None:
        raise BuildError("CMake was not found", remedy=_PACKAGE_REMEDY)
    ninja = _find_ninja()
    if ninja is None:
        raise BuildError("Ninja was not found", remedy=_PACKAGE_REMEDY)
    return Toolchain(compiler, family, version, flags, cmake, ninja)


def _find_compiler() -> tuple[str, str, str, str]:
    flags = os.environ.get("CXXFLAGS", "")
    wanted = os.environ.get("CXX", "").strip()
    if wanted:
        return _named_compiler(wanted, flags)
    old: list[str] = []
    for name in [*_COMPILERS, *_versioned_compilers()]:
        path = shutil.which(name)
        identity = _identify(path) if path is not None else None
        if path is None or identity is None:
            continue
        if _is_new_enough(*identity):
            return path, flags, *identity
        old.append(f"{path} ({identity[0]} {identity[1]})")
    if old:
        raise BuildError(f"no C++20 compiler was found, only {old[0]}", remedy=_COMPILER_REMEDY)
    raise BuildError("no C++ compiler was found", remedy=_COMPILER_REMEDY)


def _named_compiler(wanted: str, flags: str) -> tuple[str, str, str, str]:
    name, *options = shlex.split(wanted)
    path = shutil.which(name)
    identity = _identify(path) if path is not None else None
    if path is None or identity is None:
        raise BuildError(f"CXX is '{wanted}', which is not a C++ compiler", remedy=_COMPILER_REMEDY)
    if not _is_new_enough(*identity):
        raise BuildError(
            f"CXX is '{wanted}', which is {identity[0]} {identity[1]}: too old for C++20",
            remedy=_COMPILER_REMEDY,
        )
    return path, " ".join([shlex.join(options), flags]).strip(), *identity


def _versioned_compilers() -> list[str]:
    """Names like g++-13 in the folders of PATH, the newest first."""
    found: dict[str, int] = {}
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        found.update({n: int(m.group(1)) for n in names if (m := _VERSIONED.fullmatch(n))})
    return sorted(found, key=lambda name: (-found[name], name))


def _identify(compiler: str) -> tuple[str, str] | None:
    """Family and version of a compiler by its predefined macros; None if it is no C++ compiler."""
    command = [compiler, "-dM", "-E", "-x", "c++", os.devnull]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    macros = dict(re.findall(r"^#define (__\w+__) (\d+)$", done.stdout, re.MULTILINE))
    for family, names in (
        ("clang", ("__clang_major__", "__clang_minor__", "__clang_patchlevel__")),
        ("gnu", ("__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__")),
    ):
        if done.returncode == 0 and all(name in macros for name in names):
            return family, ".".join(macros[name] for name in names)
    return None


def _is_new_enough(family: str, version: str) -> bool:
    return int(version.partition(".")[0]) >= _MINIMUM_VERSIONS[family]


def _packaged_program(package: str, path: Path) -> str | None:
    """A program inside an installed Python package.

    The script that such a package puts on PATH is a Python program, which takes longer to start
    than the program takes to work.
    """
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        program = Path(folder, path)
        if os.access(program, os.X_OK):
            return str(program)
    return None


def _find_ninja() -> str | None:
    # The Python package installs the program itself next to the interpreter, which need not be on
    # PATH when ttcodegen is started by its full path.
    beside = Path(sys.executable).with_name("ninja")
    if os.access(beside, os.X_OK):
        return str(beside)
    return shutil.which("ninja") or shutil.which("ninja-build")


def first_error(log: Path) -> str:
    """The first line of the log of a build that reports an error, else its first line."""
    try:
        text = log.read_text("utf-8", "replace")
    except OSError as error:
        return f"no log: {error.strerror}"
    if "No space left on device" in text:
        # What a compiler or CMake says of it depends on which file it was.
        return "no space is left on the disk"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # The compiler says "error:", CMake "CMake Error", the linker "undefined reference".
    pattern = re.compile(r"\berror\b|undefined reference", re.IGNORECASE)
    found = [line for line in lines[1:] if pattern.search(line)]
    return (found or lines or ["no output"])[0][:300]
