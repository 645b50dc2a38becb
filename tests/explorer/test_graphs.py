"""Models as graphs: what nodes, edges, layers and attributes say."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions
from ttcodegen.explorer.graph import Graph, GraphNode, to_json
from ttcodegen.explorer.models import (
    compile_stages,
    flatbuffer_graphs,
    model_graphs,
    source_graphs,
)
from ttcodegen.explorer.module_graphs import module_graphs
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.parsing import parse_operations

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = CompileOptions("model", optimize=2)
MODEL = """\
func.func @model(
    %x: tensor<512x512xbf16> {ttcore.argument_type = #ttcore.argument_type<input>},
    %w: tensor<512x512xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>,
                              ttir.name = "encoder.0.dense.weight"})
    -> (tensor<512x512xbf16> {ttir.name = "logits"}) {
  %scores = "ttir.matmul"(%x, %w)
    : (tensor<512x512xbf16>, tensor<512x512xbf16>) -> tensor<512x512xbf16>
  %0 = "ttir.exp"(%scores) : (tensor<512x512xbf16>) -> tensor<512x512xbf16> loc("head/scaled")
  return %0 : tensor<512x512xbf16>
}
"""


def graphs_of(text: str) -> list[Graph]:
    return module_graphs(parse_operations(Source("model.mlir", text), Diagnostics()))


def nodes_of(graph: Graph) -> dict[str, GraphNode]:
    found = {node.id: node for node in graph.nodes}
    assert len(found) == len(graph.nodes), "ids are unique in a graph"
    for node in graph.nodes:
        assert {edge.sourceNodeId for edge in node.incomingEdges} <= found.keys()
    return found


def outputs(node: GraphNode) -> dict[str, str]:
    return {each.key: each.value for each in node.outputsMetadata[0].attrs}


def check_links(graphs: list[Graph]) -> None:
    known = [graph.id for graph in graphs]
    assert len(set(known)) == len(known)
    for graph in graphs:
        for node in nodes_of(graph).values():
            assert set(node.subgraphIds) <= set(known), node.id


def test_a_function_is_a_graph_with_inputs_weights_and_outputs() -> None:
    (graph,) = graphs_of(MODEL)
    nodes = nodes_of(graph)
    assert graph.id == "model"
    assert list(nodes) == [
        "input:x",
        "weight:encoder.0.dense.weight",
        "scores",
        "head/scaled",
        "output:logits",
    ]
    assert [e.sourceNodeId for e in nodes["scores"].incomingEdges] == [
        "input:x",
        "weight:encoder.0.dense.weight",
    ]
    assert nodes["scores"].attribute("op") == "ttir.matmul"
    assert [n.attribute("kind") for n in nodes.values()] == [
        "input",
        "weight",
        None,
        None,
        "output",
    ]
    assert outputs(nodes["scores"])["tensor_shape"] == "tensor<512x512xbf16>"
    assert nodes["output:logits"].incomingEdges[0].sourceNodeId == "head/scaled"
    assert nodes["scores"].inputsMetadata[0].attrs[0].key == "__tensor_tag"


def test_layers_of_weights_and_locations_are_namespaces() -> None:
    nodes = nodes_of(graphs_of(MODEL)[0])
    assert nodes["scores"].namespace == "encoder/0/dense"
    assert nodes["weight:encoder.0.dense.weight"].namespace == "encoder/0/dense"
    assert nodes["head/scaled"].namespace == "head"
    assert nodes["input:x"].namespace == ""


def test_what_says_nothing_belongs_to_the_layer_that_its_operands_share() -> None:
    (graph,) = source_graphs(Source.read(str(ROOT / "examples/transformer/transformer.mlir")))
    nodes = nodes_of(graph)
    assert len(nodes) == 39
    assert nodes["attention_query"].namespace == "attention/query"
    assert nodes["scores"].namespace == "attention"
    assert nodes["softmax"].namespace == "attention"
    assert nodes["block_output"].namespace == ""


def test_constants_are_summed_up() -> None:
    values = ", ".join(str(float(n)) for n in range(64))
    (graph,) = graphs_of(f"""\
func.func @f() -> (tensor<64xf32>, tensor<2xi32>, tensor<1000x1000x1000xf32>) {{
  %a = "ttir.constant"() <{{value = dense<[{values}]> : tensor<64xf32>}}> : () -> tensor<64xf32>
  %b = "ttir.constant"() <{{value = dense<[3, -4]> : tensor<2xi32>}}> : () -> tensor<2xi32>
  %c = "ttir.constant"() <{{value = dense<1.5> : tensor<1000x1000x1000xf32>}}>
    : () -> tensor<1000x1000x1000xf32>
  return %a, %b, %c : tensor<64xf32>, tensor<2xi32>, tensor<1000x1000x1000xf32>
}}
""")
    reported = {name: node.attribute("value") or "" for name, node in nodes_of(graph).items()}
    assert reported["a"].startswith("64 elements [0, 1, 2,")
    assert reported["a"].endswith("…], least 0, greatest 63, mean 31.5")
    assert reported["b"] == "[3, -4]"
    assert reported["c"] == "1000000000 times 1.5"


def test_the_layouts_of_the_optimizer_are_attributes() -> None:
    overrides = {"model": {"scores": {"sharding": "block_sharded", "grid": [4, 4]}}}
    given = json.dumps({"version": 1, "functions": overrides})
    options = CompileOptions("model", optimize=2, overrides=given)
    _, recorder = compile_stages(Source("model.mlir", MODEL), options)
    assert list(recorder.stages) == ["TTNN", "optimized", "lowered", "EmitC"]
    check_links(recorder.graphs())
    graph = next(g for g in recorder.stages["optimized"] if g.id == "optimized: model")
    reported = outputs(nodes_of(graph)["scores"])
    wanted = {"memory": "l1", "sharding": "block_sharded", "grid": "4x4", "shard": "128x128"}
    assert reported.items() >= {**wanted, "data_type": "bf16", "layout": "tile"}.items()


def test_the_same_op_has_the_same_node_in_all_stages() -> None:
    _, recorder = compile_stages(Source("model.mlir", MODEL), OPTIONS)
    for stage in ("TTNN", "optimized", "lowered"):
        nodes = nodes_of(next(g for g in recorder.stages[stage] if g.id == f"{stage}: model"))
        assert nodes["scores"].label == "matmul", stage
        assert nodes["scores"].namespace == "encoder/0/dense", stage


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_the_cpp_is_in_the_layers_of_the_ops_that_it_was_made_for(
    tmp_path: Path, target: str
) -> None:
    options = CompileOptions("model", target)
    module = tmp_path / "model.mlir"
    module.write_text(MODEL)
    graphs = model_graphs(module, options, stages=True)
    graph = next(g for g in graphs if g.id == "EmitC: src/model.cpp:model")
    # The device program of the product scales it, too: it is a call in the layer of the product.
    layers = {"", "encoder/0/dense", *(["head"] if target == "ttnn" else [])}
    assert {node.namespace for node in graph.nodes} == layers
    dense = [node for node in graph.nodes if node.namespace == "encoder/0/dense"]
    made_of = {name for node in dense if (name := node.attribute("made of")) is not None}
    assert made_of == ({"scores"} if target == "ttnn" else {"scores, head/scaled"})


def test_regions_are_graphs_of_their_own() -> None:
    graphs = graphs_of("""\
func.func @sum(%n: index, %x: f32) -> f32 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %total = scf.for %i = %zero to %n step %one iter_args(%sum = %x) -> (f32) {
    %next = arith.addf %sum, %x : f32
    scf.yield %next : f32
  }
  return %total : f32
}
""")
    check_links(graphs)
    assert [graph.id for graph in graphs] == ["sum", "sum/total"]
    assert nodes_of(graphs[0])["total"].subgraphIds == ["sum/total"]
    inner = nodes_of(graphs[1])
    assert [e.sourceNodeId for e in inner["next"].incomingEdges] == ["input:sum", "outer:x"]


def test_calls_lead_to_the_graph_of_what_they_call() -> None:
    graphs = graphs_of("""\
func.func private @inner(%x: tensor<32xf32>) -> tensor<32xf32> {
  %y = "ttir.exp"(%x) : (tensor<32xf32>) -> tensor<32xf32>
  return %y : tensor<32xf32>
}
func.func @outer(%x: tensor<32xf32>) -> tensor<32xf32> {
  %y = call @inner(%x) : (tensor<32xf32>) -> tensor<32xf32>
  return %y : tensor<32xf32>
}
""")
    check_links(graphs)
    calls = [n for n in graphs[1].nodes if n.label == "call"]
    assert calls[0].subgraphIds == ["inner"]


def test_the_first_graph_is_that_of_a_function_that_no_other_calls() -> None:
    text = """
    func.func private @inner(%x: tensor<32x32xbf16>) -> tensor<32x32xbf16> {
      %y = "ttir.exp"(%x) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
      return %y : tensor<32x32xbf16>
    }
    func.func @main(%x: tensor<32x32xbf16>) -> tensor<32x32xbf16> {
      %y = func.call @inner(%x) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
      return %y : tensor<32x32xbf16>
    }"""
    assert [graph.id for graph in source_graphs(Source("model.mlir", text))] == ["main", "inner"]


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_projects_and_flatbuffers_have_graphs(target: str, tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    model.write_text(MODEL)
    out = tmp_path / "out"
    assert main([str(model), "-o", str(out), "--target", target, "-q"]) == 0
    graphs = model_graphs(out, OPTIONS)
    check_links(graphs)
    # Not a function that computes constants, or says what a program computes.
    assert graphs[0].id == "model"
    file = out / ("model.ttnn" if target == "ttnn" else "model.ttm")
    assert [g.id for g in model_graphs(file, OPTIONS)] == [g.id for g in graphs]
    nodes = nodes_of(next(graph for graph in graphs if graph.id == "model"))
    assert "weight:encoder.0.dense.weight" in nodes
    source = out / "src" / "model.cpp"
    source.write_text(source.read_text() + "// mine\n")
    (graph, *_) = model_graphs(out, OPTIONS)
    assert graph.groupNodeAttributes is not None
    assert graph.groupNodeAttributes[""]["edited_files"] == "src/model.cpp"


def test_a_device_program_is_a_graph_of_kernels_and_buffers(tmp_path: Path) -> None:
    options = CompileOptions("model", "ttmetal")
    compiled, recorder = compile_stages(Source("model.mlir", MODEL), options)
    for graphs in (recorder.stages["TTMetal"], flatbuffer_graphs(compiled.flatbuffer)):
        check_links(graphs)
        model = next(graph for graph in graphs if graph.id.endswith("model"))
        (launch,) = [node for node in model.nodes if node.label == "run_program"]
        program = next(graph for graph in graphs if graph.id in launch.subgraphIds)
        nodes = nodes_of(program)
        kinds = {node.attribute("kind") for node in nodes.values()}
        assert kinds == {"kernel", "circular buffer"}
        # Readers fill what the compute kernel takes its operands from.
        compute = next(n for n in nodes.values() if n.attribute("processor") == "compute")
        taken = {edge.sourceNodeId for edge in compute.incomingEdges}
        assert {"cb_left", "cb_right"} <= taken
        readers = {edge.sourceNodeId for edge in nodes["cb_left"].incomingEdges}
        assert any(nodes[reader].attribute("processor") == "reader" for reader in readers)
        # What is returned comes from the program, not from the buffer it wrote to.
        assert any(e.sourceNodeId == launch.id for n in model.nodes for e in n.incomingEdges)


def test_kernels_that_programs_share_have_edges_to_the_buffers_of_each() -> None:
    text = """\
func.func @main(%x: tensor<64x96xbf16>, %y: tensor<512x512xbf16>)
    -> (tensor<64x96xbf16>, tensor<512x512xbf16>) {
  %0 = "ttir.exp"(%x) : (tensor<64x96xbf16>) -> tensor<64x96xbf16>
  %1 = "ttir.sin"(%y) : (tensor<512x512xbf16>) -> tensor<512x512xbf16>
  return %0, %1 : tensor<64x96xbf16>, tensor<512x512xbf16>
}
"""
    options = CompileOptions("model", "ttmetal")
    compiled, recorder = compile_stages(Source("model.mlir", text), options)
    shown = [graph for graph in recorder.stages["TTMetal"] if "program " in graph.id]
    assert all("kernel:read_tiles" in nodes_of(graph) for graph in shown)
    graphs = flatbuffer_graphs(compiled.flatbuffer)
    programs = [graph for graph in graphs if graph.id.startswith("program ")]
    assert len(programs) == len(shown) == 2
    for program in programs:
        nodes = nodes_of(program)
        assert "kernel:read_tiles" in nodes
        buffers = [node for node in nodes.values() if node.id.startswith("cb_")]
        assert len(buffers) == 2
        assert all(len(node.incomingEdges) == 1 for node in buffers)


def test_other_front_ends_are_read() -> None:
    text = """\
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.exponential %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
"""
    (graph,) = source_graphs(Source("model.mlir", text))
    assert [n.attribute("op") for n in graph.nodes if n.attribute("op")] == ["ttir.exp"]


def test_a_model_that_does_not_compile_is_shown_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(MODEL.replace('"ttir.exp"', '"ttir.no_such_op"'))
    (graph,) = model_graphs(path, OPTIONS)
    assert graph.groupNodeAttributes is not None
    assert "ttir.no_such_op" in graph.groupNodeAttributes[""]["compile_error"]


@pytest.mark.parametrize("text", ["", "module {}", "func.func @f("])
def test_what_is_no_model_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(text)
    with pytest.raises(CompileError):
        model_graphs(path, OPTIONS)


def test_the_json_is_that_of_model_explorer() -> None:
    (graph,) = graphs_of(MODEL)
    content = to_json(graph)
    json.dumps(content)
    stock = pytest.importorskip("model_explorer.graph_builder", reason="needs the extra explorer")
    fields = set(asdict(stock.GraphNode("id", "label")))
    for node in content["nodes"]:
        assert node.keys() <= fields
    assert content.keys() <= asdict(stock.Graph("id")).keys()


def chain(ops: int) -> str:
    lines = [
        f'  %v{n + 1} = "ttir.add"(%v{n}, %v{max(n - 1, 0)}) : '
        "(tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>"
        for n in range(ops)
    ]
    body = "\n".join(lines)
    head = "func.func @f(%v0: tensor<32x32xf32>) -> tensor<32x32xf32> {"
    return f"{head}\n{body}\n  return %v{ops} : tensor<32x32xf32>\n}}\n"


def calls(text: str) -> int:
    """Calls of Python functions that the graph of a module takes."""
    import sys

    operations = parse_operations(Source("model.mlir", text), Diagnostics())
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        module_graphs(operations)
    finally:
        sys.setprofile(None)
    return count


def test_the_work_is_linear_in_the_ops() -> None:
    few, many = calls(chain(250)), calls(chain(1000))
    assert many < 5 * few
    # 5,000 ops in five seconds, at more than a microsecond for each call.
    assert many / 1000 < 400


def test_calls_of_the_cpp_are_labelled_by_what_they_call(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(MODEL)
    graphs = {graph.id: graph for graph in model_graphs(path, OPTIONS)}
    labels = {node.label for node in graphs["EmitC: src/model.cpp:model"].nodes}
    assert "ttnn::exp" in labels
    assert labels.isdisjoint({"call", "call_opaque"})
