"""docs/ops.md says which ops a lowering makes; it makes no others."""

from __future__ import annotations

from itertools import islice

import pytest
from xdsl.ir import Block, SSAValue

from scripts.ops_calls import made_by
from tests.op_cases.cases import cases
from tests.random_programs.recipes import RECIPES
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import TTIR
from ttcodegen.ops.dialects import ttir_op_classes, ttnn_op_classes

MOST = 12
"""Cases of an op that are looked at."""


def made(op: CatalogueOp) -> set[str]:
    """The ops that an op becomes."""
    definition = TTIR[op.definition.short_name]
    lowering = definition.lower or definition.decompose
    classes = ttnn_op_classes() if definition.lower is not None else ttir_op_classes()
    assert lowering is not None
    block = Block(arg_types=[operand.type for operand in op.operands])
    mapping: dict[SSAValue, SSAValue] = dict(zip(op.operands, block.args, strict=True))
    lowering(OpBuilder(classes, block.add_op, mapping), op)
    return {each.name.partition(".")[2] for each in block.ops}


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_lowering_makes_what_the_table_says(name: str) -> None:
    definition = TTIR[name]
    lowering = definition.lower or definition.decompose
    assert lowering is not None
    ops = [
        op
        for case in islice(cases(name), MOST)
        for op in case.generator.ops
        if op.definition.short_name == name
        and all(not op.operands.count(v) > 1 for v in op.operands)
    ]
    found = set[str]().union(*map(made, ops))
    assert found <= made_by(lowering, name)
