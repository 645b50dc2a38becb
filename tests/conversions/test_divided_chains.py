"""Random chains of calls, of one result and of several, are divided anywhere and emitted whole."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.conversions.host_functions import layer_analysis, layers
from ttcodegen.conversions.host_functions.layer_analysis import shared_first
from ttcodegen.foundation.diagnostics import Source

ROWS = "tensor<32x64xf32>"
PLACES = "tensor<32x64xui16>"


def chain(random: Random, steps: int) -> str:
    """A function that sorts, adds and maps values, the last or any before it."""
    lines: list[str] = []
    values = ["%x", "%y"]
    places: list[str] = []
    for step in range(steps):
        operand = values[-1] if random.random() < 0.6 else random.choice(values)
        kind = random.choice(["sin", "exp", "add", "add", "sort", "places", "layer"])
        if kind == "sort":
            lines.append(
                f'%v{step}, %i{step} = "ttir.sort"({operand}) : ({ROWS}) -> ({ROWS}, {PLACES})'
            )
            places.append(f"%i{step}")
            if random.random() < 0.8:
                values.append(f"%v{step}")
            continue
        if kind == "places" and places:
            lines.append(
                f'%v{step} = "ttir.typecast"({random.choice(places)}) : ({PLACES}) -> {ROWS}'
            )
        elif kind == "add":
            other = random.choice(values)
            lines.append(f'%v{step} = "ttir.add"({operand}, {other}) : ({ROWS}, {ROWS}) -> {ROWS}')
        elif kind == "layer":
            lines.append(f'%m{step} = "ttir.tanh"({operand}) : ({ROWS}) -> {ROWS}')
            lines.append(
                f'%n{step} = "ttir.add"(%m{step}, {values[0]}) : ({ROWS}, {ROWS}) -> {ROWS}'
            )
            lines.append(f'%v{step} = "ttir.cos"(%n{step}) : ({ROWS}) -> {ROWS}')
        else:
            name = kind if kind in ("sin", "exp") else "sin"
            lines.append(f'%v{step} = "ttir.{name}"({operand}) : ({ROWS}) -> {ROWS}')
        values.append(f"%v{step}")
    wanted = [*random.sample(values[2:], 3), *random.sample(places, min(2, len(places)))]
    types = [PLACES if value in places else ROWS for value in wanted]
    return "\n".join(
        [
            f"func.func @f(%x: {ROWS}, %y: {ROWS}) -> ({', '.join(types)}) {{",
            *(f"  {line}" for line in lines),
            f"  return {', '.join(wanted)} : {', '.join(types)}",
            "}",
        ]
    )


def _shared_first(statements: Any, body: layers.Body) -> Any:
    """The order with what layers share first, whatever it saves."""
    search = layers._Search(shared_first(statements, body.returned) or statements, body)
    return search, search.best()


@pytest.mark.parametrize("seed", range(25))
def test_any_order_of_calls_and_any_cut(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    longest = random.choice([12, 20, 35, 60, 95])
    monkeypatch.setattr(layer_analysis, "LONGEST", longest)
    monkeypatch.setattr(layer_analysis, "LONGEST_WITH_COMMENTS", longest + 5)
    monkeypatch.setattr(layer_analysis, "SHORTEST", max(longest // 4, 3))
    monkeypatch.setattr(layers, "LONGEST", longest)
    if random.random() < 0.5:
        monkeypatch.setattr(layers, "_best_order", _shared_first)
    text = chain(random, random.choice([30, 60, 120]))
    files = compile_module(Source("chain.mlir", text), CompileOptions("chain")).files
    # Each sort is called once, whichever of its results are wanted, and wherever.
    source = files["src/chain.cpp"]
    assert 0 < source.count("ttnn::sort(") <= text.count("ttir.sort")
    assert "return" in source
