"""Fields of program configs that only some releases have."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ttcodegen.cli.rt import main
from ttcodegen.cli.ttcodegen import main as ttcodegen
from ttcodegen.dialects.ttnn.program_configs import SDPA, CoreGrid, MatmulDRAMSharded
from ttcodegen.systems.releases import RELEASES

OLDEST, LATER = RELEASES[0], RELEASES[-1]
HEAD = """
func.func @head(%x: tensor<32x1024xbf16>, %w: tensor<1024x2048xbf16>
    {ttcore.argument_type = #ttcore.argument_type<parameter>}) -> tensor<32x2048xbf16> {
  %0 = "ttir.matmul"(%x, %w) : (tensor<32x1024xbf16>, tensor<1024x2048xbf16>)
      -> tensor<32x2048xbf16>
  return %0 : tensor<32x2048xbf16>
}
"""
ATTENTION = """
func.func @attend(%q: tensor<1x8x256x64xbf16>, %k: tensor<1x8x256x64xbf16>,
    %v: tensor<1x8x256x64xbf16>) -> tensor<1x8x256x64xbf16> {
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %v) <{is_causal = true,
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}>
      : (tensor<1x8x256x64xbf16>, tensor<1x8x256x64xbf16>, tensor<1x8x256x64xbf16>)
      -> tensor<1x8x256x64xbf16>
  return %0 : tensor<1x8x256x64xbf16>
}
"""


def overrides(folder: Path, function: str, name: str, **entry: object) -> Path:
    """An overrides file with one entry."""
    path = folder / "overrides.json"
    text = {"version": 1, "functions": {function: {name: entry}}}
    path.write_text(json.dumps(text))
    return path


def compiled_head(folder: Path, workers: int, machine: str, release: str) -> int:
    """Compiles a product by weights in the banks of DRAM; returns the exit status."""
    (folder / "head.mlir").write_text(HEAD)
    config = MatmulDRAMSharded(4, 1, 1, num_workers_per_dram_bank=workers)
    given = overrides(folder, "head", "matmul", program_config=config.text)
    out = ["-o", str(folder / "out"), "-q", "--optimize", "2", "--overrides", str(given)]
    return ttcodegen([str(folder / "head.mlir"), *out, "--machine", machine, "--tt-metal", release])


def test_workers_of_banks_are_in_the_configuration(tmp_path: Path) -> None:
    assert compiled_head(tmp_path, 2, "p150", LATER) == 0
    tuning = (tmp_path / "out" / "src" / "tuning.hpp").read_text()
    assert ".num_workers_per_dram_bank = 2" in tuning


def test_a_release_without_a_field_refuses_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compiled_head(tmp_path, 2, "p150", OLDEST) == 1
    said = capsys.readouterr().err
    assert f"tt-metal {OLDEST} has no 'num_workers_per_dram_bank'" in said
    assert "--tt-metal" in said


@pytest.mark.parametrize(
    ("workers", "machine"),
    [
        (3, "p150"),  # 64 tiles in 8 banks: 8 tiles of a bank
        (2, "n150"),  # a Blackhole only
        (4, "p150"),
    ],
)
def test_workers_that_the_library_refuses_are_refused(
    tmp_path: Path, workers: int, machine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compiled_head(tmp_path, workers, machine, LATER) == 1
    assert capsys.readouterr().err


def test_splits_of_keys_are_in_the_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = SDPA(CoreGrid(8, 8), 64, 64, max_k_splits=2)
    module = tmp_path / "attend.mlir"
    module.write_text(ATTENTION)
    name = "scaled_dot_product_attention"
    given = overrides(tmp_path, "attend", name, program_config=config.text)
    command = [str(module), "-o", str(tmp_path / "out"), "-q", "--optimize", "2"]
    command += ["--overrides", str(given)]
    assert ttcodegen([*command, "--tt-metal", LATER]) == 0
    assert ".max_k_splits = 2" in (tmp_path / "out" / "src" / "tuning.hpp").read_text()
    assert ttcodegen([*command, "--tt-metal", OLDEST]) == 1
    assert f"tt-metal {OLDEST} has no 'max_k_splits'" in capsys.readouterr().err


@pytest.mark.slow
def test_the_backend_and_the_library_know_the_field(
    tmp_path: Path, ttnn_pythons: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert compiled_head(tmp_path, 2, "p150", LATER) == 0
    out = tmp_path / "out"
    assert main(["validate", str(out), "--python", ttnn_pythons(LATER)]) == 0
    assert main(["run", str(out)]) == 0
    tuning = out / "src" / "tuning.hpp"
    field = ".num_workers_per_dram_bank = "
    tuning.write_text(tuning.read_text().replace(f"{field}2", f"{field}3"))
    capsys.readouterr()
    assert main(["run", str(out)]) != 0
    said = capsys.readouterr()
    assert "8 tiles per bank must be divisible by workers_per_bank 3" in said.out + said.err
