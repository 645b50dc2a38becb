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

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import ComputeConfig
from ttcodegen.dialects.ttcore.shards import (
    CoreRange,
    Layout,
    Orientation,
    Shards,
    filled_core_ranges,
)
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import (
    SDPA,
    Conv2dConfig,
    CoreGrid,
    CoreSet,
    MatmulDRAMSharded,
    MatmulMultiCast,
    MatmulMultiCast1D,
    MatmulReuse,
    ProgramConfig,
    Word,
)
from ttcodegen.optimizer.call import LibraryCall
from ttcodegen.optimizer.programs.windows import SCHEME

ROOT = Path(__file__).parents[2]
DATA_TYPES = {
    "bf16": "bf16", "f32": "f32", "bf8": "bfp_bf8", "bf4": "bfp_bf4",
    "u32": "u32", "i32": "si32", "u16": "u16", "u8": "u8",
}  # fmt: skip
KINDS = {"hs": "height_sharded", "ws": "width_sharded", "bs": "block_sharded"}
_INTEGER_BINARY = (
    *("bitwise_and", "bitwise_or", "bitwise_xor", "logical_right_shift", "bitwise_left_shift"),
)
_STORAGE = re.compile(r"(d?)(hs|ws|bs)(?:n(\d+)|(\d+)x(\d+)(?:@(\d+)-(\d+))?)\[(\d+)x(\d+)\](c?)")
OPERANDS = {
    **dict.fromkeys(("add", "multiply", "pow", "matmul", "atan2", "maximum"), 2),
    **dict.fromkeys((*_INTEGER_BINARY, "divide", "logical_left_shift"), 2),
    "where": 3,
    "scaled_dot_product_attention": 3,
}
"""Number of operands of calls whose table names one shape for all of them."""
_CREATIONS = ("create(empty)", "create(zeros)", "L1 bytes per bank")
_OF_A_KIND = ("zeros_like", "ones_like", "full_like", "empty_like")
_VIEWS = (*("unsqueeze(0)", "squeeze(0)", "unsqueeze_to_4D", "experimental.view(256,512)"),)
NAMES = {
    **dict.fromkeys((*_CREATIONS, *_OF_A_KIND), "full"),
    **dict.fromkeys(_VIEWS, "reshape"),
    **dict.fromkeys(("from_device", "cpu"), "from_device"),
    **dict.fromkeys(("reshard", "to_device(dram)"), "to_memory_config"),
    **dict.fromkeys(("split(128,2)", "split(128,3)", "chunk(2,2)"), "slice_static"),
    **dict.fromkeys(("bitwise_left_shift", "gcd", "lcm"), "bitwise_and"),
    **dict.fromkeys(("polygamma", "identity", "experimental.dropout"), "relu"),
    **dict.fromkeys(("addcmul", "addcdiv", "lerp"), "where"),
    "add_": "add",
    "div": "divide",
    "typecast bf16": "typecast",
    "mean": "sum",
    "min": "max",
    "untilize_with_unpadding": "to_layout",
    "experimental.nlp_concat_heads": "concatenate_heads",
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
_BANKED = re.compile(r"DRAMSharded\(k=(\d+),pcM=(\d+),pcN=(\d+)")
_FIELD = re.compile(r"(grid|k|sub|ob|pcM|pcN|in0)=(\w+)")


@dataclass(frozen=True)
class Measured:
    """A call, and what it took of each L1."""

    op: str
    variant: str
    call: LibraryCall | None
    circular_buffers: int
    peak: int


def table() -> Path | None:
    """Path of the table of measured rules, None if it is not there."""
    named = os.environ.get("TTCODEGEN_SHARDED_RULES")
    beside = ROOT.parent / "shared" / "tt-metal-api" / "rules-sharded-0.70.1.tsv"
    path = Path(named) if named else beside
    return path if path.is_file() else None


def every_row(path: Path) -> Iterator[Measured]:
    """The accepted calls whose L1 was measured, without a call of ours where there is none that
    does the same, or the row does not say what it was."""
    with path.open(encoding="utf-8") as file:
        names = next(file).rstrip("\n").split("\t")
        for line in file:
            row = dict(zip(names, line.rstrip("\n").split("\t"), strict=False))
            if row["status"] == "ok" and row.get("cb_bytes"):
                name = NAMES.get(row["op"], row["op"])
                call = convolution_call(row) if name == "conv2d" else _call(name, row)
                # Beside a resident tensor, or for the call only.
                beside = re.search(r"with resident .* of (\d+) B", row["variant"])
                peak = int(row["peak_l1"]) - (int(beside[1]) if beside else 0)
                if (reported := re.search(r"bank_bytes=(\d+)", row["out_shape"])) is not None:
                    peak = int(reported[1])
                yield Measured(name, row["variant"], call, int(row["cb_bytes"]), peak)


def rows(path: Path, ops: frozenset[str]) -> Iterator[Measured]:
    """The accepted calls of these ops whose tensors are given in full."""
    return (row for row in every_row(path) if row.op in ops and row.call is not None)


def _operands(name: str, row: dict[str, str]) -> int:
    if name == "where" and re.match(r"T[TS]{2}", row["variant"]):
        return row["variant"][:3].count("T")
    several = re.search(r"n=(\d+)", row["variant"])
    if name == "concat":
        return int(several[1]) if several else 2
    with_number = re.fullmatch(r"-?\d+(\.\d+)?", row["variant"]) or row["op"] == "mul scalar"
    return 1 if with_number else OPERANDS.get(name, 1)


def _call(name: str, row: dict[str, str]) -> LibraryCall | None:
    operands = [] if name == "full" else _operand_placements(name, row)
    results = _result_placements(row)
    if None in operands or None in results or not results:
        return None
    # Some rows give the dimension after the name of the call.
    dimension = re.search(r" (-\d)$", row["op"])
    variant = row["variant"] + (f", dim={dimension[1]}" if dimension else "")
    known = tuple(operand for operand in operands if operand is not None)
    rank = len(known[0].shape) if known else 0
    attributes = _attributes(name, variant, rank, known)
    if attributes is None:
        return None
    if row["op"].endswith(("_in_place", "add_")):
        results = []
    return LibraryCall(name, known, tuple(r for r in results if r is not None), attributes)


def _operand_placements(name: str, row: dict[str, str]) -> list[TensorPlacement | None]:
    count = _operands(name, row)
    columns = [row[key].split(",") for key in ("in_shapes", "in_dtype", "in_layout", "in_storage")]
    given = max(count, *map(len, columns))
    if re.search(r"\bout=|resident", row["variant"]):
        # The tensor that is written to, or one beside, is listed as well.
        given = count
    described = [words[:given] if len(words) > 1 else words * given for words in columns]
    if any(len(words) != given for words in described):
        return [None]
    return [placed(*reported) for reported in zip(*described, strict=True)]


def _result_placements(row: dict[str, str]) -> list[TensorPlacement | None]:
    shapes = [
        re.sub(r"\(p.*\)", "", shape)
        for shape in row["out_shape"].split(";")
        if not re.match(r"input |bank_bytes", shape)
    ]
    if shapes == ["scalar()"]:
        shapes = [""]
    if row["op"].startswith("conv"):
        shapes = shapes[:1]  # The height and the width of the image follow.
    reported = [row[key].replace(";", ",").split(",") for key in ("out_dtype", "out_layout")]
    storages = row["out_mem"].replace(";", ",").split(",")
    described = [
        words * len(shapes) if len(words) == 1 else words for words in (*reported, storages)
    ]
    if any(len(words) != len(shapes) for words in described):
        return [None]
    return [placed(*each) for each in zip(shapes, *described, strict=True)]


def _attributes(
    name: str, variant: str, rank: int, operands: tuple[TensorPlacement, ...]
) -> dict[str, Any] | None:
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
    if name == "max_pool2d":
        attributes |= _pool(variant)
    if (token := re.search(r"token_idx=(\d+)", variant)) is not None:
        attributes["token_index"] = int(token[1])
    if (turns := re.search(r"transpose_key=(\w+)", variant)) is not None:
        attributes["transpose_key"] = turns[1] == "True"
    if (dimension := re.search(r"dim=(-?\d)", variant)) is not None:
        attributes["dimension"] = int(dimension[1])
    if (listed := re.search(r"dim=\[?(-?\d(?:, -?\d)*)", variant)) is not None:
        attributes["dim_arg"] = [int(axis) for axis in listed[1].split(",")]
    if (kept := re.search(r"keepdim=(\w+)", variant)) is not None:
        attributes["keep_dim"] = kept[1] == "True"
    if (step := re.match(r"step (\d)", variant)) is not None:
        attributes["step"] = [int(step[1])]
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
        attributes["use_multicore"] = True
    if "max_cores_per_head_batch" in variant:
        return None  # The row does not give the chunks.
    if "core_grid=" in variant or "bias, Reuse(" in variant:
        return None  # The choice for a grid that is requested is not ours.
    if (steps := re.search(r"MultiCast(1D)? k=(\d+)", variant)) is not None:
        attributes["matmul_program_config"] = _config_of_shards(operands, int(steps[2]))
    if (banked := _BANKED.search(variant)) is not None:
        attributes["matmul_program_config"] = _banked(banked)
    if (found := _CONFIG.search(variant)) is not None:
        config = _config(found[1], found[2])
        if config is None:
            return None
        attributes["matmul_program_config"] = config
    return attributes


def _pool(variant: str) -> dict[str, Any]:
    """`1x32x32x64 k=2 s=2 p=0 scheme=hs`."""
    sizes = re.match(r"(\d+)x(\d+)x(\d+)x(\d+) ", variant)
    assert sizes is not None
    names = ("batch_size", "input_height", "input_width", "channels")
    attributes: dict[str, Any] = dict(zip(names, map(int, sizes.groups()), strict=True))
    for name, key in (("kernel_size", "k"), ("stride", "s"), ("padding", "p"), ("dilation", "d")):
        if (number := re.search(rf"\b{key}=(\d+)", variant)) is not None:
            attributes[name] = [int(number[1])] * 2
    attributes["ceil_mode"] = "ceil_mode=True" in variant
    if (scheme := re.search(r"scheme=(hs|ws|bs)", variant)) is not None:
        attributes[SCHEME] = KINDS[scheme[1]]
    return attributes


def _banked(found: re.Match[str]) -> ProgramConfig:
    inner, height, width = (int(number) for number in found.groups())
    return MatmulDRAMSharded(inner, height, width)


def _config_of_shards(operands: tuple[TensorPlacement, ...], inner: int) -> ProgramConfig | None:
    """The configuration of a product whose row gives no more than the shards of its left factor."""
    left, right = operands[:2]
    assert left.shards is not None
    box = left.shards.bounding_box()
    high, wide = left.shards.shape[0] // 32, -(-right.shape[-1] // 32)
    cores = CoreGrid(box.columns, box.rows)
    if left.memory_layout == "block_sharded":
        wide = -(-wide // box.columns)
        return MatmulMultiCast(cores, inner, 1, 1, high, wide, high, wide)
    by_width = left.memory_layout == "width_sharded"
    wide = -(-wide // left.shards.cores) if by_width else wide
    return MatmulMultiCast1D(cores, inner, 1, 1, high, wide, high, wide, mcast_in0=by_width)


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
    if not re.fullmatch(r"(\d+(x\d+)*)?", shape) or data_type not in DATA_TYPES:
        return None
    sizes = tuple(int(size) for size in shape.split("x")) if shape else ()
    page = Layout.TILE if layout == "T" else Layout.ROW_MAJOR
    plain = TensorPlacement(sizes, DataType.from_mlir(DATA_TYPES[data_type]), page)
    if storage == "host":
        return plain.on_host()
    if storage in ("dram", "l1"):
        return plain.with_(buffer_type=storage)
    found = _STORAGE.fullmatch(storage)
    if found is None:
        return None
    dram, kind, several, *grid, height, width, column_major = found.groups()
    if several:
        cores = filled_core_ranges(int(several))
    else:
        columns, rows_, left, top = (int(number or 0) for number in grid)
        cores = (CoreRange(left, top, left + columns - 1, top + rows_ - 1),)
    orientation = Orientation.COL_MAJOR if column_major else Orientation.ROW_MAJOR
    shards = Shards((int(height), int(width)), cores, orientation)
    return plain.sharded(KINDS[kind], shards, "dram" if dram else "l1")


_PLAIN_FIELDS = (
    *("override_sharding_config", "transpose_shards", "config_tensors_in_dram"),
    *("enable_act_double_buffer", "enable_weights_double_buffer", "enable_kernel_stride_folding"),
)


def convolution_call(row: dict[str, str]) -> LibraryCall | None:
    """A convolution of the table; None if the row does not say all of it."""
    variant = row["variant"]
    sizes = re.match(r"N=(\d+) (\d+)x(\d+) Ci=(\d+) Co=(\d+)", variant)
    columns = ("in_shapes", "in_dtype", "in_layout", "in_storage")
    shape_of_image, data_type, layout, storage = (row[key].split(",")[0] for key in columns)
    image = placed(shape_of_image, data_type, layout, storage)
    results = _result_placements(row)
    if sizes is None or image is None or results[0] is None:
        return None
    batch, height, width, inputs, outputs = (int(size) for size in sizes.groups())

    def given(name: str, default: int) -> int:
        found = re.search(rf"(?<![a-z]){name}=(\d+)", variant)
        return int(found[1]) if found else default

    kernel, groups = given("k", 3), given("g", 1)
    weights = re.search(r"wd=(\w+)", variant)
    weight_type = DataType.from_mlir(DATA_TYPES[weights[1] if weights else "bf16"])
    shape = outputs, inputs // groups, kernel, kernel
    weight = TensorPlacement(shape, weight_type, Layout.ROW_MAJOR)
    bias = (weight.with_(shape=(1, 1, 1, outputs)),) if "bias=True" in variant else ()
    attributes: dict[str, Any] = {
        "in_channels": inputs, "out_channels": outputs, "batch_size": batch,
        "input_height": height, "input_width": width, "kernel_size": [kernel] * 2,
        "stride": [given("s", 1)] * 2, "padding": [given("p", 1)] * 2,
        "dilation": [given("d", 1)] * 2, "groups": groups,
        "conv2d_config": _convolution_config(variant),
    }  # fmt: skip
    if "acc" in variant:
        attributes["compute_config"] = ComputeConfig(
            fp32_dest_acc_en="fp32acc" in variant, packer_l1_acc="l1acc" in variant
        )
    return LibraryCall("conv2d", (image, weight, *bias), (results[0],), attributes)


def _convolution_config(variant: str) -> Conv2dConfig:
    fields: dict[str, Any] = {}
    for name in _PLAIN_FIELDS:
        if (found := re.search(rf"{name}=(True|False)", variant)) is not None:
            fields[name] = found[1] == "True"
    for name in ("act_block_h_override", "act_block_w_div"):
        if (found := re.search(rf"{name}=(\d+)", variant)) is not None:
            fields[name] = int(found[1])
    if (found := re.search(r"reshard(?:_if_not_optimal)?=(True|False)", variant)) is not None:
        fields["reshard_if_not_optimal"] = found[1] == "True"
    if (found := re.search(r"weights_dtype=(\w+)", variant)) is not None:
        fields["weights_dtype"] = Word(DATA_TYPES[found[1]])
    if (found := re.search(r"shard_layout=([hwb]s)", variant)) is not None:
        fields["shard_layout"] = Word(KINDS[found[1]])
    if (found := re.search(r"output_layout=(\w)", variant)) is not None:
        fields["output_layout"] = Word("row_major" if found[1] == "R" else "tile")
    if (found := re.search(r"core_grid=\((\d+), (\d+)\)", variant)) is not None:
        cores = CoreRange(0, 0, int(found[1]) - 1, int(found[2]) - 1)
        fields["core_grid"] = CoreSet((cores,))
    return Conv2dConfig(**fields)
