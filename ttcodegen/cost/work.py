"""What an op has to move and to compute, whoever does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ttcodegen.cost.sizes import element_count, stored_bytes
from ttcodegen.dialects.placement import TensorPlacement
from ttcodegen.flatbuffer import program as file

MOVEMENTS = frozenset(
    """
    arange bitcast composite_to_layout concat concatenate_heads constant deallocate embedding
    fill_cache from_device full gather pad pad_row_major paged_fill_cache paged_update_cache permute
    repeat repeat_interleave reshape reshape_row_major scatter slice_dynamic slice_static
    split_query_key_value_and_split_heads to_device to_layout to_memory_config typecast update_cache
    upsample
    """.split()
)
"""Ops that compute nothing with the elements that they move."""

_ATTENTION = frozenset(
    """
    chunked_scaled_dot_product_attention paged_scaled_dot_product_attention_decode
    scaled_dot_product_attention scaled_dot_product_attention_decode
    """.split()
)
_PER_ELEMENT = {"softmax": 5, "layer_norm": 8, "rms_norm": 6, "batch_norm_inference": 4}
"""Operations per element, of ops that take several steps for each."""


@dataclass(frozen=True)
class Cost:
    """The work of an op."""

    moved: int
    """Bytes of operands and results, each once, as they lie in memory."""
    flops: int
    """Multiplications and additions, and the like on integers."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.moved + other.moved, self.flops + other.flops)


def cost_of(program: file.Program, operation: file.Operation) -> Cost:
    """The work of an op of a program; nothing for calls, whose ops are counted themselves."""
    name = operation.name.partition(".")[2]
    if operation.callee is not None or name == "deallocate":
        return Cost(0, 0)
    operands = [program.tensors[tensor].type.placement for tensor in operation.operands]
    results = [program.tensors[tensor].type.placement for tensor in operation.results]
    moved = sum(stored_bytes(placement) for placement in (*operands, *results))
    return Cost(moved, _flops(name, operation, operands, results))


def _flops(
    name: str,
    operation: file.Operation,
    operands: Sequence[TensorPlacement],
    results: Sequence[TensorPlacement],
) -> int:
    if name in MOVEMENTS or not operands or not results:
        return 0
    attributes = _attributes(operation)
    produced = sum(element_count(placement) for placement in results)
    taken = max(element_count(placement) for placement in operands)
    if name in ("matmul", "linear"):
        return _product(attributes, operands, produced)
    if name.startswith("conv"):
        return _convolution(name, attributes, operands, produced)
    if name in _ATTENTION:
        # Scores and their product with the values: two products of the same size.
        return 4 * element_count(operands[0]) * operands[1].shape[-2]
    if "pool" in name:
        return produced * prod(attributes.get("kernel_size", (1,)))
    return max(taken, produced) * _PER_ELEMENT.get(name, 1)


def _attributes(operation: file.Operation) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for attribute in operation.attributes:
        value = attribute.value
        if isinstance(value, file.Integers):
            found[attribute.name] = value.values
        elif isinstance(value, file.Integer | file.Boolean):
            found[attribute.name] = value.value
    return found


def _product(
    attributes: Mapping[str, Any], operands: Sequence[TensorPlacement], produced: int
) -> int:
    shape = (1, 1, *operands[0].shape)
    summed = shape[-2] if attributes.get("transpose_a") else shape[-1]
    return 2 * produced * summed + (produced if len(operands) > 2 else 0)


def _convolution(
    name: str, attributes: Mapping[str, Any], operands: Sequence[TensorPlacement], produced: int
) -> int:
    # The weights of each output channel are all products that one element of it sums up; of a
    # transposed convolution those of each input channel, for one element of the input.
    weights = element_count(operands[1])
    if "transpose" in name:
        channels = int(attributes.get("in_channels", 1))
        return 2 * element_count(operands[0]) * weights // max(channels, 1)
    channels = int(attributes.get("out_channels", 0)) or operands[-1].shape[-1]
    return 2 * produced * weights // max(channels, 1)
