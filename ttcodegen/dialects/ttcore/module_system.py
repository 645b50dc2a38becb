"""What a module is compiled for: its system, and the device that it sees of it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_prop_def, prop_def, traits_def
from xdsl.printer import Printer
from xdsl.traits import SymbolOpInterface

from ttcodegen.dialects.ttcore.device import DeviceAttr, DeviceDescription
from ttcodegen.dialects.ttcore.layouts import Grid
from ttcodegen.dialects.ttcore.system import SystemDescAttr
from ttcodegen.systems.description import Pair, SystemDescription

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
