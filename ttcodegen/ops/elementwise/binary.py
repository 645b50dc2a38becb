"""Elementwise ops of two tensors, or of a tensor and a scalar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import (
    DataType,
    element_of,
    is_boolean,
    normalized_data_type,
    shape_of,
    ui8,
    ui32,
)
from ttcodegen.dialects.operations.attribute_kinds import DATA_TYPE, NUMBER, STRING
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder, splat_of
from ttcodegen.ops.core.calls import (
    NULLOPT,
    Argument,
    CppCalls,
    Text,
    cpp_call,
    cpp_text,
    nullopt,
    operand_,
    output_memory,
)
from ttcodegen.ops.core.definition import (
    Call,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    Verifier,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.core.dimensions import of_elements
from ttcodegen.ops.core.lowering import (
    TileLowering,
    binary_tiles,
    cpu_call,
    extreme_tiles,
    tile_function,
)
from ttcodegen.ops.core.traits import COMPARISON, Trait
from ttcodegen.ops.elementwise.activations import (
    ACTIVATION_PARAMETERS,
    activated,
    activated_operand,
    verify_activation,
)
from ttcodegen.ops.elementwise.registration import (
    BINARY_HEADER,
    comparison_tiles,
    counted,
    in_floats,
    logical_tiles,
    on_inputs,
    quotient_tiles,
    shift_right_tiles,
    shifted_right,
    typed_tiles,
    verify_bits,
    verify_broadcast,
    verify_integers,
    whole_power,
    whole_quotient,
    whole_remainder,
)

COMPOSITE_HEADER = "ttnn/operations/eltwise/binary/binary_composite.hpp"
FLOATS = (DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B, DataType.BFLOAT4_B)
INTEGERS = (DataType.INT32, DataType.UINT32, DataType.UINT16)
BITWISE: dict[str, Any] = {
    "data_types": INTEGERS,
    "verify": verify_bits,
}
SHIFTED: dict[str, Any] = {
    "data_types": (DataType.INT32, DataType.UINT32),
    "verify": verify_integers,
    "domains": (None, (0, 8)),
}
_ON_COUNTS = Trait.EXACT_ON_INTEGERS | Trait.INDEX_ARITHMETIC | Trait.ADJUSTS
_OF_SUMS = _ON_COUNTS | Trait.ON_MATRIX_ENGINE | Trait.OUTGROWS | Trait.WRAPS
_OF_EXTREMES = _ON_COUNTS | Trait.KEEPS_TRUTH | Trait.SELECTS

TWO_OPERAND_CYCLES = 18
"""Vector engine cycles of an op of two tensors for 32 elements (`eq`, `lt`, `le` on cards)."""


@dataclass(frozen=True)
class Row:
    """An elementwise binary op.

    Fields with defaults override the usual: TTNN name, header, data types of the library, lowering
    for integers that it does not support, output data type argument, scalar second operand.
    """

    name: str
    function: Callable[[Array, Array], Array]
    ttnn: str = ""
    header: str = BINARY_HEADER
    data_types: tuple[DataType, ...] = (*INTEGERS, *FLOATS)
    """uint8 has no kernels: it is computed as uint32."""
    of_integers: Callable[[OpBuilder, SSAValue, SSAValue], SSAValue] | None = None
    dtype: bool = True
    scalar: bool = True
    commutes: bool = False
    domains: tuple[tuple[float, float] | None, tuple[float, float] | None] = (None, None)
    verify: Verifier = verify_broadcast
    tile: TileLowering | None = None
    traits: Trait = Trait.NONE
    on_booleans: str | None = None
    activated: bool = False
    """True if the call can fuse an activation of its result and of each operand."""
    noun: str = ""
    participle: str = ""
    vector_cycles: int = TWO_OPERAND_CYCLES


def _quotient(a: Array, b: Array) -> Array:
    if not np.issubdtype(a.dtype, np.integer):
        return a / b
    a, b = counted(a), counted(b)
    # Division by zero is undefined on the device; 0 matches the CPU backend.
    divisor = np.where(b == 0, 1, b).astype(a.dtype)
    with np.errstate(over="ignore"):
        found = a // divisor
    up = (a % divisor != 0) & ((a < 0) != (divisor < 0))
    return np.where(b == 0, 0, found + up.astype(a.dtype)).astype(a.dtype)


def _remainder(a: Array, b: Array) -> Array:
    """Remainder with the sign of the divisor.

    Division by 0 is undefined on the device; it gives 0, or the dividend for unsigned 32-bit
    integers, as in the CPU backend.
    """
    found = np.remainder(a, b)
    return np.where(b == 0, a, found) if a.dtype in ("uint32", "uint64") else found


def _power(a: Array, b: Array) -> Array:
    """Power that keeps integers; fractions from negative exponents are truncated."""
    a, b = counted(a), counted(b)
    if not np.issubdtype(a.dtype, np.integer):
        # np.power takes the square root for a scalar exponent of 0.5, which differs for -inf and
        # -0.0.
        return np.power(a, np.array(np.broadcast_to(b, np.broadcast_shapes(a.shape, b.shape))))
    raised = np.power(a.astype(np.int64), np.maximum(b, 0).astype(np.int64))
    is_unit = np.abs(a.astype(np.int64)) == 1
    found = np.where((b < 0) & ~is_unit, 0, np.where(b < 0, np.where(b % 2 == 0, 1, a), raised))
    return found.astype(a.dtype)


def _shift_left(a: Array, b: Array) -> Array:
    bits = a.dtype.itemsize * 8
    outside = (b < 0) | (b >= bits)
    return np.where(outside, 0, np.left_shift(a, np.where(outside, 0, b))).astype(a.dtype)


def _shift_right_logical(a: Array, b: Array) -> Array:
    size = a.dtype.itemsize
    outside = (b < 0) | (b >= 8 * size)
    unsigned = a.astype(f"u{size}")
    shifted = np.right_shift(unsigned, np.where(outside, 0, b).astype(unsigned.dtype))
    return np.where(outside, 0, shifted).astype(unsigned.dtype).view(a.dtype)


def _shift_right(a: Array, b: Array) -> Array:
    bits = a.dtype.itemsize * 8
    outside = (b < 0) | (b >= bits)
    shifted = np.right_shift(a, np.where(outside, bits - 1, b).astype(a.dtype))
    return np.where(outside & (a >= 0), 0, shifted).astype(a.dtype)


def verify_remainder(op: CatalogueOp) -> None:
    """Numeric operands that broadcast: the only boolean divisor would be 1."""
    verify_broadcast(op)
    if all(is_boolean(element_of(value.type)) for value in op.operands):
        raise VerifyException(f"{op.name}: expected numbers, found elements of type i1")


# Some calls with dtype=False have the parameter but ignore it (measured on the library).
ROWS = (
    Row(
        "add",
        lambda a, b: counted(a) + counted(b),
        commutes=True,
        tile=binary_tiles("add_binary_tile", "add_unary_tile", typed="add_int_tile"),
        traits=_OF_SUMS,
        on_booleans="logical_or",
        activated=True,
        noun="sum",
        participle="shifted",
    ),
    Row(
        "subtract",
        lambda a, b: counted(a) - counted(b),
        tile=binary_tiles("sub_binary_tile", "sub_unary_tile", typed="sub_int_tile"),
        traits=_OF_SUMS,
        on_booleans="logical_xor",
        activated=True,
        noun="difference",
        participle="shifted",
    ),
    Row(
        "multiply",
        lambda a, b: counted(a) * counted(b),
        commutes=True,
        tile=binary_tiles("mul_binary_tile", "mul_unary_tile", typed="mul_int_tile"),
        on_booleans="logical_and",
        traits=Trait.ADJUSTS | Trait.ON_MATRIX_ENGINE | Trait.OUTGROWS | Trait.WRAPS,
        activated=True,
        noun="product",
        participle="scaled",
    ),
    # The call on integers depends on their type: some give f32, some truncate.
    Row(
        "div",
        _quotient,
        "divide",
        data_types=FLOATS,
        of_integers=whole_quotient,
        dtype=False,
        domains=(None, (0.25, 4.0)),
        tile=quotient_tiles,
        traits=Trait.ADJUSTS | Trait.OUTGROWS,
        noun="quotient",
        participle="scaled",
        vector_cycles=39,
    ),
    Row(
        "maximum",
        lambda a, b: np.maximum(a, b),
        "",
        COMPOSITE_HEADER,
        data_types=(DataType.INT32, DataType.UINT32, *FLOATS),
        dtype=False,
        commutes=True,
        tile=extreme_tiles(greatest=True),
        traits=_OF_EXTREMES,
        participle="clamped",
    ),
    Row(
        "minimum",
        lambda a, b: np.minimum(a, b),
        "",
        COMPOSITE_HEADER,
        data_types=(DataType.INT32, DataType.UINT32, *FLOATS),
        dtype=False,
        commutes=True,
        tile=extreme_tiles(greatest=False),
        traits=_OF_EXTREMES,
        participle="clamped",
    ),
    Row(
        "pow",
        _power,
        header=COMPOSITE_HEADER,
        data_types=FLOATS,
        of_integers=whole_power,
        dtype=False,
        domains=((0.25, 2.0), (-2.0, 2.0)),
        tile=binary_tiles("power_binary_tile"),
        vector_cycles=100,
        traits=Trait.OUTGROWS,
    ),
    Row(
        "remainder",
        _remainder,
        header=COMPOSITE_HEADER,
        dtype=False,
        data_types=(*FLOATS, DataType.INT32),  # unsigned integers are refused
        of_integers=whole_remainder,
        verify=verify_remainder,
        domains=(None, (0.5, 4.0)),
        tile=binary_tiles("remainder_binary_tile", int32="remainder_int32_tile"),
        traits=Trait.INDEX_ARITHMETIC,
        vector_cycles=94,
    ),
    Row(
        "atan2",
        lambda a, b: np.arctan2(in_floats(a), in_floats(b)),
        header=COMPOSITE_HEADER,
        data_types=FLOATS,
        dtype=False,
        scalar=False,
        tile=tile_function("atan2_binary_tile"),
        vector_cycles=47,
    ),
    Row("eq", lambda a, b: a == b, commutes=True, tile=comparison_tiles("eq"), traits=COMPARISON),
    Row("ne", lambda a, b: a != b, commutes=True, tile=comparison_tiles("ne"), traits=COMPARISON),
    Row("lt", lambda a, b: a < b, tile=comparison_tiles("lt"), traits=COMPARISON),
    Row("le", lambda a, b: a <= b, tile=comparison_tiles("le"), traits=COMPARISON),
    Row("gt", lambda a, b: a > b, tile=comparison_tiles("gt"), traits=COMPARISON),
    Row("ge", lambda a, b: a >= b, tile=comparison_tiles("ge"), traits=COMPARISON),
    Row(
        "logical_and",
        lambda a, b: np.logical_and(a, b),
        scalar=False,
        commutes=True,
        tile=logical_tiles("mul_binary_tile"),
        traits=Trait.TRUTH,
        vector_cycles=30,
    ),
    Row(
        "logical_or",
        lambda a, b: np.logical_or(a, b),
        scalar=False,
        commutes=True,
        tile=logical_tiles("binary_max_tile"),
        traits=Trait.TRUTH,
        vector_cycles=30,
    ),
    Row(
        "logical_xor",
        lambda a, b: np.logical_xor(a, b),
        scalar=False,
        commutes=True,
        tile=logical_tiles("ne_binary_tile"),
        traits=Trait.TRUTH,
        vector_cycles=30,
    ),
    Row(
        "bitwise_and",
        lambda a, b: a & b,
        dtype=False,
        scalar=False,
        tile=typed_tiles("bitwise_and_binary_tile"),
        **BITWISE,
        traits=Trait.EXACT_ON_INTEGERS | Trait.WRAPS,
        on_booleans="logical_and",
    ),
    Row(
        "bitwise_or",
        lambda a, b: a | b,
        dtype=False,
        scalar=False,
        tile=typed_tiles("bitwise_or_binary_tile"),
        **BITWISE,
        traits=Trait.EXACT_ON_INTEGERS | Trait.WRAPS,
        on_booleans="logical_or",
    ),
    Row(
        "bitwise_xor",
        lambda a, b: a ^ b,
        dtype=False,
        scalar=False,
        tile=typed_tiles("bitwise_xor_binary_tile"),
        **BITWISE,
        traits=Trait.EXACT_ON_INTEGERS | Trait.WRAPS,
        on_booleans="logical_xor",
    ),
    Row(
        "logical_left_shift",
        _shift_left,
        dtype=False,
        scalar=False,
        **SHIFTED,
        tile=typed_tiles("binary_left_shift_tile"),
        traits=Trait.WRAPS,
    ),
    Row(
        "logical_right_shift",
        _shift_right_logical,
        scalar=False,
        **SHIFTED,
        tile=typed_tiles("binary_logical_right_shift_tile"),
    ),
    Row(
        "right_shift",
        _shift_right,
        "bitwise_right_shift",
        dtype=False,
        scalar=False,
        data_types=(DataType.INT32,),
        of_integers=shifted_right,
        verify=verify_integers,
        domains=(None, (0, 8)),
        tile=shift_right_tiles,
    ),
)


def _verify_with_scalar(row: Row) -> Verifier:
    """Verifier of a call whose second operand is a tensor or a scalar."""

    def verified(op: CatalogueOp) -> None:
        if op.optional_operand("rhs") is None and op.parameter("scalar") is None:
            raise VerifyException(f"{op.name}: expected a second operand or a scalar")
        if row.activated:
            verify_activation(op)
        row.verify(op)

    return verified


def _meaning_with_scalar(row: Row) -> Callable[[Call], Any]:
    def meaning(call: Call) -> Any:
        lhs = call.array("lhs")
        rhs = call.optional("rhs")
        if rhs is None:
            rhs = np.asarray(call["scalar"], dtype=lhs.dtype)
        if not row.activated:
            return row.function(lhs, rhs)
        lhs = activated_operand(lhs, call["lhs_activation"])
        rhs = activated_operand(rhs, call["rhs_activation"])
        return activated(row.function(lhs, rhs), call.attributes)

    return meaning


def _rhs(calls: CppCalls, op: CatalogueOp) -> Argument:
    value = op.optional_operand("rhs")
    return calls[value] if value is not None else Text(cpp_text(float(op.parameter("scalar"))))


def _lowering(row: Row) -> Callable[[OpBuilder, CatalogueOp], SSAValue]:
    ttnn = row.ttnn or row.name

    def lower(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
        lhs, rhs = op.operands
        result = op.result_type
        data_type = declared_data_type(lhs)
        if row.scalar and (splat := _foldable(op, rhs, lhs)) is not None:
            return builder.emit(ttnn, [builder[lhs], None], result, scalar=splat)
        if row.scalar and row.commutes and (splat := _foldable(op, lhs, rhs)) is not None:
            return builder.emit(ttnn, [builder[rhs], None], result, scalar=splat)
        if row.of_integers is not None and not data_type.is_float:
            a, b = builder[lhs], builder.typecast(builder[rhs], element_of(lhs.type))
            return builder.typecast(row.of_integers(builder, a, b), result.element_type)
        if element_of(result) == ui8:
            # Calls with a uint8 result do not wrap.
            wide = [builder.typecast(builder[value], ui32) for value in (lhs, rhs)]
            return builder.typecast(builder.broadcasting(ttnn, *wide), ui8)
        first = _shrunk(builder, lhs, rhs)
        # If both are splats, one has to span the result.
        shrunk = shape_of(first.type) != shape_of(lhs.type)
        second = builder[rhs] if shrunk else _shrunk(builder, rhs, lhs)
        return builder.emit(ttnn, [first, second], result)

    return lower


def _foldable(op: CatalogueOp, constant: SSAValue, other: SSAValue) -> float | None:
    """Returns the value of a splat operand that can become a scalar argument.

    The other operand must be a float tensor of the result's shape.
    """
    data_type = normalized_data_type(element_of(op.operands[0].type))
    if data_type is None or not data_type.is_float or shape_of(other.type) != op.result_shape:
        return None
    splat = splat_of(constant)
    return None if splat is None else float(splat)


def _shrunk(builder: OpBuilder, constant: SSAValue, other: SSAValue) -> SSAValue:
    """Replaces a splat by one of a single element if the other operand spans the result."""
    shape = shape_of(constant.type)
    if len(shape) > len(shape_of(other.type)) or all(size == 1 for size in shape):
        return builder[constant]
    broadcast = shape_of(other.type)[len(shape_of(other.type)) - len(shape) :]
    splat = splat_of(constant)
    if splat is None or any(a != b and a != 1 for a, b in zip(shape, broadcast, strict=True)):
        return builder[constant]
    element = element_of(constant.type)
    return builder.full([1] * len(shape), splat, element)


OPERAND_ACTIVATIONS = ("lhs_activation", "rhs_activation")
"""Attributes that name the activations of the operands, in order."""
_ACTIVATION_ARGUMENTS = ("activation", *OPERAND_ACTIVATIONS)
"""Attributes that name activations, in the order of the library's arguments."""


def _register(row: Row) -> None:
    ttnn = row.ttnn or row.name
    first, second = row.domains
    register(
        TTIRDefinition(
            f"ttir.{row.name}",
            (operand("lhs", domain=first), operand("rhs", domain=second)),
            verify=row.verify,
            numpy=on_inputs(row.function),
            lower=_lowering(row),
            tile=row.tile,
            cpu=cpu_call("elementwise"),
            counts=Trait.TRUTH not in row.traits,
            traits=row.traits,
            on_booleans=row.on_booleans,
            dimensions=of_elements,
            nouns=(row.noun,) if row.noun else (),
            participle=row.participle,
        )
    )
    attributes = [attribute("scalar", NUMBER, None)] if row.scalar else []
    rules = [operand_("lhs"), _rhs if row.scalar else operand_("rhs")]
    if row.dtype:
        attributes.append(attribute("dtype", DATA_TYPE, None))
        rules += [_output_data_type, output_memory]
    if row.activated:
        attributes += [attribute(name, STRING, None) for name in _ACTIVATION_ARGUMENTS]
        rules += [nullopt, *map(_activations, range(len(_ACTIVATION_ARGUMENTS)))]
    lhs = OperandSpec("lhs", data_types=row.data_types)
    rhs = OperandSpec("rhs", "optional" if row.scalar else "one", data_types=row.data_types)
    register(
        TTNNDefinition(
            f"ttnn.{ttnn}",
            (lhs, rhs),
            tuple(attributes),
            verify=_verify_with_scalar(row) if row.scalar else row.verify,
            numpy=_meaning_with_scalar(row) if row.scalar else on_inputs(row.function),
            result_rules=(ResultRule("attribute" if row.dtype else "first", placed=row.dtype),),
            cpp=cpp_call(f"ttnn::{ttnn}", row.header, *rules),
            traits=row.traits,
            block_floats=("lhs", "rhs") if row.activated else (),
            vector_cycles=row.vector_cycles,
            nouns=(row.noun,) if row.noun else (),
            participle=row.participle,
        )
    )


def _activations(index: int) -> Callable[[CppCalls, CatalogueOp], Argument]:
    """Rule of the activation argument with that index.

    Activations run in the destination registers; the result's runs before rounding.
    """

    def argument(calls: CppCalls, op: CatalogueOp) -> Argument:
        names: list[str | None] = [op.parameter(each) for each in _ACTIVATION_ARGUMENTS[index:]]
        if not any(names):
            return NULLOPT
        name = names[0]
        if name is None:
            return Text("{}")
        calls.include("ttnn/operations/eltwise/unary/common/unary_op_types.hpp")
        numbers = "".join(f", {number!r}F" for number in ACTIVATION_PARAMETERS.get(name, ()))
        unary = "ttnn::operations::unary"
        function = f"{unary}::UnaryOpType::{name.upper()}{numbers}"
        return Text(f"std::array{{{unary}::EltwiseUnaryWithParam({function})}}")

    return argument


def _output_data_type(calls: CppCalls, op: CatalogueOp) -> Argument:
    data_type = op.parameter("dtype")
    if data_type is None:
        return NULLOPT
    return Text(cpp_text(data_type))


for _row in ROWS:
    _register(_row)

ACTIVATED = frozenset(row.ttnn or row.name for row in ROWS if row.activated)
"""Calls that can fuse an activation, by short name."""


def _truncating(calls: CppCalls, op: CatalogueOp) -> Argument:
    """Selects exact division: float division loses the last bits of large integers."""
    return Text('/*fast_and_approximate_mode=*/false, "trunc"')


_INTEGERS = (DataType.INT32,)

register(
    TTNNDefinition(
        "ttnn.div_trunc",
        (OperandSpec("lhs", data_types=_INTEGERS), OperandSpec("rhs", data_types=_INTEGERS)),
        verify=verify_integers,
        numpy=on_inputs(_quotient),
        cpp=cpp_call("ttnn::div", COMPOSITE_HEADER, operand_("lhs"), operand_("rhs"), _truncating),
        function="div",
        nouns=("quotient",),
    )
)
