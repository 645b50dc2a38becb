"""EmitC in the forms in which MLIR prints it."""

from __future__ import annotations

from ttcodegen.cli.translate import main
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.translation import mlir_to_cpp

TENSOR = '!emitc.opaque<"ttnn::Tensor">'


def cpp(text: str) -> str:
    return str(mlir_to_cpp(Source("in.mlir", text)).whole)


LISTING = f"""
module attributes {{tt.system_desc = #tt.system_desc<[], [], [], []>}} {{
  emitc.include "ttnn/operations/core.hpp"
  emitc.include <"vector">
  func.func @forward(%arg0: {TENSOR}) -> {TENSOR} {{
    %0 = emitc.call_opaque "ttnn::open_device"() : () -> !emitc.opaque<"ttnn::Device">
    %1 = emitc.call_opaque "ttnn::matmul"(%arg0, %arg0) {{args = [0 : index, 1 : index, #emitc.opaque<"false">]}} : ({TENSOR}, {TENSOR}) -> {TENSOR}
    emitc.call_opaque "ttnn::close_device"(%0) : (!emitc.opaque<"ttnn::Device">) -> ()
    return %1 : {TENSOR}
  }}
}}
"""  # noqa: E501


def test_includes_and_calls() -> None:
    text = cpp(LISTING)
    assert '#include "ttnn/operations/core.hpp"\n#include <vector>\n' in text
    assert "ttnn::Tensor forward(ttnn::Tensor arg0) {" in text
    assert "ttnn::matmul(arg0, arg0, false)" in text
    assert "ttnn::close_device(open_device);" in text


def test_the_command_line_of_the_documents(tmp_path, capsys) -> None:
    path = tmp_path / "emitc.mlir"
    path.write_text(LISTING)
    for flag in ("-allow-unregistered-dialect", "--allow-unregistered-dialect"):
        assert main(["-mlir-to-cpp", flag, str(path)]) == 0
        assert "ttnn::matmul" in capsys.readouterr().out


def test_functions_variables_and_operators() -> None:
    text = cpp("""
emitc.func @twice(%x: i32) -> i32 attributes {specifiers = ["static"]} {
  %two = "emitc.constant"() <{value = 2 : i32}> : () -> i32
  %0 = emitc.mul %x, %two : (i32, i32) -> i32
  emitc.return %0 : i32
}
emitc.func @f(%a: !emitc.ptr<i32>, %i: !emitc.size_t) -> i32 {
  emitc.verbatim "// as it stands"
  %v = "emitc.variable"() <{value = #emitc.opaque<"">}> : () -> !emitc.lvalue<i32>
  %e = emitc.subscript %a[%i] : (!emitc.ptr<i32>, !emitc.size_t) -> !emitc.lvalue<i32>
  %0 = emitc.load %e : <i32>
  %1 = emitc.call @twice(%0) : (i32) -> i32
  emitc.assign %1 : i32 to %v : <i32>
  %2 = emitc.load %v : !emitc.lvalue<i32>
  %3 = emitc.literal "LIMIT" : i32
  %4 = emitc.add %2, %3 : (i32, i32) -> i32
  emitc.return %4 : i32
}
""")
    assert "static int32_t twice(int32_t x) {" in text
    assert "// as it stands" in text
    assert "twice(a[i])" in text
    assert "LIMIT" in text
