"""Random `ttir.generic`s, and what they compute, in numpy: loops in any order, operands that are
broadcast, transposed and reduced, regions of several ops, any grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from tests.random_programs.choices import Choices, chance, pick, shuffled
from tests.ttmetal.function_text import call, integers, tensor

Array = np.ndarray
_SIZES = (32, 1, 2, 5, 31, 33, 40, 64, 70, 100)
"""Of the last two dimensions: whole tiles, parts of one, and one more than that."""
_OUTER = (1, 2, 3)
_GREATEST = 2.0
"""Of the arguments, in floats; integers go up to 20."""
_LIMIT = 1000.0
_STEEP = 4.0
"""Limit of magnitudes whose exponential is computed."""

_UNARY: dict[str, Callable[[Array], Array]] = {
    "neg": np.negative,
    "abs": np.abs,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "cos": np.cos,
    "exp": np.exp,
}
_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
_OF_INTEGERS = ("neg", "abs")
_REDUCTIONS: dict[str, Callable[..., Array]] = {"sum": np.sum, "max": np.max, "mean": np.mean}
_BOUNDED = {"sigmoid": 1.0, "tanh": 1.0, "cos": 1.0}

Places = tuple[int | None, ...]
"""The loop that each dimension of a tensor moves with, None for index 0."""


@dataclass(frozen=True)
class _Value:
    """A tensor in the region: the numbers are those of `RandomGeneric.expected`."""

    number: int
    shape: tuple[int, ...]
    bound: float


@dataclass
class RandomGeneric:
    """A function of one generic."""

    choices: Choices
    name: str
    element: str = ""
    _values: list[_Value] = field(default_factory=list[_Value])
    _arguments: list[tuple[_Value, Places]] = field(default_factory=list[tuple[_Value, Places]])
    _ops: list[tuple[str, _Value]] = field(default_factory=list[tuple[str, _Value]])
    _steps: list[Callable[[list[Array]], Array]] = field(
        default_factory=list[Callable[[list[Array]], Array]]
    )
    _results: list[_Value] = field(default_factory=list[_Value])
    _sizes: tuple[int, ...] = ()
    _kinds: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.element = pick(self.choices, ("bf16", "f32", "i32"))
        makers = [self._chain]
        if self.element != "i32":
            makers += [self._reduced, self._rows, self._product]
        pick(self.choices, makers)()

    # What is computed

    def expected(self, inputs: Sequence[Array]) -> list[Array]:
        """The results for inputs, in the order of the arguments."""
        exact = np.int64 if self.element == "i32" else np.float64
        known: list[Array] = []
        pairs = zip(self._arguments, inputs, strict=True)
        given = {value.number: array.astype(exact) for (value, _), array in pairs}
        steps = iter(self._steps)
        for value in self._values:
            known.append(given[value.number] if value.number in given else next(steps)(known))
        return [known[value.number] for value in self._results]

    def _new(self, shape: Sequence[int], bound: float) -> _Value:
        value = _Value(len(self._values), tuple(shape), bound)
        self._values.append(value)
        return value

    def _type(self, value: _Value) -> str:
        return tensor(value.shape, self.element)

    def _argument(self, shape: Sequence[int], places: Places) -> _Value:
        value = self._new(shape, 20 if self.element == "i32" else _GREATEST)
        self._arguments.append((value, places))
        return value

    def _add(
        self,
        op: str,
        operands: Sequence[_Value],
        shape: Sequence[int],
        bound: float,
        step: Callable[[list[Array]], Array],
        **words: str,
    ) -> _Value:
        types = [self._type(operand) for operand in operands]
        names = [f"%v{operand.number}" for operand in operands]
        value = self._new(shape, bound)
        self._ops.append((call(op, names, types, self._type(value), **words), value))
        self._steps.append(step)
        return value

    def _unary(self, x: _Value) -> _Value:
        names = _OF_INTEGERS if self.element == "i32" else tuple(_UNARY)
        op = pick(self.choices, names)
        if op == "exp" and x.bound > _STEEP:
            op = "tanh"
        bound = float(np.exp(x.bound)) if op == "exp" else _BOUNDED.get(op, x.bound)
        compute, number = _UNARY[op], x.number
        return self._add(op, [x], x.shape, bound, lambda known: compute(known[number]))

    def _binary(self, x: _Value, y: _Value) -> _Value:
        op = pick(self.choices, tuple(_BINARY))
        product = x.bound * y.bound
        if op == "multiply" and product > _LIMIT:
            op = "maximum"
        bounds = {"multiply": product, "add": x.bound + y.bound, "subtract": x.bound + y.bound}
        bound = bounds.get(op, max(x.bound, y.bound))
        shape = np.broadcast_shapes(x.shape, y.shape)
        compute, numbers = _BINARY[op], (x.number, y.number)
        return self._add(
            op, [x, y], shape, bound, lambda known: compute(*(known[n] for n in numbers))
        )

    def _reduce(self, x: _Value, dims: Sequence[int]) -> _Value:
        op = pick(self.choices, tuple(_REDUCTIONS))
        shape = [1 if axis in dims else size for axis, size in enumerate(x.shape)]
        bound = x.bound * prod(x.shape) / prod(shape) if op == "sum" else x.bound
        compute, number = _REDUCTIONS[op], x.number
        return self._add(
            op,
            [x],
            shape,
            bound,
            lambda known: compute(known[number], axis=tuple(dims), keepdims=True),
            dim_arg=integers(dims),
            keep_dim="true",
        )

    # The forms of programs

    def _shape(self, least: int = 1) -> tuple[int, ...]:
        rank = self.choices.integer(least, 4)
        return tuple(
            pick(self.choices, _OUTER if rank - axis > 2 else _SIZES) for axis in range(rank)
        )

    def _operand(self, shape: Sequence[int], places: Places) -> _Value:
        """An argument that broadcasts to a shape whose dimensions move with those loops."""
        first = self.choices.integer(0, len(shape) - 1) if chance(self.choices, 30) else 0
        sizes = [1 if chance(self.choices, 25) else size for size in shape[first:]]
        moving = [
            None if size == 1 and full > 1 else place
            for size, full, place in zip(sizes, shape[first:], places[first:], strict=True)
        ]
        return self._argument(sizes, tuple(moving))

    def _elementwise(self, start: _Value, places: Places, most: int = 4) -> _Value:
        """Some ops from a value of the whole shape on."""
        value = start
        seen = [value]
        for _ in range(self.choices.integer(1, most)):
            if chance(self.choices, 60):
                other = (
                    pick(self.choices, seen)
                    if chance(self.choices, 30)
                    else self._operand(start.shape, places)
                )
                pair = [value, other] if chance(self.choices, 70) else [other, value]
                value = self._binary(*pair)
            else:
                value = self._unary(value)
            if value.bound > _LIMIT:
                break
            seen.append(value)
        return value

    def _loops(self, sizes: Sequence[int], kinds: Sequence[str]) -> None:
        self._sizes, self._kinds = tuple(sizes), list(kinds)

    def _chain(self) -> None:
        shape = self._shape()
        places = tuple(range(len(shape)))
        self._loops(shape, ["parallel"] * len(shape))
        value = self._elementwise(self._argument(shape, places), places)
        self._results = [value]
        if chance(self.choices, 20) and self.element != "i32":
            self._results.append(self._unary(value))

    def _reduced(self) -> None:
        shape = self._shape()
        places = tuple(range(len(shape)))
        dims = sorted(shuffled(self.choices, places)[: self.choices.integer(1, len(shape))])
        reduced = [axis for axis in dims if shape[axis] > 1]
        kinds = ["reduction" if axis in reduced else "parallel" for axis in places]
        self._loops(shape, kinds)
        value: _Value = self._argument(shape, places)
        pads = any(shape[axis] % 32 for axis in reduced if len(shape) - axis <= 2)
        # Padding counts in what is computed of it, unless rows alone are reduced.
        if (not pads or reduced == [len(shape) - 1] != [0]) and chance(self.choices, 60):
            value = self._elementwise(value, places, 2)
        value = self._reduce(value, dims)
        after = tuple(None if axis in reduced else axis for axis in places)
        if chance(self.choices, 50):
            value = self._elementwise(value, after, 2)
        self._results = [value]

    def _rows(self) -> None:
        shape = self._shape(2)
        places = tuple(range(len(shape)))
        self._loops(shape, ["parallel"] * len(shape))
        value: _Value = self._argument(shape, places)
        for _ in range(self.choices.integer(1, 2)):
            if chance(self.choices, 50):
                value = self._elementwise(value, places, 2)
            value = self._binary(value, self._reduce(value, [len(shape) - 1]))
        self._results = [value]

    def _product(self) -> None:
        *outer, rows, columns = self._shape(2)
        inner = pick(self.choices, _SIZES)
        batch = len(outer)
        self._loops([*outer, rows, columns, inner], ["parallel"] * (batch + 2) + ["reduction"])
        flips: dict[str, str] = {}
        sides: list[_Value] = []
        for word, size, loops in (
            ("transpose_a", (rows, inner), (batch, batch + 2)),
            ("transpose_b", (inner, columns), (batch + 2, batch + 1)),
        ):
            flip = chance(self.choices, 30)
            flips[word] = str(flip).lower()
            step = -1 if flip else 1
            # A product of a batch may have one matrix for all.
            alone = word == "transpose_b" and chance(self.choices, 40)
            shape = (*([] if alone else outer), *size[::step])
            sides.append(self._argument(shape, (*(() if alone else range(batch)), *loops[::step])))
        numbers = [side.number for side in sides]
        flipped = [flips[word] == "true" for word in ("transpose_a", "transpose_b")]

        def multiply(known: list[Array]) -> Array:
            left, right = (
                np.swapaxes(known[number], -1, -2) if flip else known[number]
                for number, flip in zip(numbers, flipped, strict=True)
            )
            return left @ right

        shape = (*outer, rows, columns)
        bound = sides[0].bound * sides[1].bound * inner
        value = self._add("matmul", sides, shape, bound, multiply, **flips)
        if chance(self.choices, 50):
            value = self._elementwise(value, tuple(range(batch + 2)), 2)
        self._results = [value]

    # Text

    def text(self) -> str:
        """The function, with how its arguments are drawn."""
        results = [self._type(value) for value in self._results]
        arguments = [(f"%a{n}", value) for n, (value, _) in enumerate(self._arguments)]
        greatest = 20.0 if self.element == "i32" else _GREATEST
        parameters = ", ".join(
            f"{name}: {self._type(value)} {{drawn.low = {-greatest:e} : f64, "
            f"drawn.high = {greatest:e} : f64, drawn.seed = {value.number} : i64}}"
            for name, value in arguments
        )
        inner = [f"%v{value.number}: {self._type(value)}" for _, value in arguments]
        inner += [f"%o{n}: {type_}" for n, type_ in enumerate(results)]
        yielded = ", ".join(f"%v{value.number}" for value in self._results)
        listed = ", ".join(results)
        types = ", ".join(self._type(value) for _, value in arguments)
        given = [f"%r#{n}" for n in range(len(results))] if len(results) > 1 else ["%r"]
        count = f":{len(results)}" if len(results) > 1 else ""
        rows, columns = (self.choices.integer(1, 8) for _ in range(2))
        lines = [
            f"  func.func @{self.name}({parameters}) -> ({listed}) {{",
            *(f'    %e{n} = "ttir.empty"() : () -> {type_}' for n, type_ in enumerate(results)),
            f"    %r{count} = ttir.generic {{grid = #ttcore.grid<{rows}x{columns}>, "
            f"{self._attributes()}}} "
            f"ins({', '.join(name for name, _ in arguments)} : {types}) "
            f"outs({', '.join(f'%e{n}' for n in range(len(results)))} : {listed}) {{",
            f"    ^bb0({', '.join(inner)}):",
            *(f"      %v{value.number} = {op}" for op, value in self._ops),
            f"      ttir.yield {yielded} : {listed}",
            f"    }} : {listed}",
            f"    return {', '.join(given)} : {listed}",
            "  }",
        ]
        return "\n".join(lines) + "\n"

    def _attributes(self) -> str:
        """Maps and kinds of loops, the loops in any order; or none at all."""
        if chance(self.choices, 25):
            return "indexing_maps = [], iterator_types = []"
        order = shuffled(self.choices, range(len(self._sizes)))
        numbers = {loop: number for number, loop in enumerate(order)}
        names = ", ".join(f"d{number}" for number in range(len(order)))
        after = tuple(
            None if kind == "reduction" else loop for loop, kind in enumerate(self._kinds)
        )
        if len(self._results[0].shape) < len(after):
            after = after[: len(self._results[0].shape)]
        maps = [
            f"affine_map<({names}) -> ({', '.join(self._index(p, numbers) for p in places)})>"
            for places in (*(p for _, p in self._arguments), *([after] * len(self._results)))
        ]
        kinds = [f"#ttcore.iterator_type<{self._kinds[loop]}>" for loop in order]
        return f"indexing_maps = [{', '.join(maps)}], iterator_types = [{', '.join(kinds)}]"

    @staticmethod
    def _index(place: int | None, numbers: dict[int, int]) -> str:
        return "0" if place is None else f"d{numbers[place]}"
