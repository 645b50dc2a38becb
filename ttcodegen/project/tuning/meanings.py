"""Library calls of C++ statements, for the comparison of their meanings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ttcodegen.optimizer.overrides.meanings import (
    TRANSPOSED,
    WITH_LISTS,
    KnownCall,
    is_norm,
    known_definition,
)
from ttcodegen.optimizer.overrides.meanings import same_meaning as same_calls
from ttcodegen.project.tuning.statements import (
    ACTIVATIONS,
    BINARY_ACTIVATIONS,
    CONFIGURATIONS,
    KINDS,
    NOTHING,
    Argument,
    Call,
    Constant,
    Statement,
    activation_named,
    activation_of,
    call_in,
    joined,
    kind_of,
)
from ttcodegen.systems.releases import PARAMETERS

if TYPE_CHECKING:
    from ttcodegen.ops.core.definition import TTNNDefinition

ACTIVATION_ATTRIBUTES = {
    "activation": "activation",
    "post_activations": "activation",
    "lhs_activations": "lhs_activation",
    "rhs_activations": "rhs_activation",
}
"""Attribute of the catalogue by the parameter of an activation."""


class _Unknown(Exception):
    """Raised for a call whose semantics do not follow from its C++ alone."""


def same_meaning(
    before: Sequence[Statement],
    after: Sequence[Statement],
    constants: Mapping[str, Constant],
    generated: Mapping[str, Constant] | None = None,
) -> bool:
    """Returns whether two sequences of calls compute the same on samples.

    Args:
        before: the generated calls; the last one produces the result.
        after: the user's calls.
        constants: the constants of tuning.hpp by name.
        generated: those of the generated calls, if they are others.
    """
    old = known_calls(before, constants if generated is None else generated)
    new = known_calls(after, constants)
    return old is not None and new is not None and same_calls(old, new)


def known_calls(
    calls: Sequence[Statement], constants: Mapping[str, Constant]
) -> list[KnownCall] | None:
    """Library calls of statements; None if the semantics of one do not follow from its C++.

    Args:
        calls: the statements.
        constants: the constants of tuning.hpp by name.
    """
    found: list[KnownCall] = []
    try:
        for each in calls:
            if each.call is None or each.target is None:
                return None
            found += _known_calls(each.call, each.target, constants)
    except _Unknown:
        return None
    return found


def _known_calls(call: Call, target: str, constants: Mapping[str, Constant]) -> list[KnownCall]:
    """A call, after the calls among its arguments."""
    inner: list[KnownCall] = []
    if call.callee == "ttnn::transpose":
        return [_transposition(call, target)]
    definition = known_definition(call.callee.removeprefix("ttnn::").removeprefix("call::"))
    if definition is None:
        raise _Unknown
    if is_norm(definition):
        made = _norm(call, definition, target, inner, constants)
        return [*inner, made]
    tensors: list[str] = []
    numbers: list[object] = []
    attributes: dict[str, object] = {}
    for index, each in enumerate(call.positional):
        kind = each.label if each.label in KINDS else kind_of(each.words, constants)
        kind = BINARY_ACTIVATIONS.get(index, kind) if kind in ACTIVATIONS else kind
        if each.text in NOTHING:
            continue
        if kind in ACTIVATIONS:
            attributes.update(_activation(kind, each))
        elif kind is not None:
            attributes.update(_configured_activation(kind, each, constants))
        elif (tensor := _tensor(each, target, inner, constants)) is not None:
            if numbers:
                # Which operand the number stands for is not known.
                raise _Unknown
            tensors.append(tensor)
        else:
            numbers.append(_number(each, definition.short_name))
    for option in call.options:
        if option.label in ACTIVATIONS and option.text not in NOTHING:
            attributes.update(_activation(option.label, option))
        elif option.label in KINDS:
            attributes.update(_configured_activation(option.label, option, constants))
        else:
            attributes[str(option.label)] = _number(option, "")
    names = [spec.name for spec in definition.attributes]
    if len(numbers) > len(names) or len(tensors) > len(definition.operands):
        raise _Unknown
    attributes.update(zip(names, numbers, strict=False))
    if not tensors or not attributes.keys() <= set(names):
        raise _Unknown
    absent = (None,) * (len(definition.operands) - len(tensors))
    return [*inner, KnownCall(definition, (*tensors, *absent), attributes, target)]


def _norm(
    call: Call,
    definition: TTNNDefinition,
    target: str,
    inner: list[KnownCall],
    constants: Mapping[str, Constant],
) -> KnownCall:
    """Normalization, whose operands are found by the names of its parameters."""
    names = PARAMETERS[definition.short_name]
    if len(call.positional) > len(names) or call.options:
        raise _Unknown
    given: dict[str, str] = {}
    attributes: dict[str, object] = {}
    for name, each in zip(names, call.positional, strict=False):
        parameter = each.label or name
        if each.text in NOTHING or parameter in KINDS:
            continue
        operand = parameter.removesuffix("_tensor").removesuffix("_input")
        if operand in [spec.name for spec in definition.operands]:
            tensor = _tensor(each, target, inner, constants)
            if tensor is None:
                raise _Unknown
            given[operand] = tensor
        elif parameter in [spec.name for spec in definition.attributes]:
            attributes[parameter] = _number(each, "")
        else:
            raise _Unknown
    operands = tuple(given.get(spec.name) for spec in definition.operands)
    if operands[0] is None:
        raise _Unknown
    return KnownCall(definition, operands, attributes, target)


def _tensor(
    argument: Argument, target: str, inner: list[KnownCall], constants: Mapping[str, Constant]
) -> str | None:
    """Tensor that an argument passes; None for a number. Calls in it are added to `inner`."""
    if argument.variable is not None and argument.text not in ("true", "false"):
        return argument.variable
    call = call_in(argument.words)
    if call is None or not call.callee.startswith(("ttnn::", "call::")):
        return None
    if call.callee.rpartition("::")[2][:1].isupper():
        # A type, as in ttnn::Shape({1, 2}).
        return None
    name = f"{target}_{len(inner) + 1}_of"
    inner += _known_calls(call, name, constants)
    return name


def _activation(parameter: str, argument: Argument) -> dict[str, object]:
    """Attribute of the catalogue for an activation that a call applies."""
    name = activation_named(argument.words)
    if name is None:
        raise _Unknown
    return {ACTIVATION_ATTRIBUTES[parameter]: name}


def _configured_activation(
    parameter: str, argument: Argument, constants: Mapping[str, Constant]
) -> dict[str, object]:
    """Attribute of the catalogue for an activation that a configuration applies."""
    if parameter not in CONFIGURATIONS:
        return {}
    name = activation_of(argument.words, constants)
    return {"activation": name} if name else {}


def _transposition(call: Call, target: str) -> KnownCall:
    """Transposition as a permutation, as which the catalogue knows it."""
    definition = known_definition("permute")
    if definition is None or len(call.positional) < 3 or call.positional[0].variable is None:
        raise _Unknown
    dims = [_number(each, "") for each in call.positional[1:3]]
    return KnownCall(definition, (call.positional[0].variable,), {TRANSPOSED: dims}, target)


def _number(argument: Argument, name: str) -> object:
    text = argument.text
    if text in ("true", "false"):
        return text == "true"
    opening = argument.words.index("{") if "{" in argument.words else -1
    if name in WITH_LISTS and opening >= 0:
        inner = joined(argument.words[opening + 1 : -1])
        try:
            return [int(each) for each in inner.split(",")]
        except ValueError:
            raise _Unknown from None
    try:
        return float(text.rstrip("fF")) if not text.lstrip("-").isdecimal() else int(text)
    except ValueError:
        raise _Unknown from None
