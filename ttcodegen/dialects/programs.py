"""What a program of a device is made of: circular buffers, semaphores, kernels and their arguments.

`ttmetal.run_program` carries one of these as its attribute `program`, `#ttmetal.program<...>`. Its
text has the fields of the classes below (`dialects.records`). Operands of the op are counted inputs
first, then outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.cores import CoreRange
from ttcodegen.dialects.datatypes import DataType
from ttcodegen.dialects.math_fidelity import MathFidelity
from ttcodegen.dialects.records import parse_record, print_record

CIRCULAR_BUFFERS = 32
"""Circular buffers of a core (tt-metal 0.70.1, circular_buffer_constants.h)."""


class Processor(StrEnum):
    """Which of a core's processors a kernel runs on.

    tt-metal (0.70.1) calls the data-movement processors RISCV_1, which reads by NoC 0, and RISCV_0,
    which writes by NoC 1; the compute processors unpack, math and pack run one kernel together.
    """

    READER = "reader"
    WRITER = "writer"
    COMPUTE = "compute"


@dataclass(frozen=True)
class CircularBuffer:
    """A queue of pages in the L1 of each core of the program."""

    index: int
    name: str
    """What the pages hold, as an identifier; kernels know the index as `cb_<name>`."""
    data_type: DataType
    pages: int
    page_size: int
    """Bytes; a tile unless it is room for data-movement kernels."""

    @property
    def size(self) -> int:
        """Bytes of L1."""
        return self.pages * self.page_size


@dataclass(frozen=True)
class NamedConstant:
    """A named compile-time argument."""

    name: str
    value: int


class Place(StrEnum):
    """What the host knows of the core that it passes a run-time argument to."""

    FIRST = "first"
    """The first unit of the core's share of the program's linear work."""
    COUNT = "count"
    """How many units the share has."""
    COLUMN = "column"
    ROW = "row"
    LAST_COLUMN = "last_column"
    """Of the program's cores."""
    LAST_ROW = "last_row"


@dataclass(frozen=True)
class BufferAddress:
    """Where the buffer of an operand lies."""

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
"""What the host passes to a core."""


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
    cores: CoreRange
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
    """How the compute kernels of a program calculate."""

    fidelity: MathFidelity = MathFidelity.HIFI4
    fp32_destination: bool = False
    unpack_to_fp32: tuple[int, ...] = ()
    """Circular buffers whose 32-bit values reach the destination registers unshortened."""


@dataclass(frozen=True)
class Costs:
    """What a run of the program takes, and the least that its computation could do with.

    What one core sends to several at once goes over the NoC once.
    """

    tiles_computed: int = 0
    noc_bytes: int = 0
    dram_read_bytes: int = 0
    dram_write_bytes: int = 0
    least_dram_read_bytes: int = 0
    least_dram_write_bytes: int = 0
    least_noc_bytes: int = 0


@dataclass(frozen=True)
class Program:
    """A program of the device."""

    name: str
    """An identifier, unique in the module."""
    purpose: str
    """What it computes, in a line."""
    inputs: int
    """How many of the operands are read; the others are written."""
    cores: CoreRange
    circular_buffers: tuple[CircularBuffer, ...]
    kernels: tuple[Kernel, ...]
    costs: Costs = Costs()
    work_units: int = 0
    """Of linear work: the units that are divided among the cores, row by row of the core range, as
    evenly as whole units allow, the first cores getting one more. 0 if each core finds its part
    from its column and row."""
    work_unit: str = ""
    """What a unit is: "output tile"."""
    semaphores: tuple[str, ...] = ()
    """Each starts as 0 on all cores of the program."""
    compute: ComputeSettings = field(default_factory=ComputeSettings)


@irdl_attr_definition
class ProgramAttr(Data[Program]):
    """`#ttmetal.program<name = "exp", ...>`."""

    name = "ttmetal.program"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Program:
        return parse_record(parser, Program)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(print_record(self.data))

    def verify(self) -> None:
        for fault in _faults(self.data):
            raise VerifyException(f"the program '{self.data.name}' {fault}")


def _faults(program: Program) -> Iterator[str]:
    """What is wrong with a program, whatever it is run on."""
    yield from _duplicates("circular buffers", [b.name for b in program.circular_buffers])
    yield from _duplicates("kernels", [kernel.name for kernel in program.kernels])
    yield from _duplicates("semaphores", list(program.semaphores))
    indices = [buffer.index for buffer in program.circular_buffers]
    yield from _duplicates("circular buffers with index", [str(index) for index in indices])
    for buffer in program.circular_buffers:
        if not 0 <= buffer.index < CIRCULAR_BUFFERS:
            yield (
                f"has a circular buffer {buffer.index}, but a core has {CIRCULAR_BUFFERS}, "
                "counted from 0"
            )
        if buffer.pages < 1 or buffer.page_size < 1:
            yield f"has a circular buffer '{buffer.name}' without room for a page"
    for index in program.compute.unpack_to_fp32:
        if index not in indices:
            yield f"unpacks the circular buffer {index}, which it does not have"
    for kernel in program.kernels:
        yield from _kernel_faults(kernel, program)


def _kernel_faults(kernel: Kernel, program: Program) -> Iterator[str]:
    what = f"has a kernel '{kernel.name}' that"
    for name in kernel.semaphores:
        if name not in program.semaphores:
            yield f"{what} uses the semaphore '{name}', which the program does not have"
    yield from _duplicates(f"constants of '{kernel.name}'", [c.name for c in kernel.constants])
    inner, outer = kernel.cores, program.cores
    inside = (
        outer.first_column <= inner.first_column <= inner.last_column <= outer.last_column
        and outer.first_row <= inner.first_row <= inner.last_row <= outer.last_row
    )
    if not inside:
        yield f"{what} runs outside the cores of the program"
    shares = any(a.value in (Place.FIRST, Place.COUNT) for a in kernel.arguments)
    if shares and not program.work_units:
        yield f"{what} takes a share of the work, but the program has no work_units"


def _duplicates(what: str, names: list[str]) -> Iterator[str]:
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"has two {what} '{name}'"
