"""The answers of releases to the calls that modules become."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scripts.measured_calls import calls_of, outcome, outcomes, read_table, rows, write_table
from scripts.replayed_calls import differences
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.systems.releases import RELEASES

MEASURED = {
    "n150": Path(__file__).parent / "measured" / "calls.jsonl.xz",
    "p150": Path(__file__).parent / "measured" / "calls-p150.jsonl.xz",
}
"""Calls of modules of all front ends at levels 0 and 2, by the machine that they are for."""
SAMPLE = 24
"""The tests make a call of so many of a table, each on its own: scripts/replayed_calls.py makes
all."""
MODULE = """
func.func @forward(%x: tensor<32x64xbf16>, %w: tensor<64x32xbf16>) -> tensor<32x32xbf16> {
  %0 = "ttir.matmul"(%x, %w)
      : (tensor<32x64xbf16>, tensor<64x32xbf16>) -> tensor<32x32xbf16>
  %1 = "ttir.softmax"(%0) <{dimension = 1 : si32}>
      : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %1 : tensor<32x32xbf16>
}
"""


def test_an_answer_is_a_refusal_or_the_types_that_are_given() -> None:
    type_ = {"shape": [32, 32], "dtype": "bf16", "page": "tile", "memory": None}
    call = {"results": [{"id": 1, "type": type_}]}
    assert outcome(call, {"index": 1, "results": [type_]}) == "ok"
    other = {**type_, "dtype": "f32"}
    assert outcome(call, {"index": 1, "results": [other]}) == f"gives {json.dumps([other])}"
    assert outcome(call, {"index": 1, "refused": "no"}) == "refused: no"
    assert outcome(call, {"index": 1, "missing": True}) == "an operand cannot be made"


def test_the_table_has_the_answers_of_each_release(tmp_path: Path) -> None:
    module = tmp_path / "model.mlir"
    module.write_text(MODULE)
    calls = calls_of(module, RELEASES[-1])
    assert {json.loads(call)[1]["callee"] for call in calls} >= {"matmul", "softmax"}
    answers = {release: dict.fromkeys(sorted(calls), f"said by {release}") for release in RELEASES}
    found = list(rows(answers, calls))
    assert len(found) == len(calls)
    product = next(row for row in found if row["callee"] == "matmul")
    assert [type_["shape"] for type_ in product["operands"].values()] == [[32, 64], [64, 32]]
    assert product["results"][0]["shape"] == [32, 32]
    assert [product[release] for release in RELEASES] == [f"said by {each}" for each in RELEASES]
    write_table(tmp_path / "calls.xz", found)
    assert read_table(tmp_path / "calls.xz") == found


@pytest.mark.parametrize("machine", MEASURED)
def test_the_release_takes_the_calls_that_are_written_for_it(machine: str) -> None:
    """As its package answered on a mocked device, which the table keeps. What it refuses is written
    otherwise for it, in other rows."""
    table = read_table(MEASURED[machine])
    assert len(table) > 700
    assert len({row["callee"] for row in table}) > 60
    refused = {row["callee"] for row in table if row[RELEASES[-1]] != "ok"}
    assert refused <= {"where", "sort"}
    for callee in refused:
        assert any(row["callee"] == callee and row[RELEASES[-1]] == "ok" for row in table)


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("machine", MEASURED)
def test_the_cpu_backend_answers_as_the_table_says(
    machine: str, release: str, cpu_backend: CPUBackend
) -> None:
    """A sample of what is taken, and all that a release takes otherwise or not at all."""
    table = read_table(MEASURED[machine])
    sample = table[::SAMPLE]
    others = [row for row in table if any(row[each] != "ok" for each in RELEASES)]
    found = list(differences([*sample, *others], release, machine))
    assert [(row["callee"], row[release], said) for row, said in found] == []


@pytest.mark.slow
@pytest.mark.parametrize("machine", MEASURED)
def test_the_packages_answer_as_the_table_says(
    machine: str, ttnn_pythons: Callable[[str], str]
) -> None:
    """A sample of the table, asked again."""
    table = read_table(MEASURED[machine])
    sample = [row for row in table[:: len(table) // 40] if len(row["results"]) == 1]
    pythons = os.pathsep.join(dict.fromkeys(map(ttnn_pythons, RELEASES)))
    calls = {json.dumps(steps(row)): row for row in sample}
    for release in RELEASES:
        answers = outcomes(list(calls), release, pythons, machine)
        assert [answers[call] for call in calls] == [row[release] for row in calls.values()]


def steps(row: dict[str, Any]) -> list[Any]:
    """The steps that make the operands of a row, call, and forget the operands."""
    operands: dict[str, Any] = row["operands"]
    made = [{"id": int(number), "type": type_} for number, type_ in operands.items()]
    nothing: dict[str, Any] = {"callee": None, "arguments": [], "keywords": {}}
    results = [{"id": 999, "type": type_} for type_ in row["results"]]
    call = {key: row[key] for key in ("callee", "arguments", "keywords")}
    forgotten = [
        {
            "callee": "deallocate",
            "arguments": [{"tensor": each["id"]}],
            "keywords": {},
            "results": [],
        }
        for each in (*made, *results)
    ]
    return [{**nothing, "results": made}, {**call, "results": results}, *forgotten]
