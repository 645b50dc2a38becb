"""What the tests of dialects share: text to module and back."""

from __future__ import annotations

import io

import pytest
from xdsl.dialects.builtin import ModuleOp

from ttcodegen.diagnostics import CompileError, Source
from ttcodegen.parsing import parse_module
from ttcodegen.transforms.module_text import ModulePrinter
from ttcodegen.transforms.pass_runner import verify_located


def parse(text: str) -> ModuleOp:
    """The module of a text that the parser takes."""
    return parse_module(Source("in.mlir", text))


def text_of(module: ModuleOp, *, generic: bool = False) -> str:
    """A module as MLIR."""
    stream = io.StringIO()
    ModulePrinter(stream, generic=generic).print_op(module)
    return stream.getvalue() + "\n"


def assert_round_trip(module: ModuleOp) -> None:
    """A module reads back as it is, from its generic and from its pretty form."""
    module.verify()
    pretty, generic = text_of(module), text_of(module, generic=True)
    for text in (pretty, generic):
        again = parse(text)
        again.verify()
        assert text_of(again) == pretty
        assert text_of(again, generic=True) == generic


def refusal(text: str) -> str:
    """The message, with its place, for a module that does not parse or does not verify."""
    source = Source("in.mlir", text)
    with pytest.raises(CompileError) as caught:
        verify_located(parse_module(source), "reading")
    return caught.value.render(source)
