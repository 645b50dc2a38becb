"""Graphs of Model Explorer: nodes, attribute texts, sections of large layers, device programs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from math import isfinite, prod
from typing import Any, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, StringAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, Operation

from ttcodegen.dialects.core.datatypes import constant_array, element_of, shape_of, splat_value
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttmetal.programs import BUFFER_CONSTANT, Program
from ttcodegen.dialects.ttnn.placement import TensorPlacement, TTNNLayoutAttr

# The graphs of Model Explorer: classes with the fields of its JSON.
#
# Source: `graph_builder.py` and `node_data_builder.py` of ai-edge-model-explorer 0.1.34. The
# stock server makes JSON of dataclasses (`dataclasses.asdict`), so these serve in place of its
# own.

TENSOR_SHAPE = "tensor_shape"
"""Key of the output metadata that labels edges."""
TENSOR_TAG = "__tensor_tag"
"""Key of the input metadata with the operand's name."""


@dataclass(slots=True)
class KeyValue:
    """Entry of the side panel."""

    key: str
    value: str


@dataclass(slots=True)
class MetadataItem:
    """Metadata of a node's input or output."""

    id: str
    attrs: list[KeyValue] = field(default_factory=list[KeyValue])


@dataclass(slots=True)
class IncomingEdge:
    """Edge to the node that holds it."""

    sourceNodeId: str
    sourceNodeOutputId: str = "0"
    targetNodeInputId: str = "0"


@dataclass(slots=True)
class GraphNodeStyle:
    """CSS colours of a node."""

    backgroundColor: str = ""
    borderColor: str = ""
    hoveredBorderColor: str = ""


@dataclass(slots=True)
class GraphNode:
    """Node of a graph; ids are unique in the graph, and a namespace is a path of layers, `a/b`."""

    id: str
    label: str
    namespace: str = ""
    subgraphIds: list[str] = field(default_factory=list[str])
    attrs: list[KeyValue] = field(default_factory=list[KeyValue])
    incomingEdges: list[IncomingEdge] = field(default_factory=list[IncomingEdge])
    outputsMetadata: list[MetadataItem] = field(default_factory=list[MetadataItem])
    inputsMetadata: list[MetadataItem] = field(default_factory=list[MetadataItem])
    style: GraphNodeStyle | None = None

    def attribute(self, key: str) -> str | None:
        """Attribute of the node by key."""
        return next((each.value for each in self.attrs if each.key == key), None)


@dataclass(slots=True)
class Graph:
    """Graph; attributes of the whole graph are those of the namespace ''."""

    id: str
    nodes: list[GraphNode] = field(default_factory=list[GraphNode])
    groupNodeAttributes: dict[str, dict[str, str]] | None = None

    def describe(self, **attributes: str) -> None:
        """Adds attributes of the whole graph."""
        given = self.groupNodeAttributes or {}
        self.groupNodeAttributes = {**given, "": {**given.get("", {}), **attributes}}

    @property
    def described(self) -> dict[str, str]:
        """Attributes of the whole graph."""
        return (self.groupNodeAttributes or {}).get("", {})


def entry_first(graphs: Sequence[Graph]) -> list[Graph]:
    """Moves the first entry graph to the front, as the page opens the first one.

    Entry graphs are neither private nor subgraphs of others.
    """
    inner = {each for graph in graphs for node in graph.nodes for each in node.subgraphIds}

    def is_entry(graph: Graph) -> bool:
        private = {graph.described.get("sym_visibility"), graph.described.get("kind")}
        return graph.id not in inner and "private" not in private

    first = next(filter(is_entry, graphs), None)
    return list(graphs) if first is None else [first, *(g for g in graphs if g is not first)]


@dataclass(slots=True)
class NodeValue:
    """Number or text of a node."""

    value: float | str
    bgColor: str | None = None


@dataclass(slots=True)
class GradientStop:
    """Colour of a value: 0 is the minimum of all values, 1 the maximum."""

    stop: float
    bgColor: str


@dataclass(slots=True)
class NodeData:
    """Numbers of a graph's nodes, by which the page colours them."""

    results: dict[str, NodeValue]
    name: str
    gradient: list[GradientStop] = field(default_factory=list[GradientStop])


def to_json(value: Any) -> Any:
    """Converts graphs and node data to JSON values, without empty fields."""
    if is_dataclass(value):
        pairs = ((each.name, getattr(value, each.name)) for each in fields(value))
        return {name: to_json(one) for name, one in pairs if one is not None}
    if isinstance(value, dict):
        return {key: to_json(one) for key, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [to_json(one) for one in cast("list[Any]", value)]
    return value


def attributes(pairs: Iterable[tuple[str, object]]) -> list[KeyValue]:
    """Side panel entries, without empty ones."""
    return [KeyValue(key, str(value)) for key, value in pairs if value not in (None, "", ())]


def namespace(parts: Sequence[str]) -> str:
    """Namespace of nested layers; slashes in a name are replaced."""
    return "/".join(part.replace("/", "_") for part in parts if part)


# What the side panel says of an op: its tensors, attributes and constants in a few words.

_LONGEST = 1000
"""Limit on an attribute's text in characters."""
_MOST_SUMMED = 1 << 24
"""Limit on a constant's elements for computing minimum, maximum and mean."""
_HIDDEN = frozenset({"operandSegmentSizes", "resultSegmentSizes", "program"})


def shortened(text: str) -> str:
    """Truncates a text for the side panel."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"


def placement_attributes(placement: TensorPlacement) -> list[KeyValue]:
    """Layout of a tensor: data type, pages, memory, sharding, shard and grid."""
    pairs: list[tuple[str, object]] = [
        ("data_type", placement.data_type.mlir),
        ("layout", placement.layout.value),
        ("memory", placement.buffer_type),
        ("sharding", placement.memory_layout),
    ]
    if placement.shards is not None:
        box = placement.shards.bounding_box()
        height, width = placement.shards.shape
        pairs += [
            ("shard", f"{height}x{width}"),
            ("grid", f"{box.columns}x{box.rows}"),
            ("orientation", str(placement.shards.orientation)),
        ]
    return attributes(pairs)


class Texts:
    """Cached texts of types and attributes, which the ops of a model mostly share."""

    def __init__(self, elements: int = 16) -> None:
        """`elements` limits the listed elements of a constant."""
        self._elements = elements
        self._types: dict[Attribute, list[KeyValue]] = {}
        self._attributes: dict[Attribute, str] = {}

    def tensor(self, type_: Attribute) -> list[KeyValue]:
        """Metadata of a value of a type."""
        found = self._types.get(type_)
        if found is None:
            found = self._types[type_] = list(self._tensor(type_))
        return found

    def _tensor(self, type_: Attribute) -> Iterator[KeyValue]:
        if not isinstance(type_, TensorType):
            yield KeyValue(TENSOR_SHAPE, shortened(str(type_)))
            return
        tensor = cast("TensorType[Any]", type_)
        sizes = "x".join("?" if size < 0 else str(size) for size in shape_of(tensor))
        element = str(element_of(tensor))
        yield KeyValue(TENSOR_SHAPE, f"tensor<{sizes}x{element}>" if sizes else element)
        if isinstance(tensor.encoding, TTNNLayoutAttr):
            yield from placement_attributes(tensor.encoding.data)
        elif str(tensor.encoding) != "none":
            yield KeyValue("layout", shortened(str(tensor.encoding)))

    def op(self, op: Operation) -> Iterator[tuple[str, str]]:
        """Attributes of an op by name."""
        for name, value in (*op.properties.items(), *op.attributes.items()):
            if name not in _HIDDEN:
                yield name, self.attribute(value)

    def attribute(self, value: Attribute) -> str:
        """Text of an attribute; constants are summarized."""
        if isinstance(value, DenseIntOrFPElementsAttr):
            return constant_text(cast("Attribute", value), self._elements)
        found = self._attributes.get(value)
        if found is None:
            text = value.data if isinstance(value, StringAttr) else str(value)
            text = "true" if isinstance(value, UnitAttr) else text
            found = self._attributes[value] = shortened(text)
        return found


def constant_text(value: Attribute, elements: int = 16) -> str:
    """One-line summary of a constant: few elements are listed, else some with statistics."""
    splat = splat_value(value)
    dense = cast("DenseIntOrFPElementsAttr[Any]", value)
    count = prod(dense.get_shape())
    if splat is not None:
        return f"{splat:g}" if count <= 1 else f"{count} times {splat:g}"
    try:
        array = constant_array(dense).reshape(-1)
    except ValueError:
        return f"{count} elements"
    values = [float(each) for each in array[:elements]]
    listed = ", ".join(f"{each:g}" for each in values)
    if count <= elements:
        return f"[{listed}]"
    text = f"{count} elements [{listed}, …]" if values else f"{count} elements"
    if count > _MOST_SUMMED:
        return text
    least, greatest = float(array.min()), float(array.max())
    mean = float(array.mean(dtype="float64"))
    numbers = (("least", least), ("greatest", greatest), ("mean", mean))
    return ", ".join([text, *(f"{name} {one:g}" for name, one in numbers if isfinite(one))])


# Layers with very many nodes, divided into sections that the page can draw.
#
# The page's own layout is recursive in the longest path through a layer, and ends with the stack
# of the browser after a few thousand nodes. A model without locations is one such layer.

MOST_IN_LAYER = 400
"""Limit on the nodes and layers directly in a layer."""


def divide_large_layers(graph: Graph) -> None:
    """Splits layers with more than `MOST_IN_LAYER` direct members into sections, in program order.

    The namespace `a` becomes `a/section 1 of 3`.
    """
    places: defaultdict[str, dict[str, int]] = defaultdict(dict)
    """By layer, the position of each direct member; node ids have a leading slash here."""
    for node in graph.nodes:
        for layer, inner in _steps(node.namespace, node.id):
            within = places[layer]
            within.setdefault(inner, len(within))
    if all(len(within) <= MOST_IN_LAYER for within in places.values()):
        return
    divided: dict[str, str] = {}
    for node in graph.nodes:
        drawn = ""
        for layer, inner in _steps(node.namespace, node.id):
            divided.setdefault(layer, drawn)
            within = places[layer]
            if len(within) > MOST_IN_LAYER:
                number = within[inner] // MOST_IN_LAYER + 1
                sections = -(-len(within) // MOST_IN_LAYER)
                drawn = _inside(drawn, f"section {number} of {sections}")
            if not inner.startswith("/"):
                drawn = _inside(drawn, inner)
        node.namespace = drawn
    if graph.groupNodeAttributes is not None:
        graph.groupNodeAttributes = {
            divided.get(layer, layer): said for layer, said in graph.groupNodeAttributes.items()
        }


def _steps(namespace: str, node: str) -> list[tuple[str, str]]:
    """Enclosing layers of a node, outermost first, each with its direct member."""
    found: list[tuple[str, str]] = []
    layer = ""
    for part in namespace.split("/") if namespace else []:
        found.append((layer, part))
        layer = _inside(layer, part)
    return [*found, (layer, f"/{node}")]


def _inside(layer: str, part: str) -> str:
    return f"{layer}/{part}" if layer else part


_BUFFER_STYLE = GraphNodeStyle(backgroundColor="#fff8e1", borderColor="#f9a825")
_PROCESSORS = ("reader", "compute", "writer")


@dataclass(frozen=True)
class KernelFacts:
    """Attributes of a kernel in a graph."""

    name: str
    processor: str
    purpose: str
    cores: str
    constants: Mapping[str, int]
    arguments: Sequence[str]
    source: str = ""
    """C++ source, if known, from which buffer accesses are derived."""
    graph: str | None = None
    """Graph of its function."""


@dataclass(frozen=True)
class BufferFacts:
    """Attributes of a circular buffer in a graph."""

    index: int
    name: str
    data_type: str
    pages: int
    page_size: int


def cores_text(cores: CoreRange) -> str:
    """Corners of a core range as (column, row)."""
    first = f"({cores.first_column}, {cores.first_row})"
    return f"{first} to ({cores.last_column}, {cores.last_row})"


def program_graph(program: Program, functions: Mapping[str, str]) -> Graph:
    """Graph of a device program in a module.

    Args:
        program: the launched program.
        functions: graphs of functions by symbol.
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
    """Graph of kernels and circular buffers, with edges from producers and to consumers."""
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
    """Returns whether a kernel fills a buffer, and whether it empties it.

    By its C++ calls, or else by its processor's role.
    """
    if kernel.source:
        calls = re.findall(rf"\b(cb_\w+|\w+_tiles?)\(\s*{re.escape(buffer)}\b", kernel.source)
        fills, empties = "cb_push_back" in calls, "cb_pop_front" in calls
        if fills or empties:
            return fills, empties
    return kernel.processor == "reader", kernel.processor != "reader"
