"""Programs of the device as graphs: kernels and the circular buffers between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttmetal.programs import BUFFER_CONSTANT, Program
from ttcodegen.explorer.graph import (
    Graph,
    GraphNode,
    GraphNodeStyle,
    IncomingEdge,
    MetadataItem,
    attributes,
    shortened,
)

_BUFFER_STYLE = GraphNodeStyle(backgroundColor="#fff8e1", borderColor="#f9a825")
_PROCESSORS = ("reader", "compute", "writer")


@dataclass(frozen=True)
class KernelFacts:
    """Facts of a kernel in a graph."""

    name: str
    processor: str
    purpose: str
    cores: str
    constants: Mapping[str, int]
    arguments: Sequence[str]
    source: str = ""
    """Its C++, if it is known: which says what it pushes to and takes from."""
    graph: str | None = None
    """The graph of its function."""


@dataclass(frozen=True)
class BufferFacts:
    """Facts of a circular buffer in a graph."""

    index: int
    name: str
    data_type: str
    pages: int
    page_size: int


def cores_text(cores: CoreRange) -> str:
    """A rectangle of cores by its corners, column and row of each."""
    first = f"({cores.first_column}, {cores.first_row})"
    return f"{first} to ({cores.last_column}, {cores.last_row})"


def program_graph(program: Program, functions: Mapping[str, str]) -> Graph:
    """The graph of a program in a module.

    Args:
        program: what is launched.
        functions: graphs of functions by their symbols.
    """
    kernels = [
        KernelFacts(
            kernel.name,
            kernel.processor.value,
            kernel.purpose,
            cores_text(program.cores_of(kernel)),
            {each.name: program.value(each.value) for each in kernel.constants},
            [argument.name for argument in kernel.arguments],
            graph=functions.get(kernel.function),
        )
        for kernel in program.kernels
    ]
    buffers = [
        BufferFacts(
            each.index, each.name, each.data_type.mlir, program.value(each.pages), each.page_size
        )
        for each in program.used_buffers
    ]
    graph = kernel_graph(f"program {program.name}", kernels, buffers)
    graph.describe(purpose=program.purpose, cores=cores_text(program.core_range))
    return graph


def kernel_graph(
    name: str, kernels: Iterable[KernelFacts], buffers: Iterable[BufferFacts]
) -> Graph:
    """Kernels and buffers; an edge from each kernel that fills a buffer, one to each that empties
    it."""
    known = list(kernels)
    graph = Graph(name)
    nodes: dict[int, GraphNode] = {}
    for buffer in buffers:
        nodes[buffer.index] = GraphNode(
            f"{BUFFER_CONSTANT}{buffer.name}",
            buffer.name,
            attrs=attributes(
                [
                    ("kind", "circular buffer"),
                    ("data_type", buffer.data_type),
                    ("pages", buffer.pages),
                    ("page_size", buffer.page_size),
                    ("bytes", buffer.pages * buffer.page_size),
                ]
            ),
            outputsMetadata=[MetadataItem("0")],
            style=_BUFFER_STYLE,
        )
    graph.nodes += nodes.values()
    for kernel in known:
        graph.nodes.append(_kernel_node(kernel, nodes))
    return graph


def _kernel_node(kernel: KernelFacts, buffers: Mapping[int, GraphNode]) -> GraphNode:
    node = GraphNode(
        f"kernel:{kernel.name}",
        kernel.name,
        subgraphIds=[] if kernel.graph is None else [kernel.graph],
        attrs=attributes(
            [
                ("kind", "kernel"),
                ("processor", kernel.processor),
                ("purpose", kernel.purpose),
                ("cores", kernel.cores),
                ("arguments", ", ".join(kernel.arguments)),
                ("constants", ", ".join(f"{k} = {v}" for k, v in kernel.constants.items())),
                ("source", shortened(kernel.source)),
            ]
        ),
        outputsMetadata=[MetadataItem("0")],
    )
    for constant, index in kernel.constants.items():
        buffer = buffers.get(index)
        if not constant.startswith(BUFFER_CONSTANT) or buffer is None:
            continue
        fills, empties = _directions(kernel, constant)
        if fills:
            buffer.incomingEdges.append(IncomingEdge(node.id))
        if empties:
            edge = IncomingEdge(buffer.id, targetNodeInputId=str(len(node.incomingEdges)))
            node.incomingEdges.append(edge)
    return node


def _directions(kernel: KernelFacts, buffer: str) -> tuple[bool, bool]:
    """True if a kernel fills a buffer, and whether it empties it: as its C++ says, or else as
    kernels of its processor do."""
    if kernel.source:
        calls = re.findall(rf"\b(cb_\w+|\w+_tiles?)\(\s*{re.escape(buffer)}\b", kernel.source)
        fills, empties = "cb_push_back" in calls, "cb_pop_front" in calls
        if fills or empties:
            return fills, empties
    return kernel.processor == "reader", kernel.processor != "reader"
