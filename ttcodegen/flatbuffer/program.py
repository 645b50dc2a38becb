"""Contents of `.ttnn` and `.ttm` files as Python values: one class per table."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations import compute_config
from ttcodegen.dialects.operations.compute_config import MathFidelity
from ttcodegen.dialects.ttcore import shards as placed
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttmetal.programs import Costs
from ttcodegen.dialects.ttnn import program_configs
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.ops.core.definition import Layout

# The contents of a `.ttnn` file as Python values: one class per table of `ttnn.fbs`.
#
# Enumerators are their names, vectors are tuples, an absent string or union is None.

MAJOR = 1
MINOR = 4
VERSION = (MAJOR, MINOR)
WHILE_LOOP = "ttcore.while_loop"
"""The op that calls a program again and again, while the first tensor that it takes, and then the
first result of the program, is not zero; or as often as its trip count says."""
TRIP_COUNT = "trip_count"
"""The attribute of such an op that says how often it calls the program."""
"""The version of the files that are written and read."""


def _bits(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}d", *values)


@dataclass(frozen=True, slots=True)
class Shards:
    """Sharding of the 2D view of a tensor over cores."""

    height: int
    width: int
    core_ranges: tuple[CoreRange, ...]
    orientation: str

    @staticmethod
    def of(shards: placed.Shards) -> Shards:
        """The record of shards that were decided on."""
        return Shards(*shards.shape, shards.core_ranges, shards.orientation.value)

    @property
    def shards(self) -> placed.Shards:
        """The value of the record."""
        return placed.Shards(
            (self.height, self.width),
            self.core_ranges,
            placed.Orientation(self.orientation),
        )


@dataclass(frozen=True, slots=True)
class TensorType:
    """Logical shape, data type and place of a tensor."""

    shape: tuple[int, ...]
    data_type: str
    layout: str
    buffer_type: str
    memory_layout: str
    shards: Shards | None = None

    @staticmethod
    def of(placement: TensorPlacement) -> TensorType:
        """The type of tensors with this placement."""
        return TensorType(
            tuple(placement.shape),
            placement.data_type.mlir,
            placement.layout.value,
            placement.buffer_type,
            placement.memory_layout or "none",
            None if placement.shards is None else Shards.of(placement.shards),
        )

    @property
    def placement(self) -> TensorPlacement:
        """The placement of tensors of this type."""
        memory_layout = None if self.memory_layout == "none" else self.memory_layout
        data_type = DataType.from_mlir(self.data_type)
        shards = None if self.shards is None else self.shards.shards
        return TensorPlacement(
            self.shape, data_type, Layout(self.layout), self.buffer_type, memory_layout, shards
        )


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value of a program."""

    type: TensorType
    name: str | None = None
    """Name as in the C++; no two of a program share a name."""
    source_name: str | None = None
    """Name in the lowered module, after the source."""


@dataclass(frozen=True, slots=True)
class Integer:
    """An attribute that is a 64-bit integer."""

    value: int


@dataclass(frozen=True, slots=True, eq=False)
class Float:
    """An attribute that is a float; equal to another one if the bits are, so that -0.0 stays."""

    value: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Float) and _bits(self.value) == _bits(other.value)

    def __hash__(self) -> int:
        return hash(_bits(self.value))


@dataclass(frozen=True, slots=True)
class Boolean:
    """An attribute that is a boolean."""

    value: bool


@dataclass(frozen=True, slots=True)
class String:
    """An attribute that is a string."""

    value: str


@dataclass(frozen=True, slots=True)
class Integers:
    """An attribute that is a list of 64-bit integers."""

    values: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Floats:
    """An attribute that is a list of floats; equal to another one if the bits are."""

    values: tuple[float, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Floats) and _bits(*self.values) == _bits(*other.values)

    def __hash__(self) -> int:
        return hash(_bits(*self.values))


@dataclass(frozen=True, slots=True)
class Booleans:
    """An attribute that is a list of booleans."""

    values: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class DataTypeName:
    """An attribute that is a data type."""

    value: str


@dataclass(frozen=True, slots=True)
class ConstantReference:
    """An attribute that is one of the constants of the file."""

    index: int


@dataclass(frozen=True, slots=True)
class ComputeConfig:
    """Compute kernel configuration of a call."""

    math_fidelity: str
    math_approx_mode: bool
    fp32_dest_acc_en: bool
    packer_l1_acc: bool
    dst_full_sync_en: bool

    @staticmethod
    def of(config: compute_config.ComputeConfig) -> ComputeConfig:
        """The record of a configuration in the file."""
        return ComputeConfig(
            config.math_fidelity.value,
            config.math_approx_mode,
            config.fp32_dest_acc_en,
            config.packer_l1_acc,
            config.dst_full_sync_en,
        )

    @property
    def value(self) -> compute_config.ComputeConfig:
        """The configuration of the file."""
        return compute_config.ComputeConfig(
            MathFidelity(self.math_fidelity),
            self.math_approx_mode,
            self.fp32_dest_acc_en,
            self.packer_l1_acc,
            self.dst_full_sync_en,
        )


@dataclass(frozen=True, slots=True)
class ProgramConfig:
    """Program configuration of a call."""

    text: str

    @property
    def value(self) -> program_configs.ProgramConfig:
        """The configuration that the text spells."""
        try:
            return program_configs.config_of_text(self.text)
        except ValueError as error:
            raise CompileError(f"the file has a damaged program configuration: {error}") from error


AttributeValue = (
    Integer
    | Float
    | Boolean
    | String
    | Integers
    | Floats
    | Booleans
    | DataTypeName
    | ConstantReference
    | ComputeConfig
    | ProgramConfig
    | TensorType
)


def plain_value(value: AttributeValue | None, constants: Sequence[object]) -> Any:
    """Python value of an attribute, with one of these for a constant of the file."""
    match value:
        case None:
            return None
        case DataTypeName():
            return DataType.from_mlir(value.value)
        case ConstantReference():
            return constants[value.index]
        case Integers() | Floats() | Booleans():
            return list(value.values)
        case TensorType():
            return value.placement
        case _:
            return value.value


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of an operation; one without value is not set."""

    name: str
    value: AttributeValue | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """A ttnn call, or of another program."""

    name: str
    operands: tuple[int, ...] = ()
    operand_sizes: tuple[int, ...] = ()
    results: tuple[int, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    callee: str | None = None
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Input:
    """An argument of a program."""

    tensor: int
    kind: str
    name: str
    element_type: str | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """A result of a program."""

    tensor: int
    name: str
    element_type: str | None = None


@dataclass(frozen=True, slots=True)
class Golden:
    """Golden value of a tensor of the program, as one of the constants of the file."""

    tensor: int
    constant: int


@dataclass(frozen=True, slots=True)
class Program:
    """A function: its tensors, and the operations in the order of execution."""

    name: str
    kind: str
    tensors: tuple[Tensor, ...] = ()
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Output, ...] = ()
    operations: tuple[Operation, ...] = ()
    goldens: tuple[Golden, ...] = ()


@dataclass(frozen=True, slots=True)
class Constant:
    """The elements of a constant; a single one is a splat."""

    element_type: str
    shape: tuple[int, ...]
    elements: bytes | memoryview


ELEMENT_SIZES = {
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "bfloat16": 2,
    "float16": 2,
    "int16": 2,
    "uint16": 2,
    "float32": 4,
    "int32": 4,
    "uint32": 4,
    "float64": 8,
    "int64": 8,
    "uint64": 8,
}
"""Bytes per element of a constant."""


@dataclass(frozen=True, slots=True)
class Binary:
    """A whole file."""

    major: int
    minor: int
    tool_version: str
    input_hash: str
    arch: str
    release: str
    programs: tuple[Program, ...] = ()
    constants: tuple[Constant, ...] = ()
    system: bytes | memoryview = b""
    """The .ttsys file that the program was compiled for; empty for an architecture's defaults."""

    def program(self, name: str) -> Program:
        """Raises KeyError if the file has no program of that name."""
        for program in self.programs:
            if program.name == name:
                return program
        raise KeyError(name)


RECORDS: tuple[type, ...] = (
    CoreRange,
    Shards,
    TensorType,
    Tensor,
    Integer,
    Float,
    Boolean,
    String,
    Integers,
    Floats,
    Booleans,
    DataTypeName,
    ConstantReference,
    ComputeConfig,
    ProgramConfig,
    Attribute,
    Operation,
    Input,
    Output,
    Golden,
    Program,
    Constant,
    Binary,
)
"""The classes of the tables of the schema, whose names they have."""


# The contents of a `.ttm` file as Python values: one class per table of `ttm.fbs`.
#
# Functions and constants are those of `ttcodegen.flatbuffer.program`; what a file says as a
# program in the compiler does has the classes of `ttcodegen.dialects.ttmetal.programs`.

TTM_MAJOR = 2
TTM_MINOR = 3
TTM_VERSION = (TTM_MAJOR, TTM_MINOR)
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
    """A device program."""

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
    functions: tuple[Program, ...] = ()
    programs: tuple[DeviceProgram, ...] = ()
    constants: tuple[Constant, ...] = ()
    system: bytes | memoryview = b""

    def function(self, name: str) -> Program:
        """Raises KeyError if the file has no function of that name."""
        for function in self.functions:
            if function.name == name:
                return function
        raise KeyError(name)


TTM_RECORDS: tuple[type, ...] = (
    *(record for record in RECORDS if record is not Binary),
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
