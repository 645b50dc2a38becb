"""Runs the source program in numpy, before any lowering: what the compiled program should compute.

Floats are computed in float32 whatever their width in the source (float64 in float64) and are not
rounded between ops; integers wrap in their own type; i1 is bool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import ml_dtypes  # registers bfloat16 with numpy
import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import numpy_name
from ttcodegen.dialects.operations.functions import callee_of, location_text
from ttcodegen.dialects.operations.operation import CatalogueOp, operation_name
from ttcodegen.dialects.ttcore.mesh import declared_mesh
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.interface import argument_names
from ttcodegen.numerics.execution import Executor, Function, Observer, Step
from ttcodegen.numerics.rounding import in_compute_dtype
from ttcodegen.transforms.rebuilding import body_of

assert ml_dtypes is not None


@dataclass(frozen=True)
class SourceTensor:
    """A tensor of the source."""

    shape: tuple[int, ...]
    dtype: str

    def rounded(self, array: np.ndarray) -> np.ndarray:
        """The array in the dtype that is computed with."""
        return in_compute_dtype(array, self.dtype)

    def keeps(self, moved: SourceTensor) -> bool:
        """Nothing is rounded between tensors of one dtype."""
        return self.dtype == moved.dtype


class Golden:
    """Runs the functions of a module of TTIR ops; the module must not change as long as it is used.

    Raises:
        CompileError: at an op or a type that has no meaning in numpy.
    """

    def __init__(self, module: ModuleOp, observe: Observer | None = None) -> None:
        functions = [_function(op) for op in module.ops if isinstance(op, FuncOp)]
        self._executor = Executor({function.name: function for function in functions}, observe)

    def run(self, name: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results of a function: float32, float64, integers and bool. Inputs are not changed.

        Raises:
            CompileError: if there is no such function, or the inputs do not fit it.
            ExecutionError: if an op fails or gives another shape than the source says.
        """
        return self._executor.run(name, inputs)


def _function(function: FuncOp) -> Function:
    block = body_of(function)
    tensors: list[SourceTensor] = []
    index: dict[SSAValue, int] = {}
    types: dict[Attribute, SourceTensor] = {}

    def add(value: SSAValue, op: Operation) -> int:
        tensor = types.get(value.type)
        if tensor is None:
            tensor = types[value.type] = _tensor(value.type, op)
        index[value] = len(tensors)
        tensors.append(tensor)
        return index[value]

    names = argument_names(function)
    arguments = [
        (name, add(argument, function)) for name, argument in zip(names, block.args, strict=True)
    ]
    steps: list[Step] = []
    results: list[int] = []
    for op in block.ops:
        operands = tuple([index[value] for value in op.operands])
        if isinstance(op, ReturnOp):
            results.extend(operands)
            continue
        step_results = tuple([add(result, op) for result in op.results])
        steps.append(_step(op, operands, step_results))
    return Function.of(function.sym_name.data, tensors, arguments, steps, results)


def _tensor(type_: Attribute, op: Operation) -> SourceTensor:
    tensor = cast("TensorType[Attribute]", type_) if isinstance(type_, TensorType) else None
    dtype = numpy_name(tensor.element_type) if tensor is not None else None
    if tensor is None or dtype is None:
        raise CompileError(f"values of type {type_} cannot be computed on the host", op)
    return SourceTensor(tuple(tensor.get_shape()), dtype)


def _step(op: Operation, operands: tuple[int, ...], results: tuple[int, ...]) -> Step:
    location = location_text(op)
    if (callee := callee_of(op)) is not None:
        return Step(op.name, location, operands, results, callee=callee)
    if not isinstance(op, CatalogueOp) or op.definition.numpy is None:
        raise CompileError(f"'{operation_name(op)}' cannot be computed on the host", op)
    try:
        sizes, attributes = tuple(op.segments()), op.parameters()
    except VerifyException as error:
        raise CompileError(str(error), op) from None
    if op.definition.chips is not None:
        attributes["mesh_shape"] = declared_mesh(op)
    return Step(op.name, location, operands, results, op.definition, sizes, attributes)
