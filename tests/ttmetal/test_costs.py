"""Costs of device programs in manifest.json against the emulated device's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.ttmetal.function_text import call, function, integers, single, tensor
from ttcodegen.cli.ttcodegen import main
from ttcodegen.project.cpu_backend import CPUBackend

pytestmark = pytest.mark.slow


def _chain(name: str, height: int, width: int) -> str:
    shapes = (height, width), (1, width), (height, 1)
    a, row, column = (tensor(shape, "bf16") for shape in shapes)
    ops = [
        call("add", ["%a0", "%a1"], [a, row], a),
        call("exp", ["%0"], [a], a),
        call("multiply", ["%1", "%a2"], [a, column], a),
    ]
    return function(name, [a, row, column], ops)


def _scaled_sums() -> str:
    """Operands that are kept before a reduction and after it."""
    a, scale, column = (tensor(s, "f32") for s in ((3, 512, 640), (1, 1, 640), (3, 512, 1)))
    bias = tensor((1, 1, 1), "f32")
    ops = [
        call("multiply", ["%a0", "%a1"], [a, scale], a),
        call("sum", ["%0"], [a], column, dim_arg="[2 : i32]", keep_dim="true"),
        call("add", ["%1", "%a2"], [column, bias], column),
    ]
    return function("scaled_sums", [a, scale, bias], ops)


def _attention(name: str, query: tuple[int, ...], keys: tuple[int, ...], sink: bool = False) -> str:
    causal = str(query[2] == keys[2]).lower()
    segments = f"array<i32: 1, 1, 1, 0, {int(sink)}>"
    words = {"operandSegmentSizes": segments, "is_causal": causal}
    op = "scaled_dot_product_attention"
    sinks = [(1, query[1], 1, 1)] if sink else []
    return single(name, op, [query, keys, keys, *sinks], query, "bf16", **words)


def _through_l1() -> str:
    """Four programs, of which each but the last leaves its result in L1."""
    x, weight, row = (tensor(s, "bf16") for s in ((200, 256), (256, 320), (200, 320)))
    column = tensor((200, 1), "bf16")
    ops = [
        call("matmul", ["%a0", "%a1"], [x, weight], row),
        call("softmax", ["%0"], [row], row, dimension="1 : si32"),
        call("sum", ["%1"], [row], column, dim_arg="[1 : i32]", keep_dim="true"),
        call("subtract", ["%1", "%2"], [row, column], row),
        call("matmul", ["%3", "%a2"], [row, tensor((320, 256), "bf16")], x),
    ]
    return function("through_l1", [x, weight, tensor((320, 256), "bf16")], ops)


def _looked_up() -> str:
    """Rows of a table that is too large to keep."""
    rows, table, result = (
        tensor(s, e) for s, e in (((2, 40), "i32"), ((3000, 72), "bf16"), ((2, 40, 72), "bf16"))
    )
    return function(
        "looked_up", [rows, table], [call("embedding", ["%a0", "%a1"], [rows, table], result)]
    )


def _last_rows() -> str:
    """One row of each tile, of which the greatest element is found."""
    x, row, index = tensor((5, 18, 100), "f32"), tensor((5, 1, 100), "f32"), tensor((5, 1), "i32")
    words = {"begins": (0, 17, 0), "ends": (5, 18, 100), "step": (1, 1, 1)}
    limits = {name: integers(values) for name, values in words.items()}
    ops = [
        call("slice_static", ["%a0"], [x], row, **limits),
        call("argmax", ["%0"], [row], index, dim_arg="[2 : i32]", keep_dim="false"),
    ]
    return function("last_rows", [x], ops)


def _broadcast_sum(name: str, *operands: tuple[int, ...], result: tuple[int, ...]) -> str:
    return single(name, "add", operands, result, "bf16")


BROADCAST = (
    _chain("scale_and_bias", 512, 512),
    _broadcast_sum("positions", (8, 320, 512), (320, 512), result=(8, 320, 512)),
    _broadcast_sum("each_with_each", (16, 1, 64, 128), (1, 16, 64, 128), result=(16, 16, 64, 128)),
    _broadcast_sum("heads", (2, 8, 128, 64), (2, 1, 128, 64), result=(2, 8, 128, 64)),
)
"""Operands that are broadcast over rows, columns and batches."""

FUNCTIONS = (
    *BROADCAST,
    _chain("chain", 70, 100),
    _chain("kept_tiles", 2048, 512),
    _scaled_sums(),
    single("product", "matmul", [(300, 256), (256, 700)], (300, 700), "bf16"),
    single("batches", "matmul", [(3, 40, 50), (50, 70)], (3, 40, 70), "f32"),
    single("softmax", "softmax", [(3, 40, 70)], (3, 40, 70), "f32", dimension="2 : si32"),
    single("streamed", "softmax", [(33, 20000)], (33, 20000), "bf16", dimension="1 : si32"),
    _attention("attention", (1, 2, 70, 64), (1, 2, 70, 64)),
    _attention("sink", (2, 4, 70, 64), (2, 2, 70, 64), sink=True),
    _attention("grouped", (2, 4, 33, 32), (2, 2, 100, 32)),
    _attention("in_parts", (2, 8, 33, 40), (2, 2, 3300, 40)),
    _attention("causal_parts", (1, 1, 2800, 40), (1, 1, 2800, 40)),
    _through_l1(),
    _looked_up(),
    _last_rows(),
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
    assert len(counted) == len(expected) > len(FUNCTIONS)
    for counts, costs in zip(counted, expected, strict=True):
        assert counts["dram_read_bytes"] == costs["dram_read_bytes"]
        assert counts["dram_written_bytes"] == costs["dram_write_bytes"]
        # Pages that are interleaved over the cores may be where they are needed, too.
        assert counts["own_l1_bytes"] >= costs["own_l1_bytes"]
    assert any(costs["own_l1_bytes"] for costs in expected)
    for costs in expected[: len(BROADCAST)]:
        moved = costs["dram_read_bytes"] + costs["dram_write_bytes"]
        least = costs["least_dram_read_bytes"] + costs["least_dram_write_bytes"]
        assert moved <= 1.25 * least
