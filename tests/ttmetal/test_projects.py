"""Whole projects of device programs: written, built, run on the emulated device, compared."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import ttcodegen
from scripts.link_check import ROOT, check, project_objects, read_header_only
from ttcodegen.cli.ttcodegen import main
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.systems.releases import DEFAULT_RELEASE

SOURCE = """
module {
  func.func @forward(
      %x: tensor<40x64xbf16> {ttir.name = "x"},
      %w: tensor<64x96xbf16> {ttir.name = "layer.weight",
                              ttcore.argument_type = #ttcore.argument_type<parameter>}
  ) -> (tensor<40x96xf32> {ttir.name = "y"}, tensor<96x40xbf16> {ttir.name = "t"}) {
    %0 = "ttir.matmul"(%x, %w) : (tensor<40x64xbf16>, tensor<64x96xbf16>) -> tensor<40x96xbf16>
    %1 = "ttir.constant"() <{value = dense<"0x%s"> : tensor<1x96xf32>}> : () -> tensor<1x96xf32>
    %2 = "ttir.typecast"(%0) : (tensor<40x96xbf16>) -> tensor<40x96xf32>
    %3 = "ttir.add"(%2, %1) : (tensor<40x96xf32>, tensor<1x96xf32>) -> tensor<40x96xf32>
    %4 = "ttir.transpose"(%0) <{dim0 = 0 : si32, dim1 = 1 : si32}>
        : (tensor<40x96xbf16>) -> tensor<96x40xbf16>
    return %3, %4 : tensor<40x96xf32>, tensor<96x40xbf16>
  }
  func.func @square(%x: tensor<3x50xf32>) -> tensor<3x50xf32> {
    %0 = "ttir.multiply"(%x, %x) : (tensor<3x50xf32>, tensor<3x50xf32>) -> tensor<3x50xf32>
    return %0 : tensor<3x50xf32>
  }
  func.func @echo(%x: tensor<4xi1>) -> tensor<4xi1> {
    return %x : tensor<4xi1>
  }
  func.func @nothing() {
    return
  }
}
""".replace("0x%s", "0x" + np.arange(96, dtype="<f4").tobytes().hex())


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A module with a weight, a constant, and functions with and without programs."""
    path = tmp_path_factory.mktemp("source") / "tiny.mlir"
    path.write_text(SOURCE)
    return path


def test_a_project_is_written(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main([str(source), "-o", str(out), "--target", "ttmetal"]) == 0
    assert {path.name for path in out.iterdir()} == {
        *("CMakeLists.txt", "CMakePresets.json", "README.md", ".clang-format"),
        *("src", "include", "support", "kernels", "data", "model.ttm", "manifest.json"),
        ".ttcodegen",
    }
    manifest = json.loads((out / "manifest.json").read_text())
    listed = {row["path"] for row in manifest["files"]}
    assert {kernel["file"] for kernel in manifest["kernels"]} <= listed
    programs = {program["name"] for program in manifest["programs"]}
    assert {kernel["program"] for kernel in manifest["kernels"]} == programs
    for path in out.rglob("*.[ch]pp"):
        assert str(tmp_path) not in path.read_text()


def test_ops_without_a_program_run_on_the_cpu(tmp_path: Path) -> None:
    path = tmp_path / "powers.mlir"
    path.write_text(
        """
        func.func @f(%x: tensor<4x4xi32>) -> tensor<4x4xi32> {
          %0 = "ttir.pow"(%x, %x) : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi32>
          return %0 : tensor<4x4xi32>
        }
        """
    )
    out = tmp_path / "out"
    assert main([str(path), "-o", str(out), "--target", "ttmetal"]) == 0
    assert "cpu_pow(last_use(x_on_host)" in (out / "src" / "powers.cpp").read_text()
    source = " ".join((out / "src" / "cpu_functions.cpp").read_text().split())
    assert "cpu::pow({ElementType::int32, {4, 4}}" in source
    assert {path.name for path in (out / "support" / "cpu").iterdir()} == {
        *("elementwise.hpp", "tensor.hpp", "transfer.hpp"),
    }
    [function] = json.loads((out / "manifest.json").read_text())["cpu_functions"]
    assert (function["ops"], function["calls"]) == (["ttir.pow"], 1)


@pytest.fixture(scope="module")
def built(
    source: Path, cpu_backend: CPUBackend, tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> Path:
    """The project, checked and built once for all tests, which do not change it."""
    own = tmp_path_factory.getbasetemp()
    folder = (own if worker_id == "master" else own.parent) / "built-ttmetal"
    folder.mkdir(exist_ok=True)
    out = folder / "tiny"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (out / "check.json").exists():
            arguments = [str(source), "-o", str(out), "--target", "ttmetal", "--force"]
            assert main([*arguments, "--kind", "both", "--check"]) == 0
    return out


@pytest.mark.slow
def test_the_three_runs_agree(built: Path) -> None:
    report = json.loads((built / "check.json").read_text())
    assert report["passed"] is True
    assert [(row["function"], row["name"]) for row in report["outputs"]] == [
        ("forward", "y"),
        ("forward", "t"),
        ("square", "output"),
        ("echo", "output"),
    ]


@pytest.mark.slow
def test_the_library_runs_again_and_again(built: Path) -> None:
    generator = np.random.default_rng(0)
    with ttcodegen.load(built) as model:
        for _ in range(3):
            values = generator.normal(size=(3, 50)).astype(np.float32)
            np.testing.assert_allclose(model.square(values), values * values, rtol=1e-6)


BLACKHOLE = """
func.func @scaled(%x: tensor<416x320xbf16>, %y: tensor<416x320xbf16>) -> tensor<416x320xbf16> {
  %0 = "ttir.multiply"(%x, %y)
      : (tensor<416x320xbf16>, tensor<416x320xbf16>) -> tensor<416x320xbf16>
  return %0 : tensor<416x320xbf16>
}
"""
"""A tile for each core of a blackhole."""


@pytest.mark.slow
def test_a_project_runs_on_the_card_that_it_is_compiled_for(
    cpu_backend: CPUBackend, tmp_path: Path
) -> None:
    source, out = tmp_path / "tiny.mlir", tmp_path / "out"
    source.write_text(BLACKHOLE)
    arguments = [str(source), "-o", str(out), "--target", "ttmetal", "--kind", "both", "--check"]
    assert main([*arguments, "--system-desc", "blackhole"]) == 0
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["arch"] == "blackhole"
    # The library emulates that card too, whatever others in this process do.
    with ttcodegen.load(out, seed=0) as model:
        model.scaled(*np.ones((2, 416, 320), np.float32))
    assert "TTCODEGEN_ARCH" not in os.environ
    # Who asks for another card gets that one.
    done = run(out, TTCODEGEN_ARCH="wormhole_b0")
    assert done.returncode == 3


def run(built: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the executable."""
    command = [str(built / "build" / "tiny_main"), *arguments]
    return subprocess.run(
        command,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.slow
def test_kernels_are_found_where_the_environment_says(built: Path, tmp_path: Path) -> None:
    kernels = tmp_path / "kernels"
    shutil.copytree(built / "kernels", kernels)
    for path in kernels.glob("compute_*.cpp"):
        path.write_text("#error this one\n")
    done = run(built, "--function=square", TTCODEGEN_KERNELS=str(kernels))
    assert done.returncode == 3
    assert "this one" in done.stderr


@pytest.mark.slow
def test_a_wrong_weight_is_refused(built: Path, tmp_path: Path) -> None:
    file = tmp_path / "w.npy"
    np.save(file, np.zeros((96, 64), np.float32))
    done = run(built, f"--input=layer.weight={file}")
    assert done.returncode == 3
    assert "weight 'layer.weight': expected the shape (64, 96), found (96, 64)" in done.stderr


@pytest.mark.slow
def test_what_the_host_calls_is_in_the_release(built: Path, ttnn_libraries: Path) -> None:
    objects = project_objects(built, ROOT / "build" / "link_check", DEFAULT_RELEASE)
    assert objects
    header_only = read_header_only(ROOT / "standalone" / "header_only.txt")
    assert check(objects, [], ttnn_libraries, header_only) == []


@pytest.mark.slow
def test_kernels_that_were_cut_off_in_the_cache_are_compiled_again(
    built: Path, tmp_path: Path
) -> None:
    assert run(built, TTCODEGEN_CACHE=str(tmp_path)).returncode == 0
    kernels = {file: file.stat().st_size for file in tmp_path.rglob("kernels/*.so")}
    assert kernels
    for length in (5000, 0):
        for file in kernels:
            os.truncate(file, length)
        assert run(built, TTCODEGEN_CACHE=str(tmp_path)).returncode == 0
        # The name of a temporary file, whose length differs from run to run, is in the library.
        sizes = {file: file.stat().st_size for file in kernels}
        assert all(sizes[file] > 0.9 * kernels[file] > length for file in kernels)
