"""Records of what a build was made of, by content.

Ninja goes by modification times, which `cp -p`, tar, rsync or a clock that was set back make older
than the objects of other texts. The record beside the objects has the SHA-256 of each source, and
of what was built, so that content decides.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from ttcodegen.project.edits import file_hash

_RECORD = "ttcodegen-sources.json"
_FOLDERS = ("src", "include", "support")
_FILES = ("CMakeLists.txt",)


def source_hashes(out: Path) -> dict[str, str]:
    """The SHA-256 of each source of a project, by path; those that a person added are among them.

    Kernels are not: they are compiled when they run.
    """
    return {
        path.relative_to(out).as_posix(): file_hash(path)
        for path in sorted(_sources(out))
        if path.is_file()
    }


def _sources(out: Path) -> Iterator[Path]:
    yield from (out / name for name in _FILES)
    for name in _FOLDERS:
        yield from out.joinpath(name).rglob("*")


def write_record(build: Path, sources: Mapping[str, str], outputs: Mapping[str, Path]) -> None:
    """Records a finished build.

    Args:
        build: the build folder.
        sources: the hashes of the sources, taken before it began.
        outputs: the files that can have been built, by name; those that are not there are left out.

    Raises:
        OSError: if it cannot be written.
    """
    built = {
        name: [path.stat().st_size, path.stat().st_mtime_ns, file_hash(path)]
        for name, path in outputs.items()
        if path.is_file()
    }
    text = json.dumps({"sources": sources, "outputs": built}, indent=1)
    scratch = build / f"{_RECORD}.new"
    scratch.write_text(text, "utf-8")
    os.replace(scratch, build / _RECORD)


def forget_record(build: Path) -> None:
    """Removes the record: until a build ends, nothing is known of what is there."""
    build.joinpath(_RECORD).unlink(missing_ok=True)


def is_current(build: Path, library: Path, sources: Mapping[str, str]) -> bool:
    """True if a library was built of sources with these hashes, and not changed since."""
    record = _read_record(build)
    if record is None or record.get("sources") != sources:
        return False
    return library.is_file() and _is_as_recorded(library, record)


def misleads_times(out: Path, build: Path, sources: Mapping[str, str]) -> bool:
    """True if Ninja would take objects of other texts for current: a source that differs from what
    was built is no newer, or what is there was built by other means."""
    if not build.joinpath("build.ninja").is_file():
        return False
    record = _read_record(build)
    if record is None:
        return True
    before = _table(record, "sources")
    changed = {path for path, hash_ in sources.items() if before.get(path) != hash_}
    time = build.joinpath(_RECORD).stat().st_mtime_ns
    if any(out.joinpath(path).stat().st_mtime_ns <= time for path in changed):
        return True
    present = [path for name in _table(record, "outputs") if (path := build / name).is_file()]
    return any(not _is_as_recorded(path, record) for path in present)


def _is_as_recorded(path: Path, record: Mapping[str, Any]) -> bool:
    row = _table(record, "outputs").get(path.name)
    if not isinstance(row, list) or len(cast("list[object]", row)) != 3:
        return False
    size, time, digest = cast("list[object]", row)
    status = path.stat()
    return [status.st_size, status.st_mtime_ns] == [size, time] or file_hash(path) == digest


def _table(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    content: object = record.get(name)
    return cast("dict[str, Any]", content) if isinstance(content, dict) else {}


def _read_record(build: Path) -> dict[str, Any] | None:
    try:
        content: object = json.loads(build.joinpath(_RECORD).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", content) if isinstance(content, dict) else None
