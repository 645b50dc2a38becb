"""numpy, imported when it is first used: most runs of the compiler never compute."""

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
    """The module of that name, which imports numpy for what is seldom asked of it; it gets this
    stand-in instead, unless numpy is there already."""
    if "numpy" in sys.modules or name in sys.modules:
        return import_module(name)
    sys.modules["numpy"] = cast("ModuleType", np)
    try:
        return import_module(name)
    finally:
        if sys.modules.get("numpy") is np:
            del sys.modules["numpy"]


__all__ = ["Array", "import_without_numpy", "np"]
