"""Programs built op by op, and passes checked by the numbers before and after.

    program = Program()
    x = program.argument(2, 3)
    result = transformed(program.returns(program.make.like("relu", x)), TTIRCanonicalizePass())
    assert result.names == ["relu"]

`transformed` runs the program in numpy before and after the passes and compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from tests.transforms.numpy_execution import draw, run
from ttcodegen.dialects.core.datatypes import element_of, f32, numpy_name, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.dialect import ArgumentType, ArgumentTypeAttr
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.dialects import load_dialects, ttir_op_classes
from ttcodegen.transforms.pass_runner import PassRunner

TOLERANCES = {"bfloat16": 0.04, "float32": 1e-4, "float64": 1e-4}
"""The largest error of a rewrite, in parts of the range of the result."""


class Program:
    """A function under construction: its arguments, and `make` for its ops."""

    def __init__(self) -> None:
        self._block = Block()
        self._kinds: list[str] = []
        self.make = OpBuilder(ttir_op_classes(), self._block.add_op)

    def argument(self, *shape: int, element: Attribute = f32, kind: str = "input") -> SSAValue:
        """The next argument; `kind` is its argument type."""
        self._kinds.append(kind)
        return self._block.insert_arg(TensorType(element, shape), len(self._block.args))

    def weight(self, *shape: int, element: Attribute = f32) -> SSAValue:
        """The next argument, a parameter of the model."""
        return self.argument(*shape, element=element, kind="parameter")

    def number(self, value: float, *shape: int, element: Attribute = f32) -> SSAValue:
        """A tensor of one number."""
        return self.make.full(list(shape), value, element)

    def returns(self, *values: SSAValue) -> ModuleOp:
        """The module with the function, named main."""
        self._block.add_op(ReturnOp(*values))
        types = FunctionType.from_lists(
            [argument.type for argument in self._block.args], [value.type for value in values]
        )
        attributes = [
            DictionaryAttr({"ttcore.argument_type": ArgumentTypeAttr(ArgumentType(kind))})
            for kind in self._kinds
        ]
        function = FuncOp("main", types, Region([self._block]), arg_attrs=ArrayAttr(attributes))
        return ModuleOp([function])


class Formulas(Program):
    """A program with the usual formulas; numbers become tensors of the other operand's shape."""

    def n(self, name: str, value: SSAValue, number: float, swap: bool = False) -> SSAValue:
        """An op of a tensor and a number."""
        constant = self.make.full(shape_of(value.type), number, element_of(value.type))
        operands = [constant, value] if swap else [value, constant]
        return self.make.emit(name, operands, value.type)

    def b(self, name: str, *operands: SSAValue) -> SSAValue:
        """An elementwise op that broadcasts."""
        return self.make.broadcasting(name, *operands)

    def u(self, name: str, value: SSAValue) -> SSAValue:
        """An elementwise op of one tensor."""
        return self.make.like(name, value)

    def broadcast_along(self, value: SSAValue, like: SSAValue, dim: int = -1) -> SSAValue:
        """A reduced tensor without its dimension, reshaped and broadcast back explicitly."""
        shape = list(shape_of(like.type))
        kept = list(shape)
        kept[dim] = 1
        value = self.make.reshape(value, kept)
        factors = [a // b for a, b in zip(shape, kept, strict=True)]
        return self.make.emit("broadcast", [value], like.type, broadcast_dimensions=factors)


@dataclass(frozen=True)
class Transformed:
    """A module after passes."""

    module: ModuleOp

    @property
    def function(self) -> FuncOp:
        """Its only function."""
        (function,) = (op for op in self.module.body.block.ops if isinstance(op, FuncOp))
        return function

    @property
    def ops(self) -> list[CatalogueOp]:
        """The ops of the function, in order."""
        return [op for op in self.function.body.block.ops if isinstance(op, CatalogueOp)]

    @property
    def names(self) -> list[str]:
        """The short names of the ops, constants left out."""
        return [op.definition.short_name for op in self.ops if op.definition.short_name != "full"]

    def op(self, name: str) -> CatalogueOp:
        """The only op of that short name."""
        (found,) = (op for op in self.ops if op.definition.short_name == name)
        return found


def apply(module: ModuleOp, *passes: ModulePass) -> Transformed:
    """The module after the passes, verified after each."""
    PassRunner(load_dialects(), verify=True).run(module, list(passes))
    return Transformed(module)


def transformed(
    module: ModuleOp,
    *passes: ModulePass,
    low: float = -1.0,
    high: float = 1.0,
    tolerance: float | None = None,
) -> Transformed:
    """The module after the passes; its results are those of the module before, as closely as their
    types (or a `tolerance`) allow, for inputs drawn between `low` and `high`."""
    module.verify()
    before = Transformed(module).function
    inputs = draw(before, low=low, high=high)
    expected = run(before, inputs)
    result = apply(module, *passes)
    compare(expected, run(result.function, inputs), before, tolerance)
    return result


def compare(
    expected: Sequence[np.ndarray],
    found: Sequence[np.ndarray],
    like: FuncOp,
    tolerance: float | None = None,
) -> None:
    """Fails unless the results are equal as closely as their types allow."""
    for first, second, type_ in zip(expected, found, like.function_type.outputs.data, strict=True):
        name = numpy_name(element_of(type_))
        assert first.shape == second.shape
        if name not in TOLERANCES:
            np.testing.assert_array_equal(first, second)
            continue
        finite = first[np.isfinite(first)]
        limit = (tolerance or TOLERANCES[name]) * max(1.0, float(np.abs(finite).max(initial=0.0)))
        np.testing.assert_allclose(second, first, rtol=0, atol=limit)


def operations(module: ModuleOp, name: str) -> list[Operation]:
    """All operations of a name, in order."""
    return [op for op in module.walk() if op.name == name]
