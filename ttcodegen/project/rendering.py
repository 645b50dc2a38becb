"""All files of a project, as they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ttcodegen.emitc.formatting import Formatting, start_formatting
from ttcodegen.project.sources import (
    FLATBUFFER_FILES,
    clang_format_style,
    render_project_files,
    render_sources,
)

if TYPE_CHECKING:
    from ttcodegen.compilation import CompiledModule


def project_files(compiled: CompiledModule, *, formatted: bool) -> dict[str, str | bytes]:
    """The files of a module's project but its data and its manifest, by path.

    Args:
        compiled: the module, its C++ as it was printed.
        formatted: whether C++ is put into the style that is shipped with the project.

    Raises:
        CompileError: if clang-format is missing or fails.
    """
    module = compiled.description
    running: list[Formatting] = []

    def formatting(files: dict[str, str]) -> dict[str, str]:
        if formatted:
            running.append(start_formatting(files, clang_format_style()))
        return files

    # clang-format works in other processes while the templates are rendered here.
    try:
        sources = formatting(compiled.files)
        sources = {**sources, **formatting(render_sources(module))}
        others = render_project_files(module, compiled.files)
        for one in running:
            sources.update(one.result())
    finally:
        for one in running:
            one.close()
    return {**sources, **others, FLATBUFFER_FILES[module.target]: compiled.flatbuffer}
