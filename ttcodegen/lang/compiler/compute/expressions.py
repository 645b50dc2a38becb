"""Block expressions as trees, and their functions on tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar, cast

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttkernel.attributes import InputClamping, ReduceDim, ReduceType
from ttcodegen.lang.simulator.expressions import BlockExpr, NotNumeric, no_comparison
from ttcodegen.lang.simulator.functions import COMPARISONS, ExponentialFlags, MathFunction
from ttcodegen.lang.simulator.shapes import Shape
from ttcodegen.lang.simulator.spelling import Representation
from ttcodegen.ops.core.lowering import Tile, TileBuilder

# Block expressions as trees, evaluated when a result is stored

INTEGERS = (DataType.INT32, DataType.UINT32)
"""Integer types that kernels compute with."""

TileFunction = Callable[[TileBuilder, Sequence[Tile]], Tile]


@dataclass(eq=False)
class Expression(Representation, NotNumeric):
    """A block expression; its shape is in tiles."""

    language_class: ClassVar[type] = BlockExpr

    shape: Shape
    data_type: DataType = field(init=False)
    """Data type in the registers: an integer type, or float32 for all float formats."""
    elements: Shape | None = field(init=False)
    """Shape in elements of a row-major expression, packed into tiles; None if tiled."""

    def __post_init__(self) -> None:
        packed = (each.elements for each in self.operands if each.elements is not None)
        self.elements = next(packed, None)
        types = (each.data_type for each in self.operands)
        self.data_type = next((t for t in types if not t.is_float), DataType.FLOAT32)

    @property
    def operands(self) -> tuple[Expression, ...]:
        """Direct subexpressions."""
        return ()

    @property
    def units(self) -> Shape:
        """Shape as users see it: in tiles, or in elements of row-major blocks."""
        return self.shape if self.elements is None else self.elements

    def __lt__(self, other: object) -> bool:
        raise no_comparison()

    __le__ = __gt__ = __ge__ = __lt__


@dataclass(eq=False)
class Resident(Expression):
    """Tiles at the front of a circular buffer."""

    buffer: str
    holds: DataType = field(default=DataType.FLOAT32, kw_only=True)
    """Data type of the elements in the registers."""
    elements: Shape | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self.data_type = self.holds


@dataclass(eq=False)
class Fill(Expression):
    """A constant; a number, or an integer or the bits of a float that the kernel computes."""

    number: float | SSAValue
    holds: DataType = field(default=DataType.FLOAT32, kw_only=True)
    elements: Shape | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self.data_type = self.holds


@dataclass(eq=False)
class Apply(Expression):
    """An elementwise function, applied tile by tile."""

    function: TileFunction
    of: tuple[Expression, ...]
    is_costly: bool = field(default=False, kw_only=True)
    """True if the vector engine takes many steps for each element."""

    @property
    def operands(self) -> tuple[Expression, ...]:
        return self.of


@dataclass(eq=False)
class Broadcast(Expression):
    """Tiles repeated along dimensions, and the first row, column or element inside tiles."""

    of: Expression
    kind: str
    """Broadcast inside tiles: "row", "col", "scalar", or empty for none."""

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.of,)


@dataclass(eq=False)
class Transposed(Expression):
    """A transposed matrix: tiles and their elements."""

    of: Expression

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.of,)


@dataclass(eq=False)
class Reshaped(Expression):
    """The same tiles with dimensions of size 1 added or removed."""

    of: Expression
    kept: tuple[int, ...]
    """Dimensions of the longer shape that the shorter one keeps."""

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.of,)


@dataclass(eq=False)
class Selected(Expression):
    """The tiles at one index along some dimensions, which get size 1."""

    of: Expression
    indices: tuple[tuple[int, int], ...]
    """Pairs of a dimension and its index."""

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.of,)


@dataclass(eq=False)
class Matmul(Expression):
    """A matmul."""

    left: Expression
    right: Expression

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.left, self.right)


@dataclass(eq=False)
class Reduction(Expression):
    """A reduction of tiles and their elements along dimensions."""

    of: Expression
    kind: str
    """"sum" or "max"."""
    dims: tuple[int, ...]

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.of,)


def parts_of(
    expression: Expression, through: type[Expression] = Expression
) -> Iterator[Expression]:
    """Yields an expression and its subexpressions, each once, in preorder.

    Args:
        expression: the root.
        through: type of the expressions whose operands are visited.
    """
    seen: set[int] = set()
    left = [expression]
    while left:
        part = left.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, through):
            left += reversed(part.operands)


def is_costly(expression: Expression) -> bool:
    """True if recomputing an expression costs more than reading its result.

    That holds for matmuls, reductions, transpositions and transcendental functions.
    """
    return any(
        isinstance(part, Matmul | Reduction | Transposed)
        or (isinstance(part, Apply) and part.is_costly)
        for part in parts_of(expression)
    )


def expressions_in(value: Any) -> Iterator[Expression]:
    """Yields the block expressions in a value, also in containers and records."""
    if isinstance(value, Expression):
        yield value
    elif isinstance(value, dict):
        yield from expressions_in(list(cast(dict[Any, Any], value).values()))
    elif isinstance(value, list | tuple | set | frozenset):
        for each in cast(Iterable[Any], value):
            yield from expressions_in(each)
    elif _is_of_program(value):
        yield from expressions_in(vars(value))


def _is_of_program(value: object) -> bool:
    """True if a value is an instance of a class of the user's program, such as a record."""
    return type(value).__module__ == "__main__" and hasattr(value, "__dict__")


def depends_within(value: Any, buffers: Sequence[str]) -> bool:
    """True if a value contains an expression that reads one of the circular buffers."""
    return any(depends_on(each, buffers) for each in expressions_in(value))


def depends_on(expression: Any, buffers: Sequence[str]) -> bool:
    """True if an expression reads the front of one of the circular buffers."""
    return isinstance(expression, Expression) and any(
        isinstance(part, Resident) and part.buffer in buffers for part in parts_of(expression)
    )


def engine_part(expression: Expression) -> Expression | None:
    """Part of an expression that the matrix engine computes in the loop, or None.

    It is the first matmul, or row sum, which is computed as one, whose users are all elementwise;
    or the expression itself if it is a reduction, because the packer completes that.
    """
    if isinstance(expression, Reduction):
        return expression
    parts = parts_of(expression, through=Apply)
    return next((part for part in parts if isinstance(part, Matmul) or _sums_rows(part)), None)


def _sums_rows(part: Expression) -> bool:
    return (
        isinstance(part, Reduction)
        and part.kind == "sum"
        and [axis - len(part.shape) for axis in part.dims] == [-1]
    )


def matmul_block_sizes(part: Matmul, max_tiles: int) -> list[tuple[int, int]]:
    """Block sizes, in rows and columns of at most `max_tiles` tiles, for a matmul; best first.

    Large and square blocks unpack the fewest operands.
    """
    right = part.right.of if isinstance(part.right, Transposed) else part.right
    if not (_has_whole_matrices(part.left) and _has_whole_matrices(right)):
        return [(1, 1)]
    *_, rows, columns = part.shape
    if right is not part.right:
        # Tiles in a row of a transposed matrix are not consecutive.
        columns = 1
    found = [
        (down, over)
        for down in range(1, min(rows, max_tiles) + 1)
        for over in range(1, min(columns, max_tiles // down) + 1)
        if rows % down == columns % over == 0
    ]
    return sorted(found, key=lambda block: (-block[0] * block[1], sum(block), block))


def _has_whole_matrices(part: Expression) -> bool:
    """True if the tiles of each matrix are stored contiguously in a circular buffer."""
    while not isinstance(part, Resident):
        if not isinstance(part, Broadcast | Reshaped) or part.shape[-2:] != part.of.shape[-2:]:
            return False
        part = part.of
    return True


def is_flat(expression: Expression) -> bool:
    """True if each tile depends only on tiles with the same linear index."""
    return all(map(_keeps_order, parts_of(expression)))


def _keeps_order(part: Expression) -> bool:
    """True if a result tile has the same linear index as its operand tiles."""
    if isinstance(part, Broadcast):
        return not part.kind and part.shape == part.of.shape
    return not isinstance(part, Selected | Transposed | Matmul | Reduction)


# Functions of block expressions as operations on tiles in destination registers

FLOAT = DataType.FLOAT32
"""Data type in registers, which are 32 bits wide for all formats of circular buffers."""

_EXTRA_ATTRIBUTES: dict[str, dict[str, Any]] = {"gelu": {"fast_and_approx": False}}
_NAMES = {"neg": "negative", "logp1": "log1p", "rsub": "rsub_unary"}
Lowering = Callable[[TileBuilder, Tile, Sequence[float]], Tile]


def _threshold(builder: TileBuilder, x: Tile, numbers: Sequence[float]) -> Tile:
    limit, value = numbers
    above = builder.call("unary_gt_tile", x, parameters=(float(limit),))
    return builder.call("where_tile", above, builder.fill(value, FLOAT), x, dtype=FLOAT)


def _signbit(builder: TileBuilder, x: Tile, numbers: Sequence[float]) -> Tile:
    return builder.call("rsub_unary_tile", builder.call("signbit_tile", x), parameters=(1.0,))


def _round(builder: TileBuilder, x: Tile, numbers: Sequence[float]) -> Tile:
    return builder.call("round_tile", x, parameters=(int(numbers[0]),))


_CHEAP = frozenset(
    "abs neg rsub square relu relu_max relu_min leaky_relu prelu hardtanh clamp threshold sign "
    "signbit frac trunc round floor ceil".split()
)
"""Functions that are recomputed for each use."""

_SPECIAL_LOWERINGS: dict[str, Lowering] = {
    "threshold": _threshold, "signbit": _signbit, "round": _round,
}  # fmt: skip


def _integer_op(name: str, *numbers: int) -> Lowering:
    """Lowering to an integer operation; its parameters are `numbers`, then the function's."""

    def lower(builder: TileBuilder, x: Tile, given: Sequence[float]) -> Tile:
        bit_patterns = [int(number) & 0xFFFFFFFF for number in (*numbers, *given)]
        return builder.call(name, x, parameters=bit_patterns)

    return lower


def _unchanged(builder: TileBuilder, x: Tile, numbers: Sequence[float]) -> Tile:
    return x


def _integer_sign(builder: TileBuilder, x: Tile, numbers: Sequence[float]) -> Tile:
    above, below = (builder.call(f"{name}_tile_int32", x) for name in ("gtz", "ltz"))
    return builder.call("sub_int_tile", above, below, dtype=x.data_type)


def _integer_threshold(builder: TileBuilder, x: Tile, numbers: Sequence[float]) -> Tile:
    limit, value = numbers
    above = _integer_op("unary_gt_tile_int32")(builder, x, (limit,))
    return builder.call("where_tile", above, builder.fill(value, x.data_type), x, dtype=x.data_type)


def _integer_leaky_relu(builder: TileBuilder, x: Tile, numbers: Sequence[float]) -> Tile:
    slope = builder.fill(numbers[0], x.data_type)
    sloped = builder.call("mul_int_tile", x, slope, dtype=x.data_type)
    above = builder.call("gtz_tile_int32", x)
    return builder.call("where_tile", above, x, sloped, dtype=x.data_type)


def _integer_rsub(builder: TileBuilder, x: Tile, numbers: Sequence[float]) -> Tile:
    number = builder.fill(numbers[0] if numbers else 0, x.data_type)
    return builder.call("sub_int_tile", number, x, dtype=x.data_type)


_COMMON_INTEGER_LOWERINGS: dict[str, Lowering] = {
    **dict.fromkeys(("floor", "ceil", "trunc", "round"), _unchanged),
    "neg": _integer_rsub,
    "rsub": _integer_rsub,
}
_INTEGER_LOWERINGS: dict[DataType, dict[str, Lowering]] = {
    DataType.INT32: {
        **_COMMON_INTEGER_LOWERINGS,
        "abs": _integer_op("abs_tile_int32"),
        "neg": _integer_op("negative_tile_int32"),
        "relu": _integer_op("relu_tile_int32"),
        "relu_max": _integer_op("clamp_tile_int32", 0),
        "relu_min": lambda b, x, n: _integer_op("unary_max_int32_tile")(b, x, [max(n[0], 0)]),
        "clamp": _integer_op("clamp_tile_int32"),
        "hardtanh": _integer_op("clamp_tile_int32"),
        "sign": _integer_sign,
        "signbit": _integer_op("gez_tile_int32"),
        "threshold": _integer_threshold,
        "leaky_relu": _integer_leaky_relu,
        "prelu": _integer_leaky_relu,
    },
    DataType.UINT32: {**_COMMON_INTEGER_LOWERINGS, "abs": _unchanged, "relu": _unchanged},
}
"""Integer functions; division and transcendental functions have no integer operations."""


def _integer_call(name: str, numbers: Sequence[float], of: Expression) -> Expression | None:
    if name == "square":
        return power(of, 2)
    lower = _INTEGER_LOWERINGS[of.data_type].get(name)
    if lower is None or any(number != int(number) for number in numbers):
        return None
    return Apply(of.shape, lambda b, t: lower(b, t[0], numbers), (of,))


def math_call(
    function: MathFunction, numbers: Sequence[float], of: Expression
) -> Expression | None:
    """Applies a function of `ttl.math`; None if the data type has no tile operation for it."""
    if not of.data_type.is_float:
        return _integer_call(function.name, numbers, of)
    irregular = _SPECIAL_LOWERINGS.get(function.name)

    def lower(builder: TileBuilder, tiles: Sequence[Tile]) -> Tile:
        if irregular is not None:
            return irregular(builder, tiles[0], numbers)
        name = _NAMES.get(function.name, function.name)
        attributes = _EXTRA_ATTRIBUTES.get(function.name, {})
        given = [float(number) for number in numbers]
        return builder.call(f"{name}_tile", tiles[0], parameters=given, **attributes)

    return Apply(of.shape, lower, (of,), is_costly=function.name not in _CHEAP)


def exponential(of: Expression, flags: ExponentialFlags) -> Expression:
    """Exponential with flags, of an operand that is already scaled."""
    attributes: dict[str, Any] = {"approx": True} if flags.approx else {}
    if flags.approx and flags.skip_clamp_check:
        attributes["input_clamping"] = InputClamping.NONE
    lower: TileFunction = lambda b, t: b.call("exp_tile", t[0], **attributes)  # noqa: E731
    return Apply(of.shape, lower, (of,), is_costly=True)


_BINARY = {
    "Add": "add_binary_tile",
    "Sub": "sub_binary_tile",
    "Mult": "mul_binary_tile",
    "Div": "div_binary_tile",
    "Mod": "remainder_binary_tile",
    "max": "binary_max_tile",
    "min": "binary_min_tile",
    **{name: f"{name}_binary_tile" for name in COMPARISONS},
}
_TYPED_INTEGER_BINARY = {
    "Add": "add_int_tile",
    "Sub": "sub_int_tile",
    "Mult": "mul_int_tile",
    "BitXor": "bitwise_xor_binary_tile",
}
"""Integer operations that take the data type as an argument."""
_INTEGER_BINARY = {
    DataType.INT32: {
        "FloorDiv": "div_int32_floor_tile",
        "Mod": "remainder_int32_tile",
        "max": "binary_max_int32_tile",
        "min": "binary_min_int32_tile",
    },
    DataType.UINT32: {"max": "binary_max_uint32_tile", "min": "binary_min_uint32_tile"},
}
_SCALAR_BINARY = {
    "Add": "add_unary_tile",
    "Sub": "sub_unary_tile",
    "Mult": "mul_unary_tile",
}


def _integer_comparison(name: str, kind: DataType) -> TileFunction:
    """Compares integers: the result is 1 or 0.

    Equality is a difference of 0; the greater of two integers equals their maximum.
    """

    def lower(builder: TileBuilder, tiles: Sequence[Tile]) -> Tile:
        first, second = tiles
        if name in ("ge", "lt", "le", "gt"):
            greater = builder.call(_INTEGER_BINARY[kind]["max"], first, second)
            first, second = greater, first if name in ("ge", "lt") else second
        difference = builder.call("sub_int_tile", first, second, dtype=kind)
        is_zero = name in ("eq", "ge", "le")
        return builder.call("eqz_tile_int32" if is_zero else "nez_tile_int32", difference)

    return lower


def binary_call(symbol: str, left: Expression, right: Expression) -> Expression | None:
    """Applies an operator to two expressions; None if there is no tile operation for it."""
    if not (left.data_type.is_float and right.data_type.is_float):
        kind = left.data_type if right.data_type.is_float else right.data_type
        if symbol in COMPARISONS:
            return Apply(left.shape, _integer_comparison(symbol, kind), (left, right))
        typed = _TYPED_INTEGER_BINARY.get(symbol)
        name = typed or _INTEGER_BINARY[kind].get(symbol)
        attributes: dict[str, Any] = {"dtype": kind} if typed else {}
        if name is None:
            return None
        return Apply(left.shape, lambda b, t: b.call(name, *t, **attributes), (left, right))
    if symbol == "FloorDiv":
        quotient = binary_call("Div", left, right)
        assert quotient is not None
        return Apply(left.shape, lambda b, t: b.call("floor_tile", t[0]), (quotient,))
    if symbol not in _BINARY:
        return None
    known = right.number if isinstance(right, Fill) else None
    if symbol in _SCALAR_BINARY and isinstance(known, int | float):
        number, name = float(known), _SCALAR_BINARY[symbol]
        return Apply(left.shape, lambda b, t: b.call(name, t[0], parameters=(number,)), (left,))
    return Apply(left.shape, lambda b, t: b.call(_BINARY[symbol], t[0], t[1]), (left, right))


def outer_reduction(kind: str, of: Expression, axes: Sequence[int]) -> Expression:
    """Reduces whole tiles by sum or maximum along dimensions, elementwise."""
    indices = product(*(range(of.shape[axis]) for axis in axes))
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(of.shape))
    if shape == of.shape:
        return of
    total: Expression | None = None
    for index in indices:
        part = Selected(shape, of, tuple(zip(axes, index, strict=True)))
        total = part if total is None else binary_call(_REDUCTION_OPERATORS[kind], total, part)
    assert total is not None
    return total


def inner_reduction(kind: str, of: Expression, dims: Sequence[int]) -> Expression:
    """Reduces the elements inside each integer tile by sum or maximum.

    The dimensions are counted from the innermost, -1. The result is in the first row, column or
    element of each tile.
    """

    def lower(builder: TileBuilder, tiles: Sequence[Tile]) -> Tile:
        (found,) = tiles
        for dim in sorted(dims):
            found = builder.call(
                "sfpu_reduce",
                found,
                reduce_type=_REDUCE_TYPES[kind],
                data_format=of.data_type,
                reduce_dim=_REDUCE_DIMS[dim],
            )
        return found

    return Apply(of.shape, lower, (of,))


_REDUCE_TYPES = {"sum": ReduceType.SUM, "max": ReduceType.MAX}
_REDUCE_DIMS = {-2: ReduceDim.COL, -1: ReduceDim.ROW}
_REDUCTION_OPERATORS = {"sum": "Add", "max": "max"}
"""Operators that reductions apply repeatedly."""


def power(of: Expression, exponent: int) -> Expression:
    """A power with an integer exponent of 0 or more, by repeated squaring."""

    def multiply(builder: TileBuilder, a: Tile, b: Tile) -> Tile:
        if not of.data_type.is_float:
            return builder.call("mul_int_tile", a, b, dtype=of.data_type)
        return builder.call("square_tile", a) if a is b else builder.call("mul_binary_tile", a, b)

    def lower(builder: TileBuilder, tiles: Sequence[Tile]) -> Tile:
        square, rest, result = tiles[0], exponent, None
        while rest:
            if rest % 2:
                result = square if result is None else multiply(builder, result, square)
            rest //= 2
            if rest:
                square = multiply(builder, square, square)
        assert result is not None
        return result

    if exponent == 0:
        return Fill(of.shape, 1.0, holds=of.data_type)
    return Apply(of.shape, lower, (of,))


def where(condition: Expression, true: Expression, false: Expression) -> Expression:
    """Selects elements of one expression or another by a condition."""
    dtype = true.data_type if false.data_type.is_float else false.data_type
    return Apply(
        condition.shape,
        lambda b, t: b.call("where_tile", *t, dtype=dtype, data_type=dtype),
        (condition, true, false),
    )


def masked(of: Expression, mask: Expression, number: float) -> Expression:
    """Replaces the elements of an expression by a number where the mask is 1."""
    name, one = ("unary_eq_tile", 1.0) if mask.data_type.is_float else ("unary_eq_tile_int32", 1)
    is_masked = Apply(mask.shape, lambda b, t: b.call(name, t[0], parameters=(one,)), (mask,))
    return where(is_masked, Fill(of.shape, number, holds=of.data_type), of)
