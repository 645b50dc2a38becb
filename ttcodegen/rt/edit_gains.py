"""Gains of tuning edits: calls before and after, and positions of ops in a project's C++."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from xdsl.dialects.func import FuncOp

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.flatbuffer.modules import module_of
from ttcodegen.flatbuffer.program import Binary
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import aligned
from ttcodegen.optimizer.call import LibraryCall
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.optimizer.overrides.overrides import CallNames
from ttcodegen.project.building import BUILD_FOLDER, build_project
from ttcodegen.project.edits import edited_files, read_lines, read_pristine, tuned_files
from ttcodegen.project.manifest import MANIFEST, CodeLines, Edits, Node, edited, read_manifest
from ttcodegen.project.staging import refuse_link
from ttcodegen.project.toolchain import find_toolchain
from ttcodegen.project.tuning.edited_calls import EditedCalls, with_moved_lines
from ttcodegen.rt.op_times import OpTimes
from ttcodegen.runtime.executable import FlatbufferExecutable, TTNNExecutable
from ttcodegen.transforms.rewriting import body_of

_ASSIGNMENT = re.compile(r"\s*(?:(?:const\s+)?[\w:]+&?\s+)?(\w+)\s*=(?!=)")
_CALLEE = re.compile(r"\bttnn(?:::\w+)+(?=\()")


@dataclass(frozen=True)
class _ProjectCode:
    """Positions in a project's current C++."""

    lines: Mapping[Node, CodeLines] = field(default_factory=dict[Node, CodeLines])
    variables: Mapping[Node, str] = field(default_factory=dict[Node, str])
    """Variables of the ops' results."""
    added: Mapping[str, tuple[str | None, str]] = field(
        default_factory=dict[str, tuple[str | None, str]]
    )
    """Variable and line of the first call that edits wrote, by callee."""


class OpPlaces:
    """Names of a flatbuffer's ops, with their variables and current lines in the project's C++.

    Without a project there are only names; ops of kernel programs have no lines.
    """

    def __init__(self, flatbuffer: FlatbufferExecutable | None) -> None:
        self._names: dict[tuple[str, int], str] = {}
        self._code = _ProjectCode()
        if not isinstance(flatbuffer, TTNNExecutable):
            return
        for function in module_of(flatbuffer.binary).walk():
            if isinstance(function, FuncOp):
                self._collect(function)
        self._code = _code_of_project(flatbuffer.path.absolute().parent)

    def _collect(self, function: FuncOp) -> None:
        names = CallNames(function)
        for index, op in enumerate(body_of(function).ops):
            if isinstance(op, CatalogueOp) and op.results and op in names:
                self._names[function.sym_name.data, index] = names[op]

    def name(self, program: str, index: int | None) -> str | None:
        """Name of an op by its index in a program; None if it has none."""
        return None if index is None else self._names.get((program, index))

    def variable(self, program: str, index: int | None) -> str | None:
        """C++ variable of an op's result, else the op's name."""
        name = self.name(program, index)
        return None if name is None else self._code.variables.get((program, name), name)

    def line(self, program: str, index: int | None) -> str | None:
        """Line of the call, as `src/model.cpp:45`; None if unknown or removed."""
        name = self.name(program, index)
        found = None if name is None else self._code.lines.get((program, name))
        return None if found is None else f"{found.path}:{found.first}"

    def added_call(self, callee: str) -> tuple[str | None, str | None]:
        """Variable and line of the first call of a function that edits wrote; None if unknown."""
        return self._code.added.get(callee, (None, None))


def _code_of_project(folder: Path) -> _ProjectCode:
    """Positions in a project's C++; empty if the folder is no project."""
    before = read_pristine(folder) if read_manifest(folder) is not None else None
    if before is None:
        return _ProjectCode()
    lines = read_lines(folder)
    texts: dict[str, str] = {}
    for path in dict.fromkeys(each.path for each in lines):
        try:
            texts[path] = (folder / path).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
    edits = {path: Edits(before[path], text) for path, text in texts.items() if path in before}
    rows = {path: text.split("\n") for path, text in texts.items()}
    known = with_moved_lines(edited(lines, edits)[0], tuned_files(folder))
    found = {node: _call_lines(node[1], places, rows) for node, places in known.items()}
    assigned = {
        node: _ASSIGNMENT.match(rows[place.path][place.first - 1]) for node, place in found.items()
    }
    variables = {node: match[1] for node, match in assigned.items() if match is not None}
    return _ProjectCode(found, variables, _added_calls(before, rows))


def _added_calls(
    before: Mapping[str, str], rows: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str | None, str]]:
    """Variable and line of the first call of each function in lines that were not generated."""
    added: dict[str, tuple[str | None, str]] = {}
    for path, lines in rows.items():
        generated = set(before.get(path, "").split("\n"))
        for at, line in enumerate(lines):
            if line in generated:
                continue
            # A call that does not fit beside its variable is on the next line.
            variable = _ASSIGNMENT.match(line) or _ASSIGNMENT.match(lines[at - 1])
            for callee in _CALLEE.findall(line):
                name = None if variable is None else variable[1]
                added.setdefault(callee, (name, f"{path}:{at + 1}"))
    return added


def _call_lines(
    name: str, places: Sequence[CodeLines], rows: Mapping[str, Sequence[str]]
) -> CodeLines:
    """Line range that calls an op: the one with its variable, else the last one.

    Others are in shared functions of the support library.
    """
    variable, _, _ = name.partition("#")
    for place in places:
        if any(variable in row for row in rows[place.path][place.first - 1 : place.last]):
            return place
    # Prefer calls to return statements.
    calls = [p for p in places if not rows[p.path][p.first - 1].lstrip().startswith("return ")]
    return (calls or places)[-1]


_GENERATED = "generated"
"""Folder, in a project's build folder, of the project as generated."""
_SHOWN = 10
"""Limit on the slowest ops in a table; edited ones are always listed."""
_WIDEST = 80
"""Maximum width of a table cell on the terminal."""

Row = dict[str, Any]


def is_edited(folder: Path) -> bool:
    """Returns whether the C++ of a project was edited."""
    return any(path.startswith("src/") for path in edited_files(folder))


def build_as_generated(folder: Path) -> Path:
    """Builds the shared object of a project without its edits, in its build folder.

    Raises:
        BuildError: if the build fails.
        CompileError: if the project has no archive of generated texts.
    """
    texts = read_pristine(folder)
    manifest = read_manifest(folder)
    if texts is None or manifest is None:
        raise CompileError(f"'{folder}' does not have its C++ as it was generated")
    for path in (BUILD_FOLDER, f"{BUILD_FOLDER}/{_GENERATED}"):
        refuse_link(folder, path)
    copy = folder / BUILD_FOLDER / _GENERATED
    try:
        texts = {**texts, MANIFEST: folder.joinpath(MANIFEST).read_text("utf-8")}
        for path, text in texts.items():
            parts = PurePosixPath(path)
            if parts.is_absolute() or ".." in parts.parts:
                continue
            refuse_link(copy, path)
            file = copy / path
            # Keep unchanged files for incremental builds.
            if not file.is_file() or file.read_bytes() != text.encode():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, "utf-8", newline="")
    except OSError as error:
        raise CompileError(f"cannot write '{copy}': {error.strerror or error}") from None
    library = build_project(copy, str(manifest.get("module")), find_toolchain(), "so").library
    assert library is not None
    return library


class OpEdits:
    """Edits of a project by the ops of its flatbuffer, and its current calls.

    Args:
        flatbuffer: the project's.
        model: cost model of the card.
        places: names of its ops.
    """

    def __init__(self, flatbuffer: TTNNExecutable, model: CostModel, places: OpPlaces) -> None:
        binary: Binary = flatbuffer.binary
        files = tuned_files(flatbuffer.path.absolute().parent)
        edited = EditedCalls(binary, files, model.grid)
        self.words: dict[tuple[str, int], str] = {}
        self.calls: dict[tuple[str, int], tuple[LibraryCall, ...]] = {}
        """Calls of ops that differ from the generated ones: several in place of others."""
        self.gone: set[tuple[str, int]] = set()
        for function in flatbuffer.functions:
            for index in range(len(function.operations)):
                name = places.name(function.name, index)
                if name is None:
                    continue
                node, key = (function.name, name), (function.name, index)
                if node in edited.words:
                    self.words[key] = edited.words[node]
                if node in edited.gone:
                    self.gone.add(key)
                elif node in edited.now and (
                    node in edited.inner or edited.now[node] != edited.generated[node]
                ):
                    self.calls[key] = (*edited.inner.get(node, ()), edited.now[node])

    def words_by_name(self, program: str, places: OpPlaces) -> dict[str, str]:
        """Descriptions of a program's edits, by op name."""
        names = {key: places.name(*key) for key in self.words if key[0] == program}
        return {name: self.words[key] for key, name in names.items() if name is not None}


def with_gains(
    rows: Sequence[Row], before: Sequence[OpTimes], edits: OpEdits, places: OpPlaces, runs: int
) -> list[Row]:
    """Rows of an edited project with the times before the edits.

    Includes rows of fused and removed calls.

    Args:
        rows: rows of the current project.
        before: measurements of the generated project.
        edits: the edits by op.
        places: names of the ops.
        runs: number of runs.
    """
    known = {_key(each): each for each in before}
    found: list[Row] = []
    for row in rows:
        program: str = row["program"]
        index: int | None = row["index"]
        was = known.pop((program, row["op"] if index is None else index), None)
        words = None if index is None else edits.words.get((program, index))
        if was is None and index is None:
            words = "added"
        found.append({**row, **_before(was, runs), "edit": words})
    for (program, _), was in known.items():
        index = was.index
        row = dict.fromkeys(rows[0]) if rows else {}
        words = None if index is None else edits.words.get((program, index))
        found.append(
            {
                **row,
                "program": program,
                "index": index,
                "op": was.op,
                "name": places.name(program, index),
                "location": was.location,
                "calls": 0,
                "time_us": 0.0,
                "time_share": 0.0,
                "bytes": 0,
                "flops": 0,
                "card_us": 0.0,
                "estimated_us": None if was.estimate is None else 0.0,
                **_before(was, runs),
                "edit": words or "removed",
            }
        )
    return found


def _key(times: OpTimes) -> tuple[str, int | str]:
    return times.program, times.op if times.index is None else times.index


def _before(was: OpTimes | None, runs: int) -> Row:
    if was is None:
        return {"before_us": 0.0, "estimated_before_us": None}
    calls = len(was.spans) / runs
    estimate = None if was.estimate is None else was.estimate.seconds * calls
    return {
        "before_us": round(was.seconds / runs * 1e6, 3),
        "estimated_before_us": None if estimate is None else round(estimate * 1e6, 3),
    }


def joined_rows(first: Sequence[Row], second: Sequence[Row], words: Mapping[str, str]) -> list[Row]:
    """Joins rows of two programs by op name; ops only of the first come last.

    Args:
        first: rows of the first program.
        second: rows of the second.
        words: descriptions of the second's edits, by op name.
    """
    known = {_name(row): row for row in first}
    found: list[Row] = []
    for row in second:
        was = known.pop(_name(row), None)
        before = _times_as_before(was)
        # An edit of either side explains the difference.
        edit = row.get("edit") or (was or {}).get("edit")
        found.append({**row, **before, "edit": edit or ("added" if was is None else None)})
    for was in known.values():
        time = None if was["time_us"] is None else 0.0
        edit = words.get(was["name"], "removed")
        gone = {"time_us": time, "estimated_us": 0.0, "calls": 0, "line": None}
        found.append({**was, **gone, **_times_as_before(was), "edit": edit})
    return found


def _name(row: Row) -> tuple[object, ...]:
    return row["program"], row["name"] or row["op"], row["index"] is None


def _times_as_before(row: Row | None) -> Row:
    if row is None:
        return {"before_us": 0.0, "estimated_before_us": None}
    return {"before_us": row["time_us"], "estimated_before_us": row["estimated_us"]}


_HEADINGS: Mapping[str, str] = {
    "name": "name",
    "op": "op",
    "line": "line",
    "before_us": "before us",
    "time_us": "us",
    "estimated_before_us": "card before",
    "estimated_us": "card",
    "edit": "edit",
}


def table_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Table of the slowest and all edited ops in program order, with totals."""
    columns = [
        name
        for name in _HEADINGS
        if any(row.get(name) is not None for row in rows) or name in ("name", "op")
    ]
    longest = sorted(range(len(rows)), key=lambda at: -_longest_time(rows[at]))[:_SHOWN]
    shown = [row for at, row in enumerate(rows) if at in longest or row.get("edit")]
    total: Row = {"name": "total", "op": f"{len(rows)} rows"}
    for name in columns:
        if name.endswith("_us"):
            total[name] = sum(row[name] or 0.0 for row in rows)
    cells = [[_HEADINGS[name] for name in columns]]
    cells += [[_cell(row.get(name)) for name in columns] for row in (*shown, total)]
    return iter(aligned(cells))


def _longest_time(row: Row) -> float:
    return max(row["time_us"] or 0.0, row.get("before_us") or 0.0)


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = f"{value:.1f}" if isinstance(value, float) else str(value)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."
