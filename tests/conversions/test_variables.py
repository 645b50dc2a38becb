"""Assignment of values to variables, and deallocation after their last use."""

from __future__ import annotations

import re

import pytest
from xdsl.dialects.builtin import i32
from xdsl.ir import Block

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.conversions.host_functions.variables import Usage, plan_variables
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.naming.values import ValueNames

TENSOR = "tensor<32x32xf32>"


def body(lines: str, arguments: str = f"%x: {TENSOR}", result: str = TENSOR) -> list[str]:
    """The statements of a function, without the types of its variables."""
    text = f"func.func @f({arguments}) -> ({result}) {{\n{lines}\n}}"
    source = compile_module(Source("test.mlir", text), CompileOptions("model")).files
    cpp = source["src/model.cpp"].partition("\nFOutputs f(")[2]
    statements = re.findall(r"^    (.*)$", cpp, re.MULTILINE)
    return [re.sub(r"ttnn::(Tensor )?", "", statement) for statement in statements[:-1]]


def op(name: str, *operands: str, type_: str = TENSOR) -> str:
    types = ", ".join([type_] * len(operands))
    return f'"ttir.{name}"({", ".join(operands)}) : ({types}) -> {type_}'


def test_a_value_that_is_its_operand_in_another_form_takes_its_place():
    lines = f"""
      %h = {op("exp", "%x")}
      %1 = {op("relu", "%h")}
      %2 = {op("sin", "%1")}
      return %2 : {TENSOR}"""
    assert body(lines) == [
        "h = exp(inputs.x);",
        "h = relu(h);",
        "sine = sin(h);",
    ]


def test_a_value_that_is_still_used_keeps_its_variable():
    lines = f"""
      %h = {op("exp", "%x")}
      %1 = {op("relu", "%h")}
      %2 = {op("multiply", "%h", "%1")}
      return %2 : {TENSOR}"""
    assert body(lines) == [
        "h = exp(inputs.x);",
        "h_relu = relu(h);",
        "product = multiply(h, h_relu);",
    ]


def test_a_tensor_goes_after_its_last_use():
    lines = f"""
      %a = {op("exp", "%x")}
      %b = {op("sin", "%x")}
      %c = {op("multiply", "%a", "%b")}
      %d = {op("cos", "%c")}
      return %d : {TENSOR}"""
    assert body(lines)[2:] == ["c = multiply(last_use(a), last_use(b));", "d = cos(c);"]


def test_a_tensor_that_is_used_twice_at_last_goes_after_the_statement():
    lines = f"""
      %a = {op("exp", "%x")}
      %b = {op("multiply", "%a", "%a")}
      %c = {op("sin", "%b")}
      return %c : {TENSOR}"""
    assert body(lines)[1:] == ["b = multiply(a, a);", "a = Tensor();", "c = sin(b);"]


def test_what_the_source_calls_after_its_ops_gets_the_name_of_a_role():
    lines = f"""
      %matmul_3 = {op("matmul", "%q", "%k")}
      %softmax_4 = "ttir.softmax"(%matmul_3) <{{dimension = -1 : si32}}>
        : ({TENSOR}) -> {TENSOR}
      %matmul_5 = {op("matmul", "%softmax_4", "%v")}
      %sin_6 = {op("sin", "%matmul_5")}
      return %sin_6 : {TENSOR}"""
    arguments = ", ".join(f"%{name}: {TENSOR}" for name in "qkv")
    named = [line.partition(" = ")[0] for line in body(lines, arguments)]
    assert named[-4:] == ["scores", "probabilities", "attention", "sine"]


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_no_name_of_a_pass_is_in_the_code(target: str):
    text = f"""
    func.func @f(%x: {TENSOR}) -> {TENSOR} {{
      %total = {op("add", "%x", "%x")}
      %0 = "ttir.softmax"(%total) <{{dimension = -1 : si32}}> : ({TENSOR}) -> {TENSOR}
      return %0 : {TENSOR}
    }}"""
    files = compile_module(Source("t.mlir", text), CompileOptions("model", target)).files
    assert not any("composite" in file for path, file in files.items() if "src/" in path)


@pytest.mark.parametrize("is_used_later", [False, True])
def test_results_of_a_call_are_assigned_to_the_variables_of_what_they_replace(is_used_later: bool):
    hidden, cell, next_hidden, next_cell = Block(arg_types=[i32] * 4).args
    titles = {hidden: "hidden", cell: "cell", next_hidden: "hidden", next_cell: "cell"}
    returned = (next_hidden, next_cell, *([cell] if is_used_later else []))
    usages = [
        Usage((), (hidden, cell), takes_over=True),
        Usage((hidden, cell), (next_hidden, next_cell), takes_over=True),
    ]
    names = ValueNames([], titles, {}, {})
    first, second = plan_variables(usages, names, lambda _: "Tensor", returned=returned)
    assert first.declared == {hidden: "hidden", cell: "cell"}
    if is_used_later:
        assert second.assigned == {next_hidden: "hidden"}
        assert second.declared == {next_cell: "cell_2"}
        assert second.moved == {hidden}
    else:
        assert second.assigned == {next_hidden: "hidden", next_cell: "cell"}
        assert second.replaced == {next_hidden: hidden, next_cell: cell}
        assert second.moved == {hidden, cell}


def test_results_that_nothing_uses_leave_their_variables():
    """The fields of the constants hold them."""
    weight, bias, next_weight, next_bias = values = Block(arg_types=[i32] * 4).args
    names = ValueNames([], dict(zip(values, ["weight", "bias"] * 2, strict=True)), {}, {})
    usages = [
        Usage((), (weight, bias), takes_over=True),
        Usage((), (next_weight, next_bias), takes_over=True),
    ]
    _, second = plan_variables(usages, names, lambda _: "Tensor")
    assert second.assigned == {next_weight: "weight", next_bias: "bias"}
    assert not second.moved
