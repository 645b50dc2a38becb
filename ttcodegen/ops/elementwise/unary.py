"""Elementwise ops of one tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import DataType, element_of, shape_of, ui32
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    ArgumentRule,
    cpp_call,
    fixed_,
    operand_,
    output_memory,
)
from ttcodegen.ops.core.definition import (
    Lowering,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    Verifier,
    operand,
    register,
)
from ttcodegen.ops.core.dimensions import of_elements
from ttcodegen.ops.core.lowering import (
    Tile,
    TileBuilder,
    TileLowering,
    cpu_call,
    tile_function,
    widened,
)
from ttcodegen.ops.core.lowering import in_floats as in_float_tiles
from ttcodegen.ops.core.traits import VECTOR_CYCLES, Trait
from ttcodegen.ops.elementwise.registration import (
    UNARY_HEADER,
    counted,
    in_floats,
    on_inputs,
    same_op,
    verify_bits,
    verify_broadcast,
)

INTEGERS = (DataType.INT32, DataType.UINT32, DataType.UINT16)
FLOATS = (DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B, DataType.BFLOAT4_B)
SIGNED = (DataType.INT32, *FLOATS)
"""Data types that signed kernels support; others would be read as float bits."""


def erf(x: Array) -> Array:
    """Error function, to 1.5e-7 (Abramowitz and Stegun, 7.1.26)."""
    t = 1.0 / (1.0 + 0.3275911 * np.abs(x.astype(np.float64)))
    coefficients = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
    polynomial = np.zeros_like(t)
    for coefficient in coefficients:
        polynomial = (polynomial + coefficient) * t
    return np.sign(x) * (1.0 - polynomial * np.exp(-np.square(x.astype(np.float64))))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def gelu(x: Array) -> Array:
    """x * Phi(x), with the exact normal distribution function."""
    return 0.5 * x * (1.0 + erf(x / np.sqrt(np.float32(2.0))))


def softplus(x: Array) -> Array:
    """log(1 + exp(x)) without overflow."""
    return np.logaddexp(x, np.zeros_like(x))


def mish_tile(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
    """x * tanh(softplus(x)); above the threshold softplus is x itself."""
    (x,) = in_float_tiles(builder, tiles)
    plus = builder.call("softplus_tile", x, parameters=(1.0, 1.0, 20.0))
    return builder.call("mul_binary_tile", x, builder.call("tanh_tile", plus))


def logical_not_tile(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
    """Tile of 1 where the operand is 0, else 0."""
    (tile,) = widened(builder, tiles)
    return builder.call("eqz_tile" if tile.data_type.is_float else "eqz_tile_int32", tile)


def bitwise_not_tile(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
    """Inverts all bits of integers."""
    return builder.call("bitwise_not_tile", *widened(builder, tiles))


def _itself(builder: TileBuilder, tile: Tile) -> Tile:
    """Identity, for ops that leave unsigned tiles unchanged."""
    return tile


def _negated_tile(builder: TileBuilder, tile: Tile) -> Tile:
    zero = builder.fill(0, tile.data_type)
    return builder.call("sub_int_tile", zero, tile, dtype=tile.data_type)


def _zero_tile(builder: TileBuilder, tile: Tile) -> Tile:
    return builder.fill(0, tile.data_type)


def _isfinite_tile(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
    """Tile test for finite values; integers always are."""
    if tiles[0].data_type.is_float:
        return builder.call("isfinite_tile", *tiles)
    return builder.fill(1, DataType.INT32)


def _is_special_tile(name: str) -> TileLowering:
    """Tile test for infinities or NaN; integers never are."""

    def tile(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
        if tiles[0].data_type.is_float:
            return builder.call(f"{name}_tile", *tiles)
        return builder.fill(0, DataType.INT32)

    return tile


def _logarithm_tile(base: float) -> TileLowering:
    def tile(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
        (x,) = in_float_tiles(builder, tiles)
        return builder.call(
            "mul_unary_tile", builder.call("log_tile", x), parameters=(1.0 / math.log(base),)
        )

    return tile


def _round_tile(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
    (x,) = in_float_tiles(builder, tiles)
    return builder.call("round_tile", x, parameters=(0,))


def _relu6_tile(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
    (tile,) = widened(builder, tiles)
    if tile.data_type.is_float:
        return builder.call("relu_max_tile", tile, parameters=(6.0,))
    if tile.data_type is DataType.INT32:
        return builder.call("clamp_tile_int32", tile, parameters=(0, 6))
    return builder.call("binary_min_uint32_tile", tile, builder.fill(6, tile.data_type))


def _square_tile(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
    (tile,) = widened(builder, tiles)
    if tile.data_type.is_float:
        return builder.call("square_tile", tile)
    return builder.call("mul_int_tile", tile, tile, dtype=tile.data_type)


def _negated(builder: OpBuilder, op: CatalogueOp) -> SSAValue | Sequence[SSAValue]:
    """Lowers a negation; unsigned integers, which the kernel lacks, as 0 - x."""
    value = builder[op.operands[0]]
    data_type, element = declared_data_type(value), element_of(value.type)
    if data_type.is_float or data_type is DataType.INT32:
        return same_op("neg")(builder, op)
    wide = ui32 if data_type is DataType.UINT8 else element
    zero = builder.full([1] * len(shape_of(value.type)), 0, wide)
    found = builder.broadcasting("subtract", zero, builder.typecast(value, wide))
    return builder.typecast(found, element)


@dataclass(frozen=True)
class Row:
    """An elementwise unary op.

    Fields with defaults override the usual: TTNN name, data types of the library, lowerings.
    """

    name: str
    function: Callable[[Array], Array]
    ttnn: str = ""
    data_types: tuple[DataType, ...] | None = FLOATS
    """Other types are computed as f32; None accepts all."""
    domain: tuple[float, float] | None = None
    """Range of random inputs in which the op is well conditioned."""
    verify: Verifier = verify_broadcast
    tile: TileLowering | None = None
    """Tile lowering; the float op `<name>_tile` by default."""
    lower: Lowering | None = None
    """TTNN lowering; the op of the same name by default."""
    traits: Trait = Trait.NONE
    on_booleans: str | None = None
    noun: str = ""
    vector_cycles: int = VECTOR_CYCLES


def _sign(x: Array) -> Array:
    """Sign; NaN has the sign of its sign bit, as on the device (tt-llk, ckernel_sfpu_sign.h)."""
    return np.where(np.isnan(x), np.copysign(np.ones_like(x), x), np.sign(x))


_APPROXIMATED = frozenset(
    {"erf", "exp", "gelu", "log", "log10", "log1p", "log2", "mish", "rsqrt", "sqrt"}
)
"""Functions whose second argument selects an approximation."""
_UNPLACED = frozenset({"sigmoid", "isfinite", "isinf", "isnan", "round"})
"""Functions with other arguments before the memory config."""

ROWS = (
    Row(
        "abs",
        lambda x: np.abs(counted(x)),
        data_types=SIGNED,
        tile=tile_function("abs_tile", "abs_tile_int32", _itself),
        traits=Trait.EXACT_ON_INTEGERS
        | Trait.IDEMPOTENT
        | Trait.KEEPS_TRUTH
        | Trait.ALTERS
        | Trait.OUTGROWS,
        vector_cycles=4,
    ),
    Row("acos", lambda x: np.arccos(x), domain=(-0.95, 0.95), vector_cycles=70),
    Row("asin", lambda x: np.arcsin(x), domain=(-0.95, 0.95), vector_cycles=70),
    Row("asinh", lambda x: np.arcsinh(x), vector_cycles=150),
    Row(
        "atan",
        lambda x: np.arctan(x),
        vector_cycles=55,
    ),
    Row(
        "bitwise_not",
        lambda x: np.invert(x),
        data_types=INTEGERS,
        verify=verify_bits,
        tile=bitwise_not_tile,
        traits=Trait.EXACT_ON_INTEGERS | Trait.SELF_INVERSE | Trait.WRAPS,
        on_booleans="logical_not",
        vector_cycles=15,
    ),
    Row("cbrt", lambda x: np.cbrt(x), vector_cycles=23),
    Row(
        "ceil",
        lambda x: np.ceil(x),
        traits=Trait.IDEMPOTENT | Trait.KEEPS_TRUTH,
        vector_cycles=15,
    ),
    Row(
        "cos",
        lambda x: np.cos(x),
        noun="cosine",
        vector_cycles=31,
    ),
    Row(
        "erf",
        erf,
        tile=tile_function("erf_tile", fast_and_approx=False),
        vector_cycles=50,
    ),
    Row(
        "erfc",
        lambda x: 1.0 - erf(x),
        vector_cycles=95,
    ),
    Row(
        "exp",
        lambda x: np.exp(x),
        domain=(-4.0, 4.0),
        vector_cycles=12,
    ),
    Row("exp2", lambda x: np.exp2(x), domain=(-4.0, 4.0), vector_cycles=24),
    Row(
        "expm1",
        lambda x: np.expm1(x),
        domain=(-4.0, 4.0),
        vector_cycles=40,
    ),
    Row(
        "floor",
        lambda x: np.floor(x),
        traits=Trait.IDEMPOTENT | Trait.KEEPS_TRUTH,
        vector_cycles=14,
    ),
    Row("frac", lambda x: x - np.trunc(x), vector_cycles=12),
    Row(
        "gelu",
        gelu,
        tile=tile_function("gelu_tile", fast_and_approx=False),
        traits=Trait.ACTIVATES,
        vector_cycles=87,
    ),
    Row(
        "hardsigmoid",
        lambda x: np.clip(x / 6.0 + 0.5, 0.0, 1.0),
        traits=Trait.ACTIVATES,
        vector_cycles=13,
    ),
    Row(
        "isfinite",
        lambda x: np.isfinite(x),
        tile=_isfinite_tile,
        traits=Trait.TRUTH,
        vector_cycles=7,
    ),
    Row(
        "isinf",
        lambda x: np.isinf(x),
        tile=_is_special_tile("isinf"),
        traits=Trait.TRUTH,
        vector_cycles=7,
    ),
    Row(
        "isnan",
        lambda x: np.isnan(x),
        tile=_is_special_tile("isnan"),
        traits=Trait.TRUTH,
        vector_cycles=7,
    ),
    Row(
        "log",
        lambda x: np.log(x),
        domain=(0.05, 4.0),
        vector_cycles=28,
    ),
    Row(
        "log10",
        lambda x: np.log10(x),
        domain=(0.05, 4.0),
        tile=_logarithm_tile(10.0),
        vector_cycles=29,
    ),
    Row(
        "log1p",
        lambda x: np.log1p(x),
        domain=(-0.9, 4.0),
        vector_cycles=30,
    ),
    Row(
        "log2",
        lambda x: np.log2(x),
        domain=(0.05, 4.0),
        tile=_logarithm_tile(2.0),
        vector_cycles=29,
    ),
    # uint8 is refused.
    Row(
        "logical_not",
        lambda x: np.logical_not(x),
        data_types=(*INTEGERS, *FLOATS),
        tile=logical_not_tile,
        traits=Trait.TRUTH,
    ),
    Row(
        "mish",
        lambda x: x * np.tanh(softplus(x)),
        tile=mish_tile,
        traits=Trait.ACTIVATES,
        vector_cycles=60,
    ),
    Row(
        "neg",
        lambda x: np.negative(counted(x)),
        data_types=SIGNED,
        tile=tile_function("negative_tile", "negative_tile_int32", _negated_tile),
        lower=_negated,
        traits=Trait.SELF_INVERSE | Trait.ALTERS | Trait.OUTGROWS | Trait.WRAPS,
        vector_cycles=3,
    ),
    Row(
        "reciprocal",
        lambda x: 1.0 / x,
        domain=(0.25, 4.0),
        tile=tile_function("recip_tile"),
        traits=Trait.SELF_INVERSE,
        noun="inverse",
        vector_cycles=15,
    ),
    Row(
        "relu",
        lambda x: np.maximum(x, 0),
        data_types=SIGNED,
        tile=tile_function("relu_tile", "relu_tile_int32", _itself),
        traits=Trait.IDEMPOTENT | Trait.KEEPS_TRUTH | Trait.ACTIVATES,
        vector_cycles=4,
    ),
    Row(
        "relu6",
        lambda x: np.clip(x, 0, 6),
        tile=_relu6_tile,
        traits=Trait.IDEMPOTENT | Trait.KEEPS_TRUTH | Trait.ACTIVATES,
        vector_cycles=12,
    ),
    # Ties to even. Source: _round_even_ of ckernel_sfpu_rounding_ops.h.
    Row(
        "round",
        lambda x: np.rint(x),
        tile=_round_tile,
        traits=Trait.IDEMPOTENT | Trait.KEEPS_TRUTH,
        vector_cycles=15,
    ),
    Row(
        "rsqrt",
        lambda x: 1.0 / np.sqrt(x),
        domain=(0.05, 4.0),
        noun="inverse_root",
        vector_cycles=31,
    ),
    Row(
        "sigmoid",
        sigmoid,
        traits=Trait.ACTIVATES,
        vector_cycles=40,
    ),
    Row(
        "sign",
        _sign,
        traits=Trait.IDEMPOTENT | Trait.KEEPS_TRUTH | Trait.OWN_NAN,
        vector_cycles=12,
    ),
    Row(
        "signbit",
        lambda x: np.signbit(x),
        tile=tile_function("signbit_tile", "signbit_tile_int32", _zero_tile),
    ),
    Row(
        "silu",
        lambda x: x * sigmoid(x),
        traits=Trait.ACTIVATES,
        vector_cycles=41,
    ),
    Row(
        "sin",
        lambda x: np.sin(x),
        noun="sine",
        vector_cycles=29,
    ),
    Row(
        "softsign",
        lambda x: x / (1.0 + np.abs(x)),
    ),
    Row(
        "sqrt",
        lambda x: np.sqrt(x),
        domain=(0.05, 4.0),
        noun="root",
        vector_cycles=28,
        traits=Trait.KEEPS_TRUTH,
    ),
    Row(
        "square",
        lambda x: np.square(counted(x)),
        data_types=(*INTEGERS, *FLOATS),
        tile=_square_tile,
        vector_cycles=3,
        traits=Trait.KEEPS_TRUTH | Trait.OUTGROWS | Trait.WRAPS,
    ),
    Row(
        "tan",
        lambda x: np.tan(x),
        domain=(-1.2, 1.2),
        vector_cycles=52,
    ),
    Row(
        "tanh",
        lambda x: np.tanh(x),
        traits=Trait.ACTIVATES,
        vector_cycles=16,
    ),
    Row(
        "trunc",
        lambda x: np.trunc(x),
        traits=Trait.IDEMPOTENT | Trait.KEEPS_TRUTH,
        vector_cycles=11,
    ),
)


_ROUNDING = frozenset(("ceil", "floor", "round", "trunc"))
"""Functions that are the identity on integers."""


def _rounded(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: function(x) if np.issubdtype(x.dtype, np.floating) else counted(x)


_OF_UNSIGNED = frozenset(("abs", "relu"))
"""Functions that are the identity on unsigned integers."""


def _unless_kept(name: str) -> Lowering:
    """Lowering to op `name`, or to its operand where the op is the identity on its integers."""
    lower = same_op(name)

    def lowered(builder: OpBuilder, op: CatalogueOp) -> SSAValue | Sequence[SSAValue]:
        value = op.operands[0]
        data_type = declared_data_type(value)
        if data_type.is_float or (name in _OF_UNSIGNED and data_type is DataType.INT32):
            return lower(builder, op)
        return builder.typecast(builder[value], op.result_type.element_type)

    return lowered


def of_floats(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Applies a function to float32 operands; integers are converted first."""

    def on_floats(x: Array) -> Array:
        found = function(in_floats(x))
        return found if np.issubdtype(x.dtype, np.floating) else found.astype(np.float32)

    return on_floats


def _register(row: Row) -> None:
    is_rounding = row.name in _ROUNDING
    is_kept = is_rounding or row.name in _OF_UNSIGNED
    of_array = of_floats(row.function) if row.data_types is FLOATS else row.function
    meaning = on_inputs(_rounded(row.function) if is_rounding else of_array)
    ttnn = row.ttnn or row.name
    register(
        TTIRDefinition(
            f"ttir.{row.name}",
            (operand("input", domain=row.domain),),
            verify=row.verify,
            numpy=meaning,
            lower=row.lower or (_unless_kept if is_kept else same_op)(ttnn),
            tile=row.tile or tile_function(f"{row.name}_tile"),
            cpu=cpu_call("elementwise"),
            counts=Trait.TRUTH not in row.traits,
            traits=row.traits,
            on_booleans=row.on_booleans,
            dimensions=of_elements,
            nouns=(row.noun,) if row.noun else (),
        )
    )
    register(
        TTNNDefinition(
            f"ttnn.{ttnn}",
            (OperandSpec("input", data_types=row.data_types),),
            verify=row.verify,
            numpy=meaning,
            result_rules=(ResultRule(placed=row.name not in _UNPLACED),),
            cpp=cpp_call(f"ttnn::{ttnn}", UNARY_HEADER, operand_("input"), *_placing(row.name)),
            traits=row.traits,
            block_floats=("input",) if Trait.ACTIVATES in row.traits else (),
            vector_cycles=row.vector_cycles,
            nouns=(row.noun,) if row.noun else (),
        )
    )


def _placing(name: str) -> list[ArgumentRule]:
    """Returns the argument rules up to the memory config of the result."""
    if name in _UNPLACED:
        return []
    exact: list[ArgumentRule] = [fixed_("false")] if name in _APPROXIMATED else []
    return [*exact, output_memory]


for _row in ROWS:
    _register(_row)
