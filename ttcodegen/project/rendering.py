"""All files of a project, as they are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from ttcodegen.emission.templates import clang_format_style
from ttcodegen.emitc.formatting import start_formatting
from ttcodegen.project.op_lines import LINES, formatted_lines, lines_archive
from ttcodegen.project.sources import (
    FLATBUFFER_FILES,
    render_project_files,
    render_sources,
)

if TYPE_CHECKING:
    from ttcodegen.compilation import CompiledModule

_Content = TypeVar("_Content")


def project_files(compiled: CompiledModule, *, formatted: bool) -> dict[str, str | bytes]:
    """The files of a module's project but its data and its manifest, by path.

    Args:
        compiled: the module, its C++ as it was printed.
        formatted: whether C++ is put into the style that is shipped with the project.

    Raises:
        CompileError: if clang-format is missing or fails.
    """
    module = compiled.description
    sources = _together(compiled.files, render_sources(module))
    # clang-format works in other processes while the other templates are rendered here.
    formatting = start_formatting(sources, clang_format_style()) if formatted else None
    try:
        others = render_project_files(module, sources)
        if formatting is not None:
            sources = formatting.result()
    finally:
        if formatting is not None:
            formatting.close()
    flatbuffer = {FLATBUFFER_FILES[module.target]: compiled.flatbuffer}
    lines = lines_archive(formatted_lines(compiled.lines, compiled.files, sources))
    return _together(sources, others, flatbuffer if module.has_flatbuffer else {}, {LINES: lines})


def _together(*parts: Mapping[str, _Content]) -> dict[str, _Content]:
    """All files; a file that took the place of another would be lost without a word."""
    files: dict[str, _Content] = {}
    for part in parts:
        if twice := sorted(files.keys() & part.keys()):
            raise ValueError(f"two files of the project are called {', '.join(twice)}")
        files |= part
    return files
