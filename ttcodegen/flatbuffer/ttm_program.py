"""The contents of a `.ttm` file as Python values: one class per table of `ttm.fbs`.

Functions and constants are those of `ttcodegen.flatbuffer.program`; what a file says as a program
in the compiler does has the classes of `ttcodegen.dialects.ttmetal.programs`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ttcodegen.dialects.ttcore.cores import CoreRange
from ttcodegen.dialects.ttmetal.programs import Costs
from ttcodegen.flatbuffer import program

MAJOR = 2
MINOR = 3
VERSION = (MAJOR, MINOR)
"""The version of the files that are written and read."""

CREATE_BUFFER = "ttmetal.create_buffer"
DEALLOCATE_BUFFER = "ttmetal.deallocate_buffer"
RUN_PROGRAM = "ttmetal.run_program"
ENQUEUE_READ_BUFFER = "ttmetal.enqueue_read_buffer"
ENQUEUE_WRITE_BUFFER = "ttmetal.enqueue_write_buffer"
VIEW = "ttmetal.view"
PROGRAM = "program"
"""The attribute of a `run_program` with the index of what it runs."""
LINK_BYTES = "link_bytes"
LINK_HOPS = "link_hops"
"""Attributes of a call that the chips of a mesh do themselves: the bytes that the busiest link
carries in one direction, and the most links that one of them passes."""


@dataclass(frozen=True, slots=True)
class CircularBuffer:
    """A queue of pages in the L1 of each core."""

    index: int
    name: str
    data_type: str
    pages: int
    page_size: int
    shards: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NamedConstant:
    """A named compile-time argument, or a setting."""

    name: str
    value: int


@dataclass(frozen=True, slots=True)
class Semaphore:
    """A semaphore of a program."""

    name: str
    initial: int = 0


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A number, or what the host knows of a core."""

    place: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class RuntimeArgument:
    """A run-time argument."""

    name: str
    kind: str
    coordinates: tuple[Coordinate, ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel with its C++."""

    name: str
    processor: str
    purpose: str
    cores: CoreRange
    source: str
    constants: tuple[NamedConstant, ...] = ()
    semaphores: tuple[int, ...] = ()
    accessors: tuple[int, ...] = ()
    arguments: tuple[RuntimeArgument, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceProgram:
    """A program of the device."""

    name: str
    purpose: str
    inputs: int
    outputs: int
    cores: CoreRange
    circular_buffers: tuple[CircularBuffer, ...]
    semaphores: tuple[Semaphore, ...]
    kernels: tuple[Kernel, ...]
    work_units: int
    work_unit: str | None
    fidelity: str
    fp32_destination: bool
    unpack_to_fp32: tuple[int, ...]
    costs: Costs
    meaning: str
    settings: tuple[NamedConstant, ...] = ()
    approximate: bool = False


@dataclass(frozen=True, slots=True)
class DeviceBinary:
    """A whole file."""

    major: int
    minor: int
    tool_version: str
    input_hash: str
    arch: str
    release: str
    functions: tuple[program.Program, ...] = ()
    programs: tuple[DeviceProgram, ...] = ()
    constants: tuple[program.Constant, ...] = ()
    system: bytes | memoryview = b""

    def function(self, name: str) -> program.Program:
        """Raises KeyError if the file has no function of that name."""
        for function in self.functions:
            if function.name == name:
                return function
        raise KeyError(name)


RECORDS: tuple[type, ...] = (
    *(record for record in program.RECORDS if record is not program.Binary),
    CoreRange,
    CircularBuffer,
    NamedConstant,
    Semaphore,
    Coordinate,
    RuntimeArgument,
    Kernel,
    Costs,
    DeviceProgram,
    DeviceBinary,
)
"""The classes of the tables of the schema, whose names they have."""
