"""Functions in stages: what each stage has, and programs that compute what one device computes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions
from ttcodegen.dialects.operations.verification import verify_module
from ttcodegen.flatbuffer.system import load_system
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.frontends import source_module
from ttcodegen.numerics.drawing import draw_inputs
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.optimizer.parallelism import Stages, divide_into_stages
from ttcodegen.project.processes import MPI_ENVIRONMENT
from ttcodegen.project.sources import project_files
from ttcodegen.staged_compilation import compile_stages
from ttcodegen.systems.cards import default_system
from ttcodegen.transforms.mesh.stages import Origin
from ttcodegen.transforms.rewriting import functions

PARAMETER = "{ttcore.argument_type = #ttcore.argument_type<parameter>}"


def layers(count: int, rows: int = 64, width: int = 64) -> str:
    """Layers that all add the input of the function, so that it goes to each stage."""
    square, tensor = f"tensor<{width}x{width}xbf16>", f"tensor<{rows}x{width}xbf16>"
    weights = ", ".join(f"%w{i}: {square} {PARAMETER}" for i in range(count))
    lines = [f"func.func @forward(%x: {tensor}, {weights}) -> ({tensor}, {tensor}) {{"]
    value = "%x"
    for i in range(count):
        # A product of weights is computed once, by the stages that take it.
        lines += [
            f'  %s{i} = "ttir.multiply"(%w{i}, %w0) : ({square}, {square}) -> {square}',
            f'  %p{i} = "ttir.matmul"({value}, %s{i}) : ({tensor}, {square}) -> {tensor}',
            f'  %t{i} = "ttir.tanh"(%p{i}) : ({tensor}) -> {tensor}',
            f'  %layer{i} = "ttir.add"(%t{i}, %x) : ({tensor}, {tensor}) -> {tensor}',
        ]
        value = f"%layer{i}"
    return "\n".join([*lines, f"  return {value}, %layer0 : {tensor}, {tensor}", "}"])


CACHE = f"""
func.func @step(%cache: tensor<1x2x64x32xbf16> {{ttir.kv_cache}}, %x: tensor<1x2x32x32xbf16>,
    %w: tensor<32x32xbf16> {PARAMETER}) -> (tensor<1x2x64x32xbf16>, tensor<1x2x32x32xbf16>) {{
  %0 = "ttir.tanh"(%x) : (tensor<1x2x32x32xbf16>) -> tensor<1x2x32x32xbf16>
  %1 = "ttir.fill_cache"(%cache, %0) <{{batch_offset = 0 : i32}}>
      : (tensor<1x2x64x32xbf16>, tensor<1x2x32x32xbf16>) -> tensor<1x2x64x32xbf16>
  %2 = "ttir.matmul"(%0, %w)
      : (tensor<1x2x32x32xbf16>, tensor<32x32xbf16>) -> tensor<1x2x32x32xbf16>
  %3 = "ttir.exp"(%2) : (tensor<1x2x32x32xbf16>) -> tensor<1x2x32x32xbf16>
  return %1, %3 : tensor<1x2x64x32xbf16>, tensor<1x2x32x32xbf16>
}}
"""


def divided(text: str, wanted: str, micro_batches: int = 1) -> tuple[Any, Stages]:
    module = source_module(Source("m.mlir", text))
    chip = default_system("wormhole_b0").chip
    stages = divide_into_stages(load_dialects(), module, wanted, chip, micro_batches)
    verify_module(module)
    return module, stages


def computed(module: Any, stages: Stages, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of the only function, stage after stage."""
    (function,) = stages.functions
    golden = Golden(module)
    made: list[list[np.ndarray]] = []

    def value(origin: Origin) -> np.ndarray:
        return inputs[origin.index] if origin.is_argument else made[origin.stage][origin.index]

    for stage in function.stages:
        made.append(list(golden.run(stage.name, [value(each) for each in stage.arguments])))
    return [value(origin) for origin in function.results]


@pytest.mark.parametrize("wanted", ["2", "4", "layer0", "p1,t2"])
def test_stages_compute_what_the_function_computes(wanted: str) -> None:
    source = source_module(Source("m.mlir", layers(4)))
    (function,) = functions(source)
    inputs = list(draw_inputs(source, function, 0).values())
    expected = Golden(source).run("forward", inputs)
    found = computed(*divided(layers(4), wanted), inputs)
    for each, wanted_values in zip(found, expected, strict=True):
        np.testing.assert_array_equal(each, wanted_values)


def test_stages_take_as_long_as_each_other() -> None:
    _, stages = divided(layers(8, 256, 512), "4")
    times = list(stages.seconds.values())
    assert len(times) == 4
    assert max(times) < 1.2 * sum(times) / len(times)


def test_a_stage_has_the_weights_that_it_takes() -> None:
    _, stages = divided(layers(4), "layer1")
    (function,) = stages.functions
    first, second = (
        [origin.index for origin in stage.arguments if origin.is_argument]
        for stage in function.stages
    )
    # The input, the weight that all layers take, and those of its layers.
    assert first == [0, 1, 2]
    assert second == [0, 1, 3, 4]


def test_an_argument_that_is_written_stays_in_one_stage() -> None:
    _, stages = divided(CACHE, "2")
    (function,) = stages.functions
    takers = [stage for stage in function.stages if Origin(-1, 0) in stage.arguments]
    assert len(takers) == 1


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("1", "between 2 and 128 stages, not 1"),
        ("500", "between 2 and 128 stages, not 500"),
        ("40", "'forward' has 12 parts that can be stages, and 40 are wanted"),
        ("layer9", "no op of 'forward' is called 'layer9'"),
        ("layer1,layer0", "not in the order of the ops"),
        ("layer3", "no stage of 'forward' can end after 'layer3'"),
    ],
)
def test_stages_that_there_cannot_be_are_refused(wanted: str, message: str) -> None:
    with pytest.raises(CompileError, match=re.escape(message)):
        divided(layers(4), wanted)


def test_micro_batches_are_parts_of_the_batch() -> None:
    module, stages = divided(layers(2), "2", micro_batches=4)
    source = source_module(Source("m.mlir", layers(2)))
    inputs = list(draw_inputs(source, functions(source)[0], 0).values())
    expected = Golden(source).run("forward", inputs)
    parts = [
        computed(module, stages, [inputs[0][16 * part : 16 * part + 16], *inputs[1:]])
        for part in range(4)
    ]
    for index, whole in enumerate(expected):
        joined = np.concatenate([part[index] for part in parts])
        # BLAS may sum in another order where there are fewer rows.
        np.testing.assert_allclose(joined, whole, rtol=0, atol=2e-5)


SUM = """
func.func @total(%x: tensor<64x32xbf16>) -> tensor<1x32xbf16> {
  %0 = "ttir.exp"(%x) : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
  %1 = "ttir.sum"(%0) <{dim_arg = [0 : i32], keep_dim = true}>
      : (tensor<64x32xbf16>) -> tensor<1x32xbf16>
  return %1 : tensor<1x32xbf16>
}
"""


@pytest.mark.parametrize(
    ("text", "parts", "message"),
    [
        (SUM, 2, "micro-batches of 'total' depend on each other"),
        (layers(2), 3, "the 64 elements of dimension 0 of 'x' do not divide"),
    ],
)
def test_batches_that_do_not_divide_are_refused(text: str, parts: int, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        divided(text, "2", parts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "ttmetal"}, "there are none for --target ttmetal"),
        ({"trace": True}, "not captured in a trace"),
        ({"mesh": (1, 2)}, "each stage of a pipeline runs on one device"),
        ({"kind": "so"}, "which --kind so is not"),
        ({"hosts": (3, 1)}, "2 stages run on one host or on as many, not on 3"),
        (
            {"stages": "layer0,t1", "system": load_system("n300")},
            "3 stages need 3 devices, and the system has 2",
        ),
        ({"micro_batches": 0}, "1 to 128 parts, not 0"),
        ({"stages": "", "micro_batches": 2}, "give --stages"),
    ],
)
def test_options_that_a_pipeline_cannot_have(options: dict[str, Any], message: str) -> None:
    given = {"kind": "exe", "stages": "2", **options}
    with pytest.raises(CompileError, match=message):
        compile_stages(Source("m.mlir", layers(2)), CompileOptions("m", **given))


def test_a_project_describes_its_stages() -> None:
    options = CompileOptions("m", stages="layer0", hosts=(2, 1), kind="exe")
    compiled = compile_stages(Source("m.mlir", layers(2)), options)
    (pipeline,) = compiled.description.pipelines
    assert [stage.function.name for stage in pipeline.stages] == [
        "forward_stage0",
        "forward_stage1",
    ]
    assert [function.name for function in compiled.description.functions] == ["forward"]
    first, second = pipeline.stages
    assert (first.inputs, first.weights) == (((-1, 0),), (0,))
    assert (set(second.inputs), second.weights) == ({(-1, 0), (0, 0)}, (0, 1))
    assert pipeline.outputs == ((1, 0), (0, 0))
    # A stage reads the file of the weight of the whole function.
    (file,) = {
        compiled.description.weight_file(stage.function, stage.function.weights[0])
        for stage in pipeline.stages
    }
    assert file == "w0"
    files = project_files(compiled, formatted=False)
    descriptor = str(files["hosts/mesh_graph_descriptor.textproto"])
    assert descriptor.count("instances { mesh") == 2
    assert descriptor.count("connections {") == 1
    bindings = str(files["hosts/rank_bindings.yaml"])
    assert re.findall(r"mesh_id: (\d)", bindings) == ["0", "1"]
    assert re.findall(r"mesh_host_rank: (\d)", bindings) == ["0", "0"]


NEEDS_MPI = pytest.mark.skipif(
    not (shutil.which("mpirun") and shutil.which("mpicxx")), reason="MPI is not installed"
)


def outputs(out: Path, folder: Path, ranks: int) -> list[bytes]:
    command = ["mpirun", "-np", str(ranks)] if ranks > 1 else []
    subprocess.run(
        [*command, str(out / "build" / "m_main"), "--outputs", str(folder)],
        check=True,
        capture_output=True,
        timeout=120,
        env={**os.environ, **MPI_ENVIRONMENT},
    )
    return [path.read_bytes() for path in sorted(folder.rglob("*.npy"))]


@pytest.mark.slow
@NEEDS_MPI
def test_processes_of_a_pipeline_compute_what_one_computes(tmp_path: Path) -> None:
    module, out = tmp_path / "m.mlir", tmp_path / "out"
    module.write_text(layers(3))
    given = [str(module), "-o", str(out), "--stages", "3", "--micro-batches", "2"]
    assert main([*given, "--hosts", "3x1", "--check"]) == 0
    assert json.loads((out / "check.json").read_text())["passed"]
    one = outputs(out, tmp_path / "one", 1)
    assert len(one) == 2
    assert outputs(out, tmp_path / "three", 3) == one

    wrong = subprocess.run(
        ["mpirun", "-np", "2", str(out / "build" / "m_main")],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **MPI_ENVIRONMENT},
    )
    assert wrong.returncode != 0
    assert wrong.stderr.count("error: ") == 1
    assert "it runs as one process or as 3, not as 2" in wrong.stderr
