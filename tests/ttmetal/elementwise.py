"""Functions with every elementwise op that there is an operation on tiles for, in each data type.

They follow from the catalogue: a new row with `tile` is tried without a word here. Ops on operands
of one kind share a function, which becomes one program: they all read what its first op gives, so
that they join the program that computes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    Float64Type,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    TensorType,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from tests.random_programs.recipes.regular import is_regular, result_kind
from ttcodegen import ops
from ttcodegen.conversions.ttir_to_ttmetal.cpu_hoist import unsupported_reason
from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import capacity
from ttcodegen.dialects.core.datatypes import bf16, f32, i1, si32, ui8, ui16, ui32
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import TTIR, OperandSpec, TTIRDefinition
from ttcodegen.ops.dialects import ttir_op_classes

ops.load()

ELEMENTS: dict[str, Attribute] = {
    "bf16": bf16,
    "f32": f32,
    "si32": si32,
    "ui32": ui32,
    "ui16": ui16,
    "ui8": ui8,
}
SHAPE = (2, 40, 70)
"""Neither of the last two sizes is a multiple of 32."""
PARTNERS = (SHAPE, (1, 1, 70), (2, 40, 1), (1, 1, 1), (1, 40, 70), (40, 1), (70,))
"""Shapes that broadcast to it: along rows, columns, both, batches, and of lower ranks."""
ATTRIBUTES = {"clamp_scalar": {"min": 0, "max": 1}}
ANYWHERE = {True: (-2.0, 2.0), False: (0, 8)}
"""Range of operands without a domain, by whether they are floats."""

Domain = tuple[float, float]


@dataclass(frozen=True)
class Candidate:
    """An op on elements of one type.

    Attributes:
        name: its name without the dialect.
        result: the element type of its result.
        domains: where its operands are drawn.
        masks: the operands that hold 0 and 1, whatever the type.
    """

    name: str
    result: Attribute
    domains: tuple[Domain, ...]
    masks: tuple[bool, ...]


def tile_ops() -> list[str]:
    """The ops that the catalogue has operations on tiles for, but those that only convert or draw
    random numbers."""
    return sorted(
        n for n, d in TTIR.items() if d.tile is not None and not d.draws and n != "to_layout"
    )


def candidates(element: Attribute) -> Iterator[Candidate]:
    """The ops that there are kernels for in that element type; not `typecast`."""
    for name in tile_ops():
        definition = TTIR[name]
        if name == "typecast" or not (
            is_regular(definition) or name in (*ATTRIBUTES, "clone", "gelu_bw", "remainder")
        ):
            continue
        masks = tuple(spec.input_kind == "mask" for spec in definition.operands)
        kind = result_kind(name, element, any(masks)) if is_regular(definition) else "f"
        if kind is None:
            continue
        domains = tuple(_domain(spec, element) for spec in definition.operands)
        for result in dict.fromkeys((element, i1) if kind == "b" else (element,)):
            found = Candidate(name, result, domains, masks)
            if _has_program(found, element):
                yield found


def _domain(spec: OperandSpec, element: Attribute) -> Domain:
    if spec.input_kind == "mask":
        return 0, 1
    is_float = element in (bf16, f32)
    if spec.domain is None:
        return (-8, 8) if element == si32 else ANYWHERE[is_float]
    low, high = spec.domain
    if is_float:
        # A part of the range is left to rounding.
        margin = (high - low) / 16
        return low + margin, high - margin
    return max(int(low) + (low > int(low)), 0), int(high)


def _has_program(candidate: Candidate, element: Attribute) -> bool:
    types = [TensorType(i1 if mask else element, SHAPE) for mask in candidate.masks]
    block = Block(arg_types=types)
    op = _emit(block, candidate, block.args)
    try:
        op.verify_()
    except VerifyException:
        return False
    return unsupported_reason(op) is None


def _emit(block: Block, candidate: Candidate, operands: Sequence[SSAValue]) -> CatalogueOp:
    builder = OpBuilder(ttir_op_classes(), block.add_op)
    attributes = ATTRIBUTES.get(candidate.name, {})
    result = TensorType(candidate.result, SHAPE)
    return builder.emit_op(candidate.name, list(operands), result, **attributes)


def functions(data_type: str) -> list[FuncOp]:
    """Functions that together have all those ops, each with as many as fit into a program."""
    element = ELEMENTS[data_type]
    kinds: dict[tuple[tuple[Domain, ...], tuple[bool, ...]], list[Candidate]] = {}
    for candidate in candidates(element):
        kinds.setdefault((candidate.domains, candidate.masks), []).append(candidate)
    # The base stays in a register, and an op may need another one for itself.
    room = capacity(element != bf16) - 2
    numbers = count()
    return [
        _function(f"{data_type}_{number}", element, found[start : start + room], number)
        for found in kinds.values()
        for start in range(0, len(found), room)
        for number in [next(numbers)]
    ]


def _function(name: str, element: Attribute, chosen: Sequence[Candidate], number: int) -> FuncOp:
    domains, masks = chosen[0].domains, chosen[0].masks
    first = masks.index(False)
    shapes = [PARTNERS[(number + index) % len(PARTNERS)] for index in range(len(masks))]
    shapes[first] = SHAPE
    types = [
        TensorType(i1 if mask else element, shape)
        for mask, shape in zip(masks, shapes, strict=True)
    ]
    block = Block(arg_types=types)
    builder = OpBuilder(ttir_op_classes(), block.add_op)
    # The maximum changes nothing, but the compiler does not know.
    operands: list[SSAValue] = list(block.args)
    if element in (bf16, f32, si32):
        bound = builder.emit_op(
            "full", [], TensorType(element, SHAPE), shape=SHAPE, fill_value=-100
        )
        base = builder.emit_op("maximum", [block.args[first], bound.results[0]], types[first])
        operands[first] = base.results[0]
    results = [_emit(block, candidate, operands).results[0] for candidate in chosen]
    return closed(name, block, results, domains)


def closed(
    name: str, block: Block, results: Sequence[SSAValue], domains: Iterable[Domain]
) -> FuncOp:
    """The function that returns those results of a block, its arguments drawn from the domains."""
    block.add_op(ReturnOp(*results))
    type_ = FunctionType.from_lists(
        [argument.type for argument in block.args], [value.type for value in results]
    )
    drawn = [
        DictionaryAttr(
            {
                "drawn.low": FloatAttr(low, Float64Type()),
                "drawn.high": FloatAttr(high, Float64Type()),
                "drawn.seed": IntegerAttr(index, i64),
            }
        )
        for index, (low, high) in enumerate(domains)
    ]
    return FuncOp(name, type_, Region(block), arg_attrs=ArrayAttr(drawn))


def typecasts() -> list[FuncOp]:
    """A function for each data type that converts to all that there is an operation for."""
    found: list[FuncOp] = []
    for name, element in ELEMENTS.items():
        low, high = (-8.0, 8.0) if element in (bf16, f32, si32) else (0, 100)
        block = Block(arg_types=[TensorType(element, SHAPE)])
        results = []
        for target in ELEMENTS.values():
            domain_fits = low >= 0 or target in (bf16, f32, si32)
            candidate = Candidate("typecast", target, ((low, high),), (False,))
            if target == element or not domain_fits:
                continue
            if _has_program(candidate, element):
                results.append(_emit(block, candidate, block.args).results[0])
        found.append(closed(f"cast_{name}", block, results, [(low, high)]))
    return found


def tried_ops(functions: Iterable[FuncOp]) -> set[str]:
    """The names of the ops of the catalogue in functions, without the dialect."""
    return {
        op.definition.short_name
        for function in functions
        for op in function.body.block.ops
        if isinstance(op, CatalogueOp) and isinstance(op.definition, TTIRDefinition)
    }
