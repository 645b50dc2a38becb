"""What the outside calls a function, its arguments and its results."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.dialects.func import FuncOp

from ttcodegen.dialects.operations.functions import attributes_at
from ttcodegen.emitc.identifiers import identifier, type_name


def entry_name(symbol: str) -> str:
    """The C++ name of an entry function: `main` belongs to the program that it ends up in."""
    return "forward" if symbol == "main" else identifier(symbol)


def prepare_name(function: str) -> str:
    """The C++ name of the function that computes the constants of an entry function.

    Args:
        function: the C++ name of the entry function.
    """
    return f"prepare_{function}"


def struct_name(function: str, kind: str) -> str:
    """The name of a structure that a function takes or gives: `ForwardWeights`.

    Args:
        function: its C++ name.
        kind: what the structure holds: inputs, weights, constants, outputs, arguments, ...
    """
    return f"{type_name(function)}{kind.capitalize()}"


def argument_names(function: FuncOp) -> list[str]:
    """The names of the arguments, as `ttir.name` or the text has them; all different."""
    names = [
        _declared_name(function.arg_attrs, index) or argument.name_hint or f"arg{index}"
        for index, argument in enumerate(function.args)
    ]
    return _unique(names)


def result_names(function: FuncOp) -> list[str]:
    """The names of the results, as `ttir.name` has them; all different."""
    count = len(function.function_type.outputs)
    return _unique(
        [
            _declared_name(function.res_attrs, index)
            or ("output" if count == 1 else f"output{index}")
            for index in range(count)
        ]
    )


def _declared_name(dictionaries: ArrayAttr[DictionaryAttr] | None, index: int) -> str | None:
    name = attributes_at(dictionaries, index).get("ttir.name")
    return name.data if isinstance(name, StringAttr) else None


def _unique(names: Sequence[str]) -> list[str]:
    """The names, later ones with a number where an earlier one is the same."""
    taken = set(names)
    seen: set[str] = set()
    unique: list[str] = []
    for name in names:
        candidate, number = name, 2
        while candidate in seen or (candidate != name and candidate in taken):
            candidate, number = f"{name}_{number}", number + 1
        seen.add(candidate)
        unique.append(candidate)
    return unique
