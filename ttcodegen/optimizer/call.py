"""Library call as the optimizer sees it, its candidates, and its L1 footprint."""

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

# A call of the library as the model of cost sees it.

COMPUTE_CONFIG = "compute_config"


@dataclass(frozen=True)
class LibraryCall:
    """Library call with the layouts of its tensors; device handles are not counted."""

    name: str
    """Without the dialect."""
    operands: tuple[TensorPlacement, ...]
    results: tuple[TensorPlacement, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    demanded: tuple[TensorPlacement | None, ...] = ()
    """By operand, the placement that it has to have whatever is decided: in the shards that the
    library demands. Empty if it demands none."""

    @property
    def result(self) -> TensorPlacement:
        """The first result, of a call that overwrites its operand that one."""
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
        """True if nothing of it concerns the device."""
        return all(p.memory is Memory.HOST for p in (*self.operands, *self.results))


def call_of(op: CatalogueOp) -> LibraryCall:
    """The call of an op with layouts."""
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
    """The call of an operation of a flatbuffer."""
    attributes: dict[str, Any] = {}
    for attribute in operation.attributes:
        value = attribute.value
        if isinstance(value, file.Integers | file.Floats | file.Booleans):
            attributes[attribute.name] = list(value.values)
        elif isinstance(value, file.DataTypeName):
            attributes[attribute.name] = DataType.from_mlir(value.value)
        elif value is not None and not isinstance(value, file.ConstantReference):
            attributes[attribute.name] = value.value
    return LibraryCall(
        operation.name.partition(".")[2],
        tuple(program.tensors[tensor].type.placement for tensor in operation.operands),
        tuple(program.tensors[tensor].type.placement for tensor in operation.results),
        attributes,
    )


# One way to make a call.


@dataclass(frozen=True)
class Way:
    """One way to make a call."""

    operands: tuple[TensorPlacement, ...]
    results: tuple[TensorPlacement, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Changes of the call's attributes."""


def interleaved(placement: TensorPlacement, buffer: str) -> TensorPlacement:
    """The same tensor, dealt out to all banks."""
    return placement.with_(buffer_type=buffer, memory_layout="interleaved", shards=None)


# L1 footprint of tensors and programs, by measured rules of tt-metal.
#
# The allocator has one address space for all banks: a shard on one core costs its bytes in every
# bank. Tensors grow down from the top, the circular buffers of a program up from the bottom; the
# program runs if they do not meet.

ROW_ALIGNMENT = 16
"""Bytes that rows of row-major tensors are padded to."""
STREAMED_AT_ONCE = 4
"""Pages in the buffer that pages are streamed through into shards."""
F32_TILE = tile_bytes_of(DataType.FLOAT32)
BF16_TILE = tile_bytes_of(DataType.BFLOAT16)


def bank_bytes(placement: TensorPlacement, chip: ChipDescription) -> int:
    """Bytes of each L1 of a chip that a tensor takes; none if it is not in L1. The allocator rounds
    them up to the alignment of DRAM: 32 bytes of wormhole_b0, 64 of blackhole."""
    return allocated_bytes(placement, chip.cores, chip.noc_dram_address_align_bytes)


def allocated_bytes(placement: TensorPlacement, banks: int, alignment: int) -> int:
    """The same for so many banks, whose allocator rounds up to `alignment` bytes."""
    if placement.buffer_type != "l1":
        return 0
    return align_up(placements.bank_bytes(placement, banks, ROW_ALIGNMENT), alignment)


def stream_bytes(page: int, chip: ChipDescription) -> int:
    """Bytes of the buffer that pages are streamed through into shards: each has room to begin
    where it does in DRAM (interleaved_to_sharded_program_factory.cpp of tt-metal)."""
    alignment = chip.noc_dram_address_align_bytes
    return STREAMED_AT_ONCE * align_up(page + alignment, alignment)


@dataclass(frozen=True)
class Blocks:
    """Block sizes of a matmul per core, in tiles."""

    height: int
    """Rows of tiles of the output that are computed at a time."""
    width: int
    inner: int
    """Tiles along the summed dimension that are taken at a time."""
    whole_inner: bool
    """True if these are all."""
    left_height: int = 0
    """Rows of tiles of the left factor that are taken at a time; 0: as many as of the output."""


def product_buffers(
    blocks: Blocks,
    left: TensorPlacement,
    right: TensorPlacement,
    result: TensorPlacement,
    wide_sums: bool,
    bias: TensorPlacement | None = None,
    multicast: bool = True,
    gathered_sums: bool = False,
) -> int:
    """Bytes of the circular buffers of a product.

    `gathered_sums`: whether those of several steps are added up in L1.
    A sharded result is computed in place, and a right factor in shards of L1 read there. The blocks
    of the left factor stay where they are sharded and not multicast, if they are taken at once.
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
        # Block floats cannot be added to in L1.
        size += out * BF16_TILE
    if bias is not None:
        size += blocks.width * tile_bytes(bias)
    return size


def banked_product_buffers(
    inner: int,
    left: TensorPlacement,
    right: TensorPlacement,
    result: TensorPlacement,
    wide_sums: bool,
) -> int:
    """Bytes of the circular buffers of a product whose weights are sharded over the banks of the
    DRAM: `inner` tiles of each row and three blocks of those of a bank are taken at a time."""
    assert right.shards is not None
    width = right.shards.shape[1] // TILE_SIDE
    size = inner * (2 * tile_bytes(left) + 3 * width * tile_bytes(right))
    size += width * tile_bytes(result)
    return size + (width * F32_TILE if wide_sums and result.data_type.mlir != "f32" else 0)
