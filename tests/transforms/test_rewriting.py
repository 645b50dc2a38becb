from __future__ import annotations

import pytest
from xdsl.dialects.builtin import StringAttr, UnknownLoc
from xdsl.ir import SSAValue

from tests.transforms.programs import Program, Transformed, transformed
from ttcodegen.dialects.core.datatypes import bf16, ui32
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.transforms.rewriting import PatternSet, Rewriter, erase_dead, rewrite_each
from ttcodegen.transforms.ttir.canonicalize import TTIRCanonicalizePass


def fresh(rewriter: Rewriter, op: CatalogueOp) -> SSAValue:
    return rewriter.emit(op.definition.short_name, list(op.operands), op.result_type)


def test_what_replaces_an_op_gets_its_place_and_name() -> None:
    program = Program()
    value = program.make.like("exp", program.argument(2, 2))
    value.owner.source_offset = 17
    value.name_hint = "scores"
    location = UnknownLoc()
    value.owner.location = location
    result = Transformed(program.returns(value))
    rules = PatternSet()
    rules.on("ttir.exp")(lambda rewriter, op: rewriter.like("tanh", op.operands[0]))
    assert rules.apply(result.function)
    (op,) = result.ops
    assert (op.name, op.source_offset, op.location) == ("ttir.tanh", 17, location)
    assert op.results[0].name_hint == "scores"


def test_rules_apply_until_none_does_and_drop_what_nobody_uses() -> None:
    program = Program()
    x = program.argument(4)
    unused = program.make.like("exp", program.make.like("sqrt", x))
    value = x
    for _ in range(50):
        value = program.make.like("neg", value)
    result = transformed(program.returns(value), TTIRCanonicalizePass())
    assert result.names == []
    assert unused.first_use is None


def test_rules_that_never_settle_are_found() -> None:
    program = Program()
    result = Transformed(program.returns(program.make.like("exp", program.argument(2))))
    rules = PatternSet()
    rules.on("ttir.exp")(fresh)
    with pytest.raises(RecursionError, match="never settle"):
        rules.apply(result.function)
    with pytest.raises(RecursionError, match="never ends"):
        rewrite_each(result.function, fresh, lambda op: op.name == "ttir.exp")


def cache_program(*, read_after: bool) -> tuple[Program, SSAValue, SSAValue]:
    """A cache that is overwritten, and two equal reads on both sides of it or on one."""
    program = Program()
    cache = program.argument(1, 2, 64, 32, element=bf16)
    update = program.argument(1, 2, 32, 32, element=bf16)

    def read() -> SSAValue:
        return program.make.reshape(cache, [2, 64, 32])

    first = read()
    if not read_after:
        second = read()
    program.make.emit_op("fill_cache", [cache, update], [], batch_offset=0)
    if read_after:
        second = read()
    return program, first, second


def test_reads_on_both_sides_of_a_write_are_not_merged() -> None:
    program, *reads = cache_program(read_after=True)
    result = transformed(program.returns(*reads), TTIRCanonicalizePass())
    assert result.names == ["reshape", "fill_cache", "reshape"]


def test_reads_on_one_side_of_a_write_are_merged() -> None:
    program, *reads = cache_program(read_after=False)
    result = transformed(program.returns(*reads), TTIRCanonicalizePass())
    assert result.names == ["reshape", "fill_cache"]


def test_a_read_does_not_move_over_a_write() -> None:
    program, read, _ = cache_program(read_after=False)
    back = program.make.reshape(read, [1, 2, 64, 32])
    result = transformed(program.returns(back), TTIRCanonicalizePass())
    assert result.names == ["reshape", "fill_cache", "reshape"]


def test_a_copy_of_what_is_overwritten_later_stays() -> None:
    program = Program()
    cache = program.argument(1, 2, 64, 32, element=bf16)
    copy = program.make.emit("permute", [cache], cache.type, permutation=[0, 1, 2, 3])
    program.make.emit_op(
        "fill_cache", [cache, program.argument(1, 2, 32, 32, element=bf16)], [], batch_offset=0
    )
    result = transformed(program.returns(copy, cache), TTIRCanonicalizePass())
    assert result.names == ["permute", "fill_cache"]


def test_random_numbers_are_not_merged() -> None:
    program = Program()
    drawn = [program.make.emit("rand", [], program.argument(2).type, seed=3) for _ in range(2)]
    result = transformed(program.returns(*drawn), TTIRCanonicalizePass())
    assert result.names == ["rand", "rand"]


def test_equal_ops_with_other_attributes_are_not_merged() -> None:
    program = Program()
    x = program.argument(2, 3)
    values = [
        program.make.like("leaky_relu", x, parameter=0.5),
        program.make.like("leaky_relu", x, parameter=0.25),
        program.make.like("leaky_relu", x, parameter=0.5),
    ]
    values[2].owner.attributes["note"] = StringAttr("another")
    result = transformed(program.returns(*values), TTIRCanonicalizePass())
    assert result.names == ["leaky_relu"] * 3


def test_dead_ops_are_erased_but_not_writes() -> None:
    program, *_ = cache_program(read_after=False)
    indices = program.argument(2, element=ui32)
    program.make.typecast(indices, bf16)
    result = Transformed(program.returns())
    assert erase_dead(result.function)
    assert result.names == ["fill_cache"]
