"""Places of a flatbuffer's ops in the C++ of the project that it belongs to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from xdsl.dialects.func import FuncOp

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.flatbuffer.modules import module_of
from ttcodegen.optimizer.overrides.overrides import CallNames
from ttcodegen.project.code_lines import CodeLines, Edits, Node, edited
from ttcodegen.project.edits import read_lines, read_pristine
from ttcodegen.project.manifest import read_manifest
from ttcodegen.runtime.executable import FlatbufferExecutable, TTNNExecutable
from ttcodegen.transforms.rewriting import body_of

_ASSIGNMENT = re.compile(r"\s*(?:(?:const\s+)?[\w:]+&?\s+)?(\w+)\s*=(?!=)")


class OpPlaces:
    """The names of the ops of a flatbuffer, those of variables in the C++, and the lines of these
    as the project is now. A flatbuffer without a project has names only; what a program of kernels
    does is in no line of its own."""

    def __init__(self, flatbuffer: FlatbufferExecutable | None) -> None:
        self._names: dict[tuple[str, int], str] = {}
        self._lines: Mapping[Node, CodeLines] = {}
        self._variables: Mapping[Node, str] = {}
        if not isinstance(flatbuffer, TTNNExecutable):
            return
        for function in module_of(flatbuffer.binary).walk():
            if isinstance(function, FuncOp):
                self._collect(function)
        self._lines, self._variables = _lines_of_project(flatbuffer.path.absolute().parent)

    def _collect(self, function: FuncOp) -> None:
        names = CallNames(function)
        for index, op in enumerate(body_of(function).ops):
            if isinstance(op, CatalogueOp) and op.results and op in names:
                self._names[function.sym_name.data, index] = names[op]

    def name(self, program: str, index: int | None) -> str | None:
        """The name of an op by its index in a program; None if it has none."""
        return None if index is None else self._names.get((program, index))

    def variable(self, program: str, index: int | None) -> str | None:
        """The variable that the C++ assigns the result of an op to; where there is none, the name
        of the op."""
        name = self.name(program, index)
        return None if name is None else self._variables.get((program, name), name)

    def line(self, program: str, index: int | None) -> str | None:
        """The line of the call, as `src/model.cpp:45`; None if it is not known, or gone."""
        name = self.name(program, index)
        found = None if name is None else self._lines.get((program, name))
        return None if found is None else f"{found.path}:{found.first}"


def _lines_of_project(folder: Path) -> tuple[Mapping[Node, CodeLines], Mapping[Node, str]]:
    """The line of each op of a project as its files are now, and the variable that is assigned
    there; none if the folder is no project."""
    before = read_pristine(folder) if read_manifest(folder) is not None else None
    if before is None:
        return {}, {}
    lines = read_lines(folder)
    texts: dict[str, str] = {}
    for path in dict.fromkeys(each.path for each in lines):
        try:
            texts[path] = (folder / path).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
    edits = {path: Edits(before[path], text) for path, text in texts.items() if path in before}
    rows = {path: text.split("\n") for path, text in texts.items()}
    found = {node: _own(node[1], places, rows) for node, places in edited(lines, edits)[0].items()}
    assigned = {
        node: _ASSIGNMENT.match(rows[place.path][place.first - 1]) for node, place in found.items()
    }
    return found, {node: match[1] for node, match in assigned.items() if match is not None}


def _own(name: str, places: Sequence[CodeLines], rows: Mapping[str, Sequence[str]]) -> CodeLines:
    """The lines that call an op, of all that belong to it: those with its name, or the last ones.
    The others are those of functions of the support library that several ops share."""
    variable, _, _ = name.partition("#")
    for place in places:
        if any(variable in row for row in rows[place.path][place.first - 1 : place.last]):
            return place
    # What a function returns is no call of the op, unless it is all that there is of it.
    calls = [p for p in places if not rows[p.path][p.first - 1].lstrip().startswith("return ")]
    return (calls or places)[-1]
