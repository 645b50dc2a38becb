"""Layers that are too large to be drawn whole."""

from __future__ import annotations

from collections import Counter

from ttcodegen.explorer.graph import MOST_IN_LAYER, Graph, GraphNode, divide_large_layers


def graph_of(namespaces: list[str]) -> Graph:
    return Graph("f", [GraphNode(f"n{n}", "exp", path) for n, path in enumerate(namespaces)])


def largest_layer(graph: Graph) -> int:
    """Number of direct children, nodes and layers, of the fullest layer."""
    inside: set[tuple[str, str]] = set()
    for node in graph.nodes:
        path = f"{node.namespace}/{node.id}".strip("/").split("/")
        inside |= {("/".join(path[:depth]), path[depth]) for depth in range(len(path))}
    return max(Counter(layer for layer, _ in inside).values())


def test_what_can_be_drawn_stays() -> None:
    graph = graph_of(["encoder/0"] * MOST_IN_LAYER + ["encoder/1", ""])
    divide_large_layers(graph)
    assert {node.namespace for node in graph.nodes} == {"encoder/0", "encoder/1", ""}


def test_a_model_without_layers_is_divided_in_its_order() -> None:
    graph = graph_of([""] * (2 * MOST_IN_LAYER + 1))
    graph.describe(op="func.func")
    divide_large_layers(graph)
    assert [node.namespace for node in graph.nodes] == [
        *["section 1 of 3"] * MOST_IN_LAYER,
        *["section 2 of 3"] * MOST_IN_LAYER,
        "section 3 of 3",
    ]
    assert graph.groupNodeAttributes == {"": {"op": "func.func"}}


def test_layers_within_a_large_one_stay_whole() -> None:
    # Each layer has two ops, with those of others between them.
    paths = [f"model/{layer}" for _ in range(2) for layer in range(MOST_IN_LAYER + 1)]
    graph = graph_of([*paths, "model/0/deep"])
    graph.groupNodeAttributes = {"model/0": {"kind": "block"}}
    divide_large_layers(graph)
    assert largest_layer(graph) <= MOST_IN_LAYER
    assert graph.nodes[0].namespace == graph.nodes[MOST_IN_LAYER + 1].namespace
    assert graph.nodes[0].namespace == "model/section 1 of 2/0"
    assert graph.nodes[-1].namespace == "model/section 1 of 2/0/deep"
    assert graph.groupNodeAttributes == {"model/section 1 of 2/0": {"kind": "block"}}
