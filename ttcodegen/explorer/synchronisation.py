"""Node correspondence of two graphs of a model, for synchronized panes.

The result is the mapping that the page of Model Explorer reads (source: `updateSyncNavigationData`
in the bundle of ai-edge-model-explorer 0.1.34): entries with the nodes of the left pane and those
of the right one. The page's own matching, by the ids of nodes, finds what kept its name; ops that
were renamed, divided or fused are found by what they were made of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ttcodegen.explorer.graph import Graph, GraphNode
from ttcodegen.explorer.stages import NOWHERE, Node, Origins, Places
from ttcodegen.ops.core.definition import call_kind
from ttcodegen.ops.core.traits import CallKind

LAYER_SUFFIX = "___group___"
"""Suffix by which the page forms a layer's node id from its path."""
_MOST_FOR_LAYER = 24
"""Limit on the nodes that a layer without counterpart maps to, as they would be expanded."""
_MOST_HIGHLIGHTED = 64
"""Limit on the nodes that one maps to, such as a call of the whole model."""
_BESIDE = frozenset({"create_buffer", "literal", "member"})
"""Auxiliary ops: they map to the origins of the op that they serve, and only such ops map
to them."""
_KIND = re.compile(r"^(?:input|weight|constant):")
_WORD = re.compile(r"\W")
Related = dict[str, dict[str, None]]
"""Corresponding nodes of another graph, by node."""


@dataclass
class _Side:
    """One of the two graphs."""

    graph: Graph
    places: dict[str, Places]
    at: dict[int, list[GraphNode]] = field(default_factory=dict[int, list[GraphNode]])
    """Nodes that derive from each source op."""

    def __post_init__(self) -> None:
        for node in self.graph.nodes:
            for place in self.places.get(node.id, NOWHERE):
                self.at.setdefault(place, []).append(node)


class Synchronisation:
    """Graphs of a model, with their nodes' origins."""

    def __init__(
        self,
        graphs: Sequence[Graph],
        made_of: Mapping[Node, Places] | None = None,
        origins: Origins | None = None,
    ) -> None:
        """
        Args:
            graphs: of all stages, in order.
            made_of: source ops of each node, if known.
            origins: descendants of the source ops.
        """
        self._graphs = {graph.id: graph for graph in graphs}
        self._order = {graph.id: index for index, graph in enumerate(graphs)}
        self._made_of = made_of or {}
        self._origins = origins or Origins()
        self._inner: dict[str, Places] = {}

    def __contains__(self, graph: str) -> bool:
        return graph in self._graphs

    def mapping(self, left: str, right: str) -> dict[str, Any]:
        """Mapping that synchronizes the panes of two graphs.

        `leftToRightMapping` and `rightToLeftMapping` are complete. `mappingEntries` is the subset
        for *Upload mapping from computer*: later entries override earlier ones.
        """
        one, other = self._side(left), self._side(right)
        if self._order[left] <= self._order[right]:
            related = self._related(one, other)
            back = _reversed(related)
        else:
            back = self._related(other, one)
            related = _reversed(back)
        forward = _targets(one.graph, other.graph, related)
        backward = _targets(other.graph, one.graph, back)
        reached = {there for nodes in forward.values() for there in nodes}
        entries = [(there, [node]) for node, there in backward.items() if node not in reached]
        alike: dict[tuple[str, ...], list[str]] = {}
        for node in sorted(forward, key=related.__contains__):
            alike.setdefault(tuple(forward[node]), []).append(node)
        entries += [(nodes, list(there)) for there, nodes in alike.items()]
        return {
            "mappingEntries": [
                {"leftNodeIds": here, "rightNodeIds": there} for here, there in entries
            ],
            "leftToRightMapping": forward,
            "rightToLeftMapping": backward,
            # The same id without an entry is no correspondence.
            "disableMappingFallback": True,
        }

    def _side(self, name: str) -> _Side:
        graph = self._graphs[name]
        own = {node.id: self._made_of.get((name, node.id), NOWHERE) for node in graph.nodes}
        return _Side(graph, own)

    def _related(self, earlier: _Side, later: _Side) -> Related:
        """Corresponding nodes of the later stage, by node of the earlier one."""
        related: Related = {}
        for node in earlier.graph.nodes:
            for place in sorted(earlier.places[node.id]):
                for at in self._origins.among(place, later.at.__contains__):
                    for there in later.at[at]:
                        related.setdefault(node.id, {})[there.id] = None
        nothing_known = not earlier.at and not later.at
        for node, there in _by_name(earlier.graph, later.graph, ops=nothing_known):
            related.setdefault(node, {})[there] = None
        self._add_containers(earlier, later, related)
        return related

    def _add_containers(self, earlier: _Side, later: _Side, related: Related) -> None:
        """Maps containers without a counterpart to that of a contained node, and the reverse."""
        inside: dict[int, list[str]] = {}
        for node in later.graph.nodes:
            for place in self._contained(node) - later.places[node.id]:
                inside.setdefault(place, []).append(node.id)
        outside = {
            node.id: self._contained(node) | earlier.places[node.id] for node in earlier.graph.nodes
        }
        found = {there for nodes in related.values() for there in nodes}
        for node in earlier.graph.nodes:
            mine = outside[node.id]
            if node.id not in related:
                for place in sorted(mine):
                    for at in self._origins.among(place, inside.__contains__):
                        for there in inside.get(at, ()):
                            related.setdefault(node.id, {}).setdefault(there)
            for place in sorted(mine - earlier.places[node.id]):
                for at in self._origins.among(place, later.at.__contains__):
                    for there in later.at[at]:
                        if there.id not in found:
                            related.setdefault(node.id, {}).setdefault(there.id)

    def _contained(self, node: GraphNode) -> Places:
        """Origins of the functions, regions and programs that a node contains."""
        return NOWHERE.union(*map(self._within, node.subgraphIds))

    def _within(self, name: str) -> Places:
        known = self._inner.get(name)
        if known is not None:
            return known
        self._inner[name] = NOWHERE  # A function may lead to itself.
        graph = self._graphs.get(name)
        nodes = graph.nodes if graph is not None else ()
        own = (self._made_of.get((name, node.id), NOWHERE) for node in nodes)
        self._inner[name] = NOWHERE.union(*own, *map(self._contained, nodes))
        return self._inner[name]


def _targets(one: Graph, other: Graph, related: Related) -> dict[str, list[str]]:
    """Targets of nodes and layers in another graph, most specific first.

    The page selects the first, and frames the others.
    """
    found = {node: dict(there) for node, there in related.items()}
    _add_by_neighbours(one, found)
    index = {node.id: number for number, node in enumerate(other.nodes)}
    known = {node.id: node for node in other.nodes}

    def order(node: GraphNode, name: str) -> tuple[bool, bool, int]:
        # The last of several produces the op's result.
        return name != node.id, known[name].label != node.label, -index[name]

    followed: dict[str, list[str]] = {}
    for node in one.nodes:
        names = found.get(node.id, {})
        main = [name for name in names if not _is_beside(known[name])] or names
        if main:
            ordered = sorted(main, key=lambda name, node=node: order(node, name))
            followed[node.id] = ordered[:_MOST_HIGHLIGHTED]
    return followed | dict(_layers(one, other, found))


def _is_beside(node: GraphNode) -> bool:
    is_conversion = call_kind(node.label) is CallKind.LAYOUT
    return is_conversion or node.label in _BESIDE or not node.outputsMetadata


def _reversed(related: Related) -> Related:
    back: Related = {}
    for node, nodes in related.items():
        for there in nodes:
            back.setdefault(there, {}).setdefault(node)
    return back


def _by_name(one: Graph, other: Graph, *, ops: bool) -> Iterator[tuple[str, str]]:
    """Nodes with equal names: arguments (members of a structure in C++), results, and ops without
    origins."""
    ids = {node.id for node in other.nodes}
    members: dict[str, list[str]] = {}
    located: dict[str, list[str]] = {}
    for node in other.nodes:
        if (member := node.attribute("member")) is not None:
            members.setdefault(member, []).append(node.id)
        if ops and (location := node.attribute("location")) is not None:
            located.setdefault(location, []).append(node.id)
    for node in one.nodes:
        if node.id in ids and (ops or node.attribute("op") is None):
            yield node.id, node.id
        elif _KIND.match(node.id):
            yield from ((node.id, there) for there in members.get(_WORD.sub("_", node.label), ()))
        yield from ((node.id, each) for each in located.get(node.attribute("location") or "", ()))


def _add_by_neighbours(one: Graph, other: Related) -> None:
    """Maps unmatched ops to the targets of their users, or else of their producers.

    Args:
        one: a graph.
        other: targets by node, which is extended.
    """
    readers: dict[str, list[str]] = {}
    read: dict[str, list[str]] = {}
    for node in one.nodes:
        for edge in node.incomingEdges:
            readers.setdefault(edge.sourceNodeId, []).append(node.id)
            read.setdefault(node.id, []).append(edge.sourceNodeId)
    for nodes, near in ((reversed(one.nodes), readers), (iter(one.nodes), read)):
        for node in nodes:
            found = {there: None for each in near.get(node.id, ()) for there in other.get(each, ())}
            if found and node.id not in other:
                other[node.id] = found


def _layers(one: Graph, other: Graph, related: Related) -> Iterator[tuple[str, list[str]]]:
    """Layers of a graph with their targets: the layer of that name, or else those of its nodes."""
    inside: dict[str, list[str]] = {}
    for node in one.nodes:
        for layer in _enclosing_layers(node):
            inside.setdefault(layer, []).append(node.id)
    there = {layer for node in other.nodes for layer in _enclosing_layers(node)}
    for layer, nodes in inside.items():
        if layer in there:
            yield f"{layer}{LAYER_SUFFIX}", [f"{layer}{LAYER_SUFFIX}"]
            continue
        found = {each: None for node in nodes for each in related.get(node, ())}
        if 0 < len(found) <= _MOST_FOR_LAYER:
            yield f"{layer}{LAYER_SUFFIX}", list(found)


def _enclosing_layers(node: GraphNode) -> Iterator[str]:
    """Paths of a node's enclosing layers, outermost first."""
    parts = node.namespace.split("/") if node.namespace else []
    return ("/".join(parts[: end + 1]) for end in range(len(parts)))
