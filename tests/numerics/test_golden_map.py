"""Golden values from a map of the user's own are in the file, and a run compares with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ttcodegen.cli.rt import main as rt
from ttcodegen.cli.translate import main as translate
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.numerics.golden_values import embed_golden_map
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.parsing import parse_module
from ttcodegen.rt import API
from ttcodegen.transforms.module_text import module_text
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import Step, passes_of
from ttcodegen.translation import ttnn_to_flatbuffer

MODEL = """
func.func @f(%x: tensor<32x64xf32> {ttir.name = "x"}) -> (tensor<32x64xf32> {ttir.name = "y"}) {
  %0 = "ttir.abs"(%x) : (tensor<32x64xf32>) -> tensor<32x64xf32> loc("size")
  %1 = "ttir.neg"(%0) : (tensor<32x64xf32>) -> tensor<32x64xf32> loc("turned")
  return %1 : tensor<32x64xf32>
}
"""


@pytest.fixture(scope="module")
def lowered() -> str:
    """The module, as TTNN."""
    module = parse_module(Source("in.mlir", MODEL))
    PassRunner(load_dialects()).run(module, passes_of(Step("ttir-to-ttnn-backend-pipeline")))
    return module_text(module, locations=True)


def goldens() -> dict[str, np.ndarray]:
    x = np.linspace(-3, 5, 32 * 64).reshape(32, 64)
    return {"input_0": x, "size": abs(x), "y": -abs(x)}


def write(folder: Path, values: dict[str, np.ndarray]) -> None:
    folder.mkdir()
    for key, value in values.items():
        np.save(folder / f"{key}.npy", value)


@pytest.mark.parametrize(("wrong", "status"), [(None, 0), ("y", 4), ("size", 0)])
def test_a_run_compares_with_them(
    lowered: str, tmp_path: Path, wrong: str | None, status: int
) -> None:
    values = goldens()
    if wrong is not None:
        values[wrong] = np.cos(17 * values[wrong])
    write(tmp_path / "goldens", values)
    (tmp_path / "t.mlir").write_text(lowered)
    made = tmp_path / "t.ttnn"
    arguments = ["--ttnn-to-flatbuffer", str(tmp_path / "t.mlir"), "-o", str(made)]
    assert translate([*arguments, "--goldens", str(tmp_path / "goldens")]) == 0
    code, results = API.Run(args={"binary": made, "--quiet": True})()
    (program,) = results["results"][0]["programs"]
    assert (code, program["golden"], program["inputs"]) == (status, "embedded", "golden")
    drifting = [op["location"] for op in program["drifting_ops"]]
    assert drifting == ([] if wrong is None else ["turned" if wrong == "y" else "size"])
    assert rt(["run", str(made), "--disable-golden", "--quiet"]) == 0


def test_keys_that_mean_nothing_are_refused(lowered: str) -> None:
    made = ttnn_to_flatbuffer(Source("t.mlir", lowered)).whole
    assert isinstance(made, bytes)
    with pytest.raises(CompileError, match="location 'sise'; did you mean size"):
        embed_golden_map(made, {"sise": np.zeros((32, 64))})
    with pytest.raises(CompileError, match=r"shape \(64, 32\), what it is for \(32, 64\)"):
        embed_golden_map(made, {"y": np.zeros((64, 32))})
