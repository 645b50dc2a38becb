"""Prints modules as MLIR."""

from __future__ import annotations

import io
from typing import Any, TextIO, cast

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, Region
from xdsl.printer import Printer

from ttcodegen.dialects.functions import CPU_FUNCTION, FUNCTION_TYPE, is_cpu_function
from ttcodegen.dialects.ttcore import CPUModuleOp, DeviceModuleOp

_HEXADECIMAL_ABOVE = 100
"""Constants of more elements are printed as bytes, as MLIR does."""

ELIDED_ELEMENTS = 256
"""Constants of more elements say nothing to people."""


class ModulePrinter(Printer):
    """Prints MLIR that parses again, fast whatever the constants.

    With `elide_above` of constants of more elements only that they are there: people can look at
    such text, no program can read it.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        elide_above: int | None = None,
        generic: bool = False,
        locations: bool = False,
    ) -> None:
        super().__init__(stream, print_generic_format=generic, print_debuginfo=locations)
        self._elide_above = elide_above

    def print_attribute(self, attribute: Attribute) -> None:
        constant = _constant(attribute)
        if constant is None:
            super().print_attribute(attribute)
            return
        count = len(constant.data.data) // constant.get_element_type().compile_time_size
        if self._elide_above is not None and count > self._elide_above:
            self.print_string("dense_resource<__elided__> : ")
            self.print_attribute(constant.type)
        elif count > _HEXADECIMAL_ABOVE:
            self.print_string(f'dense<"0x{_bytes(constant).hex().upper()}"> : ')
            self.print_attribute(constant.type)
        else:
            super().print_attribute(attribute)


def _constant(attribute: Attribute) -> DenseIntOrFPElementsAttr[Any] | None:
    if not isinstance(attribute, DenseIntOrFPElementsAttr):
        return None
    return cast("DenseIntOrFPElementsAttr[Any]", attribute)


def _bytes(constant: DenseIntOrFPElementsAttr[Any]) -> bytes:
    """The elements as the text has them: booleans are packed there, the first in the lowest bit."""
    data = constant.data.data
    if constant.get_element_type() != IntegerType(1):
        return data
    bits = "".join("1" if element else "0" for element in reversed(data))
    return int(bits, 2).to_bytes(-(-len(data) // 8), "little")


def module_text(
    module: ModuleOp,
    *,
    elide_above: int | None = None,
    generic: bool = False,
    locations: bool = False,
) -> str:
    """The module as MLIR; constants of more elements than `elide_above` are only named.

    Where there are functions for the CPU, they stand in a module of their own, beside that of the
    device, which declares them.
    """
    if any(isinstance(op, FuncOp) and is_cpu_function(op) for op in module.body.block.ops):
        module = _divided(module)
    stream = io.StringIO()
    printer = ModulePrinter(stream, elide_above=elide_above, generic=generic, locations=locations)
    printer.print_op(module)
    return stream.getvalue() + "\n"


def _divided(module: ModuleOp) -> ModuleOp:
    """The module with its functions in one for the device and one for the CPU."""
    device: list[Operation] = []
    cpu: list[Operation] = []
    for op in module.body.block.ops:
        copy = op.clone()
        if not isinstance(copy, FuncOp) or not is_cpu_function(copy):
            device.append(copy)
            continue
        type_ = copy.function_type
        declaration = FuncOp(copy.sym_name.data, type_, Region(), "private")
        declaration.attributes[FUNCTION_TYPE] = StringAttr(f"{CPU_FUNCTION.data}_declaration")
        device.append(declaration)
        copy.sym_visibility = None
        cpu.append(copy)
    wrappers = [DeviceModuleOp(device), CPUModuleOp(cpu)]
    return ModuleOp(wrappers, dict(module.attributes), module.sym_name)
