"""`--check --golden DIR`: what a framework computed, from a folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ttcodegen.cli.ttcodegen import main

SOURCE = """
func.func @forward(%x: tensor<4x8xf32> {ttir.name = "x"},
                   %w: tensor<8x8xf32> {ttir.name = "layer.weight",
                        ttcore.argument_type = #ttcore.argument_type<parameter>})
    -> (tensor<4x8xf32> {ttir.name = "y"}) {
  %0 = "ttir.matmul"(%x, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
"""

Change = Callable[[Path], object]


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """A folder with arguments and the result of the module, from numpy."""
    folder = tmp_path / "golden"
    for name in ("inputs", "outputs"):
        (folder / name).mkdir(parents=True)
    generator = np.random.default_rng(7)
    x, w = (generator.normal(size=shape).astype(np.float32) for shape in ((4, 8), (8, 8)))
    np.save(folder / "inputs" / "x.npy", x)
    np.save(folder / "inputs" / "layer_weight.npy", w)
    np.save(folder / "outputs" / "y.npy", x @ w)
    return folder


def check(golden: Path) -> int:
    """The status of the command."""
    source = golden.parent / "product.mlir"
    source.write_text(SOURCE)
    out = golden.parent / "out"
    return main([str(source), "-o", str(out), "--check", "--golden", str(golden)])


REFUSALS: dict[str, tuple[Change, str, str]] = {
    "no folder": (lambda d: d.rename(d.parent / "moved"), "golden' is no folder", "inputs/ and"),
    "no outputs": (
        lambda d: (d / "outputs/y.npy").unlink(),
        "golden' holds no outputs",
        "golden/outputs/NAME.npy",
    ),
    "an input is missing": (
        lambda d: (d / "inputs/x.npy").unlink(),
        "golden/inputs' lacks x.npy",
        "inputs that the framework was given",
    ),
    "a weight is missing": (
        lambda d: (d / "inputs/layer_weight.npy").unlink(),
        "golden/inputs' lacks layer_weight.npy",
        "inputs that the framework was given",
    ),
    "another name": (
        lambda d: (d / "outputs/y.npy").rename(d / "outputs/z.npy"),
        "golden/outputs/z.npy' is of no tensor of the module",
        "they are called y",
    ),
    "another shape": (
        lambda d: np.save(d / "outputs/y.npy", np.zeros((8, 4), np.float32)),
        "golden/outputs/y.npy': expected the shape (4, 8), found (8, 4)",
        "",
    ),
    "an empty file": (
        lambda d: (d / "inputs/x.npy").write_bytes(b""),
        "golden/inputs/x.npy' is no .npy file, or damaged: EOF",
        "expected 8 bytes got 0",
    ),
    "text": (
        lambda d: np.save(d / "inputs/x.npy", np.full((4, 8), "one")),
        "golden/inputs/x.npy': expected numbers, found <U3",
        "",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_is_wrong_in_the_folder_is_said(
    case: str, golden: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, message, remedy = REFUSALS[case]
    change(golden)
    assert check(golden) == 1
    said = capsys.readouterr().err
    assert message in said
    assert remedy in said


@pytest.mark.slow
def test_results_are_compared_with_those_of_the_folder(
    golden: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(golden) == 0
    report = json.loads((golden.parent / "out" / "check.json").read_text())
    (output,) = report["outputs"]
    assert output["reference_measure"] == "correlation"
    assert output["reference_pcc"] > 0.9999
    np.save(golden / "outputs/y.npy", np.load(golden / "outputs/y.npy")[::-1])
    capsys.readouterr()
    assert check(golden) != 0
    said = capsys.readouterr().err
    assert "'y'" in said
    (output,) = json.loads((golden.parent / "out" / "check.json").read_text())["outputs"]
    assert output["reference_pcc"] < 0.9
    assert output["golden_pcc"] > 0.9999
