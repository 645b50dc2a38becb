"""The graphs of Model Explorer: classes with the fields of its JSON.

Source: `graph_builder.py` and `node_data_builder.py` of ai-edge-model-explorer 0.1.34. The stock
server makes JSON of dataclasses (`dataclasses.asdict`), so these serve in place of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, cast

TENSOR_SHAPE = "tensor_shape"
"""The key of an output's metadata that edges are labelled with."""
TENSOR_TAG = "__tensor_tag"
"""The key of an input's metadata with the name of the operand."""


@dataclass(slots=True)
class KeyValue:
    """What the side panel says under a key."""

    key: str
    value: str


@dataclass(slots=True)
class MetadataItem:
    """What is said of an input or output of a node."""

    id: str
    attrs: list[KeyValue] = field(default_factory=list[KeyValue])


@dataclass(slots=True)
class IncomingEdge:
    """An edge to the node that has it."""

    sourceNodeId: str
    sourceNodeOutputId: str = "0"
    targetNodeInputId: str = "0"


@dataclass(slots=True)
class GraphNodeStyle:
    """Colours of a node, in CSS."""

    backgroundColor: str = ""
    borderColor: str = ""
    hoveredBorderColor: str = ""


@dataclass(slots=True)
class GraphNode:
    """A node. Ids are unique in their graph; a namespace is a path of layers, `a/b`."""

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
        """What the node says under a key."""
        return next((each.value for each in self.attrs if each.key == key), None)


@dataclass(slots=True)
class Graph:
    """A graph. Attributes of the whole of it are those of the namespace ''."""

    id: str
    nodes: list[GraphNode] = field(default_factory=list[GraphNode])
    groupNodeAttributes: dict[str, dict[str, str]] | None = None

    def describe(self, **attributes: str) -> None:
        """Adds attributes of the whole graph."""
        given = self.groupNodeAttributes or {}
        self.groupNodeAttributes = {**given, "": {**given.get("", {}), **attributes}}

    @property
    def described(self) -> dict[str, str]:
        """The attributes of the whole graph."""
        return (self.groupNodeAttributes or {}).get("", {})


def entry_first(graphs: Sequence[Graph]) -> list[Graph]:
    """The graphs, with the first one that is neither private nor part of another before the
    others: the page opens the first of all."""
    inner = {each for graph in graphs for node in graph.nodes for each in node.subgraphIds}

    def is_entry(graph: Graph) -> bool:
        private = {graph.described.get("sym_visibility"), graph.described.get("kind")}
        return graph.id not in inner and "private" not in private

    first = next(filter(is_entry, graphs), None)
    return list(graphs) if first is None else [first, *(g for g in graphs if g is not first)]


@dataclass(slots=True)
class NodeValue:
    """A number, or a word, of a node."""

    value: float | str
    bgColor: str | None = None


@dataclass(slots=True)
class GradientStop:
    """The colour of a value: 0 is the smallest of all values, 1 the largest."""

    stop: float
    bgColor: str


@dataclass(slots=True)
class NodeData:
    """A number for each of some nodes of a graph; the page colours them by it."""

    results: dict[str, NodeValue]
    name: str
    gradient: list[GradientStop] = field(default_factory=list[GradientStop])


def to_json(value: Any) -> Any:
    """The JSON of graphs and node data: fields by their names, without those that say nothing."""
    if is_dataclass(value):
        pairs = ((each.name, getattr(value, each.name)) for each in fields(value))
        return {name: to_json(one) for name, one in pairs if one is not None}
    if isinstance(value, dict):
        return {key: to_json(one) for key, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [to_json(one) for one in cast("list[Any]", value)]
    return value


def attributes(pairs: Iterable[tuple[str, object]]) -> list[KeyValue]:
    """The side panel's lines, without those that say nothing."""
    return [KeyValue(key, str(value)) for key, value in pairs if value not in (None, "", ())]


def namespace(parts: Sequence[str]) -> str:
    """The path of some layers; a slash in one of them does not begin another."""
    return "/".join(part.replace("/", "_") for part in parts if part)
