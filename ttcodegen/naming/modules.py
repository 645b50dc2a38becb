"""Names of a module's arguments, constants and values, and of the constants of src/tuning.hpp."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, starmap
from math import prod

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.compute_config import ComputeConfig
from ttcodegen.dialects.operations.functions import (
    CONST_EVAL,
    CONST_EVAL_SUFFIX,
    argument_type,
    body_of,
)
from ttcodegen.dialects.operations.operation import CatalogueOp, operation_name
from ttcodegen.dialects.ttcore.dialect import LoadCachedOp
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.emitc.spelling import NameScope, identifier
from ttcodegen.naming.arguments import FunctionOf, argument_titles, result_names
from ttcodegen.naming.functions import shape_text
from ttcodegen.naming.roles import ROLES, is_attention, reaches
from ttcodegen.naming.sources import (
    GENERIC,
    given_name,
    is_generic,
    joined_weight,
    layer,
    name_or_kind,
    short_layer,
    stem_of_weight,
)
from ttcodegen.naming.values import ValueNames, noun_of, operand_noun
from ttcodegen.ops.core.definition import library_definition, traits_of
from ttcodegen.ops.core.traits import Trait

# Names of the constants of a function: after weights, or after their use.

_CONSTANTS = frozenset({"ttir.constant", "ttnn.constant"})
_LEARNED = frozenset({"weight", "bias"})
"""Catalogue names of learned operands of layers."""
_FILLS = frozenset({"zeros", "ones", "filled", "epsilon"})
_POSITIONS = "positions"
_MOST_POSITIONS = 1 << 16
"""Maximum number of elements that are examined."""


def constant_names(
    load: LoadCachedOp | None, const_eval: FuncOp | None, names: Mapping[SSAValue, str]
) -> tuple[str, ...]:
    """Names of the constants of a function: after their weights, or after their use.

    `names` are those of the function's arguments."""
    if const_eval is None or load is None:
        return ()
    inner = dict(zip(body_of(const_eval).args, load.operands, strict=True))
    weights: dict[SSAValue, str] = {
        argument: names[value] for argument, value in inner.items() if value in names
    }
    body = ValueNames(body_of(const_eval).ops, weights, weights, {}, of_weights=True)
    terminator = body_of(const_eval).last_op
    assert terminator is not None
    roles = ValueNames(load.parent.ops, dict(names), {}, {}) if load.parent else body
    found = [
        _constant_name(value, weights, body, roles.role_of(loaded))
        for value, loaded in zip(terminator.operands, load.results, strict=True)
    ]
    by_value: dict[SSAValue, str | None] = dict(zip(load.results, found, strict=True))
    for value, name in by_value.items():
        if name == _POSITIONS and _are_of_keys(value):
            by_value[value] = "key_positions"
    by_value |= dict(_shaped_fills(by_value))
    known = {**names, **{value: name for value, name in by_value.items() if name is not None}}
    if None not in found:
        return tuple(known[value] for value in load.results)
    order = {op: index for index, op in enumerate(load.parent.ops)} if load.parent else {}
    # The field, the variable and the file of a constant share a name.
    scope = NameScope(map(identifier, known.values()))
    return tuple(
        name or scope.unique(bias_name(value, known) or _use_name(value, order) or "constant")
        for value, name in by_value.items()
    )


def constant_title(op: Operation, order: Mapping[Operation, int]) -> str:
    """Title of a constant of a function of device programs.

    It comes from the source, its contents or its use.

    Args:
        op: the constant.
        order: the positions of the ops of the function.
    """
    value = op.results[0]
    if value.name_hint and not is_generic(value.name_hint):
        return value.name_hint
    if _counts_up(op):
        return "key_positions" if _are_of_keys(value) else _POSITIONS
    return _use_name(_used_form(value), order) or name_or_kind(op)


def _used_form(value: SSAValue) -> SSAValue:
    """Form of a constant that a layer uses: rearranged, or combined with other constants."""
    while (use := value.get_user_of_unique_use()) is not None:
        others = [operand.owner for operand in use.operands if operand is not value]
        is_form = isinstance(use, CatalogueOp) and len(use.results) == 1
        if not is_form or any(not isinstance(o, CatalogueOp) or o.operands for o in others):
            break
        value = use.results[0]
    return value


def _constant_name(
    value: SSAValue, weights: Mapping[SSAValue, str], body: ValueNames, role: str | None
) -> str | None:
    """Name of the weight that a constant depends on, its own name, or its role."""
    seen = value
    is_computed = False
    while isinstance(op := seen.owner, CatalogueOp) and op.operands:
        is_computed |= not op.definition.rearranges and not traits_of(library_definition(op)) & (
            Trait.ALTERS
        )
        if op.definition.short_name in ("concat", "concat_row_major"):
            parts = [weights.get(_first_operand(operand)) for operand in op.operands]
            joined = joined_weight([part for part in parts if part is not None])
            if joined is not None and None not in parts:
                return joined
        seen = op.operands[0]
    given = body.given(value)
    if given is None and role is not None and (is_computed or seen not in weights):
        return role
    if seen in weights:
        return weights[seen]
    given = given or body.given(seen)
    if given is not None:
        return given
    if isinstance(seen.owner, Operation) and _counts_up(seen.owner):
        return _POSITIONS
    name = body[value]
    return None if name in GENERIC or name == "filled" else name


def _first_operand(value: SSAValue) -> SSAValue:
    """Value at the start of the chain of first operands."""
    while isinstance(value.owner, CatalogueOp) and value.owner.operands:
        value = value.owner.operands[0]
    return value


def _use_name(value: SSAValue, order: Mapping[Operation, int]) -> str | None:
    """Name of a constant after the first informative use."""
    named = {
        order[op]: name
        for use in value.uses
        if isinstance(op := use.operation, CatalogueOp)
        and op in order
        and (name := _learned_name(op, use.index) or operand_noun(op)) is not None
    }
    return named[min(named)] if named else None


def _learned_name(op: CatalogueOp, index: int) -> str | None:
    """Name of a learned operand of a layer: `convolution_weight`."""
    groups = op.operand_groups()
    if index == 0 or _LEARNED.isdisjoint(groups):
        return None
    role = next(name for name, group in groups.items() if op.operands[index] in group)
    return f"{noun_of(op)}_{'bias' if role == 'bias' else 'weight'}"


def _shaped_fills(names: Mapping[SSAValue, str | None]) -> Iterator[tuple[SSAValue, str]]:
    """Yields names with shapes for fills of several shapes, from the second shape on."""
    shapes: dict[str, set[tuple[int, ...]]] = {}
    for value, name in names.items():
        if name in _FILLS:
            shape = shape_of(value.type)
            found = shapes.setdefault(name, set())
            if found and shape not in found:
                yield value, f"{name}_{shape_text(shape)}"
            found.add(shape)


def _are_of_keys(positions: SSAValue) -> bool:
    """Returns whether positions along the last dimension are compared for an attention mask."""
    if shape_of(positions.type)[-1:] in ((), (1,)):
        return False
    return any(
        isinstance(op := use.operation, CatalogueOp)
        and Trait.COMPARES in traits_of(library_definition(op))
        and reaches(op.results[0], is_attention)
        for use in positions.uses
    )


def _counts_up(op: Operation) -> bool:
    """Returns whether a constant is 0, 1, 2, ...: the positions along a dimension."""
    if operation_name(op) not in _CONSTANTS:
        return False
    if not 1 < prod(shape_of(op.results[0].type)) <= _MOST_POSITIONS:
        return False
    value = op.properties.get("value", op.attributes.get("value"))
    if not isinstance(value, DenseIntOrFPElementsAttr):
        return False
    numbers = value.get_values()
    return all(number == index for index, number in enumerate(numbers))


def bias_name(value: SSAValue, names: Mapping[SSAValue, str]) -> str | None:
    """Name of a constant that an op takes as its bias, after the weight of that op."""
    for use in value.uses:
        op = use.operation
        if not isinstance(op, CatalogueOp) or Trait.OF_LAYER not in traits_of(
            library_definition(op)
        ):
            continue
        weight = next((names[o] for o in op.operands[1 : use.index] if o in names), None)
        if use.index >= 2 and weight is not None:
            stem = stem_of_weight(weight)
            return f"{stem or weight}_bias"
    return None


# Names of arguments, constants and values of functions, for C++ of both targets and flatbuffers.


class GivenNames:
    """Names of the arguments and the constants of a function."""

    def __init__(self) -> None:
        self.names: dict[SSAValue, str] = {}
        self.weight_names: dict[SSAValue, str] = {}
        """Names of weights."""

    def give(self, value: SSAValue, name: str, *, is_weight: bool) -> None:
        """Names a value; names with `weight` or `bias` mark weights."""
        self.names[value] = name
        if is_weight or "weight" in name or "bias" in name:
            self.weight_names[value] = name


@dataclass(frozen=True)
class FunctionNames:
    """Names of the tensors of a function other than a const-eval function."""

    function: FuncOp
    titles: tuple[str, ...]
    """Names of its arguments, as text; several may be equal."""
    constants: tuple[str, ...]
    """Names of its constants, in order; several may be equal."""
    given: GivenNames
    """Names of arguments and constants by value."""
    values: ValueNames
    const_eval: FuncOp | None = None
    """TTNN function that computes its constants, if any ..."""
    prepared: ValueNames | None = None
    """... and the names of its values."""


def load_of(function: FuncOp) -> LoadCachedOp | None:
    """Op that loads the constants of a function, its first one, if any."""
    first = body_of(function).first_op
    return first if isinstance(first, LoadCachedOp) else None


def names_of_module(functions: Iterable[FuncOp]) -> list[FunctionNames]:
    """Names of the tensors of TTNN functions, in order.

    Const-eval functions belong to the functions that load their results."""
    known = list(functions)
    const_evals = {f.sym_name.data: f for f in known if CONST_EVAL in f.attributes}
    return [
        _names_of_library_function(
            function,
            const_evals.get(f"{function.sym_name.data}{CONST_EVAL_SUFFIX}"),
            const_evals.get,
        )
        for function in known
        if CONST_EVAL not in function.attributes
    ]


def names_of_loop(function: FuncOp, titles: Sequence[str]) -> FunctionNames:
    """Names of the tensors of a loop body with these arguments."""
    given = given_names(function, titles)
    return FunctionNames(function, tuple(titles), (), given, names_of_function(function, given))


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
    """Names of the tensors of TTNN functions and their const-eval functions.

    They are distinct within a function."""
    found: dict[SSAValue, str] = {}
    for names in functions:
        found |= distinct_names(values_of(names.function), names.values)
        if names.const_eval is not None and names.prepared is not None:
            found |= distinct_names(values_of(names.const_eval), names.prepared)
    return found


def own_tensor_names(function: FuncOp) -> dict[SSAValue, str]:
    """Distinct names of the tensors of a TTNN or TTIR function without constants."""
    names = names_of_function(function, given_names(function))
    return distinct_names(values_of(function), names)


def names_of_function(function: FuncOp, given: GivenNames) -> ValueNames:
    """Names of the values of a TTNN or TTIR function."""
    block = body_of(function)
    terminator = block.last_op
    assert isinstance(terminator, ReturnOp)
    pairs = zip(terminator.operands, result_names(function), strict=True)
    results = {value: name for value, name in pairs if not name.startswith("output")}
    return ValueNames(block.ops, given.names, given.weight_names, results)


def _names_of_preparation(
    const_eval: FuncOp, given: GivenNames, constants: Sequence[str]
) -> ValueNames:
    """Names of the values of a function that computes these constants."""
    block = body_of(const_eval)
    terminator = block.last_op
    assert isinstance(terminator, ReturnOp)
    results = dict(zip(terminator.operands, constants, strict=True))
    return ValueNames(block.ops, given.names, given.weight_names, results, of_weights=True)


def given_names(function: FuncOp, titles: Sequence[str] | None = None) -> GivenNames:
    """Names of the arguments of a function; by default from their use."""
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
    """Makes the names of values distinct identifiers.

    Later values of equal names are qualified by their operation, or else numbered.

    Args:
        values: in order.
        names: names of the values.
        called: other names for some of them, which are only numbered.
        spelled: converts a name to an identifier.
    """
    scope = NameScope()
    found: dict[SSAValue, str] = {}
    for value in values:
        fixed = called.get(value) if called is not None else None
        name = fixed or names[value]
        if fixed is None and scope.is_taken(spelled(name)):
            # Values that are named only after their op are numbered.
            longer = [other for other in names.names_of(value) if other != f"{name}_{name}"]
            free = (other for other in longer if not scope.is_taken(spelled(other)))
            name = next(free, longer[:2][-1])
        found[value] = scope.unique(spelled(name))
    return found


def values_of(function: FuncOp) -> list[SSAValue]:
    """Values of the body of a function, in order."""
    block = body_of(function)
    return [*block.args, *(result for op in block.ops for result in op.results)]


# Names that are recorded before other passes obscure their origin.


def name_values(function: FuncOp) -> None:
    """Names the unnamed values of a TTIR function.

    Biases are named after the weights of their layers, others as in a program that calls the
    library."""
    given = given_names(function)
    ops = [op for op in body_of(function).ops if isinstance(op, CatalogueOp)]
    constants = [result for op in ops if not op.operands for result in op.results]
    for value in constants:
        if (name := given_name(value)) is not None:
            given.give(value, name, is_weight=True)
    for value in constants:
        if value not in given.names and (name := bias_name(value, given.names)) is not None:
            given.give(value, name, is_weight=True)
            value.name_hint = identifier(name)
    names = names_of_function(function, given)
    for op in ops:
        for result in op.results:
            hint = result.name_hint
            is_counted = hint is None or hint[-1:].isdigit()
            if op.operands and is_counted and names.given(result) is None:
                result.name_hint = identifier(names[result])


NamedCall = tuple[Operation, ValueNames, Mapping[SSAValue, str]]
"""Call, names of the values of its function, and names of weights."""

_LAST = re.compile(r"[./]")

NAMESPACE = "tuning"
"""Namespace of the constants."""
PRODUCT_MEMORY = "product_memory"
PRODUCT_PROGRAM = "product_program"
PRODUCT_COMPUTE = "product_compute"
PRODUCT_WEIGHTS = "product_weights_type"
"""Settings that all matmuls share: memory, program and compute config, data type of weights."""
TRACE_REGION = "trace_region_bytes"


def qualified(name: str) -> str:
    """Qualified name of a constant; empty for no name."""
    return f"{NAMESPACE}::{name}" if name else ""


def compute_name(config: ComputeConfig) -> str:
    """Name of a compute kernel config: `exact_compute`, `hifi2_compute`."""
    return "exact_compute" if config.is_exact else f"{config.math_fidelity.value}_compute"


def program_config_names(calls: Sequence[NamedCall]) -> Iterator[str]:
    """Yields names for a program config, best first.

    They are named after the result of the calls, with more of the layer's path, with the shape of
    the result, and numbered. Calls of several layers, such as `bn1` and `bn2`, name it after their
    library function."""
    shorts, longer = ({*names} for names in zip(*starmap(_call_names, calls), strict=True))
    op = calls[0][0]
    short = shorts.pop() if len(shorts) == 1 else operation_name(op).rpartition(".")[2]
    shaped = f"{short}_{shape_text(shape_of(op.results[0].type))}"
    only = longer if len(longer) == 1 else ()
    names = chain((short, *only, shaped), (f"{shaped}_{number}" for number in count(2)))
    return (identifier(f"{name}_program") for name in names)


def _call_names(
    op: Operation, values: ValueNames, weight_names: Mapping[SSAValue, str]
) -> tuple[str, str]:
    """Short and long name of the result of a call: its role, its layer, or its kind."""
    called = values[op.results[0]]
    if called not in ROLES and (found := layer(op, weight_names)) is not None:
        called = short_layer(found)
        return _LAST.split(called)[-1], called
    if called == noun_of(op):
        called = name_or_kind(op)
    return called, called


def memory_name(kind: str, buffer: str) -> str:
    """Name of an interleaved memory config: `activations_memory`, `weights_memory_l1`.

    Args:
        kind: weights or activations.
        buffer: DRAM or L1.
    """
    return f"{kind}_memory" if buffer == "DRAM" else f"{kind}_memory_{buffer.lower()}"


def sharded_memory_names(placement: TensorPlacement) -> Iterator[str]:
    """Yields names for a sharded memory config, best first.

    They are named after the division and the shape of a shard, with the number of cores or banks,
    and numbered."""
    shards = placement.shards
    assert shards is not None
    height, width = shards.shape
    name = f"{placement.memory_layout}_{height}x{width}"
    if placement.buffer_type != "l1":
        name = f"{placement.buffer_type}_{name}"
    on_cores = f"{name}_on_{shards.cores}_{shard_places(placement)}"
    return chain((name, on_cores), (f"{on_cores}_{number}" for number in count(2)))


def shard_places(placement: TensorPlacement) -> str:
    """Unit that holds a shard: cores for L1, banks for DRAM."""
    return "banks" if placement.buffer_type == "dram" else "cores"
