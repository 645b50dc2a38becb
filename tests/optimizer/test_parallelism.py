"""The choice of shardings for modules that say none."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from tests.examples.mesh_models import (
    LLAMA_1B,
    LlamaSizes,
    llama_layer,
    mixture_of_experts,
    perceptron,
    residual_blocks,
    residual_perceptrons,
    without_mesh,
)
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.ttcore.device import MeshShape
from ttcodegen.flatbuffer.system import load_system
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.frontends import source_module
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import Step, passes_of

COLLECTIVES = ("all_gather", "all_reduce", "reduce_scatter", "mesh_partition")
LLAMA = without_mesh(llama_layer())
CNN = without_mesh(residual_blocks())
EXPERTS = without_mesh(mixture_of_experts())
MLP = without_mesh(perceptron())


def divided(text: str, parallel: str, mesh: MeshShape = (2, 4)) -> Counter[str]:
    """The collectives of a module that is divided; it computes what it did on one device."""
    module = source_module(Source("in.mlir", text), Diagnostics(), mesh)
    (function,) = [op for op in module.ops if isinstance(op, FuncOp)]
    name = function.sym_name.data
    generator = np.random.default_rng(0)
    inputs = [
        generator.standard_normal(shape_of(type_)).astype(np.float32) / 8
        for type_ in function.function_type.inputs
    ]
    expected = Golden(module).run(name, [array.copy() for array in inputs])
    steps = passes_of(Step("ttir-choose-shardings", {"parallel": parallel}), "ttir-partition")
    PassRunner(load_dialects()).run(module, steps)
    found = Golden(module).run(name, inputs)
    for one, several in zip(expected, found, strict=True):
        np.testing.assert_allclose(several, one, rtol=1e-3, atol=1e-4)
    counted = Counter(op.name.partition(".")[2] for op in module.walk())
    assert counted["mesh_shard"]
    return Counter({each: counted[each] for each in COLLECTIVES if counted[each]})


def compiled(text: str, parallel: str, mesh: MeshShape = (2, 4), **options: Any) -> CompiledModule:
    given = CompileOptions("m", mesh=mesh, parallel=parallel, **options)
    return compile_module(Source("m.mlir", text), given)


def shardings(text: str, parallel: str, mesh: MeshShape = (2, 4)) -> dict[str, list[list[int]]]:
    """The shardings of arguments that are chosen."""
    (table,) = json.loads(compiled(text, parallel, mesh).decisions)["shardings"].values()
    return table


def test_a_layer_is_divided_as_megatron_divides_it() -> None:
    """Projections of queries, keys, values and hidden units by columns, those after them by rows:
    one sum for each half of the layer."""
    assert shardings(LLAMA, "data=0,tensor=1") == {
        "x": [[0], [], []],
        **{name: [[], [1]] for name in ("wq", "wk", "wv", "wgate", "wup")},
        **{name: [[1], []] for name in ("wo", "wdown")},
    }
    assert divided(LLAMA, "data=0,tensor=1") == {"all_reduce": 2}


def test_experts_may_have_the_same_tokens() -> None:
    """The left factor of a matmul has no batch then."""
    text = """func.func @main(%x: tensor<32x64xf32>, %w: tensor<8x64x96xf32>) -> tensor<32x96xf32> {
      %0 = "ttir.matmul"(%x, %w) : (tensor<32x64xf32>, tensor<8x64x96xf32>) -> tensor<8x32x96xf32>
      %1 = "ttir.sum"(%0) <{dim_arg = [0 : i32], keep_dim = false}> : (tensor<8x32x96xf32>) -> tensor<32x96xf32>
      return %1 : tensor<32x96xf32>
    }"""  # noqa: E501
    assert shardings(text, "expert=1") == {"w": [[1], [], []]}
    assert divided(text, "expert=1") == {"all_reduce": 1}


@pytest.mark.parametrize(
    ("given", "collectives"),
    [("is_causal = false", {"all_gather": 2}), ("is_causal = true", {"all_gather": 3})],
)
def test_sequences_of_queries_are_apart(given: str, collectives: dict[str, int]) -> None:
    """Keys and values are gathered; queries too where their positions say which keys they see."""
    type_ = "tensor<1x1x64x32xf32>"
    scaled = "\n".join(
        f'%{name} = "ttir.relu"(%x) : ({type_}) -> {type_}' for name in ("q", "k", "v")
    )
    text = f"""func.func @main(%x: {type_}) -> {type_} {{
      {scaled}
      %0 = "ttir.scaled_dot_product_attention"(%q, %k, %v) <{{{given}, scale = 0.125 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}}> : ({type_}, {type_}, {type_}) -> {type_}
      return %0 : {type_}
    }}"""  # noqa: E501
    assert divided(text, "sequence=1") == collectives


def test_a_named_system_has_a_mesh() -> None:
    made = compiled(LLAMA, "data=0,tensor=1", (1, 1), system=load_system("t3000"))
    assert made.description.mesh == (2, 4)


def test_features_that_all_layers_share_stay_whole() -> None:
    """They save more than the hidden units of one layer, less than those of all."""
    text = without_mesh(residual_perceptrons(3))
    assert shardings(text, "tensor=1") == {
        name: axes
        for layer in range(3)
        for name, axes in ((f"up{layer}", [[], [1]]), (f"down{layer}", [[1], []]))
    }


@pytest.mark.parametrize(
    ("text", "parallel", "collectives"),
    [
        (MLP, "data=0", {}),
        # Biases after the sums.
        (MLP, "tensor=1", {"all_reduce": 1}),
        (MLP, "tensor=0,tensor=1", {"all_reduce": 2}),
        (MLP, "data=0,data=1", {}),
        (LLAMA, "data=1", {}),
        (LLAMA, "tensor=1", {"all_reduce": 2}),
        (LLAMA, "tensor=0,tensor=1", {"all_reduce": 4}),
        (CNN, "data=1", {}),
        (CNN, "data=0,data=1", {}),
        (EXPERTS, "data=0,expert=1", {"all_reduce": 1, "mesh_partition": 1}),
        (EXPERTS, "expert=0,tensor=1", None),
        (EXPERTS, "expert=1,tensor=1", None),
        (LLAMA, "sequence=0,tensor=1", None),
        (LLAMA, "data=0,sequence=1", None),
    ],
)
def test_a_divided_module_computes_the_same(
    text: str, parallel: str, collectives: dict[str, int] | None
) -> None:
    found = divided(text, parallel)
    if collectives is not None:
        assert found == collectives


def chosen(text: str, mesh: MeshShape = (2, 4), **options: Any) -> str:
    """The parallelism that is chosen, by the table that explains it."""
    table = compiled(text, "auto", mesh, **options).explanation.splitlines()
    assert len(table) > 3
    (row,) = [line for line in table if line.endswith("chosen")]
    return row.split()[0]


WIDE = LlamaSizes(batch=1, steps=64, width=1024, heads=16, hidden=4096, dtype="bf16")


@pytest.mark.parametrize(
    ("text", "mesh", "expected"),
    [
        (llama_layer(sizes=WIDE), (1, 4), "tensor=1"),
        (llama_layer(sizes=replace(LLAMA_1B, batch=1, steps=128)), (1, 8), "tensor=1"),
        (residual_blocks(channels=64, batch=32), (1, 8), "data=1"),
        (mixture_of_experts(32, 1024, 2048, 16, "bf16"), (1, 8), "expert=1"),
    ],
)
def test_the_choice_is_that_of_the_field(text: str, mesh: MeshShape, expected: str) -> None:
    assert chosen(without_mesh(text), mesh) == expected


def test_both_axes_divide_a_layer() -> None:
    found = chosen(without_mesh(llama_layer(sizes=LLAMA_1B)))
    assert sorted(each[:-2] for each in found.split(",")) == ["data", "tensor"]


def test_weights_that_do_not_fit_are_divided() -> None:
    """16 GiB of weights, and rows that divide among all devices."""
    text = without_mesh(perceptron(4096, 32768, 131072, "bf16"))
    table = compiled(text, "auto", (1, 4)).explanation
    assert "does not fit" in table
    assert "tensor=1" in next(line for line in table.splitlines() if line.endswith("chosen"))
    # With tensor=0,data=1 what is computed once of the weights would not fit.
    assert chosen(text) == "data=0,tensor=1"


@pytest.mark.parametrize(
    ("parallel", "message"),
    [
        ("pipeline=0", "there is no parallelism 'pipeline'"),
        ("tensr=0", "did you mean tensor"),
        ("data=2", "the mesh 2x4 has no axis 2"),
        ("data", "is no kind of parallelism with an axis"),
        ("data=0,data=0", "has data=0 twice"),
        ("expert=1", "expert=1 divides nothing: no matmul has a batch of weights"),
    ],
)
def test_impossible_parallelism_is_refused(parallel: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        compiled(MLP, parallel)


def test_a_batch_that_does_not_divide_is_refused() -> None:
    with pytest.raises(CompileError, match="the 7 elements of dimension 0 of 'x' do not divide"):
        compiled(without_mesh(perceptron(7)), "data=0")


def test_an_axis_of_one_device_is_refused() -> None:
    with pytest.raises(CompileError, match="has one device along axis 0"):
        compiled(MLP, "data=0", (1, 8))


def test_a_module_that_says_its_shardings_is_refused() -> None:
    text = llama_layer(declared=(2, 4))
    with pytest.raises(CompileError, match="says how its tensors are divided"):
        compiled(text, "auto", (1, 1))


def test_modules_of_the_library_are_refused() -> None:
    text = """func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
      %0 = "ttnn.relu"(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32>
      return %0 : tensor<64x64xf32>
    }"""
    given = json.dumps({"version": 1, "functions": {}, "shardings": {"main": {"x": [[1], []]}}})
    for options in ({"parallel": "auto"}, {"parallel": "", "overrides": given}):
        with pytest.raises(CompileError, match="no shardings are left to choose"):
            compiled(text, **options)


def test_one_device_is_refused() -> None:
    with pytest.raises(CompileError, match="there is one device"):
        compiled(MLP, "auto", (1, 1))


def warnings(parallel: str) -> list[str]:
    diagnostics = Diagnostics()
    options = CompileOptions("m", mesh=(2, 4), parallel=parallel)
    compile_module(Source("m.mlir", MLP), options, diagnostics=diagnostics)
    return [each.render() for each in diagnostics.diagnostics]


def test_a_module_that_says_no_shardings_is_warned_of() -> None:
    (said,) = warnings("")
    assert "each of the 8 computes all of it" in said
    assert "--parallel auto" in said
    assert warnings("data=0") == []


def test_a_choice_that_divides_nothing_is_told() -> None:
    """Launches of programs take longer than what there is to compute."""
    (said,) = warnings("auto")
    assert "each of the 8 devices computes all of it" in said


def test_what_was_chosen_is_followed_again(tmp_path: Path) -> None:
    source, decided, out = tmp_path / "m.mlir", tmp_path / "d.json", tmp_path / "out"
    source.write_text(LLAMA)
    command = [str(source), "-o", str(out), "--no-format", "-q", "--mesh-shape", "2x4"]
    for level in ([], ["--optimize", "1"]):
        given = ["--parallel", "data=0,tensor=1", "--write-overrides", str(decided), *level]
        assert main([*command, *given, "--force"]) == 0
        text = (out / "src" / "m.cpp").read_text()
        assert "all_reduce" in text
        assert main([*command, "--overrides", str(decided), "--force"]) == 0
        assert (out / "src" / "m.cpp").read_text() == text


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"main": {"x": [[0]]}}, "lists 1 dimensions"),
        ({"main": {"y": [[0], []]}}, "has no argument 'y'"),
        ({"man": {}}, "there is no function 'man'"),
        ({"main": {"x": [[2], []]}}, "the sharding of 'x' in 'main' is"),
        ({"main": {"x": [[0], [0]]}}, "divides along an axis twice"),
        ({"main": {"x": 3}}, "the sharding of 'x' in 'main' is"),
        ({"main": {"b0": [[0, 1]], "x": [[0, 1], []]}}, ""),
        ([], "no table of functions"),
    ],
)
def test_shardings_of_overrides_are_checked(table: Any, message: str) -> None:
    given = json.dumps({"version": 1, "level": 0, "functions": {}, "shardings": table})
    if not message:
        assert compiled(MLP, "", overrides=given).explanation
        return
    with pytest.raises(CompileError, match=message):
        compiled(MLP, "", overrides=given)


def test_programs_of_the_device_are_divided() -> None:
    made = compiled(MLP, "tensor=1", (1, 2), target="ttmetal")
    assert made.description.mesh == (1, 2)
    assert made.description.exchanges


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "parallel"), [(LLAMA, "data=0,tensor=1"), (EXPERTS, "expert=1"), (CNN, "data=1")]
)
def test_the_cxx_of_a_divided_module_agrees(text: str, parallel: str, tmp_path: Path) -> None:
    source = tmp_path / "m.mlir"
    source.write_text(text)
    command = [str(source), "-o", str(tmp_path / "out"), "--check", "-q"]
    assert main([*command, "--mesh-shape", "2x4", "--parallel", parallel]) == 0
