"""User edits of a project, and their merge with newly generated files."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ttcodegen.emission.manifest_entries import LoweredOp, OpLines
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.project.manifest import manifest_hashes, read_manifest, regular_bytes
from ttcodegen.project.staging import locked_project, replace_files
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE

if TYPE_CHECKING:
    from ttcodegen.project.tuning.application import AppliedDecisions
    from ttcodegen.project.tuning.edited_files import EditedFile
    from ttcodegen.project.tuning.search import Judge, Tuning

# Ops that a person edited and that are no longer what they were: a merge of lines alone would
# keep an edit that belongs to an op which the model has lost.


def lost_ops(ops: Iterable[OpLines], before: str, edited: str, new: str) -> list[str]:
    """Names of edited ops that are no longer generated in the same form.

    Args:
        ops: the ops of the file with their lines in `before`.
        before: the file as last generated.
        edited: the user's version.
        new: the file as generated now.
    """
    lines = before.split("\n")
    changed, inserted = _edited_lines(lines, edited.split("\n"))
    generated = _without_spaces(new)
    lost: dict[str, None] = {}
    for op in ops:
        is_edited = any(number in changed for number in range(op.first, op.last + 1)) or any(
            number in inserted for number in range(op.first, op.last)
        )
        if is_edited and _without_spaces("".join(lines[op.first - 1 : op.last])) not in generated:
            lost[op.op.name] = None
    return list(lost)


def _edited_lines(before: Sequence[str], edited: Sequence[str]) -> tuple[set[int], set[int]]:
    """Changed or removed lines, from 1, and lines after which others were inserted."""
    changed: set[int] = set()
    inserted: set[int] = set()
    matcher = difflib.SequenceMatcher(None, before, edited)
    for kind, first, last, _, _ in matcher.get_opcodes():
        if kind == "insert":
            inserted.add(first)
        elif kind != "equal":
            changed.update(range(first + 1, last + 1))
    return changed, inserted


def _without_spaces(text: str) -> str:
    return "".join(text.split())


# The texts of a project as they were generated, kept beside what a person makes of them.

PRISTINE = ".ttcodegen/generated.json.gz"
"""Gzipped JSON object: text of each file as generated, by path in the project."""

_GZIP = 31
"""zlib window bits of the gzip format."""


def pristine_archive(files: Mapping[str, str | bytes]) -> bytes:
    """Deterministic archive of the texts among `files`."""
    return packed({path: files[path] for path in sorted(files) if isinstance(files[path], str)})


def packed(content: object) -> bytes:
    """Gzipped JSON of an object."""
    packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
    return packer.compress(json.dumps(content).encode()) + packer.flush()


def unpacked(path: Path) -> object:
    """Reads an object from gzipped JSON; raises OSError, ValueError, zlib.error or
    RecursionError."""
    return json.loads(_unpacked(regular_bytes(path)))


_MOST_UNPACKED = 256 << 20
"""Limit on unpacked bytes, as a damaged file may expand to any size."""


def _unpacked(data: bytes) -> bytes:
    """Unpacks gzip data; raises ValueError or zlib.error if it is invalid."""
    unpacker = zlib.decompressobj(_GZIP)
    found = unpacker.decompress(data, _MOST_UNPACKED)
    if not unpacker.eof:
        raise ValueError("the file is cut off, or unpacks to more than it can hold")
    return found


def read_pristine(out: Path) -> dict[str, str] | None:
    """Texts by path as last generated; None if the project has no archive."""
    try:
        content = unpacked(out.joinpath(PRISTINE))
    except (OSError, ValueError, zlib.error, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    texts = cast("dict[str, object]", content)
    return {path: text for path, text in texts.items() if isinstance(text, str)}


# What a person changed in a project, and how it comes together with what is generated anew.

_MARKER = "<<<<<<< "
_LABELS = ("edited", "generated before", "generated now")
_MOST_CONFLICTS = 127
"""Largest number of conflicts in the exit status of `git merge-file`; higher statuses are
failures."""


@dataclass(frozen=True)
class Conflict:
    """File whose edits could not be merged."""

    path: str
    reason: str
    """Reason of the conflict."""


@dataclass
class MergedFiles:
    """Files of a project after the merge of edits with newly generated files."""

    contents: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Files that differ from what is generated now, by path."""
    kept: set[str] = field(default_factory=set[str])
    """Edited files that are no longer generated and stay."""
    conflicts: list[Conflict] = field(default_factory=list[Conflict])


def edited_files(out: Path) -> list[str]:
    """Files of a project that differ from what was generated, except deleted ones."""
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
    """SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def merge_edits(
    out: Path, generated: Mapping[str, str | bytes], data: Mapping[str, str]
) -> MergedFiles:
    """Merges the edits of a project with newly generated files, without writing.

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
    tuned = _tuned_again(out, before, generated)
    for path in edited_files(out):
        if path == PRISTINE:
            continue
        edited = out.joinpath(path).read_bytes()
        new = generated.get(path)
        new_hash = data.get(path) if new is None else _hash(new)
        if new_hash is None:
            merged.kept.add(path)
            merged.conflicts.append(Conflict(path, "is no longer generated; the edited file stays"))
        elif path in tuned.texts:
            _merge_tuned(merged, out, path, before[path], tuned, generated)
        elif new_hash == hashes[path]:
            merged.contents[path] = edited
            if _MARKER.encode() in edited and path in before and _MARKER not in before[path]:
                merged.conflicts.append(Conflict(path, "still has markers of conflicts"))
        elif hashlib.sha256(edited).hexdigest() != new_hash:
            _merge_file(merged, path, edited, before.get(path), new)
            if isinstance(new, str) and path in before:
                _mark_lost_ops(merged, out, path, before[path], edited, new)
    for path in tuned.texts.keys() - merged.contents.keys():
        merged.contents[path] = tuned.texts[path].encode()
    for lost in tuned.lost:
        merged.conflicts.append(Conflict(lost.path, f"was tuned: {lost}"))
        text = merged.contents.get(lost.path, tuned.texts[lost.path].encode())
        merged.contents[lost.path] = text + _lost_decision_text(str(lost)).encode()
    return merged


def _tuned_again(
    out: Path, before: Mapping[str, str], generated: Mapping[str, str | bytes]
) -> AppliedDecisions:
    """Applies the previous tuning decisions to the new files; empty if no C++ changed."""
    from ttcodegen.project.tuning.application import AppliedDecisions, apply_decisions
    from ttcodegen.project.tuning.legality import Legality

    now = {path: text for path, text in generated.items() if isinstance(text, str)}
    sources = {path for path in before.keys() | now.keys() if path.startswith("src/")}
    lines = generated.get(LINES)
    if not isinstance(lines, bytes) or all(before.get(p) == now.get(p) for p in sources):
        return AppliedDecisions()
    files = [each for each in tuned_files(out) if each.path in now]
    manifest = read_manifest(out) or {}
    programs = (text for path, text in generated.items() if path.endswith(".ttnn"))
    program = next((each for each in programs if isinstance(each, bytes)), b"")
    legality = Legality(program, manifest.get("arch", DEFAULT_ARCHITECTURE))
    return apply_decisions(files, before, read_lines(out), now, lines_in(lines), legality)


def _merge_tuned(
    merged: MergedFiles,
    out: Path,
    path: str,
    before: str,
    tuned: AppliedDecisions,
    generated: Mapping[str, str | bytes],
) -> None:
    """Merges the edits of a tuned file that are no decisions into its new text."""
    rest, new = tuned.rest.get(path, before), tuned.texts[path]
    if rest == before:
        merged.contents[path] = new.encode("utf-8", "replace")
        return
    _merge_file(merged, path, rest.encode("utf-8", "replace"), before, new)
    _mark_lost_ops(merged, out, path, before, rest.encode("utf-8", "replace"), new)


def _lost_decision_text(said: str) -> str:
    """Line that breaks the build until a lost decision is reviewed."""
    shown = " ".join(said.split())
    return (
        f"{_MARKER}{_LABELS[0]}\n// {shown}\n=======\n"
        f"// The decision is not in the program.\n>>>>>>> {_LABELS[2]}\n"
    )


def _mark_lost_ops(
    merged: MergedFiles, out: Path, path: str, before: str, edited: bytes, new: str
) -> None:
    """Adds a conflict for each edited op that is no longer generated in that form.

    A clean merge would otherwise leave the edit to a different program.
    """

    ops = [each for each in read_lines(out) if each.path == path]
    names = lost_ops(ops, before, edited.decode("utf-8", "replace"), new)
    for name in names:
        reason = f"edits the op '{name}', which the model no longer has in that form"
        merged.conflicts.append(Conflict(path, reason))
        merged.contents[path] += _lost_op_text(name).encode()


def _lost_op_text(name: str) -> str:
    """Line that breaks the build until a lost edit is reviewed."""
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
    """Three-way merge by git, and the number of conflicts."""
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory(prefix="ttcodegen-merge-") as folder:
        names = ("edited", "before", "new")
        for name, text in zip(names, (edited, before, new), strict=True):
            Path(folder, name).write_bytes(text)
        labels = [word for label in _LABELS for word in ("-L", label)]
        # The result must not depend on git configuration.
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
    """Edits of a project as a patch for `git apply`, deleted files included.

    Binary files are only named.

    Raises:
        CompileError: if the folder is no project, or has no archive of generated texts.
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


def tuned_files(out: Path) -> list[EditedFile]:
    """Edited texts of a project, with the decisions in them."""
    from ttcodegen.project.tuning.decisions import compared

    before = read_pristine(out) or {}
    texts: dict[str, str] = {}
    for path in edited_files(out):
        if path in before:
            try:
                texts[path] = out.joinpath(path).read_bytes().decode("utf-8")
            except UnicodeDecodeError:
                # Not UTF-8: merged as bytes.
                continue
    return compared(before, texts, read_lines(out))


def tune_ops(
    out: Path,
    names: Sequence[str] = (),
    *,
    budget: int | None = None,
    judge: Judge | None = None,
    measured: Mapping[str, float] | None = None,
) -> tuple[list[Tuning], list[str]]:
    """Searches the alternatives of ops of a project, and writes the fastest into its C++.

    Args:
        out: the project's folder.
        names: the ops, all if empty.
        budget: limit on alternatives after which no other op is started.
        judge: asks the library about the fastest alternatives.
        measured: measured times of calls on a card, by key.

    Returns:
        the results by op and the paths of the written files.

    Raises:
        CompileError: if the folder is no such project, or has no such op.
    """
    from ttcodegen.project.tuning.search import BUDGET, TunedProject, tune

    manifest, before = read_manifest(out), read_pristine(out)
    program = out / "model.ttnn"
    if manifest is None or before is None or not program.is_file():
        raise CompileError(
            f"'{out}' has no program whose calls could be tuned",
            remedy="give the folder of a project of --target ttnn",
        )
    with locked_project(out):
        now: dict[str, str] = {}
        for path, text in before.items():
            try:
                now[path] = (out / path).read_text("utf-8")
            except (OSError, UnicodeDecodeError):
                now[path] = text
        architecture = manifest.get("arch", DEFAULT_ARCHITECTURE)
        project = TunedProject(
            before, now, read_lines(out), program.read_bytes(), architecture, measured or {}
        )
        tunings, texts = tune(project, names, BUDGET if budget is None else budget, judge)
        replace_files(out, texts)
    return tunings, sorted(texts)


def _unified(path: str, before: str, after: str, *, deleted: bool = False) -> Iterator[str]:

    target = "/dev/null" if deleted else f"b/{path}"
    # Lines end in line feeds only: that is what git counts.
    old, new = _lines(before), _lines(after)
    for line in difflib.unified_diff(old, new, f"a/{path}", target):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    ended = [f"{line}\n" for line in lines[:-1]]
    return [*ended, lines[-1]] if lines[-1] else ended


# The lines of the ops of a model in the C++ of its project, kept apart from what a person edits.

LINES = ".ttcodegen/lines.json.gz"
"""Gzipped JSON object with the lines of ops in each file.

`ops` lists function, name and source location; `files` maps each path to triples of op index, first
and last line.
"""

_NAMESPACE_END = re.compile(r"^\}\s*//.*$")


def _significant(text: str) -> list[str]:
    """Lines normalized by removing what clang-format changes: spaces, comments, includes, string
    breaks."""
    kept: list[str] = []
    for line in text.split("\n"):
        stripped = _NAMESPACE_END.sub("}", line.strip())
        if stripped.startswith(("//", "#include")):
            stripped = ""
        kept.append("".join(stripped.replace('"', "").split()))
    return kept


def formatted_lines(
    lines: Iterable[OpLines], printed: Mapping[str, str], written: Mapping[str, object]
) -> Iterator[OpLines]:
    """Maps line ranges of ops from printed to formatted files.

    Files whose characters differ otherwise are skipped.
    """
    by_path: dict[str, list[OpLines]] = {}
    for each in lines:
        by_path.setdefault(each.path, []).append(each)
    for path, found in by_path.items():
        text = written.get(path)
        if not isinstance(text, str):
            continue
        before, after = _significant(printed[path]), _significant(text)
        if "".join(before) != "".join(after):
            continue
        starts = list(accumulate(map(len, before), initial=0))
        places = list(accumulate(map(len, after)))
        for each in found:
            start, end = starts[each.first - 1], starts[each.last]
            if end > start:
                top = bisect_right(places, start) + 1
                bottom = bisect_right(places, end - 1) + 1
                yield OpLines(each.op, path, top, bottom)


def lines_archive(lines: Iterable[OpLines]) -> bytes:
    """Deterministic archive of op lines."""
    ops: dict[LoweredOp, int] = {}
    files: dict[str, dict[tuple[int, int, int], None]] = {}
    for each in lines:
        number = ops.setdefault(each.op, len(ops))
        files.setdefault(each.path, {})[number, each.first, each.last] = None
    content = {
        "ops": [[op.function, op.name, op.offset] for op in ops],
        "files": {path: list(found) for path, found in files.items()},
    }
    return packed(content)


def read_lines(out: Path) -> list[OpLines]:
    """Lines of a project's ops as generated; empty without an archive."""
    try:
        data = regular_bytes(out.joinpath(LINES))
    except OSError:
        return []
    return lines_in(data)


def lines_in(data: bytes) -> list[OpLines]:
    """Lines in an archive; empty if it is invalid."""
    try:
        content = cast("dict[str, Any]", json.loads(_unpacked(data)))
        ops = [LoweredOp(*op) for op in cast("list[tuple[str, str, int | None]]", content["ops"])]
        files = cast("dict[str, Sequence[tuple[int, int, int]]]", content["files"])
        return [
            OpLines(ops[number], path, int(first), int(last))
            for path, rows in files.items()
            for number, first, last in rows
        ]
    except (
        AttributeError,
        LookupError,
        OSError,
        RecursionError,
        TypeError,
        ValueError,
        zlib.error,
    ):
        return []
