"""The templates of the package: how they are rendered, and the files that are copied from them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent.parent / "templates"

_CPU_INCLUDE = re.compile(r'^#include "support/cpu/(\w+)\.hpp"', re.MULTILINE)


def template_text(path: str) -> str:
    """The text of a file, by its path in the folder of templates."""
    return TEMPLATES.joinpath(path).read_text("utf-8")


@cache
def template_environment() -> Environment:
    """What renders the templates of the package."""
    # Imported here: who only gets a diagnostic must not wait for it.
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(template_text),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # What is rendered is C++, CMake and Markdown: texts from the input are escaped for each of
        # them where the context is made.
        autoescape=False,
    )


@cache
def clang_format_style() -> str:
    """The text of the .clang-format file that is shipped with each project."""
    return template_text(".clang-format")


@cache
def _cpu_header(name: str) -> str:
    return template_text(f"support_cpu/{name}.hpp")


def cpu_support_files(headers: Iterable[str]) -> dict[str, str]:
    """What functions for the CPU include, and what that includes, by path.

    Args:
        headers: the stems of the headers that they name; if there are none, nothing is needed.
    """
    pending = list(headers)
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += _CPU_INCLUDE.findall(_cpu_header(name))
    return {f"support/cpu/{name}.hpp": _cpu_header(name) for name in sorted(found)}
