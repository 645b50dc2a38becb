"""Two panes follow each other: by what nodes were made of, through all stages of a compile."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tests.explorer.test_graphs import ROOT
from ttcodegen.compilation import CompileOptions
from ttcodegen.explorer.graph import Graph, GraphNode, KeyValue
from ttcodegen.explorer.models import Model, open_model
from ttcodegen.explorer.session import Command, Session
from ttcodegen.explorer.stages import MADE_OF, SOURCE, graph_of_stage
from ttcodegen.explorer.synchronisation import Synchronisation
from ttcodegen.foundation.diagnostics import CompileError

TRANSFORMER = ROOT / "examples/transformer/transformer.mlir"
NAMELESS = """
func.func @main(%0: tensor<64x64xbf16>, %1: tensor<64x64xbf16>, %2: tensor<64xbf16>)
    -> tensor<64x64xbf16> {
  %3 = "ttir.matmul"(%0, %1) : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %4 = "ttir.add"(%3, %2) : (tensor<64x64xbf16>, tensor<64xbf16>) -> tensor<64x64xbf16>
  %5 = "ttir.relu"(%4) : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %6 = "ttir.matmul"(%5, %1) : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %7 = "ttir.exp"(%6) : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %8 = "ttir.exp"(%6) : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %9 = "ttir.add"(%7, %8) : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %9 : tensor<64x64xbf16>
}
"""
"""Ops without names or locations: only their positions distinguish them."""


def opened(path: Path, target: str = "ttnn") -> Model:
    optimize = 2 if target == "ttnn" else 0
    model = open_model(path, CompileOptions(path.stem, target, optimize=optimize), stages=True)
    assert "compile_error" not in model.graphs[0].described
    return model


def stages_of(model: Model) -> list[str]:
    """The graph of each stage with what the model computes."""
    stages = dict.fromkeys(each.id.partition(": ")[0] for each in model.graphs if ": " in each.id)
    return [graph_of_stage(model.graphs, stage) for stage in (SOURCE, *stages)]


@pytest.fixture(scope="module")
def transformer() -> Model:
    return opened(TRANSFORMER)


def followed(model: Model, stage: str) -> dict[str, list[str]]:
    """Maps nodes of the source to nodes of a stage."""
    there = graph_of_stage(model.graphs, stage)
    return model.synchronisation.mapping(model.graphs[0].id, there)["leftToRightMapping"]


def counts(node: GraphNode) -> bool:
    """Constants that are part of others, and what C++ has for itself, lead nowhere."""
    kinds = ("constant", "full", "arange", "device", "constants")
    return node.label not in kinds


@pytest.mark.parametrize(
    ("path", "target"),
    [
        (TRANSFORMER, "ttnn"),
        (TRANSFORMER, "ttmetal"),
        (ROOT / "examples/cnn/cnn.mlir", "ttnn"),
        (ROOT / "examples/digits/digits.mlir", "ttnn"),
        (ROOT / "examples/device_programs/fused_chain.mlir", "ttmetal"),
        (ROOT / "tests/frontends/modules/jax_decode.mlirbc", "ttnn"),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else value,
)
def test_nodes_of_all_stages_lead_to_all_others(path: Path, target: str) -> None:
    model = opened(path, target)
    graphs = {graph.id: graph for graph in model.graphs}
    pairs = list(permutations(stages_of(model), 2))
    assert len(pairs) == (20 if target == "ttnn" else 12)
    for left, right in pairs:
        mapping = model.synchronisation.mapping(left, right)["leftToRightMapping"]
        ids = {node.id for node in graphs[right].nodes}
        nodes = [node.id for node in graphs[left].nodes if counts(node)]
        found = [node for node in nodes if ids.issuperset(mapping.get(node, ["nowhere"]))]
        assert len(found) >= 0.9 * len(nodes), (left, right, sorted({*nodes} - {*found}))


@pytest.mark.parametrize(
    ("op", "part_of"),
    [
        ("silu", "silu"),
        ("feed_forward_gate", "silu"),
        ("masked_scores", "matmul#2"),
        ("softmax", "matmul#2"),
        ("attention_key", "matmul"),
        ("permute#2", "permute"),
        ("permute#4", "reshape#2"),
        ("attention_output", "attention_output"),
        ("input:mask", "input:mask"),
        ("weight:attention.query.weight", "weight:attention.query.weight"),
        ("output:hidden_states", "output:hidden_states"),
    ],
)
def test_an_op_leads_to_what_it_became_part_of(transformer: Model, op: str, part_of: str) -> None:
    labels = {node.id: node.label for node in transformer.graphs[1].nodes}
    assert labels["matmul#2"] == "scaled_dot_product_attention"
    assert labels["silu"] == "matmul"
    assert followed(transformer, "ttnn")[op][0] == part_of
    assert part_of in followed(transformer, "lowered")[op]


def test_what_is_fused_leads_back_to_all_that_it_was_made_of(transformer: Model) -> None:
    mapping = transformer.synchronisation.mapping("lowered: block", "block")
    attention = {"scores", "scaled_scores", "masked_scores", "softmax", "matmul"}
    assert attention <= {*mapping["leftToRightMapping"]["matmul#2"]}
    assert mapping["leftToRightMapping"]["silu"] == ["silu", "feed_forward_gate"]
    assert mapping["rightToLeftMapping"]["softmax"][0] == "matmul#2"


def test_nodes_say_what_they_were_made_of(transformer: Model) -> None:
    (graph,) = (each for each in transformer.graphs if each.id == "lowered: block")
    said = {node.id: node.attribute(MADE_OF) for node in graph.nodes}
    assert said["silu"] == "feed_forward_gate, silu"
    assert said["matmul#2"] == "scores, scaled_scores, masked_scores, softmax, matmul"
    assert said["attention_output"] == "attention_output"
    assert said["input:mask"] is None


def test_ops_in_the_c_plus_plus_are_found_by_the_calls_made_of_them(transformer: Model) -> None:
    mapping = followed(transformer, "emitc")
    nodes = {node.id: node for graph in transformer.graphs[-1:] for node in graph.nodes}
    (argument,) = mapping["input:mask"]
    assert nodes[argument].attribute("member") == "mask"
    assert nodes[mapping["scores"][0]].attribute("callee") == (
        "ttnn::transformer::scaled_dot_product_attention"
    )


def test_nodes_of_the_source_have_the_lines_of_what_they_became_part_of(
    transformer: Model,
) -> None:
    lines = {node.id: node.attribute("C++") for node in transformer.graphs[0].nodes}
    assert lines["softmax"] == lines["masked_scores"] == lines["matmul"] is not None
    assert lines["silu"] == lines["feed_forward_gate"] is not None
    assert [node for node, at in lines.items() if at is None and ":" not in node] == []


def test_layers_lead_to_layers(transformer: Model) -> None:
    for stage in ("ttnn", "emitc"):
        mapping = followed(transformer, stage)
        assert mapping["feed_forward___group___"] == ["feed_forward___group___"]


def test_ops_without_names_are_distinguished(tmp_path: Path) -> None:
    path = tmp_path / "nameless.mlir"
    path.write_text(NAMELESS)
    mapping = followed(opened(path), "lowered")
    assert mapping["matmul"][0] == mapping["add"][0] == mapping["relu"][0]
    assert mapping["matmul#2"][0] != mapping["matmul"][0]
    # Of two that compute the same, one is left.
    assert mapping["exp"] == mapping["exp#2"]
    assert mapping["add#2"][0] not in mapping["exp"]


def test_a_call_in_the_c_plus_plus_leads_to_what_its_function_computes() -> None:
    calls = GraphNode("layer", "call_opaque", subgraphIds=["EmitC: a.cpp:layer"])
    graphs = [
        Graph("main", [GraphNode("one", "exp"), GraphNode("two", "sin")]),
        Graph("EmitC: a.cpp:main", [calls]),
        Graph("EmitC: a.cpp:layer", [GraphNode("first", "call_opaque")]),
    ]
    made_of = {
        ("main", "one"): frozenset({1}),
        ("main", "two"): frozenset({2}),
        ("EmitC: a.cpp:layer", "first"): frozenset({1}),
    }
    mapping = Synchronisation(graphs, made_of).mapping("main", "EmitC: a.cpp:main")
    assert mapping["leftToRightMapping"] == {"one": ["layer"]}
    assert mapping["rightToLeftMapping"] == {"layer": ["one"]}


def test_a_file_of_the_mapping_says_the_same(transformer: Model) -> None:
    mapping = transformer.synchronisation.mapping("block", "TTNN: block")
    # As the page reads it: of entries that disagree the last counts.
    left: dict[str, Any] = {}
    for entry in mapping["mappingEntries"]:
        left |= dict.fromkeys(entry["leftNodeIds"], entry["rightNodeIds"])
    assert left == mapping["leftToRightMapping"]


def test_graphs_of_which_nothing_is_known_follow_by_names_and_locations() -> None:
    def op(name: str, location: str = "") -> GraphNode:
        said = {"op": "ttnn.exp", "location": location}
        return GraphNode(name, "exp", attrs=[KeyValue(*pair) for pair in said.items() if pair[1]])

    one = Graph("one", [GraphNode("input:x", "x"), op("exp"), op("a", "layer/scaled")])
    other = Graph("two", [GraphNode("input:x", "x"), op("exp"), op("b", "layer/scaled")])
    mapping = Synchronisation([one, other]).mapping("one", "two")
    expected = {"input:x": ["input:x"], "exp": ["exp"], "a": ["b"]}
    assert mapping["leftToRightMapping"] == expected


def test_the_command_gives_the_mapping(tmp_path: Path) -> None:
    path = tmp_path / "nameless.mlir"
    path.write_text(NAMELESS)
    session = Session([tmp_path])
    try:
        settings = {"left": "main", "right": "TTNN: main"}
        (reported,) = session.run(Command("synchronisation", str(path), settings, delete=False))
        assert reported["leftToRightMapping"]["relu"]
        wrong = Command("synchronisation", str(path), {"left": "main", "right": "x"}, delete=False)
        with pytest.raises(CompileError, match="'right' names no graph"):
            session.run(wrong)
    finally:
        session.close()
