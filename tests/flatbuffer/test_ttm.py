"""Files with programs of the device: what is written, read back, and refused."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.flatbuffer.programs import ORIGIN
from tests.ttmetal.emission import with_kernels_written
from tests.ttmetal.exp_module import exp_module, exp_program
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttmetal import programs
from ttcodegen.flatbuffer import program as device
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.decoding import encode
from ttcodegen.flatbuffer.reader import is_ttm, read_ttm, read_ttm_file, read_ttnn
from ttcodegen.flatbuffer.schema import load_schema
from ttcodegen.flatbuffer.writer import write_ttm
from ttcodegen.foundation.diagnostics import CompileError

SCHEMA = load_schema("ttm.fbs")


def written(data_type: DataType = DataType.BFLOAT16) -> tuple[bytes, dict[tuple[str, str], str]]:
    """The file of the module, and the texts of its kernels."""
    module = exp_module(data_type)
    texts = with_kernels_written(module, ORIGIN)
    return write_ttm(module, ORIGIN, texts), texts


GOOD = written()[0]
BINARY = read_ttm(GOOD)


def test_records_have_the_fields_of_their_tables() -> None:
    assert {record.__name__ for record in device.TTM_RECORDS} == set(SCHEMA.tables)
    for record in device.TTM_RECORDS:
        names = tuple(field.name for field in dataclasses.fields(record))
        assert names == tuple(field.name for field in SCHEMA.tables[record.__name__])


def test_the_program_with_its_kernels() -> None:
    data, texts = written(DataType.FLOAT32)
    (program,) = read_ttm(data).programs
    expected = exp_program(DataType.FLOAT32)
    assert (program.name, program.purpose) == ("exp", "the exponential of x")
    assert (program.inputs, program.outputs, program.work_units) == (1, 1, 6)
    assert dataclasses.astuple(program.cores) == (0, 0, 1, 1)
    assert program.circular_buffers[1] == device.CircularBuffer(1, "y", "f32", 2, 4096)
    assert (program.fidelity, program.fp32_destination) == ("HiFi4", True)
    assert program.unpack_to_fp32 == (0,)
    assert dataclasses.astuple(program.costs) == dataclasses.astuple(expected.costs)
    for kernel, source in zip(program.kernels, expected.kernels, strict=True):
        assert kernel.source == texts["exp", kernel.name]
        assert kernel.processor == source.processor
        assert kernel.accessors == source.accessors
        assert [a.name for a in kernel.arguments] == [a.name for a in source.arguments]
    share = [device.Coordinate("first"), device.Coordinate("count")]
    reader = program.kernels[0].arguments
    assert [(a.kind, a.coordinates[0]) for a in reader] == [
        ("address", device.Coordinate("number", 0)),
        *(("plain", place) for place in share),
    ]


def test_functions_of_the_host_and_meanings() -> None:
    meaning, forward = BINARY.functions
    assert (meaning.name, meaning.kind) == ("m_exp", "private_")
    assert [operation.name for operation in meaning.operations] == ["ttir.exp"]
    assert meaning.tensors[0].type.buffer_type == "system_memory"
    assert (forward.name, forward.kind) == ("forward", "entry")
    assert [port.name for port in (*forward.inputs, *forward.outputs)] == ["x", "y"]
    create, launch = forward.operations
    assert (create.name, launch.name) == (programs.CREATE_BUFFER, programs.RUN_PROGRAM)
    assert launch.operands == (forward.inputs[0].tensor, create.results[0])
    assert launch.attributes == (file.Attribute("program", file.Integer(0)),)


def test_the_same_module_gives_the_same_bytes() -> None:
    assert written()[0] == GOOD
    assert (BINARY.arch, BINARY.release, BINARY.input_hash) == ("wormhole_b0", "0.70.1", "00ff")


def test_files_tell_their_kind(tmp_path: Path) -> None:
    assert is_ttm(GOOD)
    assert not is_ttm(b"\0\0\0\0TTNN")
    with pytest.raises(CompileError, match=r"not a \.ttnn file"):
        read_ttnn(GOOD)
    path = tmp_path / "model.ttm"
    path.write_bytes(GOOD)
    assert read_ttm_file(path) == BINARY
    with pytest.raises(CompileError, match="cannot read"):
        read_ttm_file(tmp_path / "none.ttm")


def refusal(binary: device.DeviceBinary) -> str:
    """Message with which the reader refuses a file."""
    with pytest.raises(CompileError) as caught:
        read_ttm(encode(SCHEMA, binary))
    return caught.value.render()


def with_program(**changes: Any) -> device.DeviceBinary:
    program = dataclasses.replace(BINARY.programs[0], **changes)
    return dataclasses.replace(BINARY, programs=(program,))


def with_operation(index: int, **changes: Any) -> device.DeviceBinary:
    meaning, forward = BINARY.functions
    operations = list(forward.operations)
    operations[index] = dataclasses.replace(operations[index], **changes)
    changed = dataclasses.replace(forward, operations=tuple(operations))
    return dataclasses.replace(BINARY, functions=(meaning, changed))


def test_a_program_without_meaning() -> None:
    assert "means 'm_2', which does not precede it" in refusal(with_program(meaning="m_2"))


def test_a_program_with_another_number_of_tensors() -> None:
    assert "runs 'exp' on other tensors" in refusal(with_program(outputs=2))
    assert "is not what 'exp' means" in refusal(with_program(inputs=2, outputs=0))


def test_a_launch_of_no_program() -> None:
    gone = (file.Attribute("program", file.Integer(1)),)
    for attributes in ((), gone):
        text = refusal(with_operation(1, attributes=attributes))
        assert "runs a program that is not in the file" in text


def test_buffers_and_views_of_wrong_form() -> None:
    tensor = BINARY.functions[1].inputs[0].tensor
    text = refusal(with_operation(0, operands=(tensor,), operand_sizes=(1,)))
    assert "creates no single buffer" in text
    assert "views no single tensor" in refusal(with_operation(0, name=programs.VIEW))


def test_a_tensor_of_another_shape() -> None:
    meaning, forward = BINARY.functions
    type_ = dataclasses.replace(meaning.tensors[0].type, shape=(32, 192))
    tensors = (dataclasses.replace(meaning.tensors[0], type=type_), *meaning.tensors[1:])
    functions = (dataclasses.replace(meaning, tensors=tensors), forward)
    text = refusal(dataclasses.replace(BINARY, functions=functions))
    assert "runs 'exp' on tensors of other shapes" in text


def test_kernels_that_use_what_is_not_there() -> None:
    kernel = BINARY.programs[0].kernels[0]
    for field, expected in (
        ("semaphores", "uses a semaphore that 'exp' has not"),
        ("accessors", "reads an operand that 'exp' has not"),
    ):
        changed = dataclasses.replace(kernel, **{field: (2,)})
        assert expected in refusal(with_program(kernels=(changed,)))


def test_two_circular_buffers_of_one_index() -> None:
    buffer = BINARY.programs[0].circular_buffers[0]
    text = refusal(with_program(circular_buffers=(buffer, buffer)))
    assert "two circular buffers of 'exp' have one index" in text


def read_or_refuse(data: bytes) -> None:
    try:
        read_ttm(data)
    except CompileError:
        pass


@settings(deadline=None)
@given(st.integers(0, len(GOOD) - 1))
def test_truncated(length: int) -> None:
    read_or_refuse(GOOD[:length])


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1))
def test_corrupted(changes: list[tuple[int, int]]) -> None:
    data = bytearray(GOOD)
    for position, byte in changes:
        data[position] = byte
    read_or_refuse(bytes(data))


@settings(deadline=None)
@given(st.integers(0, len(GOOD) // 4 - 1), st.sampled_from([0, 1, 8, 0x7FFFFFFF, 0xFFFFFFFF]))
def test_hostile_words(index: int, word: int) -> None:
    data = bytearray(GOOD)
    struct.pack_into("<I", data, 4 * index, word)
    read_or_refuse(bytes(data))
