"""The words of the project are those of the field; some that are not are kept out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = (
    "ttcodegen",
    "kernels",
    "standalone/include",
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
}
"""What was written, and what the field writes."""
CODE_ONLY = frozenset(
    "words Port Walk Visits foreign delivered disturbed _hand_over _spread _youngest".split()
)
"""Names that must not be functions or classes; in a sentence they may be right."""


def texts() -> Iterator[tuple[str, str]]:
    """The names and the texts of what is read by people."""
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for folder in FOLDERS:
        paths += [path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    for path in paths:
        yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")


@pytest.mark.parametrize("word", REPLACED)
def test_words_of_other_fields(word: str) -> None:
    flags = 0 if word in CODE_ONLY else re.IGNORECASE
    pattern = rf"(?:def|class) {word}\b" if word in CODE_ONLY else rf"\b{word}\b"
    found = [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
        for name, text in texts()
        for match in re.finditer(pattern, text, flags)
    ]
    assert found == [], f"instead of '{word}': {REPLACED[word]}"
