"""Projects of `--kind sources`: the C++ of a model, for a program that calls its functions."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.examples.test_readability import MODELS
from ttcodegen.cli.ttcodegen import main
from ttcodegen.project.building import BuildError, build_project
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain

ROOT = Path(__file__).parents[2]
LINES_WITHOUT_DATA = 200
LINES_WITH_DATA = 1620
CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(caller LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
add_subdirectory("{project}" digits)
add_executable(caller main.cpp)
target_link_libraries(caller PRIVATE digits_objects)
"""
CALLER = """
#include <cstdio>
#include <ttnn/device.hpp>
#include <ttnn/operations/creation/creation.hpp>

#include "src/digits.hpp"

int main() {
    const auto device = ttnn::device::open_mesh_device(0);
    const auto constants = digits::prepare_classify(*device);
    const ttnn::Tensor images = ttnn::zeros(ttnn::Shape({360, 64}), ttnn::DataType::FLOAT32,
                                            ttnn::Layout::ROW_MAJOR, *device);
    const auto outputs = digits::classify({images}, constants, *device);
    for (const float score : outputs.scores.cpu().to_vector<float>()) {
        std::printf("%.6f\\n", score);
    }
    ttnn::device::close_device(*device);
}
"""


def support_of(project: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (project / "support").iterdir()}


@pytest.mark.parametrize("name", MODELS)
def test_support_is_what_the_model_needs(name: str, tmp_path: Path) -> None:
    if not MODELS[name].exists():
        pytest.skip(f"{name} is in no folder of this machine")
    out = tmp_path / "out"
    assert main([str(MODELS[name]), "-o", str(out), "-q", "--kind", "sources"]) == 0
    support = support_of(out)
    lines = sum(text.count("\n") for text in support.values())
    if any(out.joinpath("data").glob("*.npy")):
        assert lines <= LINES_WITH_DATA
        assert not support.keys() & {"model.cpp", "program.cpp", "capi.cpp"}
    else:
        assert support.keys() == {"backend.cmake"}
        assert lines <= LINES_WITHOUT_DATA
    readme = (out / "README.md").read_text()
    assert "_objects" in readme
    assert not [word for word in ("entry_points", "main.cpp", "capi") if word in readme]


@pytest.mark.slow
def test_a_program_calls_the_model(
    cpu_backend: CPUBackend, toolchain: Toolchain, tmp_path: Path
) -> None:
    project, build = tmp_path / "digits", tmp_path / "build"
    digits = ROOT / "examples" / "digits" / "digits.mlir"
    assert main([str(digits), "-o", str(project), "-q", "--kind", "sources"]) == 0
    (tmp_path / "CMakeLists.txt").write_text(CMAKE.format(project=project))
    (tmp_path / "main.cpp").write_text(CALLER)
    configure = [toolchain.cmake, "-G", "Ninja", "-S", str(tmp_path), "-B", str(build)]
    configure += [
        f"-DCMAKE_MAKE_PROGRAM={toolchain.ninja}",
        f"-DCMAKE_CXX_COMPILER={toolchain.compiler}",
        f"-DTTCODEGEN_CPU_DIR={cpu_backend.folder}",
    ]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([toolchain.cmake, "--build", str(build)], check=True, stdout=subprocess.DEVNULL)
    environment = {**os.environ, "TTCODEGEN_DATA": str(project / "data")}
    done = subprocess.run(
        [build / "caller"], env=environment, check=True, capture_output=True, text=True
    )
    scores = [float(line) for line in done.stdout.splitlines()]
    assert len(scores) == 360 * 10
    # All images are black: every row of probabilities is the same, and sums to one.
    assert scores[:10] == scores[-10:]
    assert sum(scores[:10]) == pytest.approx(1, abs=0.01)


@pytest.mark.slow
def test_sources_build_alone(cpu_backend: CPUBackend, toolchain: Toolchain, tmp_path: Path) -> None:
    assert cpu_backend.folder.is_dir()
    model = ROOT / "examples" / "transformer" / "transformer.mlir"
    out = tmp_path / "out"
    assert main([str(model), "-o", str(out), "-q", "--kind", "sources", "--build"]) == 0
    assert list(out.joinpath("build").rglob("transformer.cpp.o"))
    with pytest.raises(BuildError, match="without a shared object"):
        build_project(out, "transformer", toolchain, "so")
    with pytest.raises(BuildError, match="without an executable"):
        build_project(out, "transformer", toolchain, "exe")
