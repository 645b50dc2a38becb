"""The measured calls of tt-metal 0.70.1 for sharded tensors, as calls of the model of cost.

The table is no part of the project: $TTCODEGEN_SHARDED_RULES names it, or it lies beside.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ttcodegen.dialects.compute_config import ComputeConfig
from ttcodegen.dialects.cores import CoreRange
from ttcodegen.dialects.datatypes import DataType
from ttcodegen.dialects.memory import Layout
from ttcodegen.dialects.placement import TensorPlacement
from ttcodegen.dialects.program_configs import (
    CoreGrid,
    MatmulMultiCast,
    MatmulMultiCast1D,
    ProgramConfig,
)
from ttcodegen.dialects.shards import Orientation, Shards, filled_core_ranges
from ttcodegen.optimizer.calls import LibraryCall

ROOT = Path(__file__).parents[2]
DATA_TYPES = {
    "bf16": "bf16", "f32": "f32", "bf8": "bfp_bf8", "bf4": "bfp_bf4",
    "u32": "u32", "i32": "si32", "u16": "u16", "u8": "u8",
}  # fmt: skip
KINDS = {"hs": "height_sharded", "ws": "width_sharded", "bs": "block_sharded"}
_STORAGE = re.compile(r"(hs|ws|bs)(?:n(\d+)|(\d+)x(\d+))\[(\d+)x(\d+)\](c?)")
OPERANDS = {"add": 2, "mul": 2, "where": 3, "matmul": 2, "relu": 1, "typecast": 1, "layer_norm": 1}
"""How many tensors calls take whose table names one shape for all."""
_CONFIG = re.compile(r"(MultiCast|1D)\(([^)]*)\)")
_FIELD = re.compile(r"(grid|k|sub|ob|pcM|pcN|in0)=(\w+)")


@dataclass(frozen=True)
class Measured:
    """A call, and what it took of each L1."""

    op: str
    variant: str
    call: LibraryCall
    circular_buffers: int
    peak: int


def table() -> Path | None:
    """Where the table is, None if it is not there."""
    named = os.environ.get("TTCODEGEN_SHARDED_RULES")
    beside = ROOT.parent / "shared" / "tt-metal-api" / "rules-sharded-0.70.1.tsv"
    path = Path(named) if named else beside
    return path if path.is_file() else None


def rows(path: Path, ops: frozenset[str]) -> Iterator[Measured]:
    """The accepted calls of these ops whose tensors are told in full."""
    with path.open(encoding="utf-8") as file:
        names = next(file).rstrip("\n").split("\t")
        for line in file:
            row = dict(zip(names, line.rstrip("\n").split("\t"), strict=False))
            if row["op"] in ops and row["status"] == "ok" and row.get("cb_bytes"):
                call = _call(row)
                if call is not None:
                    yield Measured(
                        row["op"], row["variant"], call, int(row["cb_bytes"]), int(row["peak_l1"])
                    )


def _call(row: dict[str, str]) -> LibraryCall | None:
    shapes = _each(row["in_shapes"], OPERANDS.get(row["op"], 1))
    described = [_each(row[name], len(shapes)) for name in ("in_dtype", "in_layout", "in_storage")]
    if any(len(told) != len(shapes) for told in described):
        return None  # An output tensor that is given is listed as well.
    operands = [placed(*told) for told in zip(shapes, *described, strict=True)]
    result = placed(
        row["out_shape"].split(" ")[0], row["out_dtype"], row["out_layout"], row["out_mem"]
    )
    if result is None or None in operands:
        return None
    known = tuple(operand for operand in operands if operand is not None)
    attributes = _attributes(row["variant"])
    return None if attributes is None else LibraryCall(row["op"], known, (result,), attributes)


def _each(text: str, count: int) -> list[str]:
    words = text.split(",")
    return words * count if len(words) == 1 else words


def _attributes(variant: str) -> dict[str, Any] | None:
    attributes: dict[str, Any] = {}
    if (compute := re.search(r"ck=(\w+)(\+\S+)?", variant)) is not None:
        wide = "fp32acc" in (compute[2] or "")
        attributes["compute_config"] = ComputeConfig(fp32_dest_acc_en=wide)
    if (found := _CONFIG.search(variant)) is not None:
        config = _config(found[1], found[2])
        if config is None:
            return None
        attributes["matmul_program_config"] = config
    return attributes


def _config(kind: str, text: str) -> ProgramConfig | None:
    """`grid=8x8,k=2,sub=1x1,ob=2x8,pcM=2,pcN=8`, perhaps without the words of the first."""
    fields = dict(_FIELD.findall(text))
    grid = re.search(r"(\d+)x(\d+)", text)
    if grid is None or not {"k", "sub", "pcM", "pcN"} <= fields.keys():
        return None
    sub_h, sub_w = (int(size) for size in fields["sub"].split("x"))
    per_m, per_n = int(fields["pcM"]), int(fields["pcN"])
    high, wide = (int(size) for size in fields.get("ob", f"{per_m}x{per_n}").split("x"))
    cores, k = CoreGrid(int(grid[1]), int(grid[2])), int(fields["k"])
    if kind == "MultiCast":
        return MatmulMultiCast(cores, k, sub_h, sub_w, high, wide, per_m, per_n)
    shares_left = "in0=False" not in text
    return MatmulMultiCast1D(
        cores, k, sub_h, sub_w, high, wide, per_m, per_n, mcast_in0=shares_left
    )


def placed(shape: str, data_type: str, layout: str, storage: str) -> TensorPlacement | None:
    """The tensor that the columns of the table describe; None for other forms."""
    if not re.fullmatch(r"\d+(x\d+)*", shape) or data_type not in DATA_TYPES:
        return None
    sizes = tuple(int(size) for size in shape.split("x"))
    page = Layout.TILE if layout == "T" else Layout.ROW_MAJOR
    plain = TensorPlacement(sizes, DataType.from_mlir(DATA_TYPES[data_type]), page)
    if storage in ("dram", "l1"):
        return plain.with_(buffer_type=storage)
    found = _STORAGE.fullmatch(storage)
    if found is None:
        return None
    kind, several, columns, rows_, height, width, column_major = found.groups()
    cores = (
        filled_core_ranges(int(several))
        if several
        else (CoreRange(0, 0, int(columns) - 1, int(rows_) - 1),)
    )
    orientation = Orientation.COL_MAJOR if column_major else Orientation.ROW_MAJOR
    return plain.sharded(KINDS[kind], Shards((int(height), int(width)), cores, orientation))
