"""System descriptions as `.ttsys` files, by the schema `ttsys.fbs`."""

from __future__ import annotations

from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import Any

from ttcodegen.flatbuffer.decoding import decode, encode
from ttcodegen.flatbuffer.program import Binary, DeviceBinary
from ttcodegen.flatbuffer.schema import load_schema
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import did_you_mean
from ttcodegen.systems.cards import NAMES, default_system, machine
from ttcodegen.systems.description import (
    ARCHITECTURES,
    ChipChannel,
    ChipDescription,
    CPUDescription,
    SystemDescription,
)
from ttcodegen.version import __version__

MAJOR = 1
MINOR = 0

_SCHEMA = "ttsys.fbs"
_KIND = ".ttsys file"
_NAMES = ("supported_data_types",)
_PAIR_LISTS = (
    "supported_tile_sizes",
    "dram_bank_to_logical_worker_noc0",
    "dram_bank_to_logical_worker_noc1",
)


def _record(name: str, *names: str) -> Any:
    """Creates a record class for a table."""
    return make_dataclass(name, names, frozen=True)


_Pair = _record("Pair", "rows", "columns")
_Name = _record("Name", "text")
_ChipCoordinate = _record("ChipCoordinate", "rack", "shelf", "row", "column")
_Chip = _record("Chip", *(field.name for field in fields(ChipDescription)))
_CPU = _record("CPU", "role", "target_triple")
_Channel = _record("ChipChannel", "first", "first_core", "second", "second_core")
_System = _record(
    "System",
    *("major", "minor", "tool_version", "cpus", "chips"),
    *("chip_indices", "chip_capabilities", "chip_coordinates", "chip_channels"),
)
_RECORDS: tuple[type, ...] = (_Pair, _Name, _ChipCoordinate, _Chip, _CPU, _Channel, _System)


def write_ttsys(system: SystemDescription) -> bytes:
    """Encodes a system description; equal descriptions and versions give equal bytes."""
    record = _System(
        MAJOR,
        MINOR,
        __version__,
        tuple(_CPU(cpu.role, cpu.target_triple) for cpu in system.cpus),
        tuple(_chip_record(chip) for chip in system.chips),
        system.chip_indices,
        system.chip_capabilities,
        tuple(_ChipCoordinate(*place) for place in system.chip_coordinates),
        tuple(
            _Channel(c.first, _Pair(*c.first_core), c.second, _Pair(*c.second_core))
            for c in system.chip_channels
        ),
    )
    return encode(load_schema(_SCHEMA), record)


def _chip_record(chip: ChipDescription) -> Any:
    values: dict[str, Any] = {}
    for field in fields(chip):
        value = getattr(chip, field.name)
        if field.name in _NAMES:
            value = tuple(_Name(name) for name in value)
        elif field.name in _PAIR_LISTS:
            value = tuple(_Pair(*pair) for pair in value)
        elif field.type == "Pair":
            value = _Pair(*value)
        values[field.name] = value
    return _Chip(**values)


def load_system(named: str) -> SystemDescription:
    """Returns the system of a .ttsys file, a machine name or an architecture.

    Raises:
        CompileError: if there is no such system, or as `read_ttsys_file`.
    """
    if named in ARCHITECTURES:
        return default_system(named)
    known = machine(named)
    if known is not None:
        return known.system()
    if "." not in named and "/" not in named and not Path(named).exists():
        raise CompileError(
            f"there is no system '{named}'{did_you_mean(named, (*ARCHITECTURES, *NAMES))}",
            remedy=f"give a .ttsys file, or one of {', '.join((*ARCHITECTURES, *NAMES))}",
        )
    return read_ttsys_file(named)


def chosen_system(arch: str | None, named: str | None) -> SystemDescription | None:
    """Returns the system selected by an architecture, a name or a file; None without any.

    Raises:
        CompileError: as `load_system`, or if the system is of another architecture.
    """
    if named is None:
        return default_system(arch) if arch else None
    system = load_system(named)
    if arch and arch != system.arch:
        raise other_architecture(system, arch)
    return system


def other_architecture(system: SystemDescription, arch: str) -> CompileError:
    """Returns the error for options with an architecture and a system of another one."""
    return CompileError(
        f"the system description is of a {system.arch}, not of a {arch}",
        remedy="leave --arch out: the description says it",
    )


def read_ttsys_file(path: str | Path) -> SystemDescription:
    """Reads a `.ttsys` file.

    Raises:
        CompileError: if the file cannot be read, or as `read_ttsys`.
    """
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CompileError(f"cannot read '{path}': {reason}") from None
    try:
        return read_ttsys(data)
    except CompileError as error:
        remedy = error.diagnostics[0].remedy
        raise CompileError(f"'{path}': {error}", remedy=remedy) from None


def read_ttsys(data: bytes | memoryview) -> SystemDescription:
    """Decodes and checks a system description.

    Raises:
        CompileError: if it is not a .ttsys file, of another version, damaged, or inconsistent.
    """
    record = decode(load_schema(_SCHEMA), _RECORDS, data, _KIND, (MAJOR, MINOR))
    return SystemDescription(
        tuple(CPUDescription(cpu.role, cpu.target_triple) for cpu in record.cpus),
        tuple(_chip(chip) for chip in record.chips),
        tuple(record.chip_indices),
        tuple(record.chip_capabilities),
        tuple((c.rack, c.shelf, c.row, c.column) for c in record.chip_coordinates),
        tuple(
            ChipChannel(c.first, _pair(c.first_core), c.second, _pair(c.second_core))
            for c in record.chip_channels
        ),
    ).check()


def system_of(binary: Binary | DeviceBinary) -> SystemDescription:
    """System that a file was compiled for.

    Raises:
        CompileError: if its description is damaged.
    """
    if binary.system:
        return read_ttsys(binary.system)
    if binary.arch not in ARCHITECTURES:
        raise CompileError(f"the file is for '{binary.arch}', an unknown architecture")
    return default_system(binary.arch)


def _pair(record: Any) -> tuple[int, int]:
    return record.rows, record.columns


def _chip(record: Any) -> ChipDescription:
    values: dict[str, Any] = {}
    for field in fields(ChipDescription):
        value = getattr(record, field.name)
        if field.name in _NAMES:
            value = tuple(name.text for name in value)
        elif field.name in _PAIR_LISTS:
            value = tuple(_pair(pair) for pair in value)
        elif field.type == "Pair":
            value = _pair(value)
        values[field.name] = value
    return ChipDescription(**values)
