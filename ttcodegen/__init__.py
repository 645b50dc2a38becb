"""Compiles tensor programs in the TTIR dialect to C++ projects for Tenstorrent accelerators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ttcodegen.runtime.library import LoadedFunction, LoadedModule, ModuleError, load

__version__ = "0.1.0"
__all__ = ["LoadedFunction", "LoadedModule", "ModuleError", "__version__", "load"]

_LIBRARY = frozenset(["LoadedFunction", "LoadedModule", "ModuleError", "load"])


def __getattr__(name: str) -> Any:
    # Compiling needs neither numpy nor ctypes, so they are imported when they are asked for.
    if name in _LIBRARY:
        from ttcodegen.runtime import library

        return getattr(library, name)
    raise AttributeError(f"module 'ttcodegen' has no attribute '{name}'")
