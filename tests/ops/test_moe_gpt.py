"""`moe_gpt` and `selective_reduce_combine` against loops over tokens and experts."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.ops.test_experts_on_meshes import shard
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.frontends import source_module
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.numerics.interpreter import Interpreter

K, CORES, TILE = 2, 4, 32
HIDDEN = (8 + 8 + 7 + 7) * TILE
"""Of four cores the last two have a tile less."""
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Model:
    """Experts on the chips of a mesh, which all have the same weights."""

    mesh: tuple[int, int]
    experts: int
    tokens: int
    tiles: tuple[int, ...]
    bias: bool

    @property
    def devices(self) -> int:
        return self.mesh[0] * self.mesh[1]

    @property
    def inner(self) -> int:
        return sum(self.tiles) * TILE

    def types(self) -> dict[str, str]:
        known, extra = self.experts * self.devices, TILE * self.bias
        pairs, experts, tokens = max(self.tiles) // 2, self.experts, self.tokens
        return {
            "x": f"{tokens}x{HIDDEN}xbf16",
            "named": f"{tokens}x{K}xui16",
            "scores": f"{tokens}x{K}xbf16",
            "owners": f"1x{known}xui16",
            "w0_w1": f"{CORES}x1x{experts}x{pairs}x{HIDDEN + extra}x128xbf16",
            "w2": f"{CORES}x1x{experts}x2x{self.inner + extra}x128xbf16",
        }

    def results(self) -> list[str]:
        stride = -(-(2 * self.experts + 1) // 4) * 4
        return [
            f"1x{-(-self.experts // 4) * 4}xui32",
            f"1x{(self.tokens + 1) * stride}xui32",
            f"{self.experts}x{(self.tokens + 1) * 4}xui32",
            f"14x2x32x{HIDDEN}xbf16",
            f"14x2x32x{HIDDEN}xbf16",
        ]

    def text(self) -> str:
        """The routing and the tokens that return, of all chips."""
        types, made = self.types(), self.results()
        back = f"{K}x{self.tokens // self.mesh[0]}x{HIDDEN}xbf16"
        wholes = [
            "x".join([str(int(each.split("x")[0]) * self.devices), *each.split("x")[1:]])
            for each in (*made[:3], back)
        ]
        dims = ["0, 0", "0, 0", "0, 0", "0, 0"]
        lines = [
            '%r0, %r1, %r2, %r3, %r4 = "ttir.moe_gpt"(%x, %named, %scores, %owners, %w0_w1, %w2) '
            f"<{{hidden_size = {HIDDEN} : ui32, cluster_axis = 0 : ui32}}> : "
            f"({', '.join(f'tensor<{each}>' for each in types.values())}) -> "
            f"({', '.join(f'tensor<{each}>' for each in made)})",
            f'%r5 = "ttir.selective_reduce_combine"(%r4, %r1, %r2, %r0) <{{hidden_size = {HIDDEN} '
            f": ui32, batch_size = {self.tokens} : ui32, seq_size = 1 : ui32, select_experts_k = "
            f"{K} : ui32, experts = {self.experts * self.devices} : ui32}}> : (tensor<{made[4]}>, "
            f"tensor<{made[1]}>, tensor<{made[2]}>, tensor<{made[0]}>) -> tensor<{back}>",
        ]
        values = ["%r0", "%r1", "%r2", "%r5"]
        parts = [*made[:3], back]
        if self.devices > 1:
            for index, (value, whole, part, dim) in enumerate(
                zip(values, wholes, parts, dims, strict=True)
            ):
                ones = ", 1" * (part.count("x") - 1)
                counts = f"{self.devices}{ones}"
                lines.append(shard(f"%s{index}", value, whole, part, dim, counts, True))
            values, parts = [f"%s{index}" for index in range(4)], wholes
        body = "\n    ".join(lines)
        taken = ", ".join(f"%{name}: tensor<{each}>" for name, each in types.items())
        given = ", ".join(f"tensor<{each}>" for each in parts)
        rows, columns = self.mesh
        return f"""module attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = {rows}x{columns}>]>}} {{
  func.func @main({taken}) -> ({given}) {{
    {body}
    return {", ".join(values)} : {given}
  }}
}}"""  # noqa: E501


def small(generator: np.random.Generator, *shape: int) -> Floats:
    values = generator.normal(size=shape).astype(ml_dtypes.bfloat16)
    return values.astype(np.float32)


def prepared_gate_up(model: Model, gate: Floats, up: Floats) -> Floats:
    """As the test of the library prepares both (experts, rows, inner): tile by tile, two of each to
    a group."""
    pairs = max(model.tiles) // 2
    found = np.zeros((CORES, 1, model.experts, pairs, gate.shape[1], 4, TILE), np.float32)
    begin = 0
    for core, count in enumerate(model.tiles):
        for tile in range(count):
            columns = slice(begin, begin + TILE)
            for which, weight in enumerate((gate, up)):
                found[core, 0, :, tile // 2, :, 2 * (tile % 2) + which] = weight[:, :, columns]
            begin += TILE
    return found.reshape(*found.shape[:5], 128)


def prepared_down(model: Model, weight: Floats) -> Floats:
    """Columns by core, two groups of four tiles each; rows begin with those of the core itself,
    then those of the core before it."""
    columns = np.cumsum([0, 8, 8, 7, 7]) * TILE
    rows = np.cumsum([0, *model.tiles]) * TILE
    found = np.zeros((CORES, 1, model.experts, weight.shape[1], 8 * TILE), np.float32)
    for core in range(CORES):
        own = weight[:, :, columns[core] : columns[core + 1]]
        order = [(core - step) % CORES for step in range(CORES)]
        pieces = [own[:, rows[source] : rows[source + 1]] for source in order]
        pieces.append(own[:, rows[-1] :])
        found[core, 0, :, :, : own.shape[2]] = np.concatenate(pieces, axis=1)
    found = found.reshape(*found.shape[:4], 2, 128)
    return found.transpose(0, 1, 2, 4, 3, 5)


def with_bias(model: Model, weight: Floats, bias: Floats) -> Floats:
    if not model.bias:
        return weight
    rows = np.zeros((model.experts, TILE, weight.shape[2]), np.float32)
    rows[:, 0] = bias
    return np.concatenate([weight, rows], axis=1)


def case(model: Model, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Inputs and expected results."""
    generator = np.random.default_rng(seed)
    known = model.experts * model.devices
    x = small(generator, model.tokens, HIDDEN) / 4
    named = np.argsort(generator.random((model.tokens, known)))[:, :K].astype(np.uint16)
    scores = np.abs(small(generator, model.tokens, K)).astype(np.float32)
    owners = generator.permutation(np.repeat(np.arange(model.devices), model.experts))
    shapes = ((HIDDEN, model.inner), (HIDDEN, model.inner), (model.inner, HIDDEN))
    weights = [small(generator, model.experts, *shape) / np.float32(8) for shape in shapes]
    biases = [
        np.multiply(small(generator, model.experts, shape[1]), model.bias, dtype=np.float32)
        for shape in shapes
    ]
    w0, w1, w2 = (with_bias(model, *each) for each in zip(weights, biases, strict=True))
    inputs = [x, named, scores, owners.astype(np.uint16)[np.newaxis],
              prepared_gate_up(model, w0, w1), prepared_down(model, w2)]  # fmt: skip
    bits = scores.astype(ml_dtypes.bfloat16).view(np.uint16)
    stride, ring = -(-(2 * model.experts + 1) // 4) * 4, model.mesh[0]
    counts = np.zeros((model.devices, -(-model.experts // 4) * 4), np.uint32)
    records = np.zeros((model.devices, model.tokens + 1, stride), np.uint32)
    lists = np.zeros((model.devices, model.experts, model.tokens + 1, 4), np.uint32)
    share = model.tokens // ring
    back = np.zeros((model.devices, K, share, HIDDEN), np.float32)
    for device in range(model.devices):
        here = np.flatnonzero(owners == device)
        rows = 0
        for token in range(model.tokens):
            record = [token, *[K + 1] * model.experts, *[0] * model.experts]
            for index, expert in enumerate(here):
                for place in np.flatnonzero(named[token] == expert):
                    record[1 + index] = int(place)
                    record[1 + model.experts + index] = bits[token, place]
                    lists[device, index, counts[device, index], 0] = token
                    counts[device, index] += 1
                    gate = np.minimum(x[token] @ weights[0][index] + biases[0][index], 7)
                    up = np.clip(x[token] @ weights[1][index] + biases[1][index], -7, 7)
                    inner = (up + 1) * gate / (1 + np.exp(-1.702 * gate))
                    value = inner @ weights[2][index] + biases[2][index]
                    target = token // share * model.mesh[1] + device % model.mesh[1]
                    back[target, place, token % share] = value
            if min(record[1 : 1 + model.experts]) <= K:
                records[device, rows, : len(record)] = record
                rows += 1
        records[device, rows, 0] = 0xFFFFFFFF
        for index in range(model.experts):
            lists[device, index, counts[device, index], 0] = 0xFFFFFFFF
    expected = [counts, records.reshape(model.devices, -1),
                lists.reshape(model.devices * model.experts, -1),
                back.reshape(-1, share, HIDDEN)]  # fmt: skip
    return inputs, expected


CASES = [
    Model((1, 1), 3, 8, (2, 2, 2, 2), False),
    Model((2, 2), 2, 16, (2, 2, 1, 1), True),
    Model((4, 1), 1, 16, (2, 2, 2, 2), True),
]


@pytest.mark.parametrize("model", CASES, ids=lambda model: "x".join(map(str, model.mesh)))
def test_tokens_go_through_their_experts_and_return(model: Model) -> None:
    inputs, expected = case(model, 5)
    source = Source("in.mlir", model.text())
    golden = Golden(source_module(source)).run("main", inputs)
    binary = read_ttnn(compile_module(source, CompileOptions("m")).flatbuffer)
    lowered = Interpreter(binary).run("main", inputs)
    for found, tolerance in ((golden, 0.02), (lowered, 0.05)):
        for value, wanted in zip(found[:3], expected[:3], strict=True):
            np.testing.assert_array_equal(np.asarray(value).astype(np.int64) % 2**32, wanted)
        error = np.abs(np.asarray(found[3], np.float32) - expected[3]).max()
        assert error < tolerance * np.abs(expected[3]).max()
        # Places of other experts stay empty.
        assert not np.asarray(found[3], np.float32)[expected[3] == 0].any()


def test_calls_of_ttnn_mean_the_same() -> None:
    text, (inputs, expected) = CASES[0].text(), case(CASES[0], 7)
    text = text.replace("ttir.moe_gpt", "ttnn.moe_gpt")
    text = text.replace("ttir.selective_reduce", "ttnn.selective_reduce")
    found = Golden(source_module(Source("in.mlir", text))).run("main", inputs)
    for value, wanted in zip(found[:3], expected[:3], strict=True):
        np.testing.assert_array_equal(np.asarray(value).astype(np.int64) % 2**32, wanted)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("1x72xui32", "1x76xui32", "moe_gpt.*1, 72"),
        ("hidden_size = 960 : ui32, cluster", "hidden_size = 2880 : ui32, cluster",
         "a hidden_size of 960, as input_tensor has it, found 2880"),
        ("4x1x3x1x960x128", "4x1x3x2x960x128", "w0_w1_tensor for the 8 tiles .* found 4 cores"),
        ("batch_size = 8", "batch_size = 6", "tokens that divide among 4 rows of cores, found 6"),
        ("experts = 3", "experts = 4", "experts that divide 4, found 3"),
    ],
)  # fmt: skip
def test_shapes_are_those_of_the_library(before: str, after: str, message: str) -> None:
    text = CASES[0].text()
    assert before in text
    with pytest.raises(CompileError, match=message):
        compile_module(Source("in.mlir", text.replace(before, after)), CompileOptions("m"))
