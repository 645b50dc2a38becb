"""`#ttcore.system_desc` and `ttcore.device`: what a module is compiled for.

The texts are those of tt-mlir (2026). What a description of ours has in addition stands at the end
of a chip, so that a description without it is read as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Data
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import SymbolOpInterface

from ttcodegen.diagnostics import CompileError
from ttcodegen.target.system import (
    ChipChannel,
    ChipDescription,
    CPUDescription,
    Pair,
    SystemDescription,
)

SYSTEM_DESC = "ttcore.system_desc"
"""The attribute of a module that describes the system, and the name of its kind."""

DEFAULT_DEVICE = "default_device"

_COORDINATES = ("dram_bank_to_logical_worker_noc0", "dram_bank_to_logical_worker_noc1")
_CLOSING = {"<": ">", "[": "]", "(": ")", "{": "}"}


class _TextError(ValueError):
    """The text is not that of a description."""


def _body_end(text: str, start: int) -> int:
    """Where the brackets that open at `start` close."""
    expected: list[str] = []
    quoted = False
    for position in range(start, len(text)):
        character = text[position]
        if character == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif character in _CLOSING:
            expected.append(_CLOSING[character])
        elif character == ">" and text[position - 1] == "-":
            continue
        elif expected and character == expected[-1]:
            expected.pop()
            if not expected:
                return position + 1
    raise _TextError("a bracket stays open")


def _items(text: str) -> Iterator[str]:
    """What stands between the commas that are in no brackets."""
    depth, quoted, start = 0, False, 0
    for position, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif character in "<[({":
            depth += 1
        elif character in ">])}":
            depth -= 1
        elif character == "," and depth == 0:
            yield text[start:position].strip()
            start = position + 1
    if last := text[start:].strip():
        yield last


def _enclosed(text: str, brackets: str) -> str:
    if len(text) < 2 or text[0] != brackets[0] or text[-1] != brackets[1]:
        raise _TextError(f"expected '{brackets[0]}' at '{text[:40]}'")
    return text[1:-1]


def _list(text: str) -> list[str]:
    return list(_items(_enclosed(text, "[]")))


def _entries(text: str) -> dict[str, str]:
    """The fields of `{name = value, ...}`."""
    found: dict[str, str] = {}
    for item in _items(_enclosed(text, "{}")):
        name, sign, value = item.partition("=")
        if not sign:
            raise _TextError(f"expected a field at '{item}'")
        found[name.strip()] = value.strip()
    return found


def _number(text: str) -> int:
    return int(text.partition(":")[0])


def _pair(text: str) -> Pair:
    first, second = re.split(r"[x,]", text.strip("()<> "))
    return int(first), int(second)


def _chip(text: str) -> ChipDescription:
    given = _entries(text)
    values: dict[str, Any] = {}
    for field in fields(ChipDescription):
        value = given.pop(field.name, None)
        if value is None:
            if field.default is MISSING:
                raise _TextError(f"'{field.name}' is missing")
            continue
        match field.type:
            case "str":
                values[field.name] = _enclosed(value, "<>").strip()
            case "int":
                values[field.name] = _number(value)
            case "Pair":
                values[field.name] = _pair(value)
            case "tuple[int, ...]":
                values[field.name] = tuple(map(_number, _list(value)))
            case "tuple[str, ...]":
                values[field.name] = tuple(name.strip("<> ") for name in _list(value))
            case _:
                values[field.name] = tuple(map(_pair, _list(value)))
    if given:
        raise _TextError(f"there is no field '{next(iter(given))}'")
    return ChipDescription(**values)


def _cpu(text: str) -> CPUDescription:
    given = _entries(text)
    return CPUDescription(given["role"].strip("<> "), given["target_triple"].strip('"'))


def _coordinate(text: str) -> tuple[int, int, int, int]:
    rack, shelf, row, column = map(int, text.strip("[]<> ").replace(",", "x").split("x"))
    return rack, shelf, row, column


def _channel(text: str) -> ChipChannel:
    first, second = map(_list, _items(_enclosed(text, "<>")))
    return ChipChannel(int(first[0]), _pair(first[1]), int(second[0]), _pair(second[1]))


def _system(text: str) -> SystemDescription:
    parts = list(_items(_enclosed(text, "<>")))
    if len(parts) not in (5, 6):
        raise _TextError("expected CPUs, chips, indices, capabilities and coordinates")
    cpus, chips, indices, capabilities, coordinates, *channels = map(_list, parts)
    return SystemDescription(
        tuple(map(_cpu, cpus)),
        tuple(map(_chip, chips)),
        tuple(map(_number, indices)),
        tuple(map(_number, capabilities)),
        tuple(map(_coordinate, coordinates)),
        tuple(map(_channel, channels[0])) if channels else (),
    )


@irdl_attr_definition
class SystemDescAttr(Data[SystemDescription]):
    """`#ttcore.system_desc<[{role = host, ...}], [{arch = <wormhole_b0>, ...}], [0], ...>`."""

    name = SYSTEM_DESC

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> SystemDescription:
        text, start = parser.lexer.input.content, parser.pos
        try:
            end = _body_end(text, start)
            system = _system(text[start:end]).check()
        except CompileError as error:
            parser.raise_error(str(error))
        except (_TextError, ValueError, KeyError, TypeError) as error:
            parser.raise_error(f"the system description is malformed: {error}")
        parser._resume_from(end)  # pyright: ignore[reportPrivateUsage]
        return system

    def print_parameter(self, printer: Printer) -> None:
        system = self.data
        parts = [
            [
                f'{{role = {cpu.role}, target_triple = "{cpu.target_triple}"}}'
                for cpu in system.cpus
            ],
            [_chip_text(chip) for chip in system.chips],
            [str(index) for index in system.chip_indices],
            [f"{bits} : i32" for bits in system.chip_capabilities],
            ["x".join(map(str, place)) for place in system.chip_coordinates],
        ]
        if system.chip_channels:
            parts.append(
                [
                    f"<[{c.first}, {_pair_text(c.first_core)}], "
                    f"[{c.second}, {_pair_text(c.second_core)}]>"
                    for c in system.chip_channels
                ]
            )
        lists = [f"[{', '.join(part)}]" for part in parts]
        printer.print_string(f"<{', '.join(lists)}>")


def _pair_text(pair: Pair) -> str:
    return f"{pair[0]}x{pair[1]}"


def _chip_text(chip: ChipDescription) -> str:
    entries: list[str] = []
    for field in fields(chip):
        value = getattr(chip, field.name)
        if field.default is not MISSING and value == field.default:
            continue
        match field.type:
            case "str":
                text = f"<{value}>"
            case "int":
                text = str(value)
            case "Pair":
                text = _pair_text(value)
            case "tuple[int, ...]":
                text = f"[{', '.join(map(str, value))}]"
            case "tuple[str, ...]":
                text = f"[{', '.join(f'<{name}>' for name in value)}]"
            case _ if field.name in _COORDINATES:
                text = f"[{', '.join(f'({row}, {column})' for row, column in value)}]"
            case _:
                text = f"[{', '.join(map(_pair_text, value))}]"
        entries.append(f"{field.name} = {text}")
    return f"{{{', '.join(entries)}}}"


@dataclass(frozen=True)
class Device:
    """The cores and banks that the tensors of a module lie on."""

    worker_grid: Pair
    dram_grid: Pair
    mesh_shape: tuple[int, ...] = (1,)
    chip_ids: tuple[int, ...] = (0,)


_DEVICE = {
    "workerGrid": re.compile(r"workerGrid\s*=\s*#?\w*\.?\w*<\s*(\d+x\d+)"),
    "dramGrid": re.compile(r"dramGrid\s*=\s*#?\w*\.?\w*<\s*(\d+x\d+)"),
    "meshShape": re.compile(r"meshShape\s*=\s*(\d+(?:x\d+)*)?"),
    "chipIds": re.compile(r"chipIds\s*=\s*\[([\d,\s]*)\]"),
}


@irdl_attr_definition
class DeviceAttr(Data[Device]):
    """`#ttcore.device<workerGrid = #ttcore.grid<8x8, (d0, d1) -> (0, d0, d1)>, ...>`.

    The maps from grids and shards to addresses that tt-mlir writes are not kept: they follow from
    the system description.
    """

    name = "ttcore.device"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Device:
        device = parse_device(parser)
        if device is None:
            parser.raise_error("the description of the device is malformed")
        return device

    def print_parameter(self, printer: Printer) -> None:
        device = self.data
        printer.print_string(
            f"<workerGrid = #ttcore.grid<{_pair_text(device.worker_grid)}, "
            "(d0, d1) -> (0, d0, d1)>, "
            f"dramGrid = #ttcore.grid<{_pair_text(device.dram_grid)}>, "
            f"meshShape = {'x'.join(map(str, device.mesh_shape))}, "
            f"chipIds = [{', '.join(map(str, device.chip_ids))}]>"
        )


def parse_device(parser: AttrParser) -> Device | None:
    """What stands in the brackets at the current token, None if it is of an older form."""
    text, start = parser.lexer.input.content, parser.pos
    try:
        end = _body_end(text, start)
    except _TextError as error:
        parser.raise_error(f"the description of the device is malformed: {error}")
    try:
        device = _device(text[start:end])
    except _TextError:
        device = None
    parser._resume_from(end)  # pyright: ignore[reportPrivateUsage]
    return device


def _device(text: str) -> Device:
    found = {name: pattern.search(text) for name, pattern in _DEVICE.items()}
    worker, dram, mesh, chips = found.values()
    if worker is None or chips is None:
        raise _TextError("it has no 'workerGrid' or no 'chipIds'")
    return Device(
        _pair(worker[1]),
        _pair(dram[1]) if dram else (1, 1),
        tuple(int(n) for n in mesh[1].split("x")) if mesh and mesh[1] else (1,),
        tuple(int(n) for n in chips[1].split(",") if n.strip()),
    )


@irdl_op_definition
class DeviceOp(IRDLOperation):
    """`ttcore.device @default_device = <workerGrid = ..., ...>`."""

    name = "ttcore.device"
    sym_name = prop_def(StringAttr)
    device_attr = opt_prop_def(DeviceAttr)
    """Absent if its text was not understood."""
    traits = traits_def(SymbolOpInterface())

    def __init__(self, device: Device, name: str = DEFAULT_DEVICE) -> None:
        super().__init__(
            properties={"sym_name": StringAttr(name), "device_attr": DeviceAttr(device)}
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" = ")
        if self.device_attr is not None:
            self.device_attr.print_parameter(printer)
        printer.print_op_attributes(self.attributes)


def system_of(module: ModuleOp) -> SystemDescription | None:
    """The system that a module was compiled for, None if it does not say."""
    attribute = module.attributes.get(SYSTEM_DESC)
    return attribute.data if isinstance(attribute, SystemDescAttr) else None


def set_system(module: ModuleOp, system: SystemDescription) -> None:
    """Makes a module say what it is compiled for."""
    module.attributes[SYSTEM_DESC] = SystemDescAttr(system)


def devices(module: ModuleOp) -> Sequence[DeviceOp]:
    """The descriptions of devices of a module."""
    return [op for op in module.body.block.ops if isinstance(op, DeviceOp)]
