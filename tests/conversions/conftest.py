"""Runs the passes after the TTIR passes on small modules.

`lowered(text)` gives the TTNN module of TTIR text, `calls(module)` a line for each of its ops in
short: the name and, after an arrow, data type, layout and memory of the first result.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import ModuleOp

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import placement_of
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.parsing import parse_module
from ttcodegen.transforms.registry import passes_of


@pytest.fixture
def lowered() -> Callable[[str], ModuleOp]:
    """The TTNN module that TTIR text is lowered to."""

    def lower(text: str) -> ModuleOp:
        module = parse_module(Source("test.mlir", text))
        context = load_dialects()
        for pass_ in passes_of("ttir-to-ttnn-common-pipeline"):
            pass_.apply(context, module)
        module.verify()
        return module

    return lower


@pytest.fixture
def calls() -> Callable[[ModuleOp], list[str]]:
    """The ops of a module in short."""

    def short(module: ModuleOp) -> list[str]:
        lines: list[str] = []
        for op in module.walk():
            if isinstance(op, CatalogueOp):
                line = op.definition.short_name
                if op.results:
                    place = placement_of(op.results[0])
                    line += f" -> {place.data_type.mlir} {place.layout.value} {place.buffer_type}"
                lines.append(line)
        return lines

    return short
