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

# The circular buffers of a program: how many tiles each has room for, and what they are called.
#
# Everything that a kernel calls after a tensor is the tensor's name with an ending (`x_address`,
# `x_layout`, `x_tensor`, `x_elements`) or with the prefix `cb_`, with which no name of a tensor
# begins: so none collides with what the kernel or the device's API calls something else.

DOUBLE = 2
"""Tiles of a circular buffer, so that one is filled while the other is read."""
BUFFER_DEPTH = Name("buffer_depth")
"""The setting for the tiles of a circular buffer; `DOUBLE` by default."""
_WITHOUT_TENSOR = frozenset(
    [
        *("elements", "greatest", "inverse", "later", "left", "order", "partial", "reduced"),
        *("factor", "latest", "products", "right", "scaler", "scores", "seen", "sum", "weights"),
    ]
)
"""Circular buffers that do not hold a tensor as stored in DRAM."""


@dataclass
class CircularBuffers:
    """The circular buffers of a program under construction, in the order of their indices.

    A circular buffer is known by its name, which is the tensor's if no other one has it.
    """

    names: Mapping[SSAValue, str]
    """Names of the tensors: identifiers, all different."""
    declare: Callable[[str, int, str], Name]
    """Declares a tuning knob of the program: its name, what it is at first, a remark."""
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
        """A circular buffer that holds no tensor; gives its name."""
        assert name in _WITHOUT_TENSOR
        return self._add(name, data_type, pages)

    def add_tensor(self, value: SSAValue, pages: Size = BUFFER_DEPTH) -> str:
        """A circular buffer for tiles of a tensor; gives its name."""
        return self.add_value(value, declared_data_type(value), pages)

    def add_value(self, value: SSAValue, data_type: DataType, pages: Size) -> str:
        """A circular buffer for tiles of a value that never leaves the core; gives its name."""
        name = self.names[value]
        name = f"{name}_tiles" if name in _WITHOUT_TENSOR else name
        return self._add(self._scope.unique(name), data_type, pages)

    def add_kept(self, buffer: str, slots: int) -> str:
        """Room for tiles that are kept to go through another circular buffer; gives its name."""
        [kept] = [b for b in self._buffers if b.name == buffer]
        return self._add(self._scope.unique(f"{buffer}_kept"), kept.data_type, slots)

    def wide(self, copied: Iterable[str]) -> tuple[int, ...]:
        """Indices of the circular buffers of 32-bit elements that `copy_tile` unpacks at full
        width; operands of the matrix engine are truncated to 19 bits."""
        names = set(copied)
        found = (b for b in self._buffers if TILE_FORMATS[b.data_type.mlir].bits == 32)
        return tuple(b.index for b in found if b.name in names)

    def constants(self, names: Iterable[str]) -> tuple[NamedConstant, ...]:
        """The compile-time arguments for circular buffers of a kernel."""
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
        """Makes the setting for the depth of circular buffers when the first needs it."""
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
    """Prefixes of functions that must not follow `cb_` in the name of a circular buffer."""
    found = (name.removeprefix("cb_") for name in kernel_ops() if name.startswith("cb_"))
    return frozenset(found)


# What programs are put together from: the tensors that they work on, circular buffers, kernels.

SHARE = (RuntimeArgument("first", Place.FIRST), RuntimeArgument("count", Place.COUNT))
"""A core's share of the program's work."""
COUNT = SHARE[1:]
"""Total count, for kernels without a share."""


def tensor_bytes(value: SSAValue) -> int:
    """Bytes of a tensor's tiles."""
    return TiledShape(shape_of(value.type)).tiles * tile_bytes_of(declared_data_type(value))


def purpose_of(group: Group) -> str:
    """Purpose of the program of a group."""
    return ", ".join(op.name.partition(".")[2] for op in group.ops)


@dataclass(frozen=True)
class Lowered:
    """A program with its kernels and the values that are its operands."""

    program: Program
    kernels: tuple[FuncOp, ...]
    """The functions of its kernels."""
    inputs: tuple[SSAValue, ...]
    outputs: tuple[SSAValue, ...]


@dataclass
class ProgramParts:
    """The operands, circular buffers, settings and kernels of a program under construction.

    Operands are counted inputs first, then outputs, in the order given.
    """

    names: Mapping[SSAValue, str]
    """Names of the tensors: identifiers, all different."""
    inputs: Sequence[SSAValue]
    outputs: Sequence[SSAValue]
    buffers: CircularBuffers = field(init=False)
    tuning: Tuning = field(default_factory=Tuning)
    """The tuning knobs of the program declared so far."""
    traffic: tuple[Traffic, ...] = ()
    """Traffic of each operand, once the costs are known."""
    divisions: dict[SSAValue, Division] = field(default_factory=dict[SSAValue, Division])
    """Of operands of which it is known which core needs which tiles."""

    def __post_init__(self) -> None:
        self.inputs = list(dict.fromkeys(self.inputs))
        self.buffers = CircularBuffers(self.names, self.setting)

    def setting(
        self, name: str, value: int, remark: str, *, least: int = 1, reason: str = ""
    ) -> Name:
        """Declares a tuning knob; gives what expressions and kernels call it.

        Args:
            name: an identifier.
            value: what it is at first.
            remark: what it is, and what speaks for more or less.
            least: the smallest that it may be.
            reason: why that is so.
        """
        name_of = Name(name)
        self.tuning = replace(
            self.tuning, settings=(*self.tuning.settings, Setting(name, value, remark))
        )
        self.rule(at_least(name_of, least), f"{name} is at least {least}{reason and ': '}{reason}")
        return name_of

    def derive(self, name: str, value: Size) -> Name:
        """A value that follows from settings or tensors; gives what it is called."""
        self.tuning = replace(self.tuning, derived=(*self.tuning.derived, Derived(name, value)))
        return Name(name)

    def rule(self, condition: Size, message: str) -> None:
        """Rule between settings, and the remedy in words."""
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
        """A kernel of data movement, which has declared all that it uses.

        Args:
            name: the stem of its file.
            processor: which processor it runs on.
            purpose: a sentence on what it does.
            cores: where it runs.
            tensors: the operands that it reads or writes.
            buffers: the circular buffers that it uses.
            arguments: its run-time arguments after the addresses of the tensors.
            semaphores: those that it uses.
            constants: sizes that it knows besides circular buffers and semaphores; those that
                are no numbers are compile-time arguments.
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
        """Description of a complete compute kernel, and its function.

        Args:
            kernel: the kernel.
            purpose: a sentence on what it does.
            cores: where it runs.
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
        """The kernel that writes the tiles of outputs, of all if `values` are none, from one
        circular buffer each; a unit of work is so many tiles in a row. Units that are counted in an
        order of their own are single tiles."""
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
            least_reads: bytes that the computation could do with; by default the whole tensors.
            written: bytes of the output, if that is not written as a whole.
            tiles_computed: by the compute kernels.
            sent: bytes that go from the L1 of cores to that of others, or to another place there.
            least_sent: those of them that have to.
            own_l1_bytes: those that stay in the L1 of a core.
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
        """The program of these parts; kernels come with their functions.

        Linear work is divided among any rectangle of cores from the first one on, which is a
        setting.
        """
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
        """The rule for the width of destination registers: a kernel is written for one width if it
        computes with 32-bit integers or names their format, else for as many as it names."""
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
        """The settings for the cores of linear work."""
        remark = "of cores. The tiles of the result are divided among them."
        columns = self.setting("grid_columns", cores.columns, f"Columns {remark}")
        rows = self.setting("grid_rows", cores.rows, f"Rows {remark}")
        return CoreArea(columns - 1, rows - 1)


# Programs that are operations of TT-Lang: who knows the operation compiles it.


def lower_operation(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """The program of a group that calls an operation.

    Raises:
        CompileError: if the operation is no program, does not fit onto the cores, or reads and
            writes other tensors than the call says.
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
