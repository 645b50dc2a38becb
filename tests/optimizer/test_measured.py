"""The model of L1 against what calls of the release were measured to take."""

from __future__ import annotations

import pytest

from tests.optimizer.measured import Measured, rows, table
from ttcodegen.dialects.memory import Layout
from ttcodegen.optimizer.cost import CostModel
from ttcodegen.systems.description import default_system

TOLERANCE = 0.05
BUFFERS = {"matmul": 0.9, "relu": 0.9, "add": 0.9, "where": 0.9}
"""The calls whose circular buffers the optimizer relies on, and for what part of the measured rows
they are right; products only with a program configuration, which the optimizer always gives."""
TENSORS = {"matmul": 0.95, "relu": 0.95, "add": 0.9, "layer_norm": 0.9, "softmax": 0.9}
"""The same for the tensors, in tiles: others have intermediate ones."""


@pytest.fixture(scope="module")
def measured() -> list[Measured]:
    path = table()
    if path is None:
        pytest.skip("there is no table of measured calls: name it in TTCODEGEN_SHARDED_RULES")
    found = rows(path, frozenset(BUFFERS) | frozenset(TENSORS))
    # Calls beside a resident tensor, or into a given one, have more tensors than they name.
    return [row for row in found if "resident" not in row.variant and "out=" not in row.variant]


def share(model: CostModel, found: list[tuple[int, int]]) -> float:
    """The part of pairs of estimate and measurement that agree."""
    right = sum(abs(guess - truth) <= TOLERANCE * truth for guess, truth in found)
    return right / len(found)


@pytest.mark.parametrize("op", BUFFERS)
def test_circular_buffers_are_those_of_the_release(op: str, measured: list[Measured]) -> None:
    model = CostModel(default_system("wormhole_b0").chip)
    found = [
        (model.cost(row.call).circular_buffers, row.circular_buffers)
        for row in measured
        if row.op == op
        and (op != "matmul" or row.call.program_config is not None)
        and all(p.layout is Layout.TILE for p in row.call.operands)
    ]
    assert len(found) > 100
    assert share(model, found) >= BUFFERS[op]


@pytest.mark.parametrize("op", TENSORS)
def test_tensors_take_what_they_take_on_the_release(op: str, measured: list[Measured]) -> None:
    model = CostModel(default_system("wormhole_b0").chip)
    found = [
        (sum(model.bank_bytes(p) for p in (*row.call.operands, *row.call.results)), row.peak)
        for row in measured
        if row.op == op and all(p.layout is Layout.TILE for p in row.call.operands)
    ]
    assert len(found) > 50
    assert share(model, found) >= TENSORS[op]
