"""The CPU backend is built once and kept."""

from __future__ import annotations

import dataclasses
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ttcodegen import __version__
from ttcodegen.project import cpu_backend
from ttcodegen.project.cache import cache_folder
from ttcodegen.project.cpu_backend import backend_sources, ensure_cpu_backend
from ttcodegen.project.toolchain import BuildError, Toolchain

CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(Backend LANGUAGES CXX)
file(APPEND "{count}" "built\\n")
add_library(backend STATIC a.cpp)
install(TARGETS backend ARCHIVE DESTINATION ${{CMAKE_INSTALL_LIBDIR}})
install(DIRECTORY include/ DESTINATION include)
"""


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A backend that builds fast and counts its builds, in a cache of its own."""
    folder = tmp_path / "standalone"
    operations = folder / "include" / "ttnn" / "operations"
    operations.mkdir(parents=True)
    (folder / "CMakeLists.txt").write_text(CMAKE.format(count=tmp_path / "count"))
    (folder / "a.cpp").write_text("int a() { return 1; }\n")
    for header in ("device.hpp", "types.hpp", "operations/relu.hpp"):
        (folder / "include" / "ttnn" / header).write_text("#pragma once\nint b();\n")
    monkeypatch.setenv("TTCODEGEN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cpu_backend, "backend_sources", lambda: folder)
    support = {"support/c.cpp": '#include "support/c.hpp"\n', "support/c.hpp": "int c();\n"}
    monkeypatch.setattr(cpu_backend, "support_files", lambda _target: support)
    return folder


def _builds(tmp_path: Path) -> int:
    return (tmp_path / "count").read_text().count("built")


def test_it_is_built_once(sources: Path, tmp_path: Path, toolchain: Toolchain) -> None:
    first = ensure_cpu_backend(toolchain)
    assert ensure_cpu_backend(toolchain) == first
    assert _builds(tmp_path) == 1
    assert (first.folder / "lib" / "libbackend.a").is_file()
    assert first.support_object.is_file()
    assert first.precompiled_header is not None
    assert "#include <ttnn/operations/relu.hpp>" in first.precompiled_header.read_text()
    link = tmp_path / "cache" / "ttcodegen" / f"cpu-{__version__}-{toolchain.name}"
    assert link.resolve() == first.folder


def test_two_at_once_build_it_once(sources: Path, tmp_path: Path, toolchain: Toolchain) -> None:
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(ensure_cpu_backend, [toolchain, toolchain]))
    assert results[0] == results[1]
    assert _builds(tmp_path) == 1


def test_other_sources_and_flags_are_other_builds(
    sources: Path, tmp_path: Path, toolchain: Toolchain
) -> None:
    first = ensure_cpu_backend(toolchain)
    flagged = ensure_cpu_backend(dataclasses.replace(toolchain, flags="-DX"))
    (sources / "a.cpp").write_text("int a() { return 2; }\n")
    changed = ensure_cpu_backend(toolchain)
    assert len({first.folder, flagged.folder, changed.folder}) == 3
    assert _builds(tmp_path) == 3


def test_tests_are_no_part_of_the_build(sources: Path, toolchain: Toolchain) -> None:
    first = ensure_cpu_backend(toolchain)
    (sources / "tests").mkdir()
    (sources / "tests" / "test.cpp").write_text("")
    assert ensure_cpu_backend(toolchain) == first


def test_old_builds_are_removed(sources: Path, toolchain: Toolchain) -> None:
    folders: list[Path] = []
    for number in range(5):
        (sources / "a.cpp").write_text(f"int a() {{ return {number}; }}\n")
        folders.append(ensure_cpu_backend(toolchain).folder)
        # Far enough apart for file systems with coarse times.
        os.utime(folders[-1] / "ready", (number, number))
    assert [folder.exists() for folder in folders] == [False, False, True, True, True]


def test_a_failed_build_names_its_log(sources: Path, tmp_path: Path, toolchain: Toolchain) -> None:
    (sources / "a.cpp").write_text("int a( { return 1; }\n")
    with pytest.raises(BuildError, match=r"the CPU backend did not build: .*error") as error:
        ensure_cpu_backend(toolchain)
    log = next(tmp_path.glob("cache/ttcodegen/*.log"))
    assert f"the log is {log}" in error.value.render()
    (sources / "a.cpp").write_text("int a() { return 1; }\n")
    assert ensure_cpu_backend(toolchain).folder.is_dir()


def test_a_cache_that_cannot_be_written(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toolchain: Toolchain
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TTCODEGEN_CACHE", str(tmp_path / "file"))
    with pytest.raises(BuildError, match="cannot write the cache folder") as error:
        ensure_cpu_backend(toolchain)
    assert "TTCODEGEN_CACHE" in error.value.render()


def test_the_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTCODEGEN_CACHE", "/a")
    monkeypatch.setenv("XDG_CACHE_HOME", "/b")
    monkeypatch.setenv("HOME", "/c")
    assert cache_folder() == Path("/a/ttcodegen")
    monkeypatch.setenv("TTCODEGEN_CACHE", "")
    assert cache_folder() == Path("/b/ttcodegen")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path("/c/.cache/ttcodegen")


def test_the_version_is_that_of_the_backend() -> None:
    text = (backend_sources() / "CMakeLists.txt").read_text()
    assert f"project(TTCodegenCPU VERSION {__version__} " in text
