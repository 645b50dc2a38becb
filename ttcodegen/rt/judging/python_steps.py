"""What a call of a program consists of, in the form that the judge reads: JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from ttcodegen.dialects.operations.compute_config import ComputeConfig
from ttcodegen.dialects.ttcore.cores import CoreRange
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import (
    CoreGrid,
    CoreSet,
    FusedActivation,
    ProgramConfig,
    Word,
)
from ttcodegen.flatbuffer import program as file
from ttcodegen.optimizer.core.call import LibraryCall, call_in_file

Json = Any


class Step:
    """One call: its tensors by their numbers in the program, and what is written for them."""

    def __init__(self, program: file.Program, operation: file.Operation) -> None:
        self.program = program
        self.operation = operation
        self.call: LibraryCall = call_in_file(program, operation)
        self.groups: list[list[Json]] = []
        numbers = iter(operation.operands)
        for size in operation.operand_sizes:
            self.groups.append([{"tensor": next(numbers)} for _ in range(size)])

    def operand(self, index: int) -> Json:
        """The operand of that index in the definition, None if it is absent."""
        if index >= len(self.groups) or not self.groups[index]:
            return None
        return self.groups[index][0]

    def __getitem__(self, name: str) -> Any:
        return self.call.attributes.get(name)

    @property
    def memory(self) -> Json:
        """The memory configuration of the result, None where none is passed."""
        placements = (*self.call.operands, *self.call.results)
        if all(p.buffer_type != "l1" and p.shards is None for p in placements):
            return None
        return {"memory": memory_json(self.call.result)}

    @property
    def compute(self) -> Json:
        """The configuration of the kernels."""
        return compute_json(self.call.compute_config)

    @property
    def config(self) -> Json:
        """The configuration of the programs."""
        return config_json(self.call.program_config)


def memory_json(placement: TensorPlacement) -> Json:
    """The placement of a tensor."""
    found: dict[str, Json] = {
        "layout": placement.memory_layout,
        "buffer": placement.buffer_type,
        "shards": None,
    }
    if placement.shards is not None:
        found["shards"] = {
            "shape": list(placement.shards.shape),
            "ranges": ranges_json(placement.shards.core_ranges),
            "orientation": placement.shards.orientation.value,
        }
    return found


def ranges_json(ranges: Sequence[CoreRange]) -> Json:
    """Cores, as rectangles of them."""
    return sorted([r.first_column, r.first_row, r.last_column, r.last_row] for r in ranges)


def type_json(placement: TensorPlacement) -> Json:
    """The layout of a tensor."""
    on_host = placement.buffer_type == "system_memory"
    return {
        "shape": list(placement.shape),
        "dtype": placement.data_type.mlir,
        "page": placement.layout.value,
        "memory": None if on_host else memory_json(placement),
    }


def compute_json(config: ComputeConfig | None) -> Json:
    """A compute kernel configuration."""
    if config is None:
        return None
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    return {"compute": {**values, "math_fidelity": config.math_fidelity.cpp}}


def config_json(config: ProgramConfig | None) -> Json:
    """A program configuration, by the name of its class."""
    if config is None:
        return None
    given: dict[str, Json] = {}
    for name, value in config.given():
        given[config.spelled.get(name, name)] = _field(value)
    name = config.cpp.rpartition("::")[2]
    return {"program": [name, given]}


def _field(value: object) -> Json:
    match value:
        case CoreGrid():
            return {"grid": [value.columns, value.rows]}
        case CoreSet():
            return {"cores": ranges_json(value.ranges)}
        case FusedActivation():
            return {"activation": [value.op_type, list(value.params)]}
        case Word(text) if text in ("tile", "row_major"):
            return {"page": text}
        case Word(text) if "sharded" in text:
            return {"shard_layout": text}
        case Word(text):
            return {"dtype": text}
        case _:
            return value
