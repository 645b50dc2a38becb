"""Computes an op with its numpy meaning: folding of constants, and tests of rewrites."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, numpy_name, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.core.definition import Call, ResultInfo
from ttcodegen.transforms.rewriting import is_repeatable

if TYPE_CHECKING:
    import numpy


def evaluate(
    op: CatalogueOp,
    operands: Sequence[numpy.ndarray],
    shapes: Sequence[tuple[int, ...]] | None = None,
) -> list[numpy.ndarray]:
    """The results of the op for these operands (floats as float32), each rounded to its own type.

    `shapes` are those of the results where they differ from the op's: a meaning that is elementwise
    is as good for one element. Raises ValueError if the op has no meaning in numpy.
    """
    meaning = op.definition.numpy
    if meaning is None:
        raise ValueError(f"{op.name} has no numpy meaning")
    groups: dict[str, list[numpy.ndarray]] = {}
    dtypes: dict[str, list[str]] = {}
    start = 0
    for spec, size in zip(op.definition.operands, op.segments(), strict=True):
        groups[spec.name] = list(operands[start : start + size])
        dtypes[spec.name] = [_dtype(value) for value in op.operands[start : start + size]]
        start += size
    if shapes is None:
        shapes = [shape_of(result.type) for result in op.results]
    infos = [
        ResultInfo(shape, _dtype(result)) for shape, result in zip(shapes, op.results, strict=True)
    ]
    with np.errstate(all="ignore"):
        found = meaning(Call(op.name, groups, op.parameters(), infos, dtypes))
        arrays = [found] if isinstance(found, np.ndarray | np.generic) else list(found)
        return [
            rounded(np.asarray(array), info.dtype)
            for array, info in zip(arrays, infos, strict=True)
        ]


def known_elements(value: SSAValue, most_elements: int = 2**20) -> numpy.ndarray | None:
    """The elements of a value that depends on constants alone (floats as float32); None if it does
    not, or if it or what it is made of has too many elements or ops to compute on the way."""
    budget = [_MOST_OPS]
    known: dict[SSAValue, numpy.ndarray | None] = {}

    def found(value: SSAValue) -> numpy.ndarray | None:
        if value not in known:
            known[value] = computed(value)
        return known[value]

    def computed(value: SSAValue) -> numpy.ndarray | None:
        op = value.owner
        budget[0] -= 1
        if budget[0] < 0 or not isinstance(op, CatalogueOp) or len(op.results) != 1:
            return None
        if prod(shape_of(value.type)) > most_elements or not is_repeatable(op):
            return None
        operands: list[numpy.ndarray] = []
        for operand in op.operands:
            array = found(operand)
            if array is None:
                return None
            operands.append(array)
        try:
            return evaluate(op, operands)[0]
        except ValueError:
            return None

    return found(value)


_MOST_OPS = 128


def rounded(array: numpy.ndarray, dtype: str) -> numpy.ndarray:
    """The array as a tensor of that dtype holds it; bf16 and f16 values come as float32."""
    if dtype in ("bfloat16", "float16"):
        import ml_dtypes  # registers bfloat16 with numpy

        assert ml_dtypes is not None
        return array.astype(np.dtype(dtype)).astype(np.float32)
    return array.astype(np.dtype(dtype))


def _dtype(value: SSAValue) -> str:
    name = numpy_name(element_of(value.type))
    if name is None:
        raise ValueError(f"tensors of {element_of(value.type)} have no numpy meaning")
    return name
