"""Functions, calls and returns are held against each other, for every tool that reads a module."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dialects.texts import parse
from tests.parsing.reading import parse as read
from ttcodegen.cli import opt, translate
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.dialects.operations.verification import verify_module
from ttcodegen.foundation.diagnostics import CompileError, Source

T = "tensor<4xf32>"
IDENTITY = f"func.func private @g(%x: {T}) -> {T} {{ return %x : {T} }}\n"


def function(body: str, result: str = f" -> {T}") -> str:
    return f"func.func @f(%a: {T}){result} {{ {body} }}"


def generic(signature: str, arguments: str, returned: str = f'"func.return"(%a) : ({T}) -> ()',
            more: str = "") -> str:  # fmt: skip
    return (
        f'"func.func"() <{{sym_name = "f", function_type = {signature}{more}}}> '
        f"({{ ^bb0({arguments}): {returned} }}) : () -> ()"
    )


RETURN = f"return %a : {T}"
EXP = f'%0 = "ttir.exp"(%a) : ({T}) -> {T}'

CASES = {
    "another shape": (
        function(RETURN, " -> tensor<8xf32>"),
        f"function @f returns tensor<8xf32> as result 0, but 'return' has {T}",
    ),
    "another element type": (
        function(RETURN, " -> tensor<4xbf16>"),
        f"function @f returns tensor<4xbf16> as result 0, but 'return' has {T}",
    ),
    "an unknown size": (
        function(RETURN, " -> tensor<?xf32>"),
        f"function @f returns tensor<?xf32> as result 0, but 'return' has {T}",
    ),
    "a complex result": (
        function(RETURN, " -> tensor<4xcomplex<f32>>"),
        f"function @f returns tensor<4xcomplex<f32>> as result 0, but 'return' has {T}",
    ),
    "a scalar result": (
        function(RETURN, " -> f32"),
        f"function @f returns f32 as result 0, but 'return' has {T}",
    ),
    "too many returned": (
        function(f"return %a, %a : {T}, {T}"),
        "function @f returns 1 result, but 'return' has 2",
    ),
    "none returned": (function("return"), "function @f returns 1 result, but 'return' has 0"),
    "nothing": (function(""), "function @f has an empty block: expected 'return' at its end"),
    "no return": (function(EXP), "function @f does not end in 'return'"),
    "an op after return": (
        function(f"{RETURN} {EXP}"),
        "there is an operation after the 'return' of function @f",
    ),
    "a second return": (
        function(f"{RETURN} {RETURN}"),
        "there is an operation after the 'return' of function @f",
    ),
    "return with a result": (
        function(f'%0 = "func.return"(%a) : ({T}) -> {T}'),
        "func.return: Expected 0 results, but got 1",
    ),
    "another block argument": (
        generic(f"(tensor<8xf32>) -> {T}", f"%a: {T}"),
        f"function @f takes tensor<8xf32> as argument 0, but its body has {T}",
    ),
    "fewer block arguments": (
        generic(f"({T}, {T}) -> {T}", f"%a: {T}"),
        "function @f takes 2 arguments, but its body has 1",
    ),
    "more attributes than arguments": (
        generic(f"({T}) -> {T}", f"%a: {T}", more=", arg_attrs = [{}, {}]"),
        "function @f has attributes of 2 arguments, but its type lists 1",
    ),
    "more attributes than results": (
        generic(f"({T}) -> {T}", f"%a: {T}", more=", res_attrs = []"),
        "function @f has attributes of 0 results, but its type lists 1",
    ),
    "another argument in a call": (
        IDENTITY.replace(T, "tensor<8xf32>")
        + function(f"%0 = call @g(%a) : ({T}) -> tensor<8xf32> {RETURN}"),
        f"function @g takes tensor<8xf32> as argument 0, but the call has {T}",
    ),
    "another result of a call": (
        IDENTITY + function(f"%0 = call @g(%a) : ({T}) -> tensor<8xf32> {RETURN}"),
        f"function @g returns {T} as result 0, but the call has tensor<8xf32>",
    ),
    "too many arguments in a call": (
        IDENTITY + function(f"%0 = call @g(%a, %a) : ({T}, {T}) -> {T} {RETURN}"),
        "function @g takes 1 argument, but the call has 2",
    ),
    "too many results of a call": (
        IDENTITY + function(f"%0:2 = call @g(%a) : ({T}) -> ({T}, {T}) {RETURN}"),
        "function @g returns 1 result, but the call has 2",
    ),
    "a called function without return": (
        IDENTITY.replace(f"return %x : {T}", "")
        + function(f"%0 = call @g(%a) : ({T}) -> {T} {RETURN}"),
        "function @g has an empty block: expected 'return' at its end",
    ),
    "a call of nothing": (
        function(f"%0 = call @h(%a) : ({T}) -> {T} {RETURN}"),
        "the called function '@h' is not in the module",
    ),
    "a callee that is no name": (
        function(f'%0 = "func.call"(%a) <{{callee = 4 : i32}}> : ({T}) -> {T} {RETURN}'),
        "func.call: 4 : i32 should be of base attribute symbol_ref",
    ),
    "a function without a name": (
        generic(f"({T}) -> {T}", f"%a: {T}").replace('sym_name = "f", ', ""),
        "func.func: property 'sym_name' expected in operation 'func.func'",
    ),
    "a function without a body region": (
        f'"func.func"() <{{sym_name = "f", function_type = ({T}) -> {T}}}> : () -> ()',
        "func.func: Expected 1 region, but got 0",
    ),
    "a module without a body": ('"builtin.module"() : () -> ()', "Expected 1 region, but got 0"),
    "a name of a module that is none": (
        f'"builtin.module"() <{{sym_name = 4 : i32}}> ({{ {function(RETURN)} }}) : () -> ()',
        "builtin.module: 4 : i32 should be of base attribute string",
    ),
    "a description of a device that is none": (
        '"ttcore.device"() <{sym_name = 4 : i32, device_attr = 5 : i32}> : () -> ()\n'
        + function(RETURN),
        "4 : i32 should be of base attribute string",
    ),
    "return outside": ('"func.return"() : () -> ()', "'return' is outside a function"),
    "an op outside": (
        f'%0 = "ttir.constant"() {{value = dense<1.0> : {T}}} : () -> {T}\n' + function(RETURN),
        "'ttir.constant' is outside a function",
    ),
    "a function inside": (
        function(f"func.func @g(%b: {T}) -> {T} {{ return %b : {T} }} {RETURN}"),
        "function @g is defined inside another operation",
    ),
    "a module inside": (function(f"module {{ }} {RETURN}"), "a module is defined inside another"),
    "a kind of argument that is none": (
        f"func.func @f(%a: {T} {{ttcore.argument_type = 5 : i32}}) -> {T} {{ {RETURN} }}",
        "function @f: 'ttcore.argument_type' of argument 0 should be #ttcore.argument_type<...>, "
        "found 5 : i32",
    ),
    "a name of a result that is none": (
        f"func.func @f(%a: {T}) -> ({T} {{ttir.name = [\"r\"]}}) {{ {RETURN} }}",
        "function @f: 'ttir.name' of result 0 should be a string, found [\"r\"]",
    ),
    "an op with a region": (
        function(f'%0 = "ttir.exp"(%a) ({{ }}) : ({T}) -> {T} {RETURN}'),
        "ttir.exp has no regions and no successors",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_contradicts_itself_is_refused_everywhere(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, expected = CASES[name]
    source = Source("in.mlir", text)
    for target in ("ttnn", "ttmetal"):
        with pytest.raises(CompileError) as caught:
            compile_module(source, CompileOptions("m", target))
        message = caught.value.render(source)
        assert f": error: {expected}" in message.replace("builtin.module: Exp", "Exp")
        assert message.startswith("in.mlir:")
    path = tmp_path / "in.mlir"
    path.write_text(text)
    assert opt.main([str(path)]) == 1
    assert expected in capsys.readouterr().err
    assert translate.main(["--mlir-to-cpp", str(path)]) == 1
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        function(f'%0 = "ttir.exp"(%a) : ({T}) -> f32 {RETURN}'),
        "func.func @f(%a: f32) -> f32 { return %a : f32 }",
    ],
)
def test_scalars_are_no_tensors(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.mlir"
    path.write_text(text)
    assert opt.main(["--ttir-to-ttnn-backend-pipeline", str(path)]) == 1
    assert "tensor" in capsys.readouterr().err


def test_all_faults_are_reported_at_once() -> None:
    text = IDENTITY + function(
        f"%0 = call @g(%a, %a) : ({T}, {T}) -> {T}\nreturn", " -> tensor<8xf32>"
    )
    source = Source("in.mlir", text)
    with pytest.raises(CompileError) as caught:
        verify_module(parse(text))
    assert caught.value.render(source).count(": error: ") == 2


def test_properties_of_functions_in_other_versions_are_carried_along() -> None:
    (op,) = read(generic(f"({T}) -> {T}", f"%a: {T}", more=", no_inline")).body.ops
    assert "no_inline" in op.attributes
    verify_module(read(generic(f"({T}) -> {T}", f"%a: {T}", more=", no_inline")))
