"""Structure of a model's arguments and results: tuples, lists and dictionaries of tensors.

A program has a flat list of inputs and outputs. The manifest keeps the structure of the model, so
that a loaded function takes and returns what the model did."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ttcodegen.foundation.diagnostics import CompileError


class StructureError(ValueError):
    """Mismatch between a given structure and the expected one."""


@dataclass(frozen=True)
class Structure:
    """A tensor, a static value, or a container of such."""

    kind: str
    """tensor, value, tuple, list, dict or record (a tuple or an object with named fields)."""
    index: int = 0
    """Index of a tensor in the flat list."""
    value: Any = None
    """Value that the model was compiled for, or class name of a record."""
    keys: tuple[Any, ...] = ()
    """Keys of a dictionary, field names of a record."""
    parts: tuple[Structure, ...] = ()

    @staticmethod
    def of(value: Any, leaf: Callable[[Any], Structure]) -> Structure:
        """Structure of nested containers; `leaf` returns that of other values."""

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
        """Yields each tensor of a value with this structure, with its index in the flat list.

        Raises:
            StructureError: at the first mismatch.
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
        """Builds the structure from the tensors of a flat list."""
        match self.kind:
            case "tensor":
                return tensors[self.index]
            case "value":
                return self.value
            case "dict":
                return {k: p.build(tensors) for k, p in zip(self.keys, self.parts, strict=True)}
            case "record":
                # The class of the model is not known here, only its name and fields.
                record: Any = cast("Any", collections).namedtuple(str(self.value), self.keys)
                return record(*(part.build(tensors) for part in self.parts))
            case "list":
                return [part.build(tensors) for part in self.parts]
            case _:
                return tuple(part.build(tensors) for part in self.parts)

    def names(self, prefix: str) -> Iterator[tuple[int, str]]:
        """Yields a candidate name for each tensor from its keys: `logits`, `cache.0.key`."""
        if self.kind == "tensor":
            yield self.index, prefix
            return
        for key, part in zip(self.keys or range(len(self.parts)), self.parts, strict=True):
            alone = len(self.parts) == 1 and self.kind in ("tuple", "list")
            inner = prefix if alone else f"{prefix}.{key}" if prefix else str(key)
            yield from part.names(inner)

    def to_json(self) -> Any:
        """JSON of the manifest."""
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
        """Inverse of `to_json`; raises ValueError, TypeError or KeyError on other content."""
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
    """Structure of a static leaf.

    Raises:
        CompileError: if the manifest cannot represent it.
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
