"""Runs of whole projects on the vendor's simulator, and what is made of how they end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ttcodegen.cli.lang import main as lang
from ttcodegen.cli.rt import main
from ttcodegen.cli.ttcodegen import main as ttcodegen
from ttcodegen.rt.judging.simulated_project import package_of, verdict_of

PROGRAM = """
func.func @main(%x: tensor<64x96xbf16>, %y: tensor<96x32xbf16>) -> tensor<64x32xbf16> {
  %0 = "ttir.matmul"(%x, %y) : (tensor<64x96xbf16>, tensor<96x32xbf16>) -> tensor<64x32xbf16>
  %1 = "ttir.exp"(%0) : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
  return %1 : tensor<64x32xbf16>
}
"""

OPERATION = Path(__file__).parents[1] / "lang" / "programs" / "elementwise.py"
"""Takes rows and columns, rows in a block, and the grid."""


def results(*reasons: str | None) -> dict[str, Any]:
    outputs = [
        {"name": f"output{number}", "checks": [{"passed": reason is None, "reason": reason}]}
        for number, reason in enumerate(reasons)
    ]
    return {"results": [{"error": None, "programs": [{"outputs": outputs}]}]}


def test_outputs_that_agree_and_that_differ() -> None:
    verdict = verdict_of("main", 4, "", results(None, "the correlation is 0.4"))
    assert (verdict["accepted"], verdict["compared"]) == (1, 2)
    assert verdict["different"] == ["output 'output1': the correlation is 0.4"]
    assert not verdict_of("main", 0, "", results(None))["different"]


@pytest.mark.parametrize(
    ("said", "results", "key", "found"),
    [
        ("[71] ERROR: UnsupportedFunctionality: x=4\n", None, "not_judged", "cannot run (Unsupp"),
        ("[71] ERROR: UndefinedBehavior: bank 3\n", None, "refused", "1: UndefinedBehavior: bank"),
        ("std::bad_alloc\n", None, "refused", "status 1: std::bad_alloc"),
        ("", None, "refused", "status 1: it says nothing"),
        ("", {"results": [{"error": "no weights"}]}, "refused", "status 1: no weights"),
    ],
)
def test_programs_that_end(said: str, results: dict[str, Any] | None, key: str, found: str) -> None:
    verdict = verdict_of("main", 1, said, results)
    assert found in verdict[key][0]
    assert verdict["accepted"] == 0


def simulator_and_python() -> tuple[str, str]:
    """The simulator and the Python with the library, or the test is skipped."""
    simulator, python = (
        os.environ.get("TTCODEGEN_SIMULATOR"),
        os.environ.get("TTCODEGEN_SIM_PYTHON"),
    )
    if not simulator or not python or "TT_METAL_HOME" not in os.environ:
        pytest.skip("TTCODEGEN_SIMULATOR, TTCODEGEN_SIM_PYTHON and TT_METAL_HOME name no simulator")
    return simulator, python


def written(tmp_path: Path) -> Path:
    source = tmp_path / "m.mlir"
    source.write_text(PROGRAM)
    assert ttcodegen([str(source), "-o", str(tmp_path / "out"), "--target", "ttmetal"]) == 0
    return tmp_path / "out"


def test_what_has_to_be_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TT_METAL_HOME", "CMAKE_PREFIX_PATH", "TTCODEGEN_TTNN_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    out = written(tmp_path)
    assert main(["validate", str(out)]) == 1
    assert "--simulator" in capsys.readouterr().err
    simulator = tmp_path / "libttsim.so"
    assert main(["validate", str(out), "--simulator", str(simulator)]) == 1
    assert "there is no simulator" in capsys.readouterr().err
    simulator.write_bytes(b"")
    assert main(["validate", str(out / "model.ttm"), "--simulator", str(simulator)]) == 1
    said = capsys.readouterr().err
    assert "tt-metal was not found" in said or "does not build with tt-metal" in said
    assert "TT_METAL_HOME" in said


def test_a_simulator_of_operations_has_to_be_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "libttsim.so")
    assert lang([str(OPERATION), "--check", "--simulator", missing]) == 1
    assert "there is no simulator" in capsys.readouterr().err
    assert lang([str(OPERATION), "--simulator", missing]) == 2
    assert "--simulator needs --check" in capsys.readouterr().err


@pytest.mark.slow
def test_a_project_computes_the_same_on_a_simulator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    simulator, python = simulator_and_python()
    arguments = ["validate", str(written(tmp_path)), "--python", python, "--simulator", simulator]
    assert main(arguments) == 0
    assert "'main': 1 runs, 1 compared" in capsys.readouterr().out


@pytest.mark.slow
def test_an_operation_computes_the_same_on_a_simulator(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    simulator, python = simulator_and_python()
    monkeypatch.setenv("TT_METAL_RUNTIME_ROOT", str(package_of(python)))
    sizes = ["--", "128", "64", "2", "1", "1"]
    assert lang([str(OPERATION), "--check", "--simulator", simulator, *sizes]) == 0
    assert "correlation" in capsys.readouterr().out
