"""Modules of TTNN functions to files."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    StringAttr,
    TensorType,
    f32,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp

from tests.flatbuffer.programs import BF16, ORIGIN, function, hosted, module, placed
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.functions import location_text
from ttcodegen.dialects.ttcore.dialect import ArgumentType, ArgumentTypeAttr, LoadCachedOp
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.flatbuffer.writer import write_ttnn
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.naming.arguments import argument_names, result_names
from ttcodegen.parsing import parse_module


def dense(values: np.ndarray, element: object = f32) -> DenseIntOrFPElementsAttr:
    type_ = TensorType(element, values.shape)  # type: ignore[type-var]
    return DenseIntOrFPElementsAttr.from_list(type_, values.reshape(-1).tolist())  # type: ignore[arg-type]


def test_operands_attributes_and_names() -> None:
    made = function(
        "main",
        [placed(4, 8), placed(8, 2)],
        lambda b, args: [
            b.emit("matmul", args, placed(4, 2, data_type=BF16), transpose_a=False, dtype=BF16)
        ],
    )
    made.arg_attrs = ArrayAttr(
        [
            DictionaryAttr({"ttir.name": StringAttr("x")}),
            DictionaryAttr(
                {
                    "ttir.name": StringAttr("layer.weight"),
                    "ttcore.argument_type": ArgumentTypeAttr(ArgumentType.PARAMETER),
                }
            ),
        ]
    )
    program = read_ttnn(write_ttnn(module(made), ORIGIN)).program("main")
    assert program.kind == "entry"
    assert program.inputs == (
        file.Input(0, "input", "x"),
        file.Input(1, "parameter", "layer.weight"),
    )
    assert program.outputs == (file.Output(2, "output"),)
    (operation,) = program.operations
    assert (operation.name, operation.operands, operation.results) == ("ttnn.matmul", (0, 1), (2,))
    assert operation.operand_sizes == (1, 1)
    attributes = {attribute.name: attribute.value for attribute in operation.attributes}
    # Defaults are written as well: they may change, the file must not.
    assert attributes["transpose_b"] == file.Boolean(False)
    assert attributes["dtype"] == file.DataTypeName("bf16")
    assert attributes["activation"] is None
    type_ = program.tensors[2].type
    assert type_ == file.TensorType((4, 2), "bf16", "tile", "dram", "interleaved")
    assert type_.placement.data_type is DataType.BFLOAT16


def test_header() -> None:
    binary = read_ttnn(write_ttnn(module(), ORIGIN))
    assert (binary.input_hash, binary.arch, binary.release) == ("00ff", "wormhole_b0", "0.70.1")
    assert (binary.major, binary.programs, binary.constants) == (file.MAJOR, (), ())


def test_absent_operands_are_empty_groups() -> None:
    made = function(
        "main", [placed(2)], lambda b, args: [b.emit("add", [args[0], None], placed(2), scalar=1.5)]
    )
    operation = read_ttnn(write_ttnn(module(made), ORIGIN)).program("main").operations[0]
    assert operation.operand_sizes == (1, 0)
    assert operation.attributes[0] == file.Attribute("scalar", file.Float(1.5))


def test_constants_are_stored_once_and_splats_not_expanded() -> None:
    numbers = dense(np.arange(6, dtype=np.float32).reshape(2, 3))
    equal = dense(np.arange(6, dtype=np.float32).reshape(2, 3))
    seven = BytesAttr(struct.pack("<q", 7))
    splat = DenseIntOrFPElementsAttr(TensorType(i64, [1000, 1000]), seven)
    made = function(
        "main",
        [],
        lambda b, _: [
            b.emit("constant", [], hosted(2, 3), value=numbers),
            b.emit("constant", [], hosted(2, 3), value=equal),
            b.emit("constant", [], hosted(1000, 1000, data_type=DataType.INT32), value=splat),
            b.emit("full", [], placed(10**5, 10**5), shape=[10**5, 10**5], fill_value=2.5),
        ],
    )
    data = write_ttnn(module(made), ORIGIN)
    assert len(data) < 2000
    binary = read_ttnn(data)
    first, second = binary.constants
    assert np.frombuffer(first.elements, np.float32).tolist() == [0, 1, 2, 3, 4, 5]
    assert (second.element_type, second.shape, len(second.elements)) == ("int64", (1000, 1000), 8)
    references = [operation.attributes[0].value for operation in binary.programs[0].operations[:3]]
    assert references == [file.ConstantReference(i) for i in (0, 0, 1)]


def test_programs_stand_behind_those_they_call() -> None:
    callee = function(
        "main_const_eval_0", [placed(2)], lambda b, a: [b.emit("relu", a, placed(2))], "private"
    )
    helper = function("helper", [placed(2)], lambda b, a: [b.emit("abs", a, placed(2))], "private")
    caller = FuncOp("main", ([placed(2)], [placed(2)]))
    load = LoadCachedOp("main_const_eval_0", [caller.args[0]], [placed(2)])
    call = CallOp("helper", [load.outputs[0]], [placed(2)])
    caller.body.block.add_ops([load, call, ReturnOp(call.res[0])])
    programs = read_ttnn(write_ttnn(module(caller, helper, callee), ORIGIN)).programs
    assert [(program.name, program.kind) for program in programs] == [
        ("main_const_eval_0", "const_eval"),
        ("helper", "private_"),
        ("main", "entry"),
    ]
    loaded, called = programs[2].operations
    assert (loaded.name, loaded.callee) == ("ttcore.load_cached", "main_const_eval_0")
    assert (called.name, called.callee) == ("func.call", "helper")


def test_functions_that_call_themselves() -> None:
    caller = FuncOp("f", ([placed(2)], [placed(2)]))
    call = CallOp("f", [caller.args[0]], [placed(2)])
    caller.body.block.add_ops([call, ReturnOp(call.res[0])])
    with pytest.raises(CompileError, match="'f' calls itself"):
        write_ttnn(module(caller), ORIGIN)


def test_integers_beyond_64_bits() -> None:
    made = function(
        "main", [], lambda b, _: [b.emit("full", [], placed(1), shape=[1], fill_value=1.0)]
    )
    full = made.body.block.first_op
    assert full is not None
    full.parameters = lambda: {"fill_value": 2**64}  # type: ignore[attr-defined]
    with pytest.raises(CompileError, match=r"'fill_value' of 'ttnn\.full' has no form"):
        write_ttnn(module(made), ORIGIN)


def test_the_same_module_gives_the_same_bytes() -> None:
    def data() -> bytes:
        return write_ttnn(
            module(function("f", [placed(2)], lambda b, a: [b.emit("exp", a, placed(2))])), ORIGIN
        )

    assert data() == data()


SOURCE = """
func.func @f(%x: tensor<2xf32>, %y: tensor<2xf32> {ttir.name = "x"},
             %z: tensor<2xf32> {ttcore.argument_type = #ttcore.argument_type<constant>})
    -> (tensor<2xf32> {ttir.name = "sum"}, tensor<2xf32>) {
  %0 = "ttir.add"(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> loc("add.1")
  %1 = "ttir.abs"(%z) : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
"""


def test_names_of_arguments_and_results_are_unique() -> None:
    parsed = parse_module(Source("in.mlir", SOURCE)).body.block.first_op
    assert isinstance(parsed, FuncOp)
    assert argument_names(parsed) == ["x", "x_2", "z"]
    assert result_names(parsed) == ["sum", "output1"]
    add, negation, _ = parsed.body.block.ops
    assert location_text(add) == "add.1"
    assert location_text(negation) is None
