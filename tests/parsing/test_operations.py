"""Operations, values and regions."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.utils.exceptions import VerifyException

from tests.parsing.reading import T, body, failure, operations, parse
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import source_offset

ADD = f'"ttir.add"(%a, %a) : ({T}, {T}) -> {T}'


def test_registered_operations_are_those_of_the_catalogue() -> None:
    (op,) = operations(parse(body(f"%0 = {ADD}")), "ttir.add")
    assert isinstance(op, CatalogueOp)
    assert op.definition.name == "ttir.add"


@pytest.mark.parametrize(
    "line",
    [
        f"%0 = {ADD}",
        f"%0={ADD}",
        f'%0 = "ttir.add" ( %a , %a ) : ({T}, {T}) -> {T}',
        f'%0 = // a comment\n "ttir.add"(%a, // and one\n %a) : ({T}, // here (\n {T}) -> {T}',
        f'%0 = "ttir.add"(%a, %a) : ({T}, {T}) -> ({T})',
        f'%0:1 = "ttir.add"(%a, %a#0) : ({T}, {T}) -> {T}',
    ],
)
def test_spacing_and_comments_do_not_matter(line: str) -> None:
    text = body(line, '%1 = "ttir.neg"(%0) : (tensor<2x2xf32>) -> tensor<2x2xf32>')
    module = parse(text)
    (add,), (neg,) = operations(module, "ttir.add"), operations(module, "ttir.neg")
    assert len(add.operands) == 2
    assert neg.operands[0].owner is add


def test_operations_know_where_they_stand() -> None:
    text = body(f"%0 = {ADD}", f"%1 = ttir.empty() : {T}")
    module = parse(text)
    for name, written in (
        ("ttir.add", '"ttir.add"'),
        ("ttir.empty", "ttir.empty"),
        ("func.func", "func.func"),
        ("func.return", "return"),
    ):
        assert source_offset(operations(module, name)[0]) == text.index(written)
    (function,) = operations(module, "func.func")
    assert source_offset(function.regions[0].block.args[0]) == text.index("%a")
    assert source_offset(operations(module, "ttir.add")[0].results[0]) == text.index('"ttir.add"')


def test_several_results() -> None:
    text = body(
        f'%0:2, %x = "ttir.x"(%a) : ({T}) -> ({T}, tensor<1xi32>, tensor<2xi32>)',
        f'"ttir.y"(%0#0, %0#1, %x) : ({T}, tensor<1xi32>, tensor<2xi32>) -> ()',
    )
    (use,) = operations(parse(text), "ttir.y")
    assert [operand.index for operand in use.operands] == [0, 1, 2]


def test_names_of_values_are_kept_as_hints() -> None:
    named, numbered = operations(parse(body(f"%scores = {ADD}", f"%1 = {ADD}")), "ttir.add")
    assert named.results[0].name_hint == "scores"
    assert numbered.results[0].name_hint is None


def test_functions_call_each_other() -> None:
    module = parse(
        f"func.func @main(%a: {T}) -> {T} {{\n  %0 = call @late(%a) : ({T}) -> {T}\n"
        f"  %1 = func.call @late(%0) : ({T}) -> {T}\n  return %1 : {T}\n}}\n"
        f"func.func private @late(%a: {T}) -> {T} {{\n  return %a : {T}\n}}\n"
    )
    calls = [op for op in module.walk() if isinstance(op, CallOp)]
    assert [call.callee.string_value() for call in calls] == ["late", "late"]
    assert [op.sym_name.data for op in module.body.ops if isinstance(op, FuncOp)] == [
        "main",
        "late",
    ]


def test_functions_in_generic_form() -> None:
    module = parse(
        '"builtin.module"() ({\n'
        f'  "func.func"() <{{function_type = ({T}) -> {T}, sym_name = "f"}}> ({{\n'
        f'  ^bb0(%a: {T} loc("x")):\n    "func.return"(%a) : ({T}) -> ()\n  }}) : () -> ()\n'
        "}) {n = 1 : i32} : () -> ()\n"
    )
    (function,) = operations(module, "func.func")
    assert isinstance(function, FuncOp)
    assert function.sym_name.data == "f"
    assert "n" in module.attributes


def test_properties_in_the_attribute_dictionary() -> None:
    module = parse(
        f'"func.func"() ({{\n^bb0(%a: {T}):\n  %0 = "ttir.softmax"(%a) {{dimension = 1 : si32, x}} '
        f': ({T}) -> {T}\n  "func.return"(%a) : ({T}) -> ()\n}}) '
        f'{{function_type = ({T}) -> {T}, sym_name = "f"}} : () -> ()'
    )
    (function,), (softmax,) = operations(module, "func.func"), operations(module, "ttir.softmax")
    assert list(function.properties) == ["function_type", "sym_name"]
    assert list(softmax.properties) == ["dimension"]
    assert list(softmax.attributes) == ["x"]


def test_segments_divide_all_operands() -> None:
    sizes = "<{operandSegmentSizes = array<i32: 1, 1, 1>}>"
    module = parse(body(f'%0 = "ttir.linear"(%a, %a) {sizes} : ({T}, {T}) -> {T}'))
    with pytest.raises(VerifyException, match="1, 1, 1, but there are 2 operands"):
        module.verify()


def test_graph_regions_of_unknown_operations_may_use_later_values() -> None:
    text = (
        '"x.graph"() ({\n  "x.use"(%1) : (i32) -> ()\n  %1 = "x.make"() : () -> i32\n}) : () -> ()'
    )
    module = parse(f"module {{\n{text}\n}}")
    assert operations(module, "x.use")[0].operands[0].owner is operations(module, "x.make")[0]


@pytest.mark.parametrize(
    ("line", "op_name", "operands", "attributes"),
    [
        (f"%0 = ttir.empty() : {T}", "ttir.empty", 0, []),
        (f"%0 = ttir.empty() {{x = 1}} : {T}", "ttir.empty", 0, ["x"]),
        (f"%0 = tensor.empty() : {T}", "ttir.empty", 0, []),
        (f"%0 = tensor.empty() : () -> {T}", "ttir.empty", 0, []),
        (f"%0 = ttir.to_layout %a, %a : {T} into {T} -> {T}", "ttir.to_layout", 2, []),
        (
            f"%0 = ttir.to_layout %a, %a : {T} into {T} hostInfo = #x.y<1> {{z}} -> {T}",
            "ttir.to_layout",
            2,
            ["layout", "z"],
        ),
        (
            f"%0 = ttir.ttnn_metal_layout_cast %a {{x}} : {T} -> {T}",
            "ttir.ttnn_metal_layout_cast",
            1,
            ["x"],
        ),
    ],
)
def test_custom_forms(line: str, op_name: str, operands: int, attributes: list[str]) -> None:
    text = body(line, f'"ttir.use"(%0) : ({T}) -> ()')
    module = parse(text)
    (op,) = operations(module, op_name)
    assert operations(module, "ttir.use")[0].operands[0].owner is op
    assert len(op.operands) == operands
    assert [n for n in (*op.properties, *op.attributes) if n != "op_name__"] == attributes


# Values


def test_undefined_values_are_all_reported_at_their_first_use() -> None:
    message = failure(
        body(
            f'%0 = "ttir.add"(%a, %b) : ({T}, {T}) -> {T}',
            f'%1 = "ttir.add"(%c, %b) : ({T}, {T}) -> {T}',
        )
    )
    lines = message.splitlines()
    assert lines[0] == "in.mlir:2:23: error: value %b is not defined"
    assert lines[2] == " " * 22 + "^"
    assert lines[3] == "in.mlir:3:19: error: value %c is not defined"
    assert len(lines) == 6


def test_values_of_another_function_are_not_defined_here() -> None:
    use = body(f'"ttir.use"(%x) : ({T}) -> ()')
    define = body(f'%x = "ttir.neg"(%a) : ({T}) -> {T}').replace("@f", "@g")
    for text in (use + define, define + use):
        assert "value %x is not defined" in failure(text)


def test_values_are_defined_once() -> None:
    message = failure(body(f"%0 = {ADD}", f"%0 = {ADD}"))
    assert message.startswith("in.mlir:3:3: error: value %0 is defined twice")
    assert "in.mlir:2:3: note: first defined here" in message
    assert "value %a is defined twice" in failure(body(f"%a = {ADD}"))


def test_functions_have_names_of_their_own() -> None:
    parse(body(f"%0 = {ADD}") + body(f"%0 = {ADD}").replace("@f", "@g"))


def test_values_are_defined_before_their_use() -> None:
    message = failure(
        body(f'%0 = "ttir.neg"(%1) : ({T}) -> {T}', f'%1 = "ttir.neg"(%a) : ({T}) -> {T}')
    )
    assert message.startswith("in.mlir:2:19: error: %1 is used before it is defined")
    assert "in.mlir:3:3: note: defined here" in message
    own = failure(body(f'%0 = "ttir.neg"(%0) : ({T}) -> {T}'))
    assert "error: %0 is used before it is defined" in own


def test_types_of_uses_and_definitions_agree() -> None:
    message = failure(body('%0 = "ttir.neg"(%a) : (tensor<3xf32>) -> tensor<3xf32>'))
    assert message.startswith(
        f"in.mlir:2:19: error: %a is used with type tensor<3xf32>, but its type is {T}"
    )
    assert "in.mlir:1:14: note: defined here" in message
    later = failure(body('"x.use"(%0) : (tensor<3xf32>) -> ()', f"%0 = {ADD}"))
    assert later.startswith("in.mlir:2:11: error: %0 is used with type tensor<3xf32>")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            f'%0 = "ttir.neg"(%a) : ({T}, {T}) -> {T}',
            "'ttir.neg' has 1 operand, but its type lists 2",
        ),
        (f'%0:2 = "ttir.neg"(%a) : ({T}) -> {T}', "the operation has 1 result, but 2 named here"),
        (f'%0, %1 = "ttir.neg"(%a) : ({T}) -> {T}', "the operation has 1 result, but 2 named here"),
        (f'%0 = "ttir.neg"(%a#1) : ({T}) -> {T}', "%a#1 does not exist: %a names 1 value"),
    ],
)
def test_counts_agree(line: str, message: str) -> None:
    assert message in failure(body(line))


# Syntax


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "in.mlir: error: the input is empty"),
        ("// nothing\n", "in.mlir: error: the input holds no operations"),
        ("{", "in.mlir:1:1: error: expected an operation"),
        ("func.func @f() {", "in.mlir:1:17: error: expected '}' at the end of a region"),
        ("func.func @f() {\n  ,\n}", "in.mlir:2:3: error: expected an operation or '}'"),
        ('func.func @f() { "ttir.x"( }', "in.mlir:1:28: error: operand expected"),
        ("func.func @f() -> { }", "in.mlir:1:19: error: type expected"),
        ('"ttir.x"() : ()', "in.mlir:1:16: error: expected '->'"),
        ('"ttir.x"() <{a = }> : () -> ()', "in.mlir:1:18: error: attribute expected"),
        ('"ttir.x"() {a = "b} : () -> ()', "in.mlir:1:17: error: string literal is not closed"),
        ("module { } }", "in.mlir:1:12: error: expected an operation"),
        ("%0 = ,", "in.mlir:1:6: error: expected an operation"),
        ("module {" * 3000 + "}" * 3000, "error: the input is nested too deeply"),
        ("module attributes {a = " + "[" * 3000, "error: the input is nested too deeply"),
    ],
)
def test_syntax_errors(text: str, message: str) -> None:
    assert message in failure(text)


def test_missing_blocks_are_reported_where_they_are_named() -> None:
    message = failure(body('"x.br"()[^later] : () -> ()'))
    assert "missing block declarations for block(s) later" in message
    assert "in.mlir:2:12: note: reference to block" in message
