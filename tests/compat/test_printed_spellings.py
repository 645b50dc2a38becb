"""Modules printed as in former years: what documents of then check, and what is read back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.compat.test_seeds import SEEDS, listings
from ttcodegen.cli.lit import run_test
from ttcodegen.cli.opt import main

PRODUCT = """
func.func @forward(%arg0: tensor<64x128xbf16>, %arg1: tensor<128x96xbf16>) -> tensor<64x96xbf16> {
  %0 = "ttir.matmul"(%arg0, %arg1) : (tensor<64x128xbf16>, tensor<128x96xbf16>)
    -> tensor<64x96xbf16>
  return %0 : tensor<64x96xbf16>
}
"""


def printed(capsys: pytest.CaptureFixture[str], folder: Path, text: str, *options: str) -> str:
    path = folder / "module.mlir"
    path.write_text(text, "utf-8")
    assert main([*options, str(path)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(("year", "placed"), [("2024", ", interleaved>"), ("2025", ", <inter")])
def test_layouts_are_spelled_as_in_their_year(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, year: str, placed: str
) -> None:
    pipeline = "--ttir-to-ttnn-backend-pipeline"
    today = printed(capsys, tmp_path, PRODUCT, pipeline)
    found = printed(capsys, tmp_path, PRODUCT, pipeline, f"--print-spelling={year}")
    assert f"memref<2x4x!tt.tile<32x32, bf16>, #dram>{placed}" in found
    assert "ttcore." not in found
    assert printed(capsys, tmp_path, found) == today


def test_ttir_ops_write_to_a_tensor(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = printed(capsys, tmp_path, PRODUCT, "--print-spelling=2025")
    assert re.search(r'(%\w+) = tensor\.empty.*\n.*"ttir\.matmul"\(%arg0, %arg1, \1\)', found)
    again = printed(capsys, tmp_path, found)
    assert again == printed(capsys, tmp_path, PRODUCT)


def test_the_environment_chooses_a_spelling(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTCODEGEN_PRINT_SPELLING", "2024")
    assert "tensor.empty" in printed(capsys, tmp_path, PRODUCT)


def test_other_years_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--print-spelling=1999"]) != 0
    assert "--print-spelling is one of 2024, 2025, found '1999'" in capsys.readouterr().err


@pytest.mark.skipif(SEEDS is None, reason="TTCODEGEN_SEEDS names no folder")
def test_listings_pass_their_own_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lit tests that the documents print, run as they are."""
    found = 0
    for name, text in listings():
        if "// CHECK: " not in text or "// RUN: " not in text:
            continue
        monkeypatch.setenv("TTCODEGEN_PRINT_SPELLING", "2025" if "2025" in name else "2024")
        path = tmp_path / f"listing{found}.mlir"
        path.write_text(text, "utf-8")
        run_test(path, tmp_path)
        found += 1
    assert found >= 4
