"""The words of the project are those of the field; some that are not are kept out."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = (
    "ttcodegen",
    "kernels",
    "standalone",
    "tests",
    "docs",
    "scripts",
    "benchmarks",
    "examples",
)
SUFFIXES = {".py", ".md", ".jinja", ".cpp", ".hpp", ".h"}
REPLACED = {
    "told": "given, reported, said",
    "tell": "report, say, distinguish",
    "tells": "reports, says, distinguishes",
    "spread": "distributed, dilated, deviation",
    "behind": "after",
    "in front of": "before",
    "youngest": "latest",
    "_hand_over": "pack",
    "_spread": "broadcast, dilated, distributed",
    "_youngest": "latest",
    "obstacle": "unsupported reason",
    "foreign": "unsupported",
    "disturbed": "perturbed",
    "delivered": "rounded",
    "drawn_as": "input kind",
    "Port": "interface tensor",
    "Visits": "access pattern",
    "Walk": "loop nest",
    "words": "template arguments",
    "takes away the tiles": "pops the tiles",
    "stands? (?!for)": "is, is written, precedes, follows",
    "stood": "was",
    "lies": "is, is stored, is placed",
    "lying": "placed",
    "(tensors?|shards?|pages?|tiles?|results?|operands?|weights) lie": "are stored, are placed",
    "asked for": "requested, required",
    "takes? part": "participates, is used",
    "gives? back": "returns, releases, deallocates",
    "hands? on": "passes, forwards",
    "whoever": "who, the caller, the owner",
    "the least": "the minimum, the lowest",
    "is that of": "comes from, follows, is the same as",
}
"""What was written, and what the field writes."""
CODE_ONLY = frozenset(
    "words Port Walk Visits foreign delivered disturbed _hand_over _spread _youngest".split()
)
"""Names that must not be functions or classes; in a sentence they may be right."""


@cache
def texts() -> dict[str, str]:
    """By name the text of each file that people read, but for this one."""
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for folder in FOLDERS:
        paths += [path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    paths.remove(Path(__file__))
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}


@pytest.mark.parametrize("word", REPLACED)
def test_words_of_other_fields(word: str) -> None:
    flags = 0 if word in CODE_ONLY else re.IGNORECASE
    pattern = rf"(?:def|class) {word}\b" if word in CODE_ONLY else rf"\b{word}\b"
    found = [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
        for name, text in texts().items()
        for match in re.finditer(pattern, text, flags)
    ]
    assert found == [], f"instead of '{word}': {REPLACED[word]}"
