"""Decisions that are given, and those that were taken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.optimizer.modules import CHAIN, compiled, entry
from ttcodegen.diagnostics import CompileError


def given(**entries: dict[str, Any]) -> str:
    """A file with overrides of the function main."""
    return json.dumps({"version": 1, "functions": {"main": entries}})


def test_what_was_decided_gives_the_same_program() -> None:
    decided = compiled(CHAIN, 2)
    again = compiled(CHAIN, 2, decided.decisions)
    assert again.files == decided.files
    assert again.flatbuffer == decided.flatbuffer


def test_an_override_is_obeyed() -> None:
    module = compiled(CHAIN, 2, given(hidden={"memory": "dram", "math_fidelity": "hifi4"}))
    assert json.loads(module.decisions)["functions"]["main"]["hidden"]["memory"] == "dram"
    (hidden, *_) = [op for op in entry(module).operations if op.name == "ttnn.matmul"]
    placement = entry(module).tensors[hidden.results[0]].type.placement
    assert placement.buffer_type == "dram"
    assert "MathFidelity::HiFi4" in module.files["src/tuning.hpp"]


def test_a_program_configuration_can_be_edited() -> None:
    decided = json.loads(compiled(CHAIN, 2).decisions)
    entry_ = decided["functions"]["main"]["hidden"]
    edited = entry_["program_config"].replace("in0_block_w = ", "in0_block_w = 1, x = ")
    edited = edited.replace("in0_block_w = 1, x = ", "in0_block_w = 2 - ").split(" - ")
    config = edited[0] + edited[1].lstrip("0123456789")
    module = compiled(CHAIN, 2, given(hidden={**entry_, "program_config": config}))
    assert ".in0_block_w = 2" in module.files["src/tuning.hpp"]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ("{", "are no JSON"),
        ("{}", '"version": 1'),
        (given(hiden={"memory": "l1"}), "makes nothing called 'hiden'"),
        (given(hidden={"memry": "l1"}), "has a field 'memry'"),
        (given(hidden={"op": "add"}), "is made by 'matmul', not 'add'"),
        (given(hidden={"memory": "l2"}), "cannot be made as its override says"),
        (given(hidden={"program_config": "#ttnn.nothing<>"}), "the override of 'hidden'"),
        (json.dumps({"version": 1, "functions": {"other": {}}}), "no function 'other'"),
    ],
)
def test_what_cannot_be_is_refused(overrides: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        compiled(CHAIN, 2, overrides)


def test_a_refusal_says_what_is_legal() -> None:
    with pytest.raises(CompileError) as refused:
        compiled(CHAIN, 2, given(hidden={"sharding": "height_sharded", "grid": [3, 3]}))
    assert "the library takes" in str(refused.value.diagnostics[0])
    assert "block_sharded" in str(refused.value.diagnostics[0])
