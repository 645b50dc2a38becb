"""Which files of Python are the user's own."""

from __future__ import annotations

import os
import sysconfig
from functools import cache
from pathlib import Path

_PACKAGES = frozenset({"site-packages", "dist-packages"})


def is_of_user(file: str) -> bool:
    """Whether a file, as code names it, is neither of ttcodegen, nor of Python, nor of an installed
    package."""
    return not file.startswith(("<", *_others())) and _PACKAGES.isdisjoint(Path(file).parts)


@cache
def _others() -> tuple[str, ...]:
    """The folders of ttcodegen and of Python's library, each with the separator at its end."""
    paths = sysconfig.get_paths()
    folders = (str(Path(__file__).parent), paths["stdlib"], paths["platstdlib"])
    return tuple(folder + os.sep for folder in folders)
