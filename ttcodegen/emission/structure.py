"""How a model's arguments and results hang together: tuples, lists and dictionaries of tensors.

A program has a flat list of inputs and outputs. The manifest keeps the structure that they had in
the model, so that a loaded function takes and gives what the model did.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ttcodegen.foundation.diagnostics import CompileError


class StructureError(ValueError):
    """What was given hangs together otherwise."""


@dataclass(frozen=True)
class Structure:
    """A tensor, something that is no tensor, or a container of such."""

    kind: str
    """tensor, value, tuple, list, dict or record (a tuple or an object with named fields)."""
    index: int = 0
    """Of a tensor: which of the flat list it is."""
    value: Any = None
    """Of what is no tensor: what the model was compiled for. Of a record: what it is called."""
    keys: tuple[Any, ...] = ()
    """Of a dictionary or a record: what the parts are called."""
    parts: tuple[Structure, ...] = ()

    @staticmethod
    def of(value: Any, leaf: Callable[[Any], Structure]) -> Structure:
        """The structure of containers; `leaf` gives that of whatever is none."""

        def parts(values: Sequence[Any]) -> tuple[Structure, ...]:
            return tuple(Structure.of(each, leaf) for each in values)

        if value is None:
            return Structure("value")
        if isinstance(value, Mapping):
            entries = cast("Mapping[Any, Any]", value)
            return Structure("dict", keys=tuple(entries), parts=parts(list(entries.values())))
        names = getattr(value, "_fields", None)
        if isinstance(value, tuple) and names:
            record = cast("tuple[Any, ...]", value)
            return Structure("record", 0, type(record).__name__, tuple(names), parts(record))
        if isinstance(value, tuple):
            return Structure("tuple", parts=parts(cast("Sequence[Any]", value)))
        if isinstance(value, list):
            return Structure("list", parts=parts(cast("Sequence[Any]", value)))
        return leaf(value)

    def tensors(self, value: Any, path: str = "") -> Iterator[tuple[int, Any]]:
        """Each tensor of what hangs together so, with its index in the flat list.

        Raises:
            StructureError: at the first location that is otherwise.
        """
        match self.kind:
            case "tensor":
                yield self.index, value
            case "value":
                if not _equal(value, self.value):
                    raise StructureError(
                        f"{_named(path)}the model was compiled for {self.value!r}, found {value!r}"
                    )
            case "dict":
                if not isinstance(value, Mapping) or set(cast("Any", value)) != set(self.keys):
                    raise StructureError(
                        f"{_named(path)}expected a dictionary of {', '.join(map(str, self.keys))}"
                    )
                entries = cast("Mapping[Any, Any]", value)
                for key, part in zip(self.keys, self.parts, strict=True):
                    yield from part.tensors(entries[key], f"{path}[{key!r}]")
            case "record" if not isinstance(value, (tuple, list)):
                for key, part in zip(self.keys, self.parts, strict=True):
                    yield from part.tensors(getattr(value, str(key)), f"{path}.{key}")
            case _:
                listed = cast("Sequence[Any]", value)
                if not isinstance(value, (tuple, list)) or len(listed) != len(self.parts):
                    raise StructureError(
                        f"{_named(path)}expected a {self.kind} of {len(self.parts)}"
                    )
                for index, part in enumerate(self.parts):
                    yield from part.tensors(listed[index], f"{path}[{index}]")

    def build(self, tensors: Sequence[Any]) -> Any:
        """The tensors of a flat list, put together."""
        match self.kind:
            case "tensor":
                return tensors[self.index]
            case "value":
                return self.value
            case "dict":
                return {k: p.build(tensors) for k, p in zip(self.keys, self.parts, strict=True)}
            case "record":
                # The class of the model is not known here, only what its fields are called.
                record: Any = cast("Any", collections).namedtuple(str(self.value), self.keys)
                return record(*(part.build(tensors) for part in self.parts))
            case "list":
                return [part.build(tensors) for part in self.parts]
            case _:
                return tuple(part.build(tensors) for part in self.parts)

    def names(self, prefix: str) -> Iterator[tuple[int, str]]:
        """What each tensor may be called by the keys that lead to it: `logits`, `cache.0.key`."""
        if self.kind == "tensor":
            yield self.index, prefix
            return
        for key, part in zip(self.keys or range(len(self.parts)), self.parts, strict=True):
            alone = len(self.parts) == 1 and self.kind in ("tuple", "list")
            inner = prefix if alone else f"{prefix}.{key}" if prefix else str(key)
            yield from part.names(inner)

    def to_json(self) -> Any:
        """As the manifest has it."""
        match self.kind:
            case "tensor":
                return self.index
            case "value":
                return {"value": self.value}
            case "dict" | "record":
                entries = [[k, p.to_json()] for k, p in zip(self.keys, self.parts, strict=True)]
                name = {"name": self.value} if self.kind == "record" else {}
                return {self.kind: entries, **name}
            case _:
                return {self.kind: [part.to_json() for part in self.parts]}

    @staticmethod
    def from_json(content: Any) -> Structure:
        """Raises ValueError, TypeError or KeyError if it is nothing that `to_json` gives."""
        if isinstance(content, int):
            return Structure("tensor", index=content)
        fields = dict(cast("Mapping[str, Any]", content))
        for kind in ("tuple", "list"):
            if kind in fields:
                return Structure(kind, parts=tuple(map(Structure.from_json, fields[kind])))
        for kind in ("dict", "record"):
            if kind in fields:
                keys = tuple(key for key, _ in fields[kind])
                parts = tuple(Structure.from_json(part) for _, part in fields[kind])
                return Structure(kind, value=fields.get("name"), keys=keys, parts=parts)
        return Structure("value", value=fields["value"])


def static(value: Any) -> Structure:
    """What is no tensor.

    Raises:
        CompileError: if the manifest could not hold it.
    """
    if isinstance(value, (bool, int, float, str)):
        return Structure("value", value=value)
    raise CompileError(
        f"arguments of type {type(value).__name__} are not supported",
        remedy="give tensors, numbers, text, and tuples, lists and dictionaries of them",
    )


def _equal(value: Any, expected: Any) -> bool:
    try:
        return bool(value == expected)
    except ValueError:
        return False


def _named(path: str) -> str:
    return f"argument {path}: " if path else ""
