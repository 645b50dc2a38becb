"""Builds a project with CMake and Ninja against the CPU backend."""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ttcodegen.emission.description import KINDS_WITH_EXECUTABLE, KINDS_WITH_LIBRARY, ProjectKind
from ttcodegen.project.build_steps import run_ninja, run_step
from ttcodegen.project.built_sources import (
    forget_record,
    misleads_times,
    source_hashes,
    write_record,
)
from ttcodegen.project.compiler_facts import cmake_options
from ttcodegen.project.confined import refuse_link, refuse_links_out
from ttcodegen.project.cpu_backend import CPUBackend, ensure_cpu_backend
from ttcodegen.project.manifest import read_manifest
from ttcodegen.project.toolchain import BuildError, Toolchain, first_error

BUILD_FOLDER = "build"
"""The folder in the project; the presets of the project have others."""

_LOG = "ttcodegen.log"
_LOCK = "ttcodegen.lock"
_CONFIGURATION = "ttcodegen-configuration.txt"


@dataclass(frozen=True)
class BuiltProject:
    """What a build made."""

    executable: Path | None
    library: Path | None


def library_path(out: Path, name: str) -> Path:
    """Where `build_project` puts the shared object of a module."""
    return out / BUILD_FOLDER / f"lib{name}.so"


@contextmanager
def _building(build: Path) -> Generator[None]:
    """Holds the lock of a build folder: a library that is being linked is not there yet."""
    with (build / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def wait_for_builds(build: Path) -> None:
    """Waits until no other process builds in a folder."""
    try:
        lock = (build / _LOCK).open()
    except OSError:
        return  # Nobody has built there by `build_project`.
    with lock:
        fcntl.flock(lock, fcntl.LOCK_SH)


def build_project(
    out: Path, name: str, toolchain: Toolchain, kind: ProjectKind = "both"
) -> BuiltProject:
    """Configures and builds the project in `out`, or what changed since it was last built.

    Args:
        out: the project's folder.
        name: the name of its module.
        toolchain: the compiler, CMake and Ninja to use.
        kind: the shared object, the executable, or both; or the object files of the sources.

    Raises:
        BuildError: if it does not build; the message says where the log is. Or if the project was
            written without what is to be built.
    """
    manifest = read_manifest(out) or {}
    written = manifest.get("kind", "both")
    lacking = ""
    if kind in KINDS_WITH_EXECUTABLE and written not in KINDS_WITH_EXECUTABLE:
        lacking = "an executable"
    elif kind in KINDS_WITH_LIBRARY and written not in KINDS_WITH_LIBRARY:
        lacking = "a shared object"
    if lacking:
        raise BuildError(
            f"the project in '{out}' was written without {lacking}",
            remedy="write it with --kind both",
        )
    refuse_path(out)
    build = out.absolute() / BUILD_FOLDER
    refuse_link(out, BUILD_FOLDER)
    refuse_links_out(out, build)
    backend = ensure_cpu_backend(toolchain, str(manifest.get("target", "ttnn")))
    try:
        build.mkdir(exist_ok=True)
        (build / _LOG).write_text("")
    except OSError as error:
        raise BuildError(f"cannot write '{build}': {error.strerror}") from None
    with _building(build):
        return _build(out, name, toolchain, kind, backend)


_NOT_BUILT_IN = re.compile(r"[\x00-\x1f\x7f\"\\|;]")
"""Characters that CMake, Ninja or a shell that they start takes for something else."""


def refuse_path(out: Path) -> None:
    """Makes sure that CMake can build a project in a folder.

    Raises:
        BuildError: if its path has a character that stands for something else in CMake.
    """
    if found := _NOT_BUILT_IN.search(str(out.absolute())):
        raise BuildError(
            f"a project in '{out}' cannot be built: CMake cannot take {found[0]!r} in a path",
            remedy="give a folder without it with -o",
        )


def _build(
    out: Path, name: str, toolchain: Toolchain, kind: ProjectKind, backend: CPUBackend
) -> BuiltProject:
    build = out.absolute() / BUILD_FOLDER
    log = build / _LOG
    _configure(build, backend, toolchain)
    executable = build / f"{name}_main" if kind in KINDS_WITH_EXECUTABLE else None
    library = library_path(out, name) if kind in KINDS_WITH_LIBRARY else None
    targets = [name] * (library is not None) + [f"{name}_main"] * (executable is not None)
    targets = targets or [f"{name}_objects"]
    sources = source_hashes(out)
    if misleads_times(out, build, sources):
        _require(run_step([toolchain.ninja, "-C", str(build), "-t", "clean"], log), log)
    forget_record(build)
    _require(run_ninja(toolchain, build, log, f"building {name}", targets=targets), log)
    outputs = [library_path(out, name), build / f"{name}_main"]
    write_record(build, sources, {path.name: path for path in outputs})
    return BuiltProject(executable, library)


def _configure(build: Path, backend: CPUBackend, toolchain: Toolchain) -> None:
    """Runs CMake, unless the folder is configured this way already."""
    variables = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_CXX_COMPILER": toolchain.compiler,
        "CMAKE_CXX_FLAGS": toolchain.flags,
        "CMAKE_MAKE_PROGRAM": toolchain.ninja,
        "TTCODEGEN_BACKEND": "cpu",
        "TTCODEGEN_CPU_DIR": str(backend.folder),
        "TTCODEGEN_SUPPORT_OBJECT": str(backend.support_object),
    }
    if backend.precompiled_header is not None:
        variables["TTCODEGEN_PRECOMPILED_HEADER"] = str(backend.precompiled_header)
    command = [toolchain.cmake, "-G", "Ninja", "-S", str(build.parent), "-B", str(build)]
    command += [f"-D{name}={value}" for name, value in variables.items()]
    configuration = "\n".join(command) + "\n"
    stamp = build / _CONFIGURATION
    if build.joinpath("build.ninja").is_file() and _text(stamp) == configuration:
        return
    _forget_configuration(build)
    known = cmake_options(build, backend.folder, toolchain)
    if known is not None:
        done = subprocess.run([*command, *known], capture_output=True, check=False)
        if done.returncode != 0:
            _forget_configuration(build)
            known = None
    if known is None:
        _require(run_step(command, build / _LOG), build / _LOG)
    stamp.write_text(configuration)


def _forget_configuration(build: Path) -> None:
    shutil.rmtree(build / "CMakeFiles", ignore_errors=True)
    build.joinpath("CMakeCache.txt").unlink(missing_ok=True)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _require(status: int, log: Path) -> None:
    """Raises BuildError with the first error of the log, if a step of the build failed."""
    if status != 0:
        raise BuildError(f"the C++ did not build: {first_error(log)}", remedy=f"the log is {log}")
