"""Layers with very many nodes, divided into sections that the page can draw.

The page's own layout is recursive in the longest path through a layer, and ends with the stack of
the browser after a few thousand nodes. A model without locations is one such layer.
"""

from __future__ import annotations

from collections import defaultdict

from ttcodegen.explorer.graph import Graph

MOST_IN_LAYER = 400
"""Nodes and layers directly in a layer that is drawn whole."""


def divide_large_layers(graph: Graph) -> None:
    """Puts the nodes and layers of a layer with more than `MOST_IN_LAYER` of them into sections of
    so many, in the order of the program: the namespace `a` becomes `a/section 1 of 3`."""
    places: defaultdict[str, dict[str, int]] = defaultdict(dict)
    """By layer, the position of each node and layer that is directly in it. Ids of nodes have a
    slash before them here, which names of layers do not have."""
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
    """The layers around a node from the outermost one, each with what of it is directly inside."""
    found: list[tuple[str, str]] = []
    layer = ""
    for part in namespace.split("/") if namespace else []:
        found.append((layer, part))
        layer = _inside(layer, part)
    return [*found, (layer, f"/{node}")]


def _inside(layer: str, part: str) -> str:
    return f"{layer}/{part}" if layer else part
