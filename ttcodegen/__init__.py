"""Compiles tensor programs in the TTIR dialect to C++ projects for Tenstorrent accelerators."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if sys.version_info < (3, 11):  # noqa: UP036 - what is run from a checkout, pip has not refused
    raise SystemExit(
        "ttcodegen needs Python 3.11, 3.12 or 3.13; this is Python "
        f"{sys.version_info[0]}.{sys.version_info[1]}"
    )

from ttcodegen.version import __version__

if TYPE_CHECKING:
    from ttcodegen.runtime.library import LoadedFunction, LoadedModule, ModuleError, load

__all__ = ["LoadedFunction", "LoadedModule", "ModuleError", "__version__", "load"]

_LIBRARY = frozenset(["LoadedFunction", "LoadedModule", "ModuleError", "load"])


def __getattr__(name: str) -> Any:
    # Compiling needs neither numpy nor ctypes, so they are imported on first use.
    if name in _LIBRARY:
        from ttcodegen.runtime import library

        return getattr(library, name)
    raise AttributeError(f"module 'ttcodegen' has no attribute '{name}'")
