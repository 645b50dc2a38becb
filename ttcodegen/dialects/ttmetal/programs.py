"""Device programs: circular buffers, semaphores, kernels and their arguments.

`ttmetal.run_program` has one as its attribute `program`, `#ttmetal.program<...>`, with the fields
of the classes below (`core.attribute_syntax`). Operands of the op are indexed inputs first, then
outputs.
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
"""Number of circular buffers of a core (tt-metal, circular_buffer_constants.h)."""
OWN_MEMORY = -1
"""Operand of a circular buffer that is not aliased to a tensor."""
BUFFER_CONSTANT = "cb_"
"""Prefix of named compile-time arguments that are circular buffer indices."""


class Processor(StrEnum):
    """Processor of a core that runs a kernel.

    In tt-metal the data movement processors are RISCV_1, which reads by NoC 0, and RISCV_0, which
    writes by NoC 1; the compute processors unpack, math and pack run one kernel together.
    """

    READER = "reader"
    WRITER = "writer"
    COMPUTE = "compute"


@dataclass(frozen=True)
class CoreArea:
    """A rectangle of cores, first and last inclusive, possibly depending on settings."""

    last_column: Size
    last_row: Size
    first_column: Size = 0
    first_row: Size = 0

    @classmethod
    def of(cls, cores: CoreRange) -> CoreArea:
        """Returns an area that does not depend on settings."""
        return cls(cores.last_column, cores.last_row, cores.first_column, cores.first_row)

    def range(self, values: Mapping[str, int]) -> CoreRange:
        """Returns the cores for these values of the settings."""
        sizes = (self.first_column, self.first_row, self.last_column, self.last_row)
        return CoreRange(*(evaluate(size, values) for size in sizes))


@dataclass(frozen=True)
class CircularBuffer:
    """A queue of pages in the L1 of each core of the program."""

    index: int
    name: str
    """Name of the contents, as an identifier."""
    data_type: DataType
    pages: Size
    """Number of pages; 0 if the settings make the buffer unnecessary."""
    page_size: int
    """Bytes of a page: a tile, unless it is a buffer of data movement kernels."""
    operand: int = OWN_MEMORY
    """Operand of the program whose shards are the pages."""

    @property
    def is_alias(self) -> bool:
        """Returns whether it uses the memory of a tensor."""
        return self.operand != OWN_MEMORY

    @property
    def constant(self) -> str:
        """Returns the name of the index in C++ of host and kernels."""
        return f"cb_{self.name}"

    @property
    def page_type(self) -> Attribute:
        """Returns the page type in kernels: a tile, or elements for other page sizes."""
        tile = TileType(self.data_type)
        return tile if self.page_size == tile.size else self.data_type.element_type


@dataclass(frozen=True)
class NamedConstant:
    """A named compile-time argument."""

    name: str
    value: Size


class Place(StrEnum):
    """Per-core values that the host passes as run-time arguments."""

    FIRST = "first"
    """First unit of the core's share of linear work."""
    COUNT = "count"
    """Number of units of the share."""
    COLUMN = "column"
    ROW = "row"
    LAST_COLUMN = "last_column"
    """Last column of the program's cores."""
    LAST_ROW = "last_row"


@dataclass(frozen=True)
class BufferAddress:
    """Address of the buffer of an operand."""

    mnemonic: ClassVar[str] = "address"
    operand: int


@dataclass(frozen=True)
class NocX:
    """NoC coordinate x of a worker core, given by column and row."""

    mnemonic: ClassVar[str] = "noc_x"
    column: int | Place
    row: int | Place


@dataclass(frozen=True)
class NocY:
    """NoC coordinate y of a worker core, given by column and row."""

    mnemonic: ClassVar[str] = "noc_y"
    column: int | Place
    row: int | Place


RuntimeValue = int | Place | BufferAddress | NocX | NocY
"""Value of a run-time argument."""


@dataclass(frozen=True)
class RuntimeArgument:
    """A run-time argument; its index is its position."""

    name: str
    value: RuntimeValue


@dataclass(frozen=True)
class Kernel:
    """A kernel and the cores that it runs on."""

    name: str
    """Stem of its file."""
    processor: Processor
    purpose: str
    """Sentence for the head of the file."""
    cores: CoreArea
    function: str
    """Symbol of its function, of `ttkernel` ops."""
    constants: tuple[NamedConstant, ...] = ()
    semaphores: tuple[str, ...] = ()
    """Semaphores that it uses, with their ids as named constants `<name>_semaphore`."""
    accessors: tuple[int, ...] = ()
    """Operands whose tensor accessor arguments are its positional compile-time arguments, in
    order."""
    arguments: tuple[RuntimeArgument, ...] = ()


@dataclass(frozen=True)
class ComputeSettings:
    """Compute settings of the kernels of a program."""

    fidelity: MathFidelity = MathFidelity.HIFI4
    fp32_destination: bool = False
    unpack_to_fp32: tuple[int, ...] = ()
    """Circular buffers whose 32-bit values reach the destination registers at full precision."""
    approximate: bool = False
    """True if functions of the vector engine may be approximated."""


@dataclass(frozen=True)
class AnyTiles:
    """Division in which a core may need any tiles of an operand."""

    mnemonic: ClassVar[str] = "any"


@dataclass(frozen=True)
class UnitTiles:
    """Division into consecutive tiles of an operand per unit of linear work."""

    mnemonic: ClassVar[str] = "units"
    tiles: int


@dataclass(frozen=True)
class BlockTiles:
    """Division into blocks of tile rows and columns, one per core, in the order of the grid."""

    mnemonic: ClassVar[str] = "blocks"
    rows: Size
    columns: Size


Division = AnyTiles | UnitTiles | BlockTiles
"""Division of an operand's tiles over cores."""


@dataclass(frozen=True)
class Traffic:
    """Bytes that a run of the program reads from or writes to an operand, in any memory."""

    bytes: int
    least: int
    """Minimum traffic of the computation."""
    division: Division = AnyTiles()
    streamed: bool = False
    """True if it has to pass through its own circular buffer in any memory."""


@dataclass(frozen=True)
class Costs:
    """Costs of a run of the program, and the minimum that its computation needs.

    A multicast counts as one transfer over the NoC.
    """

    tiles_computed: int = 0
    noc_bytes: int = 0
    dram_read_bytes: int = 0
    dram_write_bytes: int = 0
    least_dram_read_bytes: int = 0
    least_dram_write_bytes: int = 0
    least_noc_bytes: int = 0
    own_l1_bytes: int = 0
    """Part of `noc_bytes` that stays in one core's L1: of sharded tensors, and of kept tiles."""

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
        """Returns the costs of a program whose operands are in DRAM, so that all traffic uses the
        NoC.

        `sent` are further bytes between L1 memories, some possibly within a core.
        """
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
    """Identifier, unique in the module."""
    purpose: str
    """Purpose of the program, in a line."""
    inputs: int
    """Number of operands that are read; the others are written."""
    cores: CoreArea
    circular_buffers: tuple[CircularBuffer, ...]
    kernels: tuple[Kernel, ...]
    costs: Costs = Costs()
    work_units: int = 0
    """Units of linear work, divided evenly among the cores, row by row, the first cores getting one
    more.

    0 if each core derives its part from its column and row.
    """
    work_unit: str = ""
    """Noun for a unit: "output tile"."""
    semaphores: tuple[str, ...] = ()
    """Semaphores, on all cores of the program."""
    compute: ComputeSettings = field(default_factory=ComputeSettings)
    tuning: Tuning = field(default_factory=Tuning)
    semaphore_values: tuple[int, ...] = ()
    """Initial values of the semaphores, in order; empty if all are 0."""
    traffic: tuple[Traffic, ...] = ()
    """Traffic by operand; empty if unknown."""

    @property
    def title(self) -> str:
        """Returns a sentence on the computation, with the name unless it follows from the
        purpose."""
        words = self.purpose.replace(", ", "_")
        if self.name == words or self.name.rstrip("0123456789") == f"{words}_":
            return f"Computes {self.purpose}."
        return f"{self.name}: {self.purpose}."

    @property
    def work_unit_plural(self) -> str:
        """Returns the plural of the work unit: "output tiles", "rows of output tiles"."""
        noun, of, rest = self.work_unit.partition(" of ")
        return f"{noun}s{of}{rest}" if noun else ""

    @cached_property
    def values(self) -> Mapping[str, int]:
        """Values of settings and derived expressions, by name."""
        return self.tuning.values({FP32_DESTINATION: int(self.compute.fp32_destination)})

    def initial_value(self, semaphore: str) -> int:
        """Returns the initial value of a semaphore on each core."""
        if not self.semaphore_values:
            return 0
        return self.semaphore_values[self.semaphores.index(semaphore)]

    def value(self, size: Size) -> int:
        """Evaluates a size."""
        return evaluate(size, self.values)

    @property
    def core_range(self) -> CoreRange:
        """Cores that the program runs on."""
        return self.cores.range(self.values)

    def cores_of(self, kernel: Kernel) -> CoreRange:
        """Returns the cores that a kernel runs on."""
        return kernel.cores.range(self.values)

    def settled(self) -> Program:
        """Returns the program with all sizes evaluated, without settings."""
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
        """Returns the program with these operands in L1 instead of DRAM.

        Their traffic still uses the NoC, but not DRAM; `own_bytes` of it are in the L1 of the cores
        that access them.
        """
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
        """Returns whether there is a compute kernel."""
        return any(kernel.processor is Processor.COMPUTE for kernel in self.kernels)

    def buffers_of(self, kernel: Kernel) -> dict[str, CircularBuffer]:
        """Returns the circular buffers of a kernel, by the named compile-time arguments of their
        indices.

        Kernels shared by several programs have other names for them than the programs.
        """
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
        """Returns the circular buffers with pages."""
        return tuple(buffer for buffer in self.circular_buffers if self.value(buffer.pages))

    @property
    def l1_bytes(self) -> int:
        """Returns the bytes of each core's L1 that the circular buffers take."""
        own = (buffer for buffer in self.circular_buffers if not buffer.is_alias)
        return sum(self.value(buffer.pages) * buffer.page_size for buffer in own)


FP32_DESTINATION = "fp32_dest_acc_en"
"""Name in expressions of 1 for 32-bit destination registers, else 0."""
L1_BYTES, MATH_FIDELITY, MATH_APPROX_MODE = "l1_bytes", "math_fidelity", "math_approx_mode"
"""Constants of each program in src/tuning.hpp besides its settings."""


# Names of ops in host functions of device programs, and of ops that read kernel arguments.
#
# Here, since importing the dialect takes longer than compiling a small model.

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
