"""The words of the project are those of the field; some that are not are kept out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import cast

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
"""Words that were written, and those that the field uses instead."""
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


QUESTION = re.compile(r"(What|Which|How|Where|Whether|When|Why|Who)\b")
"""Words that begin a question, not a noun phrase or a verb in the third person."""


def docstrings(text: str) -> Iterator[str]:
    """Docstrings of a file: of its module, classes, functions and attributes."""
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        body = cast(list[ast.stmt], body)
        documented = isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        )
        for index, statement in enumerate(body):
            if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
                continue
            value = statement.value.value
            of_attribute = index and isinstance(body[index - 1], ast.Assign | ast.AnnAssign)
            if isinstance(value, str) and (of_attribute or (documented and not index)):
                yield value.strip()


DOCUMENTED = ("ttcodegen/", "tests/", "scripts/", "benchmarks/")
"""Folders whose docstrings are gated."""


@pytest.mark.parametrize("folder", DOCUMENTED)
def test_docstrings_begin_with_a_noun_or_a_verb(folder: str) -> None:
    """No docstring of a folder begins with a question word."""
    found = [
        (name, each.splitlines()[0])
        for name, text in texts().items()
        if name.startswith(folder) and name.endswith(".py")
        for each in docstrings(text)
        if each
    ]
    questions = [(name, line) for name, line in found if QUESTION.match(line)]
    assert len(found) > 50
    assert questions == []


QUESTION_COMMENT = re.compile(rf"// {QUESTION.pattern}")


def test_comments_of_mlir_begin_with_a_noun_or_a_verb() -> None:
    """No comment line of an MLIR test opens a sentence with a question word."""
    found = [
        f"{path.relative_to(ROOT).as_posix()}:{number}"
        for path in sorted((ROOT / "tests").rglob("*.mlir"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if QUESTION_COMMENT.match(line)
    ]
    assert found == []


COMMENT = re.compile(r"(?:^[ \t]*//[^\n]*\n?)+", re.MULTILINE)
"""A block of comment lines; indented like the declaration that it documents."""


def comments(text: str) -> Iterator[str]:
    """Comment blocks of C++ code: the text of their lines, without slashes."""
    for block in COMMENT.findall(text):
        lines = [re.sub(r"^\s*//[/!]?<?\s?", "", line) for line in block.splitlines()]
        for paragraph in "\n".join(lines).split("\n\n"):
            if paragraph.strip():
                yield paragraph.strip()


def test_comments_of_cpp_begin_with_a_noun_or_a_verb() -> None:
    """No paragraph of C++ comments begins with a question word."""
    found = [
        (name, each.splitlines()[0])
        for name, text in texts().items()
        if name.startswith(("standalone/", "kernels/", "ttcodegen/templates/"))
        for each in comments(text)
    ]
    questions = [(name, line) for name, line in found if QUESTION.match(line)]
    assert len(found) > 2000
    assert questions == []
