"""What manifest.json says that programs move is what the emulated device counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.ttmetal.modules import call, function, single, tensor
from ttcodegen.cli.ttcodegen import main
from ttcodegen.project.cpu_backend import CPUBackend

pytestmark = pytest.mark.slow


def _chain() -> str:
    a, row, column = (tensor(shape, "bf16") for shape in ((70, 100), (1, 100), (70, 1)))
    ops = [
        call("add", ["%a0", "%a1"], [a, row], a),
        call("exp", ["%0"], [a], a),
        call("multiply", ["%1", "%a2"], [a, column], a),
    ]
    return function("chain", [a, row, column], ops)


FUNCTIONS = (
    _chain(),
    single("product", "matmul", [(300, 256), (256, 700)], (300, 700), "bf16"),
    single("batches", "matmul", [(3, 40, 50), (50, 70)], (3, 40, 70), "f32"),
    single("sums", "sum", [(3, 40, 70)], (3, 40, 1), "f32", dim_arg="[2 : i32]", keep_dim="true"),
)


def test_the_device_counts_the_same(
    cpu_backend: CPUBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out, report = (tmp_path / name for name in ("costs.mlir", "out", "report.json"))
    source.write_text(f"module {{\n{''.join(FUNCTIONS)}}}\n", "utf-8")
    monkeypatch.setenv("TTCODEGEN_DEVICE_REPORT", str(report))
    assert main([str(source), "-o", str(out), "--target", "ttmetal", "--check"]) == 0
    counted = [program["total"] for program in json.loads(report.read_text())]
    expected = [
        program["costs"] for program in json.loads((out / "manifest.json").read_text())["programs"]
    ]
    assert len(counted) == len(expected) == len(FUNCTIONS)
    for counts, costs in zip(counted, expected, strict=True):
        assert counts["dram_read_bytes"] == costs["dram_read_bytes"]
        assert counts["dram_written_bytes"] == costs["dram_write_bytes"]
