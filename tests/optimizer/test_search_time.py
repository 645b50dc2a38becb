"""The search for placements stays fast: its time for a large program, and how it grows."""

from __future__ import annotations

import cProfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source

MOST_SECONDS = 10
"""Of a processor, for the whole compilation of 1,000 ops; it takes 2."""

Modules = Callable[[int], Source]


@pytest.fixture
def varied(monkeypatch: pytest.MonkeyPatch) -> Modules:
    """Modules of decoder layers, gated products and convolutions with residual connections, whose
    layers differ in width: nothing that is known of one call answers for the next layer."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    synthetic = import_module("synthetic")

    def made(size: int) -> Source:
        writer = synthetic.Writer()
        value, shared = synthetic.inputs(writer, splat=False)
        index = 0
        while len(writer.lines) < size:
            width = 320 + 32 * (index % 40)
            if index % 3 == 2:
                monkeypatch.setattr(synthetic, "HIDDEN", width)
                value = synthetic.layer(writer, index, value, shared)
            else:
                value = gated(writer, synthetic.SEQUENCE, value, width)
            index += 1
        return Source("varied.mlir", writer.module(value))

    return made


def gated(writer: Any, sequence: tuple[int, int, int], value: str, width: int) -> str:
    """Two products with a gate between them, and a residual connection."""
    batch, length, channels = sequence
    wide = (batch, length, width)
    up = writer.argument(f"up{len(writer.lines)}", (channels, width))
    down = writer.argument(f"down{len(writer.lines)}", (width, channels))
    hidden = writer.op("matmul", [value, up], wide)
    gate = writer.op("exp", [hidden], wide)
    hidden = writer.op("multiply", [hidden, gate], wide)
    made = writer.op("matmul", [writer.op("tanh", [hidden], wide), down], sequence)
    return writer.op("add", [made, value], sequence)


def test_a_thousand_ops_are_placed_in_seconds(varied: Modules) -> None:
    source = varied(1000)
    start = time.process_time()
    compile_module(source, CompileOptions("model", optimize=2))
    assert time.process_time() - start <= MOST_SECONDS


@pytest.mark.slow
def test_weights_that_wait_cost_nothing(varied: Modules) -> None:
    """Calls are counted, for they are the same in each run."""

    def calls(size: int) -> int:
        source = varied(size)
        profile = cProfile.Profile()
        profile.runcall(compile_module, source, CompileOptions("model", optimize=2))
        return sum(entry.callcount for entry in profile.getstats())

    calls(100)  # What is imported and cached counts for none.
    assert calls(1000) <= 2.3 * calls(500)
