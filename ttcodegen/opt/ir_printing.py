"""Prints the module between passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from ttcodegen.opt.command_line import Request

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass


@dataclass
class IRPrinting:
    """Writes the module around the passes that a request names, under headings like MLIR's."""

    request: Request
    text_of: Callable[[ModuleOp], str]
    stream: TextIO
    _before: str | None = None

    @classmethod
    def of(
        cls, request: Request, text_of: Callable[[ModuleOp], str], stream: TextIO
    ) -> IRPrinting | None:
        """What prints as the request asks for, None if it does not."""
        asked = (
            request.mlir_print_ir_before_all
            or request.mlir_print_ir_after_all
            or request.mlir_print_ir_after_change
            or request.mlir_print_ir_after_failure
            or request.mlir_print_ir_before
            or request.mlir_print_ir_after
        )
        return cls(request, text_of, stream) if asked else None

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called before a pass runs."""
        if self.request.mlir_print_ir_after_change:
            self._before = self.text_of(module)
        if self.request.mlir_print_ir_before_all or pass_.name in self.request.mlir_print_ir_before:
            self._write("Before", pass_, self.text_of(module))

    def after(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called after a pass ran."""
        named = pass_.name in self.request.mlir_print_ir_after
        every = self.request.mlir_print_ir_after_all or (
            self.request.mlir_print_ir_after_change and not self.request.mlir_print_ir_after
        )
        if not (named or every):
            return
        text = self.text_of(module)
        if text != self._before:
            self._write("After", pass_, text)

    def failed(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called when a pass failed."""
        request = self.request
        if request.mlir_print_ir_after_failure or request.mlir_print_ir_after_all:
            self._write("After", pass_, self.text_of(module), " Failed")

    def _write(self, when: str, pass_: ModulePass, text: str, how: str = "") -> None:
        title = f"IR Dump {when} {type(pass_).__name__} ({pass_.name}){how}"
        self.stream.write(f"// -----// {title} //----- //\n{text}\n")
