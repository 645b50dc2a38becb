"""Functions of layers take no more memory than the same statements in a row.

The emitted C++ is run in thought: who holds which tensor, and how many there are at most. Tensors
are freed as the library does it, when the last variable that holds them goes.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.conversions.host_functions import layers
from ttcodegen.foundation.diagnostics import Source

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "transformer"))

from make import module_text

FUNCTION = re.compile(r"^(?:static )?[\w:<>, ]+ (\w+)\(([^;]*)\) \{$\n(.*?)^\}$", re.M | re.S)
LOOP = re.compile(r"for \(size_t index = 0; index < weights.layers.size\(\); \+\+index\) \{$")
STATEMENT = re.compile(r"(?:ttnn::Tensor |auto )?(\w+|\[.*?\]) = (.*);")


def unrolled(lines: list[str], blocks: int) -> list[str]:
    """The lines of a function with the bodies of its loops once for each block."""
    found: list[str] = []
    start = 0
    for line in map(str.strip, lines):
        if LOOP.match(line):
            start = len(found)
        elif line == "}":
            found += found[start:] * (blocks - 1)
        else:
            found.append(line)
    return found


class Run:
    """Runs functions, each line a statement, and counts tensors."""

    def __init__(self, cpp: str, blocks: int) -> None:
        self.functions = {
            m[1]: (m[2].split(", "), unrolled(m[3].splitlines(), blocks))
            for m in FUNCTION.finditer(cpp)
        }
        self.holders: Counter[int] = Counter()
        self.made = 0
        self.counts: list[int] = []

    def release(self, tensor: int | None) -> None:
        if tensor is not None:
            self.holders[tensor] -= 1
            if not self.holders[tensor]:
                del self.holders[tensor]

    def hold(self, tensor: int | None) -> int | None:
        if tensor is not None:
            self.holders[tensor] += 1
        return tensor

    def call(self, name: str, arguments: list[tuple[int | None, bool]]) -> list[int | None]:
        """Runs a function and gives what it returns.

        Each argument is a tensor, and whether it was moved into the call.
        """
        parameters, lines = self.functions[name]
        frame: dict[str, int | None] = {}
        borrowed: list[int | None] = []
        for parameter, (tensor, moved) in zip(parameters, arguments, strict=False):
            type_, _, variable = parameter.rpartition(" ")
            if type_ == "ttnn::Tensor":
                frame[variable] = tensor if moved else self.hold(tensor)
            elif type_ == "const ttnn::Tensor&":
                frame[variable] = self.hold(tensor)
                borrowed.append(tensor if moved else None)
        for line in map(str.strip, lines):
            if line.startswith("return "):
                names = [word for word in re.findall(r"\w+", line[7:]) if word in frame]
                returned = [self.hold(frame[name]) for name in names]
                for tensor in (*frame.values(), *borrowed):
                    self.release(tensor)
                return returned
            if (found := STATEMENT.match(line)) is not None:
                self.assign(frame, re.findall(r"\w+", found[1]), found[2])
        raise AssertionError(f"{name} returns nothing")

    def assign(self, frame: dict[str, int | None], variables: list[str], expression: str) -> None:
        callee, _, inner = expression.partition("(")
        given: list[tuple[int | None, bool]] = []
        for moved, plain in re.findall(r"last_use\((\w+)\)|([\w.\[\]]+)", inner):
            name = moved or plain
            given.append((frame.get(name), bool(moved)))
            if moved:
                frame[name] = None
        if expression == "ttnn::Tensor()":
            made = [None]
        elif callee == "last_use":
            made = [tensor for tensor, _ in given]
        elif callee in self.functions:
            made = self.call(callee, given)
        else:
            self.made += 1
            made = [self.hold(self.made)]
            self.counts.append(len(self.holders))
            for tensor, moved in given:
                if moved:
                    self.release(tensor)
        for variable, tensor in zip(variables, made, strict=True):
            self.release(frame.get(variable))
            frame[variable] = tensor


def tensors_held(text: str, blocks: int) -> list[int]:
    """Number of live tensors at each allocation, in the C++ of a module."""
    files = compile_module(Source("model.mlir", text), CompileOptions("model")).files
    run = Run(files["src/model.cpp"], blocks)
    run.call("transformer", [])
    return run.counts


@pytest.mark.parametrize("blocks", [3, 7])
def test_layers_take_no_more_memory(blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without a name, what a layer gives takes the place of what it is given.
    text = re.sub(r"%layers_(\d)_block_output", r"%10\1", module_text(blocks))
    text = re.sub(r"%layers_(\d)_after_attention", r"%20\1", text)
    counts = tensors_held(text, blocks)
    monkeypatch.setattr(layers, "outline_layers", lambda statements, body: (statements, []))
    plain = tensors_held(text, blocks)
    assert len(counts) == len(plain) > 20 * blocks
    assert max(counts) == max(plain)
    # What layers share, here the mask, is there from the start to the end of the loop, and all else
    # as long as it was.
    last_layer = len(counts) // blocks
    longer = [a - b for a, b in zip(counts[-last_layer:], plain[-last_layer:], strict=True)]
    assert sorted(set(longer)) == [0, 1]
    assert longer == sorted(longer)
