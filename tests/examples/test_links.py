"""Calls of examples and declarations of the CPU backend, linked with ttnn."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.link_check import ROOT, check, read_header_only
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain

from .test_examples import NAMES

HEADER_ONLY = read_header_only(ROOT / "standalone" / "header_only.txt")

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", NAMES)
def test_the_objects_of_an_example_link(
    example: Callable[[str], Path], cpu_backend: CPUBackend, ttnn_libraries: Path, name: str
) -> None:
    objects = sorted(example(name).glob(f"build/CMakeFiles/{name}_objects.dir/**/*.o"))
    assert objects
    objects.append(cpu_backend.support_object)
    assert check(objects, [], ttnn_libraries, HEADER_ONLY) == []


def test_all_functions_of_the_cpu_backend_are_in_the_release(
    cpu_backend: CPUBackend, ttnn_libraries: Path
) -> None:
    library = cpu_backend.folder / "lib" / "libttcodegen_cpu.a"
    assert check([], [library], ttnn_libraries, HEADER_ONLY) == []


def test_a_wrong_parameter_type_does_not_link(
    toolchain: Toolchain, ttnn_libraries: Path, tmp_path: Path
) -> None:
    source, target = tmp_path / "wrong.cpp", tmp_path / "wrong.o"
    source.write_text(
        "namespace ttnn { struct Wrong {}; void relu(Wrong); void call() { relu({}); } }"
    )
    subprocess.run([toolchain.compiler, "-c", source, "-o", target], check=True)
    assert check([target], [], ttnn_libraries, HEADER_ONLY) == ["ttnn::relu(ttnn::Wrong)"]
