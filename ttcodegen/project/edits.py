"""What a person changed in a project, and how it comes together with what is generated anew."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.project.manifest import manifest_hashes, read_manifest
from ttcodegen.project.pristine import PRISTINE, read_pristine

_MARKER = "<<<<<<< "
_LABELS = ("edited", "generated before", "generated now")
_MOST_CONFLICTS = 127
"""The exit status of `git merge-file` is the number of conflicts up to this; more is a failure."""


@dataclass(frozen=True)
class Conflict:
    """A file whose edits and whose new text could not be brought together."""

    path: str
    reason: str
    """What happened to the file."""


@dataclass
class MergedFiles:
    """What a project holds after its edits were merged with what is generated now."""

    contents: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Files that are not what is generated now, by path."""
    kept: set[str] = field(default_factory=set[str])
    """Files that are no longer generated and stay because they were edited."""
    conflicts: list[Conflict] = field(default_factory=list[Conflict])


def edited_files(out: Path) -> list[str]:
    """The files of a project that differ from what was generated; deleted ones do not count."""
    manifest = read_manifest(out)
    if manifest is None:
        return []
    edited: list[str] = []
    for path, sha256 in manifest_hashes(manifest).items():
        file = out / path
        try:
            if file.is_file() and file_hash(file) != sha256:
                edited.append(path)
        except OSError:
            edited.append(path)
    return edited


def file_hash(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def merge_edits(
    out: Path, generated: Mapping[str, str | bytes], data: Mapping[str, str]
) -> MergedFiles:
    """Merges the edits of a project with what is generated now; changes nothing.

    Args:
        out: the project.
        generated: the new files by path.
        data: the hashes of the new arrays by path.

    Raises:
        CompileError: if texts have to be merged and git is missing.
    """
    before = read_pristine(out) or {}
    hashes = manifest_hashes(read_manifest(out) or {})
    merged = MergedFiles()
    for path in edited_files(out):
        if path == PRISTINE:
            continue
        edited = out.joinpath(path).read_bytes()
        new = generated.get(path)
        new_hash = data.get(path) if new is None else _hash(new)
        if new_hash is None:
            merged.kept.add(path)
            merged.conflicts.append(Conflict(path, "is no longer generated; the edited file stays"))
        elif new_hash == hashes[path]:
            merged.contents[path] = edited
            if _MARKER.encode() in edited and path in before and _MARKER not in before[path]:
                merged.conflicts.append(Conflict(path, "still has markers of conflicts"))
        elif hashlib.sha256(edited).hexdigest() != new_hash:
            _merge_file(merged, path, edited, before.get(path), new)
            if isinstance(new, str) and path in before:
                _mark_lost_ops(merged, out, path, before[path], edited, new)
    return merged


def _mark_lost_ops(
    merged: MergedFiles, out: Path, path: str, before: str, edited: bytes, new: str
) -> None:
    """Adds a conflict for each op that was edited and that the model has no longer, or has with
    other operands: lines that merge cleanly would leave the edit to a program that it is not of."""
    from ttcodegen.project.edited_ops import lost_ops
    from ttcodegen.project.op_lines import read_lines

    ops = [each for each in read_lines(out) if each.path == path]
    names = lost_ops(ops, before, edited.decode("utf-8", "replace"), new)
    for name in names:
        reason = f"edits the op '{name}', which the model no longer has in that form"
        merged.conflicts.append(Conflict(path, reason))
        merged.contents[path] += _lost_op_text(name).encode()


def _lost_op_text(name: str) -> str:
    """What stops a build until the edit was looked at."""
    shown = " ".join(name.split())
    return (
        f"{_MARKER}{_LABELS[0]}\n// The op '{shown}' was edited here.\n=======\n"
        f"// The model no longer has it in that form.\n>>>>>>> {_LABELS[2]}\n"
    )


def _merge_file(
    merged: MergedFiles, path: str, edited: bytes, before: str | None, new: str | bytes | None
) -> None:
    if before is None or not isinstance(new, str):
        merged.contents[path] = edited
        merged.conflicts.append(Conflict(path, "is generated differently; the edited file stays"))
        return
    text, count = _merged_text(edited, before.encode(), new.encode("utf-8", "replace"))
    merged.contents[path] = text
    if count:
        plural = "s" if count > 1 else ""
        merged.conflicts.append(Conflict(path, f"has {count} conflict{plural}"))


def _merged_text(edited: bytes, before: bytes, new: bytes) -> tuple[bytes, int]:
    """The merge of three texts as git makes it, and the number of its conflicts."""
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory(prefix="ttcodegen-merge-") as folder:
        names = ("edited", "before", "new")
        for name, text in zip(names, (edited, before, new), strict=True):
            Path(folder, name).write_bytes(text)
        labels = [word for label in _LABELS for word in ("-L", label)]
        # Configuration of the user's or of a repository around must not change what is written.
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        command = ["git", "merge-file", "-p", "--diff3", *labels, *names]
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, check=False
            )
        except OSError as error:
            raise CompileError(
                f"cannot merge edits: git does not run: {error.strerror}",
                remedy="install git, or give --force to overwrite the edits",
            ) from None
    if not 0 <= done.returncode <= _MOST_CONFLICTS:
        raise CompileError(
            f"git could not merge edits: {done.stderr.decode('utf-8', 'replace').strip()}",
            remedy="give another folder with -o, or --force to overwrite the edits",
        )
    return done.stdout, done.returncode


def _hash(content: str | bytes) -> str:
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    return hashlib.sha256(data).hexdigest()


def edits_patch(out: Path) -> Iterator[str]:
    """The edits of a project as lines of a patch that `git apply` takes.

    Deleted files are part of it; files that are no text are only named.

    Raises:
        CompileError: if ttcodegen did not write the folder, or not with its pristine texts.
    """
    manifest = read_manifest(out)
    before = read_pristine(out)
    if manifest is None or before is None:
        raise CompileError(
            f"'{out}' has no texts that edits could be compared with",
            remedy="give the folder of a project that this version of ttcodegen wrote",
        )
    for path in sorted(manifest_hashes(manifest)):
        file = out / path
        if path not in before:
            continue
        if not file.exists():
            yield f"diff --git a/{path} b/{path}\n"
            yield "deleted file mode 100644\n"
            yield from _unified(path, before[path], "", deleted=True)
            continue
        edited = file.read_bytes().decode("utf-8", "replace")
        if edited != before[path]:
            yield f"diff --git a/{path} b/{path}\n"
            yield from _unified(path, before[path], edited)
    for path in edited_files(out):
        if path not in before and path != PRISTINE:
            yield f"# {path} was edited as well; it is no text\n"


def _unified(path: str, before: str, after: str, *, deleted: bool = False) -> Iterator[str]:
    import difflib

    target = "/dev/null" if deleted else f"b/{path}"
    # Lines end in line feeds only: that is what git counts.
    old, new = _lines(before), _lines(after)
    for line in difflib.unified_diff(old, new, f"a/{path}", target):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    ended = [f"{line}\n" for line in lines[:-1]]
    return [*ended, lines[-1]] if lines[-1] else ended
