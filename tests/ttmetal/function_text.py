"""TTIR text of functions and their ops."""

from __future__ import annotations

from collections.abc import Sequence

Shape = Sequence[int]


def tensor(shape: Shape, element: str) -> str:
    """The type of a tensor."""
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


def call(
    name: str, operands: Sequence[str], types: Sequence[str], result: str, **words: str
) -> str:
    """An op; the keywords are its attributes."""
    attributes = ", ".join(f"{key} = {value}" for key, value in words.items())
    listed = f" <{{{attributes}}}>" if words else ""
    return f'"ttir.{name}"({", ".join(operands)}){listed} : ({", ".join(types)}) -> {result}'


def function(name: str, types: Sequence[str], ops: Sequence[str], results: str = "") -> str:
    """A function of arguments %a0, %a1 and so on.

    Args:
        name: its name.
        types: those of the arguments, perhaps with attributes.
        ops: what gives %0, %1 and so on.
        results: what it returns, with types after a colon; the last op's result if empty.
    """
    arguments = ", ".join(f"%a{index}: {type_}" for index, type_ in enumerate(types))
    results = results or f"%{len(ops) - 1} : {ops[-1].rsplit('-> ', 1)[1]}"
    given = results.partition(" : ")[2]
    lines = [f"%{number} = {op}" for number, op in enumerate(ops)]
    body = "".join(f"    {line}\n" for line in [*lines, f"return {results}"])
    return f"  func.func @{name}({arguments}) -> ({given}) {{\n{body}  }}\n"


def single(
    name: str, op: str, shapes: Sequence[Shape], result: Shape, element: str, **words: str
) -> str:
    """A function of one op whose operands and result have one element type."""
    types = [tensor(shape, element) for shape in shapes]
    names = [f"%a{index}" for index in range(len(shapes))]
    return function(name, types, [call(op, names, types, tensor(result, element), **words)])


def integers(values: Sequence[int]) -> str:
    """An attribute that lists integers of 32 bits."""
    return f"[{', '.join(f'{value} : i32' for value in values)}]"


def array(values: Sequence[int], element: str = "i64") -> str:
    """An attribute that is an array of integers."""
    return f"array<{element}: {', '.join(map(str, values))}>"
