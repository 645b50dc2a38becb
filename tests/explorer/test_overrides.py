"""Overrides of nodes over HTTP: taken, refused, listed and taken back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ttcodegen.explorer.client import ExplorerError, TTExplorer


def test_overrides_outlive_a_request(explorer: TTExplorer, model: Path) -> None:
    pairs = [{"key": "memory", "value": "l1"}, {"key": "sharding", "value": "block_sharded"}]
    pairs.append({"key": "grid", "value": "[4, 4]"})
    assert explorer.override(
        str(model), {"scores": {"named_location": "scores", "attributes": pairs}}
    )
    entry = {"memory": "l1", "sharding": "block_sharded", "grid": [4, 4]}
    assert explorer.overrides(str(model)) == {
        "version": 1,
        "functions": {"*": {"scores": entry}},
    }
    graphs = {graph["id"]: graph for graph in explorer.convert(str(model))}
    (scores,) = [n for n in graphs["optimized: model"]["nodes"] if n["id"] == "scores"]
    reported = {each["key"]: each["value"] for each in scores["outputsMetadata"][0]["attrs"]}
    assert (reported["sharding"], reported["grid"]) == ("block_sharded", "4x4")
    # An empty value takes a field back, and no overrides all of them.
    back = {"scores": {"named_location": "scores", "attributes": [{"key": "grid", "value": ""}]}}
    assert explorer.override(str(model), back)
    assert "grid" not in explorer.overrides(str(model))["functions"]["*"]["scores"]
    assert explorer.override(str(model), {})
    assert explorer.overrides(str(model))["functions"] == {}


def test_calls_and_their_order_are_overrides_as_well(explorer: TTExplorer, model: Path) -> None:
    calls = [
        {
            "name": "half",
            "op": "multiply",
            "operands": ["head/scaled:0"],
            "attributes": {"scalar": 0.5},
        },
        {"name": "double", "op": "multiply", "operands": ["half"], "attributes": {"scalar": 2.0}},
        {"op": "exp", "operands": ["double"]},
    ]
    pairs = [{"key": "calls", "value": json.dumps(calls)}, {"key": "comment", "value": "mine"}]
    assert explorer.override(str(model), {"head/scaled": {"attributes": pairs}})
    entry = explorer.overrides(str(model))["functions"]["*"]["head/scaled"]
    assert entry == {"calls": calls, "comment": "mine"}
    graphs = {graph["id"]: graph for graph in explorer.convert(str(model))}
    nodes = {node["id"] for node in graphs["optimized: model"]["nodes"]}
    assert {"half", "double", "head/scaled"} <= nodes
    # The page shows a decision with what was given of it.
    (found,) = [
        each for each in explorer.command("decisions", str(model)) if each["node"] == "head/scaled"
    ]
    assert found["chosen"]["calls"] == calls
    assert found["chosen"]["comment"] == "mine"
    wrong = [{"key": "calls", "value": json.dumps([{"op": "sin", "operands": ["head/scaled:0"]}])}]
    with pytest.raises(ExplorerError, match="sin would not compute what exp does"):
        explorer.override(str(model), {"head/scaled": {"attributes": wrong}})
    place = [{"key": "after", "value": "head/scaled"}]
    with pytest.raises(
        ExplorerError, match="'scores' cannot be called after 'head/scaled': 'half' reads it"
    ):
        explorer.override(str(model), {"scores": {"attributes": place}})
    assert explorer.overrides(str(model))["functions"]["*"]["head/scaled"] == entry
    explorer.override(str(model), {})


def test_an_override_of_what_there_is_not_is_refused(explorer: TTExplorer, model: Path) -> None:
    pairs = [{"key": "memory", "value": "dram"}]
    with pytest.raises(ExplorerError, match=r"nothing is called 'scorse'[^?]*'scores'\?"):
        explorer.override(str(model), {"scorse": {"attributes": pairs}})
    assert explorer.overrides(str(model))["functions"] == {}
    assert len(explorer.convert(str(model))) > 1


def test_an_override_that_the_optimizer_cannot_follow_is_refused(
    explorer: TTExplorer, model: Path
) -> None:
    good = [{"key": "memory", "value": "l1"}]
    explorer.override(str(model), {"scores": {"attributes": good}})
    before = explorer.overrides(str(model))
    huge = [
        {"key": "sharding", "value": "block_sharded"},
        {"key": "grid", "value": "[99, 99]"},
    ]
    with pytest.raises(ExplorerError, match=r"\[99, 99\] is more than the 8x8 cores"):
        explorer.override(str(model), {"scores": {"attributes": huge}})
    assert explorer.overrides(str(model)) == before
    settings = {"overrides": {"weights": {"attributes": good}}, "optimize": 0}
    with pytest.raises(ExplorerError, match="without the optimizer"):
        explorer.command("override", str(model), settings)


def test_the_overrides_of_a_node_are_taken_back(explorer: TTExplorer, model: Path) -> None:
    pairs = [{"key": "memory", "value": "l1"}]
    for back in ({"attributes": []}, None, {"attributes": [{"key": "memory", "value": ""}]}):
        explorer.override(str(model), {"scores": {"attributes": pairs}})
        explorer.override(str(model), {"scores": back})
        assert explorer.overrides(str(model))["functions"] == {}
    # A decision for one function is taken back by the name of the node alone.
    explorer.override(str(model), {"scores": {"function": "model", "attributes": pairs}})
    explorer.override(str(model), {"scores": {"attributes": []}})
    assert explorer.overrides(str(model))["functions"] == {}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"scores": {"attributes": [{"key": "memroy", "value": "l1"}]}}, "did you mean 'memory'?"),
        ({"scores": {"attributes": [{"key": "memory", "value": "l2"}]}}, "one of dram, l1"),
        ({"scores": {"attributes": [{"key": "grid", "value": "[0, 1]"}]}}, "columns and rows"),
        ({"scores": {"attributes": "memory"}}, "the override of 'scores' is wrong"),
        ({"scores": {"attributes": [{"key": "memory"}]}}, "has no key or no value"),
        ({"scores": {"attributes": [{"key": "grid", "value": "[" * 10**5}]}}, "columns and rows"),
        ({"scores": []}, "is no object"),
        ("scores", "'overrides' is missing"),
    ],
)
def test_overrides_that_no_op_can_have_are_refused(
    explorer: TTExplorer, model: Path, overrides: Any, message: str
) -> None:
    with pytest.raises(ExplorerError) as raised:
        explorer.override(str(model), overrides)
    assert message in str(raised.value)
    assert explorer.overrides(str(model))["functions"] == {}


def test_legal_choices_are_listed_and_taken(explorer: TTExplorer, model: Path) -> None:
    reported = explorer.choices(str(model), "scores")
    assert (reported["function"], reported["op"]) == ("model", "matmul")
    assert reported["chosen"]["memory"] in reported["fields"]["memory"]
    assert {"interleaved", "block_sharded"} <= set(reported["fields"]["sharding"])
    assert "hifi2" in reported["fields"]["math_fidelity"]
    sharded = [way for way in reported["ways"] if "grid" in way]
    for way in (reported["ways"][0], sharded[0], sharded[-1]):
        pairs = [{"key": key, "value": json.dumps(value)} for key, value in way.items()]
        pairs = [{**pair, "value": pair["value"].strip('"')} for pair in pairs]
        explorer.override(str(model), {})
        explorer.override(str(model), {"scores": {"attributes": pairs}})
        assert explorer.choices(str(model), "scores")["chosen"].items() >= way.items()


def test_choices_of_what_there_is_not_are_refused(explorer: TTExplorer, model: Path) -> None:
    with pytest.raises(ExplorerError, match="did you mean 'scores'"):
        explorer.choices(str(model), "scorse")
    with pytest.raises(ExplorerError, match="the setting 'node' is missing"):
        explorer.command("choices", str(model))
    with pytest.raises(ExplorerError, match="without the optimizer"):
        explorer.command("choices", str(model), {"node": "scores", "optimize": "0"})
    with pytest.raises(ExplorerError, match="was compiled already"):
        explorer.command("choices", str(model.parent), {"node": "scores"})
