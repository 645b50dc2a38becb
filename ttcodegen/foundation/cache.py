"""The user's cache folder: compiled backends and formatted texts.

Its contents become part of programs, so that it must be the user's own: the folder and its files
belong to the user, nobody else can write them, and no parent folder lets another user replace it.
Other folders are not used.
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
from ttcodegen.foundation.whole_files import write_whole

_NOBODY = 65534
"""Owner, inside a user namespace, of files of users outside of it."""
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class UntrustedFolderError(Exception):
    """Another user may write to a folder or replace it."""


def cache_folder() -> Path:
    """Returns the folder ttcodegen/ in $TTCODEGEN_CACHE, $XDG_CACHE_HOME or ~/.cache.

    Raises:
        RuntimeError: if no variable is set and the user has no home.
    """
    for variable in ("TTCODEGEN_CACHE", "XDG_CACHE_HOME"):
        if value := os.environ.get(variable):
            return Path(value).absolute() / "ttcodegen"
    return Path.home() / ".cache" / "ttcodegen"


def own_cache_folder() -> Path | None:
    """Returns the cache folder, created with mode 0700; None if none can be trusted.

    If the configured folder is not the user's own, a warning is reported, and the home folder of
    the user database is tried instead.

    Raises:
        OSError: if the folder cannot be created.
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
    """Returns the reason to distrust a folder, None if there is none."""
    try:
        os.close(_open_own(folder))
    except UntrustedFolderError as error:
        return str(error)
    return None


def _open_own(folder: Path) -> int:
    """Opens a folder step by step from the root, creating missing parts.

    Each opened descriptor is checked, so that nothing can be replaced between check and use.

    Raises:
        UntrustedFolderError: if it is not the user's own.
        OSError: if it cannot be opened or created.
    """
    # Links in the parents are resolved first; their targets are checked.
    path = Path(os.path.realpath(folder.parent), folder.name)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    current, reached = os.open("/", flags), Path("/")
    try:
        for name in path.parts[1:]:
            _check_above(os.fstat(current), reached)
            reached /= name
            if reached == path and _is_link(name, current):
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


def _check_above(status: os.stat_result, folder: Path) -> None:
    """Raises UntrustedFolderError if others could replace the contents of a parent folder."""
    user = os.geteuid()
    if status.st_uid not in (0, user, _NOBODY):
        raise UntrustedFolderError(f"'{folder}' belongs to user {status.st_uid}")
    # In a sticky folder, such as /tmp, only owners can replace entries. A group with the user's
    # own number has no other members by convention.
    writers = _OTHERS if status.st_gid != user else stat.S_IWOTH
    if status.st_mode & writers and not status.st_mode & stat.S_ISVTX:
        raise UntrustedFolderError(f"other users can write to '{folder}'")


def fault(status: os.stat_result) -> str | None:
    """Returns why a file or folder is not the user's own, None if it is."""
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}"
    if status.st_mode & _OTHERS and not stat.S_ISLNK(status.st_mode):
        return "other users can write to it"
    return None


def kept_file(path: Path) -> bytes | None:
    """Returns the bytes of a regular file of the cache, None if it is not the user's own.

    Raises:
        OSError: if it cannot be read, or is a link.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if fault(status) or not stat.S_ISREG(status.st_mode):
            return None
        return file.read()


def with_checksum(data: bytes) -> bytes:
    """Prefixes data with a checksum that `checked` verifies."""
    return _checksum(data) + data


def checked(kept: bytes) -> bytes | None:
    """Returns the data of a cache file, None if its checksum is wrong."""
    data = kept[4:]
    return data if _checksum(data) == kept[:4] else None


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "little")


# Seals of cache folders, by which damaged ones are detected and rebuilt.
#
# A seal lists files with size, time and digest. A full disk or a crash may truncate files, a
# clean-up may remove them, and files that are linked into programs must not be writable by other
# users.

_NO_FILES = "no files\n"
"""Contents of a seal without files; an empty seal is damaged itself."""


def vouch_for(seal: Path, files: Iterable[Path]) -> None:
    """Seals files below the folder of `seal` and removes other users' write permission.

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
    write_whole(seal, "".join(lines) or _NO_FILES, private=True)


def _close_folders(top: Path) -> None:
    """Removes other users' write permission, which the umask may grant, from build folders."""
    for folder in [top, *(path for path in top.rglob("*") if path.is_dir())]:
        mode = folder.stat().st_mode
        if mode & _OTHERS:
            folder.chmod(stat.S_IMODE(mode) & ~_OTHERS)


def is_intact(seal: Path, *, by_content: bool = False) -> bool:
    """True if the sealed files are unchanged and the user's own.

    Contents are compared only if the modification time differs, as after a copy of the cache, or
    `by_content`, for few and small files.
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
    """Reads a text file; raises ValueError if it is not the user's own."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), encoding="utf-8") as file:
        if fault(os.fstat(file.fileno())):
            raise ValueError(path)
        return file.read()


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "blake2b").hexdigest()[:32]
