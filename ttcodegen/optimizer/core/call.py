"""A call of the library as the model of cost sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import ComputeConfig
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import Memory
from ttcodegen.dialects.ttnn.placement import TensorPlacement, TTNNLayoutAttr
from ttcodegen.dialects.ttnn.program_configs import PROGRAM_CONFIGS, ProgramConfig
from ttcodegen.flatbuffer import program as file

COMPUTE_CONFIG = "compute_config"


@dataclass(frozen=True)
class LibraryCall:
    """Library call with the layouts of its tensors; device handles are not counted."""

    name: str
    """Without the dialect."""
    operands: tuple[TensorPlacement, ...]
    results: tuple[TensorPlacement, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    demanded: tuple[TensorPlacement | None, ...] = ()
    """By operand, the placement that it has to have whatever is decided: in the shards that the
    library demands. Empty if it demands none."""

    @property
    def result(self) -> TensorPlacement:
        """The first result, of a call that overwrites its operand that one."""
        return self.results[0] if self.results else self.operands[0]

    @property
    def program_config(self) -> ProgramConfig | None:
        """Program config of the call, if given."""
        for name in PROGRAM_CONFIGS:
            if (config := self.attributes.get(name)) is not None:
                return config
        return None

    @property
    def compute_config(self) -> ComputeConfig | None:
        """Compute kernel config of the call, if given."""
        return self.attributes.get(COMPUTE_CONFIG)

    @property
    def is_on_host(self) -> bool:
        """True if nothing of it concerns the device."""
        return all(p.memory is Memory.HOST for p in (*self.operands, *self.results))


def call_of(op: CatalogueOp) -> LibraryCall:
    """The call of an op with layouts."""
    return LibraryCall(
        op.definition.short_name,
        _placements(value.type for value in op.operands),
        _placements(value.type for value in op.results),
        op.parameters(),
        _demanded(op),
    )


def _demanded(op: CatalogueOp) -> tuple[TensorPlacement | None, ...]:
    specs = op.definition.operands
    if all(spec.shards is None for spec in specs):
        return ()
    return tuple(
        placement if spec.shards is not None else None
        for spec, group in zip(specs, op.operand_groups().values(), strict=True)
        for placement in _placements(value.type for value in group)
    )


def _placements(types: Any) -> tuple[TensorPlacement, ...]:
    encodings = [getattr(type_, "encoding", None) for type_ in types]
    return tuple([e.data for e in encodings if isinstance(e, TTNNLayoutAttr)])


def call_in_file(program: file.Program, operation: file.Operation) -> LibraryCall:
    """The call of an operation of a flatbuffer."""
    attributes: dict[str, Any] = {}
    for attribute in operation.attributes:
        value = attribute.value
        if isinstance(value, file.Integers | file.Floats | file.Booleans):
            attributes[attribute.name] = list(value.values)
        elif isinstance(value, file.DataTypeName):
            attributes[attribute.name] = DataType.from_mlir(value.value)
        elif value is not None and not isinstance(value, file.ConstantReference):
            attributes[attribute.name] = value.value
    return LibraryCall(
        operation.name.partition(".")[2],
        tuple(program.tensors[tensor].type.placement for tensor in operation.operands),
        tuple(program.tensors[tensor].type.placement for tensor in operation.results),
        attributes,
    )
