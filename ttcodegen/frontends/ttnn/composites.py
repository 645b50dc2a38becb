"""Conversion of TTNN calls without a catalogue op to TTIR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from ttcodegen.compat.ttnn_modules import exchange, name_of
from ttcodegen.dialects.core.datatypes import element_of, shape_of, splat_value, tensor_type
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, INTEGER, INTEGERS, NUMBER
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, whole_tiles
from ttcodegen.foundation.diagnostics import CompileError, copy_source_offset
from ttcodegen.frontends.ttnn.arguments import Properties, divided_operands, given
from ttcodegen.frontends.ttnn.legal_forms import (
    activated_norm,
    normalized_by_rows,
    normalized_by_squares,
    sums_of_rows,
    sums_of_squares,
)
from ttcodegen.frontends.ttnn.prepared_weights import prepared_weight
from ttcodegen.ops.attention.heads import MOST_USERS, takes_users
from ttcodegen.ops.core.builder import OpBuilder, builder_before
from ttcodegen.ops.dialects import TTNNOp, ttir_op_classes, ttnn_op_classes

# Calls that the catalogue has no op of TTNN for, as the ops of TTIR that they mean.

PAGED_ATTENTION = "paged_scaled_dot_product_attention_decode"
MASKED_PAGED_ATTENTION = f"masked_{PAGED_ATTENTION}"
"""Paged decode attention with a mask, which the library call does not take beside positions."""
ROTATION_OF_ANY_ROWS = "rotary_embedding_of_any_rows"
"""Rotary embedding of rows or positions that the library call does not take."""
JOINED_HEADS_OF_SOME_USERS = "nlp_concat_heads_decode_of_some_users"
"""Concatenation of decode heads that the library call does not take.

The result has fewer rows than the maximum number of users, or the head size is no multiple of
tiles.
"""

Rule = Callable[[OpBuilder, Operation, Sequence[SSAValue], Properties], SSAValue]


def replace_composite(
    op: Operation, name: str, operands: Sequence[SSAValue], properties: Properties
) -> bool:
    """Replaces a call by TTIR ops; returns False if there is no rule for it.

    Args:
        op: the call.
        name: its name without the dialect.
        operands: its operands without devices.
        properties: its properties except the result's placement.
    """
    composite = COMPOSITES.get(name)
    if composite is None:
        return False
    if len(op.results) != 1:
        raise CompileError(f"'{name_of(op)}' has one result, found {len(op.results)}", op)
    composite.check(op, operands)
    builder = builder_before(op, ttir_op_classes())
    try:
        value = composite.rule(builder, op, operands, properties)
    except VerifyException as error:
        raise CompileError(f"'{name_of(op)}': {error}", op) from error
    result = op.results[0]
    if shape_of(value.type) != shape_of(result.type):
        volumes = [prod(shape_of(each.type)) for each in (value, result)]
        in_rows = composite.in_rows and volumes[0] == volumes[1]
        if not in_rows and not _is_same_but_for_ones(value, result):
            raise CompileError(
                f"'ttnn.{name}' gives a tensor of shape {shape_of(value.type)}, not "
                f"{shape_of(result.type)}",
                op,
            )
        value = builder.reshape(value, shape_of(result.type))
    if value.type != result.type:
        builder = builder_before(op, ttnn_op_classes())
        value = builder.emit("composite_to_layout", [value], result.type)
    value.name_hint = result.name_hint
    Rewriter.replace_op(op, [], [value])
    return True


def _is_same_but_for_ones(value: SSAValue, result: SSAValue) -> bool:
    """Returns whether two shapes are equal up to dimensions of size 1."""
    shapes = [[size for size in shape_of(each.type) if size != 1] for each in (value, result)]
    return shapes[0] == shapes[1]


def _number(op: Operation, properties: Properties, name: str, default: int | None = None) -> int:
    """Reads an integer attribute; raises CompileError if absent without a default."""
    number = given(op, properties, name, INTEGER)
    if number is None:
        number = default
    if number is None:
        raise CompileError(f"'{name_of(op)}' needs the attribute '{name}', an integer", op)
    return number


def _listed(op: Operation, properties: Properties, name: str, default: int) -> list[int]:
    """Reads an integer list attribute, possibly a single integer."""
    return given(op, properties, name, INTEGERS) or [default]


def _convolution_of_sequences(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    """1-D convolution of sequences (N, L, C), or of all rows flattened."""
    batch, length = (_number(op, properties, name) for name in ("batch_size", "input_length"))
    channels, outputs = (_number(op, properties, name) for name in ("in_channels", "out_channels"))
    kernel = _number(op, properties, "kernel_size")
    stride, dilation = (_listed(op, properties, name, 1)[0] for name in ("stride", "dilation"))
    padding = _listed(op, properties, "padding", 0)
    padding = padding * 2 if len(padding) == 1 else padding
    weight, *bias = operands[1:]
    if min(stride, dilation, kernel) < 1 or len(padding) != 2:
        raise CompileError(f"'{name_of(op)}' has no such window", op)
    positions = (length + sum(padding) - dilation * (kernel - 1) - 1) // stride + 1
    return builder.emit(
        "conv1d",
        [builder.reshape(operands[0], [batch, length, channels]), weight, *bias],
        tensor_type(element_of(op.results[0].type), [batch, positions, outputs]),
        stride=[stride],
        padding=padding,
        dilation=[dilation],
        groups=_number(op, properties, "groups", 1),
    )


def _transposed(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    dims = [_number(op, properties, name) for name in ("dim0", "dim1")]
    return builder.permute(operands[0], exchange(op, dims))


def _power(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    exponent = given(op, properties, "rhs" if "rhs" in properties else "exponent", NUMBER)
    if exponent is not None:
        element = element_of(operands[0].type)
        rank = len(shape_of(operands[0].type))
        exponents = builder.full([1] * rank, exponent, element)
        return builder.broadcasting("pow", operands[0], exponents)
    return builder.broadcasting("pow", *operands)


def _joined_heads(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    batch, heads, sequence, size = shape_of(operands[0].type)
    result = tensor_type(element_of(operands[0].type), [batch, sequence, heads * size])
    return builder.emit("concatenate_heads", operands[:1], result)


def _joined_heads_of_some_users(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    """Concatenates decode heads of fewer users than the library returns.

    Slices the library's result; shapes that the library does not take are reshaped instead.
    """
    shape, heads = shape_of(operands[0].type), _number(op, properties, "num_heads")
    if not 0 < heads <= shape[2]:
        raise VerifyException(f"there are no {heads} heads in {shape}")
    if shape[0] != 1 or shape[3] % TILE_SIDE or not takes_users(shape[1]):
        tokens, users, _, size = shape
        kept = builder.slice_dim(operands[0], 2, 0, heads)
        return builder.reshape(kept, [tokens, 1, users, heads * size])
    element = element_of(operands[0].type)
    joined = builder_before(op, ttnn_op_classes()).emit(
        "nlp_concat_heads_decode",
        operands,
        tensor_type(element, [1, 1, MOST_USERS, heads * shape[3]]),
        num_heads=heads,
    )
    return builder.slice_dim(joined, 2, 0, shape[1])


def _convert(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    """Identity with an optional conversion, by the attribute `output_dtype` or `dtype`."""
    found = [element_of(value.type) for value in (operands[0], op.results[0])]
    converts = any(name in properties for name in ("dtype", "output_dtype"))
    if found[0] != found[1] and not converts:
        raise CompileError(
            f"'{name_of(op)}' expects a result of {found[0]}, as its operand, found {found[1]}", op
        )
    return operands[0]


def _latent_attention(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    """Attention with values of width `head_dim_v`, by default the keys' first elements.

    Values are zero-padded to the width of the keys.
    """
    width = _number(op, properties, "head_dim_v")
    if width < 1:
        raise CompileError(f"'{name_of(op)}' expects a positive head_dim_v, found {width}", op)
    tensors = [*operands[: 2 + (len(operands) > 2 and _has_values(op, properties))], op.results[0]]
    if len({element_of(value.type) for value in tensors}) > 1:
        raise CompileError(
            f"'{name_of(op)}' expects queries, keys, values and a result of one element type, "
            f"found {', '.join(str(element_of(value.type)) for value in tensors)}",
            op,
        )
    query, key, value, mask = divided_operands(op, operands, properties, 4)
    if query is None or key is None:
        raise CompileError(f"'{name_of(op)}' needs queries and keys", op)
    missing = shape_of(key.type)[3] - width
    if value is None and missing >= 0:
        value = builder.slice_dim(key, 3, 0, width)
    if value is None or missing < 0 or shape_of(value.type)[3] != width:
        raise CompileError(
            f"'{name_of(op)}': 'head_dim_v' is {width}, which values do not have", op
        )
    causal = given(op, properties, "is_causal", BOOLEAN)
    if missing:
        value = _pad_columns(builder, value, missing)
    attended = builder.emit(
        "scaled_dot_product_attention",
        [query, key, value, mask],
        tensor_type(element_of(query.type), shape_of(query.type)),
        is_causal=mask is None if causal is None else causal,
        scale=given(op, properties, "scale", NUMBER),
    )
    return builder.slice_dim(attended, 3, 0, width)


def _has_values(op: Operation, properties: Properties) -> bool:
    """Returns whether attention has a value operand after query and key."""
    sizes = given(op, properties, "operandSegmentSizes", INTEGERS)
    return sizes is None or sizes[2:3] == [1]


def masks(op: Operation, properties: Properties) -> bool:
    """Returns whether paged attention has a mask after query, key, value and page table."""
    sizes = given(op, properties, "operandSegmentSizes", INTEGERS) or []
    return sizes[4:5] == [1]


def _masked_paged_attention(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    query, key, value, table, mask, *others = divided_operands(op, operands, properties, 7)
    if query is None:
        raise CompileError(f"'{name_of(op)}' needs a query", op)
    specs = ttir_op_classes()[PAGED_ATTENTION].definition.attributes
    attributes = {spec.name: given(op, properties, spec.name, spec.kind) for spec in specs}
    result = tensor_type(element_of(query.type), shape_of(op.results[0].type))
    operands_here = [query, key, value, table, query, mask, *others]
    return builder.emit(PAGED_ATTENTION, operands_here, result, **attributes)


def _pad_columns(builder: OpBuilder, value: SSAValue, columns: int) -> SSAValue:
    """Pads `value` with zero columns at the end."""
    *outer, width = shape_of(value.type)
    result = tensor_type(element_of(value.type), [*outer, width + columns])
    padding = [0] * (2 * len(outer) + 1) + [columns]
    return builder.emit("pad", [value], result, padding=padding, value=0.0)


def _rotate(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    """Rotary embedding: x * cos + (-x2, x1) * sin for the halves x1 and x2 of rows x.

    The tables have at least a row per position; `token_index` selects one for all rows.
    """
    x, *tables = operands
    shapes = [shape_of(table.type) for table in tables]
    if shapes[0] != shapes[1] or element_of(tables[0].type) != element_of(tables[1].type):
        raise CompileError(
            f"'{name_of(op)}' expects cosines and sines of one shape and element type, found "
            f"{tables[0].type} and {tables[1].type}",
            op,
        )
    if len(shapes[0]) != 4 or len(shape_of(x.type)) != 4:
        raise CompileError(
            f"'{name_of(op)}' expects tensors of rank 4, found {x.type} and {tables[0].type}", op
        )
    positions, known = shape_of(x.type)[2], shapes[0][2]
    first = given(op, properties, "token_index", INTEGER)
    if first is not None and not 0 <= first < known:
        raise CompileError(
            f"'{name_of(op)}' expects a token_index below {known}, the rows of the tables, found "
            f"{first}",
            op,
        )
    span = (0, positions) if first is None else (first, first + 1)
    cosines, sines = (builder.slice_dim(table, 2, *span) for table in tables)
    result = tensor_type(element_of(x.type), shape_of(x.type))
    turned = builder.emit("rotary_embedding", [x, cosines, sines], result)
    # The library's result has whole tiles of positions; a module may declare them or not.
    missing = whole_tiles(positions) - positions
    if missing and shape_of(op.results[0].type)[2:3] == (whole_tiles(positions),):
        return builder.pad(turned, [(0, missing), (0, 0)])
    return turned


def _rotate_pairs(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    """Rotary embedding x * cos + (x T) * sin, where T rotates pairs within 32 columns of x."""
    x, cosines, sines, turn = operands
    shape, side = shape_of(x.type), shape_of(turn.type)[-1]
    if shape_of(turn.type)[-2:] != (side, side) or prod(shape_of(turn.type)) != side * side:
        raise CompileError(f"'{name_of(op)}' takes one matrix for all columns", op)
    blocks = builder.reshape(x, [prod(shape) // side, side])
    turned = builder.emit(
        "matmul",
        [blocks, builder.reshape(turn, [side, side])],
        tensor_type(element_of(x.type), shape_of(blocks.type)),
    )
    across = builder.broadcasting("multiply", builder.reshape(turned, shape), sines)
    return builder.like("add", builder.broadcasting("multiply", x, cosines), across)


def some_users(
    op: Operation, name: str, operands: Sequence[SSAValue], properties: dict[str, Attribute]
) -> list[SSAValue]:
    """Slices the rows of some users for a split of decode heads; other calls are unchanged.

    The second operand is the first user and has to be constant.
    """
    if name != "nlp_create_qkv_heads_decode" or len(operands) != 2:
        return list(operands)
    rows, offset = operands
    users, first = _number(op, properties, "slice_size"), _splat_number(offset)
    if first is None:
        raise CompileError(
            f"'{name_of(op)}' begins with a user that the program finds out when it runs",
            op,
            remedy="give the first user as a constant",
        )
    if len(shape_of(rows.type)) != 4 or not 0 <= first <= shape_of(rows.type)[2] - users:
        raise CompileError(
            f"'{name_of(op)}': there are no users {first} to {first + users - 1}", op
        )
    del properties["slice_size"]
    return [builder_before(op, ttir_op_classes()).slice_dim(rows, 2, first, first + users)]


def _splat_number(value: SSAValue) -> int | None:
    """Value of a splat tensor, None if unknown."""
    op = value.owner
    while isinstance(op, TTNNOp) and op.name == "ttnn.composite_to_layout":
        op = op.operands[0].owner
    if isinstance(op, TTNNOp) and op.name == "ttnn.full":
        return int(op.parameter("fill_value"))
    if isinstance(op, TTNNOp) and op.name == "ttnn.constant":
        found = splat_value(op.parameter("value"))
        return None if found is None else int(found)
    return None


def _as_ttir_op(name: str) -> Rule:
    """Makes a rule that emits the TTIR op of a name with the call's operands and attributes."""

    def rule(
        builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
    ) -> SSAValue:
        cls = ttir_op_classes()[name]
        known = {spec.name for spec in cls.definition.attributes} | {"operandSegmentSizes"}
        made = cls.create(
            operands=operands,
            result_types=[
                tensor_type(element_of(result.type), shape_of(result.type)) for result in op.results
            ],
            properties={key: value for key, value in properties.items() if key in known},
        )
        copy_source_offset(op, made)
        builder.insert(made)
        return made.results[0]

    return rule


@dataclass(frozen=True)
class _Composite:
    """Rule and the operands and attributes that it accepts."""

    rule: Rule
    fewest: int = 1
    """Minimum operand count."""
    most: int = 1
    rank: int | None = None
    """Rank of all operands; None for any."""
    in_rows: bool = False
    """True if the result may flatten its rows, as images and their weights do."""
    result_rank: int | None = None
    """Rank of the result; None for any."""

    def check(self, op: Operation, operands: Sequence[SSAValue]) -> None:
        """Raises CompileError if the call's operands do not fit."""
        if not self.fewest <= len(operands) <= self.most:
            wanted = f"{self.fewest}" + (f" to {self.most}" if self.most > self.fewest else "")
            raise CompileError(
                f"'{name_of(op)}' takes {wanted} operands, found {len(operands)}", op
            )
        shapes = [shape_of(value.type) for value in operands]
        if self.rank is not None and any(len(shape) != self.rank for shape in shapes):
            raise CompileError(f"'{name_of(op)}' takes tensors of rank {self.rank}", op)
        found = shape_of(op.results[0].type)
        if self.result_rank is not None and len(found) != self.result_rank:
            raise CompileError(
                f"'{name_of(op)}' gives a tensor of rank {self.result_rank}, found {found}", op
            )
        if any(size == 0 for shape in shapes for size in shape):
            raise CompileError(f"'{name_of(op)}' of tensors without elements is not supported", op)


COMPOSITES: dict[str, _Composite] = {
    "assign": _Composite(_convert),
    "bitcast_convert": _Composite(_as_ttir_op("bitcast_convert")),
    "conv1d": _Composite(_convolution_of_sequences, 2, 3, in_rows=True),
    "dit_rms_norm_unary_fused": _Composite(activated_norm, 1, 4),
    "flash_mla_prefill": _Composite(_latent_attention, 2, 4, rank=4, result_rank=4),
    "global_avg_pool2d": _Composite(_as_ttir_op("global_avg_pool2d"), rank=4),
    "group_norm": _Composite(_as_ttir_op("group_norm"), 1, 4),
    "layer_norm_post_all_gather": _Composite(normalized_by_rows, 2, 4),
    "layer_norm_pre_all_gather": _Composite(sums_of_rows, 1, 3),
    MASKED_PAGED_ATTENTION: _Composite(_masked_paged_attention, 5, 7),
    "nlp_concat_heads": _Composite(_joined_heads, rank=4),
    JOINED_HEADS_OF_SOME_USERS: _Composite(_joined_heads_of_some_users, rank=4, result_rank=4),
    "paged_flash_multi_latent_attention_decode": _Composite(
        _as_ttir_op("paged_flash_multi_latent_attention_decode"), 3, 7
    ),
    "pow_scalar": _Composite(_power),
    "pow_tensor": _Composite(_power, 2, 2),
    "prepare_conv3d_weights": _Composite(prepared_weight, rank=5, in_rows=True),
    "prepare_conv_transpose2d_bias": _Composite(_convert, in_rows=True),
    "prepare_conv_transpose2d_weights": _Composite(prepared_weight, rank=4, in_rows=True),
    "rms_norm_post_all_gather": _Composite(normalized_by_squares, 2, 4),
    "rms_norm_pre_all_gather": _Composite(sums_of_squares, 1, 2),
    ROTATION_OF_ANY_ROWS: _Composite(_rotate, 3, 3, rank=4, result_rank=4),
    "rotary_embedding_llama": _Composite(_rotate_pairs, 4, 4, rank=4, result_rank=4),
    "transpose": _Composite(_transposed),
}


# Calls of several results as the ops of TTIR that they mean: there the compiler knows what they
# are made of. Those that bring tokens to experts on several chips are made of collectives.

CALLS_OF_TTIR = frozenset({"sdpa_bw", "sdpa_fw", "topk_router_gpt"})
"""Calls with several results and the operands and attributes of the TTIR op of their name."""

EXPERT_CALLS = frozenset(
    {
        "all_to_all_dispatch",
        "all_to_all_dispatch_metadata",
        "all_to_all_combine",
        "moe_expert_token_remap",
        "moe_gpt",
        "selective_reduce_combine",
    }
)
"""Calls of mixture-of-experts ops.

Operands beyond those of the TTIR op are buffers and semaphores, which collectives create.
"""


def replace_expert_call(
    op: Operation, name: str, operands: Sequence[SSAValue], properties: Properties
) -> None:
    """Replaces an expert call by the TTIR op of its name, with the results' placements."""
    definition = ttir_op_classes()[name].definition
    count = len(definition.operands)
    if len(operands) < count:
        raise CompileError(f"'ttnn.{name}' takes {count} tensors, found {len(operands)}", op)
    builder = builder_before(op, ttir_op_classes())
    types = [tensor_type(element_of(each.type), shape_of(each.type)) for each in op.results]
    known = {spec.name for spec in definition.attributes}
    numbers = {each: given(op, properties, each, INTEGER) for each in known & properties.keys()}
    taken = list(operands[:count])
    for index, value in enumerate(taken):
        shape = shape_of(value.type)
        if len(shape) == 2 and index == count - 1 and name != "selective_reduce_combine":
            # The library takes the mapping of experts to devices as rank 4.
            taken[index] = builder.reshape(value, (1, 1, *shape))
    _replace(op, builder.emit_op(name, taken, types, **numbers))


def replace_call_of_ttir(
    op: Operation, name: str, operands: Sequence[SSAValue], properties: Properties
) -> None:
    """Replaces a call by the TTIR op of its name; raises CompileError if operands do not fit."""
    cls = ttir_op_classes()[name]
    specs = cls.definition.operands
    groups = divided_operands(op, operands, properties, len(specs))
    for spec, value in zip(specs, groups, strict=True):
        if value is None and spec.count == "one":
            raise CompileError(f"'ttnn.{name}' needs the operand '{spec.name}'", op)
    builder = builder_before(op, ttir_op_classes())
    types = [tensor_type(element_of(each.type), shape_of(each.type)) for each in op.results]
    attributes = {
        spec.name: given(op, properties, spec.name, spec.kind)
        for spec in cls.definition.attributes
        if spec.name in properties
    }
    _replace(op, builder.emit_op(name, groups, types, **attributes))


def _replace(op: Operation, made: Operation) -> None:
    """Replaces a call by an op, with the results' placements."""
    placed = builder_before(op, ttnn_op_classes())
    values: list[SSAValue] = []
    for old, new in zip(op.results, made.results, strict=True):
        values.append(placed.emit("composite_to_layout", [new], old.type))
        values[-1].name_hint = old.name_hint
    Rewriter.replace_op(op, [], values)
