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
    named = set(re.findall(r"(?m)^- `(.*)`: wrong$", page))
    wrong = {line.split("\t")[0] for line in outcome.lines if line.split("\t")[1] == "wrong"}
    assert wrong <= named


def test_the_page_lists_what_a_run_found(tmp_path: Path) -> None:
    from collections import Counter

    from scripts.stablehlo_values import Outcome, write_page

    page = tmp_path / "judges.md"
    page.write_text(
        "| a |\n<!-- stablehlo runs -->\n<!-- end -->\n\n<!-- stablehlo others -->\n<!-- end -->\n"
    )
    first = Outcome(Counter(), [])
    for name, kind in (("abs", "right"), ("tan", "wrong"), ("while", "refused")):
        first.add(name, kind, "why")
    write_page(page, "cpp", ["--optimize", "2"], first)
    second = Outcome(Counter(right=3), [])
    write_page(page, "flatbuffer", [], second)
    write_page(page, "cpp", ["--optimize", "2"], first)
    assert page.read_text() == (
        "| a |\n<!-- stablehlo runs -->\n"
        "| `no options`, flatbuffer | 3 | 3 | 0 | 0 | 0 | 100.0 % |\n"
        "| `--optimize 2`, C++ | 3 | 1 | 1 | 1 | 0 | 33.3 % |\n"
        "<!-- end -->\n\n<!-- stablehlo others -->\n"
        "- `tan`: wrong\n- `while`: refused\n<!-- end -->\n"
    )
