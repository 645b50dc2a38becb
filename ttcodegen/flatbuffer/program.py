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

# `.ttnn` files: one class per table of `ttnn.fbs`. Enumerators are their names, vectors are
# tuples, an absent string or union is None.

MAJOR = 1
MINOR = 4
VERSION = (MAJOR, MINOR)
"""Version of `.ttnn` files that are written and read."""
WHILE_LOOP = "ttcore.while_loop"
"""Op that calls a program repeatedly.

It runs while its first operand, later the first result of the program, is not zero; or as often as
its trip count states.
"""
TRIP_COUNT = "trip_count"
"""Attribute of such an op: the number of calls."""


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
        """Returns the record of shards."""
        return Shards(*shards.shape, shards.core_ranges, shards.orientation.value)

    @property
    def shards(self) -> placed.Shards:
        """The shards of the record."""
        return placed.Shards(
            (self.height, self.width),
            self.core_ranges,
            placed.Orientation(self.orientation),
        )


@dataclass(frozen=True, slots=True)
class TensorType:
    """Logical shape, data type and placement of a tensor."""

    shape: tuple[int, ...]
    data_type: str
    layout: str
    buffer_type: str
    memory_layout: str
    shards: Shards | None = None

    @staticmethod
    def of(placement: TensorPlacement) -> TensorType:
        """Returns the type of tensors with this placement."""
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
        """Placement of tensors of this type."""
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
    """Name in the C++; unique in the program."""
    source_name: str | None = None
    """Name in the lowered module, after the source."""


@dataclass(frozen=True, slots=True)
class Integer:
    """A 64-bit integer attribute."""

    value: int


@dataclass(frozen=True, slots=True, eq=False)
class Float:
    """A float attribute, compared by its bits, so that -0.0 differs from 0.0."""

    value: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Float) and _bits(self.value) == _bits(other.value)

    def __hash__(self) -> int:
        return hash(_bits(self.value))


@dataclass(frozen=True, slots=True)
class Boolean:
    """A boolean attribute."""

    value: bool


@dataclass(frozen=True, slots=True)
class String:
    """A string attribute."""

    value: str


@dataclass(frozen=True, slots=True)
class Integers:
    """A list of 64-bit integers as attribute."""

    values: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Floats:
    """A list of floats as attribute, compared by their bits."""

    values: tuple[float, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Floats) and _bits(*self.values) == _bits(*other.values)

    def __hash__(self) -> int:
        return hash(_bits(*self.values))


@dataclass(frozen=True, slots=True)
class Booleans:
    """A list of booleans as attribute."""

    values: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class DataTypeName:
    """A data type attribute."""

    value: str


@dataclass(frozen=True, slots=True)
class ConstantReference:
    """An attribute that refers to a constant of the file."""

    index: int


@dataclass(frozen=True, slots=True)
class ComputeConfig:
    """Compute kernel config of a call."""

    math_fidelity: str
    math_approx_mode: bool
    fp32_dest_acc_en: bool
    packer_l1_acc: bool
    dst_full_sync_en: bool

    @staticmethod
    def of(config: compute_config.ComputeConfig) -> ComputeConfig:
        """Returns the record of a config."""
        return ComputeConfig(
            config.math_fidelity.value,
            config.math_approx_mode,
            config.fp32_dest_acc_en,
            config.packer_l1_acc,
            config.dst_full_sync_en,
        )

    @property
    def value(self) -> compute_config.ComputeConfig:
        """The config of the record."""
        return compute_config.ComputeConfig(
            MathFidelity(self.math_fidelity),
            self.math_approx_mode,
            self.fp32_dest_acc_en,
            self.packer_l1_acc,
            self.dst_full_sync_en,
        )


@dataclass(frozen=True, slots=True)
class ProgramConfig:
    """Program config of a call."""

    text: str

    @property
    def value(self) -> program_configs.ProgramConfig:
        """The parsed config; raises CompileError if the text is damaged."""
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
    """Returns the Python value of an attribute; a constant is looked up in `constants`."""
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
    """Attribute of an operation; without value it is not set."""

    name: str
    value: AttributeValue | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """A ttnn call, or a call of another program."""

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
    """Golden value of a tensor, as a reference to a constant of the file."""

    tensor: int
    constant: int


@dataclass(frozen=True, slots=True)
class Program:
    """A function: its tensors, and its operations in order of execution."""

    name: str
    kind: str
    tensors: tuple[Tensor, ...] = ()
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Output, ...] = ()
    operations: tuple[Operation, ...] = ()
    goldens: tuple[Golden, ...] = ()


@dataclass(frozen=True, slots=True)
class Constant:
    """Elements of a constant; a single one is a splat."""

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
    """Contents of a `.ttnn` file."""

    major: int
    minor: int
    tool_version: str
    input_hash: str
    arch: str
    release: str
    programs: tuple[Program, ...] = ()
    constants: tuple[Constant, ...] = ()
    system: bytes | memoryview = b""
    """The .ttsys file of the target; empty for the architecture's default system."""

    def program(self, name: str) -> Program:
        """Returns the program of that name; raises KeyError if there is none."""
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
"""Record classes of the schema's tables, by name."""


# `.ttm` files: one class per table of `ttm.fbs`. Functions and constants are those of `.ttnn`
# files; records that equal a class of `ttcodegen.dialects.ttmetal.programs` use it.

TTM_MAJOR = 2
TTM_MINOR = 3
TTM_VERSION = (TTM_MAJOR, TTM_MINOR)
"""Version of `.ttm` files that are written and read."""

PROGRAM = "program"
"""Attribute of `run_program`: index of the program."""
LINK_BYTES = "link_bytes"
LINK_HOPS = "link_hops"
"""Attributes of a collective: bytes on the busiest link in one direction, and most links passed."""


@dataclass(frozen=True, slots=True)
class CircularBuffer:
    """A circular buffer in the L1 of each core."""

    index: int
    name: str
    data_type: str
    pages: int
    page_size: int
    shards: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NamedConstant:
    """A named compile-time argument or setting."""

    name: str
    value: int


@dataclass(frozen=True, slots=True)
class Semaphore:
    """A semaphore of a program."""

    name: str
    initial: int = 0


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A number, or a property of a core that the host computes."""

    place: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class RuntimeArgument:
    """A runtime argument."""

    name: str
    kind: str
    coordinates: tuple[Coordinate, ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel with its C++ source."""

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
    """Contents of a `.ttm` file."""

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
        """Returns the function of that name; raises KeyError if there is none."""
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
"""Record classes of the schema's tables, by name."""
