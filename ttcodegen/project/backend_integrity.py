"""Seals of the files of a built CPU backend: a backend that was damaged is built again.

A seal lists files with size, time and content. A full disk or a crash may truncate files, a person
or a clean-up remove them; and what is linked into programs must not be writable by other users.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from ttcodegen.foundation.cache import fault

_GROUP_AND_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def vouch_for(seal: Path, files: Iterable[Path]) -> None:
    """Seals files below the folder of `seal`, and takes other users' right to write them.

    Raises:
        OSError: if one of them is missing, or the seal cannot be written.
    """
    lines: list[str] = []
    for file in sorted(files):
        status = file.stat()
        if status.st_mode & _GROUP_AND_OTHERS:
            file.chmod(stat.S_IMODE(status.st_mode) & ~_GROUP_AND_OTHERS)
        name = file.relative_to(seal.parent)
        lines.append(f"{status.st_size} {status.st_mtime_ns} {_digest(file)} {name}\n")
    _close_folders(seal.parent)
    seal.write_text("".join(lines), "utf-8")
    seal.chmod(0o600)


def _close_folders(top: Path) -> None:
    """Takes other users' right to write the folders of a build, which the umask may give."""
    for folder in [top, *(path for path in top.rglob("*") if path.is_dir())]:
        mode = folder.stat().st_mode
        if mode & _GROUP_AND_OTHERS:
            folder.chmod(stat.S_IMODE(mode) & ~_GROUP_AND_OTHERS)


def is_intact(seal: Path) -> bool:
    """True if the sealed files are what they were, and the user's own.

    The content of a file is read only if its time is another, as after a copy of the cache.
    """
    try:
        folders = {seal.parent}
        for line in _own_text(seal).splitlines():
            size, time, digest, name = line.split(" ", 3)
            file = seal.parent / name
            status = file.lstat()
            if not stat.S_ISREG(status.st_mode) or fault(status) or status.st_size != int(size):
                return False
            if status.st_mtime_ns != int(time) and _digest(file) != digest:
                return False
            folders.add(file.parent)
        return not any(fault(folder.lstat()) or folder.is_symlink() for folder in folders)
    except (OSError, ValueError):
        return False


def _own_text(path: Path) -> str:
    """The text of a file; raises ValueError if it is not the user's own."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), encoding="utf-8") as file:
        if fault(os.fstat(file.fileno())):
            raise ValueError(path)
        return file.read()


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "blake2b").hexdigest()[:32]
