"""The C++ is built and runs while numpy computes, and numpy's two runs go side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.numerics.tolerances import VECTOR_ENGINE, Tolerance
from ttcodegen.project import check_summary, checking
from ttcodegen.project.building import BuiltProject
from ttcodegen.project.toolchain import BuildError, Toolchain

SOURCE = Source(
    "double.mlir",
    """
func.func @double(%x: tensor<2x3xf32> {ttir.name = "x"}) -> (tensor<2x3xf32> {ttir.name = "y"}) {
  %0 = "ttir.add"(%x, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
""",
)
TOOLCHAIN = Toolchain("c++", "gnu", "12.2.0", "", "cmake", "ninja")
WAIT = 60.0


class Runs:
    """A run of numpy that ends when the C++ has run."""

    def __init__(self, executed: Event, result: Any) -> None:
        self.executed = executed
        self.result = result

    def run(self, name: str, inputs: tuple[np.ndarray, ...]) -> list[np.ndarray]:
        assert self.executed.wait(WAIT)
        return self.result(inputs)

    def output_tolerances(self, _: str) -> list[Tolerance]:
        return [VECTOR_ENGINE]


def test_the_cpp_runs_beside_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compile_module(SOURCE, CompileOptions("double"))
    executed = Event()

    def execute(_: Path, given: Any, *__: Any) -> Any:
        (each,) = given
        executed.set()
        return {"double": {"y": each.inputs[0] * 2}}, None

    double = Runs(executed, lambda inputs: [inputs[0] * 2])
    monkeypatch.setattr(checking, "build_project", lambda *_: BuiltProject(tmp_path / "x", None))
    monkeypatch.setattr(checking, "run_executable", execute)
    monkeypatch.setattr(checking, "Golden", lambda _: double)
    monkeypatch.setattr(checking, "interpreter_of", lambda *_: double)
    checks = checking.check_project(SOURCE, compiled, tmp_path, TOOLCHAIN)
    assert [check.passed for check in checks] == [True]
    assert checks[0].to_json()["bounds"] == {"correlation": 0.9999, "range_error": 0.001}
    assert check_summary.output_lines(checks) == [
        "  double, y: correlation 1.000000 (at least 0.9999), largest error 0 (at most 0.1% of the "
        "range)"
    ]
    summary = check_summary.check_summary(checks, Path("out"))
    assert summary == (
        "checked: 1 output agrees between C++, flatbuffer and source "
        "(C++ to 0.9999 and 0.1% of the range); figures in out/check.json"
    )
    with_reference = [replace(checks[0], reference=checks[0].device)]
    assert "C++, flatbuffer, source and reference (" in check_summary.check_summary(
        with_reference, Path("out")
    )


@pytest.mark.parametrize("fault", [None, 0.0, np.nan])
@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_a_choice_of_edges_is_run_beside_what_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, fault: float | None
) -> None:
    """The C++ is wrong for zeros, or for NaN, of which none is drawn."""
    source = Source("double.mlir", SOURCE.text.replace("2x3", "16x32"))
    compiled = compile_module(source, CompileOptions("double", target=target))
    runs: list[np.ndarray] = []

    def execute(_: Path, given: Any, *__: Any) -> Any:
        (x,) = given[0].inputs
        runs.append(x)
        is_wrong = np.isnan(x) if fault is not None and np.isnan(fault) else x == fault
        return {"double": {"y": np.where(is_wrong, 7.0, x * 2).astype(np.float32)}}, None

    monkeypatch.setattr(checking, "build_project", lambda *_: BuiltProject(tmp_path / "x", None))
    monkeypatch.setattr(checking, "run_executable", execute)
    checks = checking.check_project(source, compiled, tmp_path, TOOLCHAIN)
    kinds = [(False, False), (True, False), (True, True)]
    assert [(bool((x == 0).any()), bool(np.isnan(x).any())) for x in runs] == kinds
    failed = [check.name for check in checks if not check.passed]
    zeros, nans = "y (edges)", "y (edges with NaN)"
    assert failed == ([] if fault is None else [zeros, nans] if fault == 0 else [nans])


LONG = """
func.func @total(%x: tensor<100xi32>) -> (tensor<f32> {ttir.name = "y"}) {
  %0 = "ttir.typecast"(%x) : (tensor<100xi32>) -> tensor<100xi64>
  %1 = "ttir.sum"(%0) <{dim_arg = array<i32: 0>}> : (tensor<100xi64>) -> tensor<i64>
  %2 = "ttir.typecast"(%1) : (tensor<i64>) -> tensor<f32>
  return %2 : tensor<f32>
}
"""


@pytest.mark.parametrize("fault", [0.0, 1.0])
@pytest.mark.parametrize("edges", [False, True])
def test_lost_upper_halves_are_counted_where_they_were_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edges: bool, fault: float
) -> None:
    """A C++ that adds up in 32 bits, as the flatbuffer does, and one that is wrong as well."""
    source = Source("total.mlir", LONG)
    compiled = compile_module(source, CompileOptions("total"))

    def execute(_: Path, given: Any, *__: Any) -> Any:
        total = given[0].inputs[0].sum(dtype=np.int32).astype(np.float32)
        return {"total": {"y": total * (1 + fault)}}, None

    monkeypatch.setattr(checking, "build_project", lambda *_: BuiltProject(tmp_path / "x", None))
    monkeypatch.setattr(checking, "run_executable", execute)
    checks = checking.check_project(source, compiled, tmp_path, TOOLCHAIN, edges=edges)
    assert all(check.passed for check in checks) == (not edges and not fault)
    if not edges:
        lost = [check.name for check in checks if check.loses_upper_half]
        assert lost == ["y (edges)"]
        assert "1 output differs there" in check_summary.check_summary(checks, tmp_path)


def test_a_failed_build_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compile_module(SOURCE, CompileOptions("double"))

    def fail(*_: Any) -> BuiltProject:
        raise BuildError("no compiler")

    monkeypatch.setattr(checking, "build_project", fail)
    with pytest.raises(BuildError, match="no compiler"):
        checking.check_project(SOURCE, compiled, tmp_path, TOOLCHAIN)


def test_a_failed_run_of_numpy_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compile_module(SOURCE, CompileOptions("double"))

    class Failing:
        def run(self, *_: Any) -> list[np.ndarray]:
            raise CompileError("too large")

    monkeypatch.setattr(checking, "build_project", lambda *_: BuiltProject(tmp_path / "x", None))
    monkeypatch.setattr(checking, "run_executable", lambda *_: ({"double": {}}, None))
    monkeypatch.setattr(checking, "Golden", lambda _: Failing())
    with pytest.raises(CompileError, match="too large"):
        checking.check_project(SOURCE, compiled, tmp_path, TOOLCHAIN)
