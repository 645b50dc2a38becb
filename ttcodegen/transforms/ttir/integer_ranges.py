"""Integer ranges by interval arithmetic, to find ops that need more than 32 bits of an operand.

The device has integers of at most 32 bits. Sums, products and bitwise ops give the right low bits
whatever the high ones are. Quotients, comparisons, right shifts, sorts and conversions to floats do
not: they are wrong where a 64-bit operand exceeds the range of 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerType,
    ModuleOp,
    Signedness,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.hints import isa

from ttcodegen.dialects.core.datatypes import constant_array, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.ops.core.definition import TTIRDefinition, traits_of
from ttcodegen.ops.core.traits import Trait
from ttcodegen.transforms.rewriting import function_blocks, functions

Range = tuple[int, int]
"""Inclusive minimum and maximum of elements."""


def needs_upper_half(module: ModuleOp) -> list[CatalogueOp]:
    """Returns ops that depend on high halves of 64-bit integers which may not be sign extensions.

    Values computed from 64-bit arguments count as within 32 bits: programs refuse larger inputs.

    Args:
        module: a module of TTIR ops, before type legalization.
    """
    return [op for each in functions(module) for op in _users(each)]


def _users(function: FuncOp) -> list[CatalogueOp]:
    found: list[CatalogueOp] = []
    ranges: dict[SSAValue, Range] = {}
    blocks = function_blocks(function)
    if not any(_is_wide(value) for block in blocks for op in block.ops for value in op.results):
        return found
    for block in blocks:
        for argument in block.args:
            limits = _limits(argument.type)
            if limits is not None and not _is_wide(argument):
                ranges[argument] = limits
        for op in block.ops:
            if not isinstance(op, CatalogueOp):
                continue
            whole = _operands_read_whole(op)
            if _repeats_sign(op, ranges) or any(_exceeds(value, ranges) for value in whole):
                found.append(op)
            for index, result in enumerate(op.results):
                if (known := _range(op, index, ranges)) is not None:
                    ranges[result] = known
    return found


def _exceeds(value: SSAValue, ranges: Mapping[SSAValue, Range]) -> bool:
    """Returns whether a 64-bit integer may exceed 32 bits in its signedness."""
    element = _integer(value.type)
    if element is None or element.bitwidth < 64 or (known := ranges.get(value)) is None:
        return False
    low, high = known
    return low < -(2**31) or high >= 2**31 if _is_signed(element) else high >= 2**32


def _repeats_sign(op: CatalogueOp, ranges: Mapping[SSAValue, Range]) -> bool:
    """Returns whether the op is a logical right shift that may shift sign bits of 64-bit integers
    down."""
    element = _integer(op.operands[0].type) if op.name == "ttir.logical_right_shift" else None
    if element is None or element.bitwidth < 64 or not _is_signed(element):
        return False
    known = ranges.get(op.operands[0])
    return known is None or known[0] < 0


def _operands_read_whole(op: CatalogueOp) -> list[SSAValue]:
    """Returns the operands of which the op needs all bits."""
    traits = traits_of(op.definition)
    if op.name == "ttir.typecast":
        # Conversions between integers truncate.
        return [] if _limits(op.results[0].type) is not None else list(op.operands)
    if traits & (Trait.WRAPS | Trait.PLACES):
        return []
    if isinstance(op.definition, TTIRDefinition) and op.definition.moves:
        moved = _moved(op)
        return [value for value in op.operands if value not in moved]
    # A select only forwards its values.
    return list(op.operands[:1]) if op.name == "ttir.where" else list(op.operands)


def _moved(op: CatalogueOp) -> list[SSAValue]:
    """Returns the operands of a data movement op but its indices."""
    specs = zip(op.definition.operands, op.segments(), strict=True)
    kinds = [spec.input_kind for spec, size in specs for _ in range(size)]
    return [value for value, kind in zip(op.operands, kinds, strict=True) if kind != "index"]


def _integer(type_: Attribute) -> IntegerType | None:
    """Returns the element type of an integer tensor, else None."""
    if not isinstance(type_, TensorType):
        return None
    element = cast("TensorType[Attribute]", type_).element_type
    return cast("IntegerType", element) if isinstance(element, IntegerType) else None


def _is_wide(value: SSAValue) -> bool:
    element = _integer(value.type)
    return element is not None and element.bitwidth == 64


def _is_signed(element: IntegerType) -> bool:
    return element.signedness.data is not Signedness.UNSIGNED and element.bitwidth > 1


def _limits(type_: Attribute) -> Range | None:
    """Returns the range of an integer type, or None for floats."""
    element = _integer(type_)
    if element is None:
        return None
    bits = element.bitwidth
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if _is_signed(element) else (0, 2**bits - 1)


def _range(op: CatalogueOp, index: int, ranges: Mapping[SSAValue, Range]) -> Range | None:
    """Returns the range of a result; None for floats and for 64-bit results of unknown range."""
    result = op.results[index]
    limits = _limits(result.type)
    if limits is None:
        return None
    # Further results are indices, which are small.
    known = _known_range(op, ranges) if index == 0 else None
    if known is None:
        return None if _is_wide(result) else limits
    # Values that exceed their type wrap around.
    return known if limits[0] <= known[0] and known[1] <= limits[1] else limits


def _known_range(op: CatalogueOp, ranges: Mapping[SSAValue, Range]) -> Range | None:
    """Returns the range of the first result by the ranges of operands, or None if unknown."""
    definition, traits = op.definition, traits_of(op.definition)
    if (number := splat_of(op.results[0])) is not None and number == number:
        return (int(number), int(number)) if abs(number) < 2**64 else None
    if op.name == "ttir.constant":
        return _constant_range(op)
    if op.name == "ttir.arange":
        ends = (op.parameter("start"), op.parameter("end"))
        return min(ends), max(ends)
    if traits & Trait.TRUTH:
        return 0, 1
    if isinstance(definition, TTIRDefinition) and definition.moves and op.name != "ttir.typecast":
        return _united(_moved(op), ranges)
    if traits & Trait.SELECTS:
        chosen = op.operands[1:] if op.name == "ttir.where" else op.operands
        return _united(chosen, ranges)
    operands = [known for value in op.operands if (known := ranges.get(value)) is not None]
    rule = _RULES.get(definition.short_name)
    return rule(op, operands) if rule and len(operands) == len(op.operands) > 0 else None


def _united(values: Sequence[SSAValue], ranges: Mapping[SSAValue, Range]) -> Range | None:
    """Returns the union of ranges, or None if one is unknown."""
    known = [found for value in values if (found := ranges.get(value)) is not None]
    if not known or len(known) < len(values):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _constant_range(op: CatalogueOp) -> Range | None:
    value = op.properties.get("value")
    if not isa(value, DenseIntOrFPElementsAttr):
        return None
    numbers = constant_array(value)
    return (int(numbers.min()), int(numbers.max())) if numbers.size else None


def _products(first: Range, second: Range) -> Range:
    ends = [one * other for one in first for other in second]
    return min(ends), max(ends)


def _times(count: int, range_: Range) -> Range:
    """Returns the range of sums of up to `count` elements."""
    return min(0, count * range_[0]), max(0, count * range_[1])


def _summed(op: CatalogueOp, operands: list[Range]) -> Range:
    count = prod(shape_of(op.operands[0].type)) // max(1, prod(shape_of(op.results[0].type)))
    return _times(max(count, 1), operands[0])


def _multiplied(op: CatalogueOp, operands: list[Range]) -> Range:
    count = prod(shape_of(op.operands[0].type))
    most = max(abs(end) for end in operands[0])
    # Powers beyond 64 factors exceed any integer type anyway.
    power = most ** min(count, 64) if most > 1 else most
    return -power if operands[0][0] < 0 else 0, max(power, 1)


def _scanned(op: CatalogueOp, operands: list[Range]) -> Range:
    dim: int = op.parameter("dim")
    return _times(shape_of(op.operands[0].type)[dim], operands[0])


def _multiplied_matrices(op: CatalogueOp, operands: list[Range]) -> Range:
    # Contracted dimensions are among those of the first operand.
    return _times(prod(shape_of(op.operands[0].type)), _products(*operands[:2]))


def _divided(_: CatalogueOp, operands: list[Range]) -> Range:
    most = max(abs(end) for end in operands[0])
    return -most if operands[0][0] < 0 or operands[1][0] < 0 else 0, most


def _remaining(_: CatalogueOp, operands: list[Range]) -> Range:
    most = max(abs(end) for end in operands[1])
    return -most if operands[0][0] < 0 or operands[1][0] < 0 else 0, most


def _masked(op: CatalogueOp, operands: list[Range]) -> Range | None:
    """Returns the range of a bitwise op: up to the mask of an and, else all numbers of as many
    bits."""
    if op.definition.short_name == "bitwise_and":
        masks = [high for low, high in operands if low >= 0]
        if masks:
            return 0, min(masks)
    bits = max(max(low.bit_length(), high.bit_length()) for low, high in operands)
    is_signed = min(low for low, _ in operands) < 0
    return -(2**bits) if is_signed else 0, 2**bits - 1


def _shifted_left(_: CatalogueOp, operands: list[Range]) -> Range | None:
    low, high = operands[1]
    return _products(operands[0], (2**low, 2**high)) if 0 <= low <= high < 64 else None


def _shifted_right(_: CatalogueOp, operands: list[Range]) -> Range | None:
    (low, high), (least, most) = operands
    if not 0 <= least <= most < 64:
        return None
    ends = [end >> places for end in (low, high) for places in (least, most)]
    return min(ends), max(ends)


_RULES: dict[str, Callable[[CatalogueOp, list[Range]], Range | None]] = {
    "typecast": lambda _, of: of[0],
    "add": lambda _, of: (of[0][0] + of[1][0], of[0][1] + of[1][1]),
    "subtract": lambda _, of: (of[0][0] - of[1][1], of[0][1] - of[1][0]),
    "multiply": lambda _, of: _products(of[0], of[1]),
    "square": lambda _, of: (0, _products(of[0], of[0])[1]),
    "neg": lambda _, of: (-of[0][1], -of[0][0]),
    "abs": lambda _, of: (0, max(abs(of[0][0]), abs(of[0][1]))),
    "sum": _summed,
    "prod": _multiplied,
    "cumsum": _scanned,
    "cumprod": _multiplied,
    "matmul": _multiplied_matrices,
    "dot_general": _multiplied_matrices,
    "div": _divided,
    "remainder": _remaining,
    "bitwise_and": _masked,
    "bitwise_or": _masked,
    "bitwise_xor": _masked,
    "bitwise_not": lambda _, of: (~of[0][1], ~of[0][0]),
    "logical_left_shift": _shifted_left,
    "right_shift": _shifted_right,
}
