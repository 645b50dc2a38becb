"""Sampling of the next token."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import DataType, bf16, element_of, shape_of, ui32
from ttcodegen.dialects.operations.attribute_kinds import INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import whole_tiles
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.attention.sdpa import LOWEST_MASKED
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import attribute_, cpp_call, operand_
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
from ttcodegen.ops.core.lowering import cpu_call
from ttcodegen.ops.reduction.sorting import order

USERS = 32
"""Users per library call: the rows of a tile (sampling of tt-metal)."""


def _verify(op: CatalogueOp) -> None:
    """Values and their indices are (users, candidates); k, p, temp and the result are (users)."""
    values = op.shape("input_values")
    fits = len(values) == 2 and min(values) > 0
    require(op, fits, "input_values of rank 2 with users and candidates", values)
    indices = op.shape("input_indices")
    require(op, indices == values, f"input_indices of shape {values}", indices)
    for name in ("k", "p", "temp"):
        require(op, op.shape(name) == values[:1], f"{name} of shape {values[:1]}", op.shape(name))
    expect_shape(op, values[:1])


def _sampling(call: Call) -> Array:
    """Top-k, top-p sampling of values multiplied by `temp`."""
    values = call.array("input_values")
    values = values.reshape(-1, values.shape[-1])
    indices = call.array("input_indices").reshape(values.shape)
    k, p, temp = (call.array(name).reshape(-1, 1) for name in ("k", "p", "temp"))
    scaled = values.astype(np.float64) * temp
    indices_of_rank = order(scaled, 1, True)
    scaled = np.take_along_axis(scaled, indices_of_rank, 1)
    scaled[np.arange(int(values.shape[1]))[None, :] >= np.maximum(k.astype(np.int64), 1)] = -np.inf
    weights = np.exp(scaled - scaled[:, :1])
    weights /= weights.sum(axis=1, keepdims=True)
    before = np.cumsum(weights, axis=1) - weights
    weights[(before >= p) & (before > 0)] = 0
    reached = np.cumsum(weights, axis=1)
    drawn = np.random.default_rng(call["seed"] or 0).random((len(values), 1)) * reached[:, -1:]
    # Rounding may leave nothing above the number: then the last candidate is drawn.
    found = np.minimum((reached <= drawn).sum(axis=1), (weights > 0).sum(axis=1) - 1)
    chosen = np.take_along_axis(indices_of_rank, found[:, None], 1)
    return np.take_along_axis(indices, chosen, 1).reshape(call.results[0].shape)


def _lower(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """One call per 32 users, with padded users and candidates."""
    users, candidates = op.shape("input_values")
    wide = whole_tiles(candidates)
    values = builder.typecast(builder.operand(op, "input_values"), bf16)
    indices = builder.typecast(builder.operand(op, "input_indices"), ui32)
    settings = [
        builder.typecast(builder.operand(op, name), element)
        for name, element in (("k", ui32), ("p", bf16), ("temp", bf16))
    ]
    seed = op.parameter("seed") or 0
    parts: list[SSAValue] = []
    for group, first in enumerate(range(0, users, USERS)):
        last = min(first + USERS, users)
        matrices = [
            builder.reshape(
                _padded(builder, builder.slice_dim(matrix, 0, first, last), [USERS, wide], fill),
                [1, 1, USERS, wide],
            )
            for matrix, fill in ((values, LOWEST_MASKED), (indices, 0))
        ]
        vectors = [
            _padded(builder, builder.slice_dim(vector, 0, first, last), [USERS], 1)
            for vector in settings
        ]
        drawn = builder.emit(
            "sampling",
            [*matrices, *vectors],
            TensorType(ui32, [1, 1, 1, USERS]),
            seed=seed + group,
        )
        parts.append(builder.slice_dim(builder.reshape(drawn, [USERS]), 0, 0, last - first))
    return builder.typecast(builder.concat(parts, 0), element_of(op.result_type))


def _padded(builder: OpBuilder, value: SSAValue, shape: list[int], fill: float) -> SSAValue:
    """Pads a value at the end to that shape."""
    sizes = zip(shape, shape_of(value.type), strict=True)
    return builder.pad(value, [(0, wanted - size) for wanted, size in sizes], fill)


_SEED = attribute("seed", INTEGER, None)

register(
    TTIRDefinition(
        "ttir.sampling",
        (
            operand("input_values"),
            operand("input_indices"),
            OperandSpec("k", domain=(1.0, 8.0)),
            OperandSpec("p", domain=(0.5, 1.0)),
            OperandSpec("temp", domain=(0.5, 2.0)),
        ),
        (_SEED,),
        verify=_verify,
        numpy=_sampling,
        lower=_lower,
        draws=True,
        cpu=cpu_call("random", lambda op: {"seed": op.parameter("seed")}),
    )
)

_SETTING = Layout.ROW_MAJOR


def _verify_library(op: CatalogueOp) -> None:
    """Values and indices are of rank 4, (1, 1, users, candidates)."""
    shape = op.shape("input_values")
    require(op, len(shape) == 4, "input_values of rank 4, as (1, 1, users, candidates)", shape)
    users = shape[2]
    require(op, 1 <= users <= USERS, f"1 to {USERS} users", users)
    indices = op.shape("input_indices")
    require(op, indices == shape, f"input_indices of shape {shape}", indices)


register(
    TTNNDefinition(
        "ttnn.sampling",
        (
            OperandSpec("input_values", data_types=(DataType.BFLOAT16,)),
            OperandSpec(
                "input_indices",
                layout=_SETTING,
                data_types=(DataType.UINT32, DataType.INT32),
            ),
            OperandSpec("k", layout=_SETTING, data_types=(DataType.UINT32,)),
            OperandSpec("p", layout=_SETTING, data_types=(DataType.BFLOAT16,)),
            OperandSpec("temp", layout=_SETTING, data_types=(DataType.BFLOAT16,)),
        ),
        (_SEED,),
        numpy=_sampling,
        verify=_verify_library,
        result_rules=(ResultRule(DataType.UINT32, Layout.ROW_MAJOR),),
        cpp=cpp_call(
            "ttnn::sampling",
            "ttnn/operations/reduction/sampling/sampling.hpp",
            *(operand_(name) for name in ("input_values", "input_indices", "k", "p", "temp")),
            attribute_("seed"),
        ),
        pure=False,
    )
)
