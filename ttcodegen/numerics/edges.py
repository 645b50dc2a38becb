"""Inputs from the edges of what arguments may hold, for `--check=edges`.

Each case puts edges of one kind into the drawn inputs of a function. Weights stay as they are
drawn, for they are finite. What an argument is to the program is read off its uses, as for drawing:
indices stay within bounds, masks hide whole rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ttcodegen.dialects.core.datatypes import DataType, element_of, normalized_data_type
from ttcodegen.dialects.ttcore.dialect import ArgumentType
from ttcodegen.naming.arguments import argument_names
from ttcodegen.numerics.drawing import Usage, Use, common_domain, is_mask, masks_scores
from ttcodegen.transforms.ttnn.layout import argument_type

CASES = (
    "all equal",
    "ties",
    "first and last",
    "zeros and subnormals",
    "infinities",
    "NaN",
    "empty masks",
)
"""What is put into the inputs, one kind at a time."""

_EVERY = 13
"""One of so many elements is an edge, so that most results say something."""


@dataclass(frozen=True)
class _Argument:
    """What is known of an argument."""

    drawn: np.ndarray
    data_type: DataType
    is_weight: bool
    is_index: bool
    is_mask: bool
    domain: tuple[float, float] | None


def edge_cases(
    module: ModuleOp, function: FuncOp, drawn: Mapping[str, np.ndarray]
) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """The cases that change any input, by name, each with the inputs of the function.

    Args:
        module: the module of the function.
        function: a function of TTIR ops.
        drawn: its inputs by name, as `draw_inputs` draws them.
    """
    usage = Usage(module)
    arguments = [
        _argument(usage, function, index, name, drawn[name])
        for index, name in enumerate(argument_names(function))
    ]
    for case in CASES:
        found = [_edges(case, each) for each in arguments]
        if any(array is not None for array in found):
            yield (
                case,
                tuple(
                    each.drawn if array is None else array
                    for each, array in zip(arguments, found, strict=True)
                ),
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
    )


_FIXED_KINDS = frozenset({"weight", "variance"})


def _domain(uses: list[Use] | tuple[Use, ...]) -> tuple[float, float] | None:
    return common_domain(uses)


def _edges(case: str, argument: _Argument) -> np.ndarray | None:
    """The argument with edges of a case, None if that case is none for it."""
    drawn = argument.drawn
    if argument.is_weight or drawn.size == 0:
        return None
    if case == "empty masks":
        return _with_empty_rows(argument) if argument.is_mask else None
    if argument.is_mask or drawn.dtype == bool:
        return np.full_like(drawn, drawn.reshape(-1)[0]) if case == "all equal" else None
    if argument.is_index or not argument.data_type.is_float:
        return _integer_edges(case, argument)
    return _float_edges(case, argument)


def _with_empty_rows(argument: _Argument) -> np.ndarray | None:
    found = argument.drawn.copy()
    if found.ndim < 2 or found.shape[-2] < 2:
        return None
    if found.dtype == bool:
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
    if case != "first and last":
        return None
    numbers: list[float] = [low, high]
    if not argument.is_index and argument.domain is None and drawn.dtype.kind in "iu":
        limits = np.iinfo(drawn.dtype)
        # The device has integers of at most 32 bits.
        least, most = max(limits.min, -(2**31)), min(limits.max, 2**32 - 1)
        most = min(most, 2**31 - 1) if limits.min < 0 else most
        numbers += [n for n in (least, most, 2**24 + 1, 2**31 + 1) if least <= n <= most]
    return _sprinkled(drawn, numbers, every=3)


def _float_edges(case: str, argument: _Argument) -> np.ndarray | None:
    drawn = argument.drawn
    low, high = argument.domain or (-math.inf, math.inf)
    match case:
        case "all equal":
            return np.full_like(drawn, drawn.reshape(-1)[0])
        case "ties":
            rounded = np.round(drawn.astype(np.float32) * 2) / 2
            return np.where((low <= rounded) & (rounded <= high), rounded, drawn).astype(
                drawn.dtype
            )
        case "first and last":
            if math.isinf(low) or math.isinf(high):
                return None
            return _sprinkled(drawn, [low, high])
        case "zeros and subnormals":
            return _sprinkled(drawn, [-0.0, 0.0, 1e-40, -1e-40]) if low < 0 < high else None
        case "infinities":
            return _sprinkled(drawn, [math.inf, -math.inf])
        case _:
            return _sprinkled(drawn, [math.nan])


def _sprinkled(drawn: np.ndarray, numbers: list[float], every: int = _EVERY) -> np.ndarray:
    """Some of the elements replaced by the numbers in turn."""
    found = drawn.copy()
    flat = found.reshape(-1)
    places = np.arange(min(every // 2, flat.size - 1), flat.size, every)
    flat[places] = np.resize(np.array(numbers), places.size).astype(found.dtype)
    return found
