"""Conversion of generics to launches of device programs and functions of their kernels."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, SymbolRefAttr, UnitAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.conversions.mesh import stays_on_chips
from ttcodegen.conversions.ttir_to_ttmetal.attention.programs import lower_attention, lower_cache
from ttcodegen.conversions.ttir_to_ttmetal.generics import group_of
from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import (
    Group,
    Kind,
    is_fill,
    is_free_reshape,
)
from ttcodegen.conversions.ttir_to_ttmetal.matmul.programs import lower_matmul
from ttcodegen.conversions.ttir_to_ttmetal.movement_programs import lower_indexed, lower_movement
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import Lowered, lower_operation
from ttcodegen.conversions.ttir_to_ttmetal.rows import lower_rows
from ttcodegen.conversions.ttir_to_ttmetal.sort_and_scatter import (
    lower_order,
    lower_scatter,
)
from ttcodegen.conversions.ttir_to_ttmetal.tile_programs import lower_tiles
from ttcodegen.conversions.ttir_to_ttmetal.window_programs import lower_window
from ttcodegen.conversions.ttir_to_ttnn import cpu_functions, overwritten_operands
from ttcodegen.dialects.core.datatypes import element_of, elements, numpy_name, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp, operation_name
from ttcodegen.dialects.ttcore.dialect import system_of
from ttcodegen.dialects.ttcore.shards import CoreRange, Layout
from ttcodegen.dialects.ttir.generic import GenericOp
from ttcodegen.dialects.ttmetal.device_module import MEANING, ProgramAttr
from ttcodegen.dialects.ttmetal.programs import Program
from ttcodegen.dialects.ttnn.placement import TensorPlacement, declared_data_type, placed_type
from ttcodegen.emitc.spelling import NameScope, identifier
from ttcodegen.foundation.diagnostics import (
    CompileError,
    Diagnostic,
    copy_source_offset,
    set_source_offset,
    source_offset,
)
from ttcodegen.naming.functions import cpu_function_name
from ttcodegen.naming.programs import (
    TensorNames,
    host_name,
    kernel_names,
    program_name,
    tensor_names_of,
)
from ttcodegen.ops.core.builder import number_as, splat_of
from ttcodegen.ops.tt_lang import CALLED_OPERATION, called_name
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE
from ttcodegen.transforms.functions import is_entry
from ttcodegen.transforms.rewriting import body_of, functions, set_type

_LOWERINGS = {
    Kind.TILES: lower_tiles,
    Kind.ROWS: lower_rows,
    Kind.MATMUL: lower_matmul,
    Kind.WINDOW: lower_window,
    Kind.MOVEMENT: lower_movement,
    Kind.INDEXED: lower_indexed,
    Kind.ORDER: lower_order,
    Kind.SCATTER: lower_scatter,
    Kind.ATTENTION: lower_attention,
    Kind.CACHE: lower_cache,
    Kind.OPERATION: lower_operation,
}


@dataclass(frozen=True)
class ConvertTTIRToTTMetal(ModulePass):
    """Converts each `ttir.generic` of the entry functions to a program.

    After the entry functions come, for each program, a function that defines its meaning in TTIR
    (`ttmetal.meaning`) and its kernels. Tensors are in DRAM, in tiles.

    Raises:
        CompileError: if ops are in no generic, which it lists, or if a generic cannot be a program.
    """

    name = "convert-ttir-to-ttmetal"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _check_divided(op)
        system = system_of(op) or default_system(DEFAULT_ARCHITECTURE)
        rows, columns = system.chip.grid
        cores = CoreRange(0, 0, columns - 1, rows - 1)
        programs = NameScope(["main", "forward"])
        called: dict[Structure, list[str]] = {}
        by_cpu = {function.sym_name.data: function for function in cpu_functions(op)}
        made: list[FuncOp] = []
        for function in functions(op):
            if is_entry(function):
                converter = _FunctionConverter(ctx, function, cores, programs, called, by_cpu)
                made += converter.convert()
        op.body.block.add_ops(made)


def _check_divided(module: ModuleOp) -> None:
    """Raises CompileError with one diagnostic per op that should be in a generic."""
    found = [
        Diagnostic(
            f"'{operation_name(op)}' is in no ttir.generic",
            source_offset(op),
            "run --ttir-to-ttir-generic first",
        )
        for function in functions(module)
        if is_entry(function)
        for op in body_of(function).ops
        if not isinstance(op, GenericOp | CallOp | ReturnOp)
        and not is_free_reshape(op)
        and not is_fill(op)
    ]
    if found:
        raise CompileError.from_diagnostics(found)


Structure = tuple[object, ...]
"""Structural key of a program: its ops and their operands, regardless of names."""


def _structure(group: Group, values: Sequence[SSAValue]) -> Structure:
    numbers = {value: number for number, value in enumerate(values)}
    ops = tuple(
        (
            op.name,
            frozenset(op.properties.items()),
            frozenset(op.attributes.items()),
            tuple(numbers[value] for value in (*op.operands, *op.results)),
        )
        for op in group.ops
    )
    made = tuple((value.type, splat_of(value)) for value in values)
    outputs = tuple(numbers[value] for value in group.outputs())
    streamed = frozenset(numbers[value] for value in group.streamed if value in numbers)
    return (group.kind, group.cores, ops, made, outputs, streamed)


def device_type(value: SSAValue) -> Attribute:
    """Type of a tensor that programs write: tiles in DRAM of the device."""
    return placed_type(TensorPlacement(shape_of(value.type), declared_data_type(value)))


def interface_type(value: SSAValue, by_cpu: Mapping[str, FuncOp]) -> Attribute:
    """Type of an argument or constant: tiles, or rows if only the CPU reads it.

    Tensors with small last dimensions, such as weights of convolutions, would mostly be padding in
    tiles."""
    only_cpu = value.first_use is not None and all(
        isinstance(use.operation, CallOp) and not stays_on_chips(use.operation, by_cpu)
        for use in value.uses
    )
    layout = Layout.ROW_MAJOR if only_cpu else Layout.TILE
    placement = TensorPlacement(shape_of(value.type), declared_data_type(value), layout)
    return placed_type(placement)


@dataclass
class _FunctionConverter:
    context: Context
    function: FuncOp
    cores: CoreRange
    """All available cores."""
    programs: NameScope
    """Names of programs in the module."""
    called: dict[Structure, list[str]]
    """Names of kernel values, in order, by the structure of the program."""
    by_cpu: Mapping[str, FuncOp]
    """CPU functions by their symbols."""
    _mapping: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    _on_host: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Values of the source that were copied to the host, or computed there."""
    _tensor_names: TensorNames = field(init=False)
    _ops: list[Operation] = field(default_factory=list[Operation])
    _made: list[FuncOp] = field(default_factory=list[FuncOp])
    _call_op: Operation = field(init=False)
    """Call for which tensors are copied to the host."""

    def convert(self) -> list[FuncOp]:
        """Replaces the body; returns the functions of its programs."""
        block = body_of(self.function)
        groups = list(self._groups(block))
        self._name_values(block, groups)
        entry = Block(arg_types=[interface_type(argument, self.by_cpu) for argument in block.args])
        for old, new in zip(block.args, entry.args, strict=True):
            self._mapping[old] = new
            new.name_hint = old.name_hint
        for op in block.ops:
            if is_fill(op) and splat_of(op.results[0]) is None:
                self._keep_constant(op)
        for group in groups:
            if group.call is not None:
                self._call(group.call)
            elif not group.is_dead:
                self._launch(group)
        terminator = block.last_op
        assert isinstance(terminator, ReturnOp)
        results = [self._value(value) for value in terminator.operands]
        entry.add_ops(_with_deallocations(self.context, self._ops, results))
        entry.add_op(ReturnOp(*results))
        self.function.body.detach_block(block)
        self.function.body.add_block(entry)
        self.function.function_type = FunctionType.from_lists(
            [argument.type for argument in entry.args], [value.type for value in results]
        )
        for op in list(block.ops)[::-1]:
            op.detach()
            op.drop_all_references()
        return self._made

    def _groups(self, block: Block) -> Iterator[Group]:
        """Yields the programs and calls of the function, in order.

        The ops of generics move into the function, at the position of the generic."""
        for op in list(block.ops):
            if isinstance(op, GenericOp):
                yield group_of(op, self.cores)
            elif isinstance(op, CallOp):
                yield Group(0, Kind.CPU, (), call=op)

    @property
    def _names(self) -> dict[SSAValue, str]:
        return self._tensor_names.distinct

    def _name_values(self, block: Block, groups: Iterable[Group]) -> None:
        called: dict[SSAValue, str] = {
            result: cpu_function_name(op.callee.string_value())
            for op in block.ops
            if isinstance(op, CallOp)
            for result in op.results
        }
        called |= {
            result: called_name(op)
            for op in block.ops
            if isinstance(op, CatalogueOp) and op.name == CALLED_OPERATION
            for result in op.results
        }
        written = [value for group in groups for value in group.outputs()]
        self._tensor_names = tensor_names_of(self.function, called, written)

    def _keep_constant(self, op: Operation) -> None:
        made = op.clone()
        result = made.results[0]
        set_type(result, interface_type(op.results[0], self.by_cpu))
        result.name_hint = self._names[op.results[0]]
        self._add(made, op)
        self._mapping[op.results[0]] = result

    def _keep_number(self, op: Operation, number: float) -> None:
        """Materializes a splat as a constant tensor, where programs cannot generate it."""
        import ml_dtypes  # registers bfloat16 with numpy

        assert ml_dtypes is not None
        (result,) = op.results
        element = element_of(result.type)
        data = number_as(number, str(numpy_name(element))).tobytes()
        constant = self._create("ttir.constant", [], [result.type])
        constant.properties["value"] = elements(element, shape_of(result.type), data)
        copy_source_offset(op, constant)
        self._names[constant.results[0]] = self._names[result]
        self._keep_constant(constant)
        self._mapping[result] = self._mapping[constant.results[0]]

    def _value(self, value: SSAValue) -> SSAValue:
        """Returns the device value of a source value.

        It is created on demand for free reshapes, splats that a program reads as a tensor, and
        values that are only on the host."""
        chain: list[SSAValue] = []
        while value not in self._mapping:
            if value in self._on_host:
                self._to_device(value)
                break
            op = value.owner
            assert isinstance(op, CatalogueOp)
            if (number := splat_of(value)) is not None:
                self._keep_number(op, number)
                break
            assert is_free_reshape(op), op.name
            chain.append(value)
            value = op.operands[0]
        found = self._mapping[value]
        for view in reversed(chain):
            made = self._create("ttmetal.view", [found], [device_type(view)])
            origin = view.owner
            assert isinstance(origin, Operation)
            self._add(made, origin)
            found = self._mapping[view] = made.results[0]
            self._tensor_names.name_tensor(found, view)
        return found

    def _host_value(self, value: SSAValue) -> SSAValue:
        """Returns the host value of a source value."""
        if value not in self._on_host:
            self._on_host[value] = self._read(value)
        return self._on_host[value]

    def _read(self, value: SSAValue) -> SSAValue:
        """Copies a source value to the host."""
        read = self._create("ttmetal.enqueue_read_buffer", [self._value(value)], [value.type])
        read.results[0].name_hint = host_name(self._names[value])
        self._add(read, self._call_op)
        return read.results[0]

    def _to_device(self, value: SSAValue) -> None:
        """Copies a value that was computed on the host to the device."""
        self._new_buffer(value)
        self._write(value, self._on_host[value])

    def _new_buffer(self, value: SSAValue) -> None:
        origin = value.owner
        assert isinstance(origin, Operation)
        buffer = self._create("ttmetal.create_buffer", [], [device_type(value)])
        self._tensor_names.name_tensor(buffer.results[0], value)
        self._add(buffer, origin)
        self._mapping[value] = buffer.results[0]

    def _write(self, value: SSAValue, on_host: SSAValue) -> None:
        origin = value.owner
        assert isinstance(origin, Operation)
        target = self._mapping[value]
        self._add(self._create("ttmetal.enqueue_write_buffer", [on_host, target], []), origin)

    def _exchange(self, call: CallOp) -> None:
        """Converts a call that becomes an exchange between devices.

        Operand and result buffers exist at the same time, and no host copy of either is kept."""
        (operand,), (result,) = call.operands, call.results
        self._value(operand)
        self._new_buffer(result)
        made = CallOp(call.callee.string_value(), [self._read(operand)], [result.type])
        made.attributes.update(call.attributes)
        self._add(made, call)
        made.results[0].name_hint = host_name(self._names[result])
        self._write(result, made.results[0])

    def _call(self, call: CallOp) -> None:
        """Calls a CPU function; overwritten operands are copies, which are written back."""
        self._call_op = call
        if stays_on_chips(call, self.by_cpu):
            self._exchange(call)
            return
        overwritten = overwritten_operands(call)
        operands = [
            self._read(value) if value in overwritten else self._host_value(value)
            for value in call.operands
        ]
        made = CallOp(call.callee.string_value(), operands, [r.type for r in call.results])
        made.attributes.update(call.attributes)
        self._add(made, call)
        for old, new in zip(call.results, made.results, strict=True):
            new.name_hint = host_name(self._names[old])
            self._on_host[old] = new
        for old, new in zip(call.operands, operands, strict=True):
            if old in overwritten:
                target = self._value(old)
                self._add(self._create("ttmetal.enqueue_write_buffer", [new, target], []), call)
        if overwritten:
            # Host copies may be views of the overwritten values.
            for value in [v for v in self._on_host if v not in call.results]:
                self._value(value)
                del self._on_host[value]

    def _launch(self, group: Group) -> None:
        name = self.programs.unique(identifier(program_name(group.ops)))
        names = self._kernel_names(group)
        lowered = _LOWERINGS[group.kind](group, names, name, group.cores or self.cores)
        inputs = [self._value(value) for value in lowered.inputs]
        outputs: list[SSAValue] = []
        for value in lowered.outputs:
            if value is group.overwritten:
                outputs.append(self._value(value))
                self._forget_copies(value)
                continue
            buffer = self._create("ttmetal.create_buffer", [], [device_type(value)])
            self._tensor_names.name_tensor(buffer.results[0], value)
            self._add(buffer, group.ops[-1])
            self._mapping[value] = buffer.results[0]
            outputs.append(buffer.results[0])
        meaning = self._meaning(group, lowered, name)
        launch = self._create("ttmetal.run_program", [*inputs, *outputs], [])
        launch.properties["program"] = ProgramAttr(_with_streams(lowered, group.streamed))
        launch.properties["meaning"] = SymbolRefAttr(meaning.sym_name.data)
        self._add(launch, group.root or group.ops[-1])
        self._made += [meaning, *lowered.kernels]

    def _kernel_names(self, group: Group) -> Mapping[SSAValue, str]:
        """Names of values in the kernels of a group; equal groups share names, and so kernels."""
        values = list(dict.fromkeys(v for op in group.ops for v in (*op.operands, *op.results)))
        key = _structure(group, values)
        if key not in self.called:
            self.called[key] = list(kernel_names(values, self._names).values())
        return dict(zip(values, self.called[key], strict=True))

    def _forget_copies(self, overwritten: SSAValue) -> None:
        """Drops host copies of values that were overwritten on the device."""
        for value in list(self._on_host):
            source = value
            while isinstance(source.owner, Operation) and is_free_reshape(source.owner):
                source = source.owner.operands[0]
            if source is overwritten:
                self._value(value)
                del self._on_host[value]

    def _meaning(self, group: Group, lowered: Lowered, name: str) -> FuncOp:
        """Returns the ops of the group as a function of the program's inputs."""
        body = Block(arg_types=[value.type for value in lowered.inputs])
        mapping: dict[SSAValue, SSAValue] = dict(zip(lowered.inputs, body.args, strict=True))
        for value, argument in zip(lowered.inputs, body.args, strict=True):
            argument.name_hint = self._names[value]
        for op in group.ops:
            for operand in op.operands:
                if operand not in mapping:
                    owner = operand.owner
                    assert isinstance(owner, Operation)
                    body.add_op(_clone(owner, mapping))
            body.add_op(_clone(op, mapping))
        results = [mapping[value] for value in lowered.outputs]
        body.add_op(ReturnOp(*results))
        type_ = FunctionType.from_lists(
            [argument.type for argument in body.args], [value.type for value in results]
        )
        function = FuncOp(f"{name}_meaning", type_, Region(body), "private")
        function.attributes[MEANING] = UnitAttr()
        return function

    def _create(
        self, name: str, operands: Sequence[SSAValue], results: Sequence[Attribute]
    ) -> Operation:
        return self.context.get_op(name).create(operands=operands, result_types=results)

    def _add(self, op: Operation, origin: Operation) -> None:
        op.location = origin.location
        op.source_offset = getattr(origin, "source_offset", -1)  # pyright: ignore
        self._ops.append(op)


def _with_streams(lowered: Lowered, streamed: Container[SSAValue]) -> Program:
    """Marks the streamed operands of the program."""
    program = lowered.program
    operands = (*lowered.inputs, *lowered.outputs)
    traffic = tuple(
        replace(each, streamed=value in streamed)
        for each, value in zip(program.traffic, operands, strict=bool(program.traffic))
    )
    return replace(program, traffic=traffic)


def _clone(op: Operation, values: dict[SSAValue, SSAValue]) -> Operation:
    """Clones an op with its source location."""
    made = op.clone(values)
    offset = source_offset(op)
    if offset is not None:
        set_source_offset(made, offset)
    return made


def _with_deallocations(
    context: Context, ops: Sequence[Operation], results: Iterable[SSAValue]
) -> list[Operation]:
    """Returns the ops with deallocations of buffers after their last use."""
    roots: dict[SSAValue, SSAValue] = {}
    for op in ops:
        for result in op.results:
            source = op.operands[0] if operation_name(op) == "ttmetal.view" else result
            roots[result] = roots.get(source, source)
    kept = {roots.get(value, value) for value in results}
    last: dict[SSAValue, int] = {}
    for position, op in enumerate(ops):
        for value in op.operands:
            last[roots.get(value, value)] = position
    ends: dict[int, list[SSAValue]] = {}
    for op in ops:
        if operation_name(op) != "ttmetal.create_buffer":
            continue
        root = op.results[0]
        if root not in kept:
            ends.setdefault(last[root], []).append(root)
    found: list[Operation] = []
    for position, op in enumerate(ops):
        found.append(op)
        for root in ends.get(position, ()):
            type_ = context.get_op("ttmetal.deallocate_buffer")
            found.append(type_.create(operands=[root]))
    return found
