"""The measured calls of tt-metal 0.70.1 for sharded tensors, as calls of the model of cost.

The table is no part of the project: $TTCODEGEN_SHARDED_RULES names it, or it is beside.
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
    SDPA,
    CoreGrid,
    MatmulMultiCast,
    MatmulMultiCast1D,
    MatmulReuse,
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
OPERANDS = {
    **dict.fromkeys(("add", "multiply", "pow", "matmul"), 2),
    "where": 3,
    "scaled_dot_product_attention": 3,
}
"""How many tensors calls take whose table names one shape for all."""
NAMES = {
    **dict.fromkeys(("to_memory_config other", "interleaved_to_sharded"), "to_memory_config"),
    **dict.fromkeys(("sharded_to_interleaved", "to_memory_config dram"), "to_memory_config"),
    **dict.fromkeys(("to_layout other", "tilize", "untilize", "to_layout R"), "to_layout"),
    **dict.fromkeys(("typecast bf16->f32", "typecast ->bf16", "typecast f32"), "typecast"),
    **dict.fromkeys(("sum -1", "sum -2"), "sum"),
    "max -1": "max",
    "where TTT": "where",
    "slice": "slice_static",
    "mul scalar": "multiply",
    "mul": "multiply",
    "transformer.scaled_dot_product_attention": "scaled_dot_product_attention",
    **{
        f"transformer.{name}": name
        for name in (
            "scaled_dot_product_attention_decode",
            "paged_scaled_dot_product_attention_decode",
            *("concatenate_heads", "split_query_key_value_and_split_heads"),
        )
    },
    **{
        f"experimental.{name}": name
        for name in (
            *("nlp_create_qkv_heads_decode", "nlp_concat_heads_decode"),
            *("paged_update_cache", "rotary_embedding", "rotary_embedding_llama"),
        )
    },
    "kv_cache.update_cache_for_token_": "update_cache",
}
"""Our names of the calls that the table has under others."""
_CONFIG = re.compile(r"(MultiCast|1D|Reuse)\(([^)]*)\)")
_CHUNKS = re.compile(r"SDPA\((?:grid=)?(\d+)x(\d+),q=(\d+),k=(\d+)\)")
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
    """The accepted calls of these ops whose tensors are given in full."""
    with path.open(encoding="utf-8") as file:
        names = next(file).rstrip("\n").split("\t")
        for line in file:
            row = dict(zip(names, line.rstrip("\n").split("\t"), strict=False))
            name = NAMES.get(row["op"], row["op"])
            if name in ops and row["status"] == "ok" and row.get("cb_bytes"):
                call = _call(name, row)
                if call is not None:
                    yield Measured(
                        name, row["variant"], call, int(row["cb_bytes"]), int(row["peak_l1"])
                    )


def _operands(name: str, row: dict[str, str]) -> int:
    several = re.search(r"n=(\d+)", row["variant"])
    if name == "concat":
        return int(several[1]) if several else 2
    with_number = re.fullmatch(r"-?\d+(\.\d+)?", row["variant"]) or row["op"] == "mul scalar"
    return 1 if with_number else OPERANDS.get(name, 1)


def _call(name: str, row: dict[str, str]) -> LibraryCall | None:
    shapes = _each(row["in_shapes"], _operands(name, row))
    described = [_each(row[name], len(shapes)) for name in ("in_dtype", "in_layout", "in_storage")]
    if any(len(reported) != len(shapes) for reported in described):
        return None  # An output tensor that is given is listed as well.
    operands = [placed(*reported) for reported in zip(shapes, *described, strict=True)]
    shapes_of_results = row["out_shape"].split(";")
    reported = [
        _each(row[key].replace(";", ","), len(shapes_of_results))
        for key in ("out_dtype", "out_layout", "out_mem")
    ]
    if any(len(column) != len(shapes_of_results) for column in reported):
        return None
    results = [placed(*each) for each in zip(shapes_of_results, *reported, strict=True)]
    if None in results or None in operands:
        return None
    # Some rows give the dimension after the name of the call.
    dimension = re.search(r" (-\d)$", row["op"])
    variant = row["variant"] + (f", dim={dimension[1]}" if dimension else "")
    attributes = _attributes(name, variant, len(shapes[0].split("x")))
    if attributes is None:
        return None
    known = tuple(operand for operand in operands if operand is not None)
    return LibraryCall(name, known, tuple(r for r in results if r is not None), attributes)


def _each(text: str, count: int) -> list[str]:
    words = text.split(",")
    return words * count if len(words) == 1 else words


def _attributes(name: str, variant: str, rank: int) -> dict[str, Any] | None:
    attributes: dict[str, Any] = {}
    if name == "permute":
        order = re.match(r"\(([0-9, ]+)\)", variant)
        attributes["permutation"] = [int(d) for d in order[1].split(",")] if order else []
    if name == "transpose":
        axes = re.match(r"(-?\d),(-?\d)", variant)
        order = list(range(rank))
        a, b = (int(axes[1]) % rank, int(axes[2]) % rank) if axes else (rank - 2, rank - 1)
        order[a], order[b] = order[b], order[a]
        attributes["permutation"] = order
    if (window := re.search(r"k=(\d+)", variant)) is not None and name == "max_pool2d":
        attributes["kernel_size"] = [int(window[1])] * 2
    if (token := re.search(r"token_idx=(\d+)", variant)) is not None:
        attributes["token_index"] = int(token[1])
    if (turns := re.search(r"transpose_key=(\w+)", variant)) is not None:
        attributes["transpose_key"] = turns[1] == "True"
    if (dimension := re.search(r"dim=(-?\d)", variant)) is not None:
        attributes["dimension"] = int(dimension[1])
    if (listed := re.search(r"dim=\[?(-?\d(?:, -?\d)*)", variant)) is not None:
        attributes["dim_arg"] = [int(axis) for axis in listed[1].split(",")]
    if (step := re.match(r"step (\d)", variant)) is not None:
        attributes["step"] = [int(step[1])]
    if "activations=" in variant or (name == "to_memory_config" and "dtype=" in variant):
        return None  # No op says so.
    attributes["is_causal"] = variant.startswith(("causal,", "causal=True"))
    if name.endswith("attention_decode"):
        attributes["is_causal"] = "causal=False" not in variant
    if (chunks := _CHUNKS.search(variant)) is not None:
        grid, q, k = CoreGrid(int(chunks[1]), int(chunks[2])), int(chunks[3]), int(chunks[4])
        attributes["program_config"] = SDPA(grid, q, k)
    if compute := re.search(r"(?:ck=|, )(HiFi\d|LoFi|fp32acc)(\+\S+)?", variant):
        wide = "fp32acc" in compute[0]
        attributes["compute_config"] = ComputeConfig(fp32_dest_acc_en=wide)
    if "use_multicore" in variant:
        return None  # No call of ours says so.
    if name == "max_pool2d" and "mc=hs" in variant:
        return None  # The row does not give the shards of the pool, before it is moved there.
    if "max_cores_per_head_batch" in variant:
        return None  # The row does not give the chunks.
    if "core_grid=" in variant or "bias, Reuse(" in variant:
        return None  # The choice for a grid that is requested is not ours.
    if re.search(r"MultiCast(1D)? k=\d", variant):
        return None  # The row does not give the blocks.
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
    if kind == "Reuse":
        return MatmulReuse(cores, k, sub_h, sub_w, per_m, per_n)
    if kind == "MultiCast":
        return MatmulMultiCast(cores, k, sub_h, sub_w, high, wide, per_m, per_n)
    shares_left = "in0=False" not in text and "in1" not in text.split(",")
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
