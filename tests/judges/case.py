"""A function of StableHLO or TTIR with inputs and the values that it has to give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Case:
    """A function, what it is given and what it has to give."""

    name: str
    body: str
    """The operations, on `%0`, `%1` and so on; the last one defines `%r`."""
    inputs: Sequence[Array]
    expected: Array
    near: float = 0.0
    """The relative error that is allowed, beside what does not matter to the last bits; exact
    otherwise."""
    result: str = ""
    """The element type of the result, where numpy has no name for it."""

    def text(self) -> str:
        """The function as MLIR."""
        arguments = ", ".join(f"%{i}: {type_of(each)}" for i, each in enumerate(self.inputs))
        result = type_of(self.expected)
        lines = "\n".join(f"  {line.strip()}" for line in self.body.strip().splitlines())
        head = f"func.func @{self.name}({arguments}) -> {result} {{"
        return f"{head}\n{lines}\n  return %r : {result}\n}}\n"


_NAMES = {"float32": "f32", "float64": "f64", "float16": "f16", "bool": "i1", "bfloat16": "bf16"}


def element_of(array: Array) -> str:
    """The MLIR name of the elements of an array."""
    name = array.dtype.name
    return _NAMES.get(name) or name.replace("uint", "ui").replace("int", "i")


def type_of(array: Array) -> str:
    """The MLIR type of an array."""
    return f"tensor<{'x'.join([*map(str, array.shape), element_of(array)])}>"
