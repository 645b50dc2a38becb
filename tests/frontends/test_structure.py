"""Structures (pytrees) of arguments and results."""

from __future__ import annotations

import pytest

from ttcodegen.emission.structure import Structure, StructureError, static

TENSOR = Structure("tensor", index=0)
TREE = Structure(
    "dict",
    keys=("a", "b"),
    parts=(
        Structure("tuple", parts=(Structure("tensor", index=1), Structure("value", value=3))),
        Structure("list", parts=(TENSOR,)),
    ),
)


def test_survives_the_manifest() -> None:
    assert Structure.from_json(TREE.to_json()) == TREE
    assert Structure.from_json(TENSOR.to_json()) == TENSOR


def test_takes_apart_and_puts_together() -> None:
    value = {"a": ("x", 3), "b": ["y"]}
    assert dict(TREE.tensors(value)) == {0: "y", 1: "x"}
    assert TREE.build(["y", "x"]) == value
    assert dict(TREE.names("")) == {1: "a.0", 0: "b"}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": ("x", 4), "b": ["y"]}, "compiled for 3, found 4"),
        ({"a": ("x", 3)}, "expected a dictionary of a, b"),
        ({"a": ("x", 3, 5), "b": ["y"]}, "expected a tuple of 2"),
    ],
)
def test_says_what_is_otherwise(value: object, message: str) -> None:
    with pytest.raises(StructureError, match=message):
        list(TREE.tensors(value))


def test_values_are_kept() -> None:
    assert static("text").value == "text"
