"""CPU backend: built or prebuilt per version, compiler and processor."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ttcodegen.foundation.cache import fault, is_intact, own_cache_folder, vouch_for
from ttcodegen.foundation.messages import Level, report
from ttcodegen.project.sources import support_files
from ttcodegen.project.toolchain import (
    BuildError,
    Toolchain,
    first_error,
    flags_remedy,
    run_ninja,
    run_step,
)
from ttcodegen.version import __version__

# The CPU backend as a platform wheel brings it: compiled for a few levels of processors.
#
# Such a wheel holds `_backend/backend.json` and `_backend/<level>/lib`. The levels are those of
# the x86-64 psABI; the highest that the machine has is used. Where none suits, or the libraries
# of the machine's compiler are older than those of the wheel's, the backend is compiled as it is
# from a source distribution.

PREBUILT_FOLDER = "_backend"
DESCRIPTION = "backend.json"
DISABLING_VARIABLE = "TTCODEGEN_PREBUILT"
"""If 0, the backend is compiled for exactly this machine's processor."""

_V2 = frozenset("cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3".split())
_V3 = _V2 | frozenset("abm avx avx2 bmi1 bmi2 f16c fma movbe xsave".split())
_V4 = _V3 | frozenset("avx512f avx512bw avx512cd avx512dq avx512vl".split())

LEVELS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "x86_64": {"x86-64-v4": _V4, "x86-64-v3": _V3, "x86-64-v2": _V2},
}
"""By machine, -march levels, best first, with the processor flags that they require."""


@dataclass(frozen=True)
class Prebuilt:
    """Compiled backend shipped with the package."""

    level: str
    library: Path
    """Folder to install as `lib`."""


def find_prebuilt(package: Path, sources_hash: str, toolchain: Toolchain) -> Prebuilt | None:
    """Returns the prebuilt backend for this machine, None if there is none.

    Args:
        package: the folder of the installed package.
        sources_hash: hash of the sources; the prebuilt backend has to match.
        toolchain: the compiler to link with. User flags disable prebuilt backends, as they may
            change the ABI.
    """
    folder = package / PREBUILT_FOLDER
    description = _description(folder)
    if description is None or description.get("sources") != sources_hash:
        return None
    if os.environ.get(DISABLING_VARIABLE) == "0":
        return None
    if toolchain.flags or os.environ.get("LDFLAGS"):
        return None
    flags = processor_flags()
    for level, needed in LEVELS.get(platform.machine(), {}).items():
        library = folder / level / "lib"
        if needed <= flags and library.is_dir():
            return Prebuilt(level, library) if _links_with(library, toolchain) else None
    return None


def processor_flags() -> frozenset[str]:
    """Processor flags on Linux; empty elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return frozenset()
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return frozenset(found[1].split()) if found else frozenset()


def _description(folder: Path) -> Mapping[str, Any] | None:
    try:
        content: Any = json.loads(folder.joinpath(DESCRIPTION).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None  # pyright: ignore[reportUnknownVariableType]


def _links_with(library: Path, toolchain: Toolchain) -> bool:
    """Returns whether the archives link with the compiler's libraries."""
    archives = [str(path) for path in sorted(library.glob("*.a"))]
    with tempfile.TemporaryDirectory(prefix="ttcodegen-link-") as scratch:
        command = [toolchain.compiler, "-shared", "-o", str(Path(scratch, "all.so"))]
        command += ["-Wl,--whole-archive", *archives, "-Wl,--no-whole-archive"]
        command += ["-Wl,--no-undefined", "-pthread", "-ldl"]
        try:
            return subprocess.run(command, capture_output=True, check=False).returncode == 0
        except OSError:
            return False


# Builds the CPU backend, once for each version, compiler, processor and content, into a cache.
#
# Where ttcodegen is installed does not matter: installations, virtual environments and checkouts
# of one user share a build as long as their sources are the same.

PROJECT_FLAGS = (
    "-std=c++20 -O1 -DNDEBUG -fPIC -fvisibility=hidden -fvisibility-inlines-hidden -Wall -Wextra"
).split()
"""Release flags of a project's CMakeLists.txt, which a precompiled header has to match."""

_TENSOR_HEADERS = (
    "tt-metalium/experimental/tensor/spec/layout/layout.hpp",
    "tt-metalium/experimental/tensor/tensor_types.hpp",
)

_READY = "ready"
_OBJECTS = "objects"
"""Seal of a build folder's objects, separate from that of a finished build."""
_LAYOUT = "2"
"""Version of the build folder's layout; other versions use other folders."""
_PACKAGED_SOURCES = "_standalone"
_PARTS_OF_SOURCES = ("CMakeLists.txt", "cmake", "include", "src")
"""Parts of the packaged sources that are built."""
_KEPT_BUILDS = 3
_UNUSED_SECONDS = 24 * 3600.0
"""Minimum age of removed builds: other checkouts may have other sources."""
_BUILD_OPTIONS = ("-DCMAKE_BUILD_TYPE=Release", "-DTTCODEGEN_CPU_NATIVE=ON")


@dataclass(frozen=True)
class CPUBackend:
    """Installed CPU backend, with build accelerators for projects."""

    folder: Path
    """Folder for `-DTTCODEGEN_CPU_DIR`."""
    precompiled_header: Path | None
    """Header to include first; None if the compiler could not precompile it."""
    support_object: Path
    """Compiled support sources that all projects share."""


@cache
def backend_sources() -> Path:
    """Folder of the sources: inside the installed package, else next to it.

    Raises:
        BuildError: if it does not exist.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / _PACKAGED_SOURCES, package.parent / "standalone"):
        if folder.joinpath("CMakeLists.txt").is_file():
            return folder
    raise BuildError(
        "the sources of the CPU backend are not installed",
        remedy="install ttcodegen again: its folder '_standalone' is missing",
    )


def ensure_cpu_backend(
    toolchain: Toolchain, target: str = "ttnn", definitions: Sequence[str] = ()
) -> CPUBackend:
    """Returns the CPU backend for a compiler, built first if necessary.

    Concurrent processes build it once.

    Args:
        toolchain: the compiler.
        target: API of the projects.
        definitions: macros of the tt-metal release, for precompiled headers; the library is the
            same for all releases.

    Raises:
        BuildError: if the build fails, or the cache cannot be written.
    """
    place = _CacheEntry(backend_sources(), toolchain)
    support = place.folder / f"support-{target}-{_support_hash(target)}.o"
    ready, prepared = place.folder / _READY, support.with_suffix(".ready")
    header = _precompiled_header(place.folder, target, definitions)
    seals = (ready, prepared, _seal_of(header))
    if not all(map(is_intact, seals)):
        with _locked(place.sibling("lock")):
            if not is_intact(ready):
                _build(place, toolchain)
            if is_intact(prepared):
                _precompile(place.folder, toolchain, target, definitions)
            else:
                _prepare(place.folder, support, toolchain, target, definitions)
                vouch_for(prepared, [support])
    _mark_used(ready)
    return CPUBackend(place.folder, header if header.exists() else None, support)


def _mark_used(ready: Path) -> None:
    try:
        if time.time() - ready.stat().st_mtime > _UNUSED_SECONDS / 8:
            ready.touch()
    except OSError:
        # A cache that cannot be written is as good to read.
        pass


class _CacheEntry:
    """Cache entry of a backend build."""

    def __init__(self, sources: Path, toolchain: Toolchain) -> None:
        self.sources = sources
        self.link = _cache() / f"cpu-{__version__}-{toolchain.name}"
        self.sources_hash = sources_hash(sources)
        self._settings = f"{self.link}-{_settings_hash(toolchain)}"
        self.folder = Path(f"{self._settings}-{self.sources_hash}")

    def sibling(self, ending: str) -> Path:
        """Path of a file next to the build folder."""
        return Path(f"{self.folder}.{ending}")

    @property
    def objects(self) -> Path:
        """Build folder of the sources, one per checkout, which keeps objects."""
        return Path(f"{self._settings}-{_hash([str(self.sources)])}.build")

    @property
    def is_checkout(self) -> bool:
        """Returns whether the sources are a checkout, whose objects are kept for the next build."""
        return self.sources.name != _PACKAGED_SOURCES

    def entries(self) -> list[Path]:
        """Finished builds with the same settings, most recently used first."""
        found = self.folder.parent.glob(f"{Path(self._settings).name}-*")
        ready = [entry / _READY for entry in found if entry.joinpath(_READY).is_file()]
        return [mark.parent for mark in sorted(ready, key=lambda m: -m.stat().st_mtime)]


def _cache() -> Path:
    """Cache folder; raises BuildError if there is none that is trusted and writable."""
    remedy = "set the environment variable TTCODEGEN_CACHE to a folder of yours that can be written"
    try:
        folder = own_cache_folder()
    except OSError as error:
        place = error.filename if isinstance(error.filename, str) else ""
        message = f"cannot write the cache folder: {error.strerror}: '{place}'"
        raise BuildError(message, remedy=remedy) from None
    if folder is None:
        raise BuildError("there is no cache folder for the CPU backend", remedy=remedy)
    return folder


def _precompiled_header(folder: Path, target: str, definitions: Sequence[str]) -> Path:
    names = "".join(f"_{name.lower().replace('=', '_')}" for name in definitions)
    return folder / "precompiled" / f"{target}_all{names}.hpp"


def _seal_of(header: Path) -> Path:
    return header.with_suffix(".ready")


@contextmanager
def _locked(path: Path) -> Generator[None]:
    """Holds a lock of the cache; the system releases it if the process dies."""
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        lock = os.fdopen(os.open(path, flags, 0o600), "w")
    except OSError as error:
        raise BuildError(
            f"cannot write the cache folder '{path.parent}': {error.strerror}",
            remedy="set the environment variable TTCODEGEN_CACHE to a folder that can be written",
        ) from None
    with lock:
        if fault(os.fstat(lock.fileno())):
            raise BuildError(f"'{path}' is not used: it is not yours alone", remedy="remove it")
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _hash(texts: Iterable[str]) -> str:
    digest = hashlib.blake2b(digest_size=5)
    for text in texts:
        digest.update(f"{text}\0".encode())
    return digest.hexdigest()


def _settings_hash(toolchain: Toolchain) -> str:
    tools = [toolchain.compiler, toolchain.flags, os.environ.get("LDFLAGS", "")]
    tools.append(os.environ.get(DISABLING_VARIABLE, ""))
    return _hash([_LAYOUT, *tools, *_BUILD_OPTIONS, *PROJECT_FLAGS, _processor()])


def sources_hash(sources: Path) -> str:
    """Hash of the backend's sources, independent of their location."""
    texts: list[str] = []
    parts = [sources / part for part in _PARTS_OF_SOURCES]
    files = [path for part in parts for path in ([part] if part.is_file() else part.rglob("*"))]
    for path in sorted(files):
        if path.is_file():
            relative = path.relative_to(sources)
            texts += [str(relative), hashlib.blake2b(path.read_bytes()).hexdigest()]
    return _hash(texts)


def _processor() -> str:
    """Processor identity that -march=native depends on, as machines may share a home folder."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return platform.machine()
    known = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    model = re.search(r"^(?:model name|CPU part)\s*:(.*)$", text, re.MULTILINE)
    return " ".join([platform.machine(), *(m.group(1) for m in (known, model) if m)])


def _support_hash(target: str) -> str:
    return _hash(text for item in support_files(target).items() for text in item)


def _build(place: _CacheEntry, toolchain: Toolchain) -> None:
    """Installs the backend: prebuilt, or built incrementally from its sources."""
    shutil.rmtree(place.folder, ignore_errors=True)
    prebuilt = find_prebuilt(place.sources.parent, place.sources_hash, toolchain)
    with tempfile.TemporaryDirectory(prefix="install-", dir=place.folder.parent) as scratch:
        installed = Path(scratch, "installed")
        if prebuilt is not None:
            report(Level.INFO, f"ttcodegen: preparing the CPU backend for {prebuilt.level}")
            shutil.copytree(place.sources / "include", installed / "include")
            shutil.copytree(prebuilt.library, installed / "lib")
        else:
            report(Level.INFO, "ttcodegen: building the CPU backend; this happens once")
            # Builds of one checkout share objects, even if sources changed in between.
            with _locked(Path(f"{place.objects}.lock")):
                _compile(place, toolchain, installed)
        installed.rename(place.folder)
    parts = [place.folder / "include", place.folder / "lib"]
    installed_files = [file for part in parts for file in part.rglob("*") if file.is_file()]
    vouch_for(place.folder / _READY, installed_files)
    _point_to(place.folder, place.link)
    if not place.is_checkout:
        shutil.rmtree(place.objects, ignore_errors=True)
    _remove_unused(place)


def _compile(place: _CacheEntry, toolchain: Toolchain, installed: Path) -> None:
    """Compiles the sources and installs the result."""
    build, log = place.objects, place.sibling("log")
    seal = build / _OBJECTS
    if seal.exists() and not is_intact(seal):
        # Ninja compares only times and would link damaged objects.
        shutil.rmtree(build)
    # A build without a seal was interrupted and continues.
    seal.unlink(missing_ok=True)
    configure = [toolchain.cmake, "-G", "Ninja", "-S", str(place.sources), "-B", str(build)]
    configure += [
        *_BUILD_OPTIONS,
        "-DCMAKE_INSTALL_LIBDIR=lib",
        f"-DCMAKE_MAKE_PROGRAM={toolchain.ninja}",
        f"-DCMAKE_CXX_COMPILER={toolchain.compiler}",
        f"-DCMAKE_CXX_FLAGS={toolchain.flags}",
    ]
    install = [toolchain.cmake, "--install", str(build), "--prefix", str(installed)]
    log.unlink(missing_ok=True)
    _require(run_step(configure, log), log)
    _require(run_ninja(toolchain, build, log, "building the CPU backend"), log)
    _require(run_step(install, log), log)
    built = [file for file in build.rglob("*") if file.is_file() and not file.is_symlink()]
    vouch_for(seal, built)


def _remove_unused(place: _CacheEntry) -> None:
    """Removes old builds except for the most recent ones."""
    now = time.time()
    for entry in place.entries()[_KEPT_BUILDS:]:
        if now - entry.joinpath(_READY).stat().st_mtime > _UNUSED_SECONDS:
            shutil.rmtree(entry, ignore_errors=True)
            for ending in ("lock", "log"):
                Path(f"{entry}.{ending}").unlink(missing_ok=True)


def _require(status: int, log: Path) -> None:
    """Raises BuildError with the first error of the log if a build step failed."""
    if status != 0:
        raise BuildError(
            f"the CPU backend did not build: {first_error(log)}",
            remedy=f"the log is {log}; CXX names another compiler{flags_remedy()}",
        )


def _prepare(
    folder: Path, support: Path, toolchain: Toolchain, target: str, definitions: Sequence[str]
) -> None:
    """Builds the precompiled header and the support object of a target concurrently."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        precompiling = pool.submit(_precompile, folder, toolchain, target, definitions)
        _compile_support(folder, support, toolchain, target, precompiling.result)


def _precompile(
    folder: Path, toolchain: Toolchain, target: str, definitions: Sequence[str]
) -> None:
    """Precompiles the API headers, which dominate a module's compile time.

    It is built in its final folder, as its path is part of its content. A failure is ignored, as
    only speed depends on it.
    """
    header = _precompiled_header(folder, target, definitions)
    made = Path(f"{header}{'.gch' if toolchain.family == 'gnu' else '.pch'}")
    seal = _seal_of(header)
    if is_intact(seal):
        return
    header.parent.mkdir(exist_ok=True)
    names = public_headers(folder / "include")[target]
    header.write_text("#pragma once\n" + "".join(f"#include <{name}>\n" for name in names))
    command = [*_compile_command(folder, toolchain), *(f"-D{name}" for name in definitions)]
    command += ["-x", "c++-header", str(header), "-o", str(made)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        header.unlink()
        made.unlink(missing_ok=True)
    vouch_for(seal, [path for path in (header, made) if path.exists()])


def public_headers(include: Path) -> dict[str, list[str]]:
    """Headers that projects include, by target."""
    operations = [
        path.relative_to(include) for path in include.joinpath("ttnn", "operations").rglob("*.hpp")
    ]
    public = sorted(str(path) for path in operations if "device" not in path.parts)
    host = sorted(f"tt-metalium/{p.name}" for p in include.joinpath("tt-metalium").glob("*.hpp"))
    return {
        "ttnn": ["ttnn/device.hpp", "ttnn/types.hpp", *public],
        "ttmetal": [*host, *(name for name in _TENSOR_HEADERS if include.joinpath(name).is_file())],
    }


def _compile_support(
    folder: Path,
    support: Path,
    toolchain: Toolchain,
    target: str,
    before_the_end: Callable[[], None],
) -> None:
    """Compiles the support sources; the object is published after `before_the_end` returns."""
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
        # Array conversions profit from optimization, unlike calls of the library.
        command += ["-O2", "-I", scratch, "-c", str(unity), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            log = folder / "support.log"
            log.write_text(f"{command}\n{done.stdout}{done.stderr}")
            raise BuildError(f"the support sources did not build; the log is {log}")
        before_the_end()
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
    """Atomically points the link that CMake searches to the newest build."""
    with tempfile.TemporaryDirectory(prefix=f"{link.name}.", dir=link.parent) as scratch:
        fresh = Path(scratch, "link")
        fresh.symlink_to(folder.name)
        fresh.replace(link)
