"""Parsing of text to a module or an error message, for the tests of the parser."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp
from xdsl.ir import Operation

from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.parsing import check_supported, parse_module

T = "tensor<2x2xf32>"
"""The type of most values in the tests."""


def parse(text: str) -> ModuleOp:
    """The module of a text that the parser takes."""
    return parse_module(Source("in.mlir", text))


def body(*lines: str) -> str:
    """A function with an argument %a and these lines, returning %a."""
    inner = "\n".join(f"  {line}" for line in lines)
    return f"func.func @f(%a: {T}) -> {T} {{\n{inner}\n  return %a : {T}\n}}\n"


def operations(module: ModuleOp, name: str) -> list[Operation]:
    """All operations of a name, in order."""
    return [op for op in module.walk() if operation_name(op) == name]


def failure(text: str) -> str:
    """The message for a text that the parser or the check refuses."""
    source = Source("in.mlir", text)
    with pytest.raises(CompileError) as caught:
        check_supported(parse_module(source))
    return caught.value.render(source)


def constant(literal: str, type: str) -> DenseIntOrFPElementsAttr:
    """The attribute of a constant that is written as `dense<literal> : type`."""
    return constant_attribute(f"dense<{literal}> : {type}", type)


def constant_attribute(attribute: str, type: str) -> DenseIntOrFPElementsAttr:
    """The attribute of a constant."""
    text = body(f'%0 = "ttir.constant"() <{{value = {attribute}}}> : () -> {type}')
    value = operations(parse(text), "ttir.constant")[0].properties["value"]
    assert isinstance(value, DenseIntOrFPElementsAttr)
    return value
