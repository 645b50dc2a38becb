"""Toolchain: compiler, CMake and Ninja, their cached probes, and build steps."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ttcodegen.foundation.cache import is_intact, vouch_for
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import Progress

# Finds what builds C++ here: a compiler, CMake and Ninja.

_COMPILERS = ("c++", "g++", "clang++")
_VERSIONED = re.compile(r"(?:g\+\+|clang\+\+)-(\d+)")

_MINIMUM_VERSIONS = {"gnu": 11, "clang": 14}
"""Minimum versions that compile the emitted C++20 (concepts, std::span, bit_cast)."""

_COMPILER_REMEDY = (
    "install GCC 11 or Clang 14, or newer (on Debian and Ubuntu: apt install g++), "
    "or name a compiler in the environment variable CXX"
)
_PACKAGE_REMEDY = "install it with 'pip install cmake ninja' or from your distribution"


class BuildError(CompileError):
    """Failed build: missing tools, or an error that a log describes."""


@dataclass(frozen=True)
class Toolchain:
    """A C++ compiler with the tools to drive it."""

    compiler: str
    """Path of the compiler."""
    family: str
    """gnu or clang: CMake's `CMAKE_CXX_COMPILER_ID` in lower case."""
    version: str
    """As CMake's `CMAKE_CXX_COMPILER_VERSION`, for example "12.2.0"."""
    flags: str
    """User flags: those after the compiler in CXX, and CXXFLAGS."""
    cmake: str
    ninja: str

    @property
    def name(self) -> str:
        """Compiler family and version, for example "gnu-12.2.0"."""
        return f"{self.family}-{self.version}"


_FLAGS = ("CXX", "CXXFLAGS", "LDFLAGS")
"""Environment variables with flags that CMake passes on; it ignores CPPFLAGS."""


def find_toolchain() -> Toolchain:
    """Finds the compiler of CXX, or the first suitable one on PATH; CMake and Ninja.

    Raises:
        BuildError: if one is missing or too old, or the environment's flags break compilation.
    """
    compiler, flags, family, version = _find_compiler()
    _refuse_flags(compiler, flags)
    cmake = _packaged_program("cmake", Path("data", "bin", "cmake")) or shutil.which("cmake")
    if cmake is None:
        raise BuildError("CMake was not found", remedy=_PACKAGE_REMEDY)
    ninja = _find_ninja()
    if ninja is None:
        raise BuildError("Ninja was not found", remedy=_PACKAGE_REMEDY)
    return Toolchain(compiler, family, version, flags, cmake, ninja)


def find_mpirun() -> str | None:
    """Launcher of MPI processes; None if MPI programs cannot be built."""
    return shutil.which("mpirun") if shutil.which("mpicxx") or shutil.which("mpic++") else None


def _refuse_flags(compiler: str, flags: str) -> None:
    """Raises BuildError if an empty program builds only without the environment's flags."""
    linking = os.environ.get("LDFLAGS", "")
    if not flags.strip() and not linking.strip():
        return
    if _trial(compiler, "", "") is not None:
        return  # Fails without flags, too.
    for given, ending in ((flags, ""), (flags, linking)):
        if (error := _trial(compiler, given, ending)) is None:
            continue
        name = "LDFLAGS" if ending else "CXXFLAGS" if os.environ.get("CXXFLAGS") else "CXX"
        raise BuildError(
            f"nothing builds with {name} '{os.environ.get(name)}': {error}",
            remedy=f"correct the environment variable {name}, or unset it",
        )


def _trial(compiler: str, flags: str, linking: str) -> str | None:
    """Error of building an empty program; None if it builds."""
    with tempfile.TemporaryDirectory(prefix="ttcodegen-flags-") as scratch:
        source, log = Path(scratch, "empty.cpp"), Path(scratch, "log")
        source.write_text("int main() { return 0; }\n")
        try:
            command = [compiler, *shlex.split(flags), str(source), "-o", f"{scratch}/empty"]
            command += shlex.split(linking)
        except ValueError as error:
            return str(error)
        return None if run_step(command, log) == 0 else first_error(log)


def flags_remedy() -> str:
    """Remark on environment variables with flags for a failed build; empty without any."""
    given = [(name, os.environ.get(name, "").strip()) for name in _FLAGS]
    # CXX may hold flags after the compiler.
    named = [
        f"{name} is '{text}'" for name, text in given if text and (name != "CXX" or " " in text)
    ]
    return f"; the environment gives flags: {', '.join(named)}" if named else ""


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
    """Compilers such as g++-13 on PATH, newest first."""
    found: dict[str, int] = {}
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        found.update({n: int(m.group(1)) for n in names if (m := _VERSIONED.fullmatch(n))})
    return sorted(found, key=lambda name: (-found[name], name))


def _identify(compiler: str) -> tuple[str, str] | None:
    """Family and version of a compiler by its predefined macros; None for other programs."""
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
    """Native program inside an installed Python package.

    The script on PATH is a Python wrapper, whose start takes longer than the program's work.
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
    """First line of a build log that reports an error, else its first line."""
    try:
        text = log.read_text("utf-8", "replace")
    except OSError as error:
        return f"no log: {error.strerror}"
    if "No space left on device" in text:
        # The tool's own message depends on the file that it was writing.
        return "no space is left on the disk"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # The compiler says "error:", CMake "CMake Error", the linker "undefined reference".
    pattern = re.compile(r"\berror\b|undefined reference", re.IGNORECASE)
    found = [line for line in lines[1:] if pattern.search(line)]
    return (found or lines or ["no output"])[0][:300]


# Runs the steps of a build: their output goes to a log, their progress to the user.

_COUNTER = re.compile(rb"\[(\d+)/(\d+)\] ")


def run_step(command: Sequence[str], log: Path) -> int:
    """Runs a command and appends its output to the log; returns its exit status.

    Raises:
        BuildError: if it cannot be started.
    """
    with log.open("a") as output:
        output.write(" ".join(command) + "\n")
        output.flush()
        try:
            done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
        except OSError as error:
            raise BuildError(f"cannot run {command[0]}: {error.strerror}") from None
    return done.returncode


def run_ninja(
    toolchain: Toolchain, build: Path, log: Path, title: str, *, targets: Sequence[str] = ()
) -> int:
    """Builds targets, or all of them; returns Ninja's exit status.

    Args:
        toolchain: with the Ninja to use.
        build: the configured folder.
        log: file that the output is appended to.
        title: title of the progress display.
        targets: their names.

    Raises:
        BuildError: if Ninja cannot be started.
    """
    command = [toolchain.ninja, "-C", str(build), f"-j{os.cpu_count() or 1}", *targets]
    progress = Progress(title)
    with log.open("ab") as output:
        output.write((" ".join(command) + "\n").encode())
        output.flush()
        try:
            process = subprocess.Popen(
                command,
                env={**os.environ, "NINJA_STATUS": "[%f/%t] "},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            raise BuildError(f"cannot run {command[0]}: {error.strerror}") from None
        with process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    output.write(line)
                    counter = _COUNTER.match(line)
                    # Globbing is not a step of the build.
                    if counter and counter[1] != b"0":
                        progress.update(int(counter[1]), int(counter[2]))
            except BaseException:
                process.terminate()
                raise
            finally:
                progress.end()
    return process.returncode


# What CMake finds out of a compiler, kept so that it is found out once and not for each project.
#
# A fresh build folder makes CMake compile small programs for about half a second. It stores what
# it learned in CMakeFiles/<version>/*.cmake and a few cache entries, and skips the work where it
# finds them.

_PROJECT = """\
cmake_minimum_required(VERSION 3.20)
project(facts LANGUAGES CXX)
find_package(Threads REQUIRED)
"""
_CACHED = (
    "CMAKE_EXECUTABLE_FORMAT",
    # How threads are linked, by FindThreads: only some of these are there.
    "CMAKE_HAVE_LIBC_PTHREAD",
    "CMAKE_HAVE_PTHREADS_CREATE",
    "CMAKE_HAVE_PTHREAD_CREATE",
    "THREADS_HAVE_PTHREAD_ARG",
)
_OPTIONS = "options.txt"
_SEAL = "ready"


def cmake_options(build: Path, cache: Path, toolchain: Toolchain) -> list[str] | None:
    """Copies cached compiler probes into the fresh build folder `build`.

    Args:
        build: the build folder; it must not have been configured.
        cache: folder of cached probes of the compiler.
        toolchain: the compiler and CMake.

    Returns:
        Options that make CMake use them; None if there are none.
    """
    facts = cache / f"facts-{_installation(toolchain.cmake)}"
    try:
        if not is_intact(facts / _SEAL, by_content=True):
            shutil.rmtree(facts, ignore_errors=True)
            if not _find_facts(facts, toolchain):
                return None
        shutil.copytree(facts, build / "CMakeFiles", ignore=shutil.ignore_patterns(_SEAL))
        return build.joinpath("CMakeFiles", _OPTIONS).read_text("utf-8").splitlines()
    except OSError:
        # The cache is not writable or was just cleared: CMake probes by itself.
        return None


def _installation(cmake: str) -> str:
    """Identifies a CMake installation without starting one."""
    status = Path(cmake).resolve().stat()
    return f"{status.st_size:x}-{status.st_mtime_ns:x}"


def _find_facts(facts: Path, toolchain: Toolchain) -> bool:
    """Configures an empty project and caches its probes."""
    with tempfile.TemporaryDirectory(prefix=f"{facts.name}.", dir=facts.parent) as scratch:
        build, found = Path(scratch, "build"), Path(scratch, "found")
        Path(scratch, "CMakeLists.txt").write_text(_PROJECT)
        command = [toolchain.cmake, "-G", "Ninja", "-S", scratch, "-B", str(build)]
        command += [
            f"-DCMAKE_MAKE_PROGRAM={toolchain.ninja}",
            f"-DCMAKE_CXX_COMPILER={toolchain.compiler}",
            f"-DCMAKE_CXX_FLAGS={toolchain.flags}",
        ]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            return False
        cache = build.joinpath("CMakeCache.txt").read_text("utf-8")
        entries = dict(re.findall(r"^(\w+):\w+=(.*)$", cache, re.MULTILINE))
        descriptions = list(build.joinpath("CMakeFiles").glob("[0-9]*/CMake*.cmake"))
        if not descriptions or _CACHED[0] not in entries:
            return False
        for description in descriptions:
            target = found / description.parent.name / description.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(description, target)
        options = [f"-D{name}:INTERNAL={entries[name]}" for name in _CACHED if name in entries]
        # CMake reads the descriptions only where it believes to have written them.
        options.append("-DCMAKE_PLATFORM_INFO_INITIALIZED:INTERNAL=1")
        found.joinpath(_OPTIONS).write_text("\n".join(options), "utf-8")
        vouch_for(found / _SEAL, [path for path in found.rglob("*") if path.is_file()])
        try:
            found.rename(facts)
        except OSError:
            # Another process was faster.
            return facts.is_dir()
    return True
