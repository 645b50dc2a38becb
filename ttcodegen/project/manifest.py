"""manifest.json: contents of a project, and the lines of each op in its C++ as it is now."""

from __future__ import annotations

import difflib
import errno
import json
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from ttcodegen.emission.description import (
    FunctionDescription,
    ModuleDescription,
    StateTensor,
    TensorDescription,
)
from ttcodegen.emission.manifest_entries import OpLines
from ttcodegen.foundation.messages import printable_json
from ttcodegen.version import __version__

MANIFEST = "manifest.json"
_TOOL = "ttcodegen"


def manifest_text(module: ModuleDescription, hashes: Mapping[str, str]) -> str:
    """The text of manifest.json.

    Args:
        module: the module of the project.
        hashes: the SHA-256, in hexadecimal, of each file of the project but the manifest itself.
    """
    content = {
        "tool": _TOOL,
        "tool_version": __version__,
        "tt_metal_release": module.release,
        "target": module.target,
        "arch": module.arch,
        "module": module.name,
        "kind": module.kind,
        "input_sha256": module.input_hash,
        "functions": [_function(module, function) for function in module.functions],
        **({"pipelines": _pipelines(module)} if module.pipelines else {}),
        **({"state": [_state(each) for each in module.state]} if module.state else {}),
        **({"generation": dict(module.generation)} if module.generation else {}),
        "kernels": list(module.kernels),
        **({"programs": list(module.programs)} if module.programs else {}),
        **({"cpu_functions": list(module.cpu_functions)} if module.cpu_functions else {}),
        **({"exchanges": list(module.exchanges)} if module.exchanges else {}),
        "files": [{"path": path, "sha256": hashes[path]} for path in sorted(hashes)],
    }
    return printable_json(indented(content)) + "\n"


@cache
def _encoder(separator: str) -> json.JSONEncoder:
    return json.JSONEncoder(ensure_ascii=False, separators=(separator, ": "))


def indented(value: object, newline: str = "\n") -> str:
    """`json.dumps(value, indent=2, ensure_ascii=False)` in a fraction of the time: with an indent
    Python's own encoder is not the one in C. That one writes what holds nothing that holds more.

    Args:
        value: what JSON can say; keys are strings.
        newline: what goes before the end of the value, with the indent of its line.
    """
    inner = newline + "  "
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        if any([isinstance(each, _HOLDERS) for each in fields.values()]):
            key = _encoder(",").encode
            members = [f"{key(name)}: {indented(each, inner)}" for name, each in fields.items()]
            return f"{{{inner}{f',{inner}'.join(members)}{newline}}}"
    elif isinstance(value, list | tuple):
        elements = cast("Sequence[object]", value)
        if any([isinstance(each, _HOLDERS) for each in elements]):
            members = [indented(each, inner) for each in elements]
            return f"[{inner}{f',{inner}'.join(members)}{newline}]"
    text = _encoder(f",{inner}").encode(value)
    if not value or not isinstance(value, _HOLDERS):
        return text
    return f"{text[0]}{inner}{text[1:-1]}{newline}{text[-1]}"


_HOLDERS = (dict, list, tuple)


def regular_bytes(path: Path) -> bytes:
    """The content of a file of a project, which is no link, pipe or device.

    Raises:
        OSError: if it cannot be read, or is none.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return file.read()


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a project; None if the folder has none that ttcodegen wrote."""
    try:
        content: object = json.loads(regular_bytes(folder.joinpath(MANIFEST)))
    except (OSError, ValueError, RecursionError):
        return None
    return as_manifest(content)


def project_name(folder: Path, input_hash: str) -> str | None:
    """The name of the project in a folder if it was made of the same input; None otherwise."""
    manifest = read_manifest(folder)
    if manifest is None or manifest.get("input_sha256") != input_hash:
        return None
    name: object = manifest.get("module")
    return name if isinstance(name, str) else None


def as_manifest(content: object) -> dict[str, Any] | None:
    """The content of a manifest; None if ttcodegen wrote none of that kind."""
    if not isinstance(content, dict):
        return None
    manifest = cast(dict[str, Any], content)
    return manifest if manifest.get("tool") == _TOOL else None


def manifest_hashes(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The files that a manifest lists, with their hashes; entries that make no sense are left out.

    A path that leads out of the folder is one of them: the file may have been tampered with.
    """
    rows: Any = manifest.get("files")
    hashes: dict[str, str] = {}
    for row in cast(list[Any], rows) if isinstance(rows, list) else []:
        match row:
            case {"path": str(path), "sha256": str(sha256)} if stays_inside(path):
                hashes[path] = sha256
            case _:
                pass
    return hashes


def stays_inside(path: str) -> bool:
    """True if a path of a manifest names something in the folder of the project."""
    parts = Path(path).parts
    return bool(parts) and not Path(path).is_absolute() and ".." not in parts and "\0" not in path


def _function(module: ModuleDescription, function: FunctionDescription) -> dict[str, Any]:
    return {
        "name": function.name,
        "cpp_name": function.cpp_name,
        "inputs": [_tensor(module, function, tensor) for tensor in function.arguments],
        "outputs": [_tensor(module, function, tensor) for tensor in function.outputs],
        **_structure(module, function),
        **({"estimate": function.estimate.to_json()} if function.estimate else {}),
    }


def _pipelines(module: ModuleDescription) -> list[dict[str, Any]]:
    """Functions in stages: what each stage takes, and where the outputs come from."""
    return [
        {
            "function": function.cpp_name,
            "micro_batches": pipeline.micro_batches,
            "stages": [stage.to_json() for stage in pipeline.stages],
            "outputs": [{"stage": stage, "output": index} for stage, index in pipeline.outputs],
        }
        for function, pipeline in zip(module.functions, module.pipelines, strict=True)
    ]


def _state(tensor: StateTensor) -> dict[str, Any]:
    return {
        "name": tensor.name,
        **({} if tensor.file is None else {"file": f"data/{tensor.file}.npy"}),
        "inputs": dict(tensor.inputs),
        "outputs": dict(tensor.outputs),
    }


def _structure(module: ModuleDescription, function: FunctionDescription) -> dict[str, Any]:
    """Structure of inputs and outputs, where the model has it."""
    found = module.structures.get(function.name)
    if found is None:
        return {}
    given, returned = found
    return {"structure": {"inputs": given.to_json(), "outputs": returned.to_json()}}


def _tensor(
    module: ModuleDescription, function: FunctionDescription, tensor: TensorDescription
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": tensor.name,
        "cpp_name": tensor.field,
        "kind": tensor.kind.value,
        "shape": list(tensor.shape),
        "dtype": tensor.data_type.name.lower(),
        "layout": tensor.layout.value,
        "buffer_type": tensor.buffer_type,
        "source_dtype": tensor.source_dtype,
    }
    if tensor.is_weight:
        row["file"] = f"data/{module.weight_file(function, tensor)}.npy"
    return row


Node = tuple[str, str]
"""The function of an op, and its name in it."""


@dataclass(frozen=True)
class CodeLines:
    """Lines of a file, counted from 1, both ends included."""

    path: str
    first: int
    last: int

    def __str__(self) -> str:
        lines = str(self.first) if self.first == self.last else f"{self.first}-{self.last}"
        return f"{self.path}:{lines}"


class Edits:
    """Edits of a user in a file: its lines as they follow from the generated ones."""

    def __init__(self, before: str, now: str) -> None:
        old, new = before.split("\n"), now.split("\n")
        # Lines that occur often in a file, as braces do, make comparing all of it slow.
        start = _equal_at_start(old, new)
        end = _equal_at_start(old[start:][::-1], new[start:][::-1])
        matcher = difflib.SequenceMatcher(
            None, old[start : len(old) - end], new[start : len(new) - end], autojunk=False
        )
        self._changes = [
            (low + start, high + start, first + start, last + start)
            for tag, low, high, first, last in matcher.get_opcodes()
            if tag != "equal"
        ]
        """Parts of the old text, and of the new one, counted from 0, with their ends."""

    @property
    def written(self) -> list[int]:
        """The lines that the person wrote, from 1."""
        return [line + 1 for _, _, first, end in self._changes for line in range(first, end)]

    def touch(self, lines: OpLines) -> bool:
        """True if something of lines that were generated is changed, or inserted between them."""
        first, end = lines.first - 1, lines.last
        return any(
            low < end and high > first if high > low else first < low < end
            for low, high, _, _ in self._changes
        )

    def now(self, lines: OpLines) -> CodeLines | None:
        """Current position of generated lines; None if they are gone."""
        first = self._moved(lines.first - 1, last=False)
        last = self._moved(lines.last - 1, last=True)
        return CodeLines(lines.path, first + 1, last + 1) if first <= last else None

    def _moved(self, line: int, *, last: bool) -> int:
        """Current index of a line, from 0; of a changed one an end of its replacement."""
        offset = 0
        for low, high, first, end in self._changes:
            if line < low:
                break
            if line < high:
                return end - 1 if last else first
            offset = end - high
        return line + offset


def _equal_at_start(one: Sequence[str], other: Sequence[str]) -> int:
    """Length of the common prefix of two texts, in lines."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def known_lines(lines: Iterable[OpLines]) -> dict[Node, list[CodeLines]]:
    """The lines of each op, once each."""
    found: dict[Node, dict[CodeLines, None]] = {}
    for each in lines:
        node = each.op.function, each.op.name
        found.setdefault(node, {})[CodeLines(each.path, each.first, each.last)] = None
    return {node: list(places) for node, places in found.items()}


def edited(
    lines: Iterable[OpLines], edits: Mapping[str, Edits]
) -> tuple[dict[Node, list[CodeLines]], list[Node]]:
    """The lines of the ops of a project now, and which of them were changed.

    Args:
        lines: their lines when it was generated.
        edits: those of the files that are still there, by path.
    """
    places: dict[Node, dict[CodeLines, None]] = {}
    changed: dict[Node, None] = {}
    for each in lines:
        if each.path not in edits:
            continue
        node = each.op.function, each.op.name
        now = edits[each.path].now(each)
        if now is not None:
            places.setdefault(node, {})[now] = None
        if edits[each.path].touch(each):
            changed[node] = None
    return {node: list(found) for node, found in places.items()}, list(changed)
