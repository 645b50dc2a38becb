"""`perf` of programs of kernels: what the emulated device counts, in the columns of tt-metal."""

from __future__ import annotations

import csv
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.flatbuffers import result_of
from ttcodegen.cli.ttcodegen import main
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.rt.device_profile import (
    CoreCounts,
    KernelCounts,
    ProgramCounts,
    Trace,
    ZoneCounts,
    add_device_tracks,
    counts_of_launches,
    counts_of_second_run,
    device_log,
    zone_rows,
)
from ttcodegen.rt.op_times import DeviceCall
from ttcodegen.runtime.backend_reports import DEVICE_REPORT
from ttcodegen.systems.cards import performance

PRODUCT = """
func.func @product(%a: tensor<64x96xbf16>, %b: tensor<96x32xbf16>) -> tensor<64x32xbf16> {
  %0 = "ttir.matmul"(%a, %b) : (tensor<64x96xbf16>, tensor<96x32xbf16>) -> tensor<64x32xbf16>
  return %0 : tensor<64x32xbf16>
}
"""
COUNTERS = (
    "noc_read_bytes noc_written_bytes dram_read_bytes dram_written_bytes unpacked_tiles "
    "packed_tiles matmul_tiles fpu_tiles sfpu_tiles"
).split()


def counted(**counters: int) -> dict[str, int]:
    return dict.fromkeys(COUNTERS, 0) | counters


PROGRAM = ProgramCounts(
    (
        KernelCounts(
            "kernels/read.cpp",
            "NCRISC",
            tuple(CoreCounts((x, 18), counted(noc_read_bytes=3200 * x)) for x in (1, 2)),
        ),
        KernelCounts(
            "kernels/multiply.cpp", "TRISC", (CoreCounts((2, 18), counted(matmul_tiles=10)),)
        ),
    ),
    0.5,
    counted(noc_read_bytes=9600, dram_read_bytes=9600, matmul_tiles=10),
)


def test_counts_become_durations_of_the_slowest_core() -> None:
    """At 32 bytes and 1 cycle a nanosecond, and 16 cycles for each of two passes."""
    columns = DeviceCall(PROGRAM, "HiFi2", performance("wormhole_b0")).columns()
    assert columns["DEVICE NCRISC KERNEL DURATION [ns]"] == 200
    assert columns["DEVICE TRISC1 KERNEL DURATION [ns]"] == 320
    assert columns["DEVICE KERNEL DURATION [ns]"] == 320
    assert (columns["CORE COUNT"], columns["MATH FIDELITY"]) == (2, "HiFi2")
    assert columns["COMPUTE KERNEL SOURCE"] == "kernels/multiply.cpp"
    assert columns["NOC UTIL (%)"] == round(100 * 9600 / (2 * 2 * 32 * 320), 1)
    assert columns["DRAM BW UTIL (%)"] == round(100 * 9600 / (288 * 320), 1)


def test_the_log_of_the_device_has_the_zones_of_each_processor() -> None:
    programs = [(PROGRAM, "LoFi"), (PROGRAM, "LoFi")]
    lines = device_log(programs, "wormhole_b0", 64, performance("wormhole_b0")).splitlines()
    assert lines[0] == "ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000, Max Compute Cores: 64"
    columns = len(lines[1].split(","))
    assert columns == 15
    assert all(len(line.split(",")) == columns for line in lines[2:])
    assert "0,2,18,NCRISC,0,0,0,1,,,NCRISC-KERNEL,ZONE_START,0,kernels/read.cpp," in lines
    assert "0,2,18,NCRISC,0,200,0,1,,,NCRISC-KERNEL,ZONE_END,0,kernels/read.cpp," in lines
    # The second program begins when the slowest core of the first one is done.
    assert "0,1,18,NCRISC,0,300,0,2,,,NCRISC-KERNEL,ZONE_END,0,kernels/read.cpp," in lines


def test_zones_of_kernels_stand_in_the_log_and_in_the_trace() -> None:
    def zone(name: str, begin: int, end: int) -> ZoneCounts:
        return ZoneCounts(name, 12, {"noc_read_bytes": begin}, {"noc_read_bytes": end})

    core = CoreCounts(
        (1, 18), counted(noc_read_bytes=3200), (zone("a, b", 0, 1600), zone("c", 320, 640))
    )
    kernel = KernelCounts("out/build/../kernels/read.cpp", "NCRISC", (core, core))
    speed = performance("wormhole_b0")
    programs = [(ProgramCounts((kernel,), 0.5, counted()), "HiFi4")]
    lines = device_log(programs, "wormhole_b0", 64, speed).splitlines()
    assert all(len(line.split(",")) == 15 for line in lines[1:])
    assert "0,1,18,NCRISC,0,10,0,1,,,c,ZONE_START,12,out/kernels/read.cpp," in lines
    assert "0,1,18,NCRISC,0,50,0,1,,,a; b,ZONE_END,12,out/kernels/read.cpp," in lines
    file = "out/kernels/read.cpp"
    assert zone_rows(programs, speed) == [
        {"zone": "a, b", "file": file, "line": 12, "times": 2, "cycles": 100},
        {"zone": "c", "file": file, "line": 12, "times": 2, "cycles": 20},
    ]
    trace = Trace()
    add_device_tracks(trace, "device", programs, speed)
    ((track, spans),) = trace.processes["device"].items()
    assert track == "core 1-18 NCRISC"
    assert [(s.name, round(s.begin * 1e9), round(s.duration * 1e9)) for s in spans[:3]] == [
        ("read.cpp", 0, 100), ("a, b", 0, 50), ("c", 10, 10),
    ]  # fmt: skip


def test_zones_are_counted_for_each_kernel_of_a_core() -> None:
    """One source may run on both data movement processors; a compute kernel runs on three."""
    zone = (ZoneCounts("wait", 7, {}, {"noc_read_bytes": 320, "unpacked_tiles": 1}),)
    kernels = tuple(
        KernelCounts("kernels/all.cpp", processor, (CoreCounts((1, 18), counted(), zone),))
        for processor in ("BRISC", "NCRISC", "TRISC")
    )
    programs = [(ProgramCounts(kernels, 0.5, counted()), "HiFi4")]
    (row,) = zone_rows(programs, performance("wormhole_b0"))
    assert row["times"] == 3


def test_programs_that_the_process_ran_before_are_not_counted() -> None:
    """The backend writes all programs that it ever reported to the file that is named now."""
    reported: list[float] = []

    def run(*seconds: float) -> None:
        reported.extend(seconds)
        entries: list[dict[str, object]] = [
            {"kernels": [], "run_seconds": each, "total": {}} for each in reported
        ]
        if seconds:
            Path(os.environ[DEVICE_REPORT]).write_text(json.dumps(entries))

    def counts(first: list[float], second: list[float]) -> list[float]:
        found = counts_of_second_run(lambda: run(*first), lambda: run(*second))
        return [program.seconds for program in found]

    assert counts([1, 2], [3]) == [3]
    assert counts([4], [5, 6]) == [5, 6]
    assert counts([], [7]) == []
    assert reported == [1, 2, 3, 4, 5, 6]


def test_launches_on_a_mesh_count_what_the_first_chip_did() -> None:
    def ran(source: str, seconds: float) -> ProgramCounts:
        return ProgramCounts((KernelCounts(source, "BRISC", ()),), seconds, counted())

    programs = [ran("a", 1), ran("a", 2), ran("b", 3), ran("b", 4)]
    found = counts_of_launches(programs, 2)
    assert found is not None
    assert [program.seconds for program in found] == [1, 3]
    assert counts_of_launches(programs, 4) == programs
    assert counts_of_launches(programs, 1) is None
    assert counts_of_launches(programs, 3) is None
    assert counts_of_launches([], 1) is None


def test_the_log_has_the_number_of_the_chip() -> None:
    speed = performance("wormhole_b0")
    programs = [(replace(PROGRAM, chip=chip), "HiFi4") for chip in (0, 3)]
    rows = list(csv.reader(device_log(programs, "wormhole_b0", 64, speed).splitlines()[2:]))
    numbers = {(row[0], row[7]) for row in rows}
    assert numbers == {("0", "1"), ("3", "2")}


@pytest.mark.slow
def test_perf_fills_the_columns_of_the_device(cpu_backend: CPUBackend, tmp_path: Path) -> None:
    source, out = tmp_path / "product.mlir", tmp_path / "out"
    source.write_text(PRODUCT)
    arguments = [str(source), "-o", str(out), "--target", "ttmetal", "--build", "--kind", "so"]
    assert main(arguments) == 0
    args = {"binary": out / "model.ttm", "--loops": 2, "--artifact-dir": tmp_path / "perf"}
    code, result = result_of("Perf", args)
    assert code == 0
    with Path(result["perf_results"]).open() as table:
        rows = list(csv.DictReader(table))
    launches = [row for row in rows if row["OP TYPE"] == "tt_dnn_device"]
    assert len(launches) == 2
    for row in launches:
        # 2 x 1 tiles of a product of depth 3, each in four passes of 16 cycles.
        assert int(row["CORE COUNT"]) in (1, 2)
        passes = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}[row["MATH FIDELITY"]]
        products = 6 // int(row["CORE COUNT"])
        assert int(row["DEVICE TRISC1 KERNEL DURATION [ns]"]) == products * 16 * passes
        assert int(row["DEVICE KERNEL DURATION [ns]"]) > 0
        assert "matmul" in row["COMPUTE KERNEL SOURCE"]
    log = Path(result["device_log"]).read_text().splitlines()
    assert sum("TRISC_1" in line for line in log) == 2 * int(launches[0]["CORE COUNT"])
    _, result = result_of("Perf", {**args, "binary": out / "build" / "libproduct.so"})
    assert len(Path(result["device_log"]).read_text().splitlines()) == len(log)
    _, result = result_of("Perf", {**args, "--host-only": True})
    assert "device_log" not in result


def test_perf_goes_on_without_the_counts_of_a_shared_object_that_does_not_run(
    tmp_path: Path,
) -> None:
    source, out = tmp_path / "product.mlir", tmp_path / "out"
    source.write_text(PRODUCT)
    assert main([str(source), "-o", str(out), "--target", "ttmetal"]) == 0
    library = out / "build" / "libproduct.so"
    library.parent.mkdir()
    library.write_bytes(b"of another machine")
    code, result = result_of("Perf", {"binary": out / "model.ttm", "--artifact-dir": tmp_path})
    assert code == 0
    assert result["ops"]
    assert "device_log" not in result
