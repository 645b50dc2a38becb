"""The C++ of small models, as a user reads it; the files are beside the models."""

from __future__ import annotations

import pytest

from tests.golden.conftest import FOLDER, Compare
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.emission.templates import clang_format_style
from ttcodegen.foundation.diagnostics import Source


@pytest.mark.parametrize(("name", "target"), [("mlp", "ttnn"), ("gelu_rows", "ttmetal")])
def test_sources_of_a_model(name: str, target: str, golden: Compare) -> None:
    source = Source(f"{name}.mlir", (FOLDER / f"{name}.mlir").read_text("utf-8"))
    options = CompileOptions(name, target, style=clang_format_style())
    files = compile_module(source, options).files
    # Building blocks and support files are the same in all projects.
    own = {
        path: text
        for path, text in files.items()
        if not path.startswith(("kernels/blocks/", "support/"))
    }
    golden(name, own)
