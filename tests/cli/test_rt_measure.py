"""Subcommands of `ttcodegen-rt` that measure, check and compare."""

from __future__ import annotations

import csv
import json
import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.flatbuffers import EXAMPLES, SCHEMA, result_of, written
from tests.flatbuffer.programs import adding_program, binary
from ttcodegen.cli.opt import main as opt_main
from ttcodegen.cli.rt import main
from ttcodegen.cli.translate import main as translate_main
from ttcodegen.cli.ttcodegen import main as compile_main
from ttcodegen.flatbuffer.decoding import encode
from ttcodegen.flatbuffer.system import read_ttsys_file, write_ttsys
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.rt import Logger
from ttcodegen.rt.commands import arguments
from ttcodegen.rt.commands import compare as comparing
from ttcodegen.rt.commands.perf import COLUMNS
from ttcodegen.rt.edit_gains import OpPlaces
from ttcodegen.rt.op_times import COLUMNS as PROFILER_COLUMNS
from ttcodegen.runtime.executable import open_flatbuffer
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import ARCHITECTURES


def test_perf_writes_a_table_and_a_trace(tmp_path: Path) -> None:
    out = tmp_path / "digits"
    source = EXAMPLES / "digits" / "digits.mlir"
    assert compile_main([str(source), "-o", str(out), "--no-format"]) == 0
    args = {"binary": out / "model.ttnn", "--loops": 3, "--artifact-dir": tmp_path / "f"}
    code, result = result_of("Perf", args)
    assert code == 0
    with Path(result["csv"]).open() as table:
        rows = list(csv.DictReader(table))
    assert tuple(rows[0]) == COLUMNS
    linear = next(row for row in rows if row["op"] == "ttnn.linear")
    # Of one run, and not of all.
    assert (linear["calls"], linear["program"]) == ("1", "classify")
    assert int(linear["flops"]) == 2 * 360 * 64 * 64 + 360 * 64
    assert int(linear["bytes"]) == 4 * (384 * 64 + 64 * 64 + 32 * 64 + 384 * 64)
    # The variable and the line of the call in the C++.
    for row in rows:
        if not row["line"]:
            assert not (row["program"] == "classify" and row["op"].startswith("ttnn.")), row
            continue
        path, _, line = row["line"].partition(":")
        called = (out / path).read_text().split("\n")[int(line) - 1]
        assert row["name"].partition("#")[0] in called, row
    assert float(linear["time_us"]) > 0
    assert sum(float(row["time_share"]) for row in rows) == pytest.approx(1, abs=1e-3)
    assert linear["bound"] == "memory"
    with Path(result["perf_results"]).open() as table:
        calls = list(csv.DictReader(table))
    assert tuple(calls[0]) == PROFILER_COLUMNS
    assert len(calls) == 3 * sum(int(row["calls"]) for row in rows)
    assert [int(call["GLOBAL CALL COUNT"]) for call in calls] == list(range(1, len(calls) + 1))
    linears = [call for call in calls if call["OP CODE"] == "ttnn.linear"]
    host = sum(int(call["HOST DURATION [ns]"]) for call in linears)
    everything = [row for row in rows if row["op"] == "ttnn.linear"]
    reported = sum(float(row["time_us"]) for row in everything)
    assert host / 1e3 == pytest.approx(3 * reported, rel=1e-3)
    assert all(call["DEVICE KERNEL DURATION [ns]"] == "" for call in calls)
    trace = json.loads(Path(result["trace"]).read_text())
    events = trace["traceEvents"]
    named = {e["args"]["name"] for e in events if e["ph"] == "M"}
    assert {"model.ttnn", "classify"} <= named
    spans = [e for e in events if e["ph"] == "X"]
    for op in {row["op"] for row in rows}:
        calls = [int(row["calls"]) for row in rows if row["op"] == op]
        assert set(calls) == {1}
        assert len([e for e in spans if e["name"] == op]) == 3 * sum(calls)
    assert all({"ts", "dur", "pid", "tid", "name", "cat", "args"} <= e.keys() for e in spans)


def test_perf_knows_the_card(adding: Path, tmp_path: Path) -> None:
    times = {}
    for arch in ARCHITECTURES:
        args = {"binary": adding, "--arch": arch, "--artifact-dir": tmp_path / arch}
        _, result = result_of("Perf", {**args, "--host-only": True})
        times[arch] = result["ops"][0]["card_us"]
    assert times["wormhole_b0"] == pytest.approx(3 * 4096 / 288e9 * 1e6, abs=1e-3)
    assert times["blackhole"] < times["wormhole_b0"]


# check and query


def test_perf_knows_what_chips_exchange_between_programs(tmp_path: Path) -> None:
    text = """module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>} {
  func.func @f(%x: tensor<128x64xbf16>) -> tensor<64x128xbf16> {
    %0 = "ttir.mesh_shard"(%x) <{shard_dims = array<i64: -1, 0>, shard_shape = array<i64: 2, 1>,
        shard_type = #ttcore.shard_type<devices>,
        shard_direction = #ttcore.shard_direction<full_to_shard>}>
        : (tensor<128x64xbf16>) -> tensor<64x64xbf16>
    %1 = "ttir.exp"(%0) : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
    %2 = "ttir.all_gather"(%1) <{all_gather_dim = 1 : si32, cluster_axis = 1 : ui32}>
        : (tensor<64x64xbf16>) -> tensor<64x128xbf16>
    return %2 : tensor<64x128xbf16>
  }
}
"""
    source, out = tmp_path / "gather.mlir", tmp_path / "out"
    source.write_text(text, encoding="utf-8")
    assert compile_main([str(source), "-o", str(out), "--target", "ttmetal", "--no-format"]) == 0
    args = {"binary": out / "model.ttm", "--host-only": True, "--artifact-dir": tmp_path / "f"}
    code, result = result_of("Perf", args)
    assert code == 0
    rows = [row for row in result["ops"] if row["link_bytes"]]
    assert [row["link_bytes"] for row in rows] == [4 * 2048]
    assert rows[0]["estimated_us"] > 4 * 2048 / 11.67e3
    assert rows[0]["estimated_bound"] in ("link", "launch")


def test_query_describes_the_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "x.ttsys"
    assert main(["query", "--output", str(out)]) == 0
    assert json.loads(capsys.readouterr().out)["chips"][0]["arch"] == "wormhole_b0"
    assert read_ttsys_file(out) == default_system("wormhole_b0")
    args = {"--arch": "blackhole", "--save-artifacts": True, "--artifact-dir": tmp_path / "f"}
    code, result = result_of("Query", args)
    assert (code, result["device"]) == (0, "blackhole")
    assert read_ttsys_file(tmp_path / "f" / "system_desc.ttsys").arch == "blackhole"


def test_check_names_the_fields_that_differ(
    adding: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(adding)]) == 0
    assert "fits cpu" in capsys.readouterr().out
    system = default_system("wormhole_b0")
    smaller = replace(system, chips=(replace(system.chip, grid=(7, 8)),))
    folder = tmp_path / "systems"
    folder.mkdir()
    (folder / "n150.ttsys").write_bytes(write_ttsys(system))
    (folder / "small.ttsys").write_bytes(write_ttsys(smaller))
    assert main(["check", str(adding), "--system-desc", str(folder)]) == 4
    captured = capsys.readouterr()
    assert f"fits {folder / 'n150.ttsys'}" in captured.out
    assert "  grid: (8, 8) and (7, 8), of the file and of the system\n" in captured.err
    assert main(["check", str(adding), "--arch", "blackhole"]) == 4
    both = ["--arch", "blackhole", "--system-desc", str(folder)]
    assert main(["check", str(adding), *both]) == 1


def test_check_names_what_is_too_small(tmp_path: Path) -> None:
    system = default_system("wormhole_b0")
    huge = tuple(
        replace(t, type=replace(t.type, shape=(2**17, 2**15))) for t in adding_program().tensors
    )
    path = written(tmp_path, "huge", tensors=huge)
    code, result = result_of("Check", {"binary": path})
    assert code == 4
    (misfit,) = result["differences"]
    assert misfit.startswith("dram_unreserved_end: 'main' needs 51539607552 bytes of dram")
    few = replace(system, chips=(replace(system.chip, supported_data_types=("bf16",)),))
    (tmp_path / "few.ttsys").write_bytes(write_ttsys(few))
    small = written(tmp_path, "small")
    args = {"binary": small, "--system-desc": tmp_path / "few.ttsys"}
    code, result = result_of("Check", args)
    assert "supported_data_types: the file needs f32" in result["differences"]


def test_a_file_for_an_unknown_architecture(tmp_path: Path) -> None:
    path = tmp_path / "x.ttnn"
    path.write_bytes(encode(SCHEMA, replace(binary(adding_program()), arch="quasar")))
    code, result = result_of("Check", {"binary": path})
    assert code == 1
    assert "'quasar', an unknown architecture" in result["error"]


def test_scripts_for_ttrt_need_another_name_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adding: Path
) -> None:
    from ttcodegen.rt.common.api import API
    from ttcodegen.rt.common.util import Artifacts, Logger

    API.initialize_apis()
    logger = Logger(tmp_path / "some_file_name.log")
    artifacts = Artifacts(logger=logger, artifacts_folder_path=tmp_path / "artifacts")
    query = API.Query(args={"--clean-artifacts": True}, logger=logger, artifacts=artifacts)
    result_code, _ = query()
    assert result_code == 0
    read = API.Read(logger=logger)
    # Without a file, those of the folder that it is called in are read.
    monkeypatch.chdir(tmp_path)
    result_code, results = read()
    assert (result_code, [each["file"] for each in results["results"]]) == (0, [adding.name])
    adding.unlink()
    with pytest.raises(CompileError, match=r"there is no file in '\.'"):
        read()


def test_options_that_change_nothing_are_accepted() -> None:
    given = {"--enable-async-ttnn": True, "--load-kernels-from-disk": True}
    values = arguments.resolved("run", given)
    assert values["enable_async_ttnn"]
    assert values["load_kernels_from_disk"]


def test_the_level_of_ttrt_counts_after_ours(monkeypatch, capsys) -> None:

    monkeypatch.delenv("TTCODEGEN_RT_LOG_LEVEL", raising=False)
    monkeypatch.setenv("TTRT_LOGGER_LEVEL", "ERROR")
    Logger().info("quiet")
    assert capsys.readouterr().out == ""
    monkeypatch.setenv("TTCODEGEN_RT_LOG_LEVEL", "INFO")
    Logger().info("reported")
    assert capsys.readouterr().out == "reported\n"


def test_compare_names_the_first_op_that_drifts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tensor = "tensor<32x32xf32>"
    text = f"""
    func.func @f(%x: {tensor}) -> {tensor} {{
      %0 = "ttir.exp"(%x) : ({tensor}) -> {tensor}
      %1 = "ttir.clamp_scalar"(%0) <{{min = 0.0 : f32, max = 1.0 : f32}}> : ({tensor}) -> {tensor}
      %2 = "ttir.sin"(%1) : ({tensor}) -> {tensor}
      return %2 : {tensor}
    }}"""
    folders: list[str] = []
    for name, model in (("a", text), ("b", text.replace("max = 1.0", "max = 0.5"))):
        path = tmp_path / f"{name}.mlir"
        path.write_text(model)
        folders.append(str(tmp_path / name))
        assert compile_main([str(path), "-o", folders[-1], "--no-format"]) == 0
    capsys.readouterr()
    assert main(["compare", folders[0], folders[0]]) == 0
    assert "no op drifts, of 3 that both have" in "".join(capsys.readouterr())
    result = tmp_path / "result.json"
    assert main(["compare", *folders, "--result-file", str(result)]) == 4
    (entry,) = json.loads(result.read_text())["results"]
    drift = entry["programs"][0]["first_drift"]
    assert drift["op"] == "ttnn.clamp_scalar"
    path, _, line = drift["line"].partition(":")
    called = Path(folders[1], path).read_text().split("\n")[int(line) - 1]
    assert "ttnn::clamp(" in called
    assert f"{drift['name']}" in called
    assert f"ttnn.clamp_scalar {drift['name']} at {drift['line']}" in capsys.readouterr().err
    assert not entry["passed"]
    assert main(["compare", folders[0], str(tmp_path / "absent")]) == 1


def test_compare_says_of_kernels_whose_ops_it_compares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the flatbuffer belonged to C++ that had run."""
    source = EXAMPLES / "device_programs" / "fused_chain.mlir"
    out = tmp_path / "out"
    given = [str(source), "-o", str(out), "--no-format", "--target", "ttmetal"]
    assert compile_main(given) == 0
    run = comparing._run

    def of_cpp(*arguments: Any) -> comparing.Run:
        return replace(run(*arguments), of_flatbuffer=True)

    monkeypatch.setattr(comparing, "_run", of_cpp)
    capsys.readouterr()
    assert main(["compare", str(out), str(out)]) == 0
    assert "kernels do not report their ops" in "".join(capsys.readouterr())


def test_an_op_is_compared_with_what_was_fused_into_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tensor = "tensor<64x64xbf16>"
    path = tmp_path / "fused.mlir"
    path.write_text(f"""
    func.func @f(%x: {tensor}, %y: {tensor}) -> {tensor} {{
      %0 = "ttir.matmul"(%x, %y) : ({tensor}, {tensor}) -> {tensor}
      %1 = "ttir.relu"(%0) : ({tensor}) -> {tensor}
      return %1 : {tensor}
    }}""")
    folders = [str(tmp_path / level) for level in "02"]
    for level, folder in zip("02", folders, strict=True):
        given = [str(path), "-o", folder, "--no-format", "--optimize", level]
        assert compile_main(given) == 0
    capsys.readouterr()
    for first, second, which in ((*folders, "first"), (*reversed(folders), "second")):
        assert main(["compare", first, second]) == 0
        shown = "".join(capsys.readouterr())
        assert f"only the {which} has: ttnn.relu\n" in shown
        assert "no op drifts, of " in shown


def test_ops_without_cpp_are_run_and_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A norm among chips that names no mesh works on one chip; only other ops have C++."""
    tensor, weight = "tensor<1x1x32x64xbf16>", "tensor<64xbf16>"
    source = tmp_path / "norm.mlir"
    source.write_text(f"""
    func.func @f(%x: {tensor}, %w: {weight}) -> {tensor} {{
      %0 = "ttnn.distributed_rms_norm"(%x, %w) <{{cluster_axis = 1 : ui32, epsilon = 1.0e-5 : f32,
          operandSegmentSizes = array<i32: 1, 1, 0, 0>}}> : ({tensor}, {weight}) -> {tensor}
      return %0 : {tensor}
    }}""")
    lowered, flatbuffer = tmp_path / "lowered.mlir", str(tmp_path / "norm.ttnn")
    assert opt_main([str(source), "--ttnn-layout", "-o", str(lowered)]) == 0
    assert translate_main([str(lowered), "--ttnn-to-flatbuffer", "-o", flatbuffer]) == 0
    assert main(["perf", flatbuffer, "--artifact-dir", str(tmp_path / "artifacts")]) == 0
    capsys.readouterr()
    assert main(["compare", flatbuffer, flatbuffer]) == 0
    assert "no op drifts, of 1 that both have" in "".join(capsys.readouterr())


def test_the_variable_of_a_call_that_starts_on_the_next_line(tmp_path: Path) -> None:
    """Long names have the assigned variable alone on the line that the op is found by."""
    name = "the_sum_of_both_that_has_so_long_a_name_that_the_call_is_on_the_next_line"
    source = tmp_path / "sum.mlir"
    source.write_text(
        f"func.func @f(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>) -> tensor<32x32xf32> {{\n"
        f'  %{name} = "ttir.add"(%a, %b) : (tensor<32x32xf32>, tensor<32x32xf32>)\n'
        f"    -> tensor<32x32xf32>\n  return %{name} : tensor<32x32xf32>\n}}\n"
    )
    out = tmp_path / "out"
    assert compile_main([str(source), "-o", str(out), "-q"]) == 0
    text = (out / "src" / "sum.cpp").read_text()
    (variable,) = re.findall(r"ttnn::Tensor (\w+) =\n", text)
    with closing(open_flatbuffer(out / "model.ttnn")) as flatbuffer:
        places = OpPlaces(flatbuffer)
        found = {places.variable("f", index): places.line("f", index) for index in range(8)}
    line = text[: text.index(f"{variable} =\n")].count("\n") + 1
    assert found[variable] == f"src/sum.cpp:{line}"
