"""Shared by the tests of EmitC: a function body built or parsed, printed as C++.

    print_body(lambda body: body.call_void("f"), parameters=[("x", "int32_t")])  -> ["f();"]
    print_parsed('"emitc.verbatim"() <{value = "x"}> : () -> ()', arguments="%a: i32")  -> ["x"]

Both give the lines between the braces of the function, without its indentation. `check_syntax`
runs the C++ compiler over a text and gives its messages.
"""

from __future__ import annotations

import shutil
import subprocess
import textwrap
from collections.abc import Callable, Sequence

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser

from ttcodegen.emitc.builder import EmitCBuilder, open_file
from ttcodegen.emitc.printer import print_module
from ttcodegen.emitc.statements import EmitC, verify

PrintBody = Callable[..., list[str]]


def parse(text: str) -> ModuleOp:
    """A module in generic syntax, with the ops of EmitC."""
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(EmitC)
    return Parser(context, text).parse_module()


def only_file(module: ModuleOp) -> str:
    """Verifies `module` and prints its one file."""
    verify(module)
    (text,) = print_module(module).values()
    return text


def body_lines(text: str) -> list[str]:
    """The lines between the first line that ends in a brace and the last brace."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.endswith("{"))
    return textwrap.dedent("\n".join(lines[first + 1 : -1])).splitlines()


@pytest.fixture
def print_body() -> PrintBody:
    def run(
        build: Callable[[EmitCBuilder], object],
        parameters: Sequence[tuple[str, str]] = (),
        result: str | None = None,
    ) -> list[str]:
        module = ModuleOp([])
        body = open_file(module, "src/f.cpp").function("f", parameters, result)
        build(body)
        if result is None:
            body.return_()
        return body_lines(only_file(module))

    return run


@pytest.fixture
def print_parsed() -> PrintBody:
    def run(operations: str, arguments: str = "", outside: str = "") -> list[str]:
        types = ", ".join(argument.split(":")[1] for argument in arguments.split(", ") if argument)
        return body_lines(
            only_file(
                parse(f"""
                "emitc.file"() <{{id = "src/f.cpp"}}> ({{
                  {outside}
                  "emitc.func"() <{{sym_name = "f", function_type = ({types}) -> ()}}> ({{
                  ^bb0({arguments}):
                    {operations}
                    "emitc.return"() : () -> ()
                  }}) : () -> ()
                }}) : () -> ()
                """)
            )
        )

    return run


@pytest.fixture(scope="session")
def check_syntax() -> Callable[[str], str]:
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")

    def run(text: str) -> str:
        options = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c++", "-"]
        done = subprocess.run(
            [compiler, *options], input=text, capture_output=True, text=True, check=False
        )
        return done.stderr

    return run
