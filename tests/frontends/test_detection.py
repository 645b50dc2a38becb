"""Detection of the frontend for a file."""

from __future__ import annotations

import pytest

import ttcodegen.frontends as frontends
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import BYTECODE_MAGIC, CompileError, Source
from ttcodegen.frontends import Frontend, frontend_of, read_module

APPLES = Frontend("Apples", frozenset({"apple", "pear"}), "nowhere")
PLUMS = Frontend("Plums", frozenset({"plum"}), "tests.frontends.test_detection")

TTIR = """
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "ttir.abs"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def read(source: Source, diagnostics: object) -> str:
    """Stands for a front end's own room."""
    return f"read {source.name}"


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontends, "FRONTENDS", (APPLES, PLUMS))


@pytest.mark.parametrize(
    "text",
    [
        'func.func @f() {\n  %0 = "pear.peel"() : () -> tensor<4xf32>\n}',
        "func.func @f() {\n  %0, %1:2 = pear.peel %a : tensor<4xf32>\n}",
        "func.func @f() { pear.peel }",
        "  apple.eat",
        # The order of the table decides, not that of the file.
        "plum.eat\napple.eat",
    ],
)
def test_tells_by_operations(text: str) -> None:
    assert frontend_of(Source("in.mlir", text)) is APPLES


@pytest.mark.parametrize(
    "text",
    [
        TTIR,
        '%0 = "ttir.abs"(%a) {note = "apple.eat"} : (tensor<4xf32>) -> tensor<4xf32>',
        "// %0 = apple.eat",
        "module attributes {apple.sharding = 1 : i32} {}",
        "",
    ],
)
def test_leaves_to_the_parser(text: str) -> None:
    assert frontend_of(Source("in.mlir", text)) is None


def test_reads_with_the_front_end() -> None:
    assert read_module(Source("in.mlir", "plum.eat")) == "read in.mlir"
    assert [op.name for op in read_module(Source("in.mlir", TTIR)).ops] == ["func.func"]


def test_bytecode_needs_a_front_end() -> None:
    source = Source.from_bytes("in.mlirbc", BYTECODE_MAGIC + b"\x01\xff")
    with pytest.raises(CompileError, match="bytecode is not read"):
        read_module(source)


@pytest.mark.parametrize("name", ["stablehlo.add", "tosa.add", "linalg.generic"])
def test_functions_are_verified_in_every_dialect(name: str) -> None:
    text = f"""module {{
  "func.func"() ({{
  ^bb0(%a: tensor<2xf32>):
    %0 = "{name}"(%a, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "func.return"(%0) : (tensor<2xf32>) -> ()
  }}) {{sym_name = "f"}} : () -> ()
}}"""
    with pytest.raises(CompileError, match="'function_type' expected"):
        read_module(Source("in.mlir", text))


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()


SLICE = "%0 = tensor.extract_slice %x[1, 0] [2, 8] [1, 1] : tensor<4x8xf32> to tensor<2x8xf32>"


def test_slices_alone_are_for_linalg(real: None) -> None:
    text = f"""func.func @f(%x: tensor<4x8xf32>) -> tensor<2x8xf32> {{
      {SLICE}
      return %0 : tensor<2x8xf32>
    }}"""
    assert "ttir.slice_static" in str(read_module(Source("in.mlir", text)))


def test_slices_beside_operations_of_ttir_are_refused(real: None) -> None:
    text = f"""func.func @f(%y: tensor<4x8xf32>) -> tensor<2x8xf32> {{
      %x = "ttir.abs"(%y) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      {SLICE}
      return %0 : tensor<2x8xf32>
    }}"""
    with pytest.raises(CompileError, match="beside operations of TTIR or TTNN"):
        compile_module(Source("in.mlir", text), CompileOptions("in"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "%0 = linalg.abs ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<2xf32>",
            "the results have other types than the outs",
        ),
        (
            "%0 = tosa.clamp %x {min_val = 2.0 : f32, max_val = 1.0 : f32}"
            " : (tensor<4xf32>) -> tensor<4xf32>",
            "min_val 2.0 is not at most max_val 1.0",
        ),
    ],
)
def test_operations_that_contradict_themselves_are_refused(
    real: None, body: str, message: str
) -> None:
    text = f"func.func @f(%x: tensor<4xf32>) {{\n  {body}\n  return\n}}"
    with pytest.raises(CompileError, match=message):
        read_module(Source("in.mlir", text))
