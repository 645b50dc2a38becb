"""The conditions of the library's sources, each with a rule of the CPU backend or a reason."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.standalone.test_rules import STANDALONE, TABLES, Replays, replays
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain

__all__ = ["replays"]

ROOT = Path(__file__).parents[2]
RULES = (ROOT / "docs" / "library-rules.md").read_text("utf-8")
PROGRAMS = sorted((STANDALONE / "tests").glob("conditions_*_test.cpp"))


@dataclass(frozen=True)
class Condition:
    """A row of the table."""

    op: str
    source: str
    """The file of tt-metal, and the line."""
    text: str
    rule: str
    """`file:function` of the backend; empty if there is a reason."""
    note: str
    """Beginning of the message of the library's rule, or the reason."""
    seen: str
    """Source of a violating call: `measured`, `whole`, `test`, or `-` for none."""


def conditions() -> list[Condition]:
    lines = (STANDALONE / "conditions.tsv").read_text("utf-8").splitlines()
    return [Condition(*line.split("\t")) for line in lines if not line.startswith("#")]


@cache
def source_of(path: str) -> str:
    """A source of the backend, with literals that are divided put together."""
    text = (STANDALONE / "src" / path).read_text("utf-8")
    return re.sub(r'"\s*\n\s*"', "", text).replace('\\"', '"')


def spelled(message: str) -> str:
    return re.sub(r"\s+", " ", message.replace("\\n", " "))


@pytest.mark.parametrize("condition", [c for c in conditions() if c.rule], ids=lambda c: c.source)
def test_rules_are_there(condition: Condition) -> None:
    path, _, function = condition.rule.partition(":")
    text = source_of(path)
    assert condition.note in spelled(text)
    assert re.search(rf"\b{re.escape(function)}\(", text)
    assert condition.seen in ("measured", "whole", "test", "-")


def test_all_other_conditions_have_a_reason() -> None:
    reasons = set(re.findall(r"^\| `(\w+)` \|", RULES, re.MULTILINE))
    assert {c.note for c in conditions() if not c.rule} <= reasons
    assert len({c.source for c in conditions()}) == len(conditions())


def test_rules_are_counted_by_operation() -> None:
    found = Counter(c.op for c in conditions())
    rules = Counter(c.op for c in conditions() if c.rule)
    written = re.findall(r"^\| ([\w, ]+) \| (\d+) \| (\d+) \| (\d+) \|$", RULES, re.MULTILINE)
    counted = {op: (int(a), int(b)) for op, a, b, _ in written if op != "all"}
    assert counted == {op: (found[op], rules[op]) for op in found}
    # Most rules are violated by a call; those that are not are no more than they were.
    assert sum(c.seen == "-" for c in conditions()) <= UNSEEN


UNSEEN = 2
"""Rules that no call of the tests violates."""


def pattern_of(condition: Condition) -> re.Pattern[str]:
    """A regular expression for the messages of a rule."""
    parts = condition.note.replace("\\", "").split("{}")
    return re.compile(".*?".join(map(re.escape, parts)))


def unmatched(seen: str, messages: list[str]) -> list[Condition]:
    text = "\n".join(messages)
    wanted = [c for c in conditions() if c.seen == seen]
    return [c for c in wanted if pattern_of(c).search(text) is None]


@pytest.mark.slow
def test_calls_that_break_a_condition_are_refused(
    cpu_backend: CPUBackend, toolchain: Toolchain, tmp_path: Path
) -> None:
    [library] = cpu_backend.folder.rglob("libttcodegen_cpu.a")
    messages: list[str] = []
    for source in PROGRAMS:
        program = tmp_path / source.stem
        command = [
            *(toolchain.compiler, "-std=c++20", "-O0", source),
            *("-I", source.parent, "-I", cpu_backend.folder / "include"),
            *("-I", STANDALONE / "src", library, "-pthread", "-ldl", "-o", program),
        ]
        subprocess.run(command, check=True)
        done = subprocess.run([program], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        messages += done.stdout.splitlines()
    assert not unmatched("test", messages)


@pytest.mark.slow
def test_measured_calls_violate_the_rules_that_they_are_listed_for(replays: Replays) -> None:
    messages = [
        message
        for table, options in TABLES.items()
        for message in replays(table, *options).refusals
    ]
    assert not unmatched("measured", messages)
