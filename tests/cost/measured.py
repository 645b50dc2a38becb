"""Calls that were measured on cards, as calls of the model of cost.

`measured.tsv` is a selection of public measurements; the sources are in its head. Each row has
`key arch grid call operands results attributes nanoseconds source`: the grid as rows x columns,
tensors as `shape:type:layout:memory[:scheme:height x width@core ranges]`, attributes as JSON.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import ComputeConfig, MathFidelity
from ttcodegen.dialects.ttcore.shards import CoreRange, Layout, Orientation, Shards
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import (
    SDPA,
    Conv2dConfig,
    CoreGrid,
    FusedActivation,
    LayerNormSharded,
    MatmulDRAMSharded,
    MatmulMultiCast,
    MatmulMultiCast1D,
    MatmulReuse,
    Word,
)
from ttcodegen.ops.core.definition import call_kind
from ttcodegen.ops.core.traits import CallKind
from ttcodegen.optimizer.call import LibraryCall
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.systems.cards import default_system

TABLE = Path(__file__).parent / "measured.tsv"
_TYPES = {"bfp8_b": "bfp_bf8", "bfp4_b": "bfp_bf4", "i32": "si32"}
_LAYOUTS = {"tile": Layout.TILE, "row_major": Layout.ROW_MAJOR}
_CONFIGS = {
    each.__name__: each
    for each in (
        Conv2dConfig,
        LayerNormSharded,
        MatmulReuse,
        MatmulMultiCast,
        MatmulMultiCast1D,
        MatmulDRAMSharded,
        SDPA,
    )
}

_WORDS = {"MatmulDRAMSharded": "DRAM-sharded", "MatmulMultiCast1D": "1D", "MatmulMultiCast": "2D"}


@dataclass(frozen=True)
class Measured:
    """A call and the time of its kernels on a card."""

    key: str
    arch: str
    grid: tuple[int, int]
    """Rows and columns of cores."""
    call: LibraryCall
    nanoseconds: float
    family: str
    """Source and shapes: what differs in configuration only has the same."""

    @property
    def kind(self) -> str:
        """The kind of op in the table of docs/optimizer.md."""
        return kind_of(self.call)

    @property
    def is_held_out(self) -> bool:
        """True for the half of the calls that no constant was fitted to."""
        return int(self.key, 16) % 2 == 1


def kind_of(call: LibraryCall) -> str:
    """The kind of op that the error of the model is given for."""
    name, config = call.name, call.program_config
    if name in ("matmul", "linear"):
        word = "automatic" if config is None else _WORDS.get(type(config).__name__, "other")
        return f"product, {word}"
    if call_kind(name) is CallKind.ELEMENTWISE:
        return "elementwise, one operand" if len(call.operands) == 1 else "elementwise, several"
    return name


def tensor(text: str) -> TensorPlacement:
    """A tensor of the table."""
    shape, data_type, layout, memory, *rest = text.split(":")
    scheme, shards = "interleaved", None
    if rest:
        scheme, size, ranges = rest[0], *rest[1].split("@")
        height, width = map(int, size.split("x"))
        turned = ranges.endswith("c")
        shards = Shards(
            (height, width),
            tuple(CoreRange(*map(int, each.split("-"))) for each in ranges.rstrip("c").split("+")),
            Orientation.COL_MAJOR if turned else Orientation.ROW_MAJOR,
        )
    return TensorPlacement(
        tuple(map(int, shape.split("x"))),
        DataType.from_mlir(_TYPES.get(data_type, data_type)),
        _LAYOUTS[layout],
        memory,
        scheme,
        shards,
    )


def attributes(values: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a call of the table."""
    found = dict(values)
    if (config := found.pop("config", None)) is not None:
        name: str = config[0]
        fields: dict[str, Any] = dict(config[1])
        if (grid := fields.get("compute_with_storage_grid_size")) is not None:
            fields["compute_with_storage_grid_size"] = CoreGrid(*grid)
        if name == "Conv2dConfig":
            for field in ("weights_dtype", "shard_layout"):
                fields[field] = Word(fields[field])
            if (activation := fields.get("fused_activation")) is not None:
                fields["fused_activation"] = FusedActivation(activation)
        keys = {"SDPA": "program_config", "LayerNormSharded": "program_config"}
        key = keys.get(name, "conv2d_config" if "Conv" in name else "matmul_program_config")
        found[key] = _CONFIGS[name](**fields)
    if (compute := found.pop("compute", None)) is not None:
        fidelity, packer, wide = compute
        found["compute_config"] = ComputeConfig(
            math_fidelity=MathFidelity(fidelity.lower()),
            packer_l1_acc=packer,
            fp32_dest_acc_en=wide,
            math_approx_mode=False,
        )
    return found


def measured_of(row: list[str]) -> Measured:
    """The call of a row."""
    key, arch, grid, name, operands, results, words, nanoseconds, _ = row
    rows, columns = map(int, grid.split("x"))
    call = LibraryCall(
        name,
        tuple(tensor(text) for text in operands.split(" ")),
        tuple(tensor(text) for text in results.split(" ")),
        attributes(json.loads(words)),
    )
    shapes = [text.split(":")[0] for text in operands.split(" ")]
    family = " ".join((arch, grid, name, *shapes))
    return Measured(key, arch, (rows, columns), call, float(nanoseconds), family)


def measured(table: Path = TABLE) -> Iterator[Measured]:
    """The rows of the table."""
    with table.open(newline="") as lines:
        rows = csv.reader((line for line in lines if line[0] != "#"), delimiter="\t", quotechar="'")
        for row in rows:
            yield measured_of(row)


@cache
def model_of(arch: str, grid: tuple[int, int]) -> CostModel:
    """The model of a chip with so many cores."""
    return CostModel(replace(default_system(arch).chip, grid=grid))


def estimate(row: Measured) -> float:
    """Nanoseconds of the kernels of a call by the model."""
    cost = model_of(row.arch, row.grid).cost(row.call)
    return (cost.seconds - cost.between_seconds) * 1e9
