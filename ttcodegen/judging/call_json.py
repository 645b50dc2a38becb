"""JSON serialization of a program's calls for the judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from ttcodegen.dialects.operations.compute_config import ComputeConfig
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import (
    CoreGrid,
    CoreSet,
    FusedActivation,
    ProgramConfig,
    Word,
)
from ttcodegen.flatbuffer import program as file
from ttcodegen.optimizer.call import LibraryCall, call_in_file

Json = Any


class Step:
    """Call with its tensor numbers and serialized arguments."""

    def __init__(self, program: file.Program, operation: file.Operation) -> None:
        self.program = program
        self.operation = operation
        self.call: LibraryCall = call_in_file(program, operation)
        self.groups: list[list[Json]] = []
        numbers = iter(operation.operands)
        for size in operation.operand_sizes:
            self.groups.append([{"tensor": next(numbers)} for _ in range(size)])

    def operand(self, index: int) -> Json:
        """Operand at an index of the definition, None if it is absent."""
        if index >= len(self.groups) or not self.groups[index]:
            return None
        return self.groups[index][0]

    def __getitem__(self, name: str) -> Any:
        return self.call.attributes.get(name)

    @property
    def memory(self) -> Json:
        """Memory config of the result, None if it is the default."""
        placements = (*self.call.operands, *self.call.results)
        if all(p.buffer_type != "l1" and p.shards is None for p in placements):
            return None
        return {"memory": memory_json(self.call.result)}

    @property
    def compute(self) -> Json:
        """Compute kernel config."""
        return compute_json(self.call.compute_config)

    @property
    def config(self) -> Json:
        """Program config."""
        return config_json(self.call.program_config)


def memory_json(placement: TensorPlacement) -> Json:
    """Memory config of a placement."""
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
    """Cores as sorted rectangles."""
    return sorted([r.first_column, r.first_row, r.last_column, r.last_row] for r in ranges)


def type_json(placement: TensorPlacement) -> Json:
    """Layout of a tensor."""
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
    """Program config by class name."""
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
