"""Programs of the device in numpy: what is rounded where."""

from __future__ import annotations

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.flatbuffer.test_ttm import BINARY, written
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttmetal import programs
from ttcodegen.flatbuffer import program as device
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.program import TensorType
from ttcodegen.flatbuffer.reader import read_ttm
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.numerics.device_interpreter import DeviceInterpreter
from ttcodegen.numerics.execution import ExecutionError
from ttcodegen.numerics.lowered import interpreter_of, read_flatbuffer

SHAPE = (2, 2)


def plain(data_type: str) -> TensorType:
    return TensorType(SHAPE, data_type, "row_major", "system_memory", "none")


def placed(data_type: str, shape: tuple[int, ...] = SHAPE) -> TensorType:
    return TensorType(shape, data_type, "tile", "dram", "interleaved")


def binary_of(
    data_type: str,
    *operations: tuple[str, tuple[int, ...]],
    inputs: int = 1,
    fp32_destination: bool = False,
    **attributes: Any,
) -> device.DeviceBinary:
    """`f` launches a program once; its meaning is a chain of ops whose last result it gives.

    Each op has a name and its operands: arguments first, then the results of the ops before.
    """
    count = inputs + len(operations)
    meaning = file.Program(
        "m",
        "private_",
        tuple(file.Tensor(plain(data_type)) for _ in range(count)),
        tuple(file.Input(i, "input", f"x{i}") for i in range(inputs)),
        (file.Output(count - 1, "y"),),
        tuple(
            file.Operation(
                f"ttir.{name}",
                operands,
                (1,) * len(operands),
                (inputs + index,),
                tuple(file.Attribute(key, value) for key, value in attributes.items()),
            )
            for index, (name, operands) in enumerate(operations)
        ),
    )
    forward = file.Program(
        "f",
        "entry",
        tuple(file.Tensor(placed(data_type)) for _ in range(inputs + 1)),
        tuple(file.Input(i, "input", f"x{i}") for i in range(inputs)),
        (file.Output(inputs, "y"),),
        (
            file.Operation(programs.CREATE_BUFFER, results=(inputs,)),
            file.Operation(
                programs.RUN_PROGRAM,
                tuple(range(inputs + 1)),
                (inputs + 1,),
                attributes=(file.Attribute("program", file.Integer(0)),),
            ),
        ),
    )
    program = dataclasses.replace(
        BINARY.programs[0],
        inputs=inputs,
        outputs=1,
        fp32_destination=fp32_destination,
        kernels=(),
        meaning="m",
    )
    return dataclasses.replace(BINARY, functions=(meaning, forward), programs=(program,))


def run(binary: device.DeviceBinary, *inputs: object) -> np.ndarray:
    arrays = [np.broadcast_to(np.float32(value), SHAPE) for value in inputs]
    (result,) = DeviceInterpreter(binary).run("f", arrays)
    return result


def test_the_exponential() -> None:
    values = np.random.default_rng(0).uniform(-1, 1, (64, 96)).astype(np.float32)
    for data_type in (DataType.BFLOAT16, DataType.FLOAT32):
        binary = read_flatbuffer(written(data_type)[0])
        (result,) = interpreter_of(binary).run("forward", [values])
        exact = np.exp(values)
        if data_type is DataType.FLOAT32:
            np.testing.assert_array_equal(result, exact)
        else:
            rounded = np.exp(values.astype(ml_dtypes.bfloat16).astype(np.float32))
            np.testing.assert_array_equal(result, rounded.astype(ml_dtypes.bfloat16))


def test_values_between_ops_have_the_width_of_the_registers() -> None:
    chain = (("add", (0, 1)), ("subtract", (2, 0)))
    narrow = run(binary_of("bf16", *chain, inputs=2), 256, 1)
    wide = run(binary_of("bf16", *chain, inputs=2, fp32_destination=True), 256, 1)
    # 257 is no bf16 number.
    assert (narrow == 0).all()
    assert (wide == 1).all()
    assert wide.dtype == ml_dtypes.bfloat16


def test_the_matrix_engine_reads_ten_bits() -> None:
    value = 1 + 2.0**-12
    product = binary_of("f32", ("matmul", (0, 1)), inputs=2, fp32_destination=True)
    assert (run(product, value, 1) == 2).all()
    addition = binary_of("f32", ("add", (0, 1)), inputs=2, fp32_destination=True)
    assert (run(addition, value, 0) == np.float32(value)).all()


def test_only_what_comes_from_outside_is_cut() -> None:
    value = 1 + 2.0**-12
    chain = (("add", (0, 1)), ("matmul", (2, 0)))
    # The sum is in a register: (1 + e) + 0, times 1 cut from 1 + e.
    result = run(binary_of("f32", *chain, inputs=2, fp32_destination=True), value, 0)
    assert (result == np.float32(2 * value)).all()


def test_integers_stay_what_they_are() -> None:
    binary = binary_of("si32", ("add", (0, 1)), inputs=2, fp32_destination=True)
    arrays = [np.full(SHAPE, number, np.int32) for number in (2**30, 1)]
    (result,) = DeviceInterpreter(binary).run("f", arrays)
    assert (result == 2**30 + 1).all()


def test_views_have_another_shape() -> None:
    binary = binary_of("bf16", ("exp", (0,)))
    meaning, forward = binary.functions
    viewed = file.Operation(programs.VIEW, (1,), (1,), (2,))
    changed = dataclasses.replace(
        forward,
        tensors=(*forward.tensors, file.Tensor(placed("bf16", (4, 1)))),
        operations=(*forward.operations, viewed),
        outputs=(file.Output(2, "y"),),
    )
    assert run(dataclasses.replace(binary, functions=(meaning, changed)), 0).shape == (4, 1)


def test_a_tensor_is_not_used_after_its_end() -> None:
    binary = binary_of("bf16", ("exp", (0,)))
    meaning, forward = binary.functions
    create, launch = forward.operations
    end = file.Operation(programs.DEALLOCATE_BUFFER, (0,), (1,))
    changed = dataclasses.replace(forward, operations=(create, end, launch))
    with pytest.raises(ExecutionError, match="uses tensor 0 after its end"):
        DeviceInterpreter(dataclasses.replace(binary, functions=(meaning, changed)))


def test_an_unknown_op_is_refused() -> None:
    with pytest.raises(CompileError, match=r"calls 'ttir\.exponent'"):
        DeviceInterpreter(binary_of("bf16", ("exponent", (0,))))


def test_perturbation_moves_results_a_little() -> None:
    binary = read_ttm(written(DataType.FLOAT32)[0])
    values = np.random.default_rng(0).uniform(-1, 1, (64, 96)).astype(np.float32)
    exact, moved = (
        DeviceInterpreter(binary, perturbation=perturbation).run("forward", [values])[0]
        for perturbation in (None, np.random.default_rng(1))
    )
    assert (exact != moved).any()
    np.testing.assert_allclose(exact, moved, rtol=1e-5)
