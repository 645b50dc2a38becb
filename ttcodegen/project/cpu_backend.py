"""Builds the CPU backend, once for each version, compiler and processor, into a cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ttcodegen import __version__
from ttcodegen.project.cache import cache_folder
from ttcodegen.project.sources import support_files
from ttcodegen.project.toolchain import BuildError, Toolchain, first_error

PROJECT_FLAGS = (
    "-std=c++20 -O1 -DNDEBUG -fPIC -fvisibility=hidden -fvisibility-inlines-hidden -Wall -Wextra"
).split()
"""What the CMakeLists.txt of a project compiles with in Release: a header that was precompiled with
other flags is of no use."""

_TENSOR_HEADERS = (
    "tt-metalium/experimental/tensor/spec/layout/layout.hpp",
    "tt-metalium/experimental/tensor/tensor_types.hpp",
)

_READY = "ready"
_PACKAGED_SOURCES = "_standalone"
_KEPT_BUILDS = 3
_BUILD_OPTIONS = ("-DCMAKE_BUILD_TYPE=Release", "-DTTCODEGEN_CPU_NATIVE=ON")


@dataclass(frozen=True)
class CPUBackend:
    """The installed CPU backend, and what saves time when projects are built against it."""

    folder: Path
    """What `-DTTCODEGEN_CPU_DIR` takes."""
    precompiled_header: Path | None
    """A header to include first; None if the compiler could not precompile it."""
    support_object: Path
    """The support sources of all projects, compiled."""


@cache
def backend_sources() -> Path:
    """The folder with the sources: inside the package if it is installed, else next to it.

    Raises:
        BuildError: if it is at neither place.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / _PACKAGED_SOURCES, package.parent / "standalone"):
        if folder.joinpath("CMakeLists.txt").is_file():
            return folder
    raise BuildError(
        "the sources of the CPU backend are not installed",
        remedy="install ttcodegen again: its folder '_standalone' is missing",
    )


def ensure_cpu_backend(toolchain: Toolchain, target: str = "ttnn") -> CPUBackend:
    """The CPU backend for a compiler; built first if that has not been done on this machine.

    Processes that want it at the same time build it once.

    Args:
        toolchain: the compiler.
        target: what the projects call that are built against it.

    Raises:
        BuildError: if it does not build, or the cache cannot be written.
    """
    place = _Place(backend_sources(), toolchain)
    support = place.folder / f"support-{target}-{_support_hash(target)}.o"
    if not (place.folder.joinpath(_READY).is_file() and support.is_file()):
        with _locked(place.sibling("lock")):
            if not place.folder.joinpath(_READY).is_file():
                _build(place, toolchain)
            if not support.is_file():
                _compile_support(place.folder, support, toolchain, target)
    header = _precompiled_header(place.folder, target)
    return CPUBackend(place.folder, header if header.exists() else None, support)


class _Place:
    """Where a build of the backend lies in the cache."""

    def __init__(self, sources: Path, toolchain: Toolchain) -> None:
        self.sources = sources
        self.link = cache_folder() / f"cpu-{__version__}-{toolchain.name}"
        self._settings = f"{self.link}-{_settings_hash(sources, toolchain)}"
        self.folder = Path(f"{self._settings}-{_sources_hash(sources)}")

    def sibling(self, ending: str) -> Path:
        """A file that belongs to the compiler and its settings, whatever the sources hold."""
        return Path(f"{self._settings}.{ending}")

    @property
    def is_checkout(self) -> bool:
        """Whether the sources may change: then the objects are kept for the next build."""
        return self.sources.name != _PACKAGED_SOURCES

    def entries(self) -> list[Path]:
        """All finished builds with these settings, the newest first."""
        found = self.folder.parent.glob(f"{Path(self._settings).name}-*")
        ready = [entry / _READY for entry in found if entry.joinpath(_READY).is_file()]
        return [mark.parent for mark in sorted(ready, key=lambda m: -m.stat().st_mtime)]


def _precompiled_header(folder: Path, target: str) -> Path:
    return folder / "precompiled" / f"{target}_all.hpp"


@contextmanager
def _locked(path: Path) -> Generator[None]:
    """Holds a lock of the cache; the system frees it if the process dies."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("w")
    except OSError as error:
        raise BuildError(
            f"cannot write the cache folder '{path.parent}': {error.strerror}",
            remedy="set the environment variable TTCODEGEN_CACHE to a folder that can be written",
        ) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _hash(texts: Iterable[str]) -> str:
    digest = hashlib.blake2b(digest_size=5)
    for text in texts:
        digest.update(f"{text}\0".encode())
    return digest.hexdigest()


def _settings_hash(sources: Path, toolchain: Toolchain) -> str:
    tools = [str(sources), toolchain.compiler, toolchain.flags, os.environ.get("LDFLAGS", "")]
    return _hash([*tools, *_BUILD_OPTIONS, *PROJECT_FLAGS, _processor()])


def _sources_hash(sources: Path) -> str:
    texts: list[str] = []
    for path in sorted(sources.rglob("*")):
        relative = path.relative_to(sources)
        if relative.parts[0] != "tests" and path.is_file():
            texts += [str(relative), hashlib.blake2b(path.read_bytes()).hexdigest()]
    return _hash(texts)


def _processor() -> str:
    """What -march=native depends on: a cache in a home folder is shared between machines."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return platform.machine()
    known = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    model = re.search(r"^(?:model name|CPU part)\s*:(.*)$", text, re.MULTILINE)
    return " ".join([platform.machine(), *(m.group(1) for m in (known, model) if m)])


def _support_hash(target: str) -> str:
    return _hash(text for item in support_files(target).items() for text in item)


def _build(place: _Place, toolchain: Toolchain) -> None:
    """Builds and installs the backend; what is there of an earlier build is used."""
    print("ttcodegen: building the CPU backend; this happens once", file=sys.stderr, flush=True)
    build, log = place.sibling("build"), place.sibling("log")
    shutil.rmtree(place.folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="install-", dir=place.folder.parent) as scratch:
        installed = Path(scratch, "installed")
        configure = [toolchain.cmake, "-G", "Ninja", "-S", str(place.sources), "-B", str(build)]
        configure += [
            *_BUILD_OPTIONS,
            "-DCMAKE_INSTALL_LIBDIR=lib",
            f"-DCMAKE_MAKE_PROGRAM={toolchain.ninja}",
            f"-DCMAKE_CXX_COMPILER={toolchain.compiler}",
            f"-DCMAKE_CXX_FLAGS={toolchain.flags}",
        ]
        compile_ = [toolchain.ninja, "-C", str(build), f"-j{os.cpu_count() or 1}"]
        install = [toolchain.cmake, "--install", str(build), "--prefix", str(installed)]
        log.unlink(missing_ok=True)
        for command in (configure, compile_, install):
            _run_logged(command, log)
        installed.rename(place.folder)
    # Its path becomes part of what it holds, so it is made at its final place.
    _precompile(place.folder, toolchain)
    place.folder.joinpath(_READY).touch()
    _point_to(place.folder, place.link)
    if not place.is_checkout:
        shutil.rmtree(build, ignore_errors=True)
    # Who uses one of the others now is unlikely to use any but the newest of them.
    for outdated in place.entries()[_KEPT_BUILDS:]:
        shutil.rmtree(outdated, ignore_errors=True)


def _run_logged(command: list[str], log: Path) -> None:
    with log.open("a") as output:
        output.write(" ".join(command) + "\n")
        output.flush()
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise BuildError(
            f"the CPU backend did not build: {first_error(log)}",
            remedy=f"the log is {log}; CXX names another compiler",
        )


def _precompile(folder: Path, toolchain: Toolchain) -> None:
    """Precompiles all headers of the API: most of the time of a module's compilation goes there.

    A compiler that cannot do it loses nothing but time.
    """
    folder.joinpath("precompiled").mkdir()
    ending = ".gch" if toolchain.family == "gnu" else ".pch"
    for target, names in _headers(folder / "include").items():
        header = _precompiled_header(folder, target)
        header.write_text("#pragma once\n" + "".join(f"#include <{name}>\n" for name in names))
        command = _compile_command(folder, toolchain)
        command += ["-x", "c++-header", str(header), "-o", f"{header}{ending}"]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            header.unlink()


def _headers(include: Path) -> dict[str, list[str]]:
    """The headers that projects include, by target."""
    operations = [
        path.relative_to(include) for path in include.joinpath("ttnn", "operations").rglob("*.hpp")
    ]
    public = sorted(str(path) for path in operations if "device" not in path.parts)
    host = sorted(f"tt-metalium/{p.name}" for p in include.joinpath("tt-metalium").glob("*.hpp"))
    return {
        "ttnn": ["ttnn/device.hpp", "ttnn/types.hpp", *public],
        "ttmetal": [*host, *(name for name in _TENSOR_HEADERS if include.joinpath(name).is_file())],
    }


def _compile_support(folder: Path, support: Path, toolchain: Toolchain, target: str) -> None:
    with tempfile.TemporaryDirectory(prefix="support-", dir=folder) as scratch:
        sources = [path for path in support_files(target) if path.endswith(".cpp")]
        for path, text in support_files(target).items():
            file = Path(scratch, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        unity = Path(scratch, "support.cpp")
        unity.write_text("".join(f'#include "{path}"\n' for path in sources))
        made = Path(scratch, "support.o")
        command = _compile_command(folder, toolchain)
        # The conversions of arrays are worth optimizing, unlike what only calls the library.
        command += ["-O2", "-I", scratch, "-c", str(unity), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            log = folder / "support.log"
            log.write_text(f"{command}\n{done.stdout}{done.stderr}")
            raise BuildError(f"the support sources did not build; the log is {log}")
        made.rename(support)


def _compile_command(folder: Path, toolchain: Toolchain) -> list[str]:
    return [
        toolchain.compiler,
        *toolchain.flags.split(),
        *PROJECT_FLAGS,
        "-isystem",
        str(folder / "include"),
    ]


def _point_to(folder: Path, link: Path) -> None:
    """Makes `link` lead to the newest build: CMake looks for it there."""
    with tempfile.TemporaryDirectory(prefix=f"{link.name}.", dir=link.parent) as scratch:
        fresh = Path(scratch, "link")
        fresh.symlink_to(folder.name)
        fresh.replace(link)
