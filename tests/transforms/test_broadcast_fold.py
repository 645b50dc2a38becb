from __future__ import annotations

import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from tests.transforms.programs import Program, transformed
from ttcodegen.dialects.core.datatypes import bf16, element_of, shape_of
from ttcodegen.ops.core.dimensions import dimension_groups
from ttcodegen.transforms.ttir.movement_passes import TTIRImplicitBroadcastFoldPass, reshaped_source


def broadcast(p: Program, value: SSAValue, *factors: int) -> SSAValue:
    shape = [a * b for a, b in zip(shape_of(value.type), factors, strict=True)]
    result = TensorType(element_of(value.type), shape)
    return p.make.emit("broadcast", [value], result, broadcast_dimensions=list(factors))


def check(p: Program, value: SSAValue, *expected: str) -> None:
    result = transformed(p.returns(value), TTIRImplicitBroadcastFoldPass())
    assert result.names == list(expected)


def test_a_binary_op_broadcasts_itself() -> None:
    p = Program()
    x = p.argument(2, 3, 4)
    check(p, p.make.like("add", x, broadcast(p, p.argument(1, 3, 1), 2, 1, 4)), "add")


def test_an_op_of_small_operands_is_small() -> None:
    p = Program()
    small = [broadcast(p, p.argument(1, 3), 5, 1) for _ in range(2)]
    module = p.returns(p.make.like("add", *small))
    result = transformed(module, TTIRImplicitBroadcastFoldPass())
    assert result.names == ["add", "broadcast"]
    assert result.op("add").result_shape == (1, 3)


def test_a_broadcast_moves_behind_unary_ops_reshapes_and_permutes() -> None:
    p = Program()
    value = broadcast(p, p.argument(1, 3, 4), 2, 1, 1)
    value = p.make.typecast(p.make.like("exp", value), bf16)
    value = p.make.reshape(p.make.permute(value, [1, 0, 2]), [3, 2, 2, 2])
    value = p.make.like("multiply", value, p.argument(3, 2, 2, 2, element=bf16))
    check(p, value, "exp", "typecast", "permute", "reshape", "multiply")


def test_a_broadcast_stays_in_front_of_what_does_not_broadcast() -> None:
    p = Program()
    value = broadcast(p, p.argument(1, 3), 5, 1)
    check(p, p.make.reduce("sum", value, [0]), "broadcast", "sum")


def test_a_reshape_that_joins_broadcast_and_other_dimensions_stays() -> None:
    p = Program()
    value = p.make.reshape(broadcast(p, p.argument(2, 1, 3), 1, 4, 1), [8, 3])
    check(p, p.make.like("add", value, p.argument(8, 3)), "broadcast", "reshape", "add")


def test_numbers_shrink() -> None:
    p = Program()
    condition = p.make.like("lt", p.argument(4, 5), p.number(0.5, 4, 5))
    value = p.make.emit("where", [condition, p.number(1.0, 4, 5), p.argument(4, 5)], condition.type)
    result = transformed(p.returns(value), TTIRImplicitBroadcastFoldPass())
    fills = [op.result_shape for op in result.ops if op.name == "ttir.full"]
    assert fills == [(1, 1), (1, 1)]


def test_a_number_that_gives_the_shape_stays() -> None:
    p = Program()
    value = p.make.broadcasting("add", p.argument(1, 3), p.number(1.0, 5, 3))
    result = transformed(p.returns(value), TTIRImplicitBroadcastFoldPass())
    assert [op.result_shape for op in result.ops if op.name == "ttir.full"] == [(5, 3)]


def test_a_choice_broadcasts_itself() -> None:
    p = Program()
    condition = broadcast(p, p.argument(1, 3, 1), 2, 1, 4)
    operands = [condition, broadcast(p, p.argument(1, 1, 4), 2, 3, 1), p.argument(2, 3, 4)]
    check(p, p.make.emit("where", operands, operands[2].type), "where")


def test_leading_dimensions_of_one_element_need_no_reshape() -> None:
    p = Program()
    row = p.make.reshape(p.argument(4), [1, 1, 4])
    check(p, p.make.like("add", p.argument(2, 3, 4), row), "add")


def test_a_reshape_that_the_result_needs_stays() -> None:
    p = Program()
    rows = [p.make.reshape(p.argument(4), [1, 4]) for _ in range(2)]
    module = p.returns(p.make.like("add", *rows))
    result = transformed(module, TTIRImplicitBroadcastFoldPass())
    assert result.op("add").result_shape == (1, 4)


@pytest.mark.parametrize(
    ("before", "after", "groups"),
    [
        ((2, 3, 4), (6, 4), [([0, 1], [0]), ([2], [1])]),
        ((6, 4), (2, 3, 4), [([0], [0, 1]), ([1], [2])]),
        ((1, 2, 1, 3), (2, 3, 1), [([1], [0]), ([3], [1])]),
        ((4, 6), (8, 3), [([0, 1], [0, 1])]),
        ((), (), []),
        ((1, 1), (1,), []),
    ],
)
def test_dimension_groups(
    before: tuple[int, ...], after: tuple[int, ...], groups: list[tuple[list[int], list[int]]]
) -> None:
    assert dimension_groups(before, after) == groups


@pytest.mark.parametrize(
    ("source", "before", "after", "expected"),
    [
        ((1, 3), (2, 3), (2, 3, 1), (1, 3, 1)),
        ((1, 1, 3), (4, 5, 3), (20, 3), (1, 3)),
        ((4, 1, 3), (4, 5, 3), (20, 3), None),
        ((1, 6), (2, 6), (2, 2, 3), (1, 2, 3)),
        ((1, 0), (2, 0), (0,), None),
    ],
)
def test_reshaped_source(
    source: tuple[int, ...],
    before: tuple[int, ...],
    after: tuple[int, ...],
    expected: tuple[int, ...] | None,
) -> None:
    assert reshaped_source(source, before, after) == expected
