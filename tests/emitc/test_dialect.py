"""The ops: generic syntax there and back, and what their verifiers refuse."""

from __future__ import annotations

import io
import shutil
import subprocess

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from tests.emitc.conftest import parse
from ttcodegen.emitc.statements import EmitC, verify
from ttcodegen.foundation.diagnostics import CompileError

# One of each op, as upstream's parser and verifiers take it.
EVERY_OP = """
"builtin.module"() ({
  "emitc.file"() <{id = "src/model.cpp"}> ({
    "emitc.include"() <{include = "cstdint", is_standard_include}> : () -> ()
    "emitc.include"() <{include = "model.hpp"}> : () -> ()
    "emitc.verbatim"() <{value = "// text"}> : () -> ()
    "emitc.global"() <{sym_name = "table", type = !emitc.array<2xi32>,
        initial_value = dense<[1, 2]> : tensor<2xi32>, static_specifier, const_specifier}>
        : () -> ()
    "emitc.global"() <{sym_name = "shared", type = i32, extern_specifier}> : () -> ()
    "emitc.class"() <{sym_name = "Counter", class_type = 0 : i32, final_specifier}> ({
      "emitc.field"() <{sym_name = "count", type = i32, initial_value = 0 : i32}> : () -> ()
      "emitc.func"() <{sym_name = "next", function_type = () -> i32}> ({
        %count = "emitc.get_field"() <{field_name = @count}> : () -> i32
        "emitc.return"(%count) : (i32) -> ()
      }) : () -> ()
    }) : () -> ()
    "emitc.func"() <{sym_name = "callee", function_type = (i32) -> i32,
        arg_attrs = [{ttcodegen.name = "x"}], specifiers = ["extern"]}> ({}) : () -> ()
    "emitc.declare_func"() <{sym_name = @all}> : () -> ()
    "emitc.func"() <{sym_name = "all", function_type = (i32, i1,
        !emitc.opaque<"const Inputs&">, !emitc.ptr<i32>) -> i32}> ({
    ^bb0(%a: i32, %c: i1, %inputs: !emitc.opaque<"const Inputs&">, %p: !emitc.ptr<i32>):
      %one = "emitc.constant"() <{value = 1 : i32}> : () -> i32
      %pi = "emitc.literal"() <{value = "M_PI"}> : () -> f32
      %v = "emitc.variable"() <{value = #emitc.opaque<"">}>
          : () -> !emitc.lvalue<!emitc.opaque<"Inputs">>
      %q = "emitc.variable"() <{value = #emitc.opaque<"&v">}>
          : () -> !emitc.lvalue<!emitc.ptr<!emitc.opaque<"Inputs">>>
      %m = "emitc.member"(%v) <{member = "x"}>
          : (!emitc.lvalue<!emitc.opaque<"Inputs">>) -> !emitc.lvalue<i32>
      %n = "emitc.member_of_ptr"(%q) <{member = "x"}>
          : (!emitc.lvalue<!emitc.ptr<!emitc.opaque<"Inputs">>>) -> !emitc.lvalue<i32>
      %x = "emitc.member"(%inputs) <{member = "x"}> : (!emitc.opaque<"const Inputs&">) -> i32
      %l = "emitc.load"(%m) : (!emitc.lvalue<i32>) -> i32
      %adr = "emitc.address_of"(%n) : (!emitc.lvalue<i32>) -> !emitc.ptr<i32>
      %d = "emitc.dereference"(%adr) : (!emitc.ptr<i32>) -> !emitc.lvalue<i32>
      "emitc.assign"(%d, %l) : (!emitc.lvalue<i32>, i32) -> ()
      %t = "emitc.get_global"() <{name = @table}> : () -> !emitc.array<2xi32>
      %e = "emitc.subscript"(%t, %one) : (!emitc.array<2xi32>, i32) -> !emitc.lvalue<i32>
      %s = "emitc.subscript"(%p, %a) : (!emitc.ptr<i32>, i32) -> !emitc.lvalue<i32>
      %0 = "emitc.add"(%a, %one) : (i32, i32) -> i32
      %1 = "emitc.sub"(%a, %0) : (i32, i32) -> i32
      %2 = "emitc.mul"(%a, %1) : (i32, i32) -> i32
      %3 = "emitc.div"(%a, %2) : (i32, i32) -> i32
      %4 = "emitc.rem"(%a, %3) : (i32, i32) -> i32
      %5 = "emitc.bitwise_and"(%a, %4) : (i32, i32) -> i32
      %6 = "emitc.bitwise_or"(%a, %5) : (i32, i32) -> i32
      %7 = "emitc.bitwise_xor"(%a, %6) : (i32, i32) -> i32
      %8 = "emitc.bitwise_left_shift"(%a, %7) : (i32, i32) -> i32
      %9 = "emitc.bitwise_right_shift"(%a, %8) : (i32, i32) -> i32
      %10 = "emitc.bitwise_not"(%9) : (i32) -> i32
      %11 = "emitc.unary_minus"(%10) : (i32) -> i32
      %12 = "emitc.unary_plus"(%11) : (i32) -> i32
      %13 = "emitc.cmp"(%a, %12) <{predicate = 2 : i64}> : (i32, i32) -> i1
      %14 = "emitc.logical_and"(%c, %13) : (i1, i1) -> i1
      %15 = "emitc.logical_or"(%c, %14) : (i1, i1) -> i1
      %16 = "emitc.logical_not"(%15) : (i1) -> i1
      %17 = "emitc.conditional"(%16, %a, %12) : (i1, i32, i32) -> i32
      %18 = "emitc.cast"(%17) : (i32) -> f32
      %19 = "emitc.expression"(%a, %17) ({
      ^bb1(%y: i32, %z: i32):
        %sum = "emitc.add"(%y, %z) : (i32, i32) -> i32
        "emitc.yield"(%sum) : (i32) -> ()
      }) : (i32, i32) -> i32
      %20 = "emitc.call"(%19) <{callee = @callee}> : (i32) -> i32
      %21, %22 = "emitc.call_opaque"(%20) <{callee = "pair",
          args = [0 : index, #emitc.opaque<"std::nullopt">, 2.0 : f32],
          template_args = [i32, 3 : i32, #emitc.opaque<"T">]}> {ttcodegen.names = ["p", "q"]}
          : (i32) -> (i32, i32)
      "emitc.verbatim"(%21, %pi) <{value = "use({}, {});"}> : (i32, f32) -> ()
      "emitc.if"(%c) ({
        "emitc.yield"() : () -> ()
      }, {
        "emitc.yield"() : () -> ()
      }) : (i1) -> ()
      "emitc.for"(%a, %22, %one) ({
      ^bb2(%i: i32):
        "emitc.yield"() : () -> ()
      }) : (i32, i32, i32) -> ()
      "emitc.do"() ({
        "emitc.assign"(%m, %a) : (!emitc.lvalue<i32>, i32) -> ()
      }, {
        %again = "emitc.expression"(%m, %a) ({
        ^bb3(%y: !emitc.lvalue<i32>, %z: i32):
          %now = "emitc.load"(%y) : (!emitc.lvalue<i32>) -> i32
          %less = "emitc.cmp"(%now, %z) <{predicate = 2 : i64}> : (i32, i32) -> i1
          "emitc.yield"(%less) : (i1) -> ()
        }) : (!emitc.lvalue<i32>, i32) -> i1
        "emitc.yield"(%again) : (i1) -> ()
      }) : () -> ()
      "emitc.switch"(%a) <{cases = array<i64: 2, 5>}> ({
        "emitc.yield"() : () -> ()
      }, {
        "emitc.yield"() : () -> ()
      }, {
        "emitc.yield"() : () -> ()
      }) : (i32) -> ()
      "emitc.return"(%22) : (i32) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
"""


def generic_text(module: ModuleOp) -> str:
    stream = io.StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    return stream.getvalue()


def test_the_example_has_every_op() -> None:
    used = {op.name for op in parse(EVERY_OP).walk()} - {"builtin.module"}
    assert used == {op.name for op in EmitC.operations}


def test_generic_syntax_there_and_back() -> None:
    module = parse(EVERY_OP)
    verify(module)
    text = generic_text(module)
    again = parse(text)
    assert module.is_structurally_equivalent(again)
    assert generic_text(again) == text


def test_upstream_takes_the_generic_syntax() -> None:
    oracle = shutil.which("mlir-opt") or shutil.which("iree-opt")
    if oracle is None:
        pytest.skip("there is no mlir-opt on this machine")
    command = [oracle, "--allow-unregistered-dialect", "--mlir-print-op-generic"]
    done = subprocess.run(
        command, input=generic_text(parse(EVERY_OP)), capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    verify(parse(done.stdout))


def in_function(operations: str, arguments: str = "") -> str:
    types = ", ".join(argument.split(":")[1] for argument in arguments.split(", ") if argument)
    return f"""
    "emitc.func"() <{{sym_name = "f", function_type = ({types}) -> ()}}> ({{
    ^bb0({arguments}):
      {operations}
      "emitc.return"() : () -> ()
    }}) : () -> ()
    """


@pytest.mark.parametrize(
    ("operations", "arguments", "message"),
    [
        (
            '%0 = "emitc.cmp"(%a, %a) <{predicate = 7 : i64}> : (i32, i32) -> i1',
            "%a: i32",
            "predicate 7 is not one of 0 to 6",
        ),
        (
            '%0 = "emitc.conditional"(%c, %a, %b) : (i1, i32, f32) -> i32',
            "%c: i1, %a: i32, %b: f32",
            "both values and the result need one type, found i32, f32 and i32",
        ),
        (
            '%0 = "emitc.constant"() <{value = 1 : i64}> : () -> i32',
            "",
            "the value is of type i64, the result of i32",
        ),
        (
            '%0 = "emitc.literal"() <{value = ""}> : () -> i32',
            "",
            "the value must not be empty",
        ),
        (
            '"emitc.call_opaque"() <{callee = ""}> : () -> ()',
            "",
            "the callee must not be empty",
        ),
        (
            '"emitc.call_opaque"(%a) <{callee = "f", args = [1 : index]}> : (i32) -> ()',
            "%a: i32",
            "args names operand 1, there are 1",
        ),
        (
            '"emitc.call_opaque"() <{callee = "f", template_args = ["T"]}> : () -> ()',
            "",
            "cannot be a template argument",
        ),
        (
            '%0 = "emitc.variable"() <{value = 0 : i32}> : () -> !emitc.lvalue<i32>\n'
            '%1 = "emitc.load"(%0) : (!emitc.lvalue<i32>) -> f32',
            "",
            "the lvalue holds i32, the result is f32",
        ),
        (
            '%0 = "emitc.variable"() <{value = 0 : i32}> : () -> !emitc.lvalue<i32>\n'
            '"emitc.assign"(%0, %a) : (!emitc.lvalue<i32>, f32) -> ()',
            "%a: f32",
            "a value of f32 is assigned to a variable of i32",
        ),
        (
            '%0 = "emitc.member"(%a) <{member = "x"}> : (!emitc.opaque<"S">) -> !emitc.lvalue<i32>',
            '%a: !emitc.opaque<"S">',
            "the member of a value is a value",
        ),
        (
            '%0 = "emitc.subscript"(%a, %i, %i)'
            " : (!emitc.ptr<i32>, i32, i32) -> !emitc.lvalue<i32>",
            "%a: !emitc.ptr<i32>, %i: i32",
            "takes 1 indices, found 2",
        ),
        (
            '"emitc.verbatim"(%a) <{value = "{} {}"}> : (i32) -> ()',
            "%a: i32",
            "the text has 2 places for 1 operands",
        ),
        (
            '"emitc.switch"(%a) <{cases = array<i64: 1, 1>}> ({"emitc.yield"() : () -> ()},'
            ' {"emitc.yield"() : () -> ()}, {"emitc.yield"() : () -> ()}) : (i32) -> ()',
            "%a: i32",
            "a case occurs twice",
        ),
        (
            '"emitc.for"(%a, %a, %a) ({"emitc.yield"() : () -> ()}) : (i32, i32, i32) -> ()',
            "%a: i32",
            "the one argument of the body need the same type",
        ),
        (
            '%0 = "emitc.expression"() ({"emitc.yield"() : () -> ()}) : () -> i32',
            "",
            "the body must end in a yield of one value",
        ),
        (
            '%0 = "emitc.expression"(%a) ({"emitc.yield"(%a) : (i32) -> ()}) : (i32) -> i32',
            "%a: i32",
            "the body takes 0 values, the op has 1 operands",
        ),
        (
            '"emitc.add"(%a) : (i32) -> ()',
            "%a: i32",
            "the EmitC module is malformed",
        ),
    ],
)
def test_verifiers(operations: str, arguments: str, message: str) -> None:
    module = parse(in_function(operations, arguments))
    with pytest.raises(CompileError) as error:
        verify(module)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '"emitc.func"() <{sym_name = "f", function_type = () -> (i32, i32)}> ({}) : () -> ()',
            "a function returns one value, found 2",
        ),
        (
            '"emitc.func"() <{sym_name = "f", function_type = () -> i32}> ({'
            ' "emitc.return"() : () -> () }) : () -> ()',
            "returns (), the function's type says (i32)",
        ),
        (
            '"emitc.func"() <{sym_name = "f", function_type = (!emitc.lvalue<i32>) -> ()}> ({})'
            " : () -> ()",
            "an argument is an lvalue",
        ),
        (
            '"emitc.global"() <{sym_name = "x", type = i32, extern_specifier, static_specifier}>'
            " : () -> ()",
            "cannot be both extern and static",
        ),
    ],
)
def test_verifiers_of_definitions(text: str, message: str) -> None:
    with pytest.raises(CompileError) as error:
        verify(parse(text))
    assert message in str(error.value)
