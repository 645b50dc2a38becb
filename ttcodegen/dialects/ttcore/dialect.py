"""The `ttcore` dialect: types, attributes and tuple ops, and system descriptions.

Texts of 2024 and 2025 omit fields of the current syntax; these are taken from the compiler's
default description of the architecture. Fields that were removed since (physical cores) are
ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from typing import Any, cast

from xdsl.dialects.builtin import (
    FlatSymbolRefAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TupleType,
    i32,
)
from xdsl.ir import (
    Attribute,
    Block,
    Data,
    Dialect,
    Operation,
    ParametrizedAttribute,
    Region,
    SSAValue,
)
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from ttcodegen.dialects.core.attribute_syntax import WordAttribute
from ttcodegen.dialects.ttcore.device import DEVICE_ATTRIBUTES, DeviceAttr, DeviceDescription
from ttcodegen.dialects.ttcore.layouts import LAYOUT_ATTRIBUTES, Grid, GridAttr, shape_text
from ttcodegen.dialects.ttcore.loops import WhileLoopOp
from ttcodegen.dialects.ttcore.tile import WORD_ATTRIBUTES, TileType
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import (
    ARCHITECTURES,
    ChipChannel,
    ChipDescription,
    CPUDescription,
    Pair,
    SystemDescription,
)

_CAPABILITIES = {"pcie": 1, "host_mmio": 2}
"""Bits of `chip_capabilities` by the words of 2024 and 2025."""

_FORMER_FIELDS = frozenset({"chip_physical_cores"})
"""Removed fields of chips."""


@irdl_attr_definition
class SystemDescAttr(Data[SystemDescription]):
    """`#ttcore.system_desc<[cpus], [chips], [indices], [capabilities], [coordinates]>`."""

    name = "ttcore.system_desc"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> SystemDescription:
        position = parser.pos
        with parser.in_angle_brackets():
            parts = [_parse_value(parser)]
            while parser.parse_optional_punctuation(",") is not None:
                parts.append(_parse_value(parser))
        try:
            return _system(parts)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            parser.raise_error(f"the system description is malformed: {error}", position)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(system_text(self.data))

    def verify(self) -> None:
        try:
            self.data.check()
        except CompileError as error:
            raise VerifyException(str(error)) from error


def system_text(system: SystemDescription) -> str:
    """Returns the text after `#ttcore.system_desc`."""
    parts = [
        ", ".join(
            f'{{role = {cpu.role}, target_triple = "{cpu.target_triple}"}}' for cpu in system.cpus
        ),
        ", ".join(map(_chip_text, system.chips)),
        ", ".join(map(str, system.chip_indices)),
        ", ".join(f"{capability} : i32" for capability in system.chip_capabilities),
        ", ".join(f" {shape_text(coordinates)}" for coordinates in system.chip_coordinates),
    ]
    if system.chip_channels:
        parts.append(", ".join(map(_channel_text, system.chip_channels)))
    return f"<{', '.join(f'[{part}]' for part in parts)}>"


def _channel_text(channel: ChipChannel) -> str:
    first, second = (", ".join(map(str, c)) for c in (channel.first_core, channel.second_core))
    return f"<[{channel.first}, {first}], [{channel.second}, {second}]>"


def _chip_text(chip: ChipDescription) -> str:
    words: list[str] = []
    for field in fields(ChipDescription):
        value = getattr(chip, field.name)
        if value != field.default:
            words.append(f"{field.name} = {_FIELD_TEXTS.get(field.name, _number_or_shape)(value)}")
    return f"{{{', '.join(words)}}}"


def _number_or_shape(value: object) -> str:
    return shape_text(cast("Sequence[int]", value)) if isinstance(value, tuple) else str(value)


def _cores_text(cores: Sequence[tuple[int, int]]) -> str:
    return f"[{', '.join(f'({row}, {column})' for row, column in cores)}]"


_FIELD_TEXTS: Mapping[str, Callable[[Any], str]] = {
    "arch": lambda value: f"<{value}>",
    "supported_data_types": lambda values: f"[{', '.join(f'<{value}>' for value in values)}]",
    "supported_tile_sizes": lambda sizes: f"[{', '.join(f' {shape_text(s)}' for s in sizes)}]",
    "dram_bank_to_logical_worker_noc0": _cores_text,
    "dram_bank_to_logical_worker_noc1": _cores_text,
    "harvested_rows": lambda rows: f"[{', '.join(map(str, rows))}]",
    "harvested_columns": lambda columns: f"[{', '.join(map(str, columns))}]",
}


# Reading


class _Shape(tuple[int, ...]):
    """Numbers joined by `x`."""


def _parse_value(parser: AttrParser) -> Any:
    """Parses any value of a description: a list, a dictionary, a shape, a word, or an attribute.

    Text in `<...>` or `(...)` is a list as well.
    """
    if parser.parse_optional_punctuation("{") is not None:
        return _parse_entries(parser)
    for opening, closing in (("[", "]"), ("<", ">"), ("(", ")")):
        if parser.parse_optional_punctuation(cast("Any", opening)) is not None:
            values: list[Any] = []
            while parser.parse_optional_punctuation(cast("Any", closing)) is None:
                values.append(_parse_value(parser))
                parser.parse_optional_punctuation(",")
            return values
    if shape := parser.parse_dimension_list():
        if parser.parse_optional_punctuation(":") is not None:
            parser.parse_type()
        return shape[0] if len(shape) == 1 else _Shape(shape)
    if (text := parser.parse_optional_str_literal()) is not None:
        return text
    word = parser.parse_optional_identifier()
    if word is None:
        return _plain(parser.parse_attribute())
    words = [word]
    while parser.parse_optional_punctuation("|") is not None:
        words.append(parser.parse_identifier())
    return words[0] if len(words) == 1 else words


def _parse_entries(parser: AttrParser) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    while parser.parse_optional_punctuation("}") is None:
        name = parser.parse_identifier()
        parser.parse_punctuation("=")
        entries[name] = _parse_value(parser)
        parser.parse_optional_punctuation(",")
    return entries


def _plain(attribute: Attribute) -> Any:
    """Returns the value of an attribute written in full."""
    if isinstance(attribute, GridAttr):
        return _Shape(attribute.data.shape)
    if isinstance(attribute, Data):
        return str(cast("Data[Any]", attribute).data)
    _, opened, parameters = str(attribute).partition("<")
    if not opened:
        raise ValueError(f"{attribute} is no part of it")
    return parameters.rpartition(">")[0]


def _system(parts: list[Any]) -> SystemDescription:
    cpus: tuple[CPUDescription, ...] = (CPUDescription(),)
    # Until 2025 no processors were described.
    if parts and all(isinstance(part, dict) and "role" in part for part in parts[0]):
        cpus = tuple(CPUDescription(_word(p["role"]), p["target_triple"]) for p in parts[0])
        parts = parts[1:]
    if len(parts) not in (4, 5):
        raise ValueError(f"it has {len(parts)} lists of chips, expected 4 or 5")
    chips = tuple(_chip(part) for part in parts[0])
    return SystemDescription(
        cpus,
        chips,
        tuple(parts[1]),
        tuple(_capability(part) for part in parts[2]),
        tuple(_coordinates(part) for part in parts[3]),
        tuple(_channel(part) for part in parts[4]) if len(parts) == 5 else (),
    )


def _unwrapped(value: Any) -> Any:
    """Returns the only element of nested lists of one element."""
    while isinstance(value, list):
        values = cast("list[Any]", value)
        if len(values) != 1:
            return values
        value = values[0]
    return value


def _word(value: Any) -> str:
    value = _unwrapped(value)
    if not isinstance(value, str):
        raise TypeError(f"expected a word, found {value}")
    return value


def _capability(part: Any) -> int:
    if isinstance(part, int):
        return part
    words = _unwrapped(part)
    return sum(_CAPABILITIES[word] for word in ([words] if isinstance(words, str) else words))


def _coordinates(part: Any) -> tuple[int, int, int, int]:
    rack, shelf, row, column = part
    return rack, shelf, row, column


def _channel(part: Any) -> ChipChannel:
    first, second = part
    return ChipChannel(first[0], _pair(_core(first)), second[0], _pair(_core(second)))


def _core(end: list[Any]) -> Any:
    return end[1:] if len(end) == 3 else end[1]


def _pair(value: Any) -> tuple[int, int]:
    first, second = _unwrapped(value)
    return first, second


def _chip(part: Any) -> ChipDescription:
    entries = cast("dict[str, Any]", part)
    if not isinstance(part, dict):
        entries = {"arch": part[0], "grid": part[1]}
    arch = _word(entries.pop("arch"))
    known = {field.name: field for field in fields(ChipDescription)}
    for name in entries:
        if name not in known and name not in _FORMER_FIELDS:
            raise ValueError(f"there is no field '{name}'")
    # Texts of 2024 omit fields of a chip, which are taken from the default description.
    default = replace(
        default_system(arch if arch in ARCHITECTURES else "wormhole_b0").chip,
        arch=arch,
        **{name: f.default for name, f in known.items() if f.default is not MISSING},
    )
    values = {
        name: _field(value, known[name].type) for name, value in entries.items() if name in known
    }
    if "dram_unreserved_end" not in values and "dram_channel_size" in values:
        values["dram_unreserved_end"] = values["dram_channel_size"]
    return replace(default, **values)


def _field(value: Any, type_: Any) -> Any:
    """Converts the value of a chip field to its declared type."""
    match type_:
        case "int":
            return int(value)
        case "Pair":
            return _pair(value)
        case "tuple[str, ...]":
            return tuple(map(_word, value))
        case "tuple[int, ...]":
            return tuple(map(int, value))
        case _:
            return tuple(_pair(item) for item in value)


# The system and the device that a module is compiled for.

SYSTEM_DESC = "ttcore.system_desc"
"""Module attribute with the system description."""

DEFAULT_DEVICE = "default_device"


@irdl_op_definition
class DeviceOp(IRDLOperation):
    """`ttcore.device @default_device = <workerGrid = ..., ...>`."""

    name = "ttcore.device"
    sym_name = prop_def(StringAttr)
    device_attr = opt_prop_def(DeviceAttr)
    """Absent if its text could not be parsed."""
    traits = traits_def(SymbolOpInterface())

    def __init__(self, device: DeviceDescription, name: str = DEFAULT_DEVICE) -> None:
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


def one_chip(worker_grid: Pair, dram_grid: Pair) -> DeviceDescription:
    """Returns a device with the cores and banks of the first chip, at the same coordinates.

    Optional maps from grids and shards to addresses follow from the system description.
    """
    dims = (AffineExpr.dimension(0), AffineExpr.dimension(1))
    mapping = AffineMap(2, 0, (AffineExpr.constant(0), *dims))
    return DeviceDescription(Grid(worker_grid, mapping), (1,), (0,), Grid(dram_grid))


def system_of(module: ModuleOp) -> SystemDescription | None:
    """Returns the system that a module is compiled for, or None."""
    attribute = module.attributes.get(SYSTEM_DESC)
    return attribute.data if isinstance(attribute, SystemDescAttr) else None


def set_system(module: ModuleOp, system: SystemDescription) -> None:
    """Sets the system that a module is compiled for."""
    module.attributes[SYSTEM_DESC] = SystemDescAttr(system)


def devices(module: ModuleOp) -> Sequence[DeviceOp]:
    """Returns the device ops of a module."""
    return [op for op in module.body.block.ops if isinstance(op, DeviceOp)]


# Ops that pack tensors into tuples and unpack them.


@irdl_op_definition
class TupleOp(IRDLOperation):
    """`ttcore.tuple %a, %b : tuple<...>`."""

    name = "ttcore.tuple"
    elements = var_operand_def()
    result = result_def(TupleType)

    def __init__(self, elements: Sequence[SSAValue], type_: TupleType) -> None:
        super().__init__(operands=[elements], result_types=[type_])

    def verify_(self) -> None:
        found = [element.type for element in self.elements]
        if found != list(self.result.type.types):
            raise VerifyException(f"{self.name}: the elements are not those of {self.result.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.elements, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class GetTupleElementOp(IRDLOperation):
    """`ttcore.get_tuple_element %t[0] : (tuple<...>) -> type`."""

    name = "ttcore.get_tuple_element"
    operand = operand_def(TupleType)
    index = prop_def(IntegerAttr)
    result = result_def()

    def __init__(self, operand: SSAValue, index: int, type_: Attribute) -> None:
        super().__init__(
            operands=[operand], result_types=[type_], properties={"index": IntegerAttr(index, i32)}
        )

    def verify_(self) -> None:
        type_, index = self.operand.type, self.index.value.data
        elements = list(type_.types) if isinstance(type_, TupleType) else []
        if not 0 <= index < len(elements) or elements[index] != self.result.type:
            raise VerifyException(
                f"{self.name}: element {index} of {type_} is not of type {self.result.type}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        printer.print_string(f"[{self.index.value.data}]")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : (")
        printer.print_attribute(self.operand.type)
        printer.print_string(") -> ")
        printer.print_attribute(self.result.type)


# The `ttcore` dialect: types and attributes that all other dialects share.


class ArgumentType(StrEnum):
    """Kind of an argument of an entry function, as the frontend declares it."""

    INPUT = "input"
    PARAMETER = "parameter"
    CONSTANT = "constant"
    DEFAULT = "default"


@irdl_attr_definition
class ArgumentTypeAttr(WordAttribute[ArgumentType]):
    """`#ttcore.argument_type<input>`."""

    name = "ttcore.argument_type"


@irdl_attr_definition
class DataTypeAttr(ParametrizedAttribute):
    """`#ttcore.supportedDataTypes<bf16>`."""

    name = "ttcore.supportedDataTypes"
    value: StringAttr

    def __init__(self, value: str | StringAttr) -> None:
        super().__init__(StringAttr(value) if isinstance(value, str) else value)

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.value.data}>")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[StringAttr]:
        with parser.in_angle_brackets():
            return [StringAttr(parser.parse_identifier())]


@irdl_op_definition
class LoadCachedOp(IRDLOperation):
    """Results of a const-eval function, which runs once: `ttcore.load_cached(@f, [...])`."""

    name = "ttcore.load_cached"
    callee = prop_def(FlatSymbolRefAttr)
    inputs = var_operand_def()
    outputs = var_result_def()

    def __init__(
        self, callee: str, inputs: Sequence[SSAValue], result_types: Sequence[Attribute]
    ) -> None:
        super().__init__(
            operands=[inputs],
            result_types=[result_types],
            properties={"callee": SymbolRefAttr(callee)},
        )


class _ModuleWrapper(IRDLOperation):
    """An op around a module."""

    body = region_def("single_block")
    traits = traits_def(NoTerminator(), SymbolTable())

    def __init__(self, operations: Sequence[Operation]) -> None:
        super().__init__(regions=[Region(Block([ModuleOp(list(operations))]))])

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body)


@irdl_op_definition
class DeviceModuleOp(_ModuleWrapper):
    """`ttcore.device_module { builtin.module { ... } }`: functions that run on the device."""

    name = "ttcore.device_module"


@irdl_op_definition
class CPUModuleOp(_ModuleWrapper):
    """`ttcore.cpu_module { builtin.module { ... } }`: functions that run on the CPU."""

    name = "ttcore.cpu_module"


TTCore = Dialect(
    "ttcore",
    [
        LoadCachedOp,
        WhileLoopOp,
        DeviceOp,
        TupleOp,
        GetTupleElementOp,
        DeviceModuleOp,
        CPUModuleOp,
    ],
    [
        ArgumentTypeAttr,
        DataTypeAttr,
        SystemDescAttr,
        TileType,
        *DEVICE_ATTRIBUTES,
        *LAYOUT_ATTRIBUTES,
        *WORD_ATTRIBUTES,
    ],
)
