"""Every module of the corpus is read, where there is a corpus beside the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from ttcodegen.foundation.diagnostics import Source
from ttcodegen.parsing import parse_module


@pytest.mark.parametrize("part", range(8))
def test_the_corpus_is_read(corpus: Path, part: int) -> None:
    for path in sorted(corpus.glob("*.mlir"))[part::8]:
        module = parse_module(Source.read(str(path)))
        assert [op.name for op in module.body.ops if op.name != "func.func"] == []
