"""Matmuls: matmul, linear, dot_general."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, bf16, element_of, shape_of
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, DATA_TYPE, INTEGERS, STRING
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder, broadcast_shapes
from ttcodegen.ops.core.calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
    MATMUL_CONFIG_ATTRIBUTE,
    NULLOPT,
    Argument,
    CppCalls,
    Text,
    attribute_,
    compute_config,
    cpp_call,
    cpp_text,
    operand_,
    output_memory,
    program_config,
)
from ttcodegen.ops.core.definition import (
    Call,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    optional,
    register,
)
from ttcodegen.ops.core.dimensions import Dimensions, aligned, expect_shape, of_product, require
from ttcodegen.ops.core.engine import matrix_product
from ttcodegen.ops.core.lowering import cpu_call, same_attributes
from ttcodegen.ops.core.traits import CallKind, Trait, product_flops
from ttcodegen.ops.elementwise.activations import activated, verify_activation

Shape = tuple[int, ...]

HEADER = "ttnn/operations/matmul/matmul.hpp"
MULTIPLIED = (DataType.FLOAT32, DataType.BFLOAT16, DataType.BFLOAT8_B, DataType.BFLOAT4_B)
"""Data types that matmul takes (docs/library-rules.md); integers are computed as f32."""

_TRANSPOSES = (attribute("transpose_a", BOOLEAN, False), attribute("transpose_b", BOOLEAN, False))


def _matrices(op: CatalogueOp) -> tuple[Shape, Shape]:
    """Returns the shapes of the operands after transposition."""
    a, b = op.shape("a"), op.shape("b")
    if op.parameter("transpose_a") and len(a) > 1:
        a = (*a[:-2], a[-1], a[-2])
    if op.parameter("transpose_b") and len(b) > 1:
        b = (*b[:-2], b[-1], b[-2])
    return a, b


def product_shape(a: Shape, b: Shape) -> Shape | None:
    """Returns the shape of numpy's matmul, None if the shapes do not fit."""
    if len(a) == 0 or len(b) == 0 or a[-1] != (b[-2] if len(b) > 1 else b[-1]):
        return None
    batch = broadcast_shapes([a[:-2], b[:-2]])
    if batch is None:
        return None
    rows = (a[-2],) if len(a) > 1 else ()
    columns = (b[-1],) if len(b) > 1 else ()
    return (*batch, *rows, *columns)


def shape_of_product(op: CatalogueOp) -> Shape:
    """Returns the shape of a matmul or linear op, including the broadcast of its bias.

    Raises VerifyException if the operands, or matmul and bias, do not fit.
    """
    a, b = _matrices(op)
    product = product_shape(a, b)
    if product is None:
        raise VerifyException(
            f"{op.name}: cannot multiply {op.shape('a')} and {op.shape('b')}"
            + (" as transposed" if (a, b) != (op.shape("a"), op.shape("b")) else "")
            + ": expected equal inner dimensions and batches that broadcast"
        )
    bias = op.optional_operand("bias") if op.name.endswith("linear") else None
    if bias is None:
        return product
    with_bias = broadcast_shapes([product, shape_of(bias.type)])
    if with_bias is None:
        raise VerifyException(
            f"{op.name}: the bias {shape_of(bias.type)} does not broadcast onto {product}"
        )
    return with_bias


def _verify_matmul(op: CatalogueOp) -> None:
    """Inner dimensions are equal, batches broadcast, and a bias broadcasts onto the result. The
    matmul of two vectors is a scalar or a tensor of one element.
    """
    expected = shape_of_product(op)
    if expected == () and op.result_shape == (1,):
        return
    expect_shape(op, expected)


def _matmul_dimensions(op: CatalogueOp) -> Dimensions | None:
    """Einsum labels of a matmul.

    With a bias the inner dimension has no label: each device would add the bias to its partial sum.
    """
    a, b, result = op.shape("a"), op.shape("b"), op.result_shape
    rank = len(result)
    if min(len(a), len(b)) < 2 or rank != max(len(a), len(b)):
        return None
    has_bias = len(op.operands) > 2
    rows, columns, inner = rank - 2, rank - 1, None if has_bias else rank
    left = (inner, rows) if op.parameter("transpose_a") else (rows, inner)
    right = (columns, inner) if op.parameter("transpose_b") else (inner, columns)
    batch = result[:-2]
    labels = [(*aligned(a[:-2], batch), *left), (*aligned(b[:-2], batch), *right)]
    labels += [aligned(shape_of(value.type), result) for value in op.operands[2:]]
    return Dimensions(labels, [tuple(range(rank))], {} if inner is None else {inner: "sum"})


def as_factor(x: Array) -> Array:
    """Converts integers to float64, in which numpy multiplies fast and most sums are exact."""
    return x if np.issubdtype(x.dtype, np.floating) else x.astype(np.float64)


def _as_factors(a: Array, b: Array) -> tuple[Array, Array]:
    """Converts integers to float64, or to int64 where sums might exceed 2^53.

    int64 sums wrap modulo 2^64, so that the low 32 bits are exact.
    """
    factors = as_factor(a), as_factor(b)
    if np.issubdtype(a.dtype, np.floating) or np.issubdtype(b.dtype, np.floating):
        return factors
    first, second = (float(np.abs(factor).max(initial=0.0)) for factor in factors)
    if first * second * max(a.size, 1) < 2.0**53:
        return factors
    return a.astype(np.int64), b.astype(np.int64)


def _whole(product: Array, *factors: Array) -> Array:
    """Returns integer matmuls as int64, so that narrowing takes the low bits.

    Sums of floats start from +0, so that no result is -0.
    """
    floats = any(np.issubdtype(each.dtype, np.floating) for each in factors)
    return product + 0.0 if floats else product.astype(np.int64)


def _product(call: Call) -> Array:
    a, b = _as_factors(call.array("a"), call.array("b"))
    if call["transpose_a"] and a.ndim > 1:
        a = np.swapaxes(a, -1, -2)
    if call["transpose_b"] and b.ndim > 1:
        b = np.swapaxes(b, -1, -2)
    result = _whole(matrix_product(a, b, call.arithmetic), call.array("a"), call.array("b"))
    bias = call.optional("bias") if "bias" in call.operands else None
    if bias is not None:
        result = result + bias
    result = activated(result, call.attributes)
    return result.reshape(1) if result.ndim == 0 and call.results[0].shape == (1,) else result


def _lower_product(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    a, b = builder.operand(op, "a"), builder.operand(op, "b")
    bias = builder.optional(op, "bias") if op.name == "ttir.linear" else None
    return multiply(
        builder,
        a,
        b,
        bias,
        op.result_type,
        op.parameter("transpose_a"),
        op.parameter("transpose_b"),
    )


def _product_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """A matmul of rank 2 or more, and an addition of the bias.

    A vector becomes a row or column. The matrix engine can transpose 16-bit tiles of the right
    operand only; those need no transpose in memory.
    """
    bias = builder.optional(op, "bias") if op.name == "ttir.linear" else None
    a, b = builder.operand(op, "a"), builder.operand(op, "b")
    shapes = shape_of(a.type), shape_of(b.type)
    transpose_a = op.parameter("transpose_a") and len(shapes[0]) > 1
    transpose_b = op.parameter("transpose_b") and len(shapes[1]) > 1
    source = _transpose_source(b)
    if source is not None and (transpose_b or element_of(b.type) == bf16):
        b, transpose_b = source, not transpose_b
    in_engine = not transpose_a and (not transpose_b or element_of(b.type) == bf16)
    if op.name == "ttir.matmul" and min(map(len, shapes)) > 1 and in_engine and b is not source:
        return None
    product = product_shape(*_matrices(op))
    assert product is not None
    if len(shapes[0]) == 1:
        a = builder.reshape(a, (1, *shapes[0]))
    if len(shapes[1]) == 1:
        b = builder.reshape(b, (*shapes[1], 1))
    if transpose_a:
        a = _transposed(builder, a)
    if transpose_b and not in_engine:
        b, transpose_b = _transposed(builder, b), False
    left, right = shape_of(a.type), shape_of(b.type)
    batch = broadcast_shapes([left[:-2], right[:-2]])
    assert batch is not None
    columns = right[-2] if transpose_b else right[-1]
    matrices = TensorType(op.result_type.element_type, (*batch, left[-2], columns))
    value = builder.emit("matmul", [a, b], matrices, transpose_b=transpose_b)
    if bias is None:
        return builder.reshape(value, op.result_shape)
    return builder.broadcasting("add", builder.reshape(value, product), bias)


def _transpose_source(value: SSAValue) -> SSAValue | None:
    """Returns the operand of a permute of the last two dimensions, None for other values."""
    op = value.owner
    if not isinstance(op, CatalogueOp) or op.name != "ttir.permute":
        return None
    rank = len(op.result_shape)
    exchange = [*range(rank - 2), rank - 1, rank - 2]
    return op.operands[0] if rank > 1 and op.parameter("permutation") == exchange else None


def _transposed(builder: OpBuilder, value: SSAValue) -> SSAValue:
    rank = len(shape_of(value.type))
    return builder.permute(value, [*range(rank - 2), rank - 1, rank - 2])


def multiply(
    builder: OpBuilder,
    a: SSAValue,
    b: SSAValue,
    bias: SSAValue | None,
    result: TensorType,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> SSAValue:
    """Emits a matmul (plus bias) in a form that the library accepts (docs/library-rules.md).

    Batches must be equal, or the right operand must have none; a bias must be one row and requires
    an unbatched right operand.
    """
    # The library does not accept a transposed vector.
    transpose_a = transpose_a and len(shape_of(a.type)) > 1
    transpose_b = transpose_b and len(shape_of(b.type)) > 1
    row_added = len(shape_of(a.type)) == 1 and len(shape_of(b.type)) > 2
    if row_added:
        a = builder.reshape(a, (1, *shape_of(a.type)))
    a, b = _fit_batches(builder, a, b)
    shape_a, shape_b = shape_of(a.type), shape_of(b.type)
    if transpose_a:
        shape_a = (*shape_a[:-2], shape_a[-1], shape_a[-2])
    if transpose_b:
        shape_b = (*shape_b[:-2], shape_b[-1], shape_b[-2])
    shape = product_shape(shape_a, shape_b)
    assert shape is not None
    product = TensorType(result.element_type, shape)
    transposes = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    if bias is not None and _bias_fits(shape_of(bias.type), shape, shape_b):
        value = builder.emit("linear", [a, b, bias], product, **transposes)
    else:
        value = builder.emit("matmul", [a, b], product, **transposes)
        if bias is not None:
            value = builder.reshape(value, (*shape[:-2], shape[-1])) if row_added else value
            return builder.emit("add", [value, bias], result)
    return builder.reshape(value, result.get_shape())


def _bias_fits(bias: Shape, product: Shape, b: Shape) -> bool:
    row = len(bias) >= 1 and len(product) >= 2 and bias[-1] == product[-1] > 1
    return (
        row
        and len(b) > 1
        and prod(bias[:-1]) == 1
        and len(bias) <= len(product)
        and prod(b[:-2]) == 1
    )


def _fit_batches(builder: OpBuilder, a: SSAValue, b: SSAValue) -> tuple[SSAValue, SSAValue]:
    shape_a, shape_b = shape_of(a.type), shape_of(b.type)
    batch_a, batch_b = shape_a[:-2], shape_b[:-2]
    if len(shape_b) <= 2 or len(shape_a) == 1:
        return a, b
    if len(shape_a) >= len(shape_b) and prod(batch_b) == 1:
        return a, builder.reshape(b, (*[1] * (len(shape_a) - len(shape_b)), *shape_b))
    batch = broadcast_shapes([batch_a, batch_b])
    assert batch is not None
    return _with_batch(builder, a, batch), _with_batch(builder, b, batch)


def _with_batch(builder: OpBuilder, value: SSAValue, batch: Shape) -> SSAValue:
    shape = shape_of(value.type)
    shape = (*[1] * (len(batch) - len(shape[:-2])), *shape)
    return builder.repeat(builder.reshape(value, shape), (*batch, *shape[-2:]))


def _products(op: CatalogueOp) -> int:
    """Returns the number of multiply-accumulates per result element."""
    return _matrices(op)[0][-1]


for _name in ("matmul", "linear"):
    _operands = [
        operand("a", fan_in=_products),
        operand("b", input_kind="weight", fan_in=_products),
    ]
    if _name == "linear":
        _operands.append(optional("bias"))
    register(
        TTIRDefinition(
            f"ttir.{_name}",
            tuple(_operands),
            _TRANSPOSES,
            verify=_verify_matmul,
            dimensions=_matmul_dimensions,
            numpy=_product,
            primitives=_product_primitives,
            counts=True,
            matrix_engine=True,
            traits=Trait.MATRIX_PRODUCT | Trait.WRAPS,
            of_nothing=0.0,
            lower=_lower_product,
            cpu=cpu_call("matmul", same_attributes(*(spec.name for spec in _TRANSPOSES))),
        )
    )


def _activation(calls: CppCalls, op: CatalogueOp) -> Argument:
    name = op.parameter("activation")
    return NULLOPT if name is None else Text(cpp_text(name))


def _verify_library_product(op: CatalogueOp) -> None:
    """The right operand has one matrix for all batches, or the batch of the left one."""
    verify_activation(op)
    product = shape_of_product(op)
    if len(op.operands) == len(_FACTORS):
        expect_shape(op, product)
    # A bias may add leading dimensions of size 1 to the result.
    expected = [size for size in product if size != 1]
    found = [size for size in op.result_shape if size != 1]
    require(op, expected == found, f"a result of shape {product}", op.result_shape)
    a, b = (op.shape(name)[:-2] for name in ("a", "b"))
    rank = max(len(a), len(b))
    batches = [(1,) * (rank - len(batch)) + batch for batch in (a, b)]
    if prod(b) != 1 and batches[0] != batches[1]:
        raise VerifyException(
            f"{op.name}: the library multiplies batches {a} and {b} only if they are the same, or "
            "the right one is a single matrix"
        )


def _compute_row(attribute_of: Callable[[str], Any]) -> str:
    """Selects the compute defaults: with a program config the library uses a lower fidelity."""
    chosen = attribute_of(MATMUL_CONFIG_ATTRIBUTE.name) is not None
    return "matmul_with_program" if chosen else "matmul"


_FACTORS = (OperandSpec("a", data_types=MULTIPLIED), OperandSpec("b"))
_OUTPUT = (
    attribute("dtype", DATA_TYPE, None),
    attribute("activation", STRING, None),
    COMPUTE_CONFIG_ATTRIBUTE,
    MATMUL_CONFIG_ATTRIBUTE,
)
_TAIL = (
    attribute_("transpose_a", default=False),
    attribute_("transpose_b", default=False),
    output_memory,
    attribute_("dtype"),
    program_config(MATMUL_CONFIG_ATTRIBUTE.name),
    _activation,
    compute_config,
)

register(
    TTNNDefinition(
        "ttnn.matmul",
        _FACTORS,
        (*_TRANSPOSES, *_OUTPUT),
        numpy=_product,
        verify=_verify_library_product,
        compute=_compute_row,
        result_rules=(ResultRule("attribute", placed=True),),
        cpp=cpp_call("ttnn::matmul", HEADER, operand_("a"), operand_("b"), *_TAIL),
        flops=product_flops,
        traits=Trait.MATRIX_PRODUCT | Trait.OF_LAYER,
        nouns=("product",),
        call_kind=CallKind.PRODUCT,
        block_floats=("a", "b"),
    )
)

register(
    TTNNDefinition(
        "ttnn.linear",
        (*_FACTORS, optional("bias")),
        (*_TRANSPOSES, *_OUTPUT),
        numpy=_product,
        verify=_verify_library_product,
        compute=_compute_row,
        result_rules=(ResultRule("attribute", placed=True),),
        cpp=cpp_call(
            "ttnn::linear", HEADER, operand_("a"), operand_("b"), operand_("bias"), *_TAIL
        ),
        flops=product_flops,
        traits=Trait.MATRIX_PRODUCT | Trait.OF_LAYER,
        nouns=("projection",),
        call_kind=CallKind.PRODUCT,
        block_floats=("a", "b"),
    )
)

# dot_general


def _dot_axes(op: CatalogueOp) -> tuple[list[int], list[int], list[int], list[int]]:
    """Returns batch and contracting dimensions of both sides.

    Raises VerifyException if they are out of range or do not match.
    """
    names = ("batch_dims_lhs", "batch_dims_rhs", "contract_dims_lhs", "contract_dims_rhs")
    dims: list[list[int]] = [op.parameter(name) for name in names]
    batch_l, batch_r, contract_l, contract_r = dims
    lhs, rhs = op.shape("lhs"), op.shape("rhs")
    for side, shape, used in (
        ("lhs", lhs, batch_l + contract_l),
        ("rhs", rhs, batch_r + contract_r),
    ):
        if len(set(used)) != len(used) or any(not 0 <= dim < len(shape) for dim in used):
            raise VerifyException(f"{op.name}: {used} are not dimensions of {side} {shape}")
    pairs = [*zip(batch_l, batch_r, strict=False), *zip(contract_l, contract_r, strict=False)]
    if (
        len(batch_l) != len(batch_r)
        or len(contract_l) != len(contract_r)
        or any(lhs[left] != rhs[right] for left, right in pairs)
    ):
        raise VerifyException(
            f"{op.name}: batch and contracting dimensions of {lhs} and {rhs} do not match"
        )
    return batch_l, batch_r, contract_l, contract_r


def _contracted(op: CatalogueOp) -> int:
    dims: list[int] = op.parameter("contract_dims_lhs")
    return prod(op.shape("lhs")[axis] for axis in dims)


def _free(shape: Shape, used: list[int]) -> list[int]:
    return [axis for axis in range(len(shape)) if axis not in used]


def _verify_dot_general(op: CatalogueOp) -> None:
    """The result has the batch dimensions, then the free ones of the left and the right side."""
    batch_l, batch_r, contract_l, contract_r = _dot_axes(op)
    lhs, rhs = op.shape("lhs"), op.shape("rhs")
    expect_shape(
        op,
        [lhs[axis] for axis in batch_l]
        + [lhs[axis] for axis in _free(lhs, batch_l + contract_l)]
        + [rhs[axis] for axis in _free(rhs, batch_r + contract_r)],
    )


def _dot_dimensions(op: CatalogueOp) -> Dimensions:
    batch_l, batch_r, contract_l, contract_r = _dot_axes(op)
    return of_product(op, ("lhs", "rhs"), (batch_l, batch_r), (contract_l, contract_r))


def _dot_general(call: Call) -> Array:
    lhs, rhs = _as_factors(call.array("lhs"), call.array("rhs"))
    labels = iter(range(lhs.ndim + rhs.ndim))
    names_l = [next(labels) for _ in range(lhs.ndim)]
    names_r = [next(labels) for _ in range(rhs.ndim)]
    for kind in ("batch", "contract"):
        for left, right in zip(call[f"{kind}_dims_lhs"], call[f"{kind}_dims_rhs"], strict=True):
            names_r[right] = names_l[left]
    batch: list[int] = [names_l[axis] for axis in call["batch_dims_lhs"]]
    contracted: set[int] = {names_l[axis] for axis in call["contract_dims_lhs"]}
    taken = contracted | set(batch)
    free = [name for name in (*names_l, *names_r) if name not in taken]
    product = np.einsum(lhs, names_l, rhs, names_r, batch + free, optimize=True)
    return _whole(product, call.array("lhs"), call.array("rhs"))


def _decompose_dot_general(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """One matmul of (batch, rows, inner) and (batch, inner, columns), with permutes and
    reshapes.
    """
    batch_l, batch_r, contract_l, contract_r = _dot_axes(op)
    lhs, rhs = op.shape("lhs"), op.shape("rhs")
    free_l, free_r = _free(lhs, batch_l + contract_l), _free(rhs, batch_r + contract_r)
    batch = [lhs[axis] for axis in batch_l]
    inner = prod(lhs[axis] for axis in contract_l)
    rows = prod(lhs[axis] for axis in free_l)
    columns = prod(rhs[axis] for axis in free_r)
    a = builder.permute(builder.operand(op, "lhs"), batch_l + free_l + contract_l)
    b = builder.permute(builder.operand(op, "rhs"), batch_r + contract_r + free_r)
    # Several batch dimensions stay as they are: a reshape that keeps the last two is only a view.
    a = builder.reshape(a, [*batch, rows, inner])
    b = builder.reshape(b, [*batch, inner, columns])
    product = builder.emit(
        "matmul", [a, b], TensorType(op.result_type.element_type, [*batch, rows, columns])
    )
    return builder.reshape(product, op.result_shape)


register(
    TTIRDefinition(
        "ttir.dot_general",
        (
            operand("lhs", fan_in=_contracted),
            operand("rhs", input_kind="weight", fan_in=_contracted),
        ),
        tuple(
            attribute(f"{kind}_dims_{side}", INTEGERS)
            for kind in ("batch", "contract")
            for side in ("lhs", "rhs")
        ),
        verify=_verify_dot_general,
        dimensions=_dot_dimensions,
        numpy=_dot_general,
        traits=Trait.WRAPS,
        decompose=_decompose_dot_general,
        of_nothing=0.0,
        counts=True,
        matrix_engine=True,
    )
)
