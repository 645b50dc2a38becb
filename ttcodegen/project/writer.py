"""Atomic writing of projects."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ttcodegen.emission.description import DataFile
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.project.edits import (
    PRISTINE,
    Conflict,
    MergedFiles,
    edited_files,
    file_hash,
    merge_edits,
    pristine_archive,
    read_pristine,
)
from ttcodegen.project.manifest import MANIFEST, manifest_hashes, manifest_text, read_manifest
from ttcodegen.project.staging import (
    PREFIX,
    ProjectLock,
    locked_project,
    recover,
    refuse_link_on_way,
    staging,
)

if TYPE_CHECKING:
    from ttcodegen.emission.description import ModuleDescription

CHECK_REPORT = "check.json"
"""Report of `--check`, for the project as it was when checked."""

KeepEdits = Literal["merge", "fail"]
"""Policy for edits: merge them with newly generated files, or write nothing."""


def refuse_unrelated_folder(out: Path, *, force: bool, keep_edits: KeepEdits = "merge") -> None:
    """Checks that a project may be written to `out`.

    Without `force`, the folder must not exist, be empty, or be a project; an edited project
    requires merging and its archive of generated texts. Interrupted writes are rolled back.

    Raises:
        CompileError: if it may not be written.
    """
    with _reported(out):
        recover(Path(os.path.realpath(out)))
    if not os.path.lexists(out):
        return
    if not out.is_dir():
        raise CompileError(
            f"cannot write to '{out}': there is a file of that name",
            remedy="give a folder with -o",
        )
    if force:
        return
    with _reported(out):
        present = [name for name in os.listdir(out) if not name.startswith(PREFIX)]
    manifest = read_manifest(out)
    if manifest is None:
        if present:
            raise CompileError(
                f"'{out}' exists and ttcodegen did not write it",
                remedy="give another folder with -o, or --force to write into this one",
            )
        return
    edited = edited_files(out)
    if edited and (keep_edits == "fail" or read_pristine(out) is None):
        listed = ", ".join(edited[:5]) + (", ..." if len(edited) > 5 else "")
        raise CompileError(
            f"files of '{out}' were edited since ttcodegen wrote them: {listed}",
            remedy="give another folder with -o, or --force to overwrite them",
        )


def write_project(
    module: ModuleDescription,
    out: Path,
    files: Mapping[str, str | bytes],
    *,
    force: bool = False,
    keep_edits: KeepEdits = "merge",
) -> list[Conflict]:
    """Writes a project with its manifest, and merges edits of existing files into it.

    Files of `out` that no manifest lists (a build folder, user weights) stay. Unchanged files keep
    their times, so that builds are incremental.

    Args:
        module: the module, with the arrays of its data folder.
        out: the project's folder.
        files: texts and bytes by path in the project.
        force: write into a folder that ttcodegen did not write, and overwrite edits.
        keep_edits: policy for edits otherwise.

    Returns:
        The files whose edits could not be merged; conflict markers show the places.

    Raises:
        CompileError: if the folder may not be written, holds the project of another model, or
            cannot be written. It is then unchanged.
    """
    with locked_project(out) as lock:
        refuse_unrelated_folder(out, force=force, keep_edits=keep_edits)
        if not force:
            _refuse_other_model(out, module.name)
        return _write(module, lock, files, force)


def _write(
    module: ModuleDescription, lock: ProjectLock, files: Mapping[str, str | bytes], force: bool
) -> list[Conflict]:
    out = lock.out
    with _reported(out), _created_parents(out):
        # Next to the place of the files: only there is renaming them a matter of one moment.
        parent = out if out.is_dir() else out.parent
        with staging(parent) as place:
            project = place.project
            hashes = _write_all(project, module, files)
            paths = [*sorted(hashes), MANIFEST]
            merged = MergedFiles()
            if parent == out:
                if not force:
                    merged = merge_edits(out, files, hashes)
                for path, content in merged.contents.items():
                    project.joinpath(path).write_bytes(content)
                _merge(project, place.replaced, out, paths, merged.kept)
                place.commit()
            else:
                lock.follow(project)
    return merged.conflicts


def _refuse_other_model(out: Path, name: str) -> None:
    """Raises CompileError if the folder holds the project of another model."""
    manifest = read_manifest(out)
    if manifest is not None and manifest.get("module") != name:
        raise CompileError(
            f"'{out}' holds the project of '{manifest.get('module')}', not of '{name}'",
            remedy=f"give another folder with -o, --name {manifest.get('module')} if it is the "
            "same model, or --force to replace it",
        )


@contextmanager
def _reported(out: Path) -> Generator[None]:
    """Converts file system errors to CompileErrors."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise CompileError(
            f"cannot write '{out}': {reason}",
            remedy="nothing was changed; give a folder that can be written with -o",
        ) from None


@contextmanager
def _created_parents(out: Path) -> Generator[None]:
    """Creates the parent folders of `out`, and removes them if the write fails."""
    missing: list[Path] = []
    folder = out.parent
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    created: list[Path] = []
    try:
        for folder in reversed(missing):
            folder.mkdir()
            created.append(folder)
        yield
    except BaseException:
        for folder in reversed(created):
            try:
                folder.rmdir()
            except OSError:
                break
        raise


def _write_all(
    project: Path, module: ModuleDescription, files: Mapping[str, str | bytes]
) -> dict[str, str]:
    """Writes all files of a project; returns the hashes of all but the manifest by path."""
    hashes: dict[str, str] = {}
    project.mkdir()
    for path, content in [*files.items(), (PRISTINE, pristine_archive(files))]:
        data = content.encode("utf-8", "replace") if isinstance(content, str) else content
        target = project / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        hashes[path] = hashlib.sha256(data).hexdigest()
    project.joinpath("data").mkdir(exist_ok=True)
    state = [DataFile(each.file, each.array) for each in module.state if each.file is not None]
    hashes.update(_write_data(project, [*module.data, *module.weights, *state]))
    project.joinpath(MANIFEST).write_text(manifest_text(module, hashes), "utf-8")
    return hashes


def _write_data(project: Path, data: Sequence[DataFile]) -> Iterator[tuple[str, str]]:
    for file in data:
        path = f"data/{file.name}.npy"
        target = project / path
        if target.exists():
            raise ValueError(f"two arrays are called {file.name}")
        save_array(target, file.array)
        yield path, file_hash(target)


def save_array(path: Path, array: object) -> None:
    """Writes a .npy file; bfloat16, which the format lacks, as float32."""
    import numpy as np

    values = np.asarray(array)
    if values.dtype.name == "bfloat16":
        values = values.astype(np.float32)
    with path.open("wb") as file:
        np.save(file, values, allow_pickle=False)


def _merge(
    project: Path, replaced: Path, out: Path, paths: Sequence[str], kept: Collection[str]
) -> None:
    """Moves the files of `project` into `out`.

    Replaced files, and stale files not in `kept`, move to `replaced`.

    Raises:
        OSError: if a move fails, after rolling back.
        CompileError: if a folder on the way to one of them is a link.
    """
    manifest = read_manifest(out)
    stale = set(manifest_hashes(manifest)) if manifest is not None else set[str]()
    stale = (stale | {CHECK_REPORT}) - set(paths) - set(kept)
    moves: list[tuple[Path, Path]] = []
    created: list[Path] = []

    for path in (*stale, *paths):
        refuse_link_on_way(out, path)

    def move(source: Path, target: Path) -> None:
        for folder in reversed(target.parents):
            if not folder.exists():
                folder.mkdir()
                created.append(folder)
        source.rename(target)
        moves.append((source, target))

    try:
        for path in sorted(stale):
            if out.joinpath(path).is_file():
                move(out / path, replaced / path)
        for path in paths:
            target = out / path
            if _same_content(project / path, target):
                continue
            if os.path.lexists(target):
                move(target, replaced / path)
            move(project / path, target)
        if not out.joinpath("data").exists():
            move(project / "data", out / "data")
    except BaseException:
        for source, target in reversed(moves):
            target.rename(source)
        for folder in reversed(created):
            folder.rmdir()
        raise


def _same_content(new: Path, old: Path) -> bool:
    try:
        if old.is_symlink() or not old.is_file() or old.stat().st_size != new.stat().st_size:
            return False
        with new.open("rb") as new_file, old.open("rb") as old_file:
            while chunk := new_file.read(1 << 20):
                if chunk != old_file.read(1 << 20):
                    return False
    except OSError:
        return False
    return True
