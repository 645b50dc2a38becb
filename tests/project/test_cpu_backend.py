"""The CPU backend is built once and kept."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ttcodegen import __version__
from ttcodegen.foundation.cache import cache_folder, is_intact, vouch_for
from ttcodegen.project import cpu_backend
from ttcodegen.project.cpu_backend import backend_sources, ensure_cpu_backend
from ttcodegen.project.toolchain import BuildError, Toolchain, cmake_options

ROOT = Path(__file__).resolve().parents[2]

CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(Backend LANGUAGES CXX)
file(APPEND "{count}" "built\\n")
add_library(backend STATIC src/a.cpp)
install(TARGETS backend ARCHIVE DESTINATION ${{CMAKE_INSTALL_LIBDIR}})
install(DIRECTORY include/ DESTINATION include)
"""


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A backend that builds fast and counts its builds, in a cache of its own."""
    folder = tmp_path / "standalone"
    operations = folder / "include" / "ttnn" / "operations"
    operations.mkdir(parents=True)
    (folder / "src").mkdir()
    (folder / "CMakeLists.txt").write_text(CMAKE.format(count=tmp_path / "count"))
    (folder / "src" / "a.cpp").write_text("int a() { return 1; }\n")
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


@pytest.mark.parametrize(
    "damaged",
    [
        ["lib/*.a"],
        ["support-*.o"],
        ["include/**/*.hpp"],
        ["precompiled/*.gch", "precompiled/*.pch"],
        ["ready"],
        ["precompiled/*.ready", "support-*.ready"],
        # What is built of the sources is copied from there.
        ["lib/*.a", "../*.build/**/*.a"],
        ["lib/*.a", "../*.build/**/*.a", "../*.build/**/*.o"],
        ["lib/*.a", "../*.build/build.ninja", "../*.build/CMakeCache.txt"],
        ["lib/*.a", "../*.build/.ninja_log", "../*.build/.ninja_deps"],
        ["**/*", "../*.build/**/*"],
    ],
    ids=" ".join,
)
def test_files_that_were_emptied_are_built_again(
    sources: Path, toolchain: Toolchain, damaged: list[str]
) -> None:
    first = ensure_cpu_backend(toolchain)
    held = _holds(first.folder)
    emptied = 0
    for pattern in damaged:
        for file in list(first.folder.parent.glob(f"{first.folder.name}/{pattern}")):
            if file.is_file():
                status = file.stat()
                file.write_bytes(b"")
                os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
                emptied += 1
    assert emptied
    assert ensure_cpu_backend(toolchain) == first
    assert _holds(first.folder) == held


def _holds(folder: Path) -> dict[str, bool]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.stat().st_size > 0 for path in files}


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
    (sources / "src" / "a.cpp").write_text("int a() { return 2; }\n")
    changed = ensure_cpu_backend(toolchain)
    assert len({first.folder, flagged.folder, changed.folder}) == 3
    assert _builds(tmp_path) == 3


def test_what_packages_do_not_hold_is_no_part_of_the_build(
    sources: Path, toolchain: Toolchain
) -> None:
    first = ensure_cpu_backend(toolchain)
    (sources / "tests").mkdir()
    (sources / "tests" / "test.cpp").write_text("")
    (sources / "differences.tsv").write_text("")
    assert ensure_cpu_backend(toolchain) == first


def test_packages_hold_all_that_is_built() -> None:
    packaged = (ROOT / "pyproject.toml").read_text()
    for part in cpu_backend._PARTS_OF_SOURCES:
        assert f'"standalone/{part}" = "ttcodegen/_standalone/{part}"' in packaged


def _prebuilt(sources: Path, toolchain: Toolchain, tmp_path: Path, hash_: str) -> None:
    """Puts a compiled backend beside the sources, as platform wheels have it."""
    backend = sources.parent / cpu_backend.PREBUILT_FOLDER
    (tmp_path / "b.cpp").write_text("int b() { return 1; }\n")
    command = [toolchain.compiler, "-fPIC", "-c", str(tmp_path / "b.cpp"), "-o"]
    subprocess.run([*command, str(tmp_path / "b.o")], check=True)
    for level in cpu_backend.LEVELS[platform.machine()]:
        (backend / level / "lib").mkdir(parents=True)
        archive = backend / level / "lib" / "libbackend.a"
        subprocess.run(["ar", "rc", str(archive), str(tmp_path / "b.o")], check=True)
    (backend / cpu_backend.DESCRIPTION).write_text(json.dumps({"sources": hash_}))


@pytest.mark.skipif(platform.machine() not in cpu_backend.LEVELS, reason="no levels are known")
@pytest.mark.parametrize("why", [None, "other sources", "flags", "disabled", "old processor"])
def test_a_compiled_backend_is_used_where_it_suits(
    sources: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    toolchain: Toolchain,
    why: str | None,
) -> None:
    hash_ = "x" if why == "other sources" else cpu_backend.sources_hash(sources)
    _prebuilt(sources, toolchain, tmp_path, hash_)
    toolchain = dataclasses.replace(toolchain, flags="-DX" if why == "flags" else "")
    if why == "disabled":
        monkeypatch.setenv(cpu_backend.DISABLING_VARIABLE, "0")
    flags = frozenset[str]() if why == "old processor" else cpu_backend._V3
    monkeypatch.setattr(cpu_backend, "processor_flags", lambda: flags)
    found = ensure_cpu_backend(toolchain)
    assert (found.folder / "lib" / "libbackend.a").is_file()
    assert (found.folder / "include" / "ttnn" / "device.hpp").is_file()
    assert (tmp_path / "count").is_file() == (why is not None)


def test_a_backend_that_cannot_be_linked_is_compiled(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toolchain: Toolchain
) -> None:
    if platform.machine() not in cpu_backend.LEVELS:
        pytest.skip("no levels are known")
    _prebuilt(sources, toolchain, tmp_path, cpu_backend.sources_hash(sources))
    for archive in sources.parent.rglob("libbackend.a"):
        (tmp_path / "c.cpp").write_text("int newer();\nint c() { return newer(); }\n")
        command = [toolchain.compiler, "-fPIC", "-c", str(tmp_path / "c.cpp"), "-o"]
        subprocess.run([*command, str(tmp_path / "c.o")], check=True)
        subprocess.run(["ar", "rc", str(archive), str(tmp_path / "c.o")], check=True)
    monkeypatch.setattr(cpu_backend, "processor_flags", lambda: cpu_backend._V3)
    ensure_cpu_backend(dataclasses.replace(toolchain, flags=""))
    assert _builds(tmp_path) == 1


def test_old_builds_are_removed(sources: Path, toolchain: Toolchain) -> None:
    folders: list[Path] = []
    for number in range(5):
        (sources / "src" / "a.cpp").write_text(f"int a() {{ return {number}; }}\n")
        folders.append(ensure_cpu_backend(toolchain).folder)
        # Far enough apart for file systems with coarse times.
        os.utime(folders[-1] / "ready", (number, number))
    assert [folder.exists() for folder in folders] == [False, False, True, True, True]


def test_builds_in_use_stay(sources: Path, toolchain: Toolchain) -> None:
    folders: list[Path] = []
    for number in range(5):
        (sources / "src" / "a.cpp").write_text(f"int a() {{ return {number}; }}\n")
        folders.append(ensure_cpu_backend(toolchain).folder)
    assert all(folder.exists() for folder in folders)


def test_a_build_is_shared_between_places_of_installation(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toolchain: Toolchain
) -> None:
    first = ensure_cpu_backend(toolchain)
    for place in ("another/standalone", "package/_standalone"):
        shutil.copytree(sources, tmp_path / place)
        monkeypatch.setattr(cpu_backend, "backend_sources", lambda place=place: tmp_path / place)
        assert ensure_cpu_backend(toolchain) == first
    assert _builds(tmp_path) == 1


def test_a_changed_copy_is_built_beside_the_first(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toolchain: Toolchain
) -> None:
    first = ensure_cpu_backend(toolchain)
    copy = tmp_path / "another" / "standalone"
    shutil.copytree(sources, copy)
    (copy / "src" / "a.cpp").write_text("int a() { return 2; }\n")
    monkeypatch.setattr(cpu_backend, "backend_sources", lambda: copy)
    second = ensure_cpu_backend(toolchain)
    assert second.folder != first.folder
    assert first.folder.is_dir()


def test_a_failed_build_names_its_log(sources: Path, tmp_path: Path, toolchain: Toolchain) -> None:
    (sources / "src" / "a.cpp").write_text("int a( { return 1; }\n")
    with pytest.raises(BuildError, match=r"the CPU backend did not build: .*error") as error:
        ensure_cpu_backend(toolchain)
    log = next(tmp_path.glob("cache/ttcodegen/*.log"))
    assert f"the log is {log}" in error.value.render()
    (sources / "src" / "a.cpp").write_text("int a() { return 1; }\n")
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


@pytest.mark.parametrize("damage", ["emptied", "cut off", "overwritten", "removed"])
def test_what_is_known_of_a_compiler_is_found_again_where_it_was_damaged(
    tmp_path: Path, toolchain: Toolchain, damage: str
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    first = cmake_options(tmp_path / "a", cache, toolchain)
    assert first is not None
    kept = [path for path in cache.rglob("*") if path.is_file() and path.name != "ready"]
    assert len(kept) >= 3
    for path in kept:
        content, status = path.read_bytes(), path.stat()
        if damage == "removed":
            path.unlink()
            continue
        damaged = {"emptied": b"", "cut off": content[: len(content) // 2]}
        path.write_bytes(damaged.get(damage, b"\0" * len(content)))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert cmake_options(tmp_path / "b", cache, toolchain) == first
    names = {path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*")}
    assert names == {path.relative_to(tmp_path / "b") for path in (tmp_path / "b").rglob("*")}
    for name in names:
        if (tmp_path / "a" / name).is_file():
            size = (tmp_path / "a" / name).stat().st_size
            assert (tmp_path / "b" / name).stat().st_size == size


def test_an_empty_seal_vouches_for_nothing(tmp_path: Path) -> None:
    file, seal = tmp_path / "file", tmp_path / "ready"
    file.write_text("whole")
    vouch_for(seal, [file])
    assert is_intact(seal)
    seal.write_bytes(b"")
    assert not is_intact(seal)
    vouch_for(seal, [])
    assert is_intact(seal)
