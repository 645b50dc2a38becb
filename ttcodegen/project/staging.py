"""Atomic replacement of a project's files by staging, confined to its folder, under a lock."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import Level, report

# Writing inside of a project's folder only: nothing goes through a link that is in it.
#
# A project may come from someone else, with links that lead to files of the user's.

_REMEDY = "replace the link by what it leads to, or give another folder"


def refuse_link_on_way(top: Path, path: str | Path) -> None:
    """Refuses links among the folders between `top` and a path below it.

    Raises:
        CompileError: if one is a link, or the path leaves `top`.
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
    """Refuses a link at a path below `top` or on the way to it.

    Raises:
        CompileError: if one is a link, or the path leaves `top`.
    """
    refuse_link_on_way(top, Path(path) / "_")


def refuse_links_out(top: Path, folder: Path) -> None:
    """Refuses links in a folder below `top`, at any depth, that leave `top`.

    Raises:
        CompileError: if there is one.
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


# Where a project is written before it takes its place, and what is left of it if that is cut off.
#
# A folder `.ttcodegen-*` holds the new files (`project`), what they replaced (`replaced`) and a
# lock that the process which made it holds as long as it lives. A folder whose lock is free
# belongs to a process that was killed: who comes next puts back what was replaced, and removes
# it.

PREFIX = ".ttcodegen-"

_LOCK = "lock"
_COMMITTED = "committed"


@dataclass(frozen=True)
class Staging:
    """Staging folder of one write."""

    folder: Path

    @property
    def project(self) -> Path:
        """New files, by their paths in the project."""
        return self.folder / "project"

    @property
    def replaced(self) -> Path:
        """Replaced files, by the same paths."""
        return self.folder / "replaced"

    def commit(self) -> None:
        """Marks the write as complete, so that nothing is rolled back."""
        self.folder.joinpath(_COMMITTED).touch()


@contextmanager
def staging(parent: Path) -> Generator[Staging]:
    """Creates a staging folder in `parent` and removes it at the end."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    try:
        with folder.joinpath(_LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield Staging(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def replace_files(out: Path, texts: Mapping[str, str]) -> None:
    """Atomically replaces files of a project by texts, by path.

    Raises:
        CompileError: if a path is a link, or the files cannot be written.
    """
    for path in texts:
        refuse_link(out, path)
    try:
        with staging(out) as place:
            for path, text in texts.items():
                for folder in (place.project, place.replaced):
                    folder.joinpath(path).parent.mkdir(parents=True, exist_ok=True)
                place.project.joinpath(path).write_text(text, "utf-8")
            try:
                for path in texts:
                    out.joinpath(path).rename(place.replaced / path)
                    place.project.joinpath(path).rename(out / path)
            except OSError:
                _put_back(place.replaced, out)
                raise
            place.commit()
    except OSError as error:
        raise CompileError(f"cannot write '{out}': {error.strerror or error}") from None


def recover(out: Path) -> None:
    """Rolls back an interrupted write of the project in `out`, and removes its staging folders.

    Raises:
        OSError: if files cannot be moved back.
        CompileError: if a path is a link.
    """
    for parent in (out, out.parent):
        for folder in _abandoned(parent):
            if parent == out and not os.path.lexists(folder / _COMMITTED):
                _put_back(folder / "replaced", out)
            shutil.rmtree(folder, ignore_errors=True)


def _abandoned(parent: Path) -> Iterator[Path]:
    """Staging folders in `parent` without a living process, locked while yielded."""
    try:
        names = sorted(name for name in os.listdir(parent) if name.startswith(PREFIX))
    except OSError:
        return
    for name in names:
        if parent.joinpath(name).is_symlink():
            continue  # Not a staging folder.
        lock = _free_lock(parent / name / _LOCK)
        if lock is not None:
            with lock:
                yield parent / name


def _free_lock(path: Path) -> IO[str] | None:
    """Acquires a free lock; None if another process holds it, or it does not exist."""
    try:
        lock = os.fdopen(os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK), "r+")
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return None
    return lock


def _put_back(replaced: Path, out: Path) -> None:
    if replaced.is_symlink():
        return
    for folder, _, names in os.walk(replaced):
        for name in names:
            file = Path(folder, name)
            refuse_link_on_way(out, file.relative_to(replaced))
            target = out / file.relative_to(replaced)
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)


# One run at a time in a folder: another would exchange the files that a build reads.

_held: dict[tuple[str, int], ProjectLock] = {}
"""Locks held by threads of this process, by folder and thread."""


@dataclass
class ProjectLock:
    """Lock of a project's folder, or of its nearest existing parent."""

    out: Path
    held: int | None = None
    """Descriptor of the locked folder; None on file systems without locks."""
    is_told: bool = False
    """True once the user was informed about the wait."""

    def take(self) -> None:
        """Acquires the lock, waiting for the run that holds it."""
        while True:
            self.release()
            folder = _nearest(self.out)
            try:
                self.held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                self._wait(self.held)
            except OSError:
                return self.release()
            if _is_still(folder, self.held) and _nearest(self.out) == folder:
                return None

    def _wait(self, folder: int) -> None:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not self.is_told:
                message = f"another run is at work in '{self.out}'; waiting for it"
                report(Level.INFO, f"ttcodegen: {message}")
            self.is_told = True
            fcntl.flock(folder, fcntl.LOCK_EX)

    def follow(self, project: Path) -> None:
        """Transfers the lock to a project that is about to be renamed to the folder."""
        above, self.held = self.held, None
        try:
            self.held = os.open(project, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(self.held, fcntl.LOCK_EX)
            project.rename(self.out)
        finally:
            if above is not None:
                os.close(above)

    def release(self) -> None:
        """Releases the lock."""
        if self.held is not None:
            os.close(self.held)
            self.held = None


@contextmanager
def locked_project(out: Path) -> Generator[ProjectLock]:
    """Holds the lock of a project's folder; reentrant per thread."""
    key = os.path.realpath(out), threading.get_ident()
    if key in _held:
        yield _held[key]
        return
    lock = _held[key] = ProjectLock(Path(key[0]))
    try:
        lock.take()
        yield lock
    finally:
        lock.release()
        del _held[key]


def _nearest(out: Path) -> Path:
    """The folder, or its nearest existing parent."""
    return next(folder for folder in (out, *out.parents) if folder.is_dir())


def _is_still(folder: Path, descriptor: int) -> bool:
    """Returns whether a path is still the folder that was opened."""
    try:
        return os.path.samestat(folder.stat(), os.fstat(descriptor))
    except OSError:
        return False
