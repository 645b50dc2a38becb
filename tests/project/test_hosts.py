"""Programs over several hosts: their files, and the processes that compute as one does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.optimizer.test_parallelism import CNN, EXPERTS, LLAMA
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.flatbuffer.system import load_system
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.project.processes import MPI_ENVIRONMENT
from ttcodegen.project.sources import project_files
from ttcodegen.systems.cards import joined_system

MODULE = """
#devices = #ttcore.shard_type<devices>
#divided = #ttcore.shard_direction<full_to_shard>
#whole = #ttcore.shard_direction<shard_to_full>
module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 4x2>]>} {
  func.func @forward(%x: tensor<64x128xbf16>,
      %w: tensor<128x96xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>})
      -> (tensor<64x96xbf16>, tensor<64x96xbf16>, tensor<256x96xbf16>) {
    %0 = "ttir.mesh_shard"(%x) <{shard_dims = array<i64: -1, 1>, shard_shape = array<i64: 1, 2>,
      shard_type = #devices, shard_direction = #divided}>
      : (tensor<64x128xbf16>) -> tensor<64x64xbf16>
    %1 = "ttir.mesh_shard"(%w) <{shard_dims = array<i64: -1, 0>, shard_shape = array<i64: 2, 1>,
      shard_type = #devices, shard_direction = #divided}>
      : (tensor<128x96xbf16>) -> tensor<64x96xbf16>
    %2 = "ttir.matmul"(%0, %1) : (tensor<64x64xbf16>, tensor<64x96xbf16>) -> tensor<64x96xbf16>
    %3 = "ttir.all_reduce"(%2) <{reduce_type = #ttcore.reduce_type<sum>, cluster_axis = 1 : ui32}>
      : (tensor<64x96xbf16>) -> tensor<64x96xbf16>
    %4 = "ttir.all_reduce"(%3) <{reduce_type = #ttcore.reduce_type<sum>, cluster_axis = 0 : ui32}>
      : (tensor<64x96xbf16>) -> tensor<64x96xbf16>
    %5 = "ttir.all_gather"(%3) <{all_gather_dim = 0 : si32, cluster_axis = 0 : ui32}>
      : (tensor<64x96xbf16>) -> tensor<256x96xbf16>
    %6 = "ttir.reduce_scatter"(%3) <{reduce_type = #ttcore.reduce_type<sum>, scatter_dim = 1 : si32,
      cluster_axis = 0 : ui32}> : (tensor<64x96xbf16>) -> tensor<64x24xbf16>
    %7 = "ttir.mesh_shard"(%6) <{shard_dims = array<i64: 1, -1>, shard_shape = array<i64: 4, 1>,
      shard_type = #devices, shard_direction = #whole}>
      : (tensor<64x24xbf16>) -> tensor<64x96xbf16>
    return %4, %7, %5 : tensor<64x96xbf16>, tensor<64x96xbf16>, tensor<256x96xbf16>
  }
}
"""

DESCRIPTOR = "hosts/mesh_graph_descriptor.textproto"
BINDINGS = "hosts/rank_bindings.yaml"
NEEDS_MPI = pytest.mark.skipif(
    not (shutil.which("mpirun") and shutil.which("mpicxx")), reason="MPI is not installed"
)


def written(**options: object) -> dict[str, str | bytes]:
    compiled = compile_module(Source("m.mlir", MODULE), CompileOptions("m", **options))  # type: ignore[arg-type]
    return project_files(compiled, formatted=False)


def test_the_files_for_tt_run_name_the_mesh_and_its_hosts() -> None:
    files = written(hosts=(2, 1), fabric="ring")
    descriptor, bindings = files[DESCRIPTOR], files[BINDINGS]
    assert isinstance(descriptor, str)
    assert isinstance(bindings, str)
    assert "arch: WORMHOLE_B0" in descriptor
    assert "device_topology { dims: [ 4, 2 ] dim_types: [ RING, RING ] }" in descriptor
    assert "host_topology { dims: [ 2, 1 ] }" in descriptor
    assert [line.split()[-1] for line in bindings.splitlines() if "mesh_host_rank" in line] == [
        "0",
        "1",
    ]
    assert f'mesh_graph_desc_path: "{DESCRIPTOR}"' in bindings


def test_a_machine_that_is_named_is_that_of_each_host() -> None:
    options = CompileOptions("m", system=load_system("n300"), mesh=(4, 2), hosts=(4, 1))
    compiled = compile_module(Source("m.mlir", MODULE), options)
    assert compiled.description.mesh == (4, 2)
    with pytest.raises(CompileError, match="needs 4 chips of each of 2x1 hosts, and the system"):
        compile_module(Source("m.mlir", MODULE), replace(options, hosts=(2, 1)))
    with pytest.raises(CompileError, match="a mesh of 4x2 needs 8 chips, and the system has 2"):
        compile_module(Source("m.mlir", MODULE), replace(options, hosts=(1, 1)))


def test_chips_of_joined_systems_are_counted_row_by_row() -> None:
    system = load_system("p150_x4")
    joined = joined_system(system, (1, 2))
    assert joined.mesh == (2, 4)
    assert joined.chip_coordinates == tuple((0, 0, row, x) for row in (0, 1) for x in range(4))
    assert joined.check().chip == system.chip
    # A chip that is reached by PCIe is the first of a row of its host.
    assert joined.chip_capabilities == (1, 0, 1, 0, 1, 0, 1, 0)


def test_the_mesh_of_all_hosts_is_divided() -> None:
    text = """func.func @relu(%x: tensor<512x512xbf16>) -> tensor<512x512xbf16> {
      %0 = "ttir.relu"(%x) : (tensor<512x512xbf16>) -> tensor<512x512xbf16>
      return %0 : tensor<512x512xbf16>
    }"""
    options = CompileOptions("m", system=load_system("t3000"), hosts=(2, 1), parallel="data=0")
    assert compile_module(Source("m.mlir", text), options).description.mesh == (4, 4)


def test_hosts_without_a_mesh_are_refused() -> None:
    text = """func.func @relu(%x: tensor<32x32xbf16>) -> tensor<32x32xbf16> {
      %0 = "ttir.relu"(%x) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
      return %0 : tensor<32x32xbf16>
    }"""
    with pytest.raises(CompileError, match="the program is for one chip") as error:
        compile_module(Source("m.mlir", text), CompileOptions("m", hosts=(2, 1)))
    assert "--mesh-shape" in (error.value.diagnostics[0].remedy or "")


@pytest.mark.parametrize("given", ["0x1", "2x1x2", "two"])
def test_what_is_no_grid_of_hosts_is_said_to_be_none(
    given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["m.mlir", "--hosts", given]) == 2
    assert f"--hosts: '{given}' is no grid of hosts" in capsys.readouterr().err


def test_leading_dimensions_of_one_chip_are_left_out(tmp_path: Path) -> None:
    module = tmp_path / "m.mlir"
    module.write_text(MODULE)
    out = str(tmp_path / "out")
    assert main([str(module), "-o", out, "-q", "--mesh-shape", "1x4x2"]) == 0


def test_a_program_of_one_host_has_nothing_of_several() -> None:
    files = written()
    assert DESCRIPTOR not in files
    assert "support/hosts.cpp" not in files
    for path in ("src/main.cpp", "CMakeLists.txt", "README.md"):
        assert "hosts" not in str(files[path])
        assert "TTCODEGEN_MPI" not in str(files[path])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (CompileOptions("m", hosts=(3, 1)), "4x2 chips does not divide among 3x1 hosts"),
        (CompileOptions("m", hosts=(1, 4)), "4x2 chips does not divide among 1x4 hosts"),
        (CompileOptions("m", "ttmetal", hosts=(2, 1)), "--target ttmetal run on one host"),
        (CompileOptions("m", hosts=(2, 1), kind="so"), "--kind so leaves out"),
    ],
)
def test_hosts_that_cannot_have_the_mesh_are_refused(options: CompileOptions, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        compile_module(Source("m.mlir", MODULE), options)


def run(out: Path, ranks: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["mpirun", "-np", str(ranks)] if ranks > 1 else []
    return subprocess.run(
        [*command, str(out / "build" / "m_main"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **MPI_ENVIRONMENT},
    )


@pytest.mark.slow
@NEEDS_MPI
def test_processes_compute_what_one_computes(tmp_path: Path) -> None:
    module, out = tmp_path / "m.mlir", tmp_path / "out"
    module.write_text(MODULE)
    assert main([str(module), "-o", str(out), "--hosts", "2x1", "--check"]) == 0
    outputs = json.loads((out / "check.json").read_text())["outputs"]
    assert len(outputs) == 3
    found: dict[int, list[bytes]] = {}
    for ranks in (1, 2, 4, 8):
        folder = tmp_path / f"outputs{ranks}"
        done = run(out, ranks, "--outputs", str(folder))
        assert done.returncode == 0, done.stderr
        # The first process prints and writes.
        assert done.stdout.count("forward\n") == 1
        found[ranks] = [path.read_bytes() for path in sorted(folder.rglob("*.npy"))]
        assert len(found[ranks]) == 3
    assert found[2] == found[1]
    assert found[4] == found[1]
    assert found[8] == found[1]

    wrong = run(out, 3)
    assert wrong.returncode != 0
    assert wrong.stderr.count("error: ") == 1
    assert "A mesh of 8 devices does not divide among 3 processes" in wrong.stderr

    script = tmp_path / "unlike"
    script.write_text(
        "#!/bin/sh\n"
        'if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then set -- --data /nonexistent; fi\n'
        f"exec {out}/build/m_main $@\n"
    )
    script.chmod(0o755)
    one_fails = subprocess.run(
        ["mpirun", "-np", "4", str(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **MPI_ENVIRONMENT},
    )
    assert one_fails.returncode != 0
    assert "error: --data: there is no folder '/nonexistent'" in one_fails.stderr


MODELS = {
    "llama": (LLAMA, "data=0,tensor=1", "2x1"),
    "experts": (EXPERTS, "expert=1", "1x2"),
    "cnn": (CNN, "data=1", "1x2"),
}


@pytest.mark.slow
@NEEDS_MPI
@pytest.mark.parametrize("name", MODELS)
def test_two_processes_compute_a_model_that_is_divided(name: str, tmp_path: Path) -> None:
    text, parallel, hosts = MODELS[name]
    module, out = tmp_path / "m.mlir", tmp_path / "out"
    module.write_text(text)
    given = [str(module), "-o", str(out), "--mesh-shape", "2x2", "--parallel", parallel]
    assert main([*given, "--hosts", hosts, "--check"]) == 0
    assert json.loads((out / "check.json").read_text())["passed"]
    found: list[list[bytes]] = []
    for ranks in (1, 2):
        folder = tmp_path / f"outputs{ranks}"
        done = run(out, ranks, "--outputs", str(folder))
        assert done.returncode == 0, done.stderr
        found.append([path.read_bytes() for path in sorted(folder.rglob("*.npy"))])
    assert found[0]
    assert found[1] == found[0]


ROWS = """
module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 4x1>]>} {
  func.func @forward(%x: tensor<32x16384xbf16> {ttcore.sharding = [array<i64>, array<i64: 0>]},
      %w: tensor<16384x8192xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>,
                                   ttcore.sharding = [array<i64: 0>, array<i64>]})
      -> tensor<32x8192xbf16> {
    %0 = "ttir.matmul"(%x, %w)
        : (tensor<32x16384xbf16>, tensor<16384x8192xbf16>) -> tensor<32x8192xbf16>
    return %0 : tensor<32x8192xbf16>
  }
}
"""


@pytest.mark.slow
@NEEDS_MPI
def test_a_process_reads_its_part_of_a_weight(tmp_path: Path) -> None:
    """The file has 256 MiB, a part 64: in the file, on the host, and on the device."""
    module, out, script = tmp_path / "m.mlir", tmp_path / "out", tmp_path / "measured.py"
    module.write_text(ROWS)
    given = [str(module), "-o", str(out), "--hosts", "4x1", "--kind", "exe"]
    assert main([*given, "--build"]) == 0
    shape = (16384, 8192)
    np.lib.format.open_memmap(out / "data" / "w.npy", "w+", np.dtype("V2"), shape).flush()
    script.write_text(
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True)\n"
        "print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)\n"
    )
    done = subprocess.run(
        ["mpirun", "-np", "4", sys.executable, str(script), str(out / "build" / "m_main")],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, **MPI_ENVIRONMENT},
    )
    assert done.returncode == 0, done.stderr
    peaks = [int(line.split()[1]) for line in done.stderr.splitlines() if line.startswith("peak")]
    assert len(peaks) == 4
    assert max(peaks) << 10 < (3 * 64 + 48) << 20
