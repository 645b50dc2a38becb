"""The schema text, and that the classes of records are what it says."""

from __future__ import annotations

import dataclasses

import pytest

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.flatbuffer.program import ELEMENT_SIZES, RECORDS
from ttcodegen.flatbuffer.schema import FieldType, SchemaError, load_schema, parse_schema
from ttcodegen.ops.core.definition import Layout


def test_records_have_the_fields_of_their_tables() -> None:
    schema = load_schema("ttnn.fbs")
    assert {record.__name__ for record in RECORDS} == set(schema.tables)
    for record in RECORDS:
        names = tuple(field.name for field in dataclasses.fields(record))
        assert names == tuple(field.name for field in schema.tables[record.__name__])


def test_enumerators_are_the_spellings_of_the_compiler() -> None:
    enums = load_schema("ttnn.fbs").enums
    assert set(enums["DataType"]) == {data_type.mlir for data_type in DataType}
    assert set(enums["Layout"]) == {layout.value for layout in Layout}
    assert set(enums["ElementType"]) == set(ELEMENT_SIZES)


def test_version_is_the_first_field_of_the_root() -> None:
    schema = load_schema("ttnn.fbs")
    assert schema.identifier == "TTNN"
    assert schema.tables[schema.root][0].name == "major"


def test_a_union_takes_two_slots() -> None:
    schema = parse_schema(
        "table A { x : int8; } union U { A } table R { a : U; b : string; } root_type R;".replace(
            "int8", "ubyte"
        )
    )
    assert [(field.name, field.slot) for field in schema.tables["R"]] == [("a", 1), ("b", 2)]


def test_metadata_and_comments() -> None:
    schema = parse_schema(
        """
        // a comment
        file_identifier "ABCD";
        table R { // another
          a : string (required);
          b : [ubyte] (force_align: 16);
          c : [long];
        }
        root_type R;
        """
    )
    a, b, c = schema.tables["R"]
    assert schema.identifier == "ABCD"
    assert a.required
    assert b.alignment == 16
    assert c.type == FieldType("vector", element=FieldType("scalar", "long"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("table A { b : B; } table B { a : [A]; } root_type A;", "contains itself"),
        ("table A { b : C; } root_type A;", "no table C"),
        ("struct A { }", "unexpected 'struct'"),
        ("table A { b : [[long]]; } root_type A;", "vectors of vectors"),
        ("table A { b : long (id: 3); } root_type A;", "unexpected 'id'"),
        ("table A { b : long", "ends too early"),
        ("enum E : int { a }", "expected 'ubyte'"),
    ],
)
def test_refused_schemas(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message.replace("'", ".").replace("[", ".")):
        parse_schema(text)
