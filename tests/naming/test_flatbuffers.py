"""Flatbuffers name tensors as the C++ does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from xdsl.dialects.func import FuncOp

from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.emitc.spelling import identifier
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.modules import module_of
from ttcodegen.flatbuffer.reader import read_ttm, read_ttnn
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.optimizer.overrides.overrides import CallNames

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

MODEL = """
func.func @main(%arg0: tensor<32x64xf32>,
    %arg1: tensor<64x64xf32> {ttcore.argument_type = #ttcore.argument_type<parameter>,
                              ttir.name = "encoder.dense.weight"}) -> tensor<32x64xf32> {
  %0 = "ttir.transpose"(%arg1) <{dim0 = 0 : si32, dim1 = 1 : si32}>
    : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = "ttir.matmul"(%arg0, %0)
    : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
  %sum_2 = "ttir.sum"(%1) <{dim_arg = [1 : i32], keep_dim = true}>
    : (tensor<32x64xf32>) -> tensor<32x1xf32>
  %permute = "ttir.matmul"(%sum_2, %sum_2) <{transpose_b = true}>
    : (tensor<32x1xf32>, tensor<32x1xf32>) -> tensor<32x32xf32>
  %4 = "ttir.matmul"(%permute, %1)
    : (tensor<32x32xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  return %4 : tensor<32x64xf32>
}
"""


def compiled(target: str) -> CompiledModule:
    return compile_module(Source("model.mlir", MODEL), CompileOptions("model", target))


def tensor_names(programs: tuple[file.Program, ...]) -> dict[str, list[str]]:
    return {each.name: [tensor.name or "" for tensor in each.tensors] for each in programs}


def variables(text: str) -> set[str]:
    return set(re.findall(r"Tensor (\w+) =", text))


def test_tensors_are_called_as_in_the_cpp() -> None:
    made = compiled("ttnn")
    found = tensor_names(read_ttnn(made.flatbuffer).programs)
    declared = variables(made.files["src/model.cpp"])
    assert declared
    assert declared <= set(found["main"])
    assert "encoder_dense" in declared
    # What the weight is turned into is that weight.
    prepared = found["main_const_eval"]
    assert all(name.startswith("encoder_dense_weight") for name in prepared)
    assert not {"permute", "matmul"} & set(found["main"])


def test_device_tensors_are_called_as_in_the_cpp() -> None:
    made = compiled("ttmetal")
    declared = variables(made.files["src/model.cpp"])
    assert declared
    assert declared <= set(tensor_names(read_ttm(made.flatbuffer).functions)["main"])


@pytest.mark.parametrize("name", ["digits", "cnn", "transformer"])
def test_no_two_tensors_of_a_program_share_a_name(name: str) -> None:
    source = Source.read(str(EXAMPLES / name / f"{name}.mlir"))
    for names in tensor_names(
        read_ttnn(compile_module(source, CompileOptions(name)).flatbuffer).programs
    ).values():
        assert len(set(names)) == len(names)
        assert all(name == identifier(name) for name in names)


def test_calls_go_by_what_the_source_calls_them() -> None:
    made = compiled("ttnn")
    module = module_of(read_ttnn(made.flatbuffer))
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    read_back = {name for function in functions for name in CallNames(function)}
    with_lines = {each.op.name for each in made.lines}
    assert "permute" in with_lines
    assert with_lines <= read_back
