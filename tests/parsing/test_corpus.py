"""Every module of the corpus is read, where there is a corpus beside the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from ttcodegen.diagnostics import Source
from ttcodegen.parsing import parse_module

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "ttir"
FILES = sorted(CORPUS.glob("*.mlir"))


@pytest.mark.skipif(not FILES, reason="there is no corpus beside the project")
@pytest.mark.parametrize("part", range(8))
def test_the_corpus_is_read(part: int) -> None:
    for path in FILES[part::8]:
        module = parse_module(Source.read(str(path)))
        assert [op.name for op in module.body.ops if op.name != "func.func"] == []
