"""ttnn calls with tensor placements, their candidates, and their L1 footprint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import ComputeConfig
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import Memory
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement, TTNNLayoutAttr
from ttcodegen.dialects.ttnn.program_configs import PROGRAM_CONFIGS, ProgramConfig
from ttcodegen.flatbuffer import program as file
from ttcodegen.layout import placements
from ttcodegen.layout.collapse import align_up
from ttcodegen.layout.placements import tile_bytes, tile_bytes_of
from ttcodegen.systems.description import ChipDescription

COMPUTE_CONFIG = "compute_config"


@dataclass(frozen=True)
class LibraryCall:
    """ttnn call with the placements of its tensors, without device handles."""

    name: str
    """Name of the op without its dialect."""
    operands: tuple[TensorPlacement, ...]
    results: tuple[TensorPlacement, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    demanded: tuple[TensorPlacement | None, ...] = ()
    """Sharded placement that the library requires of each operand, or None.

    Empty if it requires none at all."""

    @property
    def result(self) -> TensorPlacement:
        """Returns the first result; for an in-place call, the operand that it overwrites."""
        return self.results[0] if self.results else self.operands[0]

    @property
    def program_config(self) -> ProgramConfig | None:
        """Program config of the call, if given."""
        for name in PROGRAM_CONFIGS:
            if (config := self.attributes.get(name)) is not None:
                return config
        return None

    @property
    def compute_config(self) -> ComputeConfig | None:
        """Compute kernel config of the call, if given."""
        return self.attributes.get(COMPUTE_CONFIG)

    @property
    def is_on_host(self) -> bool:
        """True if all operands and results are host tensors."""
        return all(p.memory is Memory.HOST for p in (*self.operands, *self.results))


def call_of(op: CatalogueOp) -> LibraryCall:
    """Returns the call of an op whose tensor types have layouts."""
    return LibraryCall(
        op.definition.short_name,
        _placements(value.type for value in op.operands),
        _placements(value.type for value in op.results),
        op.parameters(),
        _demanded(op),
    )


def _demanded(op: CatalogueOp) -> tuple[TensorPlacement | None, ...]:
    specs = op.definition.operands
    if all(spec.shards is None for spec in specs):
        return ()
    return tuple(
        placement if spec.shards is not None else None
        for spec, group in zip(specs, op.operand_groups().values(), strict=True)
        for placement in _placements(value.type for value in group)
    )


def _placements(types: Any) -> tuple[TensorPlacement, ...]:
    encodings = [getattr(type_, "encoding", None) for type_ in types]
    return tuple([e.data for e in encodings if isinstance(e, TTNNLayoutAttr)])


def call_in_file(program: file.Program, operation: file.Operation) -> LibraryCall:
    """Returns the call of an operation of a flatbuffer."""
    attributes: dict[str, Any] = {}
    for attribute in operation.attributes:
        value = attribute.value
        if isinstance(value, file.Integers | file.Floats | file.Booleans):
            attributes[attribute.name] = list(value.values)
        elif isinstance(value, file.DataTypeName):
            attributes[attribute.name] = DataType.from_mlir(value.value)
        elif isinstance(value, file.TensorType):
            attributes[attribute.name] = value.placement
        elif value is not None and not isinstance(value, file.ConstantReference):
            attributes[attribute.name] = value.value
    return LibraryCall(
        operation.name.partition(".")[2],
        tuple(program.tensors[tensor].type.placement for tensor in operation.operands),
        tuple(program.tensors[tensor].type.placement for tensor in operation.results),
        attributes,
    )


@dataclass(frozen=True)
class Candidate:
    """Candidate of a call: placements of its tensors, and attributes such as configs."""

    operands: tuple[TensorPlacement, ...]
    results: tuple[TensorPlacement, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Attributes that replace those of the call."""

    def applied_to(self, call: LibraryCall) -> LibraryCall:
        """Returns the call with the placements and attributes of the candidate."""
        attributes = {**call.attributes, **self.attributes}
        return LibraryCall(call.name, self.operands, self.results, attributes)


def interleaved(placement: TensorPlacement, buffer: str) -> TensorPlacement:
    """Returns the interleaved placement of the same tensor in `buffer`."""
    return placement.with_(buffer_type=buffer, memory_layout="interleaved", shards=None)


# L1 footprint of tensors and device programs, as measured with tt-metal.
#
# All banks share one address space of the allocator: a shard on one core costs its bytes in every
# bank. Tensors are allocated from the top down, circular buffers from the bottom up; a program runs
# if the two regions do not overlap.

ROW_ALIGNMENT = 16
"""Alignment in bytes of rows of row-major tensors."""
STREAMED_AT_ONCE = 4
"""Pages of the circular buffer between DRAM and shards."""
F32_TILE = tile_bytes_of(DataType.FLOAT32)
BF16_TILE = tile_bytes_of(DataType.BFLOAT16)


def bank_bytes(placement: TensorPlacement, chip: ChipDescription) -> int:
    """Returns the bytes of L1 per core of a tensor; 0 if it is not in L1.

    The allocator rounds up to the alignment of DRAM: 32 bytes on wormhole_b0, 64 on blackhole."""
    return allocated_bytes(placement, chip.cores, chip.noc_dram_address_align_bytes)


def allocated_bytes(placement: TensorPlacement, banks: int, alignment: int) -> int:
    """Returns the aligned bytes of L1 per bank of a tensor; 0 if it is not in L1."""
    if placement.buffer_type != "l1":
        return 0
    return align_up(placements.bank_bytes(placement, banks, ROW_ALIGNMENT), alignment)


def stream_bytes(page: int, chip: ChipDescription) -> int:
    """Returns the bytes of the circular buffer between DRAM and shards.

    Each page has room for its offset from the alignment of DRAM
    (interleaved_to_sharded_program_factory.cpp of tt-metal)."""
    alignment = chip.noc_dram_address_align_bytes
    return STREAMED_AT_ONCE * align_up(page + alignment, alignment)


@dataclass(frozen=True)
class Blocks:
    """Block sizes of a matmul per core, in tiles."""

    height: int
    """Tile rows of an output block."""
    width: int
    inner: int
    """Tiles of a block along the contracted dimension (in0_block_w)."""
    whole_inner: bool
    """True if a block spans the contracted dimension: operands need no double buffering."""
    left_height: int = 0
    """Tile rows of a block of the left operand; 0 for those of an output block."""


def matmul_buffers(
    blocks: Blocks,
    left: TensorPlacement,
    right: TensorPlacement,
    result: TensorPlacement,
    wide_sums: bool,
    bias: TensorPlacement | None = None,
    multicast: bool = True,
    gathered_sums: bool = False,
) -> int:
    """Returns the bytes of the circular buffers of a matmul.

    A sharded result aliases its buffer, as does a right operand that is sharded in L1. The left
    operand needs no buffer either if it is sharded, not multicast, and read in a single block.

    Args:
        blocks: block sizes.
        left: placement of the left operand.
        right: placement of the right operand.
        result: placement of the result.
        wide_sums: whether partial sums are float32.
        bias: placement of the bias, if there is one.
        multicast: whether cores multicast the blocks of the left operand.
        gathered_sums: whether the packer accumulates partial sums in L1.
    """
    times = 1 if blocks.whole_inner else 2
    size = 0
    if right.shards is None or right.buffer_type != "l1":
        size += times * blocks.inner * blocks.width * tile_bytes(right)
    if left.shards is None or multicast:
        high = blocks.left_height or blocks.height
        size += times * high * blocks.inner * tile_bytes(left)
        size += 0 if left.shards is None else 64
    elif blocks.inner < tiles_along(left.shape[-1]):
        size += placements.shard_bytes(left, ROW_ALIGNMENT)
    out = blocks.height * blocks.width
    if result.shards is None:
        size += out * tile_bytes(result)
    if wide_sums and result.data_type.mlir != "f32":
        size += out * F32_TILE
    elif gathered_sums and result.data_type.mlir.startswith("bfp"):
        # The packer cannot accumulate block floats in L1.
        size += out * BF16_TILE
    if bias is not None:
        size += blocks.width * tile_bytes(bias)
    return size


def dram_sharded_matmul_buffers(
    inner: int,
    left: TensorPlacement,
    right: TensorPlacement,
    result: TensorPlacement,
    wide_sums: bool,
) -> int:
    """Returns the bytes of the circular buffers of a matmul with DRAM-sharded weights.

    A block is `inner` tiles deep; the left operand is double buffered, the weights of a bank triple
    buffered."""
    assert right.shards is not None
    width = right.shards.shape[1] // TILE_SIDE
    size = inner * (2 * tile_bytes(left) + 3 * width * tile_bytes(right))
    size += width * tile_bytes(result)
    return size + (width * F32_TILE if wide_sums and result.data_type.mlir != "f32" else 0)
