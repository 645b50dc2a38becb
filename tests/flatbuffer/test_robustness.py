"""Files that are damaged or hostile: always a CompileError, never anything else."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.flatbuffer.programs import adding_program, binary, tensor
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.decoding import decode, encode
from ttcodegen.flatbuffer.reader import read_ttnn, read_ttnn_file
from ttcodegen.flatbuffer.schema import load_schema, parse_schema
from ttcodegen.foundation.diagnostics import CompileError

SCHEMA = load_schema("ttnn.fbs")
CONSTANT = file.Constant("float32", (4,), struct.pack("<4f", 1, 2, 3, 4))
GOOD = encode(SCHEMA, binary(adding_program(), adding_program("other"), constants=(CONSTANT,)))


def refusal(data: bytes) -> str:
    with pytest.raises(CompileError) as caught:
        read_ttnn(data)
    return caught.value.render()


def refused_program(program: file.Program, *others: file.Program) -> str:
    return refusal(encode(SCHEMA, binary(*others, program, constants=(CONSTANT,))))


def read_or_refuse(data: bytes) -> None:
    try:
        read_ttnn(data)
    except CompileError:
        pass


def test_the_undamaged_file_is_read() -> None:
    assert [program.name for program in read_ttnn(GOOD).programs] == ["main", "other"]


@pytest.mark.parametrize("data", [b"", b"TTNN", b"\0" * 64, b"module {}" * 10, b"\x93NUMPY" * 8])
def test_other_files(data: bytes) -> None:
    assert "this is not a .ttnn file" in refusal(data)


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
@given(
    st.integers(0, len(GOOD) // 4 - 1),
    st.sampled_from([0, 1, 4, 8, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFF0]),
)
@example(0, 0xFFFFFFFF)
@example(0, 0)
def test_hostile_words(index: int, word: int) -> None:
    data = bytearray(GOOD)
    struct.pack_into("<I", data, 4 * index, word)
    read_or_refuse(bytes(data))


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_noise(noise: bytes) -> None:
    read_or_refuse(b"\x08\0\0\0TTNN" + noise)


def test_vectors_larger_than_the_file() -> None:
    data = bytearray(GOOD)
    at = data.index(struct.pack("<I", len(CONSTANT.elements)) + bytes(CONSTANT.elements))
    struct.pack_into("<I", data, at, 0x7FFFFFF0)
    assert "a vector of 2147483632 elements is larger than the file" in refusal(bytes(data))


def test_overlapping_objects_cost_no_more_than_the_file() -> None:
    """Vectors in each other's bytes: decoded one by one they would cost the square of the file."""
    schema = parse_schema(
        'file_identifier "TTNN"; table B { x : [ubyte]; }'
        "table A { major : ushort; minor : ushort; b : [B]; } root_type A;"
    )
    records = tuple(
        type(name, (), {"__init__": lambda self, **values: None}) for name in ("A", "B")
    )
    count = 1000
    # The root: a vtable with fields at 4, 6 and 8, then the table and the vector of B after it.
    root = struct.pack("<6H", 10, 12, 4, 6, 8, 0) + struct.pack("<iHHI", 12, *file.VERSION, 4)
    # B has its only field at 4, and its table is its vtable's neighbour; table i points to a vector
    # that starts within the numbers after it, whose bytes also are a length.
    tables = struct.pack("<3HH", 6, 8, 4, 0)
    first = 4 + 4 * count + len(tables)
    offsets = b"".join(struct.pack("<I", first + 8 * i - 4 - 4 * i) for i in range(count))
    bodies = b"".join(
        struct.pack("<iI", len(tables) + 8 * i, 8 * (count - i) - 4 + 4 * i) for i in range(count)
    )
    lengths = struct.pack("<I", 5000) * (count + 2000)
    data = b"\x14\0\0\0TTNN" + root + struct.pack("<I", count) + offsets + tables + bodies + lengths
    with pytest.raises(CompileError, match="objects overlap"):
        decode(schema, records, data, "file", file.VERSION)


@pytest.mark.parametrize(
    ("major", "minor", "age"),
    [
        (file.MAJOR + 1, 0, "newer"),
        (file.MAJOR, file.MINOR + 1, "newer"),
        (file.MAJOR, file.MINOR - 1, "older"),
        (file.MAJOR - 1, file.MINOR, "older"),
    ],
)
def test_other_versions(major: int, minor: int, age: str) -> None:
    message = refusal(encode(SCHEMA, replace(binary(), major=major, minor=minor)))
    assert f"the .ttnn file has version {major}.{minor}, which is {age} than" in message
    assert f"version {file.MAJOR}.{file.MINOR}, the one that is read here" in message
    assert "note: make it again with this version of ttcodegen" in message


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"cannot read .*none\.ttnn"):
        read_ttnn_file(tmp_path / "none.ttnn")
    with pytest.raises(CompileError, match="cannot read"):
        read_ttnn_file(tmp_path)


ADDING = adding_program()
ADD = ADDING.operations[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"operations": ()}, "uses tensor 2 before it is defined"),
        ({"operations": (ADD, ADD)}, "defines tensor 2 twice"),
        ({"operations": (replace(ADD, operands=(0, 9)),)}, "uses tensor 9"),
        ({"operations": (replace(ADD, results=(9,)),)}, "defines tensor 9, which is not"),
        ({"operations": (replace(ADD, operand_sizes=(1,)),)}, "do not add up"),
        ({"inputs": (file.Input(0, "input", "a"),) * 2}, "defines tensor 0 twice"),
        (
            {
                "operations": (
                    replace(ADD, attributes=(file.Attribute("v", file.ConstantReference(7)),)),
                )
            },
            "uses constant 7",
        ),
        ({"operations": (replace(ADD, callee="main"),)}, "calls 'main', which does not precede"),
        ({"operations": (replace(ADD, callee="other"),)}, "do not fit"),
        ({"inputs": (file.Input(0, "input", "a", "int3"),)}, "'a' of 'main' has elements of no"),
        ({"goldens": (file.Golden(9, 0),)}, "uses tensor 9"),
        ({"goldens": (file.Golden(0, 7),)}, "uses constant 7"),
        ({"goldens": (file.Golden(0, 0),)}, "another shape than its tensor"),
        ({"tensors": (tensor(-1),) * 3}, "impossible shape"),
        ({"tensors": (tensor(2**40),) * 3}, "impossible shape"),
    ],
)
def test_inconsistent_programs(change: dict[str, tuple[object, ...]], message: str) -> None:
    other = file.Program("other", "private_")
    assert message in refused_program(replace(ADDING, **change), other)  # type: ignore[arg-type]


def test_two_programs_of_one_name() -> None:
    assert "two programs 'main'" in refused_program(ADDING, ADDING)


@pytest.mark.parametrize(
    "constant",
    [
        file.Constant("float32", (4,), b"12345"),
        file.Constant("float32", (4,), b""),
        file.Constant("bool", (2**31, 2**31), b"12"),
        file.Constant("int8", (0,), b"1"),
    ],
)
def test_constants_of_the_wrong_size(constant: file.Constant) -> None:
    assert "bytes for" in refusal(encode(SCHEMA, binary(constants=(constant,))))


def test_the_identifier_alone_is_no_file() -> None:
    assert "damaged" in refusal(GOOD[:16])
