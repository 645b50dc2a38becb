"""Device programs: circular buffers, semaphores, kernels and their arguments.

`ttmetal.run_program` carries one of these as its attribute `program`, `#ttmetal.program<...>`. Its
text has the fields of the classes below (`dialects.records`). Operands of the op are counted inputs
first, then outputs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import ClassVar

from xdsl.ir import Attribute

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import MathFidelity
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttcore.tile import TileType
from ttcodegen.dialects.ttmetal.tuning import Size, Tuning, evaluate

CIRCULAR_BUFFERS = 32
"""Circular buffers of a core (tt-metal, circular_buffer_constants.h)."""
OWN_MEMORY = -1
"""The operand of a circular buffer that is in no tensor."""
BUFFER_CONSTANT = "cb_"
"""Prefix of named compile-time arguments that are circular buffer indices."""


class Processor(StrEnum):
    """Processor of a core that runs a kernel.

    tt-metal calls the data-movement processors RISCV_1, which reads by NoC 0, and RISCV_0,
    which writes by NoC 1; the compute processors unpack, math and pack run one kernel together.
    """

    READER = "reader"
    WRITER = "writer"
    COMPUTE = "compute"


@dataclass(frozen=True)
class CoreArea:
    """A rectangle of cores, first and last included, perhaps as settings of the program say."""

    last_column: Size
    last_row: Size
    first_column: Size = 0
    first_row: Size = 0

    @classmethod
    def of(cls, cores: CoreRange) -> CoreArea:
        """The rectangle that no setting changes."""
        return cls(cores.last_column, cores.last_row, cores.first_column, cores.first_row)

    def range(self, values: Mapping[str, int]) -> CoreRange:
        """The cores, where the settings have these values."""
        sizes = (self.first_column, self.first_row, self.last_column, self.last_row)
        return CoreRange(*(evaluate(size, values) for size in sizes))


@dataclass(frozen=True)
class CircularBuffer:
    """A queue of pages in the L1 of each core of the program."""

    index: int
    name: str
    """Name of the pages' contents, as an identifier."""
    data_type: DataType
    pages: Size
    """None if the settings are such that the buffer is not needed."""
    page_size: int
    """Bytes; a tile unless it is room for data-movement kernels."""
    operand: int = OWN_MEMORY
    """The operand of the program whose shards are the pages."""

    @property
    def is_alias(self) -> bool:
        """True if it takes no memory besides that of a tensor."""
        return self.operand != OWN_MEMORY

    @property
    def constant(self) -> str:
        """Name of the index in the C++ of the host and of the kernels."""
        return f"cb_{self.name}"

    @property
    def page_type(self) -> Attribute:
        """Page type in kernels: a tile, or elements where it has another size."""
        tile = TileType(self.data_type)
        return tile if self.page_size == tile.size else self.data_type.element_type


@dataclass(frozen=True)
class NamedConstant:
    """A named compile-time argument."""

    name: str
    value: Size


class Place(StrEnum):
    """Per-core fact of the host that is passed as a run-time argument."""

    FIRST = "first"
    """The first unit of the core's share of the program's linear work."""
    COUNT = "count"
    """Number of units of the share."""
    COLUMN = "column"
    ROW = "row"
    LAST_COLUMN = "last_column"
    """Of the program's cores."""
    LAST_ROW = "last_row"


@dataclass(frozen=True)
class BufferAddress:
    """The placement of the buffer of an operand."""

    mnemonic: ClassVar[str] = "address"
    operand: int


@dataclass(frozen=True)
class NocX:
    """The NoC coordinate x of the worker core in a column and a row."""

    mnemonic: ClassVar[str] = "noc_x"
    column: int | Place
    row: int | Place


@dataclass(frozen=True)
class NocY:
    """The NoC coordinate y of the worker core in a column and a row."""

    mnemonic: ClassVar[str] = "noc_y"
    column: int | Place
    row: int | Place


RuntimeValue = int | Place | BufferAddress | NocX | NocY
"""Run-time argument that the host passes to a core."""


@dataclass(frozen=True)
class RuntimeArgument:
    """A run-time argument, in the order of its index."""

    name: str
    value: RuntimeValue


@dataclass(frozen=True)
class Kernel:
    """A kernel and the cores it runs on."""

    name: str
    """Stem of its file."""
    processor: Processor
    purpose: str
    """A sentence for the head of the file."""
    cores: CoreArea
    function: str
    """The symbol of its function, of `ttkernel` ops."""
    constants: tuple[NamedConstant, ...] = ()
    semaphores: tuple[str, ...] = ()
    """The semaphores that it uses; it knows their ids as the named constants `<name>_semaphore`."""
    accessors: tuple[int, ...] = ()
    """The operands whose tensor accessors' arguments are its positional compile-time arguments, one
    after the other."""
    arguments: tuple[RuntimeArgument, ...] = ()


@dataclass(frozen=True)
class ComputeSettings:
    """Compute settings of the kernels of a program."""

    fidelity: MathFidelity = MathFidelity.HIFI4
    fp32_destination: bool = False
    unpack_to_fp32: tuple[int, ...] = ()
    """Circular buffers whose 32-bit values reach the destination registers unshortened."""
    approximate: bool = False
    """True if the functions of the vector engine may be computed with fewer digits."""


@dataclass(frozen=True)
class AnyTiles:
    """Cores need tiles of an operand wherever they are in it."""

    mnemonic: ClassVar[str] = "any"


@dataclass(frozen=True)
class UnitTiles:
    """So many tiles of an operand, one after the other, belong to each unit of linear work."""

    mnemonic: ClassVar[str] = "units"
    tiles: int


@dataclass(frozen=True)
class BlockTiles:
    """A block of the rows and columns of an operand's tiles belongs to each core: the first to that
    in the first column and row."""

    mnemonic: ClassVar[str] = "blocks"
    rows: Size
    columns: Size


Division = AnyTiles | UnitTiles | BlockTiles
"""Division of an operand's tiles over cores."""


@dataclass(frozen=True)
class Traffic:
    """Traffic of a run of the program: reads of an operand or writes to it, in any memory."""

    bytes: int
    least: int
    """Minimum traffic of the computation."""
    division: Division = AnyTiles()
    streamed: bool = False
    """True if it is to come through a circular buffer of its own, wherever it is."""


@dataclass(frozen=True)
class Costs:
    """Costs of a run of the program, and the minimum that its computation needs.

    What one core sends to several at once goes over the NoC once.
    """

    tiles_computed: int = 0
    noc_bytes: int = 0
    dram_read_bytes: int = 0
    dram_write_bytes: int = 0
    least_dram_read_bytes: int = 0
    least_dram_write_bytes: int = 0
    least_noc_bytes: int = 0
    own_l1_bytes: int = 0
    """Of `noc_bytes`, what stays in the L1 of one core: of tensors in shards, and of kept tiles."""

    @classmethod
    def of(
        cls,
        inputs: Iterable[Traffic],
        outputs: Iterable[Traffic],
        *,
        tiles_computed: int = 0,
        sent: int = 0,
        least_sent: int = 0,
        own_l1_bytes: int = 0,
    ) -> Costs:
        """Those of a program whose operands are in DRAM, so that all of it goes over the NoC, and
        that sends other bytes between L1 memories, some within that of one core."""
        inputs, outputs = list(inputs), list(outputs)
        read, least_read = sum(t.bytes for t in inputs), sum(t.least for t in inputs)
        written, least_written = sum(t.bytes for t in outputs), sum(t.least for t in outputs)
        return cls(
            tiles_computed=tiles_computed,
            noc_bytes=read + sent + written,
            dram_read_bytes=read,
            dram_write_bytes=written,
            least_dram_read_bytes=least_read,
            least_dram_write_bytes=least_written,
            least_noc_bytes=least_read + least_sent + least_written,
            own_l1_bytes=own_l1_bytes,
        )


@dataclass(frozen=True)
class Program:
    """A device program."""

    name: str
    """An identifier, unique in the module."""
    purpose: str
    """Purpose of the program, in a line."""
    inputs: int
    """Number of operands that are read; the others are written."""
    cores: CoreArea
    circular_buffers: tuple[CircularBuffer, ...]
    kernels: tuple[Kernel, ...]
    costs: Costs = Costs()
    work_units: int = 0
    """Of linear work: the units that are divided among the cores, row by row of the core range, as
    evenly as whole units allow, the first cores getting one more. 0 if each core finds its part
    from its column and row."""
    work_unit: str = ""
    """Work unit: "output tile"."""
    semaphores: tuple[str, ...] = ()
    """They are on all cores of the program."""
    compute: ComputeSettings = field(default_factory=ComputeSettings)
    tuning: Tuning = field(default_factory=Tuning)
    semaphore_values: tuple[int, ...] = ()
    """Initial values of the semaphores, in order; empty if all are 0."""
    traffic: tuple[Traffic, ...] = ()
    """By operand; empty if it is not known."""

    @property
    def title(self) -> str:
        """Title of the computation, after the name if that does not imply it."""
        words = self.purpose.replace(", ", "_")
        if self.name == words or self.name.rstrip("0123456789") == f"{words}_":
            return f"Computes {self.purpose}."
        return f"{self.name}: {self.purpose}."

    @property
    def work_unit_plural(self) -> str:
        """Plural of the work unit: "output tiles", "rows of output tiles"."""
        noun, of, rest = self.work_unit.partition(" of ")
        return f"{noun}s{of}{rest}" if noun else ""

    @cached_property
    def values(self) -> Mapping[str, int]:
        """Values of the settings, and of derived expressions, by name."""
        return self.tuning.values({FP32_DESTINATION: int(self.compute.fp32_destination)})

    def initial_value(self, semaphore: str) -> int:
        """Initial value of a semaphore on each core."""
        if not self.semaphore_values:
            return 0
        return self.semaphore_values[self.semaphores.index(semaphore)]

    def value(self, size: Size) -> int:
        """The number that a size is."""
        return evaluate(size, self.values)

    @property
    def core_range(self) -> CoreRange:
        """The cores that it runs on."""
        return self.cores.range(self.values)

    def cores_of(self, kernel: Kernel) -> CoreRange:
        """The cores that a kernel runs on."""
        return kernel.cores.range(self.values)

    def settled(self) -> Program:
        """The program with numbers for all sizes, so that nothing of it is to be tuned."""
        return replace(
            self,
            cores=CoreArea.of(self.core_range),
            circular_buffers=tuple(
                replace(buffer, pages=self.value(buffer.pages)) for buffer in self.used_buffers
            ),
            kernels=tuple(
                replace(
                    kernel,
                    cores=CoreArea.of(self.cores_of(kernel)),
                    constants=tuple(
                        replace(constant, value=self.value(constant.value))
                        for constant in kernel.constants
                    ),
                )
                for kernel in self.kernels
            ),
            tuning=Tuning(),
        )

    def with_operands_in_l1(self, operands: Collection[int], own_bytes: int = 0) -> Program:
        """The program if these of its operands, so far in DRAM, are in L1: what it reads of them
        and writes to them comes over the NoC, as before, and takes nothing of DRAM. So many bytes
        of it are in the memory of the cores that read or write them."""
        if not operands or not self.traffic:
            return self
        inputs = [self.traffic[place] for place in operands if place < self.inputs]
        outputs = [self.traffic[place] for place in operands if place >= self.inputs]
        costs = self.costs
        return replace(
            self,
            costs=replace(
                costs,
                own_l1_bytes=costs.own_l1_bytes + own_bytes,
                dram_read_bytes=costs.dram_read_bytes - sum(t.bytes for t in inputs),
                dram_write_bytes=costs.dram_write_bytes - sum(t.bytes for t in outputs),
                least_dram_read_bytes=costs.least_dram_read_bytes - sum(t.least for t in inputs),
                least_dram_write_bytes=costs.least_dram_write_bytes - sum(t.least for t in outputs),
            ),
        )

    @property
    def has_compute(self) -> bool:
        """True if there is a compute kernel."""
        return any(kernel.processor is Processor.COMPUTE for kernel in self.kernels)

    def buffers_of(self, kernel: Kernel) -> dict[str, CircularBuffer]:
        """The circular buffers that a kernel uses, by the named compile-time arguments that are
        their indices; a kernel that several programs share calls them otherwise than these do."""
        buffers = {buffer.index: buffer for buffer in self.circular_buffers}
        return {
            constant.name: buffers[constant.value]
            for constant in kernel.constants
            if constant.name.startswith(BUFFER_CONSTANT)
            and isinstance(constant.value, int)
            and constant.value in buffers
        }

    @property
    def used_buffers(self) -> tuple[CircularBuffer, ...]:
        """The circular buffers that have pages."""
        return tuple(buffer for buffer in self.circular_buffers if self.value(buffer.pages))

    @property
    def l1_bytes(self) -> int:
        """Bytes of each core's L1 that the circular buffers take."""
        own = (buffer for buffer in self.circular_buffers if not buffer.is_alias)
        return sum(self.value(buffer.pages) * buffer.page_size for buffer in own)


FP32_DESTINATION = "fp32_dest_acc_en"
"""Name in expressions of the number that is 1 with 32-bit destination registers, else 0."""
L1_BYTES, MATH_FIDELITY, MATH_APPROX_MODE = "l1_bytes", "math_fidelity", "math_approx_mode"
"""Constants of each program in src/tuning.hpp besides its settings."""


# Names of the ops of host functions that run device programs, and of those that kernels
# get their arguments with.
#
# Apart from the dialect, which takes longer to import than a small model to compile.

CONSTANT = "ttir.constant"
CREATE_BUFFER = "ttmetal.create_buffer"
DEALLOCATE_BUFFER = "ttmetal.deallocate_buffer"
RUN_PROGRAM = "ttmetal.run_program"
ENQUEUE_READ_BUFFER = "ttmetal.enqueue_read_buffer"
ENQUEUE_WRITE_BUFFER = "ttmetal.enqueue_write_buffer"
VIEW = "ttmetal.view"
NAMED_ARGUMENT = "ttkernel.get_named_compile_time_arg_val"
RUN_TIME_ARGUMENT = "ttkernel.get_arg_val"
ACCESSOR_ARGUMENTS = "ttkernel.TensorAccessorArgs"
