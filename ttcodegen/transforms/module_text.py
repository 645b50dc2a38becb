"""Printing of modules as MLIR."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    DenseIntOrFPElementsAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, Region
from xdsl.printer import Printer

from ttcodegen.dialects.operations.functions import CPU_FUNCTION, FUNCTION_TYPE, is_cpu_function
from ttcodegen.dialects.ttcore.dialect import CPUModuleOp, DeviceModuleOp, SystemDescAttr
from ttcodegen.dialects.ttcore.layouts import MetalLayoutAttr
from ttcodegen.dialects.ttcore.tile import IteratorTypeAttr, MemorySpaceAttr
from ttcodegen.dialects.ttnn.placement import TTNNLayoutAttr, buffer_type_text, layout_text

if TYPE_CHECKING:
    from collections.abc import Generator

_HEXADECIMAL_ABOVE = 100
"""Element count above which constants are printed as bytes, as MLIR does."""

ELIDED_ELEMENTS = 256
"""Element count above which constants are elided in texts for people."""

_ALIASES: dict[type[Attribute], Callable[[Any], str]] = {
    TTNNLayoutAttr: lambda layout: "ttnn_layout",
    MetalLayoutAttr: lambda layout: "layout",
    SystemDescAttr: lambda system: "system_desc",
    MemorySpaceAttr: lambda space: space.data.value,
    IteratorTypeAttr: lambda iterator: iterator.data.value,
    AffineMapAttr: lambda map_: "map",
}
"""Names of attribute aliases, as the tools of tt-mlir print them."""

_SHORT_TEXTS: frozenset[type[Attribute]] = frozenset({TensorType, *_ALIASES})
"""Attributes that occur often, whose text is cached."""


class ModulePrinter(Printer):
    """Prints MLIR that parses again, with constant data printed fast.

    `elide_above` elides constants of more elements: such text is for people and cannot be parsed.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        elide_above: int | None = None,
        generic: bool = False,
        locations: bool = False,
        aliases: bool = False,
    ) -> None:
        super().__init__(stream, print_generic_format=generic, print_debuginfo=locations)
        self._elide_above = elide_above
        self._with_aliases = aliases
        self._aliases: dict[str, str] = {}
        self._uses: dict[str, int] = {}
        self._texts: dict[int, tuple[Attribute, str]] = {}
        """Attribute and its text by the id of the attribute; the reference keeps the id valid."""

    def alias_definitions(self) -> str:
        """Returns the definitions of the aliases used so far, in order of dependence."""
        return "".join(f"{alias} = {text}\n" for text, alias in self._aliases.items())

    def print_attribute(self, attribute: Attribute) -> None:
        if not self._with_aliases or type(attribute) not in _SHORT_TEXTS:
            self._print_attribute(attribute)
            return
        known = self._texts.get(id(attribute))
        if known is None:
            known = self._texts[id(attribute)] = attribute, self._text(attribute)
        self.print_string(known[1])

    def _text(self, attribute: Attribute) -> str:
        """Returns the text of a type, or the alias of an attribute."""
        if isinstance(attribute, TTNNLayoutAttr):
            memory = self._alias(attribute.data.buffer_type, buffer_type_text(attribute.data))
            text = f"#{attribute.name}{layout_text(attribute.data, memory)}"
        else:
            with self._captured() as stream:
                self._print_attribute(attribute)
            text = stream.getvalue()
        stem = _ALIASES.get(type(attribute))
        return text if stem is None else self._alias(stem(attribute), text)

    def _alias(self, stem: str, text: str) -> str:
        """Returns the alias for the text of an attribute; the first of a stem has no number."""
        if (known := self._aliases.get(text)) is not None:
            return known
        # As in MLIR, an underscore separates the number from a stem that ends with a digit.
        stem = f"{stem}_" if stem[-1].isdigit() else stem
        uses = self._uses[stem] = self._uses.get(stem, 0) + 1
        alias = self._aliases[text] = f"#{stem}{uses - 1 or ''}"
        return alias

    @contextmanager
    def _captured(self) -> Generator[io.StringIO]:
        """Redirects printing to a string stream."""
        stream, self.stream = self.stream, io.StringIO()
        try:
            yield self.stream
        finally:
            self.stream = stream

    def _print_attribute(self, attribute: Attribute) -> None:
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
    """Returns the elements as MLIR encodes them: booleans are packed, the first in the lowest
    bit."""
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
    """Returns the module as MLIR, with aliases of layouts, memories, affine maps and the system.

    Constants of more elements than `elide_above` are elided. CPU functions are printed in a module
    of their own, beside the device module, which declares them.
    """
    if any(isinstance(op, FuncOp) and is_cpu_function(op) for op in module.body.block.ops):
        module = _split_by_device(module)
    stream = io.StringIO()
    printer = ModulePrinter(
        stream, elide_above=elide_above, generic=generic, locations=locations, aliases=True
    )
    printer.print_op(module)
    return f"{printer.alias_definitions()}{stream.getvalue()}\n"


def _split_by_device(module: ModuleOp) -> ModuleOp:
    """Returns a copy of the module with a device module and a CPU module."""
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
