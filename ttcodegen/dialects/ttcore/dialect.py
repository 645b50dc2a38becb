"""The `ttcore` dialect: types, attributes and tuple ops, and the system of a module."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    FlatSymbolRefAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    TupleType,
    i32,
)
from xdsl.ir import (
    Attribute,
    Block,
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

from ttcodegen.dialects.core.records import WordAttribute
from ttcodegen.dialects.ttcore.device import DEVICE_ATTRIBUTES, DeviceAttr, DeviceDescription
from ttcodegen.dialects.ttcore.enumerations import WORD_ATTRIBUTES
from ttcodegen.dialects.ttcore.layouts import LAYOUT_ATTRIBUTES, Grid
from ttcodegen.dialects.ttcore.system import SystemDescAttr
from ttcodegen.dialects.ttcore.tile import TileType
from ttcodegen.systems.description import Pair, SystemDescription

# What a module is compiled for: its system, and the device that it sees of it.

SYSTEM_DESC = "ttcore.system_desc"
"""The attribute of a module that describes the system."""

DEFAULT_DEVICE = "default_device"


@irdl_op_definition
class DeviceOp(IRDLOperation):
    """`ttcore.device @default_device = <workerGrid = ..., ...>`."""

    name = "ttcore.device"
    sym_name = prop_def(StringAttr)
    device_attr = opt_prop_def(DeviceAttr)
    """Absent if its text was not understood."""
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
    """A device with the cores and banks of the first chip, at the same coordinates.

    The maps from grids and shards to addresses, which may be written in addition, follow from the
    system description.
    """
    dims = (AffineExpr.dimension(0), AffineExpr.dimension(1))
    mapping = AffineMap(2, 0, (AffineExpr.constant(0), *dims))
    return DeviceDescription(Grid(worker_grid, mapping), (1,), (0,), Grid(dram_grid))


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


# The ops that pack tensors into tuples and take them out again.


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
        if index >= len(elements) or elements[index] != self.result.type:
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
    """The results of a const-eval function, which runs once: `ttcore.load_cached(@f, [...])`."""

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


@irdl_op_definition
class WhileLoopOp(IRDLOperation):
    """A loop whose trip count is only known at run time: while `going` is not zero, its function is
    called, `ttcore.while_loop(@body, going, [carried..., captured...])`.

    The function takes the carried and the captured tensors, and returns the next `going` and the
    carried tensors of the next iteration. The op gives the carried tensors of the last one.
    """

    name = "ttcore.while_loop"
    callee = prop_def(FlatSymbolRefAttr)
    going = operand_def(TensorType)
    inputs = var_operand_def()
    outputs = var_result_def()

    def __init__(
        self,
        callee: str,
        going: SSAValue,
        carried: Sequence[SSAValue],
        captured: Sequence[SSAValue],
        result_types: Sequence[Attribute] | None = None,
    ) -> None:
        types = [value.type for value in carried] if result_types is None else result_types
        super().__init__(
            operands=[going, [*carried, *captured]],
            result_types=[types],
            properties={"callee": SymbolRefAttr(callee)},
        )

    @property
    def carried(self) -> Sequence[SSAValue]:
        """The operands that the first iteration takes, and each later one has anew."""
        return self.inputs[: len(self.outputs)]

    @property
    def captured(self) -> Sequence[SSAValue]:
        """The operands that all iterations take."""
        return self.inputs[len(self.outputs) :]

    def verify_(self) -> None:
        if len(self.outputs) > len(self.inputs) or any(
            result.type != value.type
            for result, value in zip(self.outputs, self.inputs, strict=False)
        ):
            raise VerifyException(
                f"{self.name}: its first operands after the condition should have the types of its "
                "results"
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
    """`ttcore.device_module { builtin.module { ... } }`: what runs on the device."""

    name = "ttcore.device_module"


@irdl_op_definition
class CPUModuleOp(_ModuleWrapper):
    """`ttcore.cpu_module { builtin.module { ... } }`: the functions that run on the CPU."""

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
