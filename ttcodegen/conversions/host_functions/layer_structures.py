"""Structures that functions of layers take: elements of the model's arrays, weights, and sizes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir import SSAValue

from ttcodegen.conversions.host_functions.cpp_interface import DEVICE
from ttcodegen.conversions.host_functions.outlining import (
    NamedValue,
    OutlinedFunction,
    Parameter,
    ParameterStruct,
    given_texts,
)
from ttcodegen.conversions.host_functions.statements import Group, Statement
from ttcodegen.emitc.builder import TENSOR
from ttcodegen.emitc.spelling import NameScope, identifier
from ttcodegen.naming.arguments import struct_name
from ttcodegen.naming.functions import (
    ARGUMENTS,
    SETTINGS,
    SIZES,
    WEIGHTS,
    common_title,
    size_title,
)
from ttcodegen.naming.members import element_name, element_prefixes
from ttcodegen.naming.values import ValueNames
from ttcodegen.ops.core.calls import MOST_UNNAMED

MOST_APART = 4
"""Maximum number of weights that are passed separately if the model nests them by module."""


@dataclass(frozen=True)
class Body:
    """Analysis of the statements of a function, shared by the search for layers."""

    names: ValueNames
    members: Mapping[SSAValue, str]
    """Names of its weights, constants and inputs."""
    inputs: Collection[SSAValue]
    layers_of: Callable[[Sequence[Statement]], Sequence[str]]
    lines_of: Callable[[Statement], int]
    returned: Sequence[SSAValue]
    scope: NameScope
    """Names of functions."""
    type_of: Callable[[SSAValue], str] = lambda _: TENSOR
    """C++ types of values."""
    context: Sequence[tuple[str, str]] = ((DEVICE, "ttnn::MeshDevice&"),)
    """Names and types that pieces of C++ may refer to besides values."""
    places: Mapping[SSAValue, tuple[str, str]] = field(
        default_factory=dict[SSAValue, tuple[str, str]]
    )
    """Parameter and access path of each member."""
    elements: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """Types of the structures in arrays, by parameter and access path."""
    function: str = ""
    """C++ name of the function."""
    is_type: Callable[[str], bool] = lambda _: False
    """Returns whether the header has a structure of a name."""


def all_members(groups: Sequence[Group], index: int, body: Body) -> bool:
    """Returns whether an incoming value is a weight, a constant or an input in every group."""
    members = body.members
    return all([group.live_in[index] in members for group in groups])


def has_weights(group: Group, body: Body) -> bool:
    return any(value in body.members and value not in body.inputs for value in group.live_in)


STRUCTURES = (WEIGHTS, "constants", "inputs", SIZES, SETTINGS)
"""Names of parameters that are structures."""


@dataclass(frozen=True)
class InElement:
    """Access path of a parameter in an array element that each group has."""

    structure: tuple[str, str, tuple[str, ...]]
    """Parameter that holds the array, element type, and access path of each group's element."""
    inside: str


def elements_of(groups: Sequence[Group], body: Body) -> dict[int, InElement]:
    """Incoming values that are members of array elements, by their index.

    These are the weights of a layer as the model nests them."""
    found: dict[int, InElement] = {}
    for index in range(len(groups[0].live_in)):
        places = [body.places.get(group.live_in[index]) for group in groups]
        if None in places:
            continue
        known = [place for place in places if place is not None]
        holder = known[0][0]
        for _, inside in element_prefixes(known[0][1]):
            prefixes = tuple(path.removesuffix(f".{inside}") for _, path in known)
            types = {body.elements.get((holder, prefix)) for prefix in prefixes}
            type_ = types.pop()
            if not types and type_ is not None and all(each == holder for each, _ in known):
                found[index] = InElement((holder, type_, prefixes), inside)
                break
    counts = Counter(each.structure for each in found.values())
    return {index: each for index, each in found.items() if counts[each.structure] > 1}


def structures(
    function: OutlinedFunction, body: Body, elements: Mapping[int, InElement]
) -> Iterator[ParameterStruct]:
    """Yields the structures of weights, and of sizes, that a function takes."""
    first, *others = function.groups
    held: dict[tuple[str, str, tuple[str, ...]], list[Parameter]] = {}
    for index, each in elements.items():
        held.setdefault(each.structure, []).append(function.tensors[index])
    holders = Counter(holder for holder, _, _ in held)
    scope = NameScope(p.name for p in (*function.tensors, *function.texts))
    for (holder, type_, prefixes), fields in held.items():
        name = holder if holders[holder] == 1 else element_name(prefixes[0], scope)
        yield ParameterStruct(name, type_, tuple(fields), is_declared=True, is_element=True)
    own = tuple(
        parameter
        for index, (parameter, value) in enumerate(
            zip(function.tensors, first.live_in, strict=True)
        )
        if index not in elements
        and all_members(function.groups, index, body)
        and any(group.live_in[index] is not value for group in others)
    )
    most = MOST_APART if any("." in body.places.get(v, ("", ""))[1] for v in first.live_in) else 1
    if len(own) > most and WEIGHTS not in holders:
        # The header may have that of the elements of an array: `LayerWeights` of `layer`.
        names = (struct_name(function.name, kind) for kind in (WEIGHTS, ARGUMENTS))
        yield ParameterStruct(WEIGHTS, next(n for n in names if not body.is_type(n)), own)
    if len(function.texts) > 1 and (
        has_weights(first, body) or len(function.parameters) > MOST_UNNAMED
    ):
        # By value: the structures become constants of the file.
        fields = [
            replace(p, type=p.type.removeprefix("const ").removesuffix("&")) for p in function.texts
        ]
        function.texts = fields
        is_size = all(re.search(r"uint32_t|Shape$|Sizes$", p.type) for p in fields)
        name = SIZES if is_size else SETTINGS
        struct = struct_name(function.name, name)
        yield ParameterStruct(name, struct, tuple(fields))


def size_constants(function: OutlinedFunction, body: Body) -> Iterator[NamedValue]:
    """Yields constants for the arguments of layers other than tensors.

    Layers with equal sizes share one constant. Settings, which are tuned, share one within a part
    of the model, and across most layers; the others have one per layer."""
    struct = next((each for each in function.structs if each.name in (SIZES, SETTINGS)), None)
    if struct is None:
        return
    alike: dict[tuple[str, ...], list[Group]] = {}
    for group in function.groups:
        alike.setdefault(given_texts(group, struct), []).append(group)
    title_of = dict(zip(function.groups, function.titles, strict=True))
    common = common_title(function.titles) or ""
    is_scattered = {
        texts: len(groups) > 1 and (common_title(map(title_of.get, groups)) or "") == common
        for texts, groups in alike.items()
    }
    most = max((len(groups) for texts, groups in alike.items() if is_scattered[texts]), default=0)
    for texts, groups in alike.items():
        parts = [groups]
        title = size_title([*map(title_of.get, groups)], common)
        if struct.name == SETTINGS and is_scattered[texts]:
            # A scattered setting must not be named after only one of its layers.
            if len(groups) == most:
                title, most = "", 0
            else:
                parts = [[group] for group in groups]
        for part in parts:
            if len(parts) > 1:
                title = size_title([title_of[part[0]]], common)
            name = identifier(f"{title or function.name}_{struct.name}")
            yield struct.named_value(body.scope.unique(name), texts, part)
