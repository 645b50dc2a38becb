"""What the function that several equal groups of statements become calls its parameters and values.

What they are called is decided by all groups: by what the names of their values have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.naming.functions import common_name
from ttcodegen.naming.sources import is_generic

WEIGHTS = "weights"
"""The parameter of a function of layers that is the structure of their weights."""
SIZES = "sizes"
SETTINGS = "settings"
"""The parameter that is the structure of what else the layers differ in, shapes alone or others."""
ARGUMENTS = "arguments"
"""The parameter of a function that computes constants and takes many."""

_LEARNED = ("weight", "bias")
_ROLES: Mapping[str, str] = {
    "weight_tensor": "weight",
    "weight": "weight",
    "input_tensor_b": "weight",
    "bias_tensor": "bias",
    "bias": "bias",
}
"""What a tensor is that a parameter of the library takes."""


def role_of_parameter(parameter: str) -> str | None:
    """What a tensor is that a parameter of the library, or of a function of layers, takes: the
    weight or the bias; None for any other."""
    return _ROLES.get(parameter)


def role_in_layer(layer: str, role: str) -> str:
    """What a weight is called after the result that it computes: `query_weight`.

    Args:
        layer: what the result is called, if that is known.
        role: what the weight is for it.
    """
    return f"{layer}_{role}" if layer else role


def layer_parameter_name(names: Sequence[str], role: str | None, *, are_members: bool) -> str:
    """What a value is called that a function of layers takes.

    Args:
        names: what each layer calls it, without the path of the layer.
        role: what it is for the calls of the function, if that is known: `query_weight`.
        are_members: whether it is a weight, a constant or an input in each layer.
    """
    if len(set(names)) == 1:
        return names[0]
    if not are_members:
        return "input"
    common = common_name(names)
    if common is not None and is_generic(common):
        common = None
    if common is not None and common.rpartition("_")[2] in _LEARNED:
        return common
    return role or common or "operand"


def prepared_parameter_name(names: Iterable[str], verb: str) -> str:
    """What a value is called that a function takes which computes constants.

    Args:
        names: what it is called in each group.
        verb: what the function does, empty if the field has no word for it.
    """
    common = common_name(names) or "operand"
    learned = common.rpartition("_")[2]
    if learned in _LEARNED:
        # The path of the layers says nothing in a function for all of them.
        return "_".join(common.split("_")[-2:])
    return "scale" if verb == "fold_scale" else common


def names_inside(
    results: Sequence[Sequence[SSAValue]], name_of: Callable[[SSAValue], str], otherwise: str
) -> dict[SSAValue, str]:
    """What the results of the first group are called: what those of all groups have in common.

    Args:
        results: those of each group, in order.
        name_of: what values are called outside.
        otherwise: the name of those that have nothing in common.
    """
    return {
        values[0]: common_name(map(name_of, values)) or otherwise
        for values in zip(*results, strict=True)
    }


def names_of_forms(
    results: Sequence[Sequence[SSAValue]],
    name_of: Callable[[SSAValue], str],
    parameters: Mapping[tuple[str, ...], str],
) -> dict[SSAValue, str]:
    """Names for the results of the first group that are other forms of what comes in.

    Args:
        results: those of each group, in order.
        name_of: what values are called outside.
        parameters: by what a value is called in each group, its parameter.
    """
    found: dict[SSAValue, str] = {}
    for values in zip(*results, strict=True):
        name = _form_of(tuple(map(name_of, values)), parameters)
        if name is not None:
            found[values[0]] = name
    return found


def _form_of(called: tuple[str, ...], parameters: Mapping[tuple[str, ...], str]) -> str | None:
    """The parameter that values are called after, with what they have besides: `input_first_half`
    of `queries_first_half` and `keys_first_half`."""
    if called in parameters:
        return parameters[called]
    for outside, parameter in parameters.items():
        pairs = list(zip(called, outside, strict=True))
        if all(name.startswith(f"{start}_") for name, start in pairs):
            rests = {name.removeprefix(start) for name, start in pairs}
            if len(rests) == 1 and len(set(outside)) > 1:
                return f"{parameter}{rests.pop()}"
    return None


def shape_parameter_name(result: SSAValue, source: SSAValue | None, called: str) -> str:
    """The name of the parameter that says the shape of what a statement makes.

    Args:
        result: what it makes.
        source: what it makes it of, if it takes anything.
        called: what the result is called.
    """
    name = f"{called}_shape".removeprefix("result_")
    if source is None:
        return name
    before, after = shape_of(source.type), shape_of(result.type)
    is_flat = len(after) < len(before) or (
        len(after) == len(before) > 2 and after[:2] == (1, 1) != before[:2]
    )
    return f"flat_{name}" if is_flat else name
