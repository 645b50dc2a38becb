"""Layout assignment of TTNN tensors, decomposition of layout changes, and deallocation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.operations.attribute_kinds import DATA_TYPE
from ttcodegen.dialects.operations.functions import argument_type, flags_of_loop, is_loop_body
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.dialect import ArgumentType, LoadCachedOp, system_of
from ttcodegen.dialects.ttcore.loops import WhileLoopOp
from ttcodegen.dialects.ttcore.shards import GRID_WIDTH, LAYOUTS_WANTED, Shards
from ttcodegen.dialects.ttmetal.programs import VIEW
from ttcodegen.dialects.ttnn.placement import (
    TensorPlacement,
    declared_data_type,
    given_placement,
    placed_type,
    placement_of,
)
from ttcodegen.foundation.diagnostics import CompileError, copy_source_offset
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import Layout, Memory, OperandSpec, ResultRule, TTNNDefinition
from ttcodegen.ops.dialects import TTIROp, ttnn_op_classes
from ttcodegen.transforms.rewriting import (
    body_of,
    erase,
    erase_dead,
    is_unused,
    keep,
    rebuild,
    set_type,
)

# Layout assignment: data type, page layout and memory of every tensor, with conversions.


@dataclass(frozen=True)
class TTNNLayout(ModulePass):
    """Assigns layouts to all TTNN tensors and inserts conversions between them.

    Tensors are in interleaved DRAM tiles, except where a library op requires or returns another
    layout; inputs are row-major, weights as their users need them. A module that was not lowered to
    TTNN yet is marked, so that its lowering assigns layouts.
    """

    name = "ttnn-layout"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any(isinstance(inner, TTIROp) for inner in op.walk()):
            op.attributes[LAYOUTS_WANTED] = UnitAttr()
            return
        op.attributes.pop(LAYOUTS_WANTED, None)
        system = system_of(op)
        columns = GRID_WIDTH if system is None else system.chip.grid[1]
        known = [inner for inner in op.walk() if isinstance(inner, FuncOp)]
        bodies = {each.sym_name.data: each for each in known if is_loop_body(each)}
        for function in known:
            _assign(function, columns, bodies)


def assign_wanted_layouts(context: Context, module: ModuleOp) -> None:
    """Assigns layouts to a module that is marked for it."""
    if LAYOUTS_WANTED in module.attributes:
        TTNNLayout().apply(context, module)


def _assign(function: FuncOp, columns: int, bodies: Mapping[str, FuncOp]) -> None:
    block = body_of(function)
    for argument in list(block.args):
        placement = _argument_placement(function, argument)
        Rewriter.replace_value_with_new_type(argument, placed_type(placement))
    assigner = _Assigner(columns, function, bodies)
    classes = ttnn_op_classes()
    rebuild(
        function,
        lambda insert, m: OpBuilder(classes, insert, m),
        assigner.rewrite,
        assigner.rewrite_other,
    )
    _erase_unneeded_conversions(function)
    results = _return_operands(function, assigner)
    function.function_type = FunctionType.from_lists(
        [argument.type for argument in block.args], [value.type for value in results]
    )


def _erase_unneeded_conversions(function: FuncOp) -> None:
    """Erases dead conversions, left over where another one led back to the original layout."""
    op = body_of(function).last_op
    while op is not None:
        preceding = op.prev_op
        if op.name == "ttnn.composite_to_layout" and is_unused(op):
            erase(op)
        op = preceding


def _return_operands(function: FuncOp, assigner: _Assigner) -> Sequence[SSAValue]:
    terminator = body_of(function).last_op
    assert isinstance(terminator, ReturnOp)
    return terminator.operands


def _argument_placement(function: FuncOp, argument: BlockArgument) -> TensorPlacement:
    if is_loop_body(function):
        return _placement_in_loops(argument)
    given = given_placement(argument)
    demands = [demand for use in argument.uses if (demand := _demand(use.operation, use.index))]
    placement = TensorPlacement(shape_of(argument.type), declared_data_type(argument))
    # A tensor that is replicated on the device can no longer be sharded over the mesh.
    if any(call.chips is not None and spec.memory is Memory.HOST for call, spec in demands):
        return placement.with_(layout=Layout.ROW_MAJOR).on_host()
    if given is not None:
        return given
    kind = argument_type(function, argument.index)
    if any(definition.in_place == spec.name for definition, spec in demands):
        return placement
    if kind is ArgumentType.INPUT:
        return placement.with_(layout=Layout.ROW_MAJOR)
    if demands and all(spec.memory is Memory.HOST for _, spec in demands):
        return placement.with_(layout=Layout.ROW_MAJOR).on_host()
    # Weights of convolutions are tilized where used: in tiles they would be mostly padding.
    if kind is not ArgumentType.DEFAULT and placement.is_padding_in_tiles:
        return placement.with_(layout=Layout.ROW_MAJOR)
    return placement


def _placement_in_loops(value: SSAValue) -> TensorPlacement:
    """Returns the placement of a carried or captured tensor, the same in all iterations."""
    return given_placement(value) or _default_placement(value)


def _default_placement(value: SSAValue) -> TensorPlacement:
    return TensorPlacement(shape_of(value.type), declared_data_type(value))


def _demand(op: Operation, index: int) -> tuple[TTNNDefinition, OperandSpec] | None:
    if not isinstance(op, CatalogueOp) or not isinstance(op.definition, TTNNDefinition):
        return None
    return op.definition, operand_specs(op)[index]


def operand_specs(op: CatalogueOp) -> list[OperandSpec]:
    """Returns the spec of every operand, in order."""
    return [
        spec
        for spec, size in zip(op.definition.operands, op.segments(), strict=True)
        for _ in range(size)
    ]


def suitable_data_type(data_type: DataType, allowed: Sequence[DataType] | None) -> DataType:
    """Returns `data_type` if allowed, else an allowed type that represents its values best."""
    if allowed is None or data_type in allowed:
        return data_type
    if data_type is DataType.INT32:
        # Unsigned types have no negative numbers; f32 represents integers up to 2^24.
        return DataType.FLOAT32 if DataType.FLOAT32 in allowed else allowed[0]
    if not data_type.is_float:
        wider = (DataType.UINT32, DataType.INT32, DataType.FLOAT32)
        return next((d for d in wider if d in allowed), allowed[0])
    return next((d for d in allowed if d.is_float), allowed[0])


def _deciding(op: CatalogueOp, rule: ResultRule, operands: Sequence[SSAValue]) -> TensorPlacement:
    """Returns the placement of the operand that determines the data type of a result."""
    specs = operand_specs(op)
    for name in rule.like:
        for spec, value in zip(specs, operands, strict=True):
            if spec.name == name:
                return placement_of(value)
    return placement_of(operands[0])


def _as_requested(placement: TensorPlacement, asked: TensorPlacement | None) -> TensorPlacement:
    """Returns the requested placement of a call's result if it is on the device; keeps the page
    layout."""
    if asked is None or asked.memory is Memory.HOST:
        return placement
    there = placement.with_(
        buffer_type=asked.buffer_type, memory_layout=asked.memory_layout, shards=asked.shards
    )
    # Row-major shards need not be whole tiles.
    return placement if there.misfit() is not None else there


@dataclass
class _Assigner:
    """Rewrites one function, caching the conversions of each value."""

    columns: int
    """Core columns of the device over which results are sharded."""
    function: FuncOp
    bodies: Mapping[str, FuncOp]
    """Loop bodies of the module, by symbol."""
    converted: dict[tuple[SSAValue, TensorPlacement], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, TensorPlacement], SSAValue]
    )

    def rewrite(self, builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
        definition = op.definition
        assert isinstance(definition, TTNNDefinition)
        given = [given_placement(result) for result in op.results]
        if op.name == "ttnn.composite_to_layout" and given[0] is not None:
            return [self.convert(builder, builder[op.operands[0]], given[0])]
        operands: list[SSAValue] = []
        for spec, operand in zip(operand_specs(op), op.operands, strict=True):
            value = builder[operand]
            if spec.name == definition.in_place:
                self._forget(value)
                self._check_in_place(op, spec, value)
                operands.append(value)
            else:
                wanted = self._wanted(op, spec, placement_of(value))
                operands.append(self.convert(builder, value, wanted))
        placements = [
            self._result_placement(op, index, operands, result)
            for index, result in enumerate(op.results)
        ]
        placements = [
            _as_requested(placement, asked) if definition.result_rule(index).placed else placement
            for index, (placement, asked) in enumerate(zip(placements, given, strict=True))
        ]
        declared = [declared_data_type(result) for result in op.results]
        if placements and definition.result_rule(0).data_type == "attribute":
            if declared[0] is not placement_of(operands[0]).data_type:
                op.properties["dtype"] = DATA_TYPE.encode(declared[0])
        keep(builder, op, operands)
        for result, placement in zip(op.results, placements, strict=True):
            set_type(result, placed_type(placement))
        return [
            self.convert(
                builder,
                result,
                asked or self._to_overwrite(result, placement.with_(data_type=data_type)),
            )
            for result, placement, data_type, asked in zip(
                op.results, placements, declared, given, strict=True
            )
        ]

    def rewrite_other(self, builder: OpBuilder, op: Operation) -> None:
        """Keeps an op of no catalogue; loops and their bodies exchange tensors in the same
        placements."""
        operands = [builder[value] for value in op.operands]
        if (agreed := self._loop_placements(op)) is not None:
            operands = [
                self.convert(builder, value, placement)
                for value, placement in zip(operands, agreed, strict=True)
            ]
        keep(builder, op, operands)
        if isinstance(op, WhileLoopOp):
            for result, operand in zip(op.outputs, op.carried, strict=True):
                set_type(result, operand.type)

    def _loop_placements(self, op: Operation) -> Sequence[TensorPlacement] | None:
        """Returns the placements of operands of a loop or of its body's return; None for other
        ops."""
        if isinstance(op, WhileLoopOp):
            function = self.bodies.get(op.callee.string_value())
            if function is None:
                # The loop body is not in the module.
                return [_default_placement(value) for value in op.operands]
        elif isinstance(op, ReturnOp) and is_loop_body(self.function):
            function = self.function
        else:
            return None
        flags = op.operands[: flags_of_loop(function)]
        arguments = body_of(function).args[: len(op.operands) - len(flags)]
        return [*map(_default_placement, flags), *map(_placement_in_loops, arguments)]

    def _to_overwrite(self, result: SSAValue, found: TensorPlacement) -> TensorPlacement:
        """Returns the placement of a result that a later call overwrites.

        It is the one that call needs: other users would not see writes to a converted copy.
        """
        for use in result.uses:
            user, demand = use.operation, _demand(use.operation, use.index)
            if demand is None or not isinstance(user, CatalogueOp):
                continue
            definition, spec = demand
            if definition.in_place == spec.name:
                return self._wanted(user, spec, found)
        return found

    def _wanted(
        self, op: CatalogueOp, spec: OperandSpec, found: TensorPlacement
    ) -> TensorPlacement:
        if spec.prepared is not None and spec.prepared(op):
            return found
        wanted = found.with_(data_type=suitable_data_type(found.data_type, spec.data_types))
        if spec.memory is Memory.HOST:
            wanted = wanted.on_host()
        elif spec.memory is Memory.DEVICE:
            wanted = wanted.on_device()
        if spec.layout is not None:
            wanted = wanted.with_(layout=spec.layout)
            if wanted.misfit() is not None:
                wanted = wanted.interleaved()
        if spec.shards is not None:
            wanted = wanted.height_sharded(
                self._laid_out(spec.shards(op), min(GRID_WIDTH, self.columns))
            )
        return wanted

    def _laid_out(self, shards: Shards, columns: int) -> Shards:
        """Returns shards on the first cores of this device, `columns` per row."""
        return Shards.by_rows(shards.cores, shards.shape, columns)

    def convert(self, builder: OpBuilder, value: SSAValue, wanted: TensorPlacement) -> SSAValue:
        """Returns `value` with that placement; equal conversions share one op."""
        if placement_of(value) == wanted:
            return value
        key = (value, wanted)
        if key not in self.converted:
            made = builder.emit("composite_to_layout", [value], placed_type(wanted))
            made.name_hint = value.name_hint
            self.converted[key] = made
            # A round trip folds to the original value, unless the data type loses digits.
            if placement_of(value).data_type is wanted.data_type:
                self.converted[made, placement_of(value)] = value
        return self.converted[key]

    def _forget(self, value: SSAValue) -> None:
        """Drops cached conversions of a value that an op overwrites."""
        for key in [key for key in self.converted if value in (key[0], self.converted[key])]:
            del self.converted[key]

    def _check_in_place(self, op: CatalogueOp, spec: OperandSpec, value: SSAValue) -> None:
        found = placement_of(value)
        if self._wanted(op, spec, found) != found:
            raise CompileError(
                f"'{op.name}' overwrites its operand '{spec.name}', which is placed as "
                f"{found.layout.value} {found.data_type.mlir} and would have to be converted",
                op.source_offset,
            )

    def _result_placement(
        self,
        op: CatalogueOp,
        index: int,
        operands: Sequence[SSAValue],
        result: SSAValue,
    ) -> TensorPlacement:
        assert isinstance(op.definition, TTNNDefinition)
        rule = op.definition.result_rule(index)
        first = placement_of(operands[0]) if operands else None
        if rule.stored and (given := given_placement(result)) is not None:
            stored = given if first is None else first
            return stored.on_host() if given.memory is Memory.HOST else stored.on_device()
        if isinstance(rule.data_type, DataType):
            data_type = rule.data_type
        elif rule.data_type == "first":
            assert first is not None
            data_type = _deciding(op, rule, operands).data_type
        else:
            data_type = declared_data_type(result)
        layout = rule.layout
        if layout is None:
            assert first is not None
            layout = first.layout
        memory = rule.memory
        if op.definition.operands and op.definition.operands[0].memory is None and first:
            memory = first.memory
        placement = TensorPlacement(shape_of(result.type), data_type, layout)
        if rule.shards is not None:
            memory_layout, shards = rule.shards(op, index)
            return placement.sharded(memory_layout, self._laid_out(shards, self.columns))
        return placement.on_host() if memory is Memory.HOST else placement


# Decomposition of layout changes into library calls.

TILIZED = (
    DataType.BFLOAT16,
    DataType.FLOAT32,
    DataType.UINT32,
    DataType.INT32,
    DataType.UINT16,
)
"""Data types of row-major device tensors that the library tilizes (docs/library-rules.md)."""


@dataclass(frozen=True)
class DecomposeLayouts(ModulePass):
    """Decomposes each `ttnn.composite_to_layout` into library calls.

    These are from_device, to_device, typecast, to_layout and to_memory_config; equal calls on equal
    values are shared.
    """

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
        value = self._convert_in_memory(builder, value, target)
        source = placement_of(value)
        if source.memory is Memory.DEVICE and target.memory is Memory.HOST:
            return self._step(builder, "from_device", value, target)
        if source != target:
            return self._step(builder, "to_memory_config", value, target)
        return value

    def _convert_in_memory(
        self, builder: OpBuilder, value: SSAValue, target: TensorPlacement
    ) -> SSAValue:
        """Converts data type and page layout, in an order that the library supports."""
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
    """Returns the intermediate placement in which a sharded tensor is tilized or untilized."""
    memory = target.buffer_type if _both_interleaved(target, target) else "dram"
    return source.with_(buffer_type=memory, memory_layout="interleaved", shards=None)


def _both_interleaved(source: TensorPlacement, target: TensorPlacement) -> bool:
    """Returns whether a converting call can also change the memory: both interleaved on the
    device."""
    return (
        source.memory is target.memory is Memory.DEVICE
        and source.shards is None
        and target.shards is None
    )


def _tilizable(source: DataType, target: DataType) -> DataType:
    """Returns the data type in which rows are tilized during a conversion."""
    for data_type in (source, target):
        if data_type in TILIZED:
            return data_type
    return DataType.BFLOAT16 if target.is_float else DataType.UINT32


# Deallocation of tensors after their last use.


@dataclass(frozen=True)
class Deallocate(ModulePass):
    """Inserts `ttnn.deallocate` after the last use of every tensor that the function allocates.

    Tensors that may share a buffer, such as views, are live until the last use of any of them:
    deallocating one frees the buffer of all (docs/library-rules.md). Arguments, cached constants
    and results are kept.
    """

    name = "ttnn-deallocate"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if isinstance(function, FuncOp):
                _deallocate(body_of(function))


def _deallocate(block: Block) -> None:
    owner = buffer_owners(block)
    kept: set[SSAValue] = set(block.args)
    last_use: dict[SSAValue, Operation] = {}
    members: dict[SSAValue, list[SSAValue]] = {}
    for op in block.ops:
        if isinstance(op, ReturnOp):
            kept.update(owner[value] for value in op.operands)
        if isinstance(op, LoadCachedOp):
            kept.update(op.results)
        for value in (*op.operands, *op.results):
            last_use[owner[value]] = op
        for result in op.results:
            members.setdefault(owner[result], []).append(result)
    deallocate = ttnn_op_classes()["deallocate"]
    for root, op in last_use.items():
        if root in kept:
            continue
        after = op
        for value in members[root]:
            if placement_of(value).memory is Memory.DEVICE:
                made = deallocate.create(operands=[value])
                copy_source_offset(op, made)
                block.insert_op_after(made, after)
                after = made


def buffer_owners(block: Block) -> dict[SSAValue, SSAValue]:
    """Returns for every value the first value whose buffer it may share, which may be itself."""
    owner: dict[SSAValue, SSAValue] = {argument: argument for argument in block.args}
    for op in block.ops:
        aliases = op.name == VIEW or (
            isinstance(op, CatalogueOp)
            and isinstance(op.definition, TTNNDefinition)
            and op.definition.may_alias
        )
        for result in op.results:
            owner[result] = owner[op.operands[0]] if aliases else result
        if isinstance(op, WhileLoopOp):
            # A loop without iterations returns its initial tensors.
            for result, value in zip(op.outputs, op.carried, strict=True):
                owner[result] = owner[value]
    return owner


# Dead code elimination.


@dataclass(frozen=True)
class RemoveDeadValues(ModulePass):
    """Erases dead ops left over by lowering, such as constants that became scalars of calls."""

    name = "remove-dead-values"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if isinstance(function, FuncOp):
                erase_dead(function)
