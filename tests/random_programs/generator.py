"""Builds a random well-typed function op by op.

Each op is evaluated when it is added, on the inputs that the function will be run with; one whose
results are too large or depend on rounding is taken back (see `witnesses`). What is made is a
function whose runs can be compared: where they disagree, one of them is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    Float16Type,
    Float64Type,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    TensorType,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tests.random_programs.choices import Choices, chance, pick
from tests.random_programs.witnesses import (
    RUNS,
    Argument,
    Rejected,
    Runs,
    draw_argument,
    evaluate,
    is_computable,
)
from ttcodegen.dialects.core.datatypes import (
    bf16,
    element_of,
    f32,
    i1,
    numpy_name,
    shape_of,
    si32,
    ui8,
    ui16,
    ui32,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.dialect import ArgumentType, ArgumentTypeAttr
from ttcodegen.numerics.rounding import in_compute_dtype
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.dialects import ttir_op_classes

Shape = tuple[int, ...]
Recipe = Callable[["Generator"], None]

i8, i16, i32 = IntegerType(8), IntegerType(16), IntegerType(32)
FLOATS: tuple[Attribute, ...] = (f32, bf16)
INTEGERS: tuple[Attribute, ...] = (i32, ui32)
# By how often they occur in models; the rarer ones become one of the common ones on the device.
ELEMENTS: tuple[Attribute, ...] = (
    *(f32,) * 5,
    *(bf16,) * 5,
    *(i32,) * 3,
    *(ui32,) * 2,
    *(i1,) * 2,
    *(si32, ui16, ui8, i8, i16, i64, Float16Type(), Float64Type()),
)
SIZES = (1, 2, 3, 4, 5, 8, 16, 31, 32, 33, 40, 64, 70)
MOST_ELEMENTS = 2048
MOST_ARGUMENTS = 12
MOST_RESULTS = 6
RECENT = 4
"""Operands are among the last so many values more often than not: programs become deep."""


class Generator:
    """A function under construction; recipes add ops to it."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.arguments: dict[SSAValue, Argument] = {}
        self.ops: list[CatalogueOp] = []
        self.pool: list[SSAValue] = []
        """Values that operands are picked from."""
        self._runs: dict[SSAValue, Runs] = {}
        self._kinds: dict[SSAValue, ArgumentType] = {}
        self._block = Block()
        self._builder = OpBuilder(ttir_op_classes(), lambda op: None)

    # Choices

    def integer(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return self.choices.integer(low, high)

    def pick(self, options: Sequence[Any]) -> Any:
        """One of the options."""
        return pick(self.choices, options)

    def chance(self, percent: int) -> bool:
        """True in so many of 100 cases."""
        return chance(self.choices, percent)

    def shape(self, low: int = 0, high: int = 6, most: int = MOST_ELEMENTS) -> Shape:
        """A shape of a rank from `low` to `high` with at most so many elements."""
        sizes: list[int] = []
        for _ in range(self.integer(low, high)):
            room = most // prod(sizes)
            sizes.append(self.pick([size for size in SIZES if size <= room] or [1]))
        return tuple(sizes)

    # Values

    def array(self, value: SSAValue) -> np.ndarray:
        """Elements of a value when the function is run."""
        return self._runs[value][0]

    def argument(
        self, shape: Shape, element: Attribute, low: float | None = None, high: float | None = None
    ) -> SSAValue:
        """A new argument, drawn between the bounds; without them, where its type is at ease."""
        if len(self.arguments) >= MOST_ARGUMENTS:
            raise Rejected("there are enough arguments")
        value = self._block.insert_arg(TensorType(element, shape), len(self._block.args))
        if low is None or high is None:
            low, high = self._usual_range(element)
        argument = self.arguments[value] = Argument(low, high, len(self.arguments))
        weight = self.chance(25)
        self._kinds[value] = ArgumentType.PARAMETER if weight else ArgumentType.INPUT
        drawn = draw_argument(value, argument)
        values = in_compute_dtype(drawn, numpy_name(element) or "")
        self._runs[value] = (values,) * RUNS
        return value

    def _usual_range(self, element: Attribute) -> tuple[float, float]:
        name = numpy_name(element) or ""
        if name == "bool":
            return 0, 1
        if not isinstance(element, IntegerType):
            return -2.0, 2.0
        low = 0 if name.startswith("u") else -8
        if name in ("int32", "uint32") and self.chance(15):
            # Large ones are moved and compared only; see `is_computable`.
            return (0, 2**32 - 1) if name == "uint32" else (-(2**31), 2**31 - 1)
        return low, 8

    def any(self, *, low: int = 0, high: int = 6, elements: Sequence[Attribute] = ()) -> SSAValue:
        """A value of that rank and one of these element types, of those there are or a new one."""

        def fits(value: SSAValue) -> bool:
            return low <= len(shape_of(value.type)) <= high and (
                not elements or element_of(value.type) in elements
            )

        found = self.existing(fits)
        if found is not None:
            return found
        element = self.pick(elements or ELEMENTS)
        return self.source(self.shape(low, high), element)

    def floating(self, *, low: int = 0, high: int = 6) -> SSAValue:
        """A value of that rank with elements f32 or bf16."""
        return self.any(low=low, high=high, elements=FLOATS)

    def existing(self, fits: Callable[[SSAValue], bool]) -> SSAValue | None:
        """One of the values that fit, None if there is none or a new one should be made."""
        found = [value for value in reversed(self.pool) if fits(value)]
        if not found or self.chance(15):
            return None
        return self.pick(found[:RECENT] if self.chance(75) else found)

    def like(self, shape: Shape, element: Attribute) -> SSAValue:
        """A value of exactly that type."""
        found = self.existing(lambda value: value.type == TensorType(element, shape))
        return found if found is not None else self.source(shape, element)

    def source(self, shape: Shape, element: Attribute) -> SSAValue:
        """A new value: an argument, or now and then a constant."""
        if not self.chance(15):
            value = self.argument(shape, element)
            self.pool.append(value)
            return value
        name = self.pick(("full", "zeros", "ones"))
        attributes: dict[str, Any] = {"shape": list(shape)}
        if name == "full":
            integral = isinstance(element, IntegerType)
            attributes["fill_value"] = self.integer(0, 1) if integral else self.pick((0.5, -1.25))
        return self.apply(name, [], TensorType(element, shape), **attributes)[0]

    def within(self, value: SSAValue, low: float, high: float) -> SSAValue:
        """`value` if its elements are between the bounds, else a value of its type that does."""
        array = self.array(value)
        if array.size == 0 or array.dtype.kind == "b":
            return value
        if low <= array.min() and array.max() <= high:
            return value
        if array.dtype.kind == "f":
            # A part of the range is left to rounding.
            margin = (high - low) / 16
            low, high = low + margin, high - margin
        else:
            low, high = int(np.ceil(low)), int(np.floor(high))
            if low < 0 and array.dtype.kind == "u":
                low = 0
            if low > high or not is_computable("clamp_scalar", array):
                raise Rejected("no integer is in the domain")
        if self.chance(50):
            return self.argument(shape_of(value.type), element_of(value.type), low, high)
        return self.apply("clamp_scalar", [value], value.type, min=low, max=high)[0]

    # Ops

    def apply(
        self,
        name: str,
        operands: Sequence[SSAValue | Sequence[SSAValue] | None],
        results: Attribute | Sequence[Attribute],
        **attributes: Any,
    ) -> list[SSAValue]:
        """Adds an op.

        Raises:
            Rejected: if its results would not be reliable.
        """
        op = self._builder.emit_op(name, operands, results, **attributes)
        op.verify_()
        if any(not is_computable(name, self.array(value)) for value in op.operands):
            raise Rejected("an operand is too large")
        for result, runs in zip(op.results, evaluate(op, self._runs), strict=True):
            self._runs[result] = runs
        self.ops.append(op)
        self.pool.extend(op.results)
        return list(op.results)

    def attempt(self, recipe: Recipe) -> bool:
        """Adds what the recipe adds, or nothing if it is rejected."""
        ops, pool, arguments = len(self.ops), len(self.pool), list(self.arguments)
        try:
            recipe(self)
        except Rejected:
            del self.ops[ops:], self.pool[pool:]
            for value in list(self.arguments)[len(arguments) :]:
                # The argument stays in the block; `function` leaves out what is not used.
                del self.arguments[value]
            return False
        return True

    def function(self, name: str) -> FuncOp:
        """The function: the values that no op uses are its results, up to a number of them."""
        used = {value for op in self.ops for value in op.operands}
        ends = [value for op in self.ops for value in op.results if value not in used]
        return sliced(name, self.drawn_arguments(), self.ops, ends[-MOST_RESULTS:])

    def drawn_arguments(self) -> dict[SSAValue, DictionaryAttr]:
        """The arguments, and as attributes how they are drawn."""
        return {value: self._attributes_of(value) for value in self.arguments}

    def _attributes_of(self, argument: SSAValue) -> DictionaryAttr:
        """Attributes of an argument: its bounds, its seed and its kind."""
        drawn = self.arguments[argument]
        return DictionaryAttr(
            {
                "drawn.low": FloatAttr(drawn.low, Float64Type()),
                "drawn.high": FloatAttr(drawn.high, Float64Type()),
                "drawn.seed": IntegerAttr(drawn.seed, i64),
                "ttcore.argument_type": ArgumentTypeAttr(self._kinds[argument]),
            }
        )


def sliced(
    name: str,
    arguments: Mapping[SSAValue, DictionaryAttr],
    ops: Sequence[Operation],
    results: Sequence[SSAValue],
) -> FuncOp:
    """A function with copies of those ops and arguments that the results are computed from."""
    needed = set(results)
    kept: list[Operation] = []
    for op in reversed(ops):
        if any(result in needed for result in op.results):
            needed.update(op.operands)
            kept.append(op)
    used = [argument for argument in arguments if argument in needed]
    block = Block(arg_types=[argument.type for argument in used])
    mapping: dict[SSAValue, SSAValue] = dict(zip(used, block.args, strict=True))
    for number, argument in enumerate(block.args):
        argument.name_hint = f"{name}_x{number}"
    for op in reversed(kept):
        block.add_op(op.clone(value_mapper=mapping))
    block.add_op(ReturnOp(*(mapping[result] for result in results)))
    type_ = FunctionType.from_lists([a.type for a in used], [r.type for r in results])
    attributes = ArrayAttr([arguments[argument] for argument in used])
    return FuncOp(name, type_, Region([block]), arg_attrs=attributes)
