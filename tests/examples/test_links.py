"""Calls of examples and declarations of the CPU backend, linked with ttnn."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.link_check import ROOT, check, project_objects, read_header_only
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain
from ttcodegen.systems.releases import CATALOGUE_RELEASE, DEFAULT_RELEASE

from .test_examples import NAMES

COMPILED = ROOT / "build" / "link_check"
HEADER_ONLY = read_header_only(ROOT / "standalone" / "header_only.txt")

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", NAMES)
def test_the_objects_of_an_example_link(
    example: Callable[[str], Path], ttnn_libraries: Path, name: str
) -> None:
    objects = project_objects(example(name), COMPILED, DEFAULT_RELEASE)
    assert objects
    assert check(objects, [], ttnn_libraries, HEADER_ONLY) == []


def test_all_functions_of_the_cpu_backend_are_in_the_release(
    cpu_backend: CPUBackend, ttnn_libraries_of: Callable[[str], Path]
) -> None:
    """Its functions have the form of the release that the catalogue states."""
    libraries = ttnn_libraries_of(CATALOGUE_RELEASE.name)
    library = cpu_backend.folder / "lib" / "libttcodegen_cpu.a"
    assert check([], [library], libraries, HEADER_ONLY) == []


def test_a_wrong_parameter_type_does_not_link(
    toolchain: Toolchain, ttnn_libraries: Path, tmp_path: Path
) -> None:
    source, target = tmp_path / "wrong.cpp", tmp_path / "wrong.o"
    source.write_text(
        "namespace ttnn { struct Wrong {}; void relu(Wrong); void call() { relu({}); } }"
    )
    subprocess.run([toolchain.compiler, "-c", source, "-o", target], check=True)
    assert check([target], [], ttnn_libraries, HEADER_ONLY) == ["ttnn::relu(ttnn::Wrong)"]
