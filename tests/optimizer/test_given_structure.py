# ruff: noqa: E501 -- MLIR as it is printed, and one case a line
"""Calls in place of others, and the order of calls, as overrides give them."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.project.checking import run_in_numpy

KIND = "tensor<32x64xbf16>"
MODULE = f"""
func.func @block(%x: {KIND} {{ttcore.argument_type = #ttcore.argument_type<input>}},
    %y: {KIND} {{ttcore.argument_type = #ttcore.argument_type<input>}},
    %w: tensor<64x64xbf16> {{ttcore.argument_type = #ttcore.argument_type<parameter>}})
    -> ({KIND}, {KIND}) {{
  %gate = "ttir.matmul"(%x, %w) : ({KIND}, tensor<64x64xbf16>) -> {KIND}
  %active = "ttir.silu"(%gate) : ({KIND}) -> {KIND}
  %root = "ttir.sqrt"(%y) : ({KIND}) -> {KIND}
  %inverse = "ttir.reciprocal"(%root) : ({KIND}) -> {KIND}
  %product = "ttir.multiply"(%active, %inverse) : ({KIND}, {KIND}) -> {KIND}
  %turned = "ttir.sin"(%y) : ({KIND}) -> {KIND}
  %sum = "ttir.add"(%product, %turned) : ({KIND}, {KIND}) -> {KIND}
  return %sum, %turned : {KIND}, {KIND}
}}
"""
OPENED = [
    {"name": "opened", "op": "sigmoid", "operands": ["active:0"]},
    {"op": "multiply", "operands": ["gate", "opened"]},
]
INVERSE = [{"op": "rsqrt", "operands": ["y"]}]


def compiled(level: int = 1, text: str = MODULE, **entries: Any) -> CompiledModule:
    overrides = json.dumps({"version": 1, "functions": {"block": entries}}) if entries else ""
    options = CompileOptions("block", optimize=level, overrides=overrides)
    return compile_module(Source("main.mlir", text), options)


def calls(module: CompiledModule) -> list[str]:
    """The calls of the main function, in order."""
    body = module.files["src/block.cpp"].rpartition("BlockOutputs block(")[2]
    return re.findall(r"(?:ttnn|call)::(\w+)\(", body)


def refused(**entries: Any) -> str:
    with pytest.raises(CompileError) as caught:
        compiled(**entries)
    error = caught.value.diagnostics[0]
    return f"{error.message}; {error.remedy or ''}"


@pytest.mark.parametrize("level", [1, 2])
def test_calls_take_the_place_of_others(level: int) -> None:
    made = calls(compiled(level, active={"calls": OPENED}, inverse={"calls": INVERSE}))
    assert "sigmoid" in made
    assert "rsqrt" in made
    assert not {"silu", "sqrt", "reciprocal"} & set(made)
    # The product applies no activation that a person made a call of.
    code = compiled(level, active={"calls": OPENED}).files["src/block.cpp"]
    assert ".activation =" not in code


def test_the_values_stay_what_they_were() -> None:
    generator = np.random.default_rng(0)
    x, w = (generator.standard_normal(shape).astype("float32") for shape in ((32, 64), (64, 64)))
    y = np.abs(generator.standard_normal((32, 64))).astype("float32") + 1
    given = {
        "active": {"calls": OPENED},
        "inverse": {"calls": INVERSE},
        "turned": {"after": "gate"},
    }
    results = [
        run_in_numpy(Source("main.mlir", MODULE), module, lambda *_: (x, y, w))[0].flatbuffer
        for module in (compiled(), compiled(**given))
    ]
    gate = x @ w
    expected = gate / (1 + np.exp(-gate)) / np.sqrt(y) + np.sin(y)
    for result in results:
        assert np.allclose(np.asarray(result[0], "float32"), expected, rtol=0.05, atol=0.2)


def test_what_was_given_is_written_and_gives_the_same_program() -> None:
    module = compiled(
        2,
        active={"calls": OPENED, "comment": "both engines"},
        turned={"after": "gate", "before": "root"},
        gate={"weights": "bfp_bf8"},
    )
    entries = json.loads(module.decisions)["functions"]["block"]
    assert entries["active"]["calls"] == OPENED
    assert entries["active"]["comment"] == "both engines"
    assert (entries["turned"]["after"], entries["turned"]["before"]) == ("gate", "root")
    assert entries["gate"]["weights"] == "bfp_bf8"
    options = CompileOptions("block", optimize=2, overrides=module.decisions)
    again = compile_module(Source("main.mlir", MODULE), options)
    assert again.files["src/block.cpp"] == module.files["src/block.cpp"]
    assert again.decisions == module.decisions


def test_calls_that_are_given_may_be_placed_by_their_names() -> None:
    entry = {"memory": "dram", "sharding": "interleaved"}
    found = json.loads(compiled(1, active={"calls": OPENED}, opened=entry).decisions)
    entries = found["functions"]["block"]
    assert entries["opened"] == {"op": "sigmoid", **entry}
    assert entries["active"]["op"] == "multiply"


def test_an_activation_becomes_one_of_an_operand() -> None:
    given = [
        {
            "op": "multiply",
            "operands": ["active:0", "inverse"],
            "attributes": {"lhs_activation": "silu"},
        }
    ]
    module = compiled(product={"calls": given})
    assert "silu" not in calls(module)
    assert "UnaryOpType::SILU" in module.files["src/block.cpp"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ([{"op": "gelu", "operands": ["gate"]}], "gelu would not compute what silu does"),
        ([{"op": "siluu", "operands": ["gate"]}], "what 'siluu' means is not known; did you mean 'silu'"),
        ([{"op": "silu", "operands": ["gat"]}], "nothing before it is called 'gat'; did you mean 'gate'"),
        ([{"op": "silu", "operands": ["active:3"]}], "nothing before it is called 'active:3'"),
        ([{"op": "silu", "operands": ["product"]}], "'product' is made after it"),
        ([{"op": "silu", "operands": ["gate", "gate"]}], "'silu' has 1 operands at most"),
        (
            [{"op": "multiply", "operands": ["gate"], "attributes": {"scale": 1.0}}],
            "'multiply' has no attribute 'scale'; did you mean 'scalar'",
        ),
        (
            [{"op": "sigmoid", "operands": ["gate"]}, {"op": "silu", "operands": ["gate"]}],
            "call 1 of 2 has no name that others read",
        ),
    ],
)  # fmt: skip
def test_calls_that_do_not_do_are_refused(entry: list[dict[str, Any]], message: str) -> None:
    assert message in refused(active={"calls": entry})


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"calls": []}, "a list of calls"),
        ({"calls": [{"op": "silu"}]}, "call 1 of the override of 'active' in 'block' has no 'operands'"),
        ({"calls": [{"operands": ["x"], "op": 3}]}, "the name of an op"),
        ({"calls": [{"op": "silu", "operand": ["x"]}]}, "did you mean 'operands'"),
        ({"after": 3}, "the name of a call"),
    ],
)  # fmt: skip
def test_a_field_of_another_form_is_refused(entry: dict[str, Any], message: str) -> None:
    assert message in refused(active=entry)


def test_calls_given_for_no_op_are_refused() -> None:
    assert "'block' makes nothing called 'activ'; did you mean 'active'" in refused(
        activ={"calls": OPENED}
    )


def test_names_by_number_stay_those_of_their_calls() -> None:
    lines = "".join(
        f'  %{n + 1} = "ttir.sin"(%{n if n else "x"}) : ({KIND}) -> {KIND}\n' for n in range(3)
    )
    text = f"func.func @block(%x: {KIND}) -> {KIND} {{\n{lines}  return %3 : {KIND}\n}}\n"
    halves = [
        {"name": "half", "op": "multiply", "operands": ["sin#2:0"], "attributes": {"scalar": 0.5}},
        {"name": "double", "op": "multiply", "operands": ["half"], "attributes": {"scalar": 2.0}},
        {"op": "sin", "operands": ["double"]},
    ]
    placed = {"memory": "dram", "sharding": "interleaved"}
    module = compiled(1, text, **{"sin#2": {"calls": halves}, "sin#3": placed})
    entries = json.loads(module.decisions)["functions"]["block"]
    assert [name for name, entry in entries.items() if entry["op"] == "sin"] == [
        "sin", "sin#2", "sin#3"
    ]  # fmt: skip
    assert entries["sin#3"]["memory"] == "dram"


# Order


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize(
    ("entry", "before"),
    [
        ({"after": "gate"}, "matmul"),
        ({"before": "root"}, "matmul"),
        ({"after": "gate", "before": "inverse"}, "matmul"),
        ({"after": "nothing", "before": "root"}, "matmul"),
        ({"after": "root"}, "sqrt"),
    ],
)  # fmt: skip
def test_a_call_is_made_where_it_is_given(level: int, entry: dict[str, str], before: str) -> None:
    made = [each for each in calls(compiled(level, turned=entry)) if not each.startswith("to_")]
    assert made[made.index("sin") - 1] == before


def test_a_call_between_both_stays() -> None:
    made = calls(compiled(1, turned={"after": "root", "before": "sum"}))
    assert made == calls(compiled(1))


def test_calls_are_moved_one_after_the_other() -> None:
    """Each goes beside another one that moves itself, in any order of the file."""
    given = {
        "inverse": {"after": "root"},
        "root": {"after": "turned"},
        "turned": {"before": "gate"},
    }
    made = [each for each in calls(compiled(1, **given)) if not each.startswith("to_")]
    assert made[:4] == ["sin", "sqrt", "reciprocal", "matmul"]


@pytest.mark.parametrize(
    ("name", "entry", "message"),
    [
        ("product", {"after": "root"}, "it reads 'inverse'; it stays where it is"),
        ("root", {"after": "product"}, "'inverse' reads it"),
        ("sum", {"before": "root"}, "cannot be called before 'root': it reads 'turned'"),
        ("turned", {"after": "sum"}, "'sum' reads it"),
        ("turned", {"after": "activ"}, "nothing is called 'activ'; did you mean 'active'"),
        ("inverse", {"before": "gate"}, "it reads 'root'"),
    ],
)
def test_a_place_that_a_call_cannot_have_is_refused(
    name: str, entry: dict[str, str], message: str
) -> None:
    assert message in refused(**{name: entry})


def test_the_nearest_legal_place_is_named() -> None:
    said = refused(product={"after": "sum"})
    assert "'sum' reads it; the nearest legal place is after 'turned'" in said


def test_a_call_does_not_pass_one_that_overwrites_what_it_reads() -> None:
    cache = "tensor<1x1x64x64xbf16>"
    entry = "tensor<1x1x1x64xbf16>"
    text = f"""
func.func @block(%cache: {cache} {{ttcore.argument_type = #ttcore.argument_type<input>, ttcore.kv_cache}},
    %entry: {entry} {{ttcore.argument_type = #ttcore.argument_type<input>}},
    %at: tensor<1xi32> {{ttcore.argument_type = #ttcore.argument_type<input>}}) -> ({cache}, {cache}) {{
  %scaled = "ttir.sin"(%entry) : ({entry}) -> {entry}
  "ttir.update_cache"(%cache, %scaled, %at) <{{batch_offset = 0 : i32}}> : ({cache}, {entry}, tensor<1xi32>) -> ()
  %read = "ttir.cos"(%cache) : ({cache}) -> {cache}
  return %read, %cache : {cache}, {cache}
}}
"""
    with pytest.raises(CompileError, match="overwrites"):
        compiled(1, text, read={"after": "scaled"})


# Calls that are to stay


PROJECTED = f"""
func.func @block(%x: {KIND} {{ttcore.argument_type = #ttcore.argument_type<input>}},
    %w: tensor<64x64xbf16> {{ttcore.argument_type = #ttcore.argument_type<parameter>}}) -> {KIND} {{
  %gate = "ttir.matmul"(%x, %w) : ({KIND}, tensor<64x64xbf16>) -> {KIND}
  %active = "ttir.silu"(%gate) : ({KIND}) -> {KIND}
  return %active : {KIND}
}}
"""


def test_an_entry_of_a_call_is_that_of_the_call_it_becomes_part_of() -> None:
    """The product applies the activation, and keeps what was decided of either."""
    module = compiled(
        1, PROJECTED, gate={"memory": "l1", "sharding": "interleaved"}, active={"fuse": True}
    )
    entry = json.loads(module.decisions)["functions"]["block"]["active"]
    assert (entry["op"], entry["memory"], entry["fuse"]) == ("matmul", "l1", True)
