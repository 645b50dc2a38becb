"""manifest.json: contents of a project, and current lines of each op in its C++."""

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
    """Text of manifest.json.

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
        **({"buckets": module.buckets.to_json()} if module.buckets else {}),
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
    """Fast equivalent of `json.dumps(value, indent=2, ensure_ascii=False)`.

    Python's C encoder does not indent, so it encodes only values without nested containers. Args:
    value: a JSON value with string keys. newline: line break and indentation that end the value.
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
    """Reads a regular file of a project; refuses links, pipes and devices.

    Raises:
        OSError: if it cannot be read, or is not a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return file.read()


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Manifest of a project; None without one that ttcodegen wrote."""
    try:
        content: object = json.loads(regular_bytes(folder.joinpath(MANIFEST)))
    except (OSError, ValueError, RecursionError):
        return None
    return as_manifest(content)


def project_name(folder: Path, input_hash: str) -> str | None:
    """Name of the project in a folder if it was generated from the same input, else None."""
    manifest = read_manifest(folder)
    if manifest is None or manifest.get("input_sha256") != input_hash:
        return None
    name: object = manifest.get("module")
    return name if isinstance(name, str) else None


def as_manifest(content: object) -> dict[str, Any] | None:
    """Returns the content as a manifest; None if ttcodegen did not write it."""
    if not isinstance(content, dict):
        return None
    manifest = cast(dict[str, Any], content)
    return manifest if manifest.get("tool") == _TOOL else None


def manifest_hashes(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Hashes of the files in a manifest; invalid entries are skipped.

    Paths that leave the folder are invalid, as the file may have been tampered with.
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
    """Returns whether a path of a manifest is inside of the project's folder."""
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
    """Pipelined functions: operands of each stage, and origins of the outputs."""
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
    """Structure of inputs and outputs, if the model has one."""
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
"""Function of an op, and its name in it."""


@dataclass(frozen=True)
class CodeLines:
    """Line range of a file, counted from 1, inclusive."""

    path: str
    first: int
    last: int

    def __str__(self) -> str:
        lines = str(self.first) if self.first == self.last else f"{self.first}-{self.last}"
        return f"{self.path}:{lines}"


class Edits:
    """Edits of a user in a file, as changes of generated lines."""

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
        """Changed ranges of the old and of the new text, from 0, half-open."""

    @property
    def written(self) -> list[int]:
        """Lines that the user wrote, from 1."""
        return [line + 1 for _, _, first, end in self._changes for line in range(first, end)]

    def touch(self, lines: OpLines) -> bool:
        """Returns whether generated lines were changed, or others inserted between them."""
        first, end = lines.first - 1, lines.last
        return any(
            low < end and high > first if high > low else first < low < end
            for low, high, _, _ in self._changes
        )

    def now(self, lines: OpLines) -> CodeLines | None:
        """Current position of generated lines; None if they were removed."""
        first = self._moved(lines.first - 1, last=False)
        last = self._moved(lines.last - 1, last=True)
        return CodeLines(lines.path, first + 1, last + 1) if first <= last else None

    def _moved(self, line: int, *, last: bool) -> int:
        """Current index of a line, from 0; for a changed line, an end of its replacement."""
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
    """Lines of each op without duplicates."""
    found: dict[Node, dict[CodeLines, None]] = {}
    for each in lines:
        node = each.op.function, each.op.name
        found.setdefault(node, {})[CodeLines(each.path, each.first, each.last)] = None
    return {node: list(places) for node, places in found.items()}


def edited(
    lines: Iterable[OpLines], edits: Mapping[str, Edits]
) -> tuple[dict[Node, list[CodeLines]], list[Node]]:
    """Current lines of a project's ops, and which of them were changed.

    Args:
        lines: their generated lines.
        edits: edits of existing files, by path.
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
