"""Runs of the C++: what a check refuses before it starts, and processes that end together."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ttcodegen.cli.ttcodegen import main
from ttcodegen.project import running
from ttcodegen.project.processes import mpi_launcher, run_program

ADDING = """
!t = tensor<8192x16384xf32>
module {
  func.func @forward(%x: !t, %y: !t) -> !t {
    %0 = "ttir.add"(%x, %y) : (!t, !t) -> !t
    return %0 : !t
  }
}
"""
LARGEST_MESH = """
#devices = #ttcore.shard_type<devices>
#divided = #ttcore.shard_direction<full_to_shard>
module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 16x8>]>} {
  func.func @forward(%x: tensor<64x128xbf16>, %w: tensor<128x96xbf16>) -> tensor<64x96xbf16> {
    %0 = "ttir.mesh_shard"(%x) <{shard_dims = array<i64: -1, 1>, shard_shape = array<i64: 1, 8>,
      shard_type = #devices, shard_direction = #divided}>
      : (tensor<64x128xbf16>) -> tensor<64x16xbf16>
    %1 = "ttir.mesh_shard"(%w) <{shard_dims = array<i64: -1, 0>, shard_shape = array<i64: 8, 1>,
      shard_type = #devices, shard_direction = #divided}>
      : (tensor<128x96xbf16>) -> tensor<16x96xbf16>
    %2 = "ttir.matmul"(%0, %1)
      : (tensor<64x16xbf16>, tensor<16x96xbf16>) -> tensor<64x96xbf16>
    %3 = "ttir.all_reduce"(%2) <{reduce_type = #ttcore.reduce_type<sum>, cluster_axis = 1 : ui32}>
      : (tensor<64x96xbf16>) -> tensor<64x96xbf16>
    return %3 : tensor<64x96xbf16>
  }
}
"""


@pytest.mark.parametrize(("mesh", "needed"), [("8x4", "49.5"), ("8x8", "97.5")])
def test_a_check_that_has_no_memory_for_the_tensors_of_all_devices_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mesh: str,
    needed: str,
) -> None:
    """Two arguments and a result of half a gibibyte each, on each device and in numpy."""
    module = tmp_path / "m.mlir"
    module.write_text(ADDING)
    out = tmp_path / "out"
    command = [str(module), "-o", str(out), "--mesh-shape", mesh]
    monkeypatch.setattr(running, "_memory_of_machine", lambda: 3 << 30)
    assert main([*command, "--check"]) == 1
    said = f"the check on a mesh of {mesh} takes at least {needed} GiB of memory, and this machine "
    assert said + "has 3.0 GiB" in capsys.readouterr().err
    assert not out.exists()
    assert main(command) == 0


@pytest.mark.slow
@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_the_largest_mesh_is_checked(tmp_path: Path, target: str) -> None:
    """128 devices, which sum what the 8 of each row computed."""
    module = tmp_path / "m.mlir"
    module.write_text(LARGEST_MESH)
    assert main([str(module), "-o", str(tmp_path / "out"), "--target", target, "--check"]) == 0
    (output,) = json.loads((tmp_path / "out" / "check.json").read_text())["outputs"]
    assert output["golden_pcc"] > 0.999


def test_the_program_ends_with_the_compiler(tmp_path: Path) -> None:
    number = tmp_path / "number"
    script = tmp_path / "program"
    script.write_text(
        f"#!/bin/sh\necho $$ > {number}.new\nmv {number}.new {number}\nexec sleep 99\n"
    )
    script.chmod(0o755)
    imported = "from ttcodegen.project.processes import run_program"
    text = f"{imported}; run_program([{str(script)!r}], 600, {{}})"
    compiler = subprocess.Popen([sys.executable, "-c", text])
    try:
        _wait_until(number.is_file)
    finally:
        compiler.send_signal(signal.SIGKILL)
        compiler.wait()
    program = int(number.read_text())
    _wait_until(lambda: not _is_running(program))


def test_a_program_that_the_kernel_kills_is_told_of(tmp_path: Path) -> None:
    script = tmp_path / "program"
    script.write_text("#!/bin/sh\nkill -9 $$\n")
    script.chmod(0o755)
    said = run_program([str(script)], 60, {})
    assert said == "the program was killed: the machine may have had too little memory for it"


def test_the_last_words_of_a_simulator_say_why_a_program_ended(tmp_path: Path) -> None:
    script = tmp_path / "program"
    script.write_text("#!/bin/sh\necho '[7] ERROR: UndefinedBehavior: sem: value=16'\nexit 1\n")
    script.chmod(0o755)
    said = run_program([str(script)], 60, {})
    assert said == "the program ended with status 1: UndefinedBehavior: sem: value=16"


@pytest.mark.skipif(not mpi_launcher(2), reason="MPI is not installed")
@pytest.mark.parametrize(
    ("what", "said"),
    [
        # Open MPI does not always name the process.
        ("kill -9 $$", "the program ended with status 137: (process 1|a process) was ended by SIG"),
        ("echo 'error: no x' >&2; exit 3", "the program ended with status 3: no x$"),
    ],
)
def test_a_process_of_several_that_fails_ends_all_with_one_line(
    tmp_path: Path, what: str, said: str
) -> None:
    script = tmp_path / "program"
    script.write_text(
        f'#!/bin/sh\nif [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then {what}; fi\n'
        f"echo $$ > {tmp_path}/other\nexec sleep 99\n"
    )
    script.chmod(0o755)
    assert re.match(said, run_program([*mpi_launcher(2), str(script)], 60, {}) or "")
    other = tmp_path / "other"
    if other.is_file():
        _wait_until(lambda: not _is_running(int(other.read_text())))


def _wait_until(holds: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def _is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
