"""Verifiers of the catalogue: no op takes a result of another shape, or a dimension that its
operands do not have."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice

import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from tests.op_cases.cases import cases, function_of
from tests.random_programs.checking import module_of
from tests.random_programs.recipes import RECIPES
from ttcodegen.dialects.core.datatypes import shape_of, tensor_type
from ttcodegen.dialects.operations.attribute_kinds import INTEGER, INTEGERS
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.frontends import source_module
from ttcodegen.ops.core.definition import TTIR, TTNN
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import passes_of

FREE = {
    "ttir.empty", "ttir.full", "ttir.zeros", "ttir.ones", "ttir.rand", "ttir.constant",
    # The range is repeated along the other dimensions.
    "ttir.arange",
    # The length is in a tensor, the number of chips in the mesh.
    "ttir.slice_dynamic", "ttnn.slice_dynamic", "ttir.all_gather",
}  # fmt: skip
"""Ops whose result alone may say its shape, or a part of it."""
DIMENSIONS = ("dim", "dimension", "dim_arg", "channel_dim", "dimensions", "permutation")


@cache
def ops_of(name: str) -> tuple[CatalogueOp, ...]:
    """The ops of small modules of one op of TTIR, before and after they are lowered to TTNN."""
    few = list(islice(cases(name), 3))
    found: list[CatalogueOp] = []
    for case in few:
        text = module_of([function_of(name, [case])])
        for lowered in (False, True):
            module = source_module(Source("op.mlir", text))
            if lowered:
                try:
                    PassRunner(load_dialects()).run(
                        module, passes_of("ttir-to-ttnn-common-pipeline")
                    )
                except CompileError:
                    continue
            found += [op for op in module.walk() if isinstance(op, CatalogueOp)]
            _KEPT.append(module)
    return tuple(found)


_KEPT: list[Operation] = []
"""Modules whose ops are in use."""


def other_shapes(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Shapes of other numbers of elements."""
    yield (*shape[:-1], (shape[-1] if shape else 1) + 1)
    if len(shape) > 1:
        yield (shape[0] + 1, *shape[1:])


def is_taken(op: CatalogueOp) -> bool:
    """Returns whether an op passes verification."""
    try:
        op.verify_()
    except VerifyException:
        return False
    return True


def test_every_op_has_a_verifier() -> None:
    load_dialects()
    unverified = [d.name for d in (*TTIR.values(), *TTNN.values()) if d.verify is None]
    refused = [d.name for d in TTIR.values() if d.refusal is not None]
    # Lifetimes are held against each other, function by function.
    assert set(unverified) <= {"ttir.empty", "ttnn.deallocate", *refused}


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_no_op_takes_a_result_of_another_shape(name: str) -> None:
    for op in ops_of(name):
        if op.name in FREE:
            continue
        assert is_taken(op), op
        for result in list(op.results):
            kept = result.type
            assert isinstance(kept, TensorType)
            for shape in other_shapes(shape_of(kept)):
                changed = Rewriter.replace_value_with_new_type(
                    result, tensor_type(kept.element_type, shape)
                )
                assert not is_taken(op), f"{op.name} with a result of shape {shape}"
                result = Rewriter.replace_value_with_new_type(changed, kept)


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_no_op_takes_a_dimension_that_there_is_not(name: str) -> None:
    for op in ops_of(name):
        for spec in op.definition.attributes:
            if spec.name not in DIMENSIONS or op.parameter(spec.name) is None:
                continue
            kept = op.properties.get(spec.name)
            if spec.kind is INTEGER:
                op.properties[spec.name] = INTEGER.encode(99)
            elif spec.kind is INTEGERS and op.parameter(spec.name):
                op.properties[spec.name] = INTEGERS.encode([*op.parameter(spec.name)[1:], 99])
            else:
                continue
            assert not is_taken(op), f"{op.name} with '{spec.name}' of 99"
            if kept is None:
                del op.properties[spec.name]
            else:
                op.properties[spec.name] = kept
