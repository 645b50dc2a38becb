"""Programs read back from files, run in numpy with the data types of the device."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp

from tests.flatbuffer.programs import (
    BF16,
    F32,
    ORIGIN,
    adding_program,
    binary,
    function,
    hosted,
    module,
    placed,
    tensor,
)
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.dialect import LoadCachedOp
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.flatbuffer.writer import write_ttnn
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.numerics.execution import ExecutionError, Observation
from ttcodegen.numerics.interpreter import Interpreter, constant_array
from ttcodegen.ops.core.definition import TTNN

SMALL = placed(2, 32)
INPUT = np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)


def interpreter(*functions: FuncOp) -> Interpreter:
    """An interpreter of the file that is written for the functions."""
    return Interpreter(read_ttnn(write_ttnn(module(*functions), ORIGIN)))


def bf16(array: np.ndarray) -> np.ndarray:
    """The array rounded to bf16, as float32."""
    return array.astype(ml_dtypes.bfloat16).astype(np.float32)


def test_every_op_rounds() -> None:
    type_ = placed(2, 32, data_type=BF16)
    main = function("main", [type_], lambda b, a: [b.emit("exp", [b.emit("sin", a, type_)], type_)])
    (output,) = interpreter(main).run("main", [INPUT])
    assert output.dtype == ml_dtypes.bfloat16
    expected = bf16(np.exp(bf16(np.sin(bf16(INPUT)))))
    np.testing.assert_array_equal(output.astype(np.float32), expected)


def test_f32_does_not_round() -> None:
    main = function("main", [SMALL], lambda b, a: [b.emit("exp", a, SMALL)])
    (output,) = interpreter(main).run("main", [INPUT])
    np.testing.assert_array_equal(output, np.exp(INPUT))


def test_integers_wrap() -> None:
    type_ = placed(2, data_type=DataType.INT32)
    main = function("main", [type_], lambda b, a: [b.emit("multiply", [a[0], a[0]], type_)])
    (output,) = interpreter(main).run("main", [np.array([2**16 + 1, -3])])
    assert output.dtype == np.int32
    assert output.tolist() == [2**17 + 1, 9]


def test_comparisons_give_ones_and_zeros() -> None:
    result = placed(2, 32, data_type=BF16)
    main = function("main", [SMALL], lambda b, a: [b.emit("gt", [a[0], None], result, scalar=0.0)])
    (output,) = interpreter(main).run("main", [INPUT])
    np.testing.assert_array_equal(output.astype(bool), INPUT > 0)


def test_block_floats_are_quantised() -> None:
    type_ = placed(1, 32, data_type=DataType.BFLOAT8_B)
    main = function("main", [placed(1, 32)], lambda b, a: [b.emit("typecast", a, type_)])
    values = np.full((1, 32), 0.01, np.float32)
    values[0, 3] = 100.0
    (output,) = interpreter(main).run("main", [values])
    assert output.dtype == np.float32
    assert output[0, :16].tolist() == [0, 0, 0, 100.0, *[0] * 12]
    np.testing.assert_allclose(output[0, 16:], 0.01, rtol=0.01)


def test_moved_block_floats_are_quantised_again() -> None:
    """In a column each element has a block of its own; in a row they share one."""
    column = placed(2, 1, data_type=DataType.BFLOAT8_B)
    row = placed(1, 2, data_type=DataType.BFLOAT8_B)
    main = function("main", [column], lambda b, a: [b.emit("reshape", a, row, shape=[1, 2])])
    (output,) = interpreter(main).run("main", [np.array([[100.0], [0.01]])])
    assert output.tolist() == [[100.0, 0.0]]


def test_moved_elements_are_not_copied() -> None:
    type_, flat = placed(1000, 100, data_type=BF16), placed(100_000, data_type=BF16)
    main = function("main", [type_], lambda b, a: [b.emit("reshape", a, flat, shape=[100_000])])
    seen: list[np.ndarray] = []
    binary_ = read_ttnn(write_ttnn(module(main), ORIGIN))
    Interpreter(binary_, lambda observation: seen.extend(observation.results)).run(
        "main", [np.ones((1000, 100))]
    )
    assert seen[0].base is not None


def test_constants() -> None:
    numbers = DenseIntOrFPElementsAttr.from_list(TensorType(f32, [3]), [1.5, 2.5, 3.5])
    main = function("main", [], lambda b, _: [b.emit("constant", [], hosted(3), value=numbers)])
    (output,) = interpreter(main).run("main", [])
    assert output.tolist() == [1.5, 2.5, 3.5]


def test_what_is_full_stays_one_number() -> None:
    """10 GB if it were expanded once."""
    shape = [50_000, 50_000]
    main = function(
        "main",
        [],
        lambda b, _: [
            b.emit("full", [], placed(*shape, data_type=BF16), shape=shape, fill_value=1.001)
        ],
    )
    (output,) = interpreter(main).run("main", [])
    assert output.shape == (50_000, 50_000)
    assert float(output[7, 9]) == 1.0


def caches(name: str = "main") -> FuncOp:
    """Writes its second argument into the first, a cache, and reads both the cache as it was and as
    it is."""
    cache, entry = placed(1, 1, 4, 32), placed(1, 1, 1, 32)

    def build(b, a):
        before = b.emit("reshape", [a[0]], placed(4, 32), shape=[4, 32])
        b.emit_op("fill_cache", [a[0], a[1]], [])
        return [before, a[0]]

    return function(name, [cache, entry], build)


def test_ops_in_place_change_their_operand_only() -> None:
    cache = np.zeros((1, 1, 4, 32), np.float32)
    entry = np.ones((1, 1, 1, 32), np.float32)
    before, after = interpreter(caches()).run("main", [cache, entry])
    assert (cache == 0).all()
    assert (before == 0).all()
    assert (after[:, :, 0] == 1).all()
    assert (after[:, :, 1:] == 0).all()


def test_callers_see_what_a_callee_overwrites() -> None:
    from xdsl.dialects.func import CallOp

    callee = caches("write")
    types = list(callee.function_type.inputs)
    caller = FuncOp("main", (types, [types[0]]))
    call = CallOp("write", list(caller.args), list(callee.function_type.outputs))
    caller.body.block.add_ops([call, ReturnOp(caller.args[0])])
    entry = np.ones((1, 1, 1, 32), np.float32)
    (output,) = interpreter(callee, caller).run("main", [np.zeros((1, 1, 4, 32)), entry])
    assert output[0, 0, :, 0].tolist() == [1, 0, 0, 0]


def test_const_eval_functions_are_loaded() -> None:
    folded = function(
        "main_const_eval_0",
        [SMALL],
        lambda b, a: [b.emit("neg", a, SMALL), b.emit("abs", a, SMALL)],
        "private",
    )
    main = FuncOp("main", ([SMALL], [SMALL, SMALL]))
    load = LoadCachedOp("main_const_eval_0", [main.args[0]], [SMALL, SMALL])
    main.body.block.add_ops([load, ReturnOp(*load.outputs)])
    first, second = interpreter(main, folded).run("main", [INPUT])
    np.testing.assert_array_equal(first, -INPUT)
    np.testing.assert_array_equal(second, np.abs(INPUT))


def test_observer_sees_every_op() -> None:
    seen: list[tuple[str, str | None, list[tuple[int, ...]]]] = []

    def observe(seen_op: Observation) -> None:
        step = seen_op.step
        seen.append((step.name, step.location, [result.shape for result in seen_op.results]))

    Interpreter(binary(adding_program()), observe).run("main", [INPUT, INPUT])
    assert seen == [("ttnn.add", '"add.1"', [(2, 32)])]


def test_values_are_freed_after_their_last_use() -> None:
    """50 values of 4 MB each, one after the other."""
    import tracemalloc

    size = 1_000_000
    type_ = placed(size)

    def build(b, a):
        value = a[0]
        for _ in range(50):
            value = b.emit("neg", [value], type_)
        return [value]

    runner = interpreter(function("main", [type_], build))
    argument = np.ones(size, np.float32)
    tracemalloc.start()
    runner.run("main", [argument])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * 4 * size


def test_inputs_that_do_not_fit() -> None:
    runner = Interpreter(binary(adding_program()))
    with pytest.raises(CompileError, match="takes 2 inputs, found 1"):
        runner.run("main", [INPUT])
    with pytest.raises(CompileError, match=r"'b' of 'main' should have shape \(2, 32\), found \(3"):
        runner.run("main", [INPUT, np.zeros((3, 3))])
    with pytest.raises(CompileError, match="no function 'other'"):
        runner.run("other", [])


ADD = adding_program().operations[0]


def test_ops_of_other_versions() -> None:
    for change in ({"name": "ttnn.from_the_future"}, {"name": "add"}, {"operand_sizes": (2,)}):
        program = replace(adding_program(), operations=(replace(ADD, **change),))
        with pytest.raises(CompileError, match="that this version does not know"):
            Interpreter(binary(program))


def test_attributes_that_are_missing() -> None:
    operation = file.Operation("ttnn.full", results=(0,))
    program = file.Program("main", "entry", (tensor(2),), (), (), (operation,))
    with pytest.raises(CompileError, match=r"'ttnn\.full' of the program has no 'shape'"):
        Interpreter(binary(program))


def test_shapes_that_ops_do_not_give() -> None:
    tensors = (*adding_program().tensors[:2], tensor(2, 33))
    runner = Interpreter(binary(replace(adding_program(), tensors=tensors)))
    with pytest.raises(ExecutionError, match=r"ttnn\.add at .*declared as \(2, 33\)"):
        runner.run("main", [INPUT, INPUT])


def test_ops_that_fail_are_named() -> None:
    tensors = (tensor(3), tensor(4), tensor(3))
    runner = Interpreter(binary(replace(adding_program(), tensors=tensors)))
    with pytest.raises(ExecutionError, match=r"ttnn\.add at .*: ValueError: operands"):
        runner.run("main", [np.zeros(3), np.zeros(4)])


def test_operands_on_the_wrong_side() -> None:
    main = function("main", [hosted(2, 32)], lambda b, a: [b.emit("exp", a, SMALL)])
    with pytest.raises(ExecutionError, match="should be on the device, found on the host"):
        interpreter(main)


def test_deallocated_operands() -> None:
    def build(b, a):
        b.emit_op("deallocate", [a[0]], [])
        return [b.emit("exp", a, SMALL)]

    with pytest.raises(ExecutionError, match="an operand was deallocated"):
        interpreter(function("main", [SMALL], build))


def test_every_ttnn_op_has_a_meaning() -> None:
    import ttcodegen.ops as catalogue

    catalogue.load()
    assert [d.name for d in TTNN.values() if d.numpy is None and d.cpp is not None] == []


def test_no_array_attributes_are_needed() -> None:
    """A function without names for its arguments."""
    main = function("main", [SMALL], lambda b, a: [a[0]])
    main.arg_attrs = ArrayAttr([])
    (output,) = interpreter(main).run("main", [INPUT])
    np.testing.assert_array_equal(output, INPUT)
    assert F32.numpy == output.dtype.name


@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_one_element_stands_for_all_of_a_constant(shape: tuple[int, ...]) -> None:
    constant = file.Constant("float32", shape, np.float32(2.5).tobytes())
    np.testing.assert_array_equal(constant_array(constant), np.full(shape, 2.5, np.float32))
