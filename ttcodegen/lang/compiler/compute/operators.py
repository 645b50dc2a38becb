"""Translation of operators and language functions to block expressions."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from math import isinf
from typing import Any

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.lang.compiler.compute.compute import BlockWriter
from ttcodegen.lang.compiler.compute.expressions import (
    Broadcast,
    Expression,
    Fill,
    Matmul,
    Reduction,
    Reshaped,
    Transposed,
    binary_call,
    exponential,
    inner_reduction,
    masked,
    math_call,
    outer_reduction,
    power,
    where,
)
from ttcodegen.lang.compiler.python.captured import Captured
from ttcodegen.lang.compiler.python.numbers import SPELLINGS, KernelFloat, is_computed
from ttcodegen.lang.compiler.python.pipe_nets import NetUses
from ttcodegen.lang.compiler.python.translation import KernelTranslator
from ttcodegen.lang.simulator import functions
from ttcodegen.lang.simulator.buffers import DataflowBuffer, packed_tiles
from ttcodegen.lang.simulator.context import Kernel
from ttcodegen.lang.simulator.expressions import no_condition, no_element
from ttcodegen.lang.simulator.functions import ExponentialFlags, filled_layout, no_shape
from ttcodegen.lang.simulator.shapes import (
    Shape,
    broadcast_axes,
    checked_shape,
    product_shape,
    reduced,
    same_layouts,
    same_shapes,
    squeezed,
    tiled_only,
    transposed_shape,
    unsqueezed,
)
from ttcodegen.lang.ttl import math as ttl_math


class ExpressionTranslator(KernelTranslator):
    """Translates computations on blocks; subclasses define the blocks."""

    def __init__(
        self, kernel: Kernel, captured: Captured, writer: BlockWriter, nets: NetUses
    ) -> None:
        super().__init__(kernel, captured, writer.kernel.builder, nets)
        self.writer = writer
        writer.arithmetic = self.arithmetic
        self.calls |= {
            ttl_math.max: lambda a, b: self.operator("max", a, b),  # pyright: ignore
            ttl_math.min: lambda a, b: self.operator("min", a, b),  # pyright: ignore
            ttl_math.pow: self._power,
            functions.fill: self._fill,
            functions.broadcast: self._broadcast,
            functions.transpose: self._transpose,
            functions.where: self._where,
            functions.mask: partial(self._masked, 0.0),
            functions.mask_posinf: partial(self._masked, float("inf")),
            functions.squeeze: self._squeeze,
            functions.unsqueeze: self._unsqueeze,
            functions.reduce_sum: partial(self._reduce, "sum"),
            functions.reduce_max: partial(self._reduce, "max"),
        }
        for call, name in ttl_math.COMPARISONS.items():
            self.calls[call] = partial(self.operator, name)
        for call, function in ttl_math.FUNCTIONS.items():
            self.calls[call] = self._math(function)

    def truth(self, value: Any) -> bool:
        if isinstance(value, Expression):
            raise no_condition()
        return super().truth(value)

    def subscript(self, value: Any, index: Any, node: ast.AST) -> Any:
        if isinstance(value, Expression):
            self.here = node
            raise no_element()
        return super().subscript(value, index, node)

    @abstractmethod
    def expression(self, value: Any, what: str = "it") -> Expression:
        """Converts a value to a block expression; reading a block is an event of its lifetime."""

    def _same_shape_operands(self, what: str, *values: Any) -> list[Expression]:
        found = [self.expression(value, what) for value in values]
        same_layouts(what, [each.elements is None for each in found])
        same_shapes(what, [each.units for each in found])
        return found

    def _where(self, condition: Any, true_value: Any, false_value: Any) -> Expression:
        what = "ttl.block.where"
        found = self._same_shape_operands(what, condition, true_value, false_value)
        self._check_same_type(what, found[1:])
        return where(found[0], found[1], found[2])

    def _masked(self, number: float, expr: Any, mask: Any) -> Expression:
        found = self._same_shape_operands("ttl.block.mask", expr, mask)
        if isinf(number) and not found[0].data_type.is_float:
            raise functions.no_infinity()
        return masked(found[0], found[1], number)

    def operator(self, symbol: str, left: Any, right: Any) -> Expression:
        """Applies an elementwise function of two operands."""
        spelling = SPELLINGS.get(symbol, symbol)
        first, second = self._same_shape_operands(spelling, left, right)
        self._check_same_type(spelling, (first, second))
        found = binary_call(symbol, first, second)
        if found is None:
            self.refuse(self._no_operation(spelling, first))
        return found

    def _check_same_type(self, what: str, operands: Sequence[Expression]) -> None:
        types = {each.data_type for each in operands if not isinstance(each, Fill)}
        if len(types) > 1:
            self.refuse(f"the operands of {what} have different data types")

    def _no_operation(self, what: str, of: Expression) -> str:
        return f"the device has no operation {what} of blocks of {of.data_type.mlir}"

    def _elementwise(self, name: str, numbers: Sequence[float], of: Expression) -> Expression:
        """Applies an elementwise function of `ttl.math`."""
        found = math_call(ttl_math.MATH_FUNCTIONS[name], numbers, of)
        if found is None:
            self.refuse(self._no_operation(f"ttl.math.{name}", of))
        return found

    def _float_operand(self, what: str, value: Any) -> Expression:
        """Converts an operand of the matrix engine, which takes floats only."""
        found = self._tiled_operand(what, value)
        if not found.data_type.is_float:
            self.refuse(self._no_operation(what, found))
        return found

    def binary(self, symbol: str, left: Any, right: Any, node: ast.AST) -> Any:
        if not isinstance(left, Expression) and not isinstance(right, Expression):
            return super().binary(symbol, left, right, node)
        self.here = node
        if symbol == "Pow":
            return self._power(left, right)
        if symbol == "MatMult":
            return self._matmul(left, right)
        return self.operator(symbol, left, right)

    def unary(self, symbol: str, value: Any, node: ast.AST) -> Any:
        if isinstance(value, Expression) and symbol == "USub":
            return self._elementwise("neg", (), self.expression(value))
        return super().unary(symbol, value, node)

    def _magnitude(self, value: Any) -> Any:
        if isinstance(value, Expression):
            return self._elementwise("abs", (), self.expression(value))
        return super()._magnitude(value)

    def _math(self, function: Any) -> Callable[..., Expression]:
        def call(expr: Any, *numbers: Any, **named: Any) -> Expression:
            flags = ttl_math.bound_flags(function, named)
            bound = ttl_math.bound_numbers(function, numbers, named)
            of = self.expression(expr, f"ttl.math.{function.name}")
            if flags == ExponentialFlags():
                return self._elementwise(function.name, bound, of)
            if flags.iterations != ExponentialFlags.iterations:
                self.refuse(
                    f"the compiler takes the exponential of whole tiles, iterations="
                    f"{ExponentialFlags.iterations}, not {flags.iterations}"
                )
            if flags.scale is not None:
                of = self.operator("Mult", of, Fill(of.shape, flags.scale, elements=of.elements))
            if not of.data_type.is_float:
                self.refuse(self._no_operation(f"ttl.math.{function.name}", of))
            return exponential(of, flags)

        return call

    def _tiled_operand(self, what: str, value: Any) -> Expression:
        """Converts an operand of a function that row-major blocks do not support."""
        found = self.expression(value, what)
        tiled_only(what, found.elements is None)
        return found

    def _power(self, expr: Any, exponent: Any) -> Expression:
        if not isinstance(exponent, int) or exponent < 0:
            self.refuse(f"the exponent of a power is an unsigned integer, not {exponent!r}")
        return power(self.expression(expr, "**"), exponent)

    def _matmul(self, left: Any, right: Any) -> Expression:
        a, b = self._float_operand("@", left), self._float_operand("@", right)
        return Matmul(product_shape(a.shape, b.shape), a, b)

    def _fill(
        self,
        *arguments: Any,
        value: Any = None,
        shape: Any = None,
        layout: Any = None,
        dtype: Any = None,
        tile: Any = None,
    ) -> Expression:
        rest = list(arguments)
        target = rest.pop(0) if rest and isinstance(rest[0], Expression) else None
        value = rest.pop(0) if value is None and rest else value
        shape = rest.pop(0) if shape is None and rest else shape
        held = self.writer.only_type
        given_layout = functions.checked_layout(layout, dtype, tile)
        if dtype is not None and isinstance(value, int | float):
            value = functions.rounded_number(value, dtype)
        number = self._fill_value(value, held)
        sizes = self._target_shape("ttl.block.fill", target, shape)
        is_tiled = target.elements is None if isinstance(target, Expression) else given_layout
        if is_tiled is None:
            is_tiled = filled_layout(sizes, self.kernel.node.made.of(DataflowBuffer))
        if is_tiled:
            return Fill(sizes, number, holds=held)
        return Fill(packed_tiles(sizes), number, holds=held, elements=sizes)

    def _fill_value(self, value: Any, held: DataType) -> float | SSAValue:
        """Converts the number that a block is filled with; kernels may compute it."""
        if isinstance(value, int | float):
            return float(value)
        if isinstance(value, KernelFloat) and held.is_float:
            return value.value
        if is_computed(value) and not held.is_float:
            return value
        found = self.arithmetic.float_value(value) if held.is_float else None
        if found is None:
            self.refuse("ttl.block.fill takes a number; one that kernels compute is 0 or more")
        return found

    def _target_shape(self, what: str, target: Any, shape: Any) -> Shape:
        if isinstance(target, Expression):
            return target.units
        if shape is None:
            raise no_shape(what)
        return checked_shape(what, shape)

    def _broadcast(
        self, expr: Any, target: Any = None, dims: Any = (), shape: Any = None
    ) -> Expression:
        what = "ttl.block.broadcast"
        of = self._tiled_operand(what, expr)
        sizes = self._target_shape(what, target, shape)
        axes = broadcast_axes(what, of.shape, sizes, dims)
        row, column = (axis in axes for axis in (len(sizes) - 2, len(sizes) - 1))
        kind = ("scalar" if column else "row") if row else ("col" if column else "")
        return Broadcast(sizes, of, kind)

    def _reduce(self, kind: str, expr: Any, dims: Any, shape: Any) -> Expression:
        of = self._tiled_operand(f"ttl.math.reduce_{kind}", expr)
        sizes, axes = reduced(f"ttl.math.reduce_{kind}", of.shape, dims, shape)
        if not of.data_type.is_float:
            return self._reduce_integers(kind, of, axes)
        inner = tuple(axis for axis in axes if axis >= len(of.shape) - 2)
        outer = [axis for axis in axes if axis not in inner]
        over_tiles = outer_reduction(kind, of, outer)
        if not inner:
            return over_tiles
        return Reduction(sizes, over_tiles, kind, inner)

    def _reduce_integers(self, kind: str, of: Expression, axes: Sequence[int]) -> Expression:
        """Reduces integers on the vector engine: across tiles first, then inside them."""
        over_tiles = outer_reduction(kind, of, axes)
        inner = [axis - len(of.shape) for axis in axes if axis >= len(of.shape) - 2]
        if not inner:
            return over_tiles
        if kind == "max" and of.data_type is DataType.UINT32:
            self.refuse(
                "kernels find the maximum of the elements of a tile of floats and of int32, not of "
                "uint32"
            )
        return inner_reduction(kind, over_tiles, inner)

    def _transpose(self, expr: Any) -> Expression:
        of = self._tiled_operand("ttl.block.transpose", expr)
        return Transposed(transposed_shape(of.shape), of)

    def _squeeze(self, expr: Any, dims: Any) -> Expression:
        of = self.expression(expr)
        shape, kept = squeezed(of.units, dims, is_tiled=of.elements is None)
        return self._reshaped(shape, of, kept)

    def _unsqueeze(self, expr: Any, dims: Any) -> Expression:
        of = self.expression(expr)
        shape, kept = unsqueezed(of.units, dims)
        return self._reshaped(shape, of, kept)

    def _reshaped(self, shape: Shape, of: Expression, kept: tuple[int, ...]) -> Expression:
        if of.elements is None:
            return Reshaped(shape, of, kept)
        if shape[-1] != of.elements[-1]:
            self.refuse(
                "the compiler does not change the last dimension of row-major blocks, whose rows "
                "are apart"
            )
        found = Reshaped(of.shape, of, (0,))
        found.elements = shape
        return found
