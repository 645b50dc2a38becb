"""Compilers are found, or it is said what is missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ttcodegen.project import toolchain
from ttcodegen.project.toolchain import BuildError, find_toolchain, first_error, flags_remedy

PATH = os.environ["PATH"]


def _no_program(*_: object) -> None:
    """No package has the program."""


def _compiler(folder: Path, name: str, family: str, version: str) -> Path:
    """A program that says of itself what a compiler says."""
    parts = version.split(".")
    macros = dict(zip(("__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__"), parts, strict=True))
    if family == "clang":
        # Clang says what GCC it emulates as well.
        names = ("__clang_major__", "__clang_minor__", "__clang_patchlevel__")
        macros |= dict(zip(names, parts, strict=True))
    lines = "".join(f"echo '#define {macro} {value}'\n" for macro, value in macros.items())
    path = folder / name
    path.write_text(f"#!/bin/sh\n{lines}")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def _empty_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("CXX", "CXXFLAGS", "LDFLAGS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_without_a_compiler_the_remedy_is_reported() -> None:
    with pytest.raises(BuildError, match=r"no C\+\+ compiler was found") as error:
        find_toolchain()
    assert "apt install g++" in error.value.render()


def test_an_old_compiler_is_not_taken(tmp_path: Path) -> None:
    old = _compiler(tmp_path, "c++", "gnu", "10.2.0")
    with pytest.raises(BuildError, match="no C\\+\\+20 compiler") as error:
        find_toolchain()
    assert f"{old} (gnu 10.2.0)" in str(error.value)


def test_the_first_fit_compiler_is_taken(tmp_path: Path) -> None:
    _compiler(tmp_path, "c++", "gnu", "9.4.0")
    _compiler(tmp_path, "g++-11", "gnu", "11.4.0")
    newest = _compiler(tmp_path, "g++-13", "gnu", "13.1.0")
    found = find_toolchain()
    assert (found.compiler, found.name) == (str(newest), "gnu-13.1.0")


def test_cxx_names_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _compiler(tmp_path, "c++", "gnu", "12.2.0")
    mine = _compiler(tmp_path, "mine", "clang", "17.0.6")
    monkeypatch.setenv("CXX", "mine -stdlib=libc++")
    monkeypatch.setenv("CXXFLAGS", "-g")
    found = find_toolchain()
    assert (found.compiler, found.name, found.flags) == (
        str(mine),
        "clang-17.0.6",
        "-stdlib=libc++ -g",
    )


@pytest.mark.parametrize("named", ["nothing", "false", "/dev/null"])
def test_cxx_has_to_be_a_compiler(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("CXX", named)
    monkeypatch.setenv("PATH", os.defpath)
    with pytest.raises(BuildError, match=f"CXX is '{named}', which is not a C"):
        find_toolchain()


def test_cxx_has_to_be_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _compiler(tmp_path, "old", "clang", "11.0.1")
    monkeypatch.setenv("CXX", "old")
    with pytest.raises(BuildError, match=r"clang 11\.0\.1: too old"):
        find_toolchain()


def test_without_cmake_the_remedy_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _compiler(tmp_path, "c++", "gnu", "12.2.0")
    monkeypatch.setattr(toolchain, "_packaged_program", _no_program)
    with pytest.raises(BuildError, match="CMake was not found") as error:
        find_toolchain()
    assert "pip install cmake ninja" in error.value.render()


@pytest.mark.parametrize(
    ("log", "reported"),
    [
        ("cmake -S x\nok\na.cpp:1:2: error: no\nb.cpp: error: other\n", "a.cpp:1:2: error: no"),
        ("ninja -C error\na.o: undefined reference to `f'\n", "a.o: undefined reference to `f'"),
        (
            "cmake\nCMake Error at x:1:\ncannot write a.o: No space left on device\n",
            "no space is left on the disk",
        ),
        ("ninja\n", "ninja"),
        ("", "no output"),
    ],
)
def test_the_first_error_of_a_log(tmp_path: Path, log: str, reported: str) -> None:
    (tmp_path / "log").write_text(log)
    assert first_error(tmp_path / "log") == reported
    assert first_error(tmp_path / "none").startswith("no log: ")


@pytest.mark.parametrize(
    ("name", "flags"),
    [("CXXFLAGS", "-fnot-a-flag"), ("CXXFLAGS", "-O2 'open"), ("LDFLAGS", "-lnot-a-library")],
)
def test_flags_that_break_every_build_are_named(
    monkeypatch: pytest.MonkeyPatch, name: str, flags: str
) -> None:
    monkeypatch.setenv("PATH", PATH)
    monkeypatch.setenv(name, flags)
    with pytest.raises(BuildError, match=f"nothing builds with {name} '{flags}'") as error:
        find_toolchain()
    assert f"correct the environment variable {name}" in error.value.render()


def test_flags_that_break_this_build_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "g++")
    monkeypatch.setenv("CXXFLAGS", "-Werror -Wconversion")
    monkeypatch.setenv("LDFLAGS", "")
    assert flags_remedy() == "; the environment gives flags: CXXFLAGS is '-Werror -Wconversion'"
    monkeypatch.setenv("CXXFLAGS", "")
    assert flags_remedy() == ""
