"""What a program of a device is made of: circular buffers, semaphores, kernels and their arguments.

`ttmetal.enqueue_program` carries one of these as its attribute `program`, in the form that
`program_attribute` gives. Operands of the op are counted inputs first, then outputs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from functools import cache
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute

from ttcodegen.dialects.cores import CoreRange
from ttcodegen.dialects.datatypes import DataType


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


@dataclass(frozen=True)
class RuntimeArgument:
    """A run-time argument, in the order of its index, with what the host passes to each core.

    The value is one of: an integer; `address(i)`, where the buffer of operand i lies; `first` and
    `count`, the core's share of the program's linear work; `column` and `row` of the core;
    `noc_x(c, r)` and `noc_y(c, r)`, the NoC coordinates of the worker core in column c and row r,
    each of them an integer, `column` or `row`.
    """

    name: str
    value: str


@dataclass(frozen=True)
class Kernel:
    """A kernel and the cores it runs on."""

    name: str
    """Stem of its file."""
    processor: Processor
    purpose: str
    """A sentence for the head of the file."""
    cores: CoreRange
    source: str
    """Of a data-movement kernel the template, of a compute kernel the symbol of its function."""
    context: tuple[tuple[str, str], ...] = ()
    """What the template is rendered with: names, and values as JSON."""
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

    fidelity: str = "HiFi4"
    fp32_destination: bool = False
    unpack_to_fp32: tuple[int, ...] = ()
    """Circular buffers whose 32-bit values reach the destination registers unshortened."""


@dataclass(frozen=True)
class Costs:
    """What a run of the program takes, and the least that its computation could do with.

    What one core sends to several at once goes over the NoC once.
    """

    tiles_computed: int
    noc_bytes: int
    dram_read_bytes: int
    dram_write_bytes: int
    least_dram_read_bytes: int
    least_dram_write_bytes: int
    least_noc_bytes: int


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
    costs: Costs
    work_units: int = 0
    """Of linear work: the units that are divided among the cores, row by row of the core range, as
    evenly as whole units allow, the first cores getting one more. 0 if each core finds its part
    from its column and row."""
    work_unit: str = ""
    """What a unit is: "output tile"."""
    semaphores: tuple[str, ...] = ()
    """Each starts as 0 on all cores of the program."""
    compute: ComputeSettings = field(default_factory=ComputeSettings)


def program_attribute(program: Program) -> DictionaryAttr:
    """The program as a dictionary that is printed, parsed and turned back by `program_of`."""
    return cast(DictionaryAttr, _encode(program))


def program_of(attribute: Attribute) -> Program:
    """The program that a dictionary says.

    Raises:
        ValueError: if a field is missing, unknown or of another type.
    """
    return _decode(Program, attribute, "program")


def _encode(value: object) -> Attribute:
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return DictionaryAttr({f.name: _encode(getattr(value, f.name)) for f in fields})
    if isinstance(value, Enum):
        return StringAttr(value.name.lower())
    if isinstance(value, bool):
        return IntegerAttr.from_bool(value)
    if isinstance(value, int):
        return IntegerAttr(value, i64)
    if isinstance(value, str):
        return StringAttr(value)
    if value is None:
        return UnitAttr()
    return ArrayAttr([_encode(item) for item in cast(Sequence[object], value)])


def _decode(type_: Any, attribute: Attribute, where: str) -> Any:
    if dataclasses.is_dataclass(type_):
        return _decode_fields(cast(type[Any], type_), attribute, where)
    if get_origin(type_) in (Union, UnionType):
        if isinstance(attribute, UnitAttr):
            return None
        return _decode(get_args(type_)[0], attribute, where)
    if get_origin(type_) is tuple and isinstance(attribute, ArrayAttr):
        items = cast(ArrayAttr[Attribute], attribute).data
        inner = get_args(type_)
        kinds = [inner[0]] * len(items) if inner[-1] is Ellipsis else list(inner)
        if len(kinds) == len(items):
            pairs = zip(kinds, items, strict=True)
            return tuple(
                _decode(kind, item, f"{where}[{i}]") for i, (kind, item) in enumerate(pairs)
            )
    if isinstance(attribute, IntegerAttr) and type_ in (int, bool):
        return type_(cast(IntegerAttr[Any], attribute).value.data)
    if isinstance(attribute, StringAttr) and type_ is str:
        return attribute.data
    if isinstance(attribute, StringAttr) and isinstance(type_, type) and issubclass(type_, Enum):
        members: list[Enum] = list(type_)
        for member in members:
            if member.name.lower() == attribute.data:
                return member
    raise ValueError(f"{where} is {attribute}, which is not a {type_}")


def _decode_fields(type_: type[Any], attribute: Attribute, where: str) -> Any:
    if not isinstance(attribute, DictionaryAttr):
        raise ValueError(f"{where} is {attribute}, which is not a dictionary")
    entries: Mapping[str, Attribute] = attribute.data
    hints = _hints(type_)
    if unknown := sorted(set(entries) - set(hints)):
        raise ValueError(f"{where} has no field {', '.join(unknown)}")
    required = {f.name for f in dataclasses.fields(type_)} - set(entries)
    if required:
        raise ValueError(f"{where} lacks {', '.join(sorted(required))}")
    return type_(
        **{key: _decode(hints[key], value, f"{where}.{key}") for key, value in entries.items()}
    )


@cache
def _hints(type_: type[Any]) -> dict[str, Any]:
    return get_type_hints(type_)
