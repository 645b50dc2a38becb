"""What CMake finds out of a compiler, kept so that it is found out once and not for each project.

A fresh build folder makes CMake compile small programs for about half a second. It stores what it
learned in CMakeFiles/<version>/*.cmake and a few cache entries, and skips the work where it finds
them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from ttcodegen.project.toolchain import Toolchain

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


def cmake_options(build: Path, cache: Path, toolchain: Toolchain) -> list[str] | None:
    """Puts the facts into the fresh build folder `build`.

    Args:
        build: the build folder; it must not have been configured.
        cache: the folder, which belongs to the compiler, where facts are kept.
        toolchain: the compiler and CMake.

    Returns:
        The options that make CMake use them; None if there are no facts to be had.
    """
    facts = cache / f"facts-{_installation(toolchain.cmake)}"
    try:
        if not facts.is_dir() and not _find_facts(facts, toolchain):
            return None
        shutil.copytree(facts, build / "CMakeFiles")
        return build.joinpath("CMakeFiles", _OPTIONS).read_text("utf-8").splitlines()
    except OSError:
        # The cache cannot be written, or was cleared a moment ago: it only costs time.
        return None


def _installation(cmake: str) -> str:
    """Identifies a CMake installation without starting one."""
    status = Path(cmake).resolve().stat()
    return f"{status.st_size:x}-{status.st_mtime_ns:x}"


def _find_facts(facts: Path, toolchain: Toolchain) -> bool:
    """Configures an empty project and keeps what came of it."""
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
        try:
            found.rename(facts)
        except OSError:
            # Another process was faster.
            return facts.is_dir()
    return True
