"""Sparse matmul: one matrix per expert, with flags that select the computed products."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, bf16, element_of, f32, shape_of
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, DATA_TYPE, INTEGER
from ttcodegen.dialects.operations.compute_config import ComputeConfig, MathFidelity
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import tiles_along
from ttcodegen.dialects.ttnn.program_configs import CoreGrid, MatmulMultiCast1D
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
    MATMUL_CONFIG_ATTRIBUTE,
    NULLOPT,
    attribute_,
    compute_config,
    cpp_call,
    operand_,
    program_config,
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
from ttcodegen.ops.core.dimensions import expect_shape, require
from ttcodegen.ops.core.engine import matrix_product
from ttcodegen.ops.core.traits import product_flops
from ttcodegen.ops.matmul.matmul import HEADER, MULTIPLIED, as_factor
from ttcodegen.systems.cards import NARROWEST

Shape = tuple[int, ...]

_MOST_DOWN, _MOST_ACROSS = NARROWEST.grid
"""Grid that every Wormhole and Blackhole has."""
_LARGEST_BLOCK = 4
"""Largest block side in tiles.

Float32 blocks of both operands and the result, double-buffered, take less than half of L1.
"""


def _batches(op: CatalogueOp) -> Shape:
    """Returns the dimensions of the result before rows and columns."""
    a, experts = op.shape("a"), op.shape("b")[1]
    if op.parameter("is_input_a_sparse"):
        return (1 if op.parameter("is_input_b_sparse") else a[0], experts)
    return (a[0], a[1], 1, experts)


def _verify(op: CatalogueOp) -> None:
    """`b` is (1, experts, inner, columns). A sparse `a` of (batch, experts, rows, inner) gives
    (batch, experts, rows, columns); a dense one of (batch, sequence, rows, inner) gives (batch,
    sequence, 1, experts, rows, columns). Products whose flag in `sparsity` is zero are zero.
    """
    for name in ("a", "b", "sparsity"):
        require(op, len(op.shape(name)) == 4, f"{name} of rank 4", op.shape(name))
    a, b = op.shape("a"), op.shape("b")
    require(op, b[0] == 1, "b to begin with 1", b)
    require(op, a[3] == b[2], f"rows of {b[2]} elements, as b has it", a)
    sparse_a, sparse_b = op.parameter("is_input_a_sparse"), op.parameter("is_input_b_sparse")
    if not (sparse_a or sparse_b):
        raise VerifyException(f"{op.name}: expected one of the inputs to be sparse")
    require(op, not sparse_a or a[1] == b[1], f"{b[1]} experts, as b has it", a)
    require(op, not (sparse_a and sparse_b) or a[0] == 1, "a to begin with 1", a)
    count = op.parameter("nnz")
    require(op, count is None or count > 0, "an nnz of 1 or more", count)
    batches, flags = _batches(op), op.shape("sparsity")
    fits = prod(flags) == prod(batches) and flags[3] == b[1]
    require(op, fits, f"sparsity of {prod(batches)} flags in rows of {b[1]}", flags)
    expect_shape(op, (*batches, a[2], b[3]))


def _sparse_matmul(call: Call) -> Array:
    a, b, shape = as_factor(call.array("a")), as_factor(call.array("b")), call.results[0].shape
    if not call["is_input_a_sparse"]:
        a, b = a[:, :, np.newaxis, np.newaxis], b[np.newaxis]
    products = matrix_product(a, b, call.arithmetic)
    wanted = call.array("sparsity").reshape(*shape[:-2], 1, 1) != 0
    return np.where(wanted, products, np.zeros((), products.dtype))


def _greatest_divisor(number: int, most: int) -> int:
    return next(part for part in range(min(number, most), 0, -1) if number % part == 0)


def _split_columns(tiles: int) -> tuple[CoreGrid, int]:
    """Returns the largest grid on which every core has a column block, and the block width in
    tiles.

    All cores but the last have full blocks. The program hangs if a core of the grid has none.
    """
    counts = {x * y: (x, y) for y in range(_MOST_DOWN, 0, -1) for x in range(1, _MOST_ACROSS + 1)}
    for count in sorted(counts, reverse=True):
        each = -(-tiles // count)
        if -(-tiles // each) == count:
            return CoreGrid(*counts[count]), each
    raise AssertionError("one core has all columns")


def program_of(rows: int, inner: int, columns: int) -> MatmulMultiCast1D:
    """Returns the 1D multicast program config of a sparse matmul.

    The library has no automatic choice: all rows are multicast to all cores, which divide the
    columns.
    """
    height, depth, width = (tiles_along(size) for size in (rows, inner, columns))
    grid, each = _split_columns(width)
    across = _greatest_divisor(each, _LARGEST_BLOCK)
    return MatmulMultiCast1D(
        compute_with_storage_grid_size=grid,
        in0_block_w=_greatest_divisor(depth, _LARGEST_BLOCK),
        out_subblock_h=1,
        out_subblock_w=across,
        out_block_h=_greatest_divisor(height, _LARGEST_BLOCK),
        out_block_w=across,
        per_core_m=height,
        per_core_n=each,
        fuse_batch=False,
    )


def _compute(a: SSAValue, b: SSAValue, result: TensorType) -> ComputeConfig | None:
    """Returns the compute config that a matmul with an automatic program would have.

    With a program config that is given, the library defaults to a lower fidelity for 16-bit
    operands.
    """
    if element_of(a.type) == element_of(b.type) == f32:
        return None
    return ComputeConfig(
        math_fidelity=MathFidelity.HIFI2,
        math_approx_mode=False,
        fp32_dest_acc_en=result.element_type == f32,
    )


def _lower(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Converts the flags to bf16 0 or 1 and emits the call.

    The kernels read flags as 16-bit words: float32 would be split in two, and -0 would count as
    nonzero. `nnz` is left to the library: with a wrong count the program hangs.
    """
    a, b = builder.operand(op, "a"), builder.operand(op, "b")
    flags = builder.operand(op, "sparsity")
    flags = builder.emit("ne", [flags, None], TensorType(bf16, shape_of(flags.type)), scalar=0.0)
    result = op.result_type
    rows, columns = op.result_shape[-2:]
    return builder.emit(
        "sparse_matmul",
        [a, b, flags],
        result,
        is_input_a_sparse=op.parameter("is_input_a_sparse"),
        is_input_b_sparse=op.parameter("is_input_b_sparse"),
        matmul_program_config=program_of(rows, op.shape("a")[3], columns),
        compute_config=_compute(a, b, result),
    )


def _primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Computes all matmuls and selects zeros where the flag is zero."""
    a, b = builder.operand(op, "a"), builder.operand(op, "b")
    batches, (rows, columns) = _batches(op), op.result_shape[-2:]
    inner, experts = op.shape("a")[3], op.shape("b")[1]
    element = op.result_type.element_type
    count = prod(batches) // experts
    b = builder.reshape(b, (1, experts, inner, columns))
    if op.parameter("is_input_a_sparse"):
        a = builder.reshape(a, (count, experts, rows, inner))
    else:
        a = builder.reshape(a, (count, 1, rows, inner))
        a = builder.repeat(a, (count, experts, rows, inner))
    b = builder.repeat(b, (count, experts, inner, columns))
    products = builder.emit("matmul", [a, b], TensorType(element, [count, experts, rows, columns]))
    flags = builder.reshape(builder.operand(op, "sparsity"), (count, experts, 1, 1))
    zero = builder.full([1] * 4, 0.0, element_of(flags.type))
    wanted = builder.broadcasting("ne", flags, zero, element=i1)
    nothing = builder.full([1] * 4, 0.0, element)
    products = builder.broadcasting("where", wanted, products, nothing, element=element)
    return builder.reshape(products, op.result_shape)


def _summed(op: CatalogueOp) -> int:
    return op.shape("a")[3]


_MODES = (
    attribute("is_input_a_sparse", BOOLEAN, False),
    attribute("is_input_b_sparse", BOOLEAN, True),
)

register(
    TTIRDefinition(
        "ttir.sparse_matmul",
        (
            operand("a", fan_in=_summed),
            operand("b", input_kind="weight", fan_in=_summed),
            operand("sparsity", input_kind="mask"),
        ),
        (*_MODES, attribute("nnz", INTEGER, None)),
        verify=_verify,
        numpy=_sparse_matmul,
        lower=_lower,
        primitives=_primitives,
        matrix_engine=True,
    )
)


def _verify_call(op: CatalogueOp) -> None:
    """The call has a program config."""
    _verify(op)
    if op.parameter(MATMUL_CONFIG_ATTRIBUTE.name) is None:
        raise VerifyException(f"{op.name} needs a {MATMUL_CONFIG_ATTRIBUTE.name}")


register(
    TTNNDefinition(
        "ttnn.sparse_matmul",
        (
            OperandSpec("a", data_types=MULTIPLIED),
            OperandSpec("b"),
            OperandSpec("sparsity", layout=Layout.ROW_MAJOR, data_types=(DataType.BFLOAT16,)),
        ),
        (
            *_MODES,
            attribute("nnz", INTEGER, None),
            attribute("dtype", DATA_TYPE, None),
            COMPUTE_CONFIG_ATTRIBUTE,
            MATMUL_CONFIG_ATTRIBUTE,
        ),
        numpy=_sparse_matmul,
        verify=_verify_call,
        compute="matmul_with_program",
        result_rules=(ResultRule("attribute"),),
        cpp=cpp_call(
            "ttnn::sparse_matmul",
            HEADER,
            operand_("a"),
            operand_("b"),
            operand_("sparsity"),
            program_config(MATMUL_CONFIG_ATTRIBUTE.name),
            attribute_("nnz"),
            attribute_("is_input_a_sparse", default=False),
            attribute_("is_input_b_sparse", default=True),
            lambda calls, op: NULLOPT,
            attribute_("dtype"),
            compute_config,
        ),
        flops=product_flops,
    )
)
