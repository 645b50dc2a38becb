"""StableHLO's own testdata, where it is there (docs/judges.md)."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def testdata() -> Path:
    """The folder that $TTCODEGEN_STABLEHLO_VALUES names, or that is beside the project."""
    named = os.environ.get("TTCODEGEN_STABLEHLO_VALUES")
    beside = ROOT.parent / "shared" / "corpus" / "stablehlo-values"
    folder = Path(named) if named else beside
    if not folder.is_dir():
        pytest.skip("there is no testdata: name its folder in TTCODEGEN_STABLEHLO_VALUES")
    return folder


@pytest.mark.slow
@pytest.mark.frameworks
@pytest.mark.parametrize("level", ["0", "2"])
@pytest.mark.parametrize(("f16", "share"), [("bfloat16", 0.98), ("float32", 0.98)])
def test_the_values_of_jax_are_found(testdata: Path, level: str, f16: str, share: float) -> None:
    pytest.importorskip("jax.interpreters.mlir", reason="jax is not installed: pip install jax")
    from scripts.stablehlo_values import functions, judge

    outcome = judge(functions(testdata), "cpp", ["--optimize", level, "--f16", f16])
    total = sum(outcome.counts.values())
    assert outcome.counts["crashed"] == 0, outcome.lines
    assert outcome.counts["right"] >= share * total, outcome.lines
    page = (ROOT / "docs" / "judges.md").read_text()
    named = set(re.findall(r"(?m)^- `(.*)`: .*wrong \(", page))
    wrong = {line.split("\t")[0] for line in outcome.lines if line.split("\t")[1] == "wrong"}
    assert wrong <= named


def test_modules_of_complex_numbers_are_judged_as_pairs(tmp_path: Path) -> None:
    pytest.importorskip("jax.interpreters.mlir", reason="jax is not installed: pip install jax")
    from scripts.stablehlo_values import functions, judge

    def module(expected: str) -> str:
        type_ = "tensor<2xcomplex<f32>>"
        return f"""module @jit_main {{
  func.func public @main() -> ({type_}) {{
    %0:2 = call @inputs() : () -> ({type_}, tensor<2xf32>)
    %1 = call @expected() : () -> {type_}
    %2 = stablehlo.complex %0#1, %0#1 : {type_}
    %3 = stablehlo.multiply %0#0, %2 : {type_}
    stablehlo.custom_call @check.expect_close(%3, %1) : ({type_}, {type_}) -> ()
    return %3 : {type_}
  }}
  func.func private @inputs() -> ({type_}, tensor<2xf32>) {{
    %cst = stablehlo.constant dense<[(1.0,2.0), (0x7F800000,-3.0)]> : {type_}
    %0 = stablehlo.constant dense<[2.0, 1.0]> : tensor<2xf32>
    return %cst, %0 : {type_}, tensor<2xf32>
  }}
  func.func private @expected() -> {type_} {{
    %cst = stablehlo.constant dense<{expected}> : {type_}
    return %cst : {type_}
  }}
}}
"""

    (tmp_path / "a.mlir").write_text(module("[(-2.0,6.0), (0x7F800000,0x7F800000)]"))
    (tmp_path / "b.mlir").write_text(module("(-2.0,6.0)"))
    assert not list(functions(tmp_path))
    outcome = judge(functions(tmp_path, is_complex=True), "flatbuffer", [])
    assert outcome.summary() == "1 right of 2 (1 wrong, 0 refused, 0 crashed)"
    assert "inf not -2.0" in outcome.lines[0]


def test_tests_of_the_interpreter_become_functions_of_their_constants(tmp_path: Path) -> None:
    pytest.importorskip("jax.interpreters.mlir", reason="jax is not installed: pip install jax")
    from scripts.stablehlo_interpreter import functions
    from scripts.stablehlo_values import judge

    text = """// RUN: nothing
func.func @iota_of_a_shape() {
  %shape = stablehlo.constant dense<[2]> : tensor<1xi32>
  %0 = stablehlo.dynamic_iota %shape, dim = 0 : (tensor<1xi32>) -> tensor<2xi32>
  check.expect_eq_const %0, dense<[0, 1]> : tensor<2xi32>
  func.return
}

// -----

func.func @two() {
  %0 = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf32>
  %1 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %2 = stablehlo.abs %0 : tensor<2xf32>
  check.expect_almost_eq %2, %1 : tensor<2xf32>
  func.return
}
func.func @wrong() {
  %0 = stablehlo.constant dense<3> : tensor<i32>
  %1 = stablehlo.negate %0 : tensor<i32>
  check.expect_eq_const %1, dense<3> : tensor<i32>
  func.return
}
"""
    (tmp_path / "op.mlir").write_text(text)
    outcome = judge(functions(tmp_path), "flatbuffer", [])
    assert outcome.summary() == "2 right of 3 (1 wrong, 0 refused, 0 crashed)"
    assert outcome.lines == ["op_2\twrong\t1 of 1 differ, e.g. -3 not 3"]


def test_the_page_lists_what_each_run_found(tmp_path: Path) -> None:
    from collections import Counter

    from scripts.stablehlo_values import Outcome, finish

    page = tmp_path / "judges.md"
    page.write_text(
        "| a |\n<!-- stablehlo runs -->\n<!-- end -->\n\n<!-- stablehlo others -->\n<!-- end -->\n"
    )
    first = Outcome(Counter(), [])
    for name, kind in (("abs", "right"), ("tan", "wrong"), ("while", "refused")):
        first.add(name, kind, "why")
    finish(first, "flatbuffer", [], "stablehlo", page)
    finish(first, "cpp", ["--optimize", "2"], "stablehlo", page)
    second = Outcome(Counter(), [])
    for name, kind in (("tan", "right"), ("while", "crashed")):
        second.add(name, kind, "why")
    finish(second, "flatbuffer", [], "stablehlo", page)
    assert page.read_text() == (
        "| a |\n<!-- stablehlo runs -->\n"
        "| `--optimize 2`, C++ | 3 | 1 | 1 | 1 | 0 | 33.3 % |\n"
        "| `no options`, flatbuffer | 2 | 1 | 0 | 0 | 1 | 50.0 % |\n"
        "<!-- end -->\n\n<!-- stablehlo others -->\n"
        "- `tan`: wrong (`--optimize 2`, C++)\n"
        "- `while`: crashed (`no options`, flatbuffer), refused (`--optimize 2`, C++)\n"
        "<!-- end -->\n"
    )


def test_parts_that_ran_apart_are_counted_together(tmp_path: Path) -> None:
    from collections import Counter

    from scripts.stablehlo_values import Outcome, finish

    tables = [tmp_path / "0.tsv", tmp_path / "1.tsv"]
    parts = [("abs", "right"), ("tan", "wrong")], [("tan", "right")]
    for table, found in zip(tables, parts, strict=True):
        outcome = Outcome(Counter(), [], table)
        for name, kind in found:
            outcome.add(name, kind, "a\treason\nof two lines")
    merged = Outcome.merged(tables)
    assert merged.summary() == "2 right of 2 (0 wrong, 0 refused, 0 crashed)"
    page = tmp_path / "judges.md"
    page.write_text(
        "<!-- stablehlo runs -->\n<!-- end -->\n<!-- stablehlo others -->\n<!-- end -->\n"
    )
    finish(Outcome.merged(tables[:1]), "flatbuffer", [], "stablehlo", page)
    assert "| `no options`, flatbuffer | 2 | 1 | 1 | 0 | 0 | 50.0 % |" in page.read_text()
