"""What the functions of a module call their arguments, constants and values, whatever is made of
them: C++ of either target, or a flatbuffer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from ttcodegen.dialects.operations.functions import CONST_EVAL, argument_type, body_of
from ttcodegen.dialects.ttcore.dialect import LoadCachedOp
from ttcodegen.emitc.identifiers import NameScope, identifier
from ttcodegen.naming.arguments import FunctionOf, argument_titles
from ttcodegen.naming.constants import constant_names
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


@dataclass(frozen=True)
class FunctionNames:
    """What a function that is no const-eval function calls its tensors."""

    function: FuncOp
    titles: tuple[str, ...]
    """Its arguments, as text; several may have one name."""
    constants: tuple[str, ...]
    """Its constants, in order; the same."""
    given: GivenNames
    """Both by value."""
    values: ValueNames
    const_eval: FuncOp | None = None
    """The function of TTNN that computes its constants, if there is any ..."""
    prepared: ValueNames | None = None
    """... and the names of the values in that."""


def load_of(function: FuncOp) -> LoadCachedOp | None:
    """The op that brings constants into a function; the first one, if there is any."""
    first = body_of(function).first_op
    return first if isinstance(first, LoadCachedOp) else None


def names_of_module(functions: Iterable[FuncOp]) -> list[FunctionNames]:
    """What functions of TTNN call their tensors, in order; const-eval functions belong to those
    that load their results."""
    known = list(functions)
    const_evals = {f.sym_name.data: f for f in known if CONST_EVAL in f.attributes}
    return [
        _names_of_library_function(
            function, const_evals.get(f"{function.sym_name.data}_const_eval"), const_evals.get
        )
        for function in known
        if CONST_EVAL not in function.attributes
    ]


def _names_of_library_function(
    function: FuncOp, const_eval: FuncOp | None, function_of: FunctionOf
) -> FunctionNames:
    titles = tuple(argument_titles(function, function_of))
    given = given_names(function, titles)
    load = load_of(function)
    constants = constant_names(load, const_eval, given.names)
    outside = GivenNames()
    if load is not None and const_eval is not None:
        for argument, value in zip(body_of(const_eval).args, load.operands, strict=True):
            is_weight = value in given.weight_names
            outside.give(argument, given.names[value], is_weight=is_weight)
        for value, name in zip(load.results, constants, strict=True):
            given.give(value, name, is_weight=True)
    return FunctionNames(
        function,
        titles,
        constants,
        given,
        names_of_function(function, given),
        const_eval,
        None if const_eval is None else _names_of_preparation(const_eval, outside, constants),
    )


def tensor_names(functions: Iterable[FunctionNames]) -> dict[SSAValue, str]:
    """What the tensors of functions of TTNN are called, those of their const-eval functions too;
    within a function all differ."""
    found: dict[SSAValue, str] = {}
    for names in functions:
        found |= distinct_names(values_of(names.function), names.values)
        if names.const_eval is not None and names.prepared is not None:
            found |= distinct_names(values_of(names.const_eval), names.prepared)
    return found


def own_tensor_names(function: FuncOp) -> dict[SSAValue, str]:
    """The same of a function of TTNN or TTIR that has no constants."""
    names = names_of_function(function, given_names(function))
    return distinct_names(values_of(function), names)


def names_of_function(function: FuncOp, given: GivenNames) -> ValueNames:
    """What the values of a function of TTNN or TTIR are called."""
    block = body_of(function)
    terminator = block.last_op
    assert isinstance(terminator, ReturnOp)
    pairs = zip(terminator.operands, result_names(function), strict=True)
    results = {value: name for value, name in pairs if not name.startswith("output")}
    return ValueNames(block.ops, given.names, given.weight_names, results)


def _names_of_preparation(
    const_eval: FuncOp, given: GivenNames, constants: Sequence[str]
) -> ValueNames:
    """What the values of a function are called that computes constants of these names."""
    block = body_of(const_eval)
    terminator = block.last_op
    assert isinstance(terminator, ReturnOp)
    results = dict(zip(terminator.operands, constants, strict=True))
    return ValueNames(block.ops, given.names, given.weight_names, results, of_weights=True)


def given_names(function: FuncOp, titles: Sequence[str] | None = None) -> GivenNames:
    """What the arguments of a function are called; by what it does with them if no titles are
    given."""
    given = GivenNames()
    if titles is None:
        titles = argument_titles(function, lambda _: None)
    for argument, name in zip(body_of(function).args, titles, strict=True):
        kind = argument_type(function, argument.index).value
        given.give(argument, name, is_weight=kind in ("parameter", "constant"))
    return given


def distinct_names(
    values: Iterable[SSAValue],
    names: ValueNames,
    called: Mapping[SSAValue, str] | None = None,
    spelled: Callable[[str], str] = identifier,
) -> dict[SSAValue, str]:
    """Names that no two of some values share: identifiers, qualified by what was done to a value
    where an earlier one has its name, else numbered.

    Args:
        values: in order.
        names: what they are called.
        called: what some of them are called instead; these are only numbered.
        spelled: makes an identifier of a name.
    """
    scope = NameScope()
    found: dict[SSAValue, str] = {}
    for value in values:
        fixed = called.get(value) if called is not None else None
        name = fixed or names[value]
        if fixed is None and scope.is_taken(spelled(name)):
            # What is called after its op alone, as several values are, is numbered.
            longer = [other for other in names.names_of(value) if other != f"{name}_{name}"]
            free = (other for other in longer if not scope.is_taken(spelled(other)))
            name = next(free, longer[:2][-1])
        found[value] = scope.unique(spelled(name))
    return found


def values_of(function: FuncOp) -> list[SSAValue]:
    """The values of the body of a function, in order."""
    block = body_of(function)
    return [*block.args, *(result for op in block.ops for result in op.results)]
