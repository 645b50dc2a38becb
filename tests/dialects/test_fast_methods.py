"""The methods that take the place of xDSL's do what those do."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import xdsl.ir.core
import xdsl.irdl.attributes
import xdsl.irdl.constraints
from xdsl.dialects import test
from xdsl.dialects.builtin import FunctionType, IntegerAttr, ModuleOp, StringAttr, TensorType, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import AnyAttr, BaseAttr
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.fast_methods import REPLACED, replace_methods

replace_methods()

WRITTEN_FOR = "48e495aee5c1"
"""The hash of what is replaced, in the release of xDSL that this package is pinned to."""


def test_what_is_replaced_is_what_the_methods_were_written_for() -> None:
    classes: dict[str, tuple[str, ast.ClassDef]] = {}
    for module in (xdsl.ir.core, xdsl.irdl.attributes, xdsl.irdl.constraints):
        source = Path(module.__file__).read_text()
        nodes = ast.parse(source).body
        classes |= {node.name: (source, node) for node in nodes if isinstance(node, ast.ClassDef)}
    texts = list[str]()
    constraints = dict.fromkeys((AnyAttr, BaseAttr), ("verify",))
    for class_, methods in {**REPLACED, **constraints}.items():
        # Fields as well, whose defaults the methods rely on; methods may be inherited.
        names = [base.__name__ for base in class_.__mro__ if base.__name__ in classes]
        for source, owner in [classes[name] for name in names]:
            for node in owner.body:
                method = isinstance(node, ast.FunctionDef) and node.name in methods
                if method or isinstance(node, ast.AnnAssign):
                    texts.append(ast.get_source_segment(source, node) or "")
    assert hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12] == WRITTEN_FOR


def nested() -> ModuleOp:
    """A module of three ops, the second with two regions, one of them of two blocks."""

    def op(*regions: Region) -> test.TestOp:
        return test.TestOp(result_types=[i32], regions=regions)

    blocks = [Block([op(), op()]), Block([op()])]
    return ModuleOp([op(), op(Region(blocks), Region(Block([op()]))), op()])


@pytest.mark.parametrize("region_first", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_walk_meets_every_op_in_order(reverse: bool, region_first: bool) -> None:
    def expected(op: Operation) -> list[Operation]:
        inside = [
            found
            for region in (reversed(op.regions) if reverse else op.regions)
            for block in (reversed(region.blocks) if reverse else region.blocks)
            for inner in (reversed(block.ops) if reverse else block.ops)
            for found in expected(inner)
        ]
        return [*inside, op] if region_first else [op, *inside]

    module = nested()
    walked = list(module.walk(reverse=reverse, region_first=region_first))
    assert walked == expected(module)
    assert len(walked) == 8
    body = module.body
    assert list(body.walk(reverse=reverse, region_first=region_first)) == [
        op for op in walked if op is not module
    ]
    assert list(body.block.walk(reverse=reverse, region_first=region_first)) == [
        op for op in walked if op is not module
    ]


def ops_of(block: Block) -> Iterable[Operation]:
    return block.ops


@pytest.mark.parametrize("walk", [ops_of, Block.walk])
def test_ops_may_go_while_they_are_walked(walk: Callable[[Block], Iterable[Operation]]) -> None:
    block = Block([test.TestOp() for _ in range(4)])
    ops = list(block.ops)
    seen: list[Operation] = []
    for op in walk(block):
        seen.append(op)
        block.erase_op(op)
    assert seen == ops
    assert block.is_empty


def test_operands_and_their_uses_stay_together() -> None:
    first, second = test.TestOp(result_types=[i32, i32]), test.TestOp(result_types=[i32])
    a, b = first.results
    (c,) = second.results
    user = test.TestOp(operands=[a, b, a])
    assert [(use.operation, use.index) for use in a.uses] == [(user, 2), (user, 0)]
    user.operands[0] = c
    assert list(user.operands) == [c, b, a]
    assert user.operands[1:] == (b, a)
    assert type(user.results[:0]) is type(user.results)
    assert [use.index for use in a.uses] == [2]
    assert [use.index for use in c.uses] == [0]
    b.replace_all_uses_with(c)
    assert list(user.operands) == [c, c, a]
    user.drop_all_references()
    assert not any(value.first_use for value in (a, b, c))


def test_operands_that_were_taken_stay_and_may_be_written_through() -> None:
    a, b, c = test.TestOp(result_types=[i32, i32, i32]).results
    user = test.TestOp(operands=[a, b])
    taken = user.operands
    taken[0] = c
    taken[1] = c
    assert list(taken) == [a, b]
    assert list(user.operands) == [c, c]
    assert [use.index for use in c.uses] == [1, 0]
    assert list(user.operands[1:]) == [c]


def test_equal_types_are_one_key() -> None:
    one, other = TensorType(i32, [2, 3]), TensorType(i32, [2, 3])
    assert hash(one) == hash(one) == hash(other)
    assert len({one, other, TensorType(i32, [3, 2])}) == 2
    assert one == other


def test_ops_without_anything_share_nothing() -> None:
    one, other = test.TestOp(), test.TestOp()
    one.attributes["key"] = IntegerAttr(1, i32)
    assert not other.attributes
    assert not one.operands
    assert not one.results
    one.operands = test.TestOp(result_types=[i32]).results
    assert not other.operands


def test_op_is_not_put_into_itself_nor_into_two_blocks() -> None:
    block = Block()
    op = test.TestOp(regions=[Region(block)])
    with pytest.raises(ValueError, match="contained in the operation"):
        block.add_op(op)
    inner = test.TestOp()
    block.add_op(inner)
    with pytest.raises(ValueError, match="already attached"):
        Block().add_op(inner)


def test_values_and_ops_are_distinguished_by_kind() -> None:
    one, other = test.TestOp(result_types=[i32]), test.TestOp(result_types=[i32])
    assert one == one
    assert one != other
    assert len({one, other, one.results[0], other.results[0]}) == 4
    assert isinstance(one, Operation)
    assert isinstance(one.results[0], SSAValue)
    assert isinstance(i32, Attribute)
    assert not isinstance(one, Attribute)


def test_attribute_is_data_or_has_parameters() -> None:
    class Neither(Attribute):
        name = "neither"

    with pytest.raises(TypeError, match="only be Data or ParametrizedAttribute"):
        Neither()


def test_parameters_of_another_kind_are_refused() -> None:
    with pytest.raises(VerifyException, match="parameter 'inputs' does not verify"):
        FunctionType.new([StringAttr("no array"), StringAttr("no array")])
    with pytest.raises(VerifyException, match="parameter 'shape' does not verify"):
        TensorType.new([StringAttr("no shape"), i32, StringAttr("")])
