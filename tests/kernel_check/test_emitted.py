"""All kernels that ttcodegen emits compile with the device headers of the release."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest

from scripts.kernel_check_configuration import read_manifest
from tests.conftest import KernelFaults, locked
from tests.random_programs.checking import module_of
from tests.ttmetal import elementwise, modules
from ttcodegen.cli.ttcodegen import main
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.lang.projects.programs import run_program_text
from ttcodegen.lang.projects.projects import Projects
from ttcodegen.systems.releases import DEFAULT_RELEASE, RELEASES

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = ROOT / "kernels"
EXAMPLES = {
    path.stem: path
    for path in (
        ROOT / "examples" / "stitching" / "decoder.mlir",
        ROOT / "examples" / "stitching" / "encoder.mlir",
        ROOT / "examples" / "transformer" / "transformer.mlir",
        ROOT / "tests" / "op_cases" / "meshes.mlir",
    )
}
"""Those that there are programs for."""
PROGRAMS = {
    "printed": [],
    "row_major": ["5", "96", "5", "16", "5", "i32"],
    "elementwise": ["128", "64", "2", "1", "1"],
    "elements": [],
}
"""Programs of TT-Lang, whose kernels alone print, compute with rows, broadcast one block or access
single elements, and their arguments."""
NAMES = (*modules.MODULES, *elementwise.ELEMENTS, "typecasts", *EXAMPLES)
"""Modules that the tests run on the emulated device; by data type those with elementwise ops."""
OTHER = next(name for name in RELEASES if name != DEFAULT_RELEASE)
"""A release that is not the default: a sample is written for it."""
ON_BLACKHOLE = ("matmuls", "bf16")

pytestmark = pytest.mark.slow


def text_of(name: str) -> str:
    """The text of a module."""
    if name in EXAMPLES:
        return EXAMPLES[name].read_text("utf-8")
    if name in modules.MODULES:
        return modules.text_of(name)
    if name in elementwise.ELEMENTS:
        return module_of(elementwise.functions(name))
    return module_of(elementwise.typecasts())


def emitted(name: str, arch: str, folder: Path, release: str = DEFAULT_RELEASE) -> Path:
    """The project of a module for a release."""
    source = folder / f"{name}.mlir"
    source.write_text(text_of(name), "utf-8")
    out = folder / name
    options = ["--target", "ttmetal", "--arch", arch, "--tt-metal", release]
    assert main([str(source), "-o", str(out), *options]) == 0
    return out


class EmittedProjects(Protocol):
    """Gives the projects of modules, each written once in a test run."""

    def __call__(
        self, name: str, arch: str = "wormhole_b0", release: str = DEFAULT_RELEASE
    ) -> Path:
        """The folder of a project, which is not to be changed."""
        ...


@pytest.fixture(scope="session")
def emitted_once(shared_folder: Path) -> EmittedProjects:
    """Gives the projects of modules, each written once in a test run."""

    def project(name: str, arch: str = "wormhole_b0", release: str = DEFAULT_RELEASE) -> Path:
        folder = shared_folder / "emitted" / f"{arch}-{release}"
        with locked(folder / f"{name}.lock"):
            if not (folder / name / "manifest.json").exists():
                emitted(name, arch, folder, release)
        return folder / name

    return project


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        *((name, "wormhole_b0") for name in NAMES),
        *((name, "blackhole") for name in ON_BLACKHOLE),
    ],
)
def test_emitted_kernels_compile(
    kernel_faults: KernelFaults, emitted_once: EmittedProjects, name: str, arch: str
) -> None:
    kernels = read_manifest(emitted_once(name, arch) / "manifest.json")
    assert {kernel.arch for kernel in kernels} == {arch}
    assert kernel_faults(kernels) == []


def emitted_program(name: str, folder: Path, release: str = DEFAULT_RELEASE) -> list[Path]:
    """The projects of the operations of a program of TT-Lang."""
    program = Source.read(str(ROOT / "tests" / "lang" / "programs" / f"{name}.py"))
    projects = Projects(program.digest, folder / name, release=release)
    run_program_text(program, PROGRAMS[name], projects.watch)
    return list(projects.written)


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_of_operations_compile(
    kernel_faults: KernelFaults, tmp_path: Path, name: str
) -> None:
    folders = emitted_program(name, tmp_path)
    kernels = [kernel for each in folders for kernel in read_manifest(each / "manifest.json")]
    assert kernels
    assert kernel_faults(kernels) == []


@pytest.mark.parametrize("name", ["matmuls", "reductions", "printed"])
def test_kernels_compile_for_another_release(
    kernel_faults: KernelFaults, emitted_once: EmittedProjects, tmp_path: Path, name: str
) -> None:
    if name in PROGRAMS:
        [folder] = emitted_program(name, tmp_path, OTHER)
    else:
        folder = emitted_once(name, release=OTHER)
    assert kernel_faults(read_manifest(folder / "manifest.json"), OTHER) == []


def test_the_modules_use_all_there_is_for_kernels(
    emitted_once: EmittedProjects, tmp_path: Path
) -> None:
    known = {path.relative_to(BLOCKS).as_posix() for path in BLOCKS.rglob("*.?pp")}
    folders = [emitted_once(name) for name in (*modules.MODULES, "meshes")]
    folders += [folder for name in PROGRAMS for folder in emitted_program(name, tmp_path)]
    for name in ("printed", "elementwise"):
        folders += emitted_program(name, tmp_path / OTHER, OTHER)
    folders += [emitted_once("broadcasts", release=OTHER)]
    used: set[str] = set()
    for folder in folders:
        kernels = folder / "kernels"
        used |= {path.relative_to(kernels).as_posix() for path in kernels.rglob("*.?pp")}
    assert known <= used
