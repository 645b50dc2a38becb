"""Selects the measurements on cards that the model of cost is tested with, and prices them.

    python benchmarks/silicon.py select OPS.tsv TEST_BENCHMARK.py TABLE.tsv
    python benchmarks/silicon.py compare

`select` makes calls of the rows of class A of a collection of public measurements. The tuned
configurations of products are those of `test_benchmark.py` of tt-metal. `compare` prints the
median of card / model and the share within 1.5x of each kind of op, fitted half and held-out half.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.cost.measured import Measured, estimate, measured
from ttcodegen.ops.core.definition import call_kind, takes_two_tensors
from ttcodegen.ops.core.traits import CallKind
from ttcodegen.ops.dialects import ttnn_op_classes

Row = dict[str, str]
Made = tuple[str, tuple[int, int], str, list[str], list[str], dict[str, Any]]
"""Architecture, grid, name, operands, results, attributes."""

_GRIDS = {"20": (4, 5), "64": (8, 8), "110": (10, 11), "120": (10, 12), "130": (10, 13)}
_NAMES = {
    "mul": "multiply",
    "sub": "subtract",
    "div": "divide",
    "recip": "reciprocal",
    "swish": "silu",
}
_MOVES = {
    "TilizeDeviceOperation": "to_layout", "TilizeWithValPaddingDeviceOperation": "to_layout",
    "UntilizeDeviceOperation": "to_layout", "UntilizeWithUnpaddingDeviceOperation": "to_layout",
    "Tilize": "to_layout", "TilizeWithValPadding": "to_layout", "Untilize": "to_layout",
    "UntilizeWithUnpadding": "to_layout",
    "InterleavedToShardedDeviceOperation": "to_memory_config",
    "ShardedToInterleavedDeviceOperation": "to_memory_config",
    "ReshardDeviceOperation": "to_memory_config", "CopyDeviceOperation": "to_memory_config",
    "ReshapeDeviceOperation": "reshape", "TypecastDeviceOperation": "typecast",
    "EmbeddingsDeviceOperation": "embedding", "SliceDeviceOperation": "slice_static",
    "ConcatDeviceOperation": "concat", "PermuteDeviceOperation": "permute",
    "Transpose": "permute", "TransposeDeviceOperation": "permute",
    "SoftmaxDeviceOperation": "softmax",
}  # fmt: skip
_SPEC = re.compile(
    r"ShardSpec\(grid=\{(.*?)\};shape=\{(\d+); ?(\d+)\};orientation=ShardOrientation::(\w+)"
)
_RANGE = re.compile(r"\(x=(\d+);y=(\d+)\) - \(x=(\d+);y=(\d+)\)")


def _shards(attributes: str) -> str | None:
    """The shard spec of the result, as `HxW@ranges`."""
    found = _SPEC.search(attributes)
    if found is None:
        return None
    ranges = "+".join("-".join(each) for each in _RANGE.findall(found[1]))
    return f"{found[2]}x{found[3]}@{ranges}" + ("c" if found[4].startswith("COL") else "")


def _tensor(text: str, shards: str | None = None) -> str | None:
    """A tensor of a row in the spelling of the table; None where its shards are not known."""
    shape, data_type, layout, memory = text.strip().split(":")[:4]
    where, _, scheme = memory.partition("_")
    base = f"{shape}:{data_type}:{layout}:{where}"
    if scheme == "interleaved":
        return base
    return None if shards is None else f"{base}:{scheme}:{shards}"


def _grid(rows: int, columns: int) -> str:
    return f"0-0-{columns - 1}-{rows - 1}"


def _first(cores: int, width: int) -> str:
    """The first cores of a grid, row by row."""
    whole, rest = divmod(cores, width)
    parts = [f"0-0-{width - 1}-{whole - 1}"] if whole else []
    return "+".join(parts + ([f"0-{whole}-{rest - 1}-{whole}"] if rest else []))


class Selection:
    """The calls of a collection."""

    def __init__(self, rows: list[Row], benchmark: str) -> None:
        self.rows = rows
        self.tuned = _tuned(benchmark)
        self.known_shards: dict[tuple[str, str], str] = {}
        kinds = {name.rpartition(".")[2] for name in ttnn_op_classes()}
        self.elementwise = {name for name in kinds if call_kind(name) is CallKind.ELEMENTWISE}
        self.kinds = kinds

    def calls(self) -> Iterator[tuple[Row, Made]]:
        """The rows that a call can be made of, and the calls."""
        for row in self.rows:
            if row["quality"] != "A" or not row["kernel_ns"]:
                continue
            made = self._made(row)
            if made is not None:
                yield row, made

    def _made(self, row: Row) -> Made | None:
        path, repo = row["source_path"], row["source_repo"]
        if path.endswith("GEMM_FLOPS.md"):
            return self._gemm(row)
        if "ds-perf" in path:
            return _decode_product(row)
        if "dashboard" in repo:
            return self._dashboard(row)
        if repo.startswith("wusatosi"):
            return _swept(row)
        if repo == "tenstorrent/tt-perf-report":
            return self._profiled(row)
        if "SDPAOperation" in row["op"] and "polaris" in repo:
            operands = [f"{_tensor(each)}" for each in row["inputs"].split(" ; ")]
            config = [
                "SDPA",
                {"compute_with_storage_grid_size": [8, 8], "q_chunk_size": 64, "k_chunk_size": 64},
            ]
            attributes = {"config": config, "is_causal": True, "compute": ["HiFi4", True, True]}
            return (row["arch"], (8, 8), row["ttnn_op"], operands, [operands[0]], attributes)
        return None

    def _gemm(self, row: Row) -> Made | None:
        left, right = row["inputs"].split(" ; ")
        data_type = left.split(":")[1]
        m, k = map(int, left.split(":")[0].split("x")[-2:])
        n = int(right.split(":")[0].split("x")[-1])
        rows, columns = (8, 8) if row["board"] == "n150" else (10, int(row["cores"]) // 10)
        plain = f":{data_type}:tile:"
        if "out of box" in row["derived"]:
            operands = [f"1x1x{m}x{k}{plain}dram", f"1x1x{k}x{n}{plain}dram"]
            return (
                row["arch"],
                (rows, columns),
                "matmul",
                operands,
                [f"1x1x{m}x{n}{plain}dram"],
                {},
            )
        key = (data_type, m // rows, k // columns, n // columns)
        if key not in self.tuned:
            return None
        divided, down, across = self.tuned[key]
        per_m, per_n = m // rows // 32, n // columns // 32
        high, wide = per_m // down, per_n // across
        sharded = "sharded" in row["output"]
        sub_h, sub_w = _subblock(high, wide, sharded)
        config = {
            "compute_with_storage_grid_size": [columns, rows],
            "in0_block_w": k // columns // 32 // divided,
            "out_subblock_h": sub_h, "out_subblock_w": sub_w,
            "out_block_h": high, "out_block_w": wide, "per_core_m": per_m, "per_core_n": per_n,
        }  # fmt: skip
        cores = _grid(rows, columns)
        a, b = f"1x1x{m}x{k}{plain}", f"1x1x{k}x{n}{plain}dram"
        in_shards = "block_sharded" in left
        a += (
            f"l1:block_sharded:{m // rows}x{k // columns}@{cores}"
            if in_shards
            else left.split(":")[3].partition("_")[0]
        )
        out = f"1x1x{m}x{n}{plain}"
        out += (
            f"l1:block_sharded:{m // rows}x{n // columns}@{cores}"
            if sharded
            else row["output"].split(":")[3].partition("_")[0]
        )
        attributes = {
            "config": ["MatmulMultiCast", config],
            "compute": [row["math_fidelity"], True, False],
        }
        return (row["arch"], (rows, columns), "matmul", [a, b], [out], attributes)

    def _dashboard(self, row: Row) -> Made | None:
        name = _NAMES.get(row["ttnn_op"], row["ttnn_op"])
        shape = row["inputs"].split(":")[0]
        data_type = "i32" if name.startswith("bitwise") else "bf16"
        one = f"{shape}:{data_type}:tile:dram"
        grid = (8, 8) if row["board"] == "n150" else (10, 11)
        if name in ("sum", "mean", "max", "min", "std", "var"):
            return None  # along which dimensions is not given
        if name in ("cumsum", "cumprod"):
            return (
                (row["arch"], grid, name, [one], [one], {"dim": -1}) if name in self.kinds else None
            )
        if name not in self.elementwise:
            return None
        count = 3 if name == "where" else 2 if takes_two_tensors(name) else 1
        return (row["arch"], grid, name, [one] * count, [one], {})

    def _profiled(self, row: Row) -> Made | None:
        operands = row["inputs"].split(" ; ")
        results = row["output"].split(" ; ")
        path, shards = row["source_path"], _shards(row["attributes"])
        if shards is not None:
            self.known_shards[path, results[0].strip()] = shards
        out = _tensor(results[0], shards)
        ins = [
            _tensor(each, self.known_shards.get((path, each.strip()))) for each in operands if each
        ]
        op = row["op"]
        attributes: dict[str, Any] = {}
        name = _MOVES.get(op)
        if name == "permute":
            name, attributes = _permutation(row, operands[0], results[0])
        elif op.startswith(("Binary", "Unary")):
            name = _NAMES.get(row["ttnn_op"], row["ttnn_op"])
            if name not in self.elementwise:
                return None
            ins = ins[:2]
        elif op.startswith("LayerNorm"):
            name = "rms_norm" if "RMSNORM" in row["attributes"] else "layer_norm"
        elif op == "AccumulationDeviceOperation":
            name = "cumsum"
            found = re.search(r"'dim': '(\d+)'", row["attributes"])
            attributes = {"dim": int(found[1]) if found else 0}
        elif op in ("Matmul", "MatmulDeviceOperation"):
            name, attributes = _configured(row)
            ins = ins[:2] if len(ins) > 1 else ins
        if name == "to_memory_config" and not (len(ins) and ins[0]):
            return None
        if name in ("to_memory_config", "to_layout", "reshape", "typecast", "slice_static"):
            ins = ins[:1]
        if name == "concat":
            attributes = {"dim": int(re.search(r"'dim': '(\d+)'", row["attributes"])[1])}  # type: ignore[index]
        if name == "to_memory_config" and ins[0] == out:
            return None
        if name is None or out is None or any(each is None for each in ins):
            return None
        if any(each.split(":")[1] not in _TYPES for each in (*ins, out) if each):
            return None
        grid = _GRIDS[row["grid_cores"] or "20"]
        return (row["arch"], grid, name, [str(each) for each in ins], [out], attributes)


_TYPES = ("bf16", "f32", "bfp8_b", "bfp4_b", "u32", "u16", "i32")


def _permutation(row: Row, source: str, target: str) -> tuple[str | None, dict[str, Any]]:
    before, after = ([int(n) for n in each.split(":")[0].split("x")] for each in (source, target))
    words = {"WH": (0, 1, 3, 2), "HC": (0, 2, 1, 3), "CN": (1, 0, 2, 3), "CW": (0, 3, 2, 1)}
    found = re.search(r"'dims': 'SmallVector\(\[(.*?)\]\)'", row["attributes"])
    named = re.search(r"TransposeOpDim::(\w+)", row["attributes"])
    order: tuple[int, ...] | None = None
    if found is not None:
        order = tuple(int(n) for n in found[1].split(";"))
    elif named is not None:
        order = words.get(named[1])
    if order is None:
        return None, {}
    if len(order) != len(before):
        # The profiler has four dimensions of each shape.
        lead = len(before) - len(order)
        if lead < 0:
            return None, {}
        order = (*range(lead), *(lead + n for n in order))
    return ("permute" if [before[n] for n in order] == after else None), {
        "permutation": list(order)
    }


def _configured(row: Row) -> tuple[str | None, dict[str, Any]]:
    """A product with the configuration that the profiler has."""
    text = row["program_config"]
    wide = "fp32_dest_acc_en=1" in row["attributes"]
    packer = "packer_l1_acc=1" in row["attributes"]
    attributes: dict[str, Any] = {"compute": [row["math_fidelity"], packer, wide]}
    if not text:
        return "matmul", attributes
    grid = re.search(r"compute_with_storage_grid_size=\(x=(\d+);y=(\d+)\)", text)
    names = {
        "in0_block_w": "in0_block_w", "out_subblock_h": "out_subblock_h",
        "out_subblock_w": "out_subblock_w", "out_block_h": "out_block_h",
        "out_block_w": "out_block_w", "per_core_m": "per_core_M", "per_core_n": "per_core_N",
    }  # fmt: skip
    fields: dict[str, Any] = {
        ours: int(found[1])
        for ours, theirs in names.items()
        if (found := re.search(rf"{theirs}=(\d+)", text)) is not None
    }
    if grid is None:
        return None, {}
    fields["compute_with_storage_grid_size"] = [int(grid[1]), int(grid[2])]
    if "MultiCast1D" in text:
        kind = "MatmulMultiCast1D"
        fields["mcast_in0"] = "mcast_in0=1" in text or "mcast_in0=true" in text
        fields["fuse_batch"] = "fuse_batch=1" in text or "fuse_batch=true" in text
    elif "MultiCastProgram" in text:
        kind = "MatmulMultiCast"
        fields["fuse_batch"] = "fuse_batch=1" in text or "fuse_batch=true" in text
    elif "ReuseProgram" in text:
        kind = "MatmulReuse"
        fields = {name: fields[name] for name in fields if not name.startswith("out_block")}
    else:
        return None, {}
    return "matmul", {"config": [kind, fields], **attributes}


def _decode_product(row: Row) -> Made | None:
    left, right = row["inputs"].split(" ; ")
    k, n = map(int, right.split(":")[0].split("x")[-2:])
    data_type, arch, config = right.split(":")[1], row["arch"], row["program_config"]
    width = re.search(r"in0_block_w=(\d+)", config)
    if width is None:
        return None
    match = re.match(r"(LoFi|HiFi\d)", row["math_fidelity"])
    if match is None:
        return None
    wormhole = arch == "wormhole_b0"
    grid = (8, 8) if wormhole else (10, 11)
    tiles = n // 32
    given = re.search(r"per_core_N=(\d+)", config)
    attributes: dict[str, Any] = {"compute": [match[1], True, False]}
    if "DRAMSharded" in config:
        sharded = re.search(r"shard=32x(\d+)", left)
        if sharded is None or given is None:
            return None
        each, per_n = int(sharded[1]), int(given[1])
        banks = 12 if wormhole else 8
        attributes["config"] = [
            "MatmulDRAMSharded",
            {"in0_block_w": int(width[1]), "per_core_m": 1, "per_core_n": per_n},
        ]
        a = f"1x1x32x{k}:bf16:tile:l1:width_sharded:32x{each}@{_first(k // each, grid[1])}"
        shards = f"width_sharded:{k}x{-(-tiles // banks) * 32}@0-0-{banks - 1}-0"
        b = f"1x1x{k}x{n}:{data_type}:tile:dram:{shards}"
    else:
        per_n = int(given[1]) if given is not None else -(-tiles // int(row["cores"] or 64))
        cores = -(-tiles // per_n) if wormhole else int(row["cores"])
        fields = {
            "compute_with_storage_grid_size": [grid[1], -(-cores // grid[1])],
            "in0_block_w": int(width[1]), "out_subblock_h": 1, "out_subblock_w": 1,
            "out_block_h": 1, "out_block_w": per_n, "per_core_m": 1, "per_core_n": per_n,
        }  # fmt: skip
        attributes["config"] = ["MatmulMultiCast1D", fields]
        a = f"1x1x32x{k}:bf16:tile:{'l1' if wormhole else 'dram'}"
        b = f"1x1x{k}x{n}:{data_type}:tile:dram"
    held = _first(-(-tiles // per_n), grid[1])
    out = f"1x1x32x{n}:bf16:tile:l1:width_sharded:32x{per_n * 32}@{held}"
    return (arch, grid, "matmul", [a, b], [out], attributes)


def _swept(row: Row) -> Made | None:
    name = "add" if "binary" in row["source_path"] else "relu"
    shards = _shards(row["attributes"])
    out = _tensor(row["output"], shards)
    operands = [_tensor(each, shards) for each in row["inputs"].split(" ; ")]
    if out is None or None in operands:
        return None
    return (row["arch"], (8, 8), name, [str(each) for each in operands], [out], {})


def _subblock(high: int, wide: int, sharded: bool) -> tuple[int, int]:
    """The subblock of the benchmark of tt-metal (SUBBLOCK_HW_CHOICES)."""
    choices = (
        *((4, 2), (2, 4), (8, 1), (1, 8), (7, 1), (1, 7), (3, 2), (2, 3), (6, 1), (1, 6)),
        *((5, 1), (1, 5), (2, 2), (4, 1), (1, 4), (3, 1), (1, 3), (2, 1), (1, 2), (1, 1)),
    )
    for down, across in choices:
        if sharded and (wide % across or down != 1):
            continue
        if high % down == 0 and wide % across == 0:
            return down, across
    return 1, 1


def _tuned(source: str) -> dict[tuple[str, int, int, int], tuple[int, int, int]]:
    """Configurations by type and sizes of a core."""
    found: dict[tuple[str, int, int, int], tuple[int, int, int]] = {}
    for theirs, ours in (("bfloat16", "bf16"), ("bfloat8_b", "bfp8_b"), ("bfloat4_b", "bfp4_b")):
        block = re.search(rf"matmul_shapes_{theirs} = \[(.*?)\n\]", source, re.S)
        assert block is not None
        pattern = r"\((\d+), (\d+), (\d+), (?:True|False), (?:True|False), (\d+), (\d+), (\d+)\)"
        for each in re.findall(pattern, block[1]):
            m, k, n, *rest = map(int, each)
            found[ours, m, k, n] = (rest[0], rest[1], rest[2])
    return found


def select(source: Path, benchmark: Path, target: Path) -> None:
    """Writes the table of calls."""
    csv.field_size_limit(10**9)
    with source.open(newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    sources: dict[str, int] = {}
    out: list[str] = []
    for given, (arch, grid, name, operands, results, attributes) in Selection(
        rows, benchmark.read_text()
    ).calls():
        words = json.dumps(attributes, separators=(",", ":"), sort_keys=True)
        call = [arch, f"{grid[0]}x{grid[1]}", name, " ".join(operands), " ".join(results), words]
        key = hashlib.sha1("\t".join(call).encode()).hexdigest()[:8]
        origin = f"{given['source_repo'].split(' ')[0]} {given['source_path']}"
        number = sources.setdefault(f"{origin} @{given['source_commit'][:10]}", len(sources) + 1)
        out.append("\t".join([key, *call, given["kernel_ns"], str(number)]))
    head = [
        "# Kernel times of single calls on cards. Columns: key, architecture, rows x columns of",
        "# cores, call, operands, results, attributes, nanoseconds, source. Sources, of",
        "# which the first repositories are Apache-2.0 and ttnn-performance-dashboard is MIT:",
        *(f"# {number} {source}" for source, number in sources.items()),
    ]
    target.write_text("\n".join([*head, *out]) + "\n")


def compare() -> None:
    """Prints how far the model is from the cards, by kind."""
    kinds: defaultdict[str, list[tuple[Measured, float]]] = defaultdict(list)
    for row in measured():
        ratio = row.nanoseconds / (estimate(row) or 1.0)
        kinds[row.kind].append((row, ratio))
        kinds["all"].append((row, ratio))
    for kind, found in sorted(kinds.items()):
        parts = [
            [ratio for row, ratio in found if row.is_held_out is half] for half in (False, True)
        ]
        words = [
            f"n {len(part):4} median {statistics.median(part):6.2f} within 1.5x "
            f"{sum(1 / 1.5 <= ratio <= 1.5 for ratio in part) / len(part):4.0%}"
            for part in parts
            if part
        ]
        print(f"{kind:24}", " | ".join(words))


if __name__ == "__main__":
    if sys.argv[1] == "select":
        select(Path(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]))
    else:
        compare()
