"""Writes TTIR modules as text, for the scripts that make the examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

ELEMENT_TYPES = {"float32": "f32", "int32": "i32"}


def tensor_type(shape: Sequence[int], element: str = "f32") -> str:
    """`tensor<2x3xf32>`."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


@dataclass
class FunctionText:
    """One function, written op by op; values are named by the text that refers to them."""

    name: str
    arguments: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    types: dict[str, str] = field(default_factory=dict[str, str])

    def argument(
        self, name: str, shape: Sequence[int], kind: str = "input", element: str = "f32"
    ) -> str:
        """Adds an argument; `kind` is input, parameter or constant."""
        value = f"%{name.replace('.', '_')}"
        self.types[value] = tensor_type(shape, element)
        self.arguments.append(
            f"{value}: {self.types[value]} "
            f'{{ttcore.argument_type = #ttcore.argument_type<{kind}>, ttir.name = "{name}"}}'
        )
        return value

    def constant(self, name: str, array: NDArray[np.generic]) -> str:
        """Adds a constant with the elements of an array."""
        result = tensor_type(array.shape, ELEMENT_TYPES[array.dtype.name])
        data = np.ascontiguousarray(array).tobytes().hex().upper()
        return self.op("constant", [], result, f'value = dense<"0x{data}"> : {result}', name=name)

    def op(
        self,
        kind: str,
        operands: Sequence[str],
        result: str,
        attributes: str = "",
        *,
        name: str | None = None,
    ) -> str:
        """Adds an op of that kind and gives its result."""
        value = f"%{(name or f'{kind}_{len(self.lines)}').replace('.', '_')}"
        self.types[value] = result
        properties = f" <{{{attributes}}}>" if attributes else ""
        operand_types = ", ".join(self.types[operand] for operand in operands)
        self.lines.append(
            f'{value} = "ttir.{kind}"({", ".join(operands)}){properties} : '
            f"({operand_types}) -> {result}"
        )
        return value

    def text(self, results: dict[str, str]) -> str:
        """The whole function; `results` gives the returned value for each result's name."""
        types = ", ".join(
            f'{self.types[value]} {{ttir.name = "{name}"}}' for name, value in results.items()
        )
        plain = ", ".join(self.types[value] for value in results.values())
        arguments = ",\n    ".join(self.arguments)
        body = "".join(f"  {line}\n" for line in self.lines)
        return (
            f"func.func @{self.name}(\n    {arguments}\n) -> ({types}) {{\n{body}"
            f"  return {', '.join(results.values())} : {plain}\n}}\n"
        )
