"""Long-running requests on models, as pure functions of a path and options.

A request is a picklable value and its result JSON text, so that a worker process can compute it
(`workers.py`) and the result can be kept by content (`results.py`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ttcodegen.compilation import CompileOptions
from ttcodegen.explorer.graph import divide_large_layers, to_json
from ttcodegen.explorer.models import Model, code_of, is_flatbuffer, model_graphs, open_model
from ttcodegen.explorer.stages import graph_of_stage
from ttcodegen.foundation.diagnostics import CompileError, Source


@dataclass(frozen=True)
class Request:
    """Request on one model.

    Attributes:
        kind: a key of `KINDS`.
        path: the model: a module, a flatbuffer or a project's folder.
        options: compile options.
        elements: limit on the listed elements of a constant.
        stages: whether to add graphs of a compile's stages; None for small models only.
        names: an op and its function, two graphs, or stages, as the kind requires.
    """

    kind: str
    path: Path
    options: CompileOptions
    elements: int = 16
    stages: bool | None = None
    names: tuple[str, ...] = ()

    def digest(self) -> str | None:
        """Cache key of the result, by the model's content and all parameters.

        Returns:
            None for a project's folder, which has many files.

        Raises:
            CompileError: if the file cannot be read.
        """
        if self.path.is_dir():
            return None
        found = hashlib.sha256()
        try:
            with self.path.open("rb") as file:
                while block := file.read(1 << 20):
                    found.update(block)
        except OSError as error:
            raise CompileError(f"cannot read '{self.path}': {error.strerror}") from None
        found.update(repr(self).encode("utf-8", "replace"))
        return found.hexdigest()


def perform(request: Request) -> bytes:
    """Computes a request.

    Returns:
        JSON list for the answer's `graphs`.

    Raises:
        CompileError: with locations in the model's text, if it is invalid.
    """
    try:
        found = KINDS[request.kind](request)
    except CompileError as error:
        raise _located(error, request.path) from None
    text = json.dumps(to_json(found), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "replace")


def _opened(request: Request) -> Model:
    model = open_model(
        request.path, request.options, elements=request.elements, stages=request.stages
    )
    for graph in model.graphs:
        divide_large_layers(graph)
    return model


def _convert(request: Request) -> list[Any]:
    return list(_opened(request).graphs)


def _synchronisation(request: Request) -> list[Any]:
    known = _opened(request).synchronisation
    for side, name in zip(("left", "right"), request.names, strict=True):
        if name not in known:
            raise CompileError(
                f"the setting '{side}' names no graph of '{request.path.name}'",
                remedy="it is the id of a graph that 'convert' gave",
            )
    left, right = request.names
    return [known.mapping(left, right)]


def _graphs_of_stages(request: Request) -> list[Any]:
    graphs = model_graphs(request.path, request.options, elements=0, stages=True)
    wrong = graphs[0].described.get("compile_error")
    if wrong is not None:
        raise CompileError(wrong.removeprefix("error: "))
    return [graph_of_stage(graphs, stage) for stage in request.names]


def _choices(request: Request) -> list[Any]:
    # The optimizer is needed by these two requests only.
    from ttcodegen.explorer.choices import choices_of

    node, function = request.names
    return [choices_of(_module(request.path), request.options, node, function).to_json()]


def _decisions(request: Request) -> list[Any]:
    from ttcodegen.explorer.choices import decisions_of

    return decisions_of(_module(request.path), request.options)


def _code(request: Request) -> list[Any]:
    code = code_of(request.path, request.options)
    lines: dict[str, list[dict[str, Any]]] = {}
    edited: dict[str, list[dict[str, Any]]] = {}
    changed = frozenset(code.changed)
    for (function, node), places in code.lines.items():
        said = {"function": function, "node": node}
        for each in places:
            lines.setdefault(each.path, []).append({**said, "first": each.first, "last": each.last})
        gain = code.gains.get((function, node))
        if (function, node) in changed or gain is not None:
            row = {**said, "edit": code.words.get((function, node), "")}
            if gain is not None:
                row |= {
                    "op": gain.op,
                    "before_us": round(gain.before * 1e6, 3),
                    "estimated_us": round(gain.now * 1e6, 3),
                }
            for path in dict.fromkeys(each.path for each in places):
                edited.setdefault(path, []).append(row)
    return [
        {
            "path": name,
            "text": text,
            "lines": lines.get(name, []),
            "changed": code.written.get(name, []),
            "edited": edited.get(name, []),
        }
        for name, text in code.files.items()
    ]


KINDS: Mapping[str, Callable[[Request], list[Any]]] = {
    "convert": _convert,
    "synchronisation": _synchronisation,
    "stages": _graphs_of_stages,
    "choices": _choices,
    "decisions": _decisions,
    "code": _code,
}
"""Functions that compute each kind of request."""


def _module(path: Path) -> Source:
    """Text of a module; raises CompileError for compiled files."""
    if path.is_dir() or is_flatbuffer(path):
        raise CompileError(f"'{path.name}' was compiled already", remedy="give the module")
    return Source.read(str(path))


def _located(error: CompileError, path: Path) -> CompileError:
    """Adds locations in the module's text to an error."""
    if path.is_dir() or all(diagnostic.place is None for diagnostic in error.diagnostics):
        return error
    return CompileError(error.render(Source.read(str(path))).removeprefix("error: "))
