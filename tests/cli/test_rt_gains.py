"""Gains of edits: `ttcodegen-rt perf` and `compare` before and after them, op by op."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ttcodegen.cli.rt import main
from ttcodegen.cli.ttcodegen import main as compile_main
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain

SOURCE = """
func.func @layer(
    %x: tensor<32x256xbf16> {ttcore.argument_type = #ttcore.argument_type<input>},
    %wide: tensor<256x512xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %back: tensor<512x256xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>})
    -> tensor<32x256xbf16> {
  %gate = "ttir.matmul"(%x, %wide)
      : (tensor<32x256xbf16>, tensor<256x512xbf16>) -> tensor<32x512xbf16>
  %active = "ttir.silu"(%gate) : (tensor<32x512xbf16>) -> tensor<32x512xbf16>
  %down = "ttir.matmul"(%active, %back)
      : (tensor<32x512xbf16>, tensor<512x256xbf16>) -> tensor<32x256xbf16>
  %sum = "ttir.add"(%down, %x) : (tensor<32x256xbf16>, tensor<32x256xbf16>) -> tensor<32x256xbf16>
  return %sum : tensor<32x256xbf16>
}
"""
L1 = ".memory_config = ttnn::L1_MEMORY_CONFIG"


def project(tmp_path: Path, name: str) -> Path:
    source, out = tmp_path / "layer.mlir", tmp_path / name
    source.write_text(SOURCE)
    assert compile_main([str(source), "-o", str(out)]) == 0
    return out


def edit(out: Path) -> None:
    """Fuses the activation into the first matmul, whose result goes to L1."""
    code = out / "src/layer.cpp"
    text = code.read_text()
    for before, after in (
        ("    ttnn::Tensor active = ttnn::silu(last_use(gate));\n", ""),
        ("last_use(active)", "last_use(gate)"),
        ("weights.wide)", f'weights.wide, {{{L1}, .activation = "silu"}})'),
    ):
        assert before in text
        text = text.replace(before, after)
    code.write_text(text)


def by_name(rows: list[dict[str, Any]]) -> Mapping[str, dict[str, Any]]:
    return {row["name"] or row["op"]: row for row in rows}


def result(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    file = tmp_path / "result.json"
    folder = str(tmp_path / "artifacts")
    command = [*arguments, "--result-file", str(file), "--artifact-dir", folder]
    assert main(command) == 0
    return json.loads(file.read_text())["results"][0]


@pytest.mark.slow
def test_an_edited_project_is_measured_before_and_after(
    tmp_path: Path,
    toolchain: Toolchain,
    cpu_backend: CPUBackend,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = project(tmp_path, "out")
    plain = by_name(result(tmp_path, "perf", str(out))["ops"])
    assert all(row["edit"] is None and row["before_us"] is None for row in plain.values())
    edit(out)
    capsys.readouterr()
    found = result(tmp_path, "perf", str(out), "--loops", "2")
    shown = capsys.readouterr().out
    rows = by_name(found["ops"])
    # Marked are the rows of the ops that were edited, and no others.
    assert {name: row["edit"] for name, row in rows.items() if row["edit"]} == {
        "gate": 'memory l1, activation "silu"',
        "active": "applied by gate",
    }
    assert re.search(r'gate +ttnn.matmul +src/layer.cpp:\d+ .* memory l1, activation "silu"', shown)
    assert re.search(r"active +ttnn.silu .* applied by gate", shown)
    # Of the generated program the estimates are those that it has without edits.
    for name, row in plain.items():
        assert rows[name]["estimated_before_us"] == row["estimated_us"], name
    active = rows["active"]
    assert (active["calls"], active["time_us"], active["estimated_us"]) == (0, 0.0, 0.0)
    assert active["before_us"] > 0
    # The edited call applies the activation, and the next one reads its operand in L1.
    assert rows["gate"]["l1_bytes"] > plain["gate"]["l1_bytes"]
    assert rows["down"]["estimated_us"] < plain["down"]["estimated_us"]
    assert rows["sum"]["estimated_us"] == plain["sum"]["estimated_us"]
    path, _, line = rows["gate"]["line"].partition(":")
    assert "gate" in (out / path).read_text().split("\n")[int(line) - 1]
    with Path(found["csv"]).open() as table:
        written = {row["name"] or row["op"]: row for row in csv.DictReader(table)}
    assert written["gate"]["edit"] == rows["gate"]["edit"]
    assert float(written["gate"]["before_us"]) == rows["gate"]["before_us"] > 0


@pytest.mark.slow
def test_a_call_that_a_person_wrote_has_its_variable_and_line(
    tmp_path: Path, toolchain: Toolchain, cpu_backend: CPUBackend
) -> None:
    first, second = project(tmp_path, "first"), project(tmp_path, "second")
    code = second / "src/layer.cpp"
    text = code.read_text()
    assert "sum = ttnn::add(" in text or "down = ttnn::add(" in text
    code.write_text(text.replace("ttnn::add(", "ttnn::subtract("))
    lines = code.read_text().split("\n")
    (at,) = (at for at, line in enumerate(lines, 1) if "= ttnn::subtract(" in line)
    variable = lines[at - 1].split("=")[0].split()[-1]
    # What `perf` lists of one project, and `compare` of both.
    perf = result(tmp_path, "perf", str(second))["ops"]
    compared = tmp_path / "result.json"
    main(["compare", str(first), str(second), "--result-file", str(compared)])
    programs = json.loads(compared.read_text())["results"][0]["programs"]
    for rows in (perf, programs[0]["ops"]):
        (row,) = (row for row in rows if row["op"] == "ttnn::subtract")
        assert (row["name"], row["line"], row["edit"]) == (
            variable,
            f"src/layer.cpp:{at}",
            "added",
        )


@pytest.mark.slow
def test_two_projects_are_compared_op_by_op(
    tmp_path: Path,
    toolchain: Toolchain,
    cpu_backend: CPUBackend,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, second = project(tmp_path, "first"), project(tmp_path, "second")
    edit(second)
    assert compile_main([str(tmp_path / "layer.mlir"), "-o", str(first), "--build"]) == 0
    found = result(tmp_path, "compare", str(first), str(second))
    rows = by_name(found["programs"][0]["ops"])
    assert rows["gate"]["edit"] == 'memory l1, activation "silu"'
    assert rows["active"]["edit"] == "applied by gate"
    assert [name for name, row in rows.items() if row["edit"]] == ["gate", "active"]
    assert all(rows[name]["before_us"] > 0 for name in ("gate", "active", "down", "sum"))
    assert rows["active"]["time_us"] == 0 < rows["gate"]["time_us"]
    assert "card before" in capsys.readouterr().out


def test_flatbuffers_are_compared_by_their_estimates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = project(tmp_path, "first")
    (tmp_path / "exact.mlir").write_text(SOURCE.replace("bf16", "f32"))
    second = tmp_path / "second"
    assert compile_main([str(tmp_path / "exact.mlir"), "-o", str(second), "--no-format"]) == 0
    pair = [str(first / "model.ttnn"), str(second / "model.ttnn")]
    result_file = tmp_path / "r.json"
    main(["compare", *pair, "--result-file", str(result_file)])
    rows = by_name(json.loads(result_file.read_text())["results"][0]["programs"][0]["ops"])
    assert all(row["time_us"] is None for row in rows.values())
    # Twice the bytes, and more passes.
    assert rows["gate"]["estimated_us"] > rows["gate"]["estimated_before_us"]


CONVOLUTION = """
func.func @net(
    %x: tensor<1x32x32x64xbf16> {ttcore.argument_type = #ttcore.argument_type<input>},
    %w: tensor<64x64x3x3xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>})
    -> tensor<1x16x16x64xbf16> {
  %Conv2d_0 = "ttir.conv2d"(%x, %w) <{stride = 1 : i32, padding = 1 : i32, dilation = 1 : i32,
      groups = 1 : i32}> : (tensor<1x32x32x64xbf16>, tensor<64x64x3x3xbf16>)
      -> tensor<1x32x32x64xbf16>
  %relu = "ttir.relu"(%Conv2d_0) : (tensor<1x32x32x64xbf16>) -> tensor<1x32x32x64xbf16>
  %pool = "ttir.max_pool2d"(%relu) <{kernel = 2 : i32, stride = 2 : i32, padding = 0 : i32,
      dilation = 1 : i32, ceil_mode = false}> : (tensor<1x32x32x64xbf16>)
      -> tensor<1x16x16x64xbf16>
  return %pool : tensor<1x16x16x64xbf16>
}
"""


@pytest.fixture
def reports(tmp_path: Path) -> Mapping[str, Path]:
    """The estimates for a card of two models, by name."""
    found: dict[str, Path] = {}
    for name, text in (("layer", SOURCE), ("net", CONVOLUTION)):
        source, out = tmp_path / f"{name}.mlir", tmp_path / name
        source.write_text(text)
        assert compile_main([str(source), "-o", str(out), "--no-format"]) == 0
        ran = result(tmp_path, "perf", str(out / "model.ttnn"))
        found[name] = tmp_path / name / "card"
        shutil.copytree(ran["card"], found[name])
    return found


def test_the_estimate_is_a_report_of_the_profiler(reports: Mapping[str, Path]) -> None:
    with (reports["layer"] / "ops_perf_results.csv").open() as table:
        rows = {row["NAME"]: row for row in csv.DictReader(table)}
    assert rows["gate"]["OP CODE"] == "MatmulDeviceOperation gate"
    assert rows["active"]["OP CODE"] == "UnaryDeviceOperation active"
    assert rows["gate"]["INPUT_1_X_PAD[LOGICAL]"] == "512[512]"
    assert rows["gate"]["OUTPUT_0_MEMORY"] == "DEV_0_DRAM_INTERLEAVED"
    assert rows["gate"]["LINE"].startswith("src/layer.cpp:")
    log = (reports["layer"] / "profile_log_device.csv").read_text().splitlines()
    assert log[0].startswith("ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000")
    # Five processors begin and end for each op.
    assert len(log) == 2 + 10 * len(rows)
    with (reports["net"] / "ops_perf_results.csv").open() as table:
        codes = [row["OP CODE"] for row in csv.DictReader(table)]
    # Names that the viewers would take for a kind of op are changed.
    assert [code for code in codes if "Conv2d" in code] == ["Conv2dDeviceOperation conv2d"]


@pytest.mark.parametrize("name", ["layer", "net"])
def test_tt_perf_report_opens_the_estimate(
    name: str,
    reports: Mapping[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    viewer = pytest.importorskip("tt_perf_report.perf_report")
    file = str(reports[name] / "ops_perf_results.csv")
    monkeypatch.setattr("sys.argv", ["tt-perf-report", file, "--no-color", "--no-summary"])
    viewer.main()
    shown = capsys.readouterr().out
    assert "Unclassified" not in shown
    if name == "layer":
        row = re.search(r"MatmulDeviceOperation gate 32 x 256 x 512 .*", shown)
        assert row is not None
        assert "HiFi2 BF16 x BF16 => BF16" in row[0]
        assert " 0 host ops" in shown
    else:
        assert re.search(r"Conv2dDeviceOperation conv2d 1024 x 576 x 64", shown)


@pytest.mark.parametrize("name", ["layer", "net"])
def test_ttnn_visualizer_opens_the_estimate(name: str, reports: Mapping[str, Path]) -> None:
    queries = pytest.importorskip("ttnn_visualizer.csv_queries")
    from ttnn_visualizer.models import Instance
    from ttnn_visualizer.utils import is_valid_performance_report_dir

    assert is_valid_performance_report_dir(reports[name])
    instance = Instance(instance_id="test", performance_path=str(reports[name]))
    shown = queries.OpsPerformanceReportQueries.generate_report(instance)["report"]
    with (reports[name] / "ops_perf_results.csv").open() as table:
        rows = list(csv.DictReader(table))
    assert [row["raw_op_code"] for row in shown] == [row["OP CODE"] for row in rows]
    assert [float(row["device_time"]) for row in shown] == pytest.approx(
        [float(row["DEVICE KERNEL DURATION [ns]"]) / 1e3 for row in rows], abs=1e-3
    )
    with queries.DeviceLogProfilerQueries(instance) as log:
        assert len(log.runner.df) == 10 * len(rows)
