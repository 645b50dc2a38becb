"""Models that others wrote, where there is a corpus of them: compiled, built and checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ttcodegen.cli.ttcodegen import main

MODELS = ("models__mnist", "mlir_snippets__ttir__ttir_mnist", "models__llama_attention")


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_model_passes_the_check(corpus: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    assert main([str(corpus / f"{name}.mlir"), "-o", str(out), "--check"]) == 0
    assert json.loads((out / "check.json").read_text())["passed"] is True
