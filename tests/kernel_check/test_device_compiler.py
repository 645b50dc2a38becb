"""Kernels through the vendor's compiler."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scripts.device_compiler import (
    PACKAGES,
    Compiled,
    DeviceCompiler,
    device_compiler,
    give_wormhole_libraries,
    report,
)
from scripts.kernel_check_configuration import read_manifest
from scripts.kernel_check_toolchain import ToolchainError, device_headers
from scripts.link_check import ROOT, LinkCheckError
from ttcodegen.cli.ttcodegen import main
from ttcodegen.systems.releases import RELEASES

WHEELS = ROOT / "build" / "wheels"
PRODUCT = """
func.func @product(%x: tensor<64x64xbf16>, %w: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %0 = "ttir.matmul"(%x, %w)
      : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %1 = "ttir.gelu"(%0) : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %1 : tensor<64x64xbf16>
}
"""
WRONG = """
#ifdef TRISC_MATH
#include "sfpi.h"
[[maybe_unused]] inline void wrong() { sfpi::dst_reg[0] = sfpi::no_such_function(1.0F); }
#endif
"""


def test_every_release_has_a_compiler() -> None:
    assert tuple(PACKAGES) == RELEASES


def test_wormhole_gets_libraries_without_the_instructions_of_blackhole(tmp_path: Path) -> None:
    (tmp_path / "gcc" / "bh-ilp32").mkdir(parents=True)
    for name in ("libgcc.a", "bh-ilp32/libgcc.a", "bh-ilp32/nano.a"):
        (tmp_path / "gcc" / name).write_text(name)
    wormhole = tmp_path / "gcc" / "wh-ilp32"
    wormhole.symlink_to("bh-ilp32")
    for _ in range(2):
        give_wormhole_libraries(tmp_path)
        assert [each.name for each in wormhole.iterdir()] == ["libgcc.a"]
        assert (wormhole / "libgcc.a").read_text() == "libgcc.a"


def test_the_report_has_sizes_and_errors() -> None:
    error = "/cache/ttnn-device/tt_metal/hw/inc/a.h:1:2: error: no"
    found = [
        Compiled(Path("out/kernels/a.cpp"), "math", 120, ()),
        Compiled(Path("out/kernels/a.cpp"), "pack", 0, (error,)),
    ]
    assert list(report(found)) == [
        "a.cpp [math]: 120 bytes",
        "a.cpp [pack]: does not compile",
        "    ttnn-device/tt_metal/hw/inc/a.h:1:2: error: no",
    ]


@pytest.mark.slow
@pytest.mark.device_compiler
@pytest.mark.parametrize("release", RELEASES)
def test_kernels_compile_for_each_release(release: str, tmp_path: Path) -> None:
    source, out = tmp_path / "model.mlir", tmp_path / "out"
    source.write_text(PRODUCT)
    arguments = [str(source), "-o", str(out), "-q", "--tt-metal", release, "--target", "ttmetal"]
    assert main(arguments) == 0
    try:
        folder = device_compiler(WHEELS, release)
        compiler = DeviceCompiler(folder, device_headers(WHEELS, release=release), jobs=2)
    except (LinkCheckError, ToolchainError) as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"the vendor's compiler cannot be had: {error}")
    kernels = read_manifest(out / "manifest.json")
    found = compiler.compile(kernels)
    assert {each.processor for each in found} >= {"BRISC", "NCRISC", "unpack", "math", "pack"}
    assert [line for each in found for line in each.errors] == []
    assert all(200 < each.size < 20_000 for each in found)
    # The vector code of math, which other compilers have no interface for.
    compute = next(kernel for kernel in kernels if kernel.processor == "compute")
    text = compute.file.read_text()
    compute.file.write_text(f"{text}{WRONG}")
    wrong = compiler.compile([compute])
    assert {each.processor for each in wrong if each.errors} == {"math"}
