"""Reductions, and the running sums and products along one dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from ttcodegen.dialects.attribute_kinds import BOOLEAN, DATA_TYPE, INTEGER, INTEGERS
from ttcodegen.dialects.constants import elements
from ttcodegen.dialects.datatypes import DataType, bf16, element_of, f32, shape_of, ui32
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.dialects.placement import declared_data_type
from ttcodegen.lazy_numpy import Array, np
from ttcodegen.ops.cpp_calls import (
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
from ttcodegen.ops.cpu_lowering import cpu_call, dimension
from ttcodegen.ops.definition import (
    Call,
    Layout,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.elementwise import same_op
from ttcodegen.ops.engine import cut, first_factor, in_destination, in_source, sum_along
from ttcodegen.ops.op_builder import OpBuilder
from ttcodegen.ops.shape_checks import expect_shape, normalized_dim
from ttcodegen.ops.traits import Trait

REDUCED = (DataType.FLOAT32, DataType.BFLOAT16, DataType.BFLOAT8_B, DataType.UINT32)
"""What sum, mean, max and min take (docs/library-rules.md)."""
GENERIC_HEADER = "ttnn/operations/reduction/generic/generic_reductions.hpp"

_DIMS = (attribute("dim_arg", INTEGERS, None), attribute("keep_dim", BOOLEAN, False))


def reduced_dims(op: CatalogueOp) -> list[int]:
    """The reduced dimensions, counted from the front, in order; all if none are named. An empty
    list names all of them too, unless the result shows that nothing is reduced."""
    shape = op.shape("input")
    dims: list[int] | None = op.parameter("dim_arg")
    if dims:
        return sorted({normalized_dim(op, dim, len(shape)) for dim in dims})
    return _unnamed(dims, shape, op.result_shape)


def _dims_on_cpu(op: CatalogueOp) -> dict[str, list[int]]:
    return {"dims": reduced_dims(op)}


def _unnamed(dims: list[int] | None, shape: Sequence[int], result: Sequence[int]) -> list[int]:
    nothing = dims is not None and tuple(result) == tuple(shape)
    return [] if nothing else list(range(len(shape)))


def _verify_reduction(op: CatalogueOp) -> None:
    """The reduced dimensions are gone, or have one element if they are kept."""
    dims = reduced_dims(op)
    keep = op.parameter("keep_dim")
    shape = op.shape("input")
    expect_shape(
        op,
        [
            1 if axis in dims else size
            for axis, size in enumerate(shape)
            if keep or axis not in dims
        ],
    )


def _verify_extreme(op: CatalogueOp) -> None:
    """As for sums; there are elements to choose from."""
    _verify_reduction(op)
    if prod(op.shape("input")) == 0 and prod(op.result_shape) > 0:
        raise VerifyException(f"{op.name}: {op.shape('input')} has no elements to choose from")


def _axes(call: Call, array: Array) -> list[int]:
    dims: list[int] | None = call["dim_arg"]
    if dims:
        return sorted({dim % array.ndim for dim in dims})
    return _unnamed(dims, array.shape, call.results[0].shape)


def _reduce(function: Callable[..., Array]) -> Callable[[Call], Array]:
    def meaning(call: Call) -> Array:
        array = call.array("input")
        axes = tuple(_axes(call, array))
        return np.asarray(function(array, axis=axes, keepdims=call["keep_dim"]))

    return meaning


def _accumulator(array: Array) -> Any:
    """The dtype that sums and products are computed in: integers have room for what their results
    can hold, whatever that is, and booleans count."""
    if np.issubdtype(array.dtype, np.floating):
        return array.dtype
    return np.dtype("uint64" if np.issubdtype(array.dtype, np.unsignedinteger) else "int64")


def _sum(array: Array, **options: Any) -> Array:
    return np.sum(array, **options, dtype=_accumulator(array))


def _maximum(array: Array, **options: Any) -> Array:
    return np.max(array, **options)


def _minimum(array: Array, **options: Any) -> Array:
    return np.min(array, **options)


def _mean(array: Array, **options: Any) -> Array:
    """The mean of integers has a fraction; whoever wants it without cuts it off."""
    if np.issubdtype(array.dtype, np.integer):
        return np.mean(array, **options, dtype=np.float64)
    if array.size == 0:
        return np.sum(array, **options) * np.float32(np.nan)
    return np.mean(array, **options)


def _reduce_in_engine(reduction: str, function: Callable[..., Array]) -> Callable[[Call], Array]:
    """As the matrix engine reduces: elements are in source A, what they are multiplied with is in
    source B. Integers stay exact."""
    exact = _reduce(function)

    def meaning(call: Call) -> Array:
        arithmetic, array = call.arithmetic, call.array("input")
        if arithmetic is None or array.dtype != np.float32 or array.size == 0 or array.ndim == 0:
            return exact(call)
        axes = tuple(_axes(call, array))
        if reduction in ("max", "min"):
            # Extremes know no passes, and the order of numbers survives the cut.
            return in_source(exact(call), arithmetic)
        count = prod(array.shape[axis] for axis in axes) if reduction == "mean" else 1
        wide = call.operand_dtypes["input"][0] == "float32"
        scaler = cut(np.asarray(1 / count, np.float32).reshape(1), 23 if wide else 7)
        total = sum_along(array, axes, arithmetic) * first_factor(scaler, arithmetic)
        return in_destination(total, arithmetic).reshape(call.results[0].shape)

    return meaning


_SCANS = {"sum": "cumsum", "prod": "cumprod"}
_PAIRWISE = {"max": "maximum", "min": "minimum"}
"""What the vector engine computes of integers, exactly: of the running sums and products the last
is that of all, and extremes are found pair by pair."""
_ENGINE_WIDTH = 8
"""Bits of integers that the matrix engine has all of: a mantissa there has one more."""


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
    """The matrix engine would take the first ten bits of them only."""
    name = op.definition.short_name
    value = builder.typecast(value, op.result_type.element_type)
    for dim in dims:
        if name in _SCANS:
            size = shape_of(value.type)[dim]
            if size > 1:
                value = builder.emit(_SCANS[name], [value], value.type, dim=dim)
            value = builder.slice_dim(value, dim, size - 1, size)
            continue
        while (size := shape_of(value.type)[dim]) > 1:
            # The halves of an odd number share one element, which changes no extreme.
            half = (size + 1) // 2
            first = builder.slice_dim(value, dim, 0, half)
            second = builder.slice_dim(value, dim, size - half, size)
            value = builder.emit(_PAIRWISE[name], [first, second], first.type)
    return builder.reshape(value, op.result_shape)


def _lower_reduction(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    value = builder.operand(op, "input")
    dims = reduced_dims(op)
    if not dims:
        return builder.typecast(value, op.result_type.element_type)
    if op.definition.short_name != "mean" and _is_wide_integer(op):
        return _reduce_integers(builder, op, value, dims)
    if element_of(value.type) == bf16 and isinstance(op.result_type.element_type, IntegerType):
        # Booleans that are counted: bf16 has the integers up to 256 only.
        value = builder.typecast(value, f32)
    return builder.emit(
        op.definition.short_name,
        [value],
        op.result_type,
        dim_arg=dims,
        keep_dim=op.parameter("keep_dim"),
    )


def _reduction_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """A reduction that keeps its dimensions, and a reshape if they are to go."""
    dims = reduced_dims(op)
    if not dims:
        return builder.typecast(builder.operand(op, "input"), op.result_type.element_type)
    is_float = declared_data_type(op.operands[0]).is_float
    if op.parameter("keep_dim") and list(op.parameter("dim_arg") or ()) == dims and is_float:
        return None
    value = builder.operand(op, "input")
    if not is_float:
        # The matrix engine adds and compares floats.
        value = builder.typecast(value, f32)
    kept = builder.reduce(op.definition.short_name, value, dims)
    kept = builder.typecast(kept, op.result_type.element_type)
    return builder.reshape(kept, op.result_shape)


def _dims_text(calls: CppCalls, op: CatalogueOp) -> Argument:
    dims = op.parameter("dim_arg")
    return Text(str(dims[0]) if len(dims) == 1 else small_vector_text(dims, "int"))


_REDUCTIONS: dict[str, Callable[..., Array]] = {
    "sum": _sum,
    "mean": _mean,
    "max": _maximum,
    "min": _minimum,
}

_TRAITS = {
    "sum": Trait.SUMS | Trait.EXACT_ON_INTEGERS,
    "mean": Trait.NONE,
    "max": Trait.EXACT_ON_INTEGERS,
    "min": Trait.EXACT_ON_INTEGERS,
}

for _name, _function in _REDUCTIONS.items():
    _meaning = _reduce(_function)
    register(
        TTIRDefinition(
            f"ttir.{_name}",
            (operand("input"),),
            _DIMS,
            verify=_verify_extreme if _name in ("max", "min") else _verify_reduction,
            numpy=_meaning,
            counts=_name == "mean",
            matrix_engine=True,
            primitives=_reduction_primitives,
            lower=_lower_reduction,
            cpu=cpu_call("reduction", _dims_on_cpu),
            traits=_TRAITS[_name],
            on_booleans="reduce_or" if _name == "sum" else None,
        )
    )
    register(
        TTNNDefinition(
            f"ttnn.{_name}",
            (OperandSpec("input", data_types=REDUCED),),
            (*_DIMS, COMPUTE_CONFIG_ATTRIBUTE),
            numpy=_reduce_in_engine(_name, _function),
            compute="reduction",
            cpp=cpp_call(
                f"ttnn::{_name}",
                GENERIC_HEADER,
                operand_("input"),
                _dims_text,
                attribute_("keep_dim", default=False),
                nullopt,  # memory config
                compute_config,
            ),
        )
    )

# prod


def _product(array: Array, **options: Any) -> Array:
    return cast("Array", np.prod(array, **options, dtype=_accumulator(array)))


def _lower_prod(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """One call per dimension: the library multiplies along one dimension or all of them."""
    value = builder.operand(op, "input")
    if _is_wide_integer(op):
        return _reduce_integers(builder, op, value, reduced_dims(op))
    for dim in reduced_dims(op):
        shape = list(shape_of(value.type))
        shape[dim] = 1
        result = TensorType(element_of(value.type), shape)
        value = builder.emit("prod", [value], result, dim=dim, keep_dim=True)
    value = builder.typecast(value, op.result_type.element_type)
    return builder.reshape(value, op.result_shape)


def _prod_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """A product over leading dimensions: the device multiplies tiles, not the elements of one."""
    shape = op.shape("input")
    dims = reduced_dims(op)
    if not dims:
        return builder.typecast(builder.operand(op, "input"), op.result_type.element_type)
    kept = [axis for axis in range(len(shape)) if axis not in dims]
    is_float = declared_data_type(op.operands[0]).is_float
    leading = all(axis < len(shape) - 2 for axis in dims)
    if op.parameter("keep_dim") and op.parameter("dim_arg") == dims and is_float and leading:
        return None
    value = builder.operand(op, "input")
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
        _DIMS,
        verify=_verify_reduction,
        numpy=_reduce(_product),
        primitives=_prod_primitives,
        lower=_lower_prod,
        cpu=cpu_call("reduction", _dims_on_cpu),
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
        numpy=_product_along,
        cpp=cpp_call(
            "ttnn::prod",
            "ttnn/operations/reduction/prod/prod.hpp",
            operand_("input"),
            attribute_("dim"),
            attribute_("keep_dim", default=False),
        ),
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


for _name, _reduction, _function in (
    ("reduce_or", "max", _any),
    ("reduce_and", "min", _all),
):
    register(
        TTIRDefinition(
            f"ttir.{_name}",
            (operand("input"),),
            _DIMS,
            verify=_verify_reduction,
            numpy=_reduce(_function),
            decompose=_truth(_reduction),
        )
    )

# argmax


def _comparable(call: Call) -> Array:
    """The elements as argmax compares them: of f32 what is no number is never the greatest, of
    bfloat16, by whose bits the device compares, it is (bfloat16.h, float32.h of tt-metal)."""
    array = call.array("input")
    if call.operand_dtypes.get("input", [""])[0] != "float32":
        return array
    return np.where(np.isnan(array), np.float32(-np.inf), array)


def _argmax(call: Call) -> Array:
    """Where the first of the greatest elements stands; along several dimensions, in the row that
    they make up, in their order."""
    array = _comparable(call)
    axes = _axes(call, array)
    kept = [axis for axis in range(array.ndim) if axis not in axes]
    rows = array.transpose([*kept, *axes])
    rows = rows.reshape([*rows.shape[: len(kept)], prod(rows.shape[len(kept) :])])
    return np.asarray(np.argmax(rows, axis=-1)).reshape(call.results[0].shape)


def _lower_argmax(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """The library finds the maximum along the last dimension of row-major tensors only."""
    value = builder.operand(op, "input")
    shape = op.shape("input")
    dims = reduced_dims(op)
    axes = [axis for axis in range(len(shape)) if axis not in dims]
    kept = [shape[axis] for axis in axes] or [1]
    value = builder.permute(value, [*axes, *dims])
    value = builder.reshape(value, [*kept, prod(shape[axis] for axis in dims)])
    result = TensorType(ui32, [*kept, 1])
    value = builder.emit("argmax", [value], result, dim=len(kept), keep_dim=True)
    value = builder.typecast(value, op.result_type.element_type)
    return builder.reshape(value, op.result_shape)


_EXACT = 1024
"""Integers up to this are what they are to the matrix engine, whatever it reads them as."""


def _argmax_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """The least of the places where the element is the greatest. Of places beyond what the matrix
    engine keeps exactly the multiples of `_EXACT` are compared first, then the rests. None but for
    one dimension of bfloat16: of float32 the engine sees the upper bits only."""
    dims, shape = reduced_dims(op), op.shape("input")
    is_exact = declared_data_type(op.operands[0]) is DataType.BFLOAT16
    if len(dims) != 1 or not is_exact or shape[dims[0]] > _EXACT**2:
        return None
    size = shape[dims[0]]
    value = builder.operand(op, "input")
    found = builder.broadcasting("eq", value, builder.reduce("max", value, dims))
    place: SSAValue | None = None
    for step in (_EXACT, 1) if size > _EXACT else (1,):
        numbers = np.arange(size) // step % _EXACT
        line = [1] * dims[0] + [size] + [1] * (len(shape) - dims[0] - 1)
        data = elements(f32, line, numbers.astype(np.float32).tobytes())
        places = builder.emit("constant", [], TensorType(f32, line), value=data)
        beyond = builder.full([1] * len(shape), 2 * _EXACT, f32)
        candidates = builder.broadcasting("where", found, places, beyond, element=f32)
        least = builder.reduce("min", candidates, dims)
        if step > 1:
            here = builder.broadcasting("eq", places, least)
            here = builder.typecast(here, element_of(found.type))
            found = builder.broadcasting("multiply", found, here)
            place = builder.like("multiply", least, builder.full([1] * len(shape), step, f32))
        else:
            place = least if place is None else builder.like("add", place, least)
    assert place is not None
    place = builder.typecast(place, op.result_type.element_type)
    return builder.reshape(place, op.result_shape)


register(
    TTIRDefinition(
        "ttir.argmax",
        (operand("input"),),
        _DIMS,
        verify=_verify_extreme,
        numpy=_argmax,
        primitives=_argmax_primitives,
        lower=_lower_argmax,
        cpu=cpu_call("reduction", _dims_on_cpu),
    )
)


def _argmax_along(call: Call) -> Array:
    found = np.argmax(_comparable(call), axis=call["dim"], keepdims=call["keep_dim"])
    return np.asarray(found)


register(
    TTNNDefinition(
        "ttnn.argmax",
        (
            OperandSpec(
                "input",
                layout=Layout.ROW_MAJOR,
                data_types=(
                    DataType.FLOAT32,
                    DataType.BFLOAT16,
                    DataType.INT32,
                    DataType.UINT32,
                    DataType.UINT16,
                ),
            ),
        ),
        (attribute("dim", INTEGER), attribute("keep_dim", BOOLEAN, False)),
        numpy=_argmax_along,
        result_rules=(ResultRule(DataType.UINT32, Layout.ROW_MAJOR),),
        cpp=cpp_call(
            "ttnn::argmax",
            "ttnn/operations/reduction/argmax/argmax.hpp",
            operand_("input"),
            attribute_("dim"),
            attribute_("keep_dim", default=False),
        ),
    )
)

# cumsum, cumprod


def _verify_scan(op: CatalogueOp) -> None:
    """The dimension exists; the shape stays."""
    normalized_dim(op, op.parameter("dim"), len(op.shape("input")))
    expect_shape(op, op.shape("input"))


def _scan(function: str) -> Callable[[Call], Array]:
    def meaning(call: Call) -> Array:
        array = call.array("input")
        return getattr(np, function)(array, axis=call["dim"], dtype=_accumulator(array))

    return meaning


MOST_SUMMED = 4096
"""Elements of a running sum that is computed as a product of matrices."""


def _cumsum_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """A product with the matrix whose row i sums up the elements up to i. None for integers, of
    which the matrix engine sees the upper bits only."""
    shape = op.shape("input")
    if not declared_data_type(op.operands[0]).is_float or 0 in shape or not shape:
        return None
    axis: int = op.parameter("dim") % len(shape)
    size = shape[axis]
    if size > MOST_SUMMED:
        return None
    order = [each for each in range(len(shape)) if each != axis]
    # The last dimension stays the last, where the one that is summed along is another.
    last = order.pop() if order else None
    order = [*order, axis, *(() if last is None else (last,))]
    value = builder.permute(builder.operand(op, "input"), order)
    if last is None:
        value = builder.reshape(value, [size, 1])
    line = [[size, 1], [1, size]]
    rows, columns = (
        builder.emit(
            "constant",
            [],
            TensorType(f32, each),
            value=elements(f32, each, np.arange(size, dtype=np.float32).tobytes()),
        )
        for each in line
    )
    summed = builder.broadcasting("ge", rows, columns)
    summed = builder.typecast(summed, element_of(value.type))
    result = TensorType(element_of(value.type), shape_of(value.type))
    value = builder.emit("matmul", [summed, value], result)
    if last is None:
        value = builder.reshape(value, shape)
    value = builder.permute(value, [order.index(each) for each in range(len(shape))])
    return builder.typecast(value, op.result_type.element_type)


for _name in ("cumsum", "cumprod"):
    register(
        TTIRDefinition(
            f"ttir.{_name}",
            (operand("input", domain=(0.5, 1.5) if _name == "cumprod" else None),),
            (attribute("dim", INTEGER),),
            verify=_verify_scan,
            numpy=_scan(_name),
            counts=_name == "cumsum",
            traits=Trait.SUMS | Trait.EXACT_ON_INTEGERS if _name == "cumsum" else Trait.NONE,
            primitives=_cumsum_primitives if _name == "cumsum" else None,
            lower=same_op(_name, "dim"),
            cpu=cpu_call("reduction", dimension("dim")),
        )
    )
    register(
        TTNNDefinition(
            f"ttnn.{_name}",
            (OperandSpec("input"),),
            (attribute("dim", INTEGER), attribute("dtype", DATA_TYPE, None)),
            numpy=_scan(_name),
            result_rules=(ResultRule("attribute"),),
            cpp=cpp_call(
                f"ttnn::{_name}",
                f"ttnn/operations/reduction/accumulation/{_name}/{_name}.hpp",
                operand_("input"),
                attribute_("dim"),
                attribute_("dtype"),
            ),
        )
    )
