"""Circular buffers of an operation: of its dataflow buffers, and of a compute kernel's own."""

from __future__ import annotations

from dataclasses import dataclass, field

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttmetal.programs import CircularBuffer
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.lang.simulator.buffers import DataflowBuffer
from ttcodegen.lang.simulator.context import Node
from ttcodegen.lang.simulator.locations import place
from ttcodegen.layout.placements import tile_bytes_of


@dataclass(frozen=True)
class Scratch:
    """A circular buffer that the compute kernel keeps for itself."""

    tiles: int
    data_type: DataType
    block: int
    """Tiles of a block: blocks of another size could go over the end of the buffer."""


@dataclass
class Needs:
    """Requirements of a compute kernel beyond the program's circular buffers."""

    scratch: dict[str, Scratch] = field(default_factory=dict[str, Scratch])
    read_by_matrix_engine: set[str] = field(default_factory=set[str])
    needs_scaler: bool = False
    computes_once: bool = True
    """True if values with several uses are kept, False if they are computed for each."""
    shares_buffers: bool = False
    """True if values whose live ranges do not overlap share circular buffers."""


def check_alike(first: Node, node: Node) -> None:
    """Raises CompileError if a node has other kernels or dataflow buffers than the first one."""
    names, others = ([each.name for each in one.kernels] for one in (first, node))
    if names != others:
        raise CompileError(
            f"node {node} has the kernels {', '.join(others) or 'none'}, but node {first} has "
            f"{', '.join(names) or 'none'}",
            remedy="make the same kernels on all nodes; what some of them leave out is a condition "
            "in the kernel",
        )
    kinds, of_node = (
        [
            (each.name, each.shape, each.data_type, each.is_tiled, each.block_count)
            for each in one.made.of(DataflowBuffer)
        ]
        for one in (first, node)
    )
    if kinds != of_node:
        raise CompileError(
            f"node {node} makes other dataflow buffers than node {first}: circular buffers are the "
            "same on all cores",
            remedy="make all of them on all nodes, and choose the one to use",
        )


def check_memory(buffer: DataflowBuffer) -> None:
    """Raises CompileError if a buffer is to have memory that the compiler does not give it."""
    if buffer.group is not None:
        raise CompileError(
            f"the compiler gives each dataflow buffer memory of its own, '{buffer.name}' too",
            place(buffer.made_at),
            remedy="leave allocation_group out",
        )
    if buffer.backing is not None and not buffer.backing.is_whole_shard:
        raise CompileError(
            f"the blocks of '{buffer.name}' are a part of the shards of its tensor only; the "
            "compiler takes buffers that have all of a shard",
            place(buffer.made_at),
        )


def circular_buffer(buffer: DataflowBuffer) -> CircularBuffer:
    """The circular buffer of a dataflow buffer."""
    return CircularBuffer(
        buffer.number,
        buffer.name,
        buffer.data_type,
        buffer.pages * buffer.block_count,
        buffer.page_bytes,
    )


def own_buffer(index: int, name: str, tiles: int, data_type: DataType) -> CircularBuffer:
    """A circular buffer of a compute kernel's own."""
    size = tile_bytes_of(data_type)
    return CircularBuffer(index, name, data_type, tiles, size)
