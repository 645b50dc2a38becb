"""Recipes that follow from the catalogue: elementwise ops without attributes that have to be given.

A new row of the elementwise tables gets its recipe here without a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.utils.exceptions import VerifyException

from tests.random_programs.generator import ELEMENTS, Generator, Recipe, Shape
from ttcodegen.dialects.core.datatypes import element_of, i1, numpy_name, shape_of
from ttcodegen.numerics.rounding import in_compute_dtype
from ttcodegen.ops.core.builder import OpBuilder, broadcast_shapes
from ttcodegen.ops.core.definition import (
    REQUIRED,
    TTIR,
    Call,
    OperandSpec,
    ResultInfo,
    TTIRDefinition,
)
from ttcodegen.ops.dialects import ttir_op_classes
from ttcodegen.ops.elementwise.binary import verify_remainder
from ttcodegen.ops.elementwise.registration import verify_bits, verify_broadcast, verify_integers


def is_regular(definition: TTIRDefinition) -> bool:
    """Returns whether the op broadcasts its operands and requires nothing else."""
    return (
        definition.verify in (verify_broadcast, verify_bits, verify_integers, verify_remainder)
        and bool(definition.operands)
        and all(spec.count == "one" for spec in definition.operands)
        and all(spec.default is not REQUIRED for spec in definition.attributes)
    )


def recipes() -> dict[str, Recipe]:
    """A recipe for each regular op of the catalogue."""
    return {name: partial(_add, name) for name, found in TTIR.items() if is_regular(found)}


def _add(name: str, generator: Generator) -> None:
    definition = TTIR[name]
    selects = len(definition.operands) == 3 and definition.operands[0].input_kind == "mask"
    kinds = {element: result_kind(name, element, selects) for element in set(ELEMENTS)}
    elements = [element for element in ELEMENTS if kinds[element] is not None]
    first = generator.any(elements=elements)
    element, kind = element_of(first.type), kinds[element_of(first.type)]
    operands: list[SSAValue] = []
    shape = shape_of(first.type)
    for index, spec in enumerate(definition.operands):
        value = first if index == 0 else _partner(generator, shape, element)
        if selects and index == 0:
            value = generator.like(shape, i1)
        operands.append(_in_domain(generator, value, spec))
        broadcast = broadcast_shapes([shape, shape_of(value.type)])
        assert broadcast is not None
        shape = broadcast
    if generator.chance(30) and not selects:
        operands.reverse()
        operands = [
            _in_domain(generator, value, spec)
            for value, spec in zip(operands, definition.operands, strict=True)
        ]
    result = i1 if kind == "b" and generator.chance(60) else element
    generator.apply(name, operands, TensorType(result, shape))


def _in_domain(generator: Generator, value: SSAValue, spec: OperandSpec) -> SSAValue:
    return value if spec.domain is None else generator.within(value, *spec.domain)


def _partner(generator: Generator, shape: Shape, element: Attribute) -> SSAValue:
    """A value of that element type whose shape broadcasts with the given one."""

    def fits(value: SSAValue) -> bool:
        broadcast = broadcast_shapes([shape, shape_of(value.type)])
        small = broadcast is not None and np.prod(broadcast, dtype=int) <= 4096
        return small and element_of(value.type) == element

    found = generator.existing(fits)
    if found is not None:
        return found
    wanted = list(shape)
    if generator.chance(50):
        wanted = [1 if generator.chance(40) else size for size in wanted]
        wanted = wanted[generator.integer(0, len(wanted)) :]
    return generator.source(tuple(wanted), element)


@cache
def result_kind(name: str, element: Attribute, selects: bool) -> str | None:
    """The kind of numpy dtype that the op's meaning gives for operands of that type, None if it
    gives none or another than booleans and that of the operands: the op is not for the type."""
    definition = TTIR[name]
    kinds = [TensorType(element, [1]) for _ in definition.operands]
    if selects:
        kinds[0] = TensorType(i1, [1])
    if not _is_well_typed(name, kinds, TensorType(element, [1])):
        return None
    dtype = numpy_name(element) or ""
    one = in_compute_dtype(np.ones((1,), dtype=bool), dtype)
    operands = {spec.name: [one] for spec in definition.operands}
    if selects:
        operands[definition.operands[0].name] = [np.ones((1,), dtype=bool)]
    attributes = {spec.name: spec.default for spec in definition.attributes}
    call = Call(definition.name, operands, attributes, [ResultInfo((1,), dtype)])
    assert definition.numpy is not None
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(definition.numpy(call)).dtype.kind
    except TypeError:
        return None
    return found if found in ("b", one.dtype.kind) else None


def _is_well_typed(name: str, operands: Sequence[Attribute], result: Attribute) -> bool:
    block = Block(arg_types=operands)
    op = OpBuilder(ttir_op_classes(), block.add_op).emit_op(name, block.args, result)
    try:
        op.verify_()
    except VerifyException:
        return False
    return True
