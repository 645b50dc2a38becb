"""Projects are built by CMake, by us and by hand."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from scripts.link_check import EXACT
from tests.project.conftest import write
from tests.project.test_program import run
from ttcodegen.compilation import CompiledModule
from ttcodegen.project.building import BUILD_FOLDER, BuiltProject, build_project
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import BuildError, Toolchain
from ttcodegen.systems.releases import DEFAULT_RELEASE, release_named

pytestmark = pytest.mark.slow


def _log(project: Path) -> str:
    return (project / BUILD_FOLDER / "ttcodegen.log").read_text()


def test_only_what_changed_is_built_again(
    compiled: CompiledModule, project: Path, toolchain: Toolchain
) -> None:
    built = build_project(project, "tiny", toolchain, "exe")
    assert built == BuiltProject(project / BUILD_FOLDER / "tiny_main", None)
    write(compiled, project)
    build_project(project, "tiny", toolchain, "exe")
    assert "no work to do" in _log(project)
    source = project / "src" / "main.cpp"
    source.write_text(source.read_text() + "\n")
    build_project(project, "tiny", toolchain, "exe")
    log = _log(project)
    assert "main.cpp.o" in log
    assert "entry_points.cpp.o" not in log


def test_an_error_is_reported_with_its_log(project: Path, toolchain: Toolchain) -> None:
    (project / "src" / "main.cpp").write_text("int main() { return nothing; }\n")
    with pytest.raises(BuildError, match=r"main\.cpp:1:.*error.*nothing") as error:
        build_project(project, "tiny", toolchain, "exe")
    log = project / BUILD_FOLDER / "ttcodegen.log"
    assert f"the log is {log}" in error.value.render()
    assert "nothing" in log.read_text()


def test_an_error_of_cmake_is_reported(project: Path, toolchain: Toolchain) -> None:
    (project / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.20)\nnothing()\n")
    with pytest.raises(BuildError, match="CMake Error"):
        build_project(project, "tiny", toolchain, "exe")


def _cmake(toolchain: Toolchain, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [toolchain.cmake, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_builds_by_hand_without_warnings(
    project: Path, toolchain: Toolchain, cpu_backend: CPUBackend, tmp_path: Path
) -> None:
    """No precompiled header hides a missing include here."""
    build, installed = tmp_path / "hand", tmp_path / "installed"
    options = [f"-DCMAKE_MAKE_PROGRAM={toolchain.ninja}", "-DCMAKE_CXX_FLAGS=-Werror"]
    options += [f"-DCMAKE_CXX_COMPILER={toolchain.compiler}", f"-DCMAKE_INSTALL_PREFIX={installed}"]
    options += [f"-DTTCODEGEN_CPU_DIR={cpu_backend.folder}", "-DCMAKE_INSTALL_LIBDIR=lib"]
    done = _cmake(toolchain, "-G", "Ninja", "-S", project, "-B", build, *options)
    assert done.returncode == 0, done.stderr
    done = _cmake(toolchain, "--build", build, "--target", "install")
    assert done.returncode == 0, done.stdout
    assert (installed / "include" / "tiny.h").is_file()
    assert (installed / "lib" / "libtiny.so").is_file()
    # What is built anywhere finds the data in the project, what is installed next to itself.
    for program in (build / "tiny_main", installed / "bin" / "tiny_main"):
        assert run(program, "--function", "forward").returncode == 0
    changed = np.zeros((2, 2), np.float32)
    np.save(installed / "data" / "offset.npy", changed)
    done = run(installed / "bin" / "tiny_main", "--function", "forward")
    assert "expected the shape (2, 3), found (2, 2)" in done.stderr


def test_modules_of_different_kinds_share_what_both_need(
    compiled: CompiledModule, toolchain: Toolchain, cpu_backend: CPUBackend, tmp_path: Path
) -> None:
    """The first one lacks the functions of the C API, the second the command line."""
    own = ""
    for kind, name in (("exe", "first"), ("so", "second")):
        described = dataclasses.replace(compiled.description, kind=kind, name=name)
        write(dataclasses.replace(compiled, description=described), tmp_path / name)
        own += f"add_subdirectory({name})\n"
    head = "cmake_minimum_required(VERSION 3.20)\nproject(both LANGUAGES CXX)\n"
    (tmp_path / "CMakeLists.txt").write_text(head + own)
    options = [f"-DCMAKE_MAKE_PROGRAM={toolchain.ninja}"]
    options += [f"-DCMAKE_CXX_COMPILER={toolchain.compiler}"]
    options += [f"-DTTCODEGEN_CPU_DIR={cpu_backend.folder}"]
    build = tmp_path / "build"
    done = _cmake(toolchain, "-G", "Ninja", "-S", tmp_path, "-B", build, *options)
    assert done.returncode == 0, done.stderr
    (unity,) = build.rglob("ttcodegen_support_ttnn.dir/Unity/*.cxx")
    included = re.findall(r'#include ".*/(\w+)\.cpp"', unity.read_text())
    shared = ["array", "drawing", "files", "model", "tensors"]
    assert sorted(included) == sorted([*shared, "capi", "comparison", "program"])


def test_what_a_kind_lacks_is_not_built(
    compiled: CompiledModule, toolchain: Toolchain, tmp_path: Path
) -> None:
    described = dataclasses.replace(compiled.description, kind="exe")
    write(dataclasses.replace(compiled, description=described), tmp_path / "out")
    with pytest.raises(BuildError, match="was written without a shared object"):
        build_project(tmp_path / "out", "tiny", toolchain, "so")


def test_the_backend_is_found_in_the_cache(
    project: Path, toolchain: Toolchain, cpu_backend: CPUBackend, tmp_path: Path
) -> None:
    options = [f"-DCMAKE_MAKE_PROGRAM={toolchain.ninja}"]
    options += [f"-DCMAKE_CXX_COMPILER={toolchain.compiler}"]
    done = _cmake(toolchain, "-G", "Ninja", "-S", project, "-B", tmp_path / "b", *options)
    assert done.returncode == 0, done.stderr
    assert f"CPU backend: {cpu_backend.folder.parent}/cpu-" in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-DTTCODEGEN_CPU_DIR=/nothing"], "The CPU backend of ttcodegen"),
        (["-DTTCODEGEN_BACKEND=gpu"], "TTCODEGEN_BACKEND is 'gpu'"),
        (["-DTTCODEGEN_BACKEND=tt-metal"], "tt-metal was not found"),
        (["-DTTCODEGEN_BACKEND=tt-metal", "-DTT_METAL_HOME=/nothing"], "build tt-metal first"),
    ],
)
def test_what_is_missing_is_reported(
    project: Path,
    toolchain: Toolchain,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    message: str,
) -> None:
    monkeypatch.delenv("TT_METAL_HOME", raising=False)
    options = [*options, f"-DCMAKE_MAKE_PROGRAM={toolchain.ninja}"]
    done = _cmake(toolchain, "-G", "Ninja", "-S", project, "-B", tmp_path / "b", *options)
    assert done.returncode != 0
    assert message in " ".join(done.stderr.split())


def test_it_links_with_the_real_libraries(
    project: Path,
    toolchain: Toolchain,
    cpu_backend: CPUBackend,
    ttnn_libraries: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tree like that of tt-metal, with the released libraries and our declarations of them, whose
    types are in the namespaces of the release."""
    home = tmp_path / "tt-metal"
    (home / "build").mkdir(parents=True)
    (home / "ttnn").mkdir()
    (home / "build" / "lib").symlink_to(ttnn_libraries.absolute())
    (home / "ttnn" / "api").symlink_to(cpu_backend.folder / "include")
    monkeypatch.setenv("TT_METAL_HOME", str(home))
    options = [f"-DCMAKE_MAKE_PROGRAM={toolchain.ninja}", "-DTTCODEGEN_BACKEND=tt-metal"]
    names = (*release_named(DEFAULT_RELEASE).definitions, EXACT)
    flags = " ".join(f"-D{name}" for name in names)
    options += [f"-DCMAKE_CXX_COMPILER={toolchain.compiler}", f"-DCMAKE_CXX_FLAGS={flags}"]
    # The libraries need others, which are nowhere near on most machines.
    options += ["-DCMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined"]
    options += ["-DCMAKE_SHARED_LINKER_FLAGS=-Wl,--no-undefined -Wl,--allow-shlib-undefined"]
    done = _cmake(toolchain, "-G", "Ninja", "-S", project, "-B", tmp_path / "b", *options)
    assert done.returncode == 0, done.stderr
    assert f"tt-metal: source tree {home}" in done.stdout
    done = _cmake(toolchain, "--build", tmp_path / "b")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "damaged", ["build.ninja", "CMakeFiles/rules.ninja", "CMakeCache.txt", ".ninja_log"]
)
@pytest.mark.parametrize("kept", [0.0, 0.5])
def test_a_build_folder_that_was_damaged_is_configured_again(
    compiled: CompiledModule, tmp_path: Path, toolchain: Toolchain, damaged: str, kept: float
) -> None:
    out = tmp_path / "out"
    write(compiled, out)
    build_project(out, "tiny", toolchain, "so")
    file = out / "build" / damaged
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * kept)])
    library = out / "build" / "libtiny.so"
    library.write_bytes(library.read_bytes()[:100])
    # CMake is asked again where its own files are newer.
    (out / "CMakeLists.txt").touch()
    built = build_project(out, "tiny", toolchain, "so").library
    assert built == library
    assert library.stat().st_size > 100
