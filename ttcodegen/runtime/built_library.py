"""Shared objects of projects, rebuilt if their sources changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.project.building import (
    build_project,
    is_current,
    library_path,
    source_hashes,
    wait_for_builds,
)
from ttcodegen.project.manifest import manifest_hashes
from ttcodegen.project.toolchain import find_toolchain
from ttcodegen.runtime.c_api import ModuleError, describe_library


def find_library(out: Path, module: str) -> Path:
    """Shared object of a project, rebuilt if its sources changed.

    Raises:
        ModuleError: if it cannot be built.
    """
    sources = source_hashes(out)
    for folder in (library_path(out, module).parent, out / "build-cpu"):
        wait_for_builds(folder)
        library = folder / f"lib{module}.so"
        if is_current(folder, library, sources) or _holds_sources(out, library, sources):
            return library.absolute()
    try:
        built = build_project(out, module, find_toolchain(), "so").library
    except CompileError as error:
        raise ModuleError(error.render()) from None
    assert built is not None
    return built.absolute()


def _holds_sources(out: Path, library: Path, sources: Mapping[str, str]) -> bool:
    """Returns whether a manually built library is of these sources.

    It is newer than them, and its manifest has their hashes.
    """
    if not library.is_file():
        return False
    built = library.stat().st_mtime_ns
    if any(out.joinpath(path).stat().st_mtime_ns > built for path in sources):
        return False
    try:
        manifest = describe_library(library).embedded
    except CompileError:
        return False
    hashes = manifest_hashes(manifest or {})
    return all(hashes.get(path) == hash_ for path, hash_ in sources.items())
