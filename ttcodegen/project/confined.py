"""Writing inside of a project's folder only: nothing goes through a link that is in it.

A project may come from someone else, with links that lead to files of the user's.
"""

from __future__ import annotations

import os
from pathlib import Path

from ttcodegen.foundation.diagnostics import CompileError

_REMEDY = "replace the link by what it leads to, or give another folder"


def refuse_link_on_way(top: Path, path: str | Path) -> None:
    """Makes sure that the folders between `top` and a file below it are no links.

    Raises:
        CompileError: if one of them is, or the path leads out of `top`.
    """
    parts = Path(path).parts
    if Path(path).is_absolute() or ".." in parts:
        raise CompileError(f"'{path}' is not in '{top}'")
    place = top
    for part in parts[:-1]:
        place /= part
        if place.is_symlink():
            raise CompileError(
                f"'{place}' is a link: nothing is written or removed through it", remedy=_REMEDY
            )


def refuse_link(top: Path, path: str | Path) -> None:
    """Makes sure that a file or folder below `top`, and the folders on the way, are no links.

    Raises:
        CompileError: if one of them is, or the path leads out of `top`.
    """
    refuse_link_on_way(top, Path(path) / "_")


def refuse_links_out(top: Path, folder: Path) -> None:
    """Makes sure that no link in a folder below `top`, at any depth, leads out of `top`.

    Raises:
        CompileError: if one does.
    """
    inside = os.path.realpath(top)
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            entry = Path(place, name)
            if entry.is_symlink():
                target = os.path.realpath(entry)
                if os.path.commonpath([inside, target]) != inside:
                    raise CompileError(
                        f"'{entry}' is a link to '{target}': nothing is written through it",
                        remedy="remove the link",
                    )
