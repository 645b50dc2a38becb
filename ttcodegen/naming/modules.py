"""What the values of each function of a module are called, whatever is made of it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from ttcodegen.dialects.functions import argument_type, body_of
from ttcodegen.naming.arguments import argument_titles
from ttcodegen.naming.interface import result_names
from ttcodegen.naming.values import ValueNames


class GivenNames:
    """What the arguments and the constants of a function are called."""

    def __init__(self) -> None:
        self.names: dict[SSAValue, str] = {}
        self.weight_names: dict[SSAValue, str] = {}
        """Those of weights."""

    def give(self, value: SSAValue, name: str, *, is_weight: bool) -> None:
        """Names a value; what is called a weight or a bias is one."""
        self.names[value] = name
        if is_weight or "weight" in name or "bias" in name:
            self.weight_names[value] = name


def names_of_function(function: FuncOp, given: GivenNames) -> ValueNames:
    """What the values of a function of TTNN or TTIR are called."""
    block = body_of(function)
    terminator = block.last_op
    assert isinstance(terminator, ReturnOp)
    pairs = zip(terminator.operands, result_names(function), strict=True)
    results = {value: name for value, name in pairs if not name.startswith("output")}
    return ValueNames(block.ops, given.names, given.weight_names, results)


def names_of_preparation(
    const_eval: FuncOp, given: GivenNames, constants: Sequence[str]
) -> ValueNames:
    """What the values of a function are called that computes constants of these names."""
    block = body_of(const_eval)
    terminator = block.last_op
    assert isinstance(terminator, ReturnOp)
    results = dict(zip(terminator.operands, constants, strict=True))
    return ValueNames(block.ops, given.names, given.weight_names, results, of_weights=True)


def given_names(function: FuncOp) -> GivenNames:
    """What the arguments of a function are called that computes no constants."""
    given = GivenNames()
    titles = argument_titles(function, lambda _: None)
    for argument, name in zip(body_of(function).args, titles, strict=True):
        kind = argument_type(function, argument.index).value
        given.give(argument, name, is_weight=kind in ("parameter", "constant"))
    return given
