"""User files: Python files outside of this package and the standard library."""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import cache
from pathlib import Path

_PACKAGES = frozenset({"site-packages", "dist-packages"})


def is_of_user(file: str) -> bool:
    """True if a file, as code names it, is neither of ttcodegen, nor of Python, nor of an installed
    package."""
    return not file.startswith(("<", *_others())) and not _is_installed(Path(file))


def _is_installed(file: Path) -> bool:
    """True if an installed package has a file: also one in a folder of the user's choice, which
    `pip install --target` leaves the metadata of packages in."""
    return not _PACKAGES.isdisjoint(file.parts) or any(
        str(folder) in sys.path and _has_packages(str(folder)) for folder in file.parents
    )


@cache
def _has_packages(folder: str) -> bool:
    return any(Path(folder).glob("*.dist-info"))


@cache
def _others() -> tuple[str, ...]:
    """The folders of ttcodegen and of Python's library, each with the separator at its end."""
    paths = sysconfig.get_paths()
    folders = (str(Path(__file__).parents[1]), paths["stdlib"], paths["platstdlib"])
    return tuple(folder + os.sep for folder in folders)
