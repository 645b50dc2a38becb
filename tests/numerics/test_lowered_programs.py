"""Sources lowered by the real passes: the flatbuffer run meets the golden."""

from __future__ import annotations

import pytest
from xdsl.context import Context

from tests.flatbuffer.programs import ORIGIN
from tests.numerics.sources import functions, parse
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.flatbuffer.program import Binary
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.flatbuffer.writer import write_ttnn
from ttcodegen.numerics.comparison import OutputCheck, check_output
from ttcodegen.numerics.drawing import depends_on_floats, draw_inputs
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.numerics.interpreter import Interpreter
from ttcodegen.transforms.registry import passes_of

PERCEPTRON = """
func.func @forward(
    %x: tensor<4x64xELEMENT> {ttcore.argument_type = #ttcore.argument_type<input>},
    %w1: tensor<96x64xELEMENT> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %b1: tensor<96xELEMENT> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %w2: tensor<96x10xELEMENT> {ttcore.argument_type = #ttcore.argument_type<parameter>})
    -> (tensor<4x10xELEMENT> {ttir.name = "probabilities"}, tensor<4xi32>) {
  %0 = "ttir.permute"(%w1) <{permutation = array<i64: 1, 0>}>
      : (tensor<96x64xELEMENT>) -> tensor<64x96xELEMENT>
  %1 = "ttir.matmul"(%x, %0)
      : (tensor<4x64xELEMENT>, tensor<64x96xELEMENT>) -> tensor<4x96xELEMENT>
  %2 = "ttir.add"(%1, %b1)
      : (tensor<4x96xELEMENT>, tensor<96xELEMENT>) -> tensor<4x96xELEMENT>
  %3 = "ttir.gelu"(%2) : (tensor<4x96xELEMENT>) -> tensor<4x96xELEMENT>
  %4 = "ttir.matmul"(%3, %w2)
      : (tensor<4x96xELEMENT>, tensor<96x10xELEMENT>) -> tensor<4x10xELEMENT>
  %5 = "ttir.softmax"(%4) <{dimension = 1 : si32}>
      : (tensor<4x10xELEMENT>) -> tensor<4x10xELEMENT>
  %6 = "ttir.argmax"(%4) <{dim_arg = [1 : i32], keep_dim = false}>
      : (tensor<4x10xELEMENT>) -> tensor<4xi32>
  return %5, %6 : tensor<4x10xELEMENT>, tensor<4xi32>
}
"""


def lowered(text: str) -> Binary:
    """The program that a source becomes, read back from its file."""
    module = parse(text)
    for pass_ in passes_of("ttir-to-ttnn-common-pipeline"):
        pass_.apply(Context(allow_unregistered=True), module)
    return read_ttnn(write_ttnn(module, ORIGIN))


def checks(text: str, program: str | None = None) -> list[OutputCheck]:
    """Compares the flatbuffer run of `program` (or of the source) with the golden of the source."""
    source, binary = parse(text), lowered(program or text)
    function = functions(source)["forward"]
    inputs = list(draw_inputs(source, function, 0).values())
    expected = Golden(source).run("forward", inputs)
    found = Interpreter(binary).run("forward", inputs)
    forward = binary.program("forward")
    return [
        check_output(
            "forward",
            output.name,
            DataType.from_mlir(forward.tensors[output.tensor].type.data_type),
            None,
            found[index],
            expected[index],
            decided,
        )
        for index, (output, decided) in enumerate(
            zip(forward.outputs, depends_on_floats(source, function), strict=True)
        )
    ]


@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_flatbuffer_against_golden(element: str) -> None:
    probabilities, classes = checks(PERCEPTRON.replace("ELEMENT", element))
    assert probabilities.passed
    assert probabilities.name == "probabilities"
    assert probabilities.golden.correlation is not None
    assert probabilities.golden.correlation > 0.999
    assert classes.passed
    assert classes.golden.measure == "agreement"


def test_a_wrong_lowering_does_not_pass() -> None:
    text = PERCEPTRON.replace("ELEMENT", "f32")
    assert not checks(text, text.replace("ttir.gelu", "ttir.neg"))[0].passed
