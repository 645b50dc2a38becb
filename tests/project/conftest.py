"""A small module with what a project can have: weights, constants, several functions and types."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path

import pytest

from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.project.building import BuiltProject, build_project
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.sources import render_project_files, render_sources
from ttcodegen.project.toolchain import Toolchain
from ttcodegen.project.writer import write_project

SOURCE = """
module {
  func.func @forward(
      %x: tensor<2x4xf32> {ttir.name = "x"},
      %w: tensor<4x3xf32> {ttir.name = "layer.weight",
                           ttcore.argument_type = #ttcore.argument_type<parameter>},
      %b: tensor<1x3xf32> {ttir.name = "layer.bias",
                           ttcore.argument_type = #ttcore.argument_type<constant>}
  ) -> (tensor<2x3xf32> {ttir.name = "y"}) {
    %0 = "ttir.matmul"(%x, %w) : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
    %1 = "ttir.add"(%0, %b) : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
    %2 = "ttir.constant"() <{value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>}>
        : () -> tensor<2x3xf32>
    %3 = "ttir.add"(%1, %2) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    return %3 : tensor<2x3xf32>
  }
  func.func @"types/of all"(
      %i: tensor<3xi64> {ttir.name = "i"}, %h: tensor<3xbf16> {ttir.name = "h"},
      %u: tensor<3xui16> {ttir.name = "u"}
  ) -> (tensor<3xi64>, tensor<3xbf16>, tensor<3xui16>, tensor<3xi1>) {
    %0 = "ttir.add"(%i, %i) : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %1 = "ttir.gt"(%h, %h) : (tensor<3xbf16>, tensor<3xbf16>) -> tensor<3xi1>
    return %0, %h, %u, %1 : tensor<3xi64>, tensor<3xbf16>, tensor<3xui16>, tensor<3xi1>
  }
}
"""


@pytest.fixture(scope="session")
def compiled() -> CompiledModule:
    """The module, compiled."""
    return compile_module(Source("tiny.mlir", SOURCE), CompileOptions("tiny"))


def write(compiled: CompiledModule, out: Path, *, force: bool = False) -> None:
    """Writes the project of a module, unformatted."""
    module = compiled.description
    sources = {**compiled.files, **render_sources(module)}
    files = {
        **sources,
        **render_project_files(module, sources),
        "model.ttnn": compiled.flatbuffer,
    }
    write_project(module, out, files, force=force)


@pytest.fixture
def project(compiled: CompiledModule, tmp_path: Path) -> Path:
    """A fresh project of the module, not built."""
    out = tmp_path / "tiny"
    write(compiled, out)
    return out


@pytest.fixture(scope="session")
def built(
    compiled: CompiledModule,
    toolchain: Toolchain,
    tmp_path_factory: pytest.TempPathFactory,
    worker_id: str,
) -> tuple[Path, BuiltProject]:
    """The project of the module, built once for all tests; they do not change it."""
    own = tmp_path_factory.getbasetemp()
    folder = (own if worker_id == "master" else own.parent) / "built"
    folder.mkdir(exist_ok=True)
    out = folder / "tiny"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not out.exists():
            write(compiled, out)
        return out, build_project(out, "tiny", toolchain, "both")


@pytest.fixture(scope="session")
def sanitized_program(
    compiled: CompiledModule,
    toolchain: Toolchain,
    cpu_backend: CPUBackend,
    tmp_path_factory: pytest.TempPathFactory,
    worker_id: str,
) -> Path:
    """The executable of the module, built under AddressSanitizer and UndefinedBehaviorSanitizer."""
    own = tmp_path_factory.getbasetemp()
    folder = (own if worker_id == "master" else own.parent) / "sanitized"
    folder.mkdir(exist_ok=True)
    out, build = folder / "tiny", folder / "build"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not out.exists():
            write(compiled, out)
            options = [f"-DCMAKE_MAKE_PROGRAM={toolchain.ninja}"]
            options += [f"-DCMAKE_CXX_COMPILER={toolchain.compiler}"]
            options += [f"-DTTCODEGEN_CPU_DIR={cpu_backend.folder}"]
            options += ["-DCMAKE_CXX_FLAGS=-fsanitize=address,undefined -fno-sanitize-recover=all"]
            configure = [toolchain.cmake, "-G", "Ninja", "-S", str(out), "-B", str(build)]
            subprocess.run([*configure, *options], check=True)
            subprocess.run([toolchain.ninja, "-C", str(build), "tiny_main"], check=True)
    return build / "tiny_main"
