"""The passes keep what the functions of the corpus compute, where there is a corpus."""

from __future__ import annotations

from math import prod
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp, ReturnOp

from tests.transforms.numpy_execution import run
from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.drawing import draw_inputs
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.parsing import parse_module
from ttcodegen.transforms.functions import InlinePass
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import passes_of
from ttcodegen.transforms.rewriting import functions

PARTS = 16
_ELEMENTS = 300_000
"""Functions that make more elements than that are too slow in numpy."""


def is_small(function: FuncOp) -> bool:
    """Returns whether numpy computes all of the function, and quickly."""
    elements = 0
    for op in function.body.block.ops:
        if isinstance(op, ReturnOp):
            break
        if not isinstance(op, CatalogueOp) or op.definition.numpy is None:
            return False
        elements += sum(prod(shape_of(result.type)) for result in op.results)
        if len(op.operands) > 1 and "conv" in op.name:
            elements += prod(op.result_shape) * prod(shape_of(op.operands[1].type)[1:])
    return elements < _ELEMENTS


def agrees(expected: np.ndarray, found: np.ndarray) -> bool:
    """By correlation; by a relative error where all elements are equal."""
    first, second = (a.astype(np.float64).ravel() for a in (expected, found))
    finite = np.isfinite(first)
    if (finite != np.isfinite(second)).any():
        return False
    first, second = first[finite], second[finite]
    if first.size < 2 or first.std() == 0 or second.std() == 0:
        return np.allclose(first, second, rtol=0.02, atol=1e-3)
    return bool(np.corrcoef(first, second)[0, 1] > 0.995)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_the_pipeline_keeps_results(corpus: Path, part: int) -> None:
    checked = 0
    for path in sorted(corpus.glob("*.mlir"))[part::PARTS]:
        source = Source.read(str(path))
        module, transformed = parse_module(source), parse_module(source)
        PassRunner(load_dialects(), verify=True).run(transformed, passes_of("ttir-pipeline"))
        InlinePass().apply(load_dialects(), module)
        pairs = zip(functions(module), functions(transformed), strict=True)
        for before, after in pairs:
            if not is_small(before):
                continue
            inputs = list(draw_inputs(module, before, 1).values())
            try:
                expected = run(before, inputs)
            except IndexError:  # The function computes with the indices that were drawn for it.
                continue
            results = zip(expected, run(after, inputs), strict=True)
            assert all(agrees(*pair) for pair in results), f"{path.name}: {before.sym_name.data}"
            checked += 1
    assert checked > 0
