"""The tuning knobs of a matrix product: its grid, its blocks and the depth of its buffers.

A dimension of one tile has one block on one core: its sizes are the number 1, not settings.
"""

from __future__ import annotations

from collections.abc import Mapping

from ttcodegen.conversions.ttir_to_ttmetal.grouping.registers import HALF_OF_REGISTERS
from ttcodegen.conversions.ttir_to_ttmetal.matmul.blocking import Blocking
from ttcodegen.conversions.ttir_to_ttmetal.parts.circular_buffers import DOUBLE
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import ProgramParts
from ttcodegen.dialects.ttmetal.programs import FP32_DESTINATION
from ttcodegen.dialects.ttmetal.tuning import (
    Name,
    Operation,
    Size,
    at_most,
    ceil_quotient,
    equal,
    remainder,
    select,
)


def declare_settings(parts: ProgramParts, blocking: Blocking, subblock: int) -> Mapping[str, Size]:
    """Adds the settings of a product to its program; gives all sizes that its kernels know.

    Args:
        parts: those of the program.
        blocking: the sizes that the settings have at first.
        subblock: the tiles of a row that are computed at a time at first; 0 where what follows the
            product takes them one by one.
    """
    sizes: dict[str, Size] = {}
    _grid(parts, blocking, sizes)
    _blocks(parts, blocking, sizes, subblock)
    parts.setting(
        "operand_depth",
        DOUBLE,
        "Blocks of each operand in L1: with 2, the next block is read while the current one is "
        "multiplied; with 1, reading and computing alternate.",
    )
    parts.setting("result_depth", DOUBLE, "Output steps buffered in L1 for the writer: 1 or more.")
    _tensors(parts, blocking, sizes)
    _counts(parts, sizes)
    return sizes


def _grid(parts: ProgramParts, blocking: Blocking, sizes: dict[str, Size]) -> None:
    for line, operand in (("rows", "right"), ("columns", "left")):
        name, number = f"grid_{line}", getattr(blocking, f"grid_{line}")
        sizes[name] = number
        if number > 1:
            sizes[name] = parts.setting(
                name,
                number,
                f"{line.capitalize()} of cores, 2 or more. Each computes its own blocks of {line} "
                "of the result.",
                least=2,
                reason=f"blocks of the {operand} operand are sent to other cores",
            )


def _blocks(parts: ProgramParts, blocking: Blocking, sizes: dict[str, Size], subblock: int) -> None:
    remarks = {
        "rows": "Rows of tiles in a block, which a core computes at a time. Larger blocks read the "
        "operands less often, but need more L1.",
        "columns": "Columns of tiles in a block.",
        "inner": "Tiles of the inner dimension in a block. Larger blocks need fewer but longer "
        "transfers, and more L1. The last block has what is left.",
    }
    for line, remark in remarks.items():
        name = f"block_{line}"
        whole = getattr(blocking, line)
        sizes[name] = 1
        if whole > 1:
            sizes[name] = parts.setting(name, getattr(blocking, name), remark)
    sizes["subblock_columns"] = 1
    if subblock and blocking.columns > 1:
        columns = parts.setting(
            "subblock_columns",
            subblock,
            "Tiles of a block row that are computed together in the destination registers: up to "
            f"{HALF_OF_REGISTERS // 2}, or {HALF_OF_REGISTERS} without fp32_dest_acc_en. Must "
            "divide block_columns.",
        )
        sizes["subblock_columns"] = columns
        parts.rule(
            equal(remainder(sizes["block_columns"], columns), 0),
            "subblock_columns must divide block_columns",
        )
        registers = select(Name(FP32_DESTINATION), HALF_OF_REGISTERS // 2, HALF_OF_REGISTERS)
        parts.rule(
            at_most(columns, registers),
            "subblock_columns tiles must fit into the destination registers, which hold "
            f"{HALF_OF_REGISTERS // 2} tiles, {HALF_OF_REGISTERS} without fp32_dest_acc_en",
        )


def _tensors(parts: ProgramParts, blocking: Blocking, sizes: dict[str, Size]) -> None:
    """How many tiles and matrices there are, which no setting changes."""
    for name in ("batches", "rows", "columns", "inner"):
        number = getattr(blocking, name)
        sizes[name] = number if number == 1 else parts.derive(name, number)


def _counts(parts: ProgramParts, sizes: dict[str, Size]) -> None:
    """How many blocks there are; in a pass each core computes one. Those of rows and columns are
    rounded up: what is beyond the result is computed, but not written."""
    for line in ("row", "column"):
        at_a_time = sizes[f"block_{line}s"] * sizes[f"grid_{line}s"]
        if isinstance(at_a_time, Operation):
            at_a_time = parts.derive(f"pass_{line}s", at_a_time)
        count = ceil_quotient(sizes[f"{line}s"], at_a_time)
        name = f"{line}_blocks"
        sizes[name] = count if isinstance(count, int) else parts.derive(name, count)
    inner, block = sizes["inner"], sizes["block_inner"]
    sizes["inner_blocks"] = sizes["last_inner"] = 1
    if isinstance(inner, Name):
        blocks = parts.derive("inner_blocks", ceil_quotient(inner, block))
        sizes["inner_blocks"] = blocks
        sizes["last_inner"] = parts.derive("last_inner", inner - (blocks - 1) * block)
