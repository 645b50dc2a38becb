"""The folder of a project, given in place of a file: its C++ is built as it is now."""

from __future__ import annotations

from pathlib import Path

from ttcodegen.project.building import build_project
from ttcodegen.project.manifest import read_manifest
from ttcodegen.project.sources import FLATBUFFER_FILES
from ttcodegen.project.toolchain import find_toolchain


def flatbuffer_of_project(folder: Path) -> Path | None:
    """The flatbuffer of the project in `folder`; None if that is no folder of a project."""
    manifest = read_manifest(folder)
    if manifest is None:
        return None
    path = folder / FLATBUFFER_FILES.get(str(manifest.get("target")), "")
    return path if path.is_file() else None


def build_as_it_is(folder: Path) -> Path:
    """Builds the shared object of a project, with all that was edited; nothing else is written.

    Raises:
        BuildError: if it does not build.
    """
    manifest = read_manifest(folder) or {}
    library = build_project(folder, str(manifest.get("module")), find_toolchain(), "so").library
    assert library is not None
    return library
