"""Models on meshes of chips compute what they compute on one."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import numpy as np
import pytest

from tests.examples.mesh_models import LLAMA_1B, Mesh, llama_layer, residual_blocks
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.interpreter import Interpreter

MODELS = {
    "llama": (llama_layer, [(1, 2), (2, 4), (8, 4)]),
    "resnet": (residual_blocks, [(1, 8)]),
}
CASES = [(name, mesh) for name, (_, meshes) in MODELS.items() for mesh in meshes]


def outputs(text: str) -> np.ndarray:
    """The output of the lowered program for drawn inputs, which depend on their shapes alone."""
    compiled = compile_module(Source("in.mlir", text), CompileOptions("m"))
    binary = read_ttnn(compiled.flatbuffer)
    program = binary.program("main")
    generator = np.random.default_rng(0)
    inputs: list[np.ndarray] = []
    for entry in program.inputs:
        shape = program.tensors[entry.tensor].type.placement.shape
        scale = 1.0 if entry.name == "x" else shape[0] ** -0.5
        inputs.append((scale * generator.standard_normal(shape)).astype(np.float32))
    (result,) = Interpreter(binary).run("main", inputs)
    return np.asarray(result, dtype=np.float64)


@pytest.mark.parametrize(("name", "mesh"), CASES)
def test_a_mesh_computes_what_one_chip_computes(name: str, mesh: Mesh) -> None:
    model = MODELS[name][0]
    one, several = outputs(model()), outputs(model(mesh))
    assert np.corrcoef(one.ravel(), several.ravel())[0, 1] > 0.9999
    assert np.abs(one - several).max() < 0.02 * np.ptp(one)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mesh"), CASES)
def test_the_project_computes_it_too(
    name: str, mesh: Mesh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, report = tmp_path / "model.mlir", tmp_path / "fabric.json"
    source.write_text(MODELS[name][0](mesh), encoding="utf-8")
    monkeypatch.setenv("TTCODEGEN_FABRIC_REPORT", str(report))
    assert main([str(source), "-o", str(tmp_path / "out"), "--check", "-q"]) == 0
    assert json.loads((tmp_path / "out" / "check.json").read_text())["passed"]
    links = json.loads(report.read_text())["links"]
    # Two sums of a layer over each row of chips: every device sends to its neighbours.
    columns = mesh[1]
    busy = {(link["from"], link["to"]) for link in links if link["bytes"]}
    neighbours = {
        (chip, chip + step)
        for chip in range(mesh[0] * columns)
        for step in (-1, 1)
        if 0 <= chip % columns + step < columns
    }
    assert busy == (neighbours if name == "llama" else set())


@pytest.mark.slow
@pytest.mark.parametrize("mesh", [(1, 2), (2, 4), (8, 4)])
def test_a_layer_of_real_size_computes_what_one_chip_computes(mesh: Mesh, tmp_path: Path) -> None:
    source, out = tmp_path / "layer.mlir", tmp_path / "out"
    source.write_text(llama_layer(sizes=LLAMA_1B, declared=mesh), encoding="utf-8")
    assert main([str(source), "-o", str(out), "--check", "-q"]) == 0
    assert json.loads((out / "check.json").read_text())["passed"]
    estimate = json.loads((out / "manifest.json").read_text())["functions"][0]["estimate"]
    assert estimate["link_us"] < estimate["overlapped_us"] < estimate["time_us"]
    # A workstation has memory for it: the largest of the processes, in KiB.
    used = max(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    assert used < 16 << 20
