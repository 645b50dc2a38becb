"""Elements of the values of a program under construction, and their stability.

Each value is computed several times: as the golden does, rounded to bf16 after every op that may
round, and with a random error as large as that rounding. Where the runs differ by more than what
the check forgives, the program amplifies rounding: a difference between two runs would say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import ml_dtypes  # registers bfloat16 with numpy
import numpy as np
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, normalized_data_type, numpy_name, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.numerics.comparison import compare
from ttcodegen.numerics.rounding import in_compute_dtype, rounded_for_device
from ttcodegen.numerics.tolerances import EQUAL, Tolerance
from ttcodegen.ops.core.definition import Call, ResultInfo

assert ml_dtypes is not None

RUNS = 4
"""The first is exact; the second rounds to bf16, which brings about zeros and equal numbers that
no random error does; the others have random errors."""
FLOAT_LIMIT = 1000.0
"""The largest magnitude of floats: a product of two is still far from the end of any type."""
INTEGER_LIMIT = 256
"""The largest magnitude of integers that are computed with: sums and products of some of them are
integers that every float type of 32 bits holds."""

_ROUNDING = 2.0**-8
# What the check forgives between flatbuffer and golden, divided by five; and of the range between
# C++ and flatbuffer, which differ far less than these errors.
_STABLE = {
    "bfloat16": Tolerance(0.998, 0.05, 0.01, deviation=2.0**-6, rounding=2.0**-7),
    "float32": Tolerance(0.998, 0.05, 0.01, deviation=2.0**-12, rounding=2.0**-7),
}

MOVING = frozenset(
    """
    broadcast concat concatenate_heads gather index index_select permute rearrange repeat
    repeat_interleave reshape reverse slice_dynamic slice_static
    split_query_key_value_and_split_heads squeeze to_layout transpose unsqueeze where
    """.split()
)
"""Ops whose results are elements of their operands, however large those are."""

_UNROUNDED = MOVING | frozenset(
    """
    abs ceil clamp_scalar clamp_tensor constant empty floor full max maximum min minimum neg ones
    pad relu relu6 sign trunc zeros
    """.split()
)
"""Ops whose floats need no rounding if those of the operands need none."""

_COMPARING = frozenset("eq ne lt le gt ge".split())
_BITWISE = frozenset("bitwise_and bitwise_or bitwise_xor bitwise_not".split())

Runs = tuple[np.ndarray, ...]


class Rejected(Exception):
    """An op was not added: its results would not be reliable, or nothing fits it."""


@dataclass(frozen=True)
class Argument:
    """Distribution of an argument: uniform in bounds that integers include."""

    low: float
    high: float
    seed: int


def draw_argument(value: SSAValue, argument: Argument) -> np.ndarray:
    """The elements of an argument in the dtype of its type: numbers that the device's type for it
    can hold."""
    element, shape = element_of(value.type), shape_of(value.type)
    data_type, name = normalized_data_type(element), numpy_name(element)
    assert data_type is not None
    assert name is not None
    rng = np.random.default_rng(argument.seed)
    if data_type.is_float and name != "bool":
        drawn = rng.uniform(argument.low, argument.high, shape).astype(np.float32)
        return rounded_for_device(drawn, data_type).astype(name)
    low, high = math.ceil(argument.low), math.floor(argument.high)
    return rng.integers(low, high + 1, shape).astype(name)


def evaluate(op: CatalogueOp, values: Mapping[SSAValue, Runs]) -> list[Runs]:
    """The results of an op in all runs.

    Raises:
        Rejected: if a result is not finite, too large, or differs between the runs.
    """
    _require_apart(op, values)
    runs = [_evaluate(op, values, run) for run in range(RUNS)]
    results = [tuple(run[index] for run in runs) for index in range(len(op.results))]
    for value, result in zip(op.results, results, strict=True):
        _require_in_range(op, result[0])
        _require_stable(value, result)
    _require_no_wrap(op, values, results)
    return results


def _require_apart(op: CatalogueOp, values: Mapping[SSAValue, Runs]) -> None:
    """Floats that are compared are the same in all runs, or further apart than rounding brings
    them: of two that ought to be equal, as tan(atan(x)) and x, no run says how a library with
    another last bit compares them."""
    if op.definition.short_name not in _COMPARING or len(set(op.operands)) < 2:
        return
    runs = [values[operand] for operand in op.operands]
    first, second = runs[0][0], runs[1][0]
    if first.dtype.kind != "f" or all(_is_certain(each) for each in runs):
        return
    distance = np.abs(first - second)
    near = distance <= 2 * _ROUNDING * np.maximum(np.abs(first), np.abs(second))
    if near.any():
        raise Rejected("rounding decides about a comparison")


def _is_certain(runs: Runs) -> bool:
    return all(np.array_equal(run, runs[0]) for run in runs[1:])


def _require_no_wrap(
    op: CatalogueOp, values: Mapping[SSAValue, Runs], results: Sequence[Runs]
) -> None:
    """The integers of the device have more bits than the narrow ones of the source, and fewer than
    the wide ones: what is computed with them is the same only as long as it fits into both."""
    if not any(_is_widened(value) for value in (*op.operands, *op.results)):
        return
    device = {
        value: (values[value][0].astype(_device_dtype(value)),) if _is_widened(value) else runs
        for value, runs in ((value, values[value]) for value in op.operands)
    }
    for found, result in zip(_evaluate(op, device, 0, on_device=True), results, strict=True):
        if not np.array_equal(found, result[0]):
            raise Rejected("an integer is too large for its type")


def _device_dtype(value: SSAValue) -> str:
    data_type = normalized_data_type(element_of(value.type))
    assert data_type is not None
    return data_type.numpy


def _is_widened(value: SSAValue) -> bool:
    """Returns whether a value has integers of another width than on the device."""
    name = numpy_name(element_of(value.type)) or ""
    return name.lstrip("u").startswith("int") and name != _device_dtype(value)


def _evaluate(
    op: CatalogueOp, values: Mapping[SSAValue, Runs], run: int, on_device: bool = False
) -> list[np.ndarray]:
    def dtype(value: SSAValue) -> str:
        widened = on_device and _is_widened(value)
        return _device_dtype(value) if widened else numpy_name(element_of(value.type)) or ""

    infos = [ResultInfo(shape_of(result.type), dtype(result)) for result in op.results]
    groups = op.operand_groups()
    call = Call(
        op.name,
        {name: [values[value][run] for value in group] for name, group in groups.items()},
        op.parameters(),
        infos,
        {name: [dtype(value) for value in group] for name, group in groups.items()},
    )
    assert op.definition.numpy is not None
    with np.errstate(all="ignore"):
        found = op.definition.numpy(call)
    arrays = [found] if isinstance(found, np.ndarray | np.generic) else list(found)
    results: list[np.ndarray] = []
    for array, info in zip(arrays, infos, strict=True):
        array = in_compute_dtype(np.asarray(array), info.dtype)
        assert array.shape == info.shape, f"{op} gave {array.shape}"
        if run and array.dtype.kind == "f" and rounds(op):
            array = _perturbed(array, run, [len(values), len(results)])
        results.append(array)
    return results


def _perturbed(array: np.ndarray, run: int, place: list[int]) -> np.ndarray:
    if run == 1:
        return array.astype(ml_dtypes.bfloat16).astype(array.dtype)
    # Another error for each op: equal ones cancel each other out.
    noise = np.random.default_rng([run, *place]).uniform(-_ROUNDING, _ROUNDING, array.shape)
    return (array * (1.0 + noise)).astype(array.dtype)


def rounds(op: CatalogueOp) -> bool:
    """Returns whether the device may have to round the floats that an op gives."""
    name = op.definition.short_name
    if name != "typecast":
        return name not in _UNROUNDED
    source, target = (
        normalized_data_type(element_of(value.type)) for value in (op.operands[0], op.results[0])
    )
    assert source is not None
    assert target is not None
    # Small integers are numbers of every float type.
    return source.is_float and target is not source and target.value.numpy != "float32"


def _require_in_range(op: CatalogueOp, array: np.ndarray) -> None:
    if array.dtype.kind == "b" or array.size == 0:
        return
    if array.dtype.kind == "f":
        if not np.isfinite(array).all() or np.abs(array).max() > FLOAT_LIMIT:
            raise Rejected("a result is too large")
        return
    name = op.definition.short_name
    if name in MOVING or name in _BITWISE:
        return
    if max(abs(int(array.min())), abs(int(array.max()))) > INTEGER_LIMIT:
        raise Rejected("an integer is too large")


def is_computable(op_name: str, array: np.ndarray) -> bool:
    """Returns whether an op may compute with these elements.

    Integers beyond the limit are moved and compared, but nothing is computed with them.
    """
    if array.dtype.kind not in "iu" or array.size == 0:
        return True
    if op_name in MOVING or op_name in _BITWISE or op_name in _COMPARING:
        return True
    return max(abs(int(array.min())), abs(int(array.max()))) <= INTEGER_LIMIT


def _require_stable(value: SSAValue, runs: Sequence[np.ndarray]) -> None:
    tolerance = _STABLE[_device_dtype(value)] if runs[0].dtype.kind == "f" else EQUAL
    for other in runs[1:]:
        if other is not runs[0] and not compare(other, runs[0], tolerance).passed:
            raise Rejected("rounding decides about a result")
