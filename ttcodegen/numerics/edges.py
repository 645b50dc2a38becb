"""Edge-case inputs for `--check`.

Each case replaces some drawn inputs of a function by edge values of one kind. Weights are kept, for
they are finite. The role of an argument follows from its uses, as for drawing: indices stay in
bounds unless the source defines others, masks hide whole rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerType, ModuleOp, bf16, f16, f32, f64
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import DataType, element_of, normalized_data_type
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.dialect import ArgumentType
from ttcodegen.naming.arguments import argument_names
from ttcodegen.numerics.drawing import (
    Usage,
    Use,
    common_domain,
    is_mask,
    masks_scores,
    reaching,
)
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.ops.core.definition import traits_of
from ttcodegen.ops.core.traits import Trait
from ttcodegen.transforms.ttir.integer_ranges import needs_upper_half
from ttcodegen.transforms.ttnn.layout import argument_type

LARGEST = "largest"
"""Case of numbers whose products and sums overflow."""
FIRST_AND_LAST = "first and last"
NAN, INFINITIES = "NaN", "infinities"
FINITE_CHOICE, CHOICE = "edges", "edges with NaN"
CHOICES = (FINITE_CHOICE, CHOICE)
"""Cases that mix edge values of several kinds."""
NOT_FINITE = frozenset({NAN, INFINITIES, CHOICE})
"""Cases with non-finite inputs."""
BEYOND_INTEGERS = NOT_FINITE | {FIRST_AND_LAST, LARGEST}
"""Cases with floats that 32-bit integers do not represent."""

CASES = (
    "all equal",
    "ties",
    FIRST_AND_LAST,
    "one beyond",
    LARGEST,
    "zeros and subnormals",
    INFINITIES,
    NAN,
    "empty masks",
)
"""Edge cases of inputs, one kind at a time."""

_BEYOND_INTEGERS = [2.0**24 + 2, -(2.0**24) - 2, 2.0**31, -(2.0**31), 2.0**32, 300.0, -300.0]
"""Floats at and beyond the limits of integer types."""
_EVERY = 13
"""Stride of replaced elements, so that most results stay meaningful."""
_LEAST_CHOSEN = 64
"""Arguments with fewer elements are not mixed with edge values: scalars are parameters."""


@dataclass(frozen=True)
class _Argument:
    """Properties of an argument."""

    drawn: np.ndarray
    data_type: DataType
    is_weight: bool
    is_index: bool
    is_mask: bool
    domain: tuple[float, float] | None
    beyond: tuple[int, int] | None
    """One past the last index and one before the first, if an index may be out of bounds."""
    becomes_float: bool
    """True if integers are converted to floats, which do not represent large ones."""
    becomes_integer: bool
    """True if floats are converted to integers of at most 32 bits."""
    compared: tuple[float | int, ...]
    """Constants that elements are compared with, of those that the data type represents."""


def edge_cases(
    module: ModuleOp, function: FuncOp, drawn: Mapping[str, np.ndarray]
) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields the cases that change any input, by name, with the inputs of the function.

    Args:
        module: the module of the function.
        function: a function of TTIR ops.
        drawn: its inputs by name, as `draw_inputs` draws them.
    """
    arguments = _arguments(module, function, drawn)
    for case in CASES:
        if (changed := _changed(arguments, [_edges(case, each) for each in arguments])) is not None:
            yield case, changed


def chosen_edges(
    module: ModuleOp,
    function: FuncOp,
    drawn: Mapping[str, np.ndarray],
    cases: Sequence[str] = CHOICES,
) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields inputs with edge values of several kinds: finite ones, then with NaN and infinities.

    NaN and infinities leave little to compare after a matmul.

    Args:
        module: the module of the function.
        function: a function of TTIR ops.
        drawn: its inputs by name, as `draw_inputs` draws them.
        cases: members of `CHOICES`, in order.
    """
    arguments = _arguments(module, function, drawn)
    for case in cases:
        found = [_choice(each, case) for each in arguments]
        has_edges = case == FINITE_CHOICE or any(
            array is not None
            and (array.dtype == bool or not np.isfinite(array.astype(np.float64)).all())
            for array in found
        )
        if has_edges and (changed := _changed(arguments, found)) is not None:
            yield case, changed


def follows_convention(module: ModuleOp, function: FuncOp, target: str) -> list[bool]:
    """Returns for each result whether it depends on an op with other NaN semantics than frameworks.

    See docs/numbers.md, Where frameworks differ.
    """
    in_tiles = Trait.OWN_NAN_IN_TILES if target == "ttmetal" else Trait.NONE
    return _computed_by(module, function, Trait.OWN_NAN | in_tiles)


def leaves_integers(module: ModuleOp, function: FuncOp) -> list[bool]:
    """Returns for each result whether it depends on floats converted to 32-bit integers.

    For NaN and floats out of range, the device gives other integers than the source
    (docs/numbers.md).
    """
    return reaching(module, function, lambda value: _is_converted_float(value.owner))


def _is_converted_float(op: object) -> bool:
    if not isinstance(op, CatalogueOp):
        return False
    if Trait.MAKES_INTEGERS in traits_of(op.definition):
        return True
    return op.name == "ttir.typecast" and (
        element_of(op.operands[0].type) in _FLOATS
        and isinstance(op.result_type.element_type, IntegerType)
    )


def loses_upper_half(module: ModuleOp, function: FuncOp) -> list[bool]:
    """Returns for each result whether it is computed by an op that reads all 64 bits of an integer.

    The device truncates integers to 32 bits.
    """
    ops = set(needs_upper_half(module))
    return reaching(module, function, lambda value: value.owner in ops)


def hides_values(module: ModuleOp, function: FuncOp) -> list[bool]:
    """Returns for each result of a function whether it depends on attention.

    Whether NaN and infinities of hidden keys reach the result depends on the division of keys into
    chunks.
    """
    return _computed_by(module, function, Trait.SKIPS_HIDDEN)


def _computed_by(module: ModuleOp, function: FuncOp, traits: Trait) -> list[bool]:
    """Returns for each result of a function whether it depends on an op with one of the traits."""

    def is_result(value: SSAValue) -> bool:
        owner = value.owner
        return (
            isinstance(owner, CatalogueOp)
            and bool(traits & traits_of(owner.definition))
            and not _has_one_group(owner)
        )

    return reaching(module, function, is_result)


def _has_one_group(op: CatalogueOp) -> bool:
    """Returns whether an op is a convolution of one group.

    Only with several groups are NaN of other groups multiplied by zeros.
    """
    names = {spec.name for spec in op.definition.attributes} & {"groups", "feature_group_count"}
    return any(op.parameter(name) == 1 for name in names)


def _arguments(
    module: ModuleOp, function: FuncOp, drawn: Mapping[str, np.ndarray]
) -> list[_Argument]:
    usage = Usage(module)
    return [
        _argument(usage, function, index, name, drawn[name])
        for index, name in enumerate(argument_names(function))
    ]


def _changed(
    arguments: Sequence[_Argument], found: Sequence[np.ndarray | None]
) -> tuple[np.ndarray, ...] | None:
    """Returns all inputs with the replaced ones, or None if none is replaced."""
    if all(array is None for array in found):
        return None
    return tuple(
        each.drawn if array is None else array for each, array in zip(arguments, found, strict=True)
    )


def _argument(
    usage: Usage, function: FuncOp, index: int, name: str, drawn: np.ndarray
) -> _Argument:
    argument = function.args[index]
    data_type = normalized_data_type(element_of(argument.type))
    assert data_type is not None
    uses = usage.moved(argument)
    kinds = {use.spec.input_kind for use in uses}
    is_index = bool(usage.as_index(argument)) or not kinds.isdisjoint({"index", "expert_mapping"})
    kind = argument_type(function, index)
    return _Argument(
        drawn,
        data_type,
        kind in (ArgumentType.PARAMETER, ArgumentType.CONSTANT) or bool(kinds & _FIXED_KINDS),
        is_index,
        is_mask(name, uses) or masks_scores(name, uses),
        _domain(uses),
        usage.beyond_bounds(argument),
        any(use.name == "typecast" and use.op.result_type.element_type in _FLOATS for use in uses),
        any(_converts_to_integers(use) for use in uses),
        tuple(sorted({number for use in uses for number in _compared(use, drawn.dtype)})),
    )


_FLOATS = (bf16, f16, f32, f64)
_FIXED_KINDS = frozenset({"weight", "variance"})


def _converts_to_integers(use: Use) -> bool:
    """Returns whether a use converts to integers of at most 32 bits, as the device has."""
    if use.name != "typecast":
        return False
    element = use.op.result_type.element_type
    return isinstance(element, IntegerType) and 8 <= element.bitwidth <= 32


def _compared(use: Use, dtype: np.dtype[Any]) -> Iterator[float | int]:
    """Yields the constants that a comparison holds elements against; of integers, also the next.

    A program that has > for >= differs nowhere else.
    """
    if Trait.COMPARES not in use.traits:
        return
    limits = np.iinfo(dtype) if dtype.kind in "iu" else None
    for operand in use.op.operands:
        number = splat_of(operand)
        if number is None or not math.isfinite(number):
            continue
        for near in (number,) if limits is None else (number - 1, number, number + 1):
            # Element types of 16 bits are drawn as float32: what they round is no tie.
            fits = limits.min <= near <= limits.max if limits else _is_exact(near, operand)
            if fits:
                yield near


def _is_exact(number: float, constant: SSAValue) -> bool:
    """Returns whether a number needs no more bits than bfloat16 has, or is an f32 number."""
    element = element_of(constant.type)
    rounded = np.float32(number)
    if element not in (bf16, f16):
        return float(rounded) == number or element == f32
    return float(rounded) == number and not int(rounded.view(np.uint32)) & 0xFFFF


def _domain(uses: list[Use] | tuple[Use, ...]) -> tuple[float, float] | None:
    return common_domain(uses)


def _edges(case: str, argument: _Argument) -> np.ndarray | None:
    """Returns the argument with edge values of a case, or None if the case does not apply."""
    drawn = argument.drawn
    if argument.is_weight or drawn.size == 0:
        return None
    if case == "empty masks":
        return _with_empty_rows(argument)
    if drawn.dtype == bool:
        return np.ones_like(drawn) if case == "all equal" else None
    if argument.is_mask:
        return np.full_like(drawn, drawn.reshape(-1)[0]) if case == "all equal" else None
    if argument.is_index or not argument.data_type.is_float:
        return _integer_edges(case, argument)
    return _float_edges(case, argument)


def _choice(argument: _Argument, case: str) -> np.ndarray | None:
    """Returns the argument with mixed edge values, or None if it has none.

    These are ties, zeros of both signs and subnormals, or integer limits; NaN and infinities
    depending on the case.
    """
    drawn = argument.drawn
    if argument.is_weight or drawn.size == 0:
        return None
    if argument.is_mask or drawn.dtype == bool:
        return _with_empty_rows(argument) if case == CHOICE else None
    if argument.is_index:
        beyond = _integer_edges("one beyond", argument)
        return _integer_edges("first and last", argument) if beyond is None else beyond
    if drawn.size < _LEAST_CHOSEN:
        return None
    if not argument.data_type.is_float:
        return None if argument.becomes_float else _integer_edges("first and last", argument)
    tie = float(drawn.reshape(-1)[0])
    low, high = argument.domain or (-math.inf, math.inf)
    edges = [tie, tie, 0.0, -0.0, 1e-40, -1e-40] if low < 0 < high else [tie]
    edges += [number for number in argument.compared if low <= number <= high]
    if case == CHOICE:
        edges += [math.nan, math.inf, -math.inf]
    return _sprinkled(drawn, edges)


def _with_empty_rows(argument: _Argument) -> np.ndarray | None:
    """Returns a mask, or booleans, with a row of zeros; booleans of one row become all false."""
    found = argument.drawn.copy()
    is_truth = found.dtype == bool
    if not (argument.is_mask or is_truth):
        return None
    if found.ndim < 2 or found.shape[-2] < 2:
        return np.zeros_like(found) if is_truth else None
    if is_truth:
        found[..., -1, :] = False
    elif argument.data_type.is_float:
        found[..., -1, :] = -np.inf
    else:
        found[..., -1, :] = 0
    return found


def _integer_edges(case: str, argument: _Argument) -> np.ndarray | None:
    drawn = argument.drawn
    low, high = drawn.min(), drawn.max()
    if case == "all equal":
        return np.full_like(drawn, high)
    if case == "one beyond" and argument.beyond is not None:
        least = np.iinfo(drawn.dtype).min
        return _sprinkled(drawn, [n for n in argument.beyond if n >= least], every=3)
    if case != "first and last":
        return None
    numbers: list[float] = [low, high]
    if not argument.is_index and argument.domain is None and drawn.dtype.kind in "iu":
        limits = np.iinfo(drawn.dtype)
        # The device has integers of at most 32 bits.
        least, most = max(limits.min, -(2**31)), min(limits.max, 2**32 - 1)
        most = min(most, 2**31 - 1) if limits.min < 0 else most
        # The maximum twice: sums with equally many minima would stay small.
        numbers += [n for n in (least, most, most, 2**24 + 1, 2**31 + 1) if least <= n <= most]
        numbers += argument.compared
    return _sprinkled(drawn, numbers, every=3)


def _float_edges(case: str, argument: _Argument) -> np.ndarray | None:
    drawn = argument.drawn
    low, high = argument.domain or (-math.inf, math.inf)
    match case:
        case "all equal":
            return np.full_like(drawn, drawn.reshape(-1)[0])
        case "ties":
            rounded = np.round(drawn.astype(np.float32) * 2) / 2
            tied = np.where((low <= rounded) & (rounded <= high), rounded, drawn)
            tied = tied.astype(drawn.dtype)
            compared = [number for number in argument.compared if low <= number <= high]
            return _sprinkled(tied, compared) if compared else tied
        case "first and last":
            if math.isinf(low) or math.isinf(high):
                far = [number for number in _BEYOND_INTEGERS if low <= number <= high]
                return _sprinkled(drawn, far) if argument.becomes_integer else None
            return _sprinkled(drawn, [low, high])
        case _ if case == LARGEST:
            is_free = math.isinf(low) and math.isinf(high)
            return _sprinkled(drawn, [3e38, -3e38]) if is_free else None
        case "zeros and subnormals":
            return _sprinkled(drawn, [-0.0, 0.0, 1e-40, -1e-40]) if low < 0 < high else None
        case _ if case == INFINITIES:
            return _sprinkled(drawn, [math.inf, -math.inf])
        case _ if case == NAN:
            return _sprinkled(drawn, [math.nan])
        case _:
            return None


def _sprinkled(drawn: np.ndarray, numbers: list[float], every: int = _EVERY) -> np.ndarray:
    """Replaces every n-th element by the numbers in turn."""
    found = drawn.copy()
    flat = found.reshape(-1)
    places = np.arange(min(every // 2, flat.size - 1), flat.size, every)
    flat[places] = np.resize(np.array(numbers), places.size).astype(found.dtype)
    return found
