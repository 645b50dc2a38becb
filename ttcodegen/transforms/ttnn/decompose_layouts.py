"""Makes the library's own calls of each change of layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placed_type, placement_of
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import Layout, Memory
from ttcodegen.ops.dialects import ttnn_op_classes
from ttcodegen.transforms.rebuilding import keep, rebuild

TILIZED = (
    DataType.BFLOAT16,
    DataType.FLOAT32,
    DataType.UINT32,
    DataType.INT32,
    DataType.UINT16,
)
"""The data types of row-major device tensors that the library tilizes (docs/library-rules.md)."""


@dataclass(frozen=True)
class DecomposeLayouts(ModulePass):
    """Each `ttnn.composite_to_layout` becomes from_device, to_device, typecast, to_layout and
    to_memory_config calls; equal calls on equal values are made once."""

    name = "ttnn-decompose-layouts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        classes = ttnn_op_classes()
        for function in op.walk():
            if isinstance(function, FuncOp):
                decomposer = _Decomposer()
                rebuild(
                    function, lambda insert, m: OpBuilder(classes, insert, m), decomposer.rewrite
                )


@dataclass
class _Decomposer:
    made: dict[tuple[str, SSAValue, TensorPlacement], SSAValue] = field(
        default_factory=dict[tuple[str, SSAValue, TensorPlacement], SSAValue]
    )

    def rewrite(self, builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
        if op.name == "ttnn.composite_to_layout":
            return [self._convert(builder, builder[op.operands[0]], placement_of(op.results[0]))]
        if op.definition.in_place is not None:
            self.made.clear()
        keep(builder, op, [builder[value] for value in op.operands])
        return op.results

    def _convert(self, builder: OpBuilder, value: SSAValue, target: TensorPlacement) -> SSAValue:
        source = placement_of(value)
        if source.memory is Memory.HOST and target.memory is Memory.DEVICE:
            value = self._step(builder, "to_device", value, source.on_device())
        value = self._on_one_side(builder, value, target)
        source = placement_of(value)
        if source.memory is Memory.DEVICE and target.memory is Memory.HOST:
            return self._step(builder, "from_device", value, target)
        if source != target:
            return self._step(builder, "to_memory_config", value, target)
        return value

    def _on_one_side(
        self, builder: OpBuilder, value: SSAValue, target: TensorPlacement
    ) -> SSAValue:
        """Data type and page layout, in an order in which the library does both."""
        source = placement_of(value)
        if source.layout is not target.layout and not source.may_change_pages_in_shards():
            value = self._step(builder, "to_memory_config", value, _between(source, target))
            source = placement_of(value)
        between = source.with_(data_type=target.data_type)
        if target.layout is Layout.TILE and source.layout is Layout.ROW_MAJOR:
            between = source.with_(data_type=_tilizable(source.data_type, target.data_type))
        tilized = between.with_(layout=target.layout)
        steps = (
            ("typecast", between),
            ("to_layout", tilized),
            ("typecast", tilized.with_(data_type=target.data_type)),
        )
        needed: list[tuple[str, TensorPlacement]] = []
        for name, placement in steps:
            if placement != (needed[-1][1] if needed else source):
                needed.append((name, placement))
        for index, (name, placement) in enumerate(needed):
            if index == len(needed) - 1 and _both_interleaved(placement, target):
                placement = placement.with_(buffer_type=target.buffer_type)
            value = self._step(builder, name, value, placement)
        return value

    def _step(
        self, builder: OpBuilder, name: str, value: SSAValue, placement: TensorPlacement
    ) -> SSAValue:
        key = (name, value, placement)
        if key not in self.made:
            self.made[key] = builder.emit(name, [value], placed_type(placement))
            self.made[key].name_hint = value.name_hint
        return self.made[key]


def _between(source: TensorPlacement, target: TensorPlacement) -> TensorPlacement:
    """Intermediate placement while a sharded tensor is tilized or untilized."""
    memory = target.buffer_type if _both_interleaved(target, target) else "dram"
    return source.with_(buffer_type=memory, memory_layout="interleaved", shards=None)


def _both_interleaved(source: TensorPlacement, target: TensorPlacement) -> bool:
    """True if a call can bring a tensor from one memory configuration to the other while it
    converts it."""
    return (
        source.memory is target.memory is Memory.DEVICE
        and source.shards is None
        and target.shards is None
    )


def _tilizable(source: DataType, target: DataType) -> DataType:
    """The data type in which rows become tiles on the way from one to the other."""
    for data_type in (source, target):
        if data_type in TILIZED:
            return data_type
    return DataType.BFLOAT16 if target.is_float else DataType.UINT32
