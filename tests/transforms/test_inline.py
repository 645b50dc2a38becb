from __future__ import annotations

import pytest

from tests.transforms.programs import apply, operations
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.parsing import parse_module
from ttcodegen.transforms.functions import InlinePass

T = "tensor<2xf32>"


def function(name: str, *lines: str, result: str = "%a", visibility: str = "") -> str:
    body = "\n".join(lines)
    return f"func.func {visibility} @{name}(%a: {T}) -> {T} {{\n{body}\nreturn {result} : {T}\n}}\n"


def call(result: str, name: str, operand: str = "%a") -> str:
    return f"{result} = func.call @{name}({operand}) : ({T}) -> {T}"


def unary(result: str, name: str, operand: str = "%a") -> str:
    return f'{result} = "ttir.{name}"({operand}) : ({T}) -> {T}'


def parse(*functions: str) -> object:
    return parse_module(Source("in.mlir", "".join(functions)))


def test_calls_of_calls_are_put_into_the_entry() -> None:
    module = parse(
        function("main", call("%0", "outer"), call("%1", "outer", "%0"), result="%1"),
        function("outer", call("%0", "inner"), unary("%1", "neg", "%0"), result="%1",
                 visibility="private"),
        function("inner", unary("%0", "exp"), result="%0", visibility="private"),
    )  # fmt: skip
    places = {op.name: op.source_offset for op in module.walk() if op.name.startswith("ttir")}
    result = apply(module, InlinePass())
    assert result.names == ["exp", "neg", "exp", "neg"]
    assert {op.name: op.source_offset for op in result.ops} == places


def test_a_public_function_stays_and_is_inlined_too() -> None:
    module = parse(
        function("main", call("%0", "other"), result="%0"),
        function("other", unary("%0", "exp"), result="%0"),
    )
    apply(module, InlinePass())
    names = [op.sym_name.data for op in operations(module, "func.func")]
    assert names == ["main", "other"]
    assert operations(module, "func.call") == []
    assert len(operations(module, "ttir.exp")) == 2


def test_a_callee_that_returns_its_argument() -> None:
    module = parse(
        function("main", call("%0", "same"), unary("%1", "exp", "%0"), result="%1"),
        function("same", visibility="private"),
    )
    assert apply(module, InlinePass()).names == ["exp"]


@pytest.mark.parametrize("direct", [True, False])
def test_recursion_is_refused(direct: bool) -> None:
    source = Source(
        "in.mlir",
        function("main", call("%0", "f"), result="%0")
        + function("f", call("%0", "f" if direct else "g"), result="%0", visibility="private")
        + function("g", call("%0", "f"), result="%0", visibility="private"),
    )
    with pytest.raises(CompileError) as error:
        apply(parse_module(source), InlinePass())
    line = 6 if direct else 10
    assert error.value.render(source).startswith(f"in.mlir:{line}:")
    assert "calls itself" in error.value.render(source)


def test_a_long_chain_of_calls_is_no_recursion() -> None:
    count = 1500
    functions = [
        function(f"f{i}", call("%0", f"f{i + 1}"), result="%0", visibility="private")
        for i in range(count)
    ]
    functions.append(function(f"f{count}", unary("%0", "exp"), result="%0", visibility="private"))
    module = parse(function("main", call("%0", "f0"), result="%0"), *functions)
    assert apply(module, InlinePass()).names == ["exp"]
