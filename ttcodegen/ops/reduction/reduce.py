"""Reductions along dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan, prod
from typing import Any, cast

from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from ttcodegen.dialects.core.datatypes import DataType, bf16, element_of, f32, shape_of, si32
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, INTEGER, INTEGERS
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import tiles_along
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
    Argument,
    CppCalls,
    Text,
    attribute_,
    compute_config,
    cpp_call,
    nullopt,
    operand_,
    small_vector_text,
)
from ttcodegen.ops.core.definition import (
    Call,
    OperandSpec,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.core.dimensions import (
    DimensionRule,
    expect_shape,
    known_parameter,
    normalized_dim,
    of_reduction,
    require,
)
from ttcodegen.ops.core.engine import cut, first_factor, in_destination, in_source, sum_along
from ttcodegen.ops.core.lowering import cpu_call
from ttcodegen.ops.core.traits import CallKind, Trait
from ttcodegen.ops.reduction.exact_extremes import exact_extreme, needs_all_bits

REDUCED = (DataType.FLOAT32, DataType.BFLOAT16, DataType.BFLOAT8_B, DataType.UINT32)
"""Data types that sum, mean, max and min take (docs/library-rules.md)."""
GENERIC_HEADER = "ttnn/operations/reduction/generic/generic_reductions.hpp"

DIMS = (attribute("dim_arg", INTEGERS, None), attribute("keep_dim", BOOLEAN, False))


def _named_dims(op: CatalogueOp) -> list[int] | None:
    """Returns the dimensions in the attributes; ops that reduce one dimension name it `dim`."""
    dim = known_parameter(op, "dim", None)
    return known_parameter(op, "dim_arg", None) if dim is None else [dim]


def reduced_dims(op: CatalogueOp) -> list[int]:
    """Returns the reduced dimensions, counted from the front and sorted.

    Without any, or with an empty list, these are all dimensions; an empty list is taken literally
    if the result has the shape of the input.
    """
    shape = op.shape("input")
    dims = _named_dims(op)
    if dims:
        return sorted({normalized_dim(op, dim, len(shape)) for dim in dims})
    return _unnamed(dims, shape, op.result_shape)


def _dimensions(how: str | None) -> DimensionRule:
    """Rule for reductions whose partial results combine by `how`; None if they cannot."""
    return lambda op: of_reduction(op, reduced_dims(op), how)


def dims_on_cpu(op: CatalogueOp) -> dict[str, list[int]]:
    """Dimension arguments of the CPU function of a reduction."""
    return {"dims": reduced_dims(op)}


def _unnamed(dims: list[int] | None, shape: Sequence[int], result: Sequence[int]) -> list[int]:
    nothing = dims is not None and tuple(result) == tuple(shape)
    return [] if nothing else list(range(len(shape)))


def _verify_reduction(op: CatalogueOp) -> None:
    """Reduced dimensions are dropped, or kept with size 1."""
    dims = reduced_dims(op)
    keep = op.parameter("keep_dim")
    shape = op.shape("input")
    named = _named_dims(op) or dims
    require(op, len(named) == len(dims), "each reduced dimension once", named)
    expect_shape(
        op,
        [
            1 if axis in dims else size
            for axis, size in enumerate(shape)
            if keep or axis not in dims
        ],
    )


def verify_extreme(op: CatalogueOp) -> None:
    """Verifies a reduction of at least one element."""
    _verify_reduction(op)
    if prod(op.shape("input")) == 0 and prod(op.result_shape) > 0:
        raise VerifyException(f"{op.name}: {op.shape('input')} has no elements to choose from")


def axes_of(call: Call, array: Array) -> list[int]:
    """Returns the reduced dimensions of a call, counted from the front and sorted."""
    dims: list[int] | None = call["dim_arg"]
    if dims:
        return sorted({dim % array.ndim for dim in dims})
    return _unnamed(dims, array.shape, call.results[0].shape)


def _reduce(function: Callable[..., Array]) -> Callable[[Call], Array]:
    def meaning(call: Call) -> Array:
        array = call.array("input")
        axes = tuple(axes_of(call, array))
        return np.asarray(function(array, axis=axes, keepdims=call["keep_dim"]))

    return meaning


def accumulator(array: Array) -> Any:
    """Returns the accumulation dtype of sums and products: 64-bit integers, else the float
    dtype.
    """
    if np.issubdtype(array.dtype, np.floating):
        return array.dtype
    return np.dtype("uint64" if np.issubdtype(array.dtype, np.unsignedinteger) else "int64")


def _sum(array: Array, **options: Any) -> Array:
    return np.sum(array, **options, dtype=accumulator(array))


def _maximum(array: Array, **options: Any) -> Array:
    return np.max(array, **options)


def _minimum(array: Array, **options: Any) -> Array:
    return np.min(array, **options)


def _mean(array: Array, **options: Any) -> Array:
    """Mean; that of integers keeps its fraction, callers truncate it if needed."""
    if np.issubdtype(array.dtype, np.integer):
        return np.mean(array, **options, dtype=np.float64)
    if array.size == 0:
        return np.sum(array, **options) * np.float32(np.nan)
    return np.mean(array, **options)


def _reduce_in_engine(reduction: str, function: Callable[..., Array]) -> Callable[[Call], Array]:
    """Matrix-engine arithmetic of a reduction: elements in source A, scaler in source B.

    Integers stay exact.
    """
    exact = _reduce(function)

    def meaning(call: Call) -> Array:
        arithmetic, array = call.arithmetic, call.array("input")
        if arithmetic is None or array.dtype != np.float32 or array.size == 0 or array.ndim == 0:
            return exact(call)
        axes = tuple(axes_of(call, array))
        if reduction in ("max", "min"):
            # Extremes have no fidelity phases, and truncation preserves the order.
            return in_source(exact(call), arithmetic)
        count = prod(array.shape[axis] for axis in axes) if reduction == "mean" else 1
        wide = call.operand_dtypes["input"][0] == "float32"
        scaler = cut(np.asarray(1 / count, np.float32).reshape(1), 23 if wide else 7)
        total = sum_along(array, axes, arithmetic) * first_factor(scaler, arithmetic)
        return in_destination(total, arithmetic).reshape(call.results[0].shape)

    return meaning


_SCANS = {"sum": "cumsum", "prod": "cumprod"}
_PAIRWISE = {"max": "maximum", "min": "minimum"}
"""Ops that reduce integers exactly on the vector engine.

Sums and products take the last element of a library scan; extremes are reduced pairwise.
"""
_JOINED = {**_PAIRWISE, "sum": "add", "prod": "multiply"}
_WIDE = {DataType.INT32, DataType.UINT32}
_FEW_TILES = 64
"""Tiles up to which reducing whole tiles is cheap: at most one per core."""
_ENGINE_WIDTH = 8
"""Integer bits that the matrix engine represents exactly: its mantissa has one more."""


def _is_wide_integer(op: CatalogueOp) -> bool:
    source, result = element_of(op.operands[0].type), op.result_type.element_type
    return (
        isa(source, IntegerType)
        and isa(result, IntegerType)
        and source.width.data > _ENGINE_WIDTH
        and prod(op.shape("input")) > 0
    )


def _reduce_integers(
    builder: OpBuilder, op: CatalogueOp, value: SSAValue, dims: Sequence[int]
) -> SSAValue:
    """Reduces wide integers exactly; the matrix engine would truncate them to ten bits."""
    name = op.definition.short_name
    value = builder.typecast(value, op.result_type.element_type)
    for dim in dims:
        size = shape_of(value.type)[dim]
        if name not in _SCANS:
            value = extreme_by_halves(builder, name, value, dim)
            continue
        if size > 1:
            value = builder.emit(_SCANS[name], [value], value.type, dim=dim)
        value = builder.slice_dim(value, dim, size - 1, size)
    return builder.reshape(value, op.result_shape)


def extreme_by_halves(builder: OpBuilder, name: str, value: SSAValue, dim: int) -> SSAValue:
    """Reduces a dimension by pairwise extremes of its halves.

    Halves of an odd size overlap in one element, which does not change the extreme.
    """
    while (size := shape_of(value.type)[dim]) > 1:
        half = (size + 1) // 2
        first = builder.slice_dim(value, dim, 0, half)
        second = builder.slice_dim(value, dim, size - half, size)
        value = builder.emit(_PAIRWISE[name], [first, second], first.type)
    return value


def is_on_integer_tiles(op: CatalogueOp) -> bool:
    """True if a program reduces whole tiles of 32-bit integers along outer dimensions."""
    name = op.definition.short_name
    types = {declared_data_type(value) for value in (*op.operands[:1], *op.results)}
    if name not in (*_SCANS, *_PAIRWISE) or len(types) > 1 or not types <= _WIDE:
        return False
    last = len(op.shape("input")) - 2
    dims = reduced_dims(op)
    return bool(dims) and bool(op.parameter("keep_dim")) and all(dim < last for dim in dims)


def _reduce_integers_on_tiles(
    builder: OpBuilder, op: CatalogueOp, value: SSAValue, dims: Sequence[int]
) -> SSAValue:
    """Reduces one dimension at a time, each moved to the front.

    Narrow integers are wrapped at the end.
    """
    name, element = op.definition.short_name, op.result_type.element_type
    data_type = declared_data_type(op.results[0])
    is_narrow = data_type not in _WIDE
    value = builder.typecast(value, si32 if is_narrow else element)
    for dim in dims:
        value = _reduce_tiles(builder, name, value, dim)
    if is_narrow:
        mask = builder.full([1] * len(shape_of(value.type)), 0xFFFF, si32)
        value = builder.broadcasting("bitwise_and", value, mask)
    return builder.reshape(builder.typecast(value, element), op.result_shape)


def _reduce_tiles(builder: OpBuilder, name: str, value: SSAValue, dim: int) -> SSAValue:
    """Reduces a dimension by adding or comparing whole tiles.

    Where that would need many mostly empty tiles, halves are combined first; an odd second half is
    padded with the neutral element.
    """
    while (size := shape_of(value.type)[dim]) > 1:
        shape = shape_of(value.type)
        others = [axis for axis in range(len(shape)) if axis != dim]
        moved = [1] * (2 - len(others)) + [shape[axis] for axis in others]
        if size * _tile_count(moved) <= max(_FEW_TILES, 4 * _tile_count(shape)):
            kept = [1 if axis == dim else length for axis, length in enumerate(shape)]
            value = builder.permute(value, [dim, *others])
            value = builder.reduce(name, builder.reshape(value, [size, *moved]), [0])
            return builder.reshape(value, kept)
        half = (size + 1) // 2
        first = builder.slice_dim(value, dim, 0, half)
        if name in _PAIRWISE or size % 2 == 0:
            second = builder.slice_dim(value, dim, size - half, size)
        else:
            widths = [0] * (2 * len(shape))
            widths[2 * dim + 1] = 1
            second = builder.slice_dim(value, dim, half, size)
            neutral = 0.0 if name == "sum" else 1.0
            second = builder.emit("pad", [second], first.type, padding=widths, value=neutral)
        value = builder.emit(_JOINED[name], [first, second], first.type)
    return value


def _tile_count(shape: Sequence[int]) -> int:
    """Returns the number of tiles of a tensor."""
    *batch, height, width = (1, *shape)
    return prod(batch) * tiles_along(height) * tiles_along(width)


def _lower_reduction(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    value = builder.operand(op, "input")
    dims = reduced_dims(op)
    if not dims:
        return builder.typecast(value, op.result_type.element_type)
    if op.definition.short_name != "mean" and _is_wide_integer(op):
        return _reduce_integers(builder, op, value, dims)
    if element_of(value.type) == bf16 and isinstance(op.result_type.element_type, IntegerType):
        # Counting booleans: bf16 represents integers up to 256 only.
        value = builder.typecast(value, f32)
    return builder.emit(
        op.definition.short_name,
        [value],
        op.result_type,
        dim_arg=dims,
        keep_dim=op.parameter("keep_dim"),
    )


def _lower_extreme(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Lowers like other reductions, unless all float32 bits matter."""
    dims = reduced_dims(op)
    if not dims or not needs_all_bits(op):
        return _lower_reduction(builder, op)
    value = builder.operand(op, "input")
    found = exact_extreme(builder, op.definition.short_name, value, dims)
    return builder.reshape(found, op.result_shape)


def _reduction_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """A reduction that keeps its dimensions, and a reshape that drops them."""
    dims = reduced_dims(op)
    if not dims:
        return builder.typecast(builder.operand(op, "input"), op.result_type.element_type)
    is_float = declared_data_type(op.operands[0]).is_float
    # The index maps of a generic omit dimensions of size 1.
    dims = [dim for dim in dims if op.shape("input")[dim] > 1] or dims[:1]
    stays = is_float or is_on_integer_tiles(op)
    if op.parameter("keep_dim") and list(op.parameter("dim_arg") or ()) == dims and stays:
        return None
    value = builder.operand(op, "input")
    if op.definition.short_name != "mean" and _is_wide_integer(op):
        return _reduce_integers_on_tiles(builder, op, value, dims)
    if not is_float:
        # The matrix engine adds and compares floats.
        value = builder.typecast(value, f32)
    kept = builder.reduce(op.definition.short_name, value, dims)
    kept = builder.typecast(kept, op.result_type.element_type)
    return builder.reshape(kept, op.result_shape)


def _dims_text(calls: CppCalls, op: CatalogueOp) -> Argument:
    dims = op.parameter("dim_arg")
    if dims is None:
        return Text("std::nullopt")
    return Text(str(dims[0]) if len(dims) == 1 else small_vector_text(dims, "int"))


_REDUCTIONS: dict[str, Callable[..., Array]] = {
    "sum": _sum,
    "mean": _mean,
    "max": _maximum,
    "min": _minimum,
}

_TRAITS = {
    "sum": Trait.SUMS | Trait.EXACT_ON_INTEGERS | Trait.WRAPS,
    "mean": Trait.NONE,
    "max": Trait.EXACT_ON_INTEGERS | Trait.KEEPS_TRUTH | Trait.SELECTS,
    "min": Trait.EXACT_ON_INTEGERS | Trait.KEEPS_TRUTH | Trait.SELECTS,
}
# Extremes of empty booleans are "or" and "and"; the verifier refuses empty extremes of numbers.
_OF_NOTHING = {"sum": 0.0, "mean": nan, "max": 0.0, "min": 1.0}

_NOUNS = {"max": ("maxima",), "min": ("minima",)}

for _name, _function in _REDUCTIONS.items():
    _meaning = _reduce(_function)
    register(
        TTIRDefinition(
            f"ttir.{_name}",
            (operand("input"),),
            DIMS,
            verify=verify_extreme if _name in ("max", "min") else _verify_reduction,
            dimensions=_dimensions(_name),
            numpy=_meaning,
            counts=True,
            # Device programs compare in the vector engine, which has all bits of float32.
            matrix_engine=_name not in _NOUNS,
            primitives=_reduction_primitives,
            lower=_lower_extreme if _name in _PAIRWISE else _lower_reduction,
            cpu=cpu_call("reduction", dims_on_cpu),
            traits=_TRAITS[_name] | Trait.REDUCES,
            of_nothing=_OF_NOTHING[_name],
            on_booleans="reduce_or" if _name == "sum" else None,
        )
    )
    register(
        TTNNDefinition(
            f"ttnn.{_name}",
            (OperandSpec("input", data_types=REDUCED),),
            (*DIMS, COMPUTE_CONFIG_ATTRIBUTE),
            verify=verify_extreme if _name in ("max", "min") else _verify_reduction,
            numpy=_reduce_in_engine(_name, _function),
            compute="reduction",
            call_kind=CallKind.REDUCTION,
            cpp=cpp_call(
                f"ttnn::{_name}",
                GENERIC_HEADER,
                operand_("input"),
                _dims_text,
                attribute_("keep_dim", default=False),
                nullopt,  # memory config
                compute_config,
            ),
            nouns=_NOUNS.get(_name, ()),
        )
    )

# prod


def _product(array: Array, **options: Any) -> Array:
    return cast("Array", np.prod(array, **options, dtype=accumulator(array)))


def _lower_prod(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """One call per dimension: the library reduces one dimension or all, in bfloat16 only.

    Other types take the last element of a cumulative product.
    """
    value = builder.operand(op, "input")
    if element_of(value.type) != bf16 and prod(op.shape("input")) > 0:
        return _reduce_integers(builder, op, value, reduced_dims(op))
    for dim in reduced_dims(op):
        shape = list(shape_of(value.type))
        shape[dim] = 1
        result = TensorType(element_of(value.type), shape)
        value = builder.emit("prod", [value], result, dim=dim, keep_dim=True)
    value = builder.typecast(value, op.result_type.element_type)
    return builder.reshape(value, op.result_shape)


def _prod_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """A product over leading dimensions: the device multiplies whole tiles only."""
    shape = op.shape("input")
    dims = reduced_dims(op)
    if not dims:
        return builder.typecast(builder.operand(op, "input"), op.result_type.element_type)
    kept = [axis for axis in range(len(shape)) if axis not in dims]
    is_float = declared_data_type(op.operands[0]).is_float
    leading = all(axis < len(shape) - 2 for axis in dims)
    stays = (is_float and leading) or is_on_integer_tiles(op)
    if op.parameter("keep_dim") and op.parameter("dim_arg") == dims and stays:
        return None
    value = builder.operand(op, "input")
    if _is_wide_integer(op):
        return _reduce_integers_on_tiles(builder, op, value, dims)
    if not is_float:
        value = builder.typecast(value, f32)
    if not leading:
        value = builder.permute(value, [*dims, *kept])
        count = prod(shape[axis] for axis in dims)
        value = builder.reshape(value, [count, 1, prod(shape[axis] for axis in kept)])
        dims = [0]
    value = builder.typecast(builder.reduce("prod", value, dims), op.result_type.element_type)
    return builder.reshape(value, op.result_shape)


register(
    TTIRDefinition(
        "ttir.prod",
        (operand("input", domain=(0.5, 1.5)),),
        DIMS,
        dimensions=_dimensions(None),
        verify=_verify_reduction,
        numpy=_reduce(_product),
        primitives=_prod_primitives,
        lower=_lower_prod,
        cpu=cpu_call("reduction", dims_on_cpu),
        counts=True,
        traits=Trait.REDUCES | Trait.WRAPS,
        of_nothing=1.0,
        on_booleans="reduce_and",
    )
)


def _product_along(call: Call) -> Array:
    return _product(call.array("input"), axis=call["dim"], keepdims=call["keep_dim"])


register(
    TTNNDefinition(
        "ttnn.prod",
        (OperandSpec("input", data_types=(DataType.BFLOAT16,)),),
        (attribute("dim", INTEGER), attribute("keep_dim", BOOLEAN, False)),
        verify=_verify_reduction,
        numpy=_product_along,
        cpp=cpp_call(
            "ttnn::prod",
            "ttnn/operations/reduction/prod/prod.hpp",
            operand_("input"),
            attribute_("dim"),
            attribute_("keep_dim", default=False),
        ),
        call_kind=CallKind.REDUCTION,
    )
)

# reduce_or, reduce_and


def _any(array: Array, **options: Any) -> Array:
    return np.asarray(np.any(array, **options))


def _all(array: Array, **options: Any) -> Array:
    return np.asarray(np.all(array, **options))


def _truth(reduction: str) -> Callable[[OpBuilder, CatalogueOp], SSAValue]:
    def decompose(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
        value = builder.operand(op, "input")
        zero = builder.full([1] * len(shape_of(value.type)), 0, element_of(value.type))
        truth = builder.broadcasting("ne", value, zero, element=op.result_type.element_type)
        return builder.emit(
            reduction,
            [truth],
            op.result_type,
            dim_arg=reduced_dims(op),
            keep_dim=op.parameter("keep_dim"),
        )

    return decompose


for _name, _reduction, _function, _of_nothing in (
    ("reduce_or", "max", _any, 0.0),
    ("reduce_and", "min", _all, 1.0),
):
    register(
        TTIRDefinition(
            f"ttir.{_name}",
            (operand("input"),),
            DIMS,
            verify=_verify_reduction,
            numpy=_reduce(_function),
            decompose=_truth(_reduction),
            of_nothing=_of_nothing,
            dimensions=_dimensions(None),
        )
    )
