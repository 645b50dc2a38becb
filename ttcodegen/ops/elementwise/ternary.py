"""Selection and clamping."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, element_of, normalized_data_type, shape_of
from ttcodegen.dialects.operations.attribute_kinds import NUMBER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder, broadcast_shapes, number_as, splat_of
from ttcodegen.ops.core.calls import (
    Argument,
    ArgumentRule,
    CppCalls,
    Text,
    cpp_call,
    cpp_text,
    operand_,
)
from ttcodegen.ops.core.definition import (
    Call,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    optional,
    register,
)
from ttcodegen.ops.core.dimensions import of_elements
from ttcodegen.ops.core.lowering import Tile, TileBuilder, cpu_call, in_floats, number_of, widened
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.elementwise.registration import counted, same_op, verify_broadcast

# where


def _lower_where(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Folds splat operands into scalars where the rest still spans the result."""
    condition, first, second = (builder[value] for value in op.operands)
    result = op.result_type
    shapes = [shape_of(value.type) for value in op.operands]
    exact = [_splat_as(value, result.element_type) for value in op.operands[1:]]
    # The library converts scalars to float (invoke_impl in ternary.cpp, tt-metal).
    numbers = [None if _is_inexact(number) else number for number in exact]

    def span(*indices: int) -> bool:
        return broadcast_shapes([shapes[index] for index in indices]) == op.result_shape

    if exact[0] is not None and numbers[1] is not None and span(0):
        first = builder.full([1] * len(shapes[0]), exact[0], result.element_type)
        return builder.emit("where", [condition, first, None], result, false_value=numbers[1])
    if numbers[1] is not None and span(0, 1):
        return builder.emit("where", [condition, first, None], result, false_value=numbers[1])
    if numbers[0] is not None and span(0, 2):
        return builder.emit("where", [condition, None, second], result, true_value=numbers[0])
    return builder.emit("where", [condition, first, second], result)


def _is_inexact(number: float | None) -> bool:
    """True if an integer is not exact in float32."""
    return isinstance(number, int) and number != float(np.float32(number))


def _splat_as(value: SSAValue, element: Attribute) -> float | int | None:
    """Returns the splat value converted to the element type, None if there is none."""
    splat, data_type = splat_of(value), normalized_data_type(element)
    return None if splat is None or data_type is None else number_of(splat, data_type)


def _where_tiles(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
    """Brings the three tiles to one format; the condition is compared with 0."""
    condition, first, second = widened(builder, tiles)
    data_type = first.data_type
    if element_of(op.operands[0].type) != i1:
        # The lowest int32 has the bits of -0.0, and a conversion of floats truncates 0.5 to 0.
        if not condition.data_type.is_float:
            condition = builder.call("nez_tile_int32", condition)
        elif not data_type.is_float:
            condition = builder.call("nez_tile", condition)
    if condition.data_type.is_float != data_type.is_float:
        condition = builder.convert(condition, data_type)
    # The registers hold 32 bits of either format; the op only copies them.
    dtype = DataType.FLOAT32 if data_type.is_float else DataType.INT32
    return builder.call("where_tile", condition, first, second, data_type=data_type, dtype=dtype)


def _selection(call: Call) -> Array:
    condition, first, second = call.inputs
    return np.where(condition != 0, first, second)


register(
    TTIRDefinition(
        "ttir.where",
        (operand("condition", input_kind="mask"), operand("first"), operand("second")),
        verify=verify_broadcast,
        dimensions=of_elements,
        numpy=_selection,
        lower=_lower_where,
        tile=_where_tiles,
        cpu=cpu_call("elementwise"),
        counts=True,
        traits=Trait.INDEX_ARITHMETIC | Trait.KEEPS_TRUTH | Trait.SELECTS,
    )
)


def _verify_where(op: CatalogueOp) -> None:
    """Each branch is a tensor or a number."""
    for name, number in (("first", "true_value"), ("second", "false_value")):
        if op.optional_operand(name) is None and op.parameter(number) is None:
            raise VerifyException(f"{op.name} needs the operand '{name}' or '{number}'")
    verify_broadcast(op)


def _where(call: Call) -> Array:
    first, second = call.optional("first"), call.optional("second")
    chosen_from = first if first is not None else second
    assert chosen_from is not None
    if first is None:
        first = np.asarray(call["true_value"], dtype=chosen_from.dtype)
    if second is None:
        second = np.asarray(call["false_value"], dtype=chosen_from.dtype)
    return np.where(call.array("condition") != 0, first, second)


def _choice(operand_name: str, attribute_name: str) -> ArgumentRule:
    """Rule for a tensor, or the number that replaces it."""

    def rule(calls: CppCalls, op: CatalogueOp) -> Argument:
        value = op.optional_operand(operand_name)
        if value is not None:
            return calls[value]
        return Text(cpp_text(float(op.parameter(attribute_name))))

    return rule


register(
    TTNNDefinition(
        "ttnn.where",
        (operand("condition"), optional("first"), optional("second")),
        (attribute("true_value", NUMBER, None), attribute("false_value", NUMBER, None)),
        verify=_verify_where,
        numpy=_where,
        # The result has the data type of the tensor that is selected from (docs/library-rules.md).
        result_rules=(ResultRule(like=("first", "second")),),
        cpp=cpp_call(
            "ttnn::where",
            "ttnn/operations/eltwise/ternary/ternary.hpp",
            operand_("condition"),
            _choice("first", "true_value"),
            _choice("second", "false_value"),
        ),
        nouns=("selected",),
    )
)

# clamp

CLAMP_HEADER = "ttnn/operations/eltwise/unary/unary_composite.hpp"
_BOUNDS = (attribute("min", NUMBER), attribute("max", NUMBER))


def _clamp(call: Call) -> Array:
    array = counted(call.array("input"))
    low, high = (number_as(call[name], array.dtype.name) for name in ("min", "max"))
    within = clamped(array, np.asarray(low), np.asarray(high))
    # An infinite bound does not clamp NaN.
    bounds = np.where(np.signbit(array), low, high)
    return np.where(np.isnan(array) & np.isinf(bounds), array, within)


def clamped(x: Array, low: Array, high: Array) -> Array:
    """Clamps by sign and magnitude, as the vector engine does: NaN orders by its sign."""
    if not np.issubdtype(x.dtype, np.floating):
        return np.minimum(np.maximum(x, low), high)
    lowered = np.where(_is_above(x, high), high, x)
    return np.where(low > high, high, np.where(_is_above(low, lowered), low, lowered))


def _is_above(a: Array, b: Array) -> Array:
    """Compares by sign and magnitude: NaN is beyond the infinity of its sign."""
    beyond = [np.where(np.isnan(x), np.copysign(1, x), 0) for x in (a, b)]
    return np.where(beyond[0] == beyond[1], a > b, beyond[0] > beyond[1])


def _verify_bounds(op: CatalogueOp) -> None:
    """One shape, and bounds that are not NaN: kernels order NaN by its sign."""
    verify_broadcast(op)
    for name in ("min", "max"):
        if np.isnan(op.parameter(name)):
            raise VerifyException(
                f"{op.name}: expected a number for '{name}', found NaN, by which every element "
                "would be NaN"
            )


def _bounds_on_cpu(op: CatalogueOp) -> dict[str, float]:
    data_type = declared_data_type(op.operands[0])
    return {name: number_of(op.parameter(name), data_type) for name in ("min", "max")}


def _lower_clamp(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Lowers to one call; unsigned integers, which it does not support, by maximum and minimum."""
    value = builder.operand(op, "input")
    bounds = {name: op.parameter(name) for name in ("min", "max")}
    if declared_data_type(value) is not DataType.UINT32:
        return builder.emit("clamp_scalar", [value], op.result_type, **bounds)
    element = element_of(value.type)
    for name, number in (("maximum", bounds["min"]), ("minimum", bounds["max"])):
        limit = int(number_of(number, DataType.UINT32))
        bound = builder.full([1] * len(op.result_shape), limit, element)
        value = builder.broadcasting(name, value, bound)
    return builder.typecast(value, op.result_type.element_type)


def _bounded_tiles(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
    (tile,) = widened(builder, tiles)
    low, high = op.parameter("min"), op.parameter("max")
    if tile.data_type.is_float:
        return builder.call("clamp_tile", tile, parameters=(float(low), float(high)))
    low, high = (int(number_of(number, tile.data_type)) for number in (low, high))
    if tile.data_type is DataType.INT32:
        bits = [number & 0xFFFFFFFF for number in (low, high)]
        return builder.call("clamp_tile_int32", tile, parameters=bits)
    raised = builder.call("binary_max_uint32_tile", tile, builder.fill(low, tile.data_type))
    return builder.call("binary_min_uint32_tile", raised, builder.fill(high, tile.data_type))


register(
    TTIRDefinition(
        "ttir.clamp_scalar",
        (operand("input"),),
        _BOUNDS,
        verify=_verify_bounds,
        dimensions=of_elements,
        numpy=_clamp,
        lower=_lower_clamp,
        tile=_bounded_tiles,
        cpu=cpu_call("elementwise", _bounds_on_cpu),
        counts=True,
        traits=Trait.INDEX_ARITHMETIC | Trait.OWN_NAN | Trait.SELECTS,
    )
)


def _bound(name: str) -> ArgumentRule:
    """Rule for a bound of the tensor's kind: a float bound would make the result float."""

    def rule(calls: CppCalls, op: CatalogueOp) -> Argument:
        value = op.parameter(name)
        data_type = declared_data_type(op.operands[0])
        if data_type.is_float:
            return Text(cpp_text(float(value)))
        return Text(cpp_text(int(number_as(value, data_type.numpy))))

    return rule


register(
    TTNNDefinition(
        "ttnn.clamp_scalar",
        # Only int32 has integer bounds (docs/library-rules.md).
        (
            operand(
                "input",
                data_types=(
                    DataType.INT32,
                    DataType.FLOAT32,
                    DataType.BFLOAT16,
                    DataType.BFLOAT8_B,
                    DataType.BFLOAT4_B,
                ),
            ),
        ),
        _BOUNDS,
        verify=_verify_bounds,
        numpy=_clamp,
        cpp=cpp_call("ttnn::clamp", CLAMP_HEADER, operand_("input"), _bound("min"), _bound("max")),
        function="clamp",
        traits=Trait.ALTERS,
    )
)

_CLAMPED = (
    operand("input"),
    operand("min", domain=(-1.5, -0.5)),
    operand("max", domain=(0.5, 1.5)),
)


def _clamp_tiles(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
    kind = {DataType.INT32: "_int32", DataType.UINT32: "_uint32"}
    tiles = widened(builder, tiles)
    if any(tile.data_type.is_float for tile in tiles):
        tiles = in_floats(builder, tiles)
    value, low, high = tiles
    suffix = f"{kind.get(value.data_type, '')}_tile"
    raised = builder.call(f"binary_max{suffix}", value, low)
    return builder.call(f"binary_min{suffix}", raised, high)


def _clamp_meaning(call: Call) -> Array:
    return clamped(*(call.array(name) for name in ("input", "min", "max")))


register(
    TTIRDefinition(
        "ttir.clamp_tensor",
        _CLAMPED,
        verify=verify_broadcast,
        dimensions=of_elements,
        numpy=_clamp_meaning,
        lower=same_op("clamp_tensor"),
        tile=_clamp_tiles,
        cpu=cpu_call("elementwise"),
        counts=True,
        traits=Trait.INDEX_ARITHMETIC | Trait.OWN_NAN | Trait.SELECTS,
    )
)

register(
    TTNNDefinition(
        "ttnn.clamp_tensor",
        _CLAMPED,
        verify=verify_broadcast,
        numpy=_clamp_meaning,
        cpp=cpp_call(
            "ttnn::clamp", CLAMP_HEADER, operand_("input"), operand_("min"), operand_("max")
        ),
        function="clamp",
        traits=Trait.ALTERS,
    )
)
