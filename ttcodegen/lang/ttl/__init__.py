"""`ttl`: the language of TT-Lang (specification 0.22)."""

from __future__ import annotations

from ttcodegen.lang.simulator.buffer_making import (
    make_dataflow_buffer_like,
    make_dfb,
    make_dfb_allocation_group,
    make_tensor_backed_dfb,
)
from ttcodegen.lang.simulator.buffers import Block, DataflowBuffer, DFBAllocationGroup
from ttcodegen.lang.simulator.context import Coordinates, grid_size, node
from ttcodegen.lang.simulator.expressions import BlockExpr
from ttcodegen.lang.simulator.functions import signpost
from ttcodegen.lang.simulator.locations import ProgramError
from ttcodegen.lang.simulator.operations import compute, datamovement, operation
from ttcodegen.lang.simulator.pipes import (
    DstPipeIdentity,
    MulticastRemoteSemaphore,
    NodeCoord,
    NodeRange,
    Pipe,
    PipeNet,
    Semaphore,
    SrcPipeIdentity,
    UnicastRemoteSemaphore,
)
from ttcodegen.lang.simulator.tensors import TensorSlice
from ttcodegen.lang.simulator.transfers import (
    GroupTransfer,
    Transfer,
    copy,
    raw_element_read,
    raw_element_write,
    read_index,
)
from ttcodegen.lang.ttl import block, math

TILE_SHAPE = (32, 32)
"""Rows and columns of a tile."""

PositiveInt = NaturalInt = Size = Index = Count = int
Shape = int | Coordinates

__all__ = [
    "TILE_SHAPE",
    "Block",
    "BlockExpr",
    "Count",
    "DFBAllocationGroup",
    "DataflowBuffer",
    "DstPipeIdentity",
    "GroupTransfer",
    "Index",
    "MulticastRemoteSemaphore",
    "NaturalInt",
    "NodeCoord",
    "NodeRange",
    "Pipe",
    "PipeNet",
    "PositiveInt",
    "ProgramError",
    "Semaphore",
    "Shape",
    "Size",
    "SrcPipeIdentity",
    "TensorSlice",
    "Transfer",
    "UnicastRemoteSemaphore",
    "block",
    "compute",
    "copy",
    "datamovement",
    "grid_size",
    "make_dataflow_buffer_like",
    "make_dfb",
    "make_dfb_allocation_group",
    "make_tensor_backed_dfb",
    "math",
    "node",
    "operation",
    "raw_element_read",
    "raw_element_write",
    "read_index",
    "signpost",
]
