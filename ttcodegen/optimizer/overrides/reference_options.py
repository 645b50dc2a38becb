"""Overrides in the form of tt-mlir's pipeline options."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import SHARDED
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import closest

# The options that give decisions to the reference compiler, as entries of overrides.
#
#     override-output-layout=add_1=8x8:l1:block_sharded:tile:bf16,relu=dram
#     override-conv2d-config=conv2d_1=core_grid#8x4:shard_layout#height_sharded
#     insert-memreconfig=add_2=0:1
#
# Calls go by the names of their locations, in whatever function they are.

OPTIONS = ("override-output-layout", "override-conv2d-config", "insert-memreconfig")
BUFFERS = ("dram", "l1")
SHARDINGS = ("interleaved", *SHARDED)
PAGES = ("tile", "row_major")
DATA_TYPES = tuple(data_type.mlir for data_type in DataType)

_GRID = re.compile(r"([0-9]{1,9})x([0-9]{1,9})")
_FLAGS = (
    *("deallocate_activation", "reallocate_halo_output", "config_tensors_in_dram"),
    *("reshard_if_not_optimal", "override_sharding_config", "transpose_shards"),
    *("enable_act_double_buffer", "enable_weights_double_buffer"),
    "enable_kernel_stride_folding",
)
_DROPPED = ("enable_split_reader", "enable_subblock_padding", "input_channels_alignment")
"""Fields of older releases that the library decides by itself."""


def entries_of_options(text: str) -> dict[str, dict[str, Any]]:
    """Entries by the names of calls.

    Raises:
        CompileError: if the text is no list of these options, or a value is none.
    """
    found: dict[str, dict[str, Any]] = {}
    for word in text.split():
        option, equals, value = word.lstrip("-").partition("=")
        reader = _READERS.get(option)
        if reader is None:
            close = closest(option, OPTIONS)
            raise CompileError(
                f"the overrides have no option '{option}'",
                remedy=f"did you mean '{close}'?" if close else f"there are {', '.join(OPTIONS)}",
            )
        if not equals or not value:
            raise CompileError(
                f"the option '{option}' applies to no call", remedy=f"write {option}=NAME=..."
            )
        for name, given in _calls(option, value.strip("\"'")):
            for field, entries in reader(name, given).items():
                entry = found.setdefault(name, {})
                if isinstance(entries, dict) and field in entry:
                    entry[field].update(entries)
                else:
                    entry[field] = entries
    return found


def _calls(option: str, text: str) -> Iterator[tuple[str, str]]:
    """Named calls with their overrides."""
    for part in text.split(","):
        # Names of locations may hold an equals sign or a colon: what is said of a call does not.
        name, equals, given = part.rpartition("=")
        if not equals or not name or not given:
            raise CompileError(f"'{part}' of {option} does not say NAME=...")
        yield name, given


def _output_layout(name: str, text: str) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    for word in text.split(":"):
        if (grid := _GRID.fullmatch(word)) is not None:
            # Rows first, and for tensors that are sharded one way a column or a row of shards.
            entry["grid"] = [int(grid[2]), int(grid[1])]
        elif word in BUFFERS:
            entry["memory"] = word
        elif word in SHARDINGS:
            entry["sharding"] = word
        elif word in PAGES:
            entry["layout"] = word
        elif word in DATA_TYPES:
            entry["data_type"] = word
        else:
            raise CompileError(
                f"'{word}' is no part of the layout of '{name}'",
                remedy=f"there are grids as 8x8, {', '.join((*BUFFERS, *SHARDINGS, *PAGES))}, "
                f"{', '.join(DATA_TYPES)}",
            )
    if entry.get("sharding", "interleaved") == "interleaved":
        entry.pop("grid", None)
    return entry


def _conv2d_config(name: str, text: str) -> dict[str, Any]:
    config: dict[str, Any] = {}
    entry: dict[str, Any] = {"conv2d_config": config}
    for word in text.split(":"):
        field, mark, value = word.partition("#")
        if not mark:
            raise CompileError(f"'{word}' of the convolution '{name}' does not say FIELD#VALUE")
        if field == "dtype":
            entry["data_type"] = value
        elif field == "activation":
            config[field] = None if value == "none" else value
        elif field == "core_grid" and (grid := _GRID.fullmatch(value)) is not None:
            config[field] = [int(grid[2]), int(grid[1])]
        elif field in _FLAGS and value in ("true", "false"):
            config[field] = value == "true"
        elif field in ("act_block_h_override", "act_block_w_div") and value.isdecimal():
            config[field] = int(value)
        elif field in ("weights_dtype", "shard_layout", "output_layout"):
            config[field] = value
        elif field not in _DROPPED:
            raise CompileError(f"'{word}' is no field of the convolution '{name}'")
    return entry


def _memreconfig(name: str, text: str) -> dict[str, Any]:
    places = text.split(":")
    if not all(place.isdecimal() for place in places):
        raise CompileError(f"'{text}' lists no operands of '{name}', as 0:1 does")
    return {"operands": {place: {} for place in places}}


_READERS: Mapping[str, Callable[[str, str], dict[str, Any]]] = {
    "override-output-layout": _output_layout,
    "override-conv2d-config": _conv2d_config,
    "insert-memreconfig": _memreconfig,
}
