"""Constants, fills, ranges and random tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import (
    DataType,
    constant_array,
    elements,
    f32,
    si32,
    splat_bytes,
    splat_value,
)
from ttcodegen.dialects.operations.attribute_kinds import CONSTANT, INTEGER, INTEGERS, NUMBER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder, number_as, splat_of
from ttcodegen.ops.core.calls import (
    Argument,
    CppCalls,
    Text,
    cpp_text,
    shape_text,
)
from ttcodegen.ops.core.definition import (
    Call,
    Layout,
    Memory,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    register,
)
from ttcodegen.ops.core.dimensions import Dimensions, Labels, Shape, of_filling, require
from ttcodegen.ops.core.engine import scale_of_range, uniform_numbers
from ttcodegen.ops.core.lowering import Tile, TileBuilder, cpu_call, no_operation, number_of
from ttcodegen.ops.core.traits import Trait, no_flops
from ttcodegen.ops.elementwise.registration import UNARY_HEADER

if TYPE_CHECKING:
    from ttcodegen.dialects.ttnn.placement import TensorPlacement

CREATION_HEADER = "ttnn/operations/creation/creation.hpp"


def _filled(call: Call, value: float) -> Array:
    info = call.results[0]
    # A broadcast scalar takes no memory, however many elements it represents.
    return np.broadcast_to(number_as(value, _computing(info.dtype)), info.shape)


def _computing(dtype: str) -> str:
    return {"bfloat16": "float32", "float16": "float32"}.get(dtype, dtype)


def _verify_shape(op: CatalogueOp) -> None:
    """The result has the shape in the attribute."""
    shape = op.parameter("shape")
    if shape is not None and tuple(shape) != op.result_shape:
        raise VerifyException(
            f"{op.name}: expected a result of shape {tuple(shape)}, found {op.result_shape}"
        )


def _number_on_cpu(op: CatalogueOp) -> dict[str, float | int]:
    """Field of the fill value; 0 for empty constants, which have none."""
    value = splat_of(op.results[0]) or 0
    return {"value": number_of(value, declared_data_type(op.results[0]))}


def _lower_full(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    value = {"ttir.zeros": 0, "ttir.ones": 1}.get(op.name)
    if value is None:
        value = op.parameter("fill_value")
    return builder.full(op.result_shape, value, op.result_type.element_type)


_SHAPE = attribute("shape", INTEGERS, None)

for _name, _value in (("zeros", 0), ("ones", 1)):
    register(
        TTIRDefinition(
            f"ttir.{_name}",
            (),
            (_SHAPE,),
            verify=_verify_shape,
            dimensions=of_filling,
            numpy=lambda call, value=_value: _filled(call, value),
            lower=_lower_full,
            cpu=cpu_call("movement", _number_on_cpu, function="full"),
        )
    )

register(
    TTIRDefinition(
        "ttir.full",
        (),
        (_SHAPE, attribute("fill_value", NUMBER)),
        verify=_verify_shape,
        dimensions=of_filling,
        numpy=lambda call: _filled(call, call["fill_value"]),
        lower=_lower_full,
        cpu=cpu_call("movement", _number_on_cpu, function="full"),
    )
)

register(
    TTIRDefinition(
        "ttir.empty",
        (),
        (),
        # The contents of an uninitialised tensor must not matter, so any value will do.
        numpy=lambda call: _filled(call, 0),
        primitives=lambda builder, op: builder.full(
            op.result_shape, 0.0, op.result_type.element_type
        ),
        lower=lambda builder, op: builder.full(op.result_shape, 0, op.result_type.element_type),
    )
)


def _verify_constant(op: CatalogueOp) -> None:
    """The value has the shape and element type of the result."""
    value = op.parameter("value")
    type_ = getattr(value, "type", None)
    if isinstance(type_, TensorType) and type_.get_shape() != op.result_shape:
        raise VerifyException(
            f"{op.name}: the value has shape {type_.get_shape()}, the result {op.result_shape}"
        )


def _of_one_number(op: CatalogueOp) -> Dimensions | None:
    """Labels of a splat constant; None for others."""
    value = op.parameter("value")
    number = splat_bytes(value)
    if number is None:
        return None

    def attributes(_: Sequence[Shape], results: Sequence[Shape]) -> dict[str, Any]:
        return {"value": elements(op.result_type.element_type, results[0], number)}

    return Dimensions([], [tuple(range(len(op.result_shape)))], attributes=attributes)


def _but_the_range(op: CatalogueOp) -> Dimensions:
    """Labels of all dimensions but that of the range."""
    rank = len(op.result_shape)
    dim = op.parameter("arange_dimension") % rank
    labels: Labels = tuple([None if each == dim else each for each in range(rank)])
    return Dimensions([], [labels])


def _constant_meaning(call: Call) -> Array:
    value = call["value"]
    if isinstance(value, np.ndarray):
        return cast("Array", value)
    if (splat := splat_value(value)) is not None:
        return _filled(call, splat)
    return constant_array(value).reshape(call.results[0].shape)


def _lower_constant(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    value = op.parameter("value")
    splat = splat_value(value)
    if splat is None and prod(op.result_shape) == 1:
        splat = constant_array(value).reshape(-1)[0].item()
    if splat is not None:
        return builder.full(op.result_shape, splat, op.result_type.element_type)
    return builder.emit("constant", [], op.result_type, value=value)


register(
    TTIRDefinition(
        "ttir.constant",
        (),
        (attribute("value", CONSTANT),),
        verify=_verify_constant,
        dimensions=_of_one_number,
        numpy=_constant_meaning,
        lower=_lower_constant,
        cpu=cpu_call("movement", _number_on_cpu, function="full"),
    )
)


def _cpp_constant(calls: CppCalls, op: CatalogueOp) -> None:
    result = op.results[0]
    file = calls.data_array(op)
    calls.include_support("tensor.hpp")
    arguments: list[Argument] = [
        Text(cpp_text(file)),
        Text(shape_text(op.result_shape)),
        calls.data_type(op, _placement(op).data_type),
    ]
    calls.bind(result, calls.call("support::load_tensor", *arguments))


register(
    TTNNDefinition(
        "ttnn.constant",
        (),
        (attribute("value", CONSTANT),),
        verify=_verify_constant,
        numpy=_constant_meaning,
        result_rules=(ResultRule("declared", Layout.ROW_MAJOR, Memory.HOST),),
        cpp=_cpp_constant,
        traits=Trait.USES_HOST,
        flops=no_flops,
    )
)


def _placement(op: CatalogueOp) -> TensorPlacement:
    from ttcodegen.dialects.ttnn.placement import placement_of

    return placement_of(op.results[0])


def _layout_text(placement: TensorPlacement) -> str:
    return f"ttnn::Layout::{placement.layout.name}"


def _cpp_full(calls: CppCalls, op: CatalogueOp) -> None:
    """Emits `zeros` or `ones`, with a `fill` for other values.

    `ttnn::full` is a constrained template, whose symbol GCC before 14 and Clang mangle differently:
    a program of one does not link with a library of the other.
    """
    calls.include(CREATION_HEADER)
    placement = _placement(op)
    value = op.parameter("fill_value")
    arguments: list[Argument] = [
        Text(shape_text(placement.shape)),
        Text(cpp_text(placement.data_type)),
        Text(_layout_text(placement)),
        calls.device,
    ]
    if value in (0, 1):
        name = "ttnn::ones" if value else "ttnn::zeros"
        calls.bind(op.results[0], calls.call(name, *arguments))
        return
    calls.include(UNARY_HEADER)
    number = Text(cpp_text(float(value) if placement.data_type.is_float else int(value)))
    if placement.data_type is not DataType.UINT8:
        empty = calls.nested("ttnn::zeros", *arguments)
        calls.bind(op.results[0], calls.call("ttnn::fill", empty, number))
        return
    # The library fills uint8 tensors with the bits of a float (unary_op_utils.cpp, tt-metal).
    calls.include("ttnn/operations/copy/typecast/typecast.hpp")
    arguments[1] = Text(cpp_text(DataType.INT32))
    filled = calls.nested("ttnn::fill", calls.nested("ttnn::zeros", *arguments), number)
    byte = Text(cpp_text(DataType.UINT8))
    calls.bind(op.results[0], calls.call("ttnn::typecast", filled, byte))


register(
    TTNNDefinition(
        "ttnn.full",
        (),
        (attribute("shape", INTEGERS), attribute("fill_value", NUMBER)),
        verify=_verify_shape,
        numpy=lambda call: _filled(call, call["fill_value"]),
        result_rules=(ResultRule("declared"),),
        cpp=_cpp_full,
        traits=Trait.USES_HOST,
        flops=no_flops,
        nouns=("filled",),
    )
)


def _range(call: Call) -> Array:
    return cast("Array", np.arange(call["start"], call["end"], call["step"]))


def _arange(call: Call) -> Array:
    info = call.results[0]
    dim = call["arange_dimension"] % max(len(info.shape), 1)
    values = _range(call)[: info.shape[dim]]
    shape = [len(values) if axis == dim else 1 for axis in range(len(info.shape))]
    return np.broadcast_to(values.reshape(shape).astype(_computing(info.dtype)), info.shape)


def _verify_arange(op: CatalogueOp) -> None:
    """The dimension of the range has its number of elements; a last partial step may be
    left out.
    """
    start, end, step = (op.parameter(key) for key in ("start", "end", "step"))
    if step == 0:
        raise VerifyException(f"{op.name}: the step must not be 0")
    size = len(range(start, end, step))
    dim = op.parameter("arange_dimension")
    rank = len(op.result_shape)
    if not -rank <= dim < rank or op.result_shape[dim] not in (size, (end - start) // step):
        raise VerifyException(
            f"{op.name}: expected {size} elements in dimension {dim}, found shape {op.result_shape}"
        )


def _lower_arange(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    shape = op.result_shape
    dim: int = op.parameter("arange_dimension") % len(shape)
    element = op.result_type.element_type
    start, end, step = (op.parameter(key) for key in ("start", "end", "step"))
    if len(range(start, end, step)) != shape[dim]:
        end = start + step * shape[dim]
    # The library has no uint8 arange (docs/library-rules.md).
    counted = si32 if declared_data_type(op.results[0]) is DataType.UINT8 else element
    line = TensorType(counted, (shape[dim],))
    value = builder.emit("arange", [], line, start=start, end=end, step=step)
    value = builder.typecast(value, element)
    value = builder.reshape(value, [size if axis == dim else 1 for axis, size in enumerate(shape)])
    return builder.repeat(value, shape)


def _arange_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """A constant along the dimension, repeated along the others."""
    shape = op.result_shape
    dim: int = op.parameter("arange_dimension") % len(shape)
    element = op.result_type.element_type
    line = [size if axis == dim else 1 for axis, size in enumerate(shape)]
    parameters = {key: op.parameter(key) for key in ("start", "end", "step")}
    values = _range(Call(op.name, {}, parameters, ()))[: shape[dim]]
    integers = not declared_data_type(op.results[0]).is_float
    kept = si32 if integers else f32
    data = values.astype(np.int32 if integers else np.float32).tobytes()
    constant = builder.emit(
        "constant", [], TensorType(kept, line), value=elements(kept, line, data)
    )
    return builder.repeat(builder.typecast(constant, element), shape)


def _verify_range(op: CatalogueOp) -> None:
    """The result has the elements of the range."""
    start, end, step = (op.parameter(key) for key in ("start", "end", "step"))
    if step == 0:
        raise VerifyException(f"{op.name}: the step must not be 0")
    size, shape = len(range(start, end, step)), op.result_shape
    require(op, prod(shape) in (size, (end - start) // step), f"{size} elements", shape)


_RANGE = (attribute("start", INTEGER), attribute("end", INTEGER), attribute("step", INTEGER, 1))

register(
    TTIRDefinition(
        "ttir.arange",
        (),
        (*_RANGE, attribute("arange_dimension", INTEGER, 0)),
        verify=_verify_arange,
        dimensions=_but_the_range,
        numpy=_arange,
        primitives=_arange_primitives,
        lower=_lower_arange,
    )
)


def _cpp_arange(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(CREATION_HEADER)
    placement = _placement(op)
    arguments: list[Argument] = [
        *(Text(str(op.parameter(key))) for key in ("start", "end", "step")),
        Text(cpp_text(placement.data_type)),
        calls.device,
        Text("ttnn::DRAM_MEMORY_CONFIG"),
        Text(_layout_text(placement)),
    ]
    calls.bind(op.results[0], calls.call("ttnn::arange", *arguments))


register(
    TTNNDefinition(
        "ttnn.arange",
        (),
        _RANGE,
        verify=_verify_range,
        numpy=_range,
        result_rules=(ResultRule("declared"),),
        cpp=_cpp_arange,
        traits=Trait.USES_HOST,
        flops=no_flops,
        nouns=("positions",),
    )
)


def _random(call: Call) -> Array:
    info = call.results[0]
    low = float(call["low"])
    scale = scale_of_range(low, float(call["high"]), info.dtype == "bfloat16")
    return uniform_numbers(call["seed"], info.shape, low, scale).astype(_computing(info.dtype))


_RANDOM = (
    attribute("size", INTEGERS, None),
    attribute("low", NUMBER, 0.0),
    attribute("high", NUMBER, 1.0),
    attribute("seed", INTEGER, 0),
)


def _range_of(op: CatalogueOp) -> tuple[float, float]:
    """Returns start and extent of the range of random values."""
    low, high = (float(op.parameter(name)) for name in ("low", "high"))
    is_bfloat16 = declared_data_type(op.results[0]) is DataType.BFLOAT16
    return low, scale_of_range(low, high, is_bfloat16)


def _rand_on_cpu(op: CatalogueOp) -> dict[str, float | int]:
    low, scale = _range_of(op)
    return {"low": low, "scale": scale, "seed": op.parameter("seed")}


def _rand_tiles(builder: TileBuilder, op: CatalogueOp, _: Sequence[Tile]) -> Tile:
    data_type = declared_data_type(op.results[0])
    if not data_type.is_float:
        raise no_operation(op, data_type)
    seed = op.parameter("seed")
    return builder.call("rand_tile", parameters=_range_of(op), data_type=data_type, seed=seed)


def _verify_rand(op: CatalogueOp) -> None:
    """The result has the shape in the attribute; the range is finite and not empty."""
    size, low, high = (op.parameter(key) for key in ("size", "low", "high"))
    if size is not None and tuple(size) != op.result_shape:
        raise VerifyException(
            f"{op.name}: expected a result of shape {tuple(size)}, found {op.result_shape}"
        )
    if not -math.inf < low < high < math.inf:
        raise VerifyException(f"{op.name}: expected finite low < high, found {low} and {high}")


def _lower_rand(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    attributes: dict[str, Any] = {key: op.parameter(key) for key in ("low", "high", "seed")}
    result = builder.emit("rand", [], op.result_type, size=list(op.result_shape), **attributes)
    return [result]


register(
    TTIRDefinition(
        "ttir.rand",
        (),
        (*_RANDOM, attribute("dtype", CONSTANT, None)),
        verify=_verify_rand,
        numpy=_random,
        lower=_lower_rand,
        draws=True,
        tile=_rand_tiles,
        cpu=cpu_call("random", _rand_on_cpu),
    )
)


def _cpp_rand(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include("ttnn/operations/rand/rand.hpp")
    placement = _placement(op)
    arguments: list[Argument] = [
        Text(shape_text(placement.shape)),
        calls.device,
        Text(cpp_text(placement.data_type)),
        Text(_layout_text(placement)),
        Text("ttnn::DRAM_MEMORY_CONFIG"),
        Text(cpp_text(float(op.parameter("low")))),
        Text(cpp_text(float(op.parameter("high")))),
        Text(str(op.parameter("seed"))),
    ]
    calls.bind(op.results[0], calls.call("ttnn::rand", *arguments))


register(
    TTNNDefinition(
        "ttnn.rand",
        (),
        _RANDOM,
        verify=_verify_rand,
        numpy=_random,
        result_rules=(ResultRule("declared"),),
        cpp=_cpp_rand,
        pure=False,
    )
)
