"""Constraints on kernel ops beyond the kinds of their operands and attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.ttcore.dialect import DataTypeAttr
from ttcodegen.dialects.ttcore.tile import TileType
from ttcodegen.dialects.ttkernel.attributes import (
    CBType,
    ReduceDim,
    ReduceDimAttr,
    ReduceType,
    ReduceTypeAttr,
)


class _KernelOp(Protocol):
    """Op with named operands and attributes."""

    properties: dict[str, Attribute]

    @property
    def operands(self) -> Sequence[SSAValue]:
        """All operands."""
        ...

    def operand_named(self, name: str) -> SSAValue | None:
        """Returns an operand by name, or None if it is absent."""
        ...

    def number_named(self, name: str) -> int | None:
        """Returns the constant value of an operand or attribute."""
        ...


_REDUCED_FORMATS = ("f32", "si32", "u32", "u16", "bf16")
"""Formats of `sfpu_reduce` (api/compute/compute_kernel_api.h)."""
_PREFIX = "experimental."


def _pages(op: _KernelOp, *, tiles: tuple[str, ...] = (), rows: tuple[str, ...] = ()) -> str:
    """Returns the error of circular buffers with tiles where rows are expected, or the reverse."""
    for names, expected in ((tiles, True), (rows, False)):
        for name in names:
            value = op.operand_named(name)
            if value is None or not isinstance(value.type, CBType):
                continue
            if isinstance(value.type.element_type, TileType) is not expected:
                what = "tiles" if expected else "elements in rows"
                return f": '{name}' holds {what}, found {value.type}"
    return ""


def _columns(op: _KernelOp) -> str:
    """Returns the error of column counts that passes through the destination registers do not
    divide."""
    each = op.number_named("colsPerDstPass") or 8
    count = op.number_named("totalColTiles") or each
    block = op.number_named("blockC")
    if count % each:
        return f": {count} columns of tiles do not divide into passes of {each}"
    if block is not None and (block < 1 or block % each):
        return f": a block of {block} columns does not divide into passes of {each}"
    return ""


def _pages_and_columns(op: _KernelOp) -> str:
    return _pages(op, tiles=("cbIn",), rows=("cbOut",)) or _columns(op)


def _reduction(op: _KernelOp) -> str:
    kind, direction = op.properties.get("reduce_type"), op.properties.get("reduce_dim")
    dtype = op.properties.get("data_format")
    if isinstance(dtype, DataTypeAttr) and dtype.value.data not in _REDUCED_FORMATS:
        return f" reduces {', '.join(_REDUCED_FORMATS)}, found {dtype.value.data}"
    if not isinstance(direction, ReduceDimAttr) or direction.data is ReduceDim.COL:
        return ""
    if direction.data is not ReduceDim.ROW:
        return f" reduces columns or rows, found {direction.data.value}"
    if isinstance(kind, ReduceTypeAttr) and kind.data not in (ReduceType.SUM, ReduceType.MAX):
        return f" reduces rows by reduce_sum or reduce_max, found {kind.data.value}"
    return ""


def _places(op: _KernelOp) -> str:
    """Returns the error of a format whose number of placeholders differs from the operands."""
    text = op.properties.get("fmt")
    count = text.data.count("{}") if isinstance(text, StringAttr) else 0
    if count != len(op.operands):
        return f" has {len(op.operands)} operands for {count} places in its format"
    return ""


def _accessor_arguments(op: _KernelOp) -> str:
    """Returns the error of accessor arguments, which follow others or begin at known positions."""
    given = [name for name in ("cta_base", "crta_base") if op.properties.get(name) is not None]
    if op.operand_named("prev_args") is not None:
        return f" has '{given[0]}' and arguments before it" if given else ""
    if "cta_base" not in given and op.operand_named("cta_base") is None:
        if "cta_expr" not in op.properties:
            return " needs 'cta_base', or the arguments before it"
    for name in ("cta_base", "crta_base"):
        expression = name.replace("base", "expr")
        if op.operand_named(name) is not None and op.number_named(name) is None:
            if expression not in op.properties:
                return f": '{name}' is a constant, or there is a '{expression}'"
    return ""


CONDITIONS: Mapping[str, Callable[[_KernelOp], str]] = {
    **dict.fromkeys(
        ("tilize_init", "tilize_block", f"{_PREFIX}tilize_block"),
        partial(_pages, rows=("cbIn",), tiles=("cbOut",)),
    ),
    **dict.fromkeys(
        ("untilize_block", f"{_PREFIX}untilize_block"),
        partial(_pages, tiles=("cbIn",), rows=("cbOut",)),
    ),
    **dict.fromkeys(
        ("pack_untilize_init", "pack_untilize_block", f"{_PREFIX}pack_untilize_block"),
        _pages_and_columns,
    ),
    **dict.fromkeys(("pack_untilize_dest_init", "pack_untilize_dest"), _columns),
    "untilize_init": partial(_pages, tiles=("cbIn",)),
    "transpose_wh_init": partial(_pages, tiles=("cbIn", "cbOut")),
    "transpose_wh_init_short": partial(_pages, tiles=("cbIn",)),
    "transpose_wh_tile": partial(_pages, tiles=("icb",)),
    **dict.fromkeys(("sfpu_reduce_init", "sfpu_reduce"), _reduction),
    "dprint": _places,
    "TensorAccessorArgs": _accessor_arguments,
}
"""Checks by op name: they return the error as text after the op's name, empty if there is none."""
