"""Lazy import of numpy: most runs of the compiler never compute."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[Any]
else:

    class _Lazy:
        # What `import` asks of a module that is there already.
        __spec__ = None

        def __getattr__(self, name: str) -> Any:
            if sys.modules.get("numpy") is self:
                del sys.modules["numpy"]
            return getattr(import_module("numpy"), name)

    np = _Lazy()
    Array = Any


def import_without_numpy(name: str) -> ModuleType:
    """Imports a module that rarely uses numpy with the lazy stand-in in its place.

    If numpy or the module is imported already, nothing is replaced.
    """
    if "numpy" in sys.modules or name in sys.modules:
        return import_module(name)
    sys.modules["numpy"] = cast("ModuleType", np)
    try:
        return import_module(name)
    finally:
        if sys.modules.get("numpy") is np:
            del sys.modules["numpy"]


__all__ = ["Array", "import_without_numpy", "np"]
