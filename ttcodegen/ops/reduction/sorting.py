"""Sort, topk and argmax."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import (
    DataType,
    bf16,
    element_of,
    f32,
    normalized_data_type,
    shape_of,
    ui16,
    ui32,
)
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, whole_tiles
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    Argument,
    CppCalls,
    Default,
    Text,
    attribute_,
    bind_elements,
    cpp_call,
    cpp_text,
    nullopt,
    operand_,
    trimmed,
)
from ttcodegen.ops.core.definition import (
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
from ttcodegen.ops.core.dimensions import (
    along,
    expect_element,
    expect_shape,
    normalized_dim,
    of_reduction,
)
from ttcodegen.ops.core.lowering import counted_from_front, cpu_call
from ttcodegen.ops.core.traits import CallKind, Trait
from ttcodegen.ops.reduction.reduce import DIMS, axes_of, dims_on_cpu, reduced_dims, verify_extreme

# sort and topk

MOST_UINT16 = 0xFFFF
LARGEST_RANK = 4
"""Highest rank at which sort and topk support every dimension.

Beyond it the library mixes up dimensions (docs/library-rules.md, and the reshapes in sort.cpp and
topk.cpp of tt-metal).
"""


def order(x: Array, axis: int, descending: bool) -> Array:
    """Returns the indices of a stable sort along `axis`."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    # Sorting the flipped array and flipping the result keeps equal elements in order.
    last = x.shape[axis] - 1
    return np.flip(last - np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)


def _ordering_on_cpu(op: CatalogueOp) -> dict[str, int | bool]:
    name = "descending" if op.name == "ttir.sort" else "largest"
    return {"dim": counted_from_front(op, "dim"), "descending": op.parameter(name)}


def _ordered(call: Call, x: Array, descending: bool, count: int | None = None) -> list[Array]:
    axis = call["dim"]
    places = order(x, axis, descending)
    if count is not None:
        places = np.take(places, range(count), axis=axis)
    return [np.take_along_axis(x, places, axis), places]


def _sort(call: Call) -> list[Array]:
    return _ordered(call, call.array("input"), call["descending"])


def _topk(call: Call) -> list[Array]:
    """Top k elements, sorted even if that is not requested."""
    return _ordered(call, call.array("input_tensor"), call["largest"], call["k"])


# Reshapes to rows and back


def rows_along(
    builder: OpBuilder, value: SSAValue, dim: int
) -> tuple[SSAValue, list[int] | None, tuple[int, ...]]:
    """Reshapes a tensor to a matrix of its lines along `dim`.

    Returns the matrix, the permutation that moved the dimension to the end (None if it was last),
    and the permuted shape.
    """
    rank = len(shape_of(value.type))
    permutation = [axis for axis in range(rank) if axis != dim] + [dim]
    value = builder.permute(value, permutation)
    shape = shape_of(value.type)
    rows = builder.reshape(value, [prod(shape[:-1]), shape[-1]])
    return rows, None if dim == rank - 1 else permutation, shape


def from_rows(
    builder: OpBuilder, rows: SSAValue, permutation: Sequence[int] | None, shape: Sequence[int]
) -> SSAValue:
    """Inverse of `rows_along`, for rows of any length."""
    value = builder.reshape(rows, [*shape[:-1], shape_of(rows.type)[-1]])
    if permutation is None:
        return value
    inverse = [0] * len(permutation)
    for position, axis in enumerate(permutation):
        inverse[axis] = position
    return builder.permute(value, inverse)


def _as_float(builder: OpBuilder, value: SSAValue) -> SSAValue:
    """Converts integers to f32, which is exact up to 24 bits: the library sorts floats only."""
    return value if element_of(value.type) in (bf16, f32) else builder.typecast(value, f32)


def _with_index_type(builder: OpBuilder, op: CatalogueOp, index: int, value: SSAValue) -> SSAValue:
    return builder.typecast(value, element_of(op.results[index].type))


def _in_supported_rank(rank: int) -> bool:
    return 2 <= rank <= LARGEST_RANK


# sort


def _verify_sort(op: CatalogueOp) -> None:
    """The dimension exists; values and indices have the shape of the input."""
    shape = op.shape("input")
    normalized_dim(op, op.parameter("dim"), len(shape))
    expect_shape(op, shape)
    expect_shape(op, shape, 1)
    _verify_index_type(op)
    expect_element(op, "input")


def _verify_index_type(op: CatalogueOp) -> None:
    """Indices are integers."""
    element = element_of(op.results[1].type)
    data_type = normalized_data_type(element)
    if data_type is None or data_type.is_float:
        raise VerifyException(f"{op.name}: expected indices of an integer type, found {element}")


def _sort_index_type(size: int) -> Attribute:
    """Index type of the library: 16 bits where they suffice for the size padded to a power
    of two.
    """
    padded = 2 * TILE_SIDE
    while padded < size:
        padded *= 2
    return ui32 if size > 1 and padded >= MOST_UINT16 else ui16


def _sorted(
    builder: OpBuilder, value: SSAValue, dim: int, descending: bool, stable: bool
) -> tuple[SSAValue, SSAValue]:
    """Sorts a float tensor; returns values and indices."""
    shape = shape_of(value.type)
    permutation, moved = None, shape
    direct = _in_supported_rank(len(shape))
    if not direct:
        value, permutation, moved = rows_along(builder, value, dim)
    type_ = value.type
    index = _sort_index_type(shape[dim])
    made = builder.emit_op(
        "sort",
        [value],
        [type_, TensorType(index, shape_of(type_))],
        dim=dim if direct else 1,
        descending=descending,
        stable=stable,
    )
    values, indices = made.results
    if direct:
        return values, indices
    # The library cannot reshape 16-bit integers.
    indices = builder.typecast(indices, ui32)
    return (
        from_rows(builder, values, permutation, moved),
        from_rows(builder, indices, permutation, moved),
    )


def _lower_sort(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    value = _as_float(builder, builder.operand(op, "input"))
    dim = op.parameter("dim") % len(op.shape("input"))
    results = _sorted(builder, value, dim, op.parameter("descending"), op.parameter("stable"))
    return [_with_index_type(builder, op, index, each) for index, each in enumerate(results)]


def along_last(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue] | None:
    """Moves the dimension that the op works along to the end; None if it is last."""
    rank = len(shape_of(op.operands[0].type))
    dim: int = op.parameter("dim") % rank
    if dim == rank - 1:
        return None
    permutation = [axis for axis in range(rank) if axis != dim] + [dim]
    attributes = {spec.name: op.parameter(spec.name) for spec in op.definition.attributes}
    moved = [
        TensorType(element_of(result.type), [shape_of(result.type)[axis] for axis in permutation])
        for result in op.results
    ]
    value = builder.permute(builder[op.operands[0]], permutation)
    attributes["dim"] = rank - 1
    made = builder.emit_op(op.definition.short_name, [value], moved, **attributes)
    inverse = [permutation.index(axis) for axis in range(rank)]
    return [builder.permute(result, inverse) for result in made.results]


_SORT = (
    attribute("dim", INTEGER, -1),
    attribute("descending", BOOLEAN, False),
    attribute("stable", BOOLEAN, False),
)

register(
    TTIRDefinition(
        "ttir.sort",
        (operand("input"),),
        _SORT,
        results=2,
        verify=_verify_sort,
        dimensions=along("dim"),
        numpy=_sort,
        traits=Trait.ORDERS | Trait.SELECTS,
        primitives=along_last,
        lower=_lower_sort,
        cpu=cpu_call("ordering", _ordering_on_cpu),
    )
)


def _bind_pair(calls: CppCalls, op: CatalogueOp, callee: str, arguments: list[Argument]) -> None:
    call = calls.call(callee, *trimmed(arguments), type="std::vector<ttnn::Tensor>")
    bind_elements(calls, op, call)


def _cpp_sort(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include("ttnn/operations/data_movement/sort/sort.hpp")
    arguments: list[Argument] = [calls[op.operands[0]]]
    for name, default in (("dim", -1), ("descending", False), ("stable", False)):
        value = op.parameter(name)
        arguments.append((Default if value == default else Text)(cpp_text(value)))
    _bind_pair(calls, op, "ttnn::sort", arguments)


register(
    TTNNDefinition(
        "ttnn.sort",
        (OperandSpec("input", data_types=(DataType.FLOAT32, DataType.BFLOAT16)),),
        _SORT,
        results=2,
        verify=_verify_sort,
        numpy=_sort,
        # The library returns a single element unchanged.
        may_alias=True,
        result_rules=(ResultRule(), ResultRule("declared")),
        cpp=_cpp_sort,
        nouns=("sorted_values", "indices"),
        traits=Trait.ORDERS,
    )
)

# topk


def _verify_topk(op: CatalogueOp) -> None:
    """k is at most the size of the dimension, and the size of the results there."""
    shape = list(op.shape("input_tensor"))
    dim = normalized_dim(op, op.parameter("dim"), len(shape))
    k = op.parameter("k")
    if not 0 < k <= shape[dim]:
        raise VerifyException(
            f"{op.name}: expected k from 1 to {shape[dim]}, the size of dimension {dim}, found {k}"
        )
    shape[dim] = k
    expect_shape(op, shape)
    expect_shape(op, shape, 1)
    _verify_index_type(op)
    expect_element(op, "input_tensor")


def _lower_topk(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    """Lowers to topk for bf16; the library has no other types, which are sorted in full.

    Results are requested in sorted order, so that every run gives the same.
    """
    value = builder.operand(op, "input_tensor")
    shape = op.shape("input_tensor")
    dim: int = op.parameter("dim") % len(shape)
    k, largest = op.parameter("k"), op.parameter("largest")
    if element_of(value.type) != bf16:
        found = _sorted(builder, _as_float(builder, value), dim, largest, False)
        results: list[SSAValue] = []
        for index, each in enumerate(found):
            each = _with_index_type(builder, op, index, each)
            results.append(builder.slice_dim(each, dim, 0, k))
        return results
    permutation, moved = None, shape
    direct = _in_supported_rank(len(shape))
    if not direct:
        value, permutation, moved = rows_along(builder, value, dim)
    selected = list(shape_of(value.type))
    selected[dim if direct else 1] = k
    padded = whole_tiles(max(shape[dim], 2 * TILE_SIDE))
    index_type = ui32 if padded > MOST_UINT16 else ui16
    made = builder.emit_op(
        "topk",
        [value],
        [TensorType(bf16, selected), TensorType(index_type, selected)],
        k=k,
        dim=dim if direct else 1,
        largest=largest,
        sorted=True,
    )
    results = []
    for index, each in enumerate(made.results):
        each = _with_index_type(builder, op, index, each)
        results.append(each if direct else from_rows(builder, each, permutation, moved))
    return results


_TOPK = (
    attribute("k", INTEGER),
    attribute("dim", INTEGER, -1),
    attribute("largest", BOOLEAN, True),
    attribute("sorted", BOOLEAN, False),
)

register(
    TTIRDefinition(
        "ttir.topk",
        (operand("input_tensor"),),
        _TOPK,
        results=2,
        verify=_verify_topk,
        dimensions=along("dim"),
        numpy=_topk,
        traits=Trait.ORDERS | Trait.SELECTS,
        primitives=along_last,
        lower=_lower_topk,
        cpu=cpu_call("ordering", _ordering_on_cpu),
    )
)


def _cpp_topk(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include("ttnn/operations/reduction/topk/topk.hpp")
    values = [cpp_text(op.parameter(name)) for name in ("k", "dim", "largest", "sorted")]
    _bind_pair(calls, op, "ttnn::topk", [calls[op.operands[0]], *(Text(v) for v in values)])


register(
    TTNNDefinition(
        "ttnn.topk",
        (OperandSpec("input_tensor", data_types=(DataType.BFLOAT16,)),),
        _TOPK,
        results=2,
        verify=_verify_topk,
        numpy=_topk,
        result_rules=(ResultRule(), ResultRule("declared")),
        cpp=_cpp_topk,
        nouns=("largest", "indices"),
        traits=Trait.ORDERS,
    )
)


# argmax


def _comparable(call: Call) -> Array:
    """Returns the elements as argmax compares them.

    A float32 NaN is never the maximum; bfloat16 is compared by its bits, so that NaN is
    (bfloat16.h, float32.h of tt-metal).
    """
    array = call.array("input")
    if call.operand_dtypes.get("input", [""])[0] != "float32":
        return array
    return np.where(np.isnan(array), np.float32(-np.inf), array)


def _argmax(call: Call) -> Array:
    """Index of the first maximum; along several dimensions, the index into their row-major
    order.
    """
    array = _comparable(call)
    axes = axes_of(call, array)
    kept = [axis for axis in range(array.ndim) if axis not in axes]
    rows = array.transpose([*kept, *axes])
    rows = rows.reshape([*rows.shape[: len(kept)], prod(rows.shape[len(kept) :])])
    return np.asarray(np.argmax(rows, axis=-1)).reshape(call.results[0].shape)


def _lower_argmax(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Moves the dimensions to the end: the library supports only the last one, in row-major
    layout.
    """
    value = builder.operand(op, "input")
    shape = op.shape("input")
    dims = reduced_dims(op)
    axes = [axis for axis in range(len(shape)) if axis not in dims]
    kept = [shape[axis] for axis in axes] or [1]
    value = builder.permute(value, [*axes, *dims])
    value = builder.reshape(value, [*kept, prod(shape[axis] for axis in dims)])
    result = TensorType(ui32, [*kept, 1])
    value = builder.emit(
        "argmax", [value], result, dim=len(kept), keep_dim=True, use_multicore=True
    )
    value = builder.typecast(value, op.result_type.element_type)
    return builder.reshape(value, op.result_shape)


def _argmax_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Argmax along the last dimension, kept with size 1."""
    dims, shape = reduced_dims(op), op.shape("input")
    rank = len(shape)
    if shape and dims == [rank - 1] and op.parameter("keep_dim"):
        return None
    kept = [axis for axis in range(rank) if axis not in dims]
    value = builder.permute(builder.operand(op, "input"), [*kept, *dims])
    left = [shape[axis] for axis in kept]
    value = builder.reshape(value, [*left, prod(shape[axis] for axis in dims)])
    result = TensorType(element_of(op.result_type), [*left, 1])
    value = builder.emit("argmax", [value], result, dim_arg=[len(left)], keep_dim=True)
    return builder.reshape(value, op.result_shape)


register(
    TTIRDefinition(
        "ttir.argmax",
        (operand("input"),),
        DIMS,
        verify=verify_extreme,
        dimensions=lambda op: of_reduction(op, reduced_dims(op), None),
        numpy=_argmax,
        traits=Trait.ORDERS | Trait.READS_BITS,
        primitives=_argmax_primitives,
        lower=_lower_argmax,
        cpu=cpu_call("reduction", dims_on_cpu),
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
        (
            attribute("dim", INTEGER),
            attribute("keep_dim", BOOLEAN, False),
            attribute("use_multicore", BOOLEAN, False),
        ),
        verify=verify_extreme,
        numpy=_argmax_along,
        result_rules=(ResultRule(DataType.UINT32, Layout.ROW_MAJOR),),
        cpp=cpp_call(
            "ttnn::argmax",
            "ttnn/operations/reduction/argmax/argmax.hpp",
            operand_("input"),
            attribute_("dim"),
            attribute_("keep_dim", default=False),
            nullopt,
            attribute_("use_multicore", default=False),
        ),
        nouns=("indices",),
        traits=Trait.ORDERS,
        call_kind=CallKind.REDUCTION,
    )
)
