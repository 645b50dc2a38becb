"""Records to bytes and back."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
from flatbuffers import encode as wire
from flatbuffers import packer
from flatbuffers.table import Table
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.flatbuffer.programs import adding_program, binary, tensor
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.decoding import decode, encode
from ttcodegen.flatbuffer.schema import load_schema
from ttcodegen.foundation.diagnostics import CompileError

SCHEMA = load_schema("ttnn.fbs")


def round_trip(record: file.Binary) -> file.Binary:
    data = encode(SCHEMA, record)
    return decode(SCHEMA, file.RECORDS, data, ".ttnn file", file.VERSION)


TEXT = st.text(max_size=8)
INT64 = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False)
VALUES = st.one_of(
    st.none(),
    st.builds(file.Integer, INT64),
    st.builds(file.Float, FLOATS),
    st.builds(file.Boolean, st.booleans()),
    st.builds(file.String, TEXT),
    st.builds(file.Integers, st.lists(INT64, max_size=4).map(tuple)),
    st.builds(file.Floats, st.lists(FLOATS, max_size=4).map(tuple)),
    st.builds(file.Booleans, st.lists(st.booleans(), max_size=4).map(tuple)),
    st.builds(file.DataTypeName, st.sampled_from(SCHEMA.enums["DataType"])),
    st.builds(file.ConstantReference, st.integers(0, 2**32 - 1)),
)
IDS = st.lists(st.integers(0, 2**32 - 1), max_size=4).map(tuple)
OPERATIONS = st.builds(
    file.Operation,
    TEXT,
    IDS,
    IDS,
    IDS,
    st.lists(st.builds(file.Attribute, TEXT, VALUES), max_size=3).map(tuple),
    st.none() | TEXT,
    st.none() | TEXT,
)


@settings(deadline=None)
@given(st.lists(OPERATIONS, max_size=4).map(tuple))
def test_round_trip(operations: tuple[file.Operation, ...]) -> None:
    program = file.Program("main", "private_", (tensor(3), tensor(3)), (), (), operations)
    constant = file.Constant("bool", (2, 2), b"\x01\x00\x01\x01")
    record = binary(program, constants=(constant, file.Constant("int8", (0,), b"")))
    assert round_trip(record) == record


def test_strings_that_are_not_unicode() -> None:
    """Names of arguments come from escapes of the source."""
    assert round_trip(binary(file.Program("\ud800", "entry"))).programs[0].name == "?"


def test_zeros_keep_their_sign() -> None:
    values = (file.Float(0.0), file.Float(-0.0), file.Floats((0.0,)), file.Floats((-0.0,)))
    attributes = tuple(file.Attribute("x", value) for value in values)
    operation = file.Operation("ttnn.full", attributes=attributes)
    record = round_trip(binary(file.Program("main", "entry", operations=(operation,))))
    found: list[Any] = [a.value for a in record.programs[0].operations[0].attributes]
    signs = [math.copysign(1.0, v) for v in (found[0].value, found[1].value)]
    assert signs == [1.0, -1.0]
    assert math.copysign(1.0, found[3].values[0]) == -1.0


def test_not_a_number_is_kept() -> None:
    operation = file.Operation("x", attributes=(file.Attribute("x", file.Float(math.nan)),))
    record = round_trip(binary(file.Program("main", "entry", operations=(operation,))))
    value = record.programs[0].operations[0].attributes[0].value
    assert isinstance(value, file.Float)
    assert math.isnan(value.value)


def test_equal_records_are_stored_once() -> None:
    def size(count: int) -> int:
        shared = file.Attribute("dims", file.Integers((1, 2, 3, 4)))
        operations = tuple(file.Operation("ttnn.sum", attributes=(shared,)) for _ in range(count))
        return len(encode(SCHEMA, binary(file.Program("main", "entry", operations=operations))))

    # An offset in the vector, and a table of three fields.
    assert size(101) - size(100) <= 20


def test_the_library_reads_the_file() -> None:
    """Version and first constant, read with the flatbuffers library and by slot numbers alone."""
    elements = bytes(range(64))
    record = binary(adding_program(), constants=(file.Constant("uint8", (64,), elements),))
    data = bytearray(encode(SCHEMA, record))
    root = Table(data, wire.Get(packer.uoffset, data, 0))
    assert data[4:8] == b"TTNN"
    assert struct.unpack_from("<H", data, root.Pos + root.Offset(4))[0] == file.MAJOR
    assert root.String(root.Pos + root.Offset(8)) == b"0.1"
    constants = root.Vector(root.Offset(4 + 2 * 7))
    constant = Table(data, root.Indirect(constants))
    start = constant.Vector(constant.Offset(8))
    assert start % 16 == 0
    assert data[start : start + 64] == elements


def test_files_are_deterministic() -> None:
    record = binary(adding_program("a"), adding_program("b"))
    assert encode(SCHEMA, record) == encode(
        SCHEMA, binary(adding_program("a"), adding_program("b"))
    )


def test_too_large_files_are_refused() -> None:
    with pytest.raises(CompileError, match="2 GiB"):
        encode(SCHEMA, binary(), large_bytes=2**31)
