"""Resolution of a captured variable on the kernel's node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import is_
from types import SimpleNamespace
from typing import Any, cast

from xdsl.ir import SSAValue

from ttcodegen.lang.compiler.python.merging import (
    NodeFloat,
    NodeFormula,
    NodeList,
    NodeRange,
    NodeRemote,
    NodeTable,
)
from ttcodegen.lang.compiler.python.numbers import Arithmetic, KernelFloat, Number
from ttcodegen.lang.compiler.python.variables import KernelList, KernelRange, looked_up
from ttcodegen.lang.simulator.shapes import is_range, is_tuple


@dataclass(frozen=True)
class NodePosition:
    """The node that a kernel runs on, as values of the kernel."""

    arithmetic: Arithmetic
    column: Number
    row: Number
    number: Callable[[int], Any]
    """Coordinates of the node in a given number of dimensions; with one, its linear index."""

    def value(self, name: str, found: Any) -> Any:
        """Replaces the node-dependent parts of a captured value by values of the kernel."""
        match found:
            case NodeFormula() | NodeTable():
                return self._node_number(name, found)
            case NodeFloat(bits):
                return KernelFloat(self._node_number(f"{name}_bits", bits))  # pyright: ignore
            case NodeRange(start, stop, step):
                return KernelRange(
                    self.value(f"{name}_start", start),
                    self.value(f"{name}_stop", stop),
                    self.value(f"{name}_step", step),
                )
            case NodeList(length, rows):
                width = len(rows[0])
                flat = [each for row in rows for each in row]
                start = self.arithmetic.multiply(self.number(1), width)

                def at(position: Number) -> Any:
                    index = self.arithmetic.add(start, position)
                    return looked_up(flat, index, self.arithmetic, name)

                return KernelList(self.value(f"{name}_count", length), at)
            case NodeRemote():
                column, row = found.first
                first = self.value(f"{name}_column", column), self.value(f"{name}_row", row)
                if found.count == 1:
                    return replace(found, first=first, last=first)
                return replace(found, first=first, last=self.value(f"{name}_last", found.last))
            case SimpleNamespace():
                return SimpleNamespace(**self.value(name, vars(found)))
            case dict():
                parts = cast(dict[Any, Any], found)
                return {key: self.value(f"{name}_{key}", part) for key, part in parts.items()}
            case _:
                pass
        if is_range(found):
            start = self.value(f"{name}_start", found.start)
            return slice(start, self.value(f"{name}_stop", found.stop), found.step)
        if not is_tuple(found):
            return found
        fields: Sequence[str] = getattr(found, "_fields", ())
        labels = [f"_{field}" for field in fields] or [str(n) for n in range(len(found))]
        parts = tuple(
            self.value(f"{name}{label}", part) for label, part in zip(labels, found, strict=True)
        )
        if all(map(is_, parts, found)):
            return found
        return type(found)(*parts) if fields else parts

    def _node_number(self, name: str, found: NodeFormula | NodeTable) -> Number:
        if isinstance(found, NodeFormula):
            value = self.arithmetic.formula(found.formula, (self.column, self.row))
        else:
            index = self.column if not found.by_row else self.row
            if found.by_column and found.by_row:
                index = self.number(1)
            axis = "node" if found.by_column and found.by_row else "column"
            table = f"{name}_of_{axis if found.by_column else 'row'}"
            value = self.arithmetic.looked_up(found.numbers, index, table)
        if isinstance(value, SSAValue) and value not in (self.column, self.row):
            value.name_hint = name if SSAValue.is_valid_name(name) else None
        return value
