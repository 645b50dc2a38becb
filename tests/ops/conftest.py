"""Shared by the tests of all op families: one TTIR op, what it means, and what its lowering means.

The fixture `evaluate` is a function:

    ran = evaluate("softmax", [x], (2, 3), dimension=1)
    ran.golden     # the results of the TTIR op's numpy meaning
    ran.lowered    # the results of the TTNN ops that it becomes, each rounded to its element type
    ran.names      # the names of those ops, such as ["ttnn.softmax"]

Operands are arrays (float32, bfloat16, int32, uint32, uint16, uint8), None for an absent optional
operand, a list of arrays for a variadic one. A result is a shape, or a pair of shape and dtype name
where the dtype is not that of the first operand; several results are a list. Every op made on the
way is verified, and every value is checked against the shape of its type. What an op overwrites
counts as its last result. The fixture `make_op` makes the op only, unverified; `refusal` gives the
message with which its verifier refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, element_of, numpy_name, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import Call, ResultInfo, TTIRDefinition
from ttcodegen.ops.dialects import ttir_op_classes, ttnn_op_classes

ELEMENT_TYPES = {d.numpy: d.element_type for d in DataType if not d.is_block_float}

Operand = np.ndarray | Sequence[np.ndarray] | None
Result = tuple[int, ...] | tuple[tuple[int, ...], str]


@dataclass
class Evaluated:
    """Outputs of an op and of its lowering, and the lowered ops."""

    golden: list[np.ndarray]
    lowered: list[np.ndarray]
    ops: list[CatalogueOp]

    @property
    def names(self) -> list[str]:
        return [op.name for op in self.ops]


def _type_of(array: np.ndarray) -> Attribute:
    return TensorType(ELEMENT_TYPES[array.dtype.name], array.shape)


def _result_type(result: Result, default: str) -> Attribute:
    if len(result) == 2 and isinstance(result[1], str):
        return TensorType(ELEMENT_TYPES[result[1]], result[0])
    return TensorType(ELEMENT_TYPES[default], result)


def _make_op(
    name: str,
    operands: Sequence[Operand],
    result: Result | list[Result],
    **attributes: Any,
) -> tuple[CatalogueOp, dict[SSAValue, np.ndarray]]:
    groups = [[o] if isinstance(o, np.ndarray) else list(o or []) for o in operands]
    arrays = [array for group in groups for array in group]
    block = Block(arg_types=[_type_of(array) for array in arrays])
    values = iter(block.args)
    default = arrays[0].dtype.name if arrays else "float32"
    results = result if isinstance(result, list) else [result]
    op = OpBuilder(ttir_op_classes(), block.add_op).emit_op(
        name,
        [[next(values) for _ in group] for group in groups],
        [_result_type(each, default) for each in results],
        **attributes,
    )
    return op, dict(zip(block.args, arrays, strict=True))


def _computing(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array


def run(op: CatalogueOp, values: dict[SSAValue, np.ndarray]) -> list[np.ndarray]:
    """The results of an op's numpy meaning, rounded to the element types of the results. An operand
    that the op overwrites gets another array in `values`."""
    infos = [ResultInfo(shape_of(r.type), numpy_name(element_of(r.type)) or "") for r in op.results]
    groups = op.operand_groups()
    in_place = op.definition.in_place
    arrays = {name: [_computing(values[v]) for v in group] for name, group in groups.items()}
    if in_place is not None:
        arrays[in_place] = [array.copy() for array in arrays[in_place]]
    call = Call(
        op.name,
        arrays,
        op.parameters(),
        infos,
        {name: [values[v].dtype.name for v in group] for name, group in groups.items()},
    )
    assert op.definition.numpy is not None
    returned = op.definition.numpy(call)
    # numpy makes scalars of arrays of rank 0.
    one = isinstance(returned, np.ndarray | np.generic)
    results = [np.asarray(returned)] if one else list(returned)
    if in_place is not None:
        overwritten = op.operand(in_place)
        values[overwritten] = arrays[in_place][0].astype(values[overwritten].dtype)
    for array, info in zip(results, infos, strict=True):
        assert array.shape == info.shape, f"{op.name} gave {array.shape}, its type is {info.shape}"
    return [a.astype(np.dtype(info.dtype)) for a, info in zip(results, infos, strict=True)]


def _decomposed(op: CatalogueOp, replaced: dict[SSAValue, SSAValue]) -> list[CatalogueOp]:
    """The TTIR ops that replace `op` once nothing can be decomposed further."""
    definition = op.definition
    assert isinstance(definition, TTIRDefinition)
    for index, value in enumerate(op.operands):
        op.operands[index] = replaced.get(value, value)
    op.verify_()
    if definition.decompose is None:
        return [op]
    made: list[Operation] = []
    returned = definition.decompose(OpBuilder(ttir_op_classes(), made.append), op)
    if returned is None:
        return [op]
    ops = [inner for each in made for inner in _decomposed(_catalogue_op(each), replaced)]
    _replace(op, returned, replaced)
    return ops


def _catalogue_op(op: Operation) -> CatalogueOp:
    assert isinstance(op, CatalogueOp)
    return op


def _replace(
    op: CatalogueOp, returned: SSAValue | Sequence[SSAValue], replaced: dict[SSAValue, SSAValue]
) -> None:
    values = [returned] if isinstance(returned, SSAValue) else list(returned)
    for old, new in zip(op.results, values, strict=True):
        assert new.type == old.type, f"{op.name} became {new.type}, expected {old.type}"
        replaced[old] = replaced.get(new, new)


def _lowered(
    op: CatalogueOp, arrays: Mapping[SSAValue, np.ndarray]
) -> tuple[list[np.ndarray], list[CatalogueOp]]:
    replaced: dict[SSAValue, SSAValue] = {}
    ttir_ops = _decomposed(op, replaced)
    results = [replaced.get(result, result) for result in op.results]
    ttnn_ops: list[Operation] = []
    mapping: dict[SSAValue, SSAValue] = {}
    builder = OpBuilder(ttnn_op_classes(), ttnn_ops.append, mapping)
    for ttir_op in ttir_ops:
        definition = ttir_op.definition
        assert isinstance(definition, TTIRDefinition)
        assert definition.lower is not None, f"{ttir_op.name} has no lowering"
        builder.origin = ttir_op
        _replace(ttir_op, definition.lower(builder, ttir_op), mapping)
    values = dict(arrays)
    for ttnn_op in map(_catalogue_op, ttnn_ops):
        ttnn_op.verify_()
        values.update(zip(ttnn_op.results, run(ttnn_op, values), strict=True))
    if op.definition.in_place is not None:
        results.append(op.operand(op.definition.in_place))
    found = [values[mapping.get(result, result)] for result in results]
    return found, [_catalogue_op(each) for each in ttnn_ops]


def _evaluate(name: str, *arguments: Any, **attributes: Any) -> Evaluated:
    op, arrays = _make_op(name, *arguments, **attributes)
    op.verify_()
    values = dict(arrays)
    golden = run(op, values)
    if op.definition.in_place is not None:
        golden.append(values[op.operand(op.definition.in_place)])
    return Evaluated(golden, *_lowered(op, arrays))


@pytest.fixture(scope="session")
def evaluate() -> Callable[..., Evaluated]:
    """See the module's docstring."""
    return _evaluate


@pytest.fixture(scope="session")
def make_op() -> Callable[..., CatalogueOp]:
    """See the module's docstring."""
    return lambda *arguments, **attributes: _make_op(*arguments, **attributes)[0]


@pytest.fixture(scope="session")
def refusal() -> Callable[..., str]:
    """See the module's docstring."""

    def message(*arguments: Any, **attributes: Any) -> str:
        op, _ = _make_op(*arguments, **attributes)
        with pytest.raises(VerifyException) as caught:
            op.verify_()
        return str(caught.value)

    return message
