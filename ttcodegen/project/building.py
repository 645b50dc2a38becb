"""Builds a project with CMake and Ninja, and records the hashes of the sources."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ttcodegen.emission.description import KINDS_WITH_EXECUTABLE, KINDS_WITH_LIBRARY, ProjectKind
from ttcodegen.foundation.whole_files import write_whole
from ttcodegen.project.cpu_backend import CPUBackend, ensure_cpu_backend
from ttcodegen.project.edits import file_hash
from ttcodegen.project.manifest import read_manifest
from ttcodegen.project.staging import refuse_link, refuse_links_out
from ttcodegen.project.toolchain import (
    BuildError,
    Toolchain,
    cmake_options,
    find_mpirun,
    find_toolchain,
    first_error,
    flags_remedy,
    run_ninja,
    run_step,
)
from ttcodegen.systems.releases import CATALOGUE_RELEASE, release_named

# Records of what a build was made of, by content.
#
# Ninja goes by modification times, which `cp -p`, tar, rsync or a clock that was set back make
# older than the objects of other texts. The record beside the objects has the SHA-256 of each
# source, and of each output with the sources that it was built from, so that content decides.
# The executable may be newer than the shared object: a check builds no other output.

_RECORD = "ttcodegen-sources.json"
_FOLDERS = ("src", "include", "support")
_FILES = ("CMakeLists.txt",)


def source_hashes(out: Path) -> dict[str, str]:
    """SHA-256 of each source of a project by path, files added by the user included.

    Kernels are excluded: they are compiled at run time.
    """
    return {
        path.relative_to(out).as_posix(): file_hash(path)
        for path in sorted(_sources(out))
        if path.is_file()
    }


def _sources(out: Path) -> Iterator[Path]:
    yield from (out / name for name in _FILES)
    for name in _FOLDERS:
        yield from out.joinpath(name).rglob("*")


def write_record(
    build: Path,
    sources: Mapping[str, str],
    built: Iterable[Path],
    before: Mapping[str, Any] | None = None,
) -> None:
    """Records a finished build.

    Args:
        build: the build folder.
        sources: the hashes of the sources, taken before it began.
        built: the outputs that it made; missing ones are skipped.
        before: the record of earlier builds, whose rows of other outputs remain.

    Raises:
        OSError: if it cannot be written.
    """
    outputs = _table(before or {}, "outputs") | {
        path.name: [
            path.stat().st_size,
            path.stat().st_mtime_ns,
            file_hash(path),
            _digest(sources),
        ]
        for path in built
        if path.is_file()
    }
    text = json.dumps({"sources": sources, "outputs": outputs}, indent=1)
    write_whole(build / _RECORD, text)


def _digest(sources: Mapping[str, str]) -> str:
    """SHA-256 of the hashes of all sources."""
    return hashlib.sha256(json.dumps(sources, sort_keys=True).encode()).hexdigest()


def forget_record(build: Path) -> None:
    """Removes the record, as the folder's content is unknown until a build ends."""
    build.joinpath(_RECORD).unlink(missing_ok=True)


def is_current(build: Path, library: Path, sources: Mapping[str, str]) -> bool:
    """Returns whether a library was built from sources with these hashes and is unchanged since."""
    record = _read_record(build)
    if record is None or not library.is_file() or not _is_as_recorded(library, record):
        return False
    return _table(record, "outputs")[library.name][3] == _digest(sources)


def misleads_times(out: Path, build: Path, sources: Mapping[str, str]) -> bool:
    """Returns whether Ninja would take stale objects for current ones by their times.

    A changed source is no newer than the build, or the outputs were not built by ttcodegen.
    """
    if not build.joinpath("build.ninja").is_file():
        return False
    record = _read_record(build)
    if record is None:
        return True
    before = _table(record, "sources")
    changed = {path for path, hash_ in sources.items() if before.get(path) != hash_}
    time = build.joinpath(_RECORD).stat().st_mtime_ns
    if any(out.joinpath(path).stat().st_mtime_ns <= time for path in changed):
        return True
    present = [path for name in _table(record, "outputs") if (path := build / name).is_file()]
    return any(not _is_as_recorded(path, record) for path in present)


def _is_as_recorded(path: Path, record: Mapping[str, Any]) -> bool:
    row = _table(record, "outputs").get(path.name)
    if not isinstance(row, list) or len(cast("list[object]", row)) != 4:
        return False
    size, time, digest, _ = cast("list[object]", row)
    status = path.stat()
    return [status.st_size, status.st_mtime_ns] == [size, time] or file_hash(path) == digest


def _table(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    content: object = record.get(name)
    return cast("dict[str, Any]", content) if isinstance(content, dict) else {}


def _read_record(build: Path) -> dict[str, Any] | None:
    try:
        content: object = json.loads(build.joinpath(_RECORD).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", content) if isinstance(content, dict) else None


# Builds a project with CMake and Ninja against the CPU backend.

BUILD_FOLDER = "build"
"""Build folder in the project; the project's presets use others."""

TT_METAL_FOLDER = "build-tt-metal"
"""Build folder of the tt-metal build in the project, to run on a simulator."""

_LOG = "ttcodegen.log"
_LOCK = "ttcodegen.lock"
_CONFIGURATION = "ttcodegen-configuration.txt"


@dataclass(frozen=True)
class BuiltProject:
    """Result of a build."""

    executable: Path | None
    library: Path | None


def library_path(out: Path, name: str) -> Path:
    """Path of the shared object of a module from `build_project`."""
    return out / BUILD_FOLDER / f"lib{name}.so"


@contextmanager
def _build_lock(build: Path) -> Generator[None]:
    """Holds the lock of a build folder, as a library is missing while it is linked."""
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
    """Configures and builds the project in `out` incrementally.

    Args:
        out: the project's folder.
        name: the name of its module.
        toolchain: the compiler, CMake and Ninja to use.
        kind: the shared object, the executable, or both; or the object files of the sources.

    Raises:
        BuildError: if the build fails, with the path of the log, or if the project was written
            without what is to be built.
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
    target, release = manifest.get("target", "ttnn"), manifest.get("tt_metal_release")
    definitions = release_named(release or CATALOGUE_RELEASE.name).definitions
    backend = ensure_cpu_backend(toolchain, str(target), definitions)
    try:
        build.mkdir(exist_ok=True)
        (build / _LOG).write_text("")
    except OSError as error:
        raise BuildError(f"cannot write '{build}': {error.strerror}") from None
    with _build_lock(build):
        return _build(out, name, toolchain, kind, backend)


_NOT_BUILT_IN = re.compile(r"[\x00-\x1f\x7f\"\\|;]")
"""Characters that are special to CMake, Ninja or their shells."""


def build_with_tt_metal(out: Path, name: str, target: str | None = None) -> Path:
    """Builds a project with tt-metal instead of the CPU backend; returns the build folder.

    Args:
        out: the project's folder.
        name: name of its module.
        target: CMake target, by default the shared object.

    Raises:
        BuildError: if tt-metal is not found, or the build fails.
    """
    refuse_path(out)
    toolchain = find_toolchain()
    build = out.absolute() / TT_METAL_FOLDER
    refuse_link(out, TT_METAL_FOLDER)
    refuse_links_out(out, build)
    try:
        build.mkdir(exist_ok=True)
        with _build_lock(build):
            _build_with_tt_metal(build, name, target or name, toolchain)
    except OSError as error:
        raise BuildError(f"cannot write '{build}': {error.strerror}") from None
    return build


def _build_with_tt_metal(build: Path, name: str, target: str, toolchain: Toolchain) -> None:
    log = build / _LOG
    log.unlink(missing_ok=True)
    variables = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_CXX_COMPILER": toolchain.compiler,
        "CMAKE_CXX_FLAGS": toolchain.flags,
        "CMAKE_MAKE_PROGRAM": toolchain.ninja,
        "TTCODEGEN_BACKEND": "tt-metal",
    }
    command = [toolchain.cmake, "-G", "Ninja", "-S", str(build.parent), "-B", str(build)]
    command += [f"-D{key}={value}" for key, value in variables.items()]
    title = f"building {name} with tt-metal"
    if run_step(command, log) or run_ninja(toolchain, build, log, title, targets=[target]):
        raise BuildError(
            f"the project does not build with tt-metal: {first_error(log)}; see {log}",
            remedy="name a source tree of tt-metal with its libraries in TT_METAL_HOME; "
            "docs/ttmetal.md says what has to be there",
        )


def refuse_path(out: Path) -> None:
    """Refuses a folder in which CMake cannot build.

    Raises:
        BuildError: if its path has a character that is special to CMake.
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

    def run() -> None:
        if misleads_times(out, build, sources):
            _require(run_step([toolchain.ninja, "-C", str(build), "-t", "clean"], log), log)
        forget_record(build)
        _require(run_ninja(toolchain, build, log, f"building {name}", targets=targets), log)

    before = _read_record(build)
    try:
        run()
    except BuildError:
        if not _DAMAGED.search(_text(log)):
            raise
        # What CMake wrote was cut off, as by a full disk.
        build.joinpath("build.ninja").unlink(missing_ok=True)
        log.write_text("")
        _configure(build, backend, toolchain)
        run()
    outputs = [path for path in (library, executable) if path is not None]
    write_record(build, sources, outputs, before)
    return BuiltProject(executable, library)


_DAMAGED = re.compile(
    r"^ninja: error: (?:(?:build\.ninja|CMakeFiles/\S+):\d+: |unknown target |loading "
    r"|rebuilding 'build\.ninja'|manifest 'build\.ninja')",
    re.MULTILINE,
)
"""Errors of Ninja about its own build files."""


def _configure(build: Path, backend: CPUBackend, toolchain: Toolchain) -> None:
    """Runs CMake, unless the folder is already configured with the same settings."""
    variables = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_CXX_COMPILER": toolchain.compiler,
        "CMAKE_CXX_FLAGS": toolchain.flags,
        "CMAKE_MAKE_PROGRAM": toolchain.ninja,
        "TTCODEGEN_BACKEND": "cpu",
        "TTCODEGEN_CPU_DIR": str(backend.folder),
        "TTCODEGEN_SUPPORT_OBJECT": str(backend.support_object),
    }
    if build.parent.joinpath("hosts").is_dir():
        # Without MPI the executable is one process, which emulates all devices.
        variables["TTCODEGEN_MPI"] = "ON" if find_mpirun() else "OFF"
    if backend.precompiled_header is not None:
        variables["TTCODEGEN_PRECOMPILED_HEADER"] = str(backend.precompiled_header)
    command = [toolchain.cmake, "-G", "Ninja", "-S", str(build.parent), "-B", str(build)]
    command += [f"-D{name}={value}" for name, value in variables.items()]
    # What CMake takes of the environment when it configures is what it keeps.
    configuration = "\n".join([*command, os.environ.get("LDFLAGS", "")]) + "\n"
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
    """Raises BuildError with the first error of the log if a build step failed."""
    if status != 0:
        raise BuildError(
            f"the C++ did not build: {first_error(log)}",
            remedy=f"the log is {log}{flags_remedy()}",
        )
