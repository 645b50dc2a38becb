"""Parsing, printing and round trips of modules for the tests of dialects."""

from __future__ import annotations

import io

import pytest
from xdsl.dialects.builtin import ModuleOp

from ttcodegen.dialects.operations.verification import verify_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.parsing import parse_module
from ttcodegen.transforms.module_text import ModulePrinter


def parse(text: str) -> ModuleOp:
    """The module of a text that the parser takes."""
    return parse_module(Source("in.mlir", text))


def text_of(module: ModuleOp, *, generic: bool = False) -> str:
    """A module as MLIR."""
    stream = io.StringIO()
    ModulePrinter(stream, generic=generic).print_op(module)
    return stream.getvalue() + "\n"


def assert_round_trip(module: ModuleOp) -> None:
    """A module reads back as it is, from its generic and from its pretty form; only the order of
    properties is not determined by the pretty one."""
    module.verify()
    pretty, generic = text_of(module), text_of(module, generic=True)
    from_pretty, from_generic = parse(pretty), parse(generic)
    from_pretty.verify()
    from_generic.verify()
    assert text_of(from_pretty) == text_of(from_generic) == pretty
    assert text_of(from_generic, generic=True) == generic
    assert parse(text_of(from_pretty, generic=True)).is_structurally_equivalent(module)


def refusal(text: str) -> str:
    """The message, with its place, for a module that does not parse or does not verify."""
    source = Source("in.mlir", text)
    with pytest.raises(CompileError) as caught:
        verify_module(parse_module(source), "reading")
    return caught.value.render(source)
