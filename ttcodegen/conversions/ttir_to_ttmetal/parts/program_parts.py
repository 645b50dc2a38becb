"""Parts of device programs: tensors, circular buffers, kernels, TT-Lang operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import Group
from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import capacity, named_registers
from ttcodegen.conversions.ttir_to_ttmetal.parts.compute import REGISTER_FORMATS, ComputeKernel
from ttcodegen.conversions.ttir_to_ttmetal.parts.data_movement import MovementKernel
from ttcodegen.conversions.ttir_to_ttmetal.parts.loop_nests import WorkOrder, page_of_tile
from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttcore.tile import TILE_FORMATS
from ttcodegen.dialects.ttkernel.table import kernel_ops
from ttcodegen.dialects.ttmetal.programs import (
    FP32_DESTINATION,
    BufferAddress,
    CircularBuffer,
    ComputeSettings,
    CoreArea,
    Costs,
    Division,
    Kernel,
    NamedConstant,
    Place,
    Processor,
    Program,
    RuntimeArgument,
    Traffic,
    UnitTiles,
)
from ttcodegen.dialects.ttmetal.tuning import (
    Derived,
    Name,
    Rule,
    Setting,
    Size,
    Tuning,
    at_least,
    at_most,
    equal,
    names_in,
    select,
)
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.emitc.spelling import NameScope
from ttcodegen.layout.placements import TiledShape, tile_bytes_of
from ttcodegen.naming.programs import address_name, kernel_name
from ttcodegen.ops.tt_lang import called_program, called_tensors

# Circular buffers of a program: capacities and names.
#
# Names in kernels that derive from a tensor are its name with a suffix (`x_address`, `x_layout`,
# `x_tensor`, `x_elements`) or with the prefix `cb_`, which no name of a tensor has: so none
# collides with other names of the kernel or of the device API.

DOUBLE = 2
"""Number of tiles of a double-buffered circular buffer."""
BUFFER_DEPTH = Name("buffer_depth")
"""Setting for the tiles of a circular buffer; `DOUBLE` by default."""
_WITHOUT_TENSOR = frozenset(
    [
        *("elements", "greatest", "inverse", "later", "left", "order", "partial", "reduced"),
        *("factor", "latest", "products", "right", "scaler", "scores", "seen", "sum", "weights"),
    ]
)
"""Circular buffers that do not hold a tensor as stored in DRAM."""


@dataclass
class CircularBuffers:
    """Circular buffers of a program under construction, in the order of their indices.

    A circular buffer is named after its tensor, unless the name is taken."""

    names: Mapping[SSAValue, str]
    """Unique identifiers of the tensors."""
    declare: Callable[[str, int, str], Name]
    """Declares a tuning knob of the program: its name, default and remark."""
    _buffers: list[CircularBuffer] = field(default_factory=list[CircularBuffer], init=False)
    _scope: NameScope = field(init=False)
    _has_depth: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._scope = NameScope([*_WITHOUT_TENSOR, *_names_after_cb()])

    def __iter__(self) -> Iterator[CircularBuffer]:
        return iter(self._buffers)

    def __len__(self) -> int:
        return len(self._buffers)

    def __getitem__(self, index: int) -> CircularBuffer:
        return self._buffers[index]

    def add(self, name: str, data_type: DataType, pages: Size) -> str:
        """Adds a circular buffer that holds no tensor; returns its name."""
        assert name in _WITHOUT_TENSOR
        return self._add(name, data_type, pages)

    def add_tensor(self, value: SSAValue, pages: Size = BUFFER_DEPTH) -> str:
        """Adds a circular buffer for tiles of a tensor; returns its name."""
        return self.add_value(value, declared_data_type(value), pages)

    def add_value(self, value: SSAValue, data_type: DataType, pages: Size) -> str:
        """Adds a circular buffer for a value that never leaves the core; returns its name."""
        name = self.names[value]
        name = f"{name}_tiles" if name in _WITHOUT_TENSOR else name
        return self._add(self._scope.unique(name), data_type, pages)

    def add_kept(self, buffer: str, slots: int) -> str:
        """Adds a cache for tiles that go through another circular buffer; returns its name."""
        [kept] = [b for b in self._buffers if b.name == buffer]
        return self._add(self._scope.unique(f"{buffer}_kept"), kept.data_type, slots)

    def wide(self, copied: Iterable[str]) -> tuple[int, ...]:
        """Indices of circular buffers with 32-bit elements that `copy_tile` unpacks at full width.

        Operands of the matrix engine are truncated to 19 bits."""
        names = set(copied)
        found = (b for b in self._buffers if TILE_FORMATS[b.data_type.mlir].bits == 32)
        return tuple(b.index for b in found if b.name in names)

    def constants(self, names: Iterable[str]) -> tuple[NamedConstant, ...]:
        """Compile-time arguments for the circular buffers of a kernel."""
        used = set(names)
        return tuple(NamedConstant(b.constant, b.index) for b in self._buffers if b.name in used)

    def _add(self, name: str, data_type: DataType, pages: Size) -> str:
        if BUFFER_DEPTH.name in names_in(pages):
            self._declare_depth()
        index = len(self._buffers)
        self._buffers.append(
            CircularBuffer(index, name, data_type, pages, tile_bytes_of(data_type))
        )
        return name

    def _declare_depth(self) -> None:
        """Declares the setting for the depth of circular buffers at its first use."""
        if not self._has_depth:
            self._has_depth = True
            self.declare(
                BUFFER_DEPTH.name,
                DOUBLE,
                "Tiles in each circular buffer: with 2, the next tile is read while the last is "
                "computed; 1 saves L1 but serializes them; more hides variations in latency.",
            )


@cache
def _names_after_cb() -> frozenset[str]:
    """Names that must not follow `cb_` in the name of a circular buffer: it would be a function."""
    found = (name.removeprefix("cb_") for name in kernel_ops() if name.startswith("cb_"))
    return frozenset(found)


# Parts of programs: tensors, circular buffers, kernels.

SHARE = (RuntimeArgument("first", Place.FIRST), RuntimeArgument("count", Place.COUNT))
"""Run-time arguments with a core's share of the program's work."""
COUNT = SHARE[1:]
"""Run-time argument of kernels that need only the size of the share."""


def tensor_bytes(value: SSAValue) -> int:
    """Bytes of a tensor's tiles."""
    return TiledShape(shape_of(value.type)).tiles * tile_bytes_of(declared_data_type(value))


def purpose_of(group: Group) -> str:
    """Purpose of the program of a group: the names of its ops."""
    return ", ".join(op.name.partition(".")[2] for op in group.ops)


@dataclass(frozen=True)
class Lowered:
    """A program with its kernels and its operands."""

    program: Program
    kernels: tuple[FuncOp, ...]
    """Functions of its kernels."""
    inputs: tuple[SSAValue, ...]
    outputs: tuple[SSAValue, ...]


@dataclass
class ProgramParts:
    """Operands, circular buffers, settings and kernels of a program under construction.

    Operands are numbered inputs first, then outputs, in the order given."""

    names: Mapping[SSAValue, str]
    """Unique identifiers of the tensors."""
    inputs: Sequence[SSAValue]
    outputs: Sequence[SSAValue]
    buffers: CircularBuffers = field(init=False)
    tuning: Tuning = field(default_factory=Tuning)
    """Tuning knobs of the program declared so far."""
    traffic: tuple[Traffic, ...] = ()
    """Traffic of each operand, once the costs are known."""
    divisions: dict[SSAValue, Division] = field(default_factory=dict[SSAValue, Division])
    """Assignment of tiles to cores, for operands for which it is known."""

    def __post_init__(self) -> None:
        self.inputs = list(dict.fromkeys(self.inputs))
        self.buffers = CircularBuffers(self.names, self.setting)

    def setting(
        self, name: str, value: int, remark: str, *, least: int = 1, reason: str = ""
    ) -> Name:
        """Declares a tuning knob; returns its name in expressions and kernels.

        Args:
            name: an identifier.
            value: its default.
            remark: its meaning, and the effect of greater or smaller values.
            least: its minimum.
            reason: reason for the minimum.
        """
        name_of = Name(name)
        self.tuning = replace(
            self.tuning, settings=(*self.tuning.settings, Setting(name, value, remark))
        )
        self.rule(at_least(name_of, least), f"{name} is at least {least}{reason and ': '}{reason}")
        return name_of

    def derive(self, name: str, value: Size) -> Name:
        """Declares a value that follows from settings or tensors; returns its name."""
        self.tuning = replace(self.tuning, derived=(*self.tuning.derived, Derived(name, value)))
        return Name(name)

    def rule(self, condition: Size, message: str) -> None:
        """Declares a constraint between settings, with its message."""
        self.tuning = replace(self.tuning, rules=(*self.tuning.rules, Rule(condition, message)))

    def data_movement(
        self,
        name: str,
        processor: Processor,
        purpose: str,
        cores: CoreRange | CoreArea,
        *,
        tensors: Sequence[SSAValue],
        buffers: Iterable[str],
        arguments: Sequence[RuntimeArgument] = (),
        semaphores: tuple[str, ...] = (),
        constants: Mapping[str, Size] | None = None,
    ) -> MovementKernel:
        """Begins a data movement kernel, with its declarations.

        Args:
            name: the stem of its file.
            processor: the processor that it runs on.
            purpose: a sentence that describes it.
            cores: the cores that it runs on.
            tensors: the operands that it reads or writes.
            buffers: the circular buffers that it uses.
            arguments: its run-time arguments after the addresses of the tensors.
            semaphores: the semaphores that it uses.
            constants: other sizes that it uses: compile-time arguments, unless they are integers.
        """
        tensors = list(dict.fromkeys(tensors))
        operands = [*self.inputs, *self.outputs]
        accessors = tuple(operands.index(value) for value in tensors)
        names = [self.names[value] for value in tensors]
        addresses = [
            RuntimeArgument(address_name(tensor), BufferAddress(operand))
            for tensor, operand in zip(names, accessors, strict=True)
        ]
        area = CoreArea.of(cores) if isinstance(cores, CoreRange) else cores
        kernel = MovementKernel(
            name, processor, purpose, area, (*addresses, *arguments), semaphores, accessors
        )
        used = set(buffers)
        values = self.tuning.values()
        kernel.begin([b for b in self.buffers if b.name in used], names, constants, values)
        return kernel

    def compute(
        self,
        kernel: ComputeKernel,
        purpose: str,
        cores: CoreRange | CoreArea,
        buffers: Iterable[CircularBuffer],
        arguments: tuple[RuntimeArgument, ...] = (),
    ) -> tuple[Kernel, FuncOp]:
        """Returns the description of a complete compute kernel, and its function.

        Args:
            kernel: the kernel.
            purpose: a sentence that describes it.
            cores: the cores that it runs on.
            buffers: the circular buffers that it uses.
            arguments: its run-time arguments.
        """
        function, constants = kernel.finish()
        described = Kernel(
            kernel.name,
            Processor.COMPUTE,
            purpose,
            CoreArea.of(cores) if isinstance(cores, CoreRange) else cores,
            kernel.name,
            constants=(*self.buffers.constants(b.name for b in buffers), *constants),
            arguments=arguments,
        )
        return described, function

    def tile_writer(
        self,
        name: str,
        purpose: str,
        cores: CoreRange,
        buffers: Sequence[str],
        values: Sequence[SSAValue] | None = None,
        columns: int = 1,
        order: WorkOrder | None = None,
    ) -> tuple[Kernel, FuncOp]:
        """Kernel that writes tiles from one circular buffer per output.

        A unit of work is `columns` tiles in a row; in an order other than row by row it is a single
        tile. Writes all outputs by default."""
        outputs = self.outputs if values is None else values
        if order is None or order.is_row_by_row:
            self.divisions.update(dict.fromkeys(outputs, UnitTiles(columns)))
        kernel = self.data_movement(
            kernel_name("write", name),
            Processor.WRITER,
            purpose,
            cores,
            tensors=outputs,
            buffers=buffers,
            arguments=SHARE,
        )
        builder = kernel.builder
        with kernel.share("tile" if columns == 1 else "tile_row") as unit:
            if order is None or order.is_row_by_row:
                first = builder.product(unit, columns)
            else:
                first = page_of_tile(builder, order, unit)
            with builder.loop(columns, name_hint="tile_column") as column:
                tile = builder.sum(first, column)
                kernel.write_tiles(tile, [self.names[value] for value in outputs], buffers)
        return kernel.finish()

    def costs(
        self,
        reads: Mapping[SSAValue, int],
        *,
        least_reads: Mapping[SSAValue, int] | None = None,
        written: int | None = None,
        tiles_computed: int = 0,
        sent: int = 0,
        least_sent: int = 0,
        own_l1_bytes: int = 0,
    ) -> Costs:
        """Costs of a run of the program.

        Args:
            reads: bytes that cores read of each input.
            least_reads: bytes that are necessary to read; by default the whole tensors.
            written: bytes of the output, if it is not written as a whole.
            tiles_computed: tiles that the compute kernels compute.
            sent: bytes that move from the L1 of a core to that of another, or within one.
            least_sent: necessary part of these bytes.
            own_l1_bytes: part of these bytes that stay in the L1 of a core.
        """
        least = least_reads or {value: tensor_bytes(value) for value in self.inputs}
        read = {value: reads.get(value, 0) for value in self.inputs}
        inputs = [Traffic(size, min(size, least.get(v, size))) for v, size in read.items()]
        sizes = [tensor_bytes(v) if written is None else written for v in self.outputs]
        outputs = [Traffic(size, size) for size in sizes]
        self.traffic = (*inputs, *outputs)
        return Costs.of(
            inputs,
            outputs,
            tiles_computed=tiles_computed,
            sent=sent,
            least_sent=least_sent,
            own_l1_bytes=own_l1_bytes,
        )

    def program(
        self,
        name: str,
        purpose: str,
        cores: CoreRange | CoreArea,
        kernels: Sequence[tuple[Kernel, FuncOp]],
        costs: Costs,
        compute: ComputeSettings,
        *,
        work_units: int = 0,
        work_unit: str = "output tile",
        semaphores: tuple[str, ...] = (),
    ) -> Lowered:
        """Builds the program of these parts; kernels come with their functions.

        Linear work is divided among a rectangle of cores from the first one on, whose size is a
        setting."""
        described = [kernel for kernel, _ in kernels]
        for kernel, function in kernels:
            if kernel.processor is Processor.COMPUTE:
                self._limit_registers(function, compute)
        if isinstance(cores, CoreRange):
            cores = self._grid(cores) if work_units else CoreArea.of(cores)
            described = [replace(kernel, cores=cores) for kernel in described]
        program = Program(
            name,
            purpose,
            len(self.inputs),
            cores,
            tuple(self.buffers),
            tuple(described),
            costs,
            work_units,
            work_unit if work_units else "",
            semaphores,
            compute,
            self.tuning,
            traffic=self._divided_traffic(),
        )
        functions = tuple(function for _, function in kernels)
        return Lowered(program, functions, tuple(self.inputs), tuple(self.outputs))

    def _divided_traffic(self) -> tuple[Traffic, ...]:
        """Traffic of each operand, with the tiles that each core needs."""
        operands = [*self.inputs, *self.outputs]
        return tuple(
            replace(traffic, division=self.divisions.get(value, traffic.division))
            for value, traffic in zip(operands, self.traffic, strict=True)
        )

    def _limit_registers(self, function: FuncOp, compute: ComputeSettings) -> None:
        """Declares the constraint on the width of destination registers.

        A kernel that computes 32-bit integers or names their format is written for one width;
        others only need enough registers."""
        width = Name(FP32_DESTINATION)
        named = any(op.name.removeprefix("ttkernel.") in REGISTER_FORMATS for op in function.walk())
        wide = {DataType.INT32, DataType.UINT32}
        if named or any(buffer.data_type in wide for buffer in self.buffers):
            flag = "true" if compute.fp32_destination else "false"
            self.rule(
                equal(width, int(compute.fp32_destination)),
                f"the compute kernel is written for {FP32_DESTINATION} = {flag}",
            )
            return
        used = 1 + max(named_registers(function), default=0)
        if used > capacity(True):
            self.rule(
                at_most(used, select(width, capacity(True), capacity(False))),
                f"the compute kernel uses {used} destination registers: {FP32_DESTINATION} leaves "
                f"{capacity(True)}",
            )

    def _grid(self, cores: CoreRange) -> CoreArea:
        """Declares the settings for the cores of linear work."""
        remark = "of cores. The tiles of the result are divided among them."
        columns = self.setting("grid_columns", cores.columns, f"Columns {remark}")
        rows = self.setting("grid_rows", cores.rows, f"Rows {remark}")
        return CoreArea(columns - 1, rows - 1)


# Programs that are operations of TT-Lang.


def lower_operation(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """Lowers a group that calls an operation to the operation's program.

    Raises:
        CompileError: if the operation cannot be a program, does not fit onto the cores, or reads
            and writes other tensors than the call.
    """
    op = group.root
    assert op is not None
    called = called_program(op, cores, name)
    values = called_tensors(op)
    return Lowered(
        called.program,
        called.kernels,
        tuple(values[place] for place in called.inputs),
        tuple(values[place] for place in called.outputs),
    )
