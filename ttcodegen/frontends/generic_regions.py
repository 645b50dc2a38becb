"""Regions of `ttir.generic` that compute elements, as those of linalg.generic do, or that run
kernels on buffers, as in 2024: they become regions of ops on whole tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, MemRefType, ModuleOp, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ttcodegen.compat.ttmetal_programs import KERNEL, kernel_op
from ttcodegen.dialects.core.datatypes import element_of, shape_of, without_encoding
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.ttir.generic import GenericOp, YieldOp, elements_of
from ttcodegen.foundation.diagnostics import CompileError, copy_source_offset
from ttcodegen.frontends.linalg.forms import INPUTS
from ttcodegen.frontends.linalg.generics import generic
from ttcodegen.frontends.linalg.reductions import neutral_element
from ttcodegen.frontends.source_ops import source_operation
from ttcodegen.frontends.translation import Translator
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.transforms.rewriting import erase, is_unused


def lift_regions(module: ModuleOp) -> None:
    """Rewrites these regions; leaves other generics as they are.

    Raises:
        CompileError: at what a region computes that no op does.
    """
    for op in [each for each in module.walk() if isinstance(each, GenericOp)]:
        block = _only_block(op)
        values = [*op.inputs, *op.destinations]
        if block is None or any(elements_of(value) is None for value in values):
            continue
        types = [argument.type for argument in block.args]
        if len(types) != len(values):
            continue
        if types == [element_of(value.type) for value in values]:
            _replace(op, block, _elements_lifted(op, block))
        elif all(isinstance(type_, MemRefType) for type_ in types):
            _replace(op, block, _buffers_lifted(op, block))


def _only_block(op: GenericOp) -> Block | None:
    """The block of a generic whose work is in one region of a function."""
    if not isinstance(op.parent_op(), FuncOp) or len(op.bodies) != 1 or not op.outputs:
        return None
    blocks = list(op.bodies[0].blocks)
    return blocks[0] if len(blocks) == 1 and blocks[0].last_op is not None else None


def _replace(op: GenericOp, old: Block, new: Block) -> None:
    """Puts the block on tensors in place of that on elements or buffers."""
    for made in reversed(list(new.ops)):
        if is_unused(made):
            erase(made)
    if old.parent is op.bodies[0]:
        op.bodies[0].detach_block(old)
    op.bodies[0].add_block(new)


def _block_of_tensors(op: GenericOp, old: Block) -> Block:
    types = [without_encoding(value.type) for value in (*op.inputs, *op.destinations)]
    block = Block(arg_types=types)
    for argument, before in zip(block.args, old.args, strict=True):
        argument.name_hint = before.name_hint
    return block


def _yield(op: GenericOp, block: Block, results: Sequence[SSAValue]) -> Block:
    end = YieldOp.create(operands=list(results))
    copy_source_offset(op, end)
    block.add_op(end)
    return block


# Regions that compute elements


def _elements_lifted(op: GenericOp, old: Block) -> Block:
    """The block on whole tensors; its loops are those of a linalg.generic with these maps."""
    block = _block_of_tensors(op, old)
    build = Translator(block.add_op)
    build.origin = op
    starts = [
        _start(build, argument, destination)
        for argument, destination in zip(old.args[len(op.inputs) :], op.destinations, strict=True)
    ]
    attributes: dict[str, Attribute] = {
        "indexing_maps": op.indexing_maps,
        "iterator_types": op.iterator_types,
        INPUTS: DenseArrayBase.from_list(i32, [len(op.inputs), len(starts)]),
    }
    if not op.iterator_types.data:
        raise CompileError(
            "this ttir.generic computes elements, but does not say of which loops",
            op,
            remedy="give it indexing_maps and iterator_types",
        )
    source = source_operation("linalg.generic", None).create(
        operands=[*block.args[: len(op.inputs)], *starts],
        result_types=[without_encoding(result.type) for result in op.outputs],
        attributes=attributes,
    )
    region = op.bodies[0]
    region.detach_block(old)
    source.add_region(Region(old))
    try:
        results = generic(build, cast("Any", source))
    except CompileError as error:
        (found,) = error.diagnostics
        message = found.message.replace("linalg.generic", op.name)
        raise CompileError(message, op, remedy=found.remedy) from None
    return _yield(op, block, results)


def _start(build: Translator, accumulated: SSAValue, destination: SSAValue) -> SSAValue:
    """Initial value of a result: the destination's fill value, or the neutral element."""
    number = splat_of(destination)
    owner = destination.owner
    if number is None and not (isinstance(owner, Operation) and owner.name == "ttir.empty"):
        raise CompileError(
            "a result starts from a tensor that is neither empty nor filled with a number",
            destination,
            remedy="add that tensor to the result",
        )
    if number is None:
        number = neutral_element([use.operation for use in accumulated.uses])
    return build.full(shape_of(destination.type), number, element_of(destination.type))


# Regions that run kernels on buffers


def _buffers_lifted(op: GenericOp, old: Block) -> Block:
    """The block on whole tensors: what a kernel writes is the value of its buffer from then on."""
    block = _block_of_tensors(op, old)
    build = Translator(block.add_op)
    held: dict[SSAValue, SSAValue] = dict(zip(old.args, block.args, strict=True))
    written = old.args[len(op.inputs) :]
    for inner in old.ops:
        build.origin = inner
        name = operation_name(inner)
        if name == KERNEL and len(inner.operands) > 1:
            *read, target = inner.operands
            values = [_held(value, held, inner) for value in read]
            made = build.emit(kernel_op(inner), values, _held(target, held, inner).type)
            held[target] = made
        elif not isinstance(inner, YieldOp):
            raise CompileError(
                f"a region on buffers runs kernels, not '{name}'",
                inner,
                remedy="use ttir.kernel, or ops of TTIR on tensors",
            )
    if any(held[buffer] in block.args for buffer in written):
        raise CompileError("a buffer of the region that is a result is not written", op)
    return _yield(op, block, [held[buffer] for buffer in written])


def _held(value: SSAValue, held: Mapping[SSAValue, SSAValue], place: Operation) -> SSAValue:
    if value not in held:
        raise CompileError("a kernel takes buffers of its region alone", place)
    return held[value]
