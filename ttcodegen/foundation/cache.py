"""The cache folder of the user: compiled backends and formatted texts.

What is in it becomes part of programs, so it has to be the user's own: the folder and each file
belong to the user, nobody else can write them, and no folder above it lets another user replace it.
A folder of which that does not hold is not used.
"""

from __future__ import annotations

import hashlib
import os
import stat
import zlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from ttcodegen.foundation.messages import Level, report

_NOBODY = 65534
"""The owner, inside of a user namespace, of what belongs to users outside of it."""
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class UntrustedFolderError(Exception):
    """Another user may write to a folder or replace it."""


def cache_folder() -> Path:
    """The folder ttcodegen/ in $TTCODEGEN_CACHE, $XDG_CACHE_HOME or ~/.cache.

    Raises:
        RuntimeError: if no variable names one and the user has no home.
    """
    for variable in ("TTCODEGEN_CACHE", "XDG_CACHE_HOME"):
        if value := os.environ.get(variable):
            return Path(value).absolute() / "ttcodegen"
    return Path.home() / ".cache" / "ttcodegen"


def own_cache_folder() -> Path | None:
    """The cache folder, made with mode 0700 if it is not there; None if there is none to trust.

    Where the folder that the environment names is not the user's own, one line says so, and the
    home folder of the user database is taken instead.

    Raises:
        OSError: if the folder cannot be made.
    """
    try:
        folder = cache_folder()
    except RuntimeError:
        return None
    reason = _distrust(folder)
    if reason is None:
        return folder
    _warn(f"ttcodegen: the cache folder '{folder}' is not used: {reason}")
    try:
        home = _home() / ".cache" / "ttcodegen"
        return home if home != folder and _distrust(home) is None else None
    except (KeyError, OSError):
        return None


def _home() -> Path:
    import pwd

    return Path(pwd.getpwuid(os.geteuid()).pw_dir)


@cache
def _warn(line: str) -> None:
    report(Level.WARNING, line)


def _distrust(folder: Path) -> str | None:
    """Reason to distrust a folder, None if there is none."""
    try:
        os.close(_open_own(folder))
    except UntrustedFolderError as error:
        return str(error)
    return None


def _open_own(folder: Path) -> int:
    """Opens a folder step by step from the root, so that what was checked is what is opened; makes
    what is missing.

    Raises:
        UntrustedFolderError: if it is not the user's own.
        OSError: if it cannot be opened or made.
    """
    # Links above it are resolved first; the folders that they lead to are checked.
    path = Path(os.path.realpath(folder.parent), folder.name)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    current, place = os.open("/", flags), Path("/")
    try:
        for name in path.parts[1:]:
            _check_above(os.fstat(current), place)
            place /= name
            if place == path and _is_link(name, current):
                raise UntrustedFolderError("it is a link")
            try:
                following = os.open(name, flags, dir_fd=current)
            except FileNotFoundError:
                try:
                    os.mkdir(name, 0o700, dir_fd=current)
                except FileExistsError:
                    pass  # Another process was faster.
                following = os.open(name, flags, dir_fd=current)
            os.close(current)
            current = following
        if reason := fault(os.fstat(current)):
            raise UntrustedFolderError(reason)
    except BaseException:
        os.close(current)
        raise
    return current


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode)
    except FileNotFoundError:
        return False


def _check_above(status: os.stat_result, place: Path) -> None:
    """Checks a folder on the way: who owns it or may write to it could replace what is in it."""
    user = os.geteuid()
    if status.st_uid not in (0, user, _NOBODY):
        raise UntrustedFolderError(f"'{place}' belongs to user {status.st_uid}")
    # In a sticky folder, such as /tmp, entries can be replaced by their owners only. A group of
    # the user's own number has no other members by convention.
    writers = _OTHERS if status.st_gid != user else stat.S_IWOTH
    if status.st_mode & writers and not status.st_mode & stat.S_ISVTX:
        raise UntrustedFolderError(f"other users can write to '{place}'")


def fault(status: os.stat_result) -> str | None:
    """Reason for which a file or folder is not the user's own, None if it is."""
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}"
    if status.st_mode & _OTHERS and not stat.S_ISLNK(status.st_mode):
        return "other users can write to it"
    return None


def kept_file(path: Path) -> bytes | None:
    """The bytes of a regular file of the cache; None if it is not the user's own.

    Raises:
        OSError: if it cannot be read, or is a link.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if fault(status) or not stat.S_ISREG(status.st_mode):
            return None
        return file.read()


def keep_file(path: Path, data: bytes) -> None:
    """Writes a file of the cache: who reads it meanwhile finds all of it, or what was there before.

    Raises:
        OSError: if it cannot be written.
    """
    # Most runs find what they need and write nothing.
    import tempfile

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            file.write(data)
            file.flush()
            os.replace(file.name, path)
        except OSError:
            os.unlink(file.name)
            raise


def with_checksum(data: bytes) -> bytes:
    """Data with a checksum, from which `checked` restores it unless it was damaged."""
    return _checksum(data) + data


def checked(kept: bytes) -> bytes | None:
    """The data of a file of the cache; None if it is not what was written."""
    data = kept[4:]
    return data if _checksum(data) == kept[:4] else None


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "little")


# Seals of folders of the cache: what was damaged is made again.
#
# A seal lists files with size, time and content. A full disk or a crash may truncate files, a
# person or a clean-up remove them; and what is linked into programs must not be writable by other
# users.

_NO_FILES = "no files\n"
"""A seal of nothing: one that is empty was damaged itself."""


def vouch_for(seal: Path, files: Iterable[Path]) -> None:
    """Seals files below the folder of `seal`, and takes other users' right to write them.

    Raises:
        OSError: if one of them is missing, or the seal cannot be written.
    """
    lines: list[str] = []
    for file in sorted(files):
        status = file.stat()
        if status.st_mode & _OTHERS:
            file.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)
        name = file.relative_to(seal.parent)
        lines.append(f"{status.st_size} {status.st_mtime_ns} {_digest(file)} {name}\n")
    _close_folders(seal.parent)
    keep_file(seal, ("".join(lines) or _NO_FILES).encode())


def _close_folders(top: Path) -> None:
    """Takes other users' right to write the folders of a build, which the umask may give."""
    for folder in [top, *(path for path in top.rglob("*") if path.is_dir())]:
        mode = folder.stat().st_mode
        if mode & _OTHERS:
            folder.chmod(stat.S_IMODE(mode) & ~_OTHERS)


def is_intact(seal: Path, *, by_content: bool = False) -> bool:
    """True if the sealed files are what they were, and the user's own.

    The content of a file is read only if its time is another, as after a copy of the cache, or
    `by_content`, for files that are few and small.
    """
    try:
        text = _own_text(seal)
        if not text:
            return False
        folders = {seal.parent}
        for line in text.splitlines() if text != _NO_FILES else ():
            size, time, digest, name = line.split(" ", 3)
            file = seal.parent / name
            status = file.lstat()
            if not stat.S_ISREG(status.st_mode) or fault(status) or status.st_size != int(size):
                return False
            is_read = by_content or status.st_mtime_ns != int(time)
            if is_read and _digest(file) != digest:
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
