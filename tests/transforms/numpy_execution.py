"""Runs a function of the IR through the catalogue's numpy meanings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, numpy_name, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.transforms.const_eval import evaluate, rounded


def draw(function: FuncOp, seed: int = 0, low: float = -1.0, high: float = 1.0) -> list[np.ndarray]:
    """Inputs for a function: small floats, integers from 0 to 3, booleans."""
    generator = np.random.default_rng(seed)
    inputs: list[np.ndarray] = []
    for type_ in function.function_type.inputs.data:
        shape, dtype = shape_of(type_), numpy_name(element_of(type_))
        assert dtype is not None
        if dtype == "bool":
            inputs.append(generator.integers(0, 2, shape).astype(bool))
        elif "int" in dtype:
            inputs.append(generator.integers(0, 4, shape).astype(dtype))
        else:
            drawn = generator.uniform(low, high, shape).astype(np.float32)
            inputs.append(rounded(drawn, dtype) if dtype != "float64" else drawn.astype("float64"))
    return inputs


def run(function: FuncOp, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of the function. Inputs are converted to the types of its arguments; those that
    it overwrites are copied."""
    block = function.body.block
    values: dict[SSAValue, np.ndarray] = {}
    for argument, array in zip(block.args, inputs, strict=True):
        dtype = numpy_name(element_of(argument.type))
        assert dtype is not None
        values[argument] = rounded(np.array(array), dtype)
    for op in block.ops:
        operands = [values[operand] for operand in op.operands]
        if isinstance(op, ReturnOp):
            return operands
        assert isinstance(op, CatalogueOp), op.name
        results = evaluate(op, operands)
        for result, array in zip(op.results, results, strict=True):
            assert array.shape == shape_of(result.type), f"{op}: found {array.shape}"
            values[result] = array
    raise AssertionError("the function has no return")
