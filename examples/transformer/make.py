"""Writes a transformer block as a TTIR module: python examples/transformer/make.py

Attention over 32 positions with 4 heads, then a gated feed-forward part, each after an RMS norm
and with a residual connection; weights are arguments.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from ttir_text import FunctionText, tensor_type  # noqa: E402

POSITIONS, WIDTH, HEADS, HIDDEN = 32, 128, 4, 256
HEAD = WIDTH // HEADS


def bf16(*shape: int) -> str:
    """A bf16 tensor type."""
    return tensor_type(shape, "bf16")


def main() -> None:
    """Writes transformer.mlir: one block, or as many as requested, to another file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=1, help="how many blocks (default: 1)")
    parser.add_argument("-o", "--output", type=Path, default=HERE / "transformer.mlir")
    arguments = parser.parse_args()
    arguments.output.write_text(module_text(arguments.blocks))


def module_text(blocks: int = 1) -> str:
    """The module; the weights of one block among several are called `layers.<number>.<name>`."""
    function = FunctionText("block" if blocks == 1 else "transformer")
    x = function.argument("hidden_states", (POSITIONS, WIDTH), element="bf16")
    mask = function.argument("mask", (1, 1, POSITIONS, POSITIONS), element="bf16")
    for index in range(blocks):
        x = block(function, "" if blocks == 1 else f"layers.{index}.", x, mask)
    return function.text({"hidden_states": x})


def block(function: FunctionText, path: str, x: str, mask: str) -> str:
    """Attention and feed-forward part with their residual connections; `path` is where the
    weights belong."""
    attended = attention(function, path, norm(function, f"{path}attention_norm", x), mask)
    x = function.op("add", [x, attended], bf16(POSITIONS, WIDTH), name=f"{path}after_attention")
    fed = feed_forward(function, path, norm(function, f"{path}feed_forward_norm", x))
    return function.op("add", [x, fed], bf16(POSITIONS, WIDTH), name=f"{path}block_output")


def norm(function: FunctionText, name: str, x: str) -> str:
    """The RMS norm over the last dimension."""
    weight = function.argument(f"{name}.weight", (WIDTH,), "parameter", "bf16")
    return function.op(
        "rms_norm",
        [x, weight],
        bf16(POSITIONS, WIDTH),
        f"normalized_shape = array<i64: {WIDTH}>, epsilon = 1.000000e-05 : f32, "
        "operandSegmentSizes = array<i32: 1, 1, 0>",
        name=name,
    )


def projection(function: FunctionText, name: str, x: str, sizes: tuple[int, int]) -> str:
    """A product with a weight (input width, output width)."""
    weight = function.argument(f"{name}.weight", sizes, "parameter", "bf16")
    return function.op("matmul", [x, weight], bf16(POSITIONS, sizes[1]), name=name)


def heads(function: FunctionText, x: str) -> str:
    """(positions, width) as (1, heads, positions, head size)."""
    split = function.op(
        "reshape",
        [x],
        bf16(1, POSITIONS, HEADS, HEAD),
        f"shape = [1 : i32, {POSITIONS} : i32, {HEADS} : i32, {HEAD} : i32]",
    )
    return function.op(
        "permute",
        [split],
        bf16(1, HEADS, POSITIONS, HEAD),
        "permutation = array<i64: 0, 2, 1, 3>",
    )


def attention(function: FunctionText, path: str, x: str, mask: str) -> str:
    """Attention with scores scaled by the root of the head size."""
    query, key, value = (
        heads(function, projection(function, f"{path}attention.{name}", x, (WIDTH, WIDTH)))
        for name in ("query", "key", "value")
    )
    scores_type = bf16(1, HEADS, POSITIONS, POSITIONS)
    scores = function.op(
        "matmul", [query, key], scores_type, "transpose_b = true", name=f"{path}scores"
    )
    scale = function.op(
        "full",
        [],
        bf16(1, 1, 1, 1),
        f"shape = array<i32: 1, 1, 1, 1>, fill_value = {HEAD**-0.5:.9e} : f32",
        name=f"{path}scale",
    )
    scores = function.op("multiply", [scores, scale], scores_type, name=f"{path}scaled_scores")
    scores = function.op("add", [scores, mask], scores_type, name=f"{path}masked_scores")
    scores = function.op("softmax", [scores], scores_type, "dimension = -1 : si32")
    context = function.op("matmul", [scores, value], bf16(1, HEADS, POSITIONS, HEAD))
    joined = function.op(
        "permute",
        [context],
        bf16(1, POSITIONS, HEADS, HEAD),
        "permutation = array<i64: 0, 2, 1, 3>",
    )
    joined = function.op(
        "reshape",
        [joined],
        bf16(POSITIONS, WIDTH),
        f"shape = [{POSITIONS} : i32, {WIDTH} : i32]",
    )
    return projection(function, f"{path}attention.output", joined, (WIDTH, WIDTH))


def feed_forward(function: FunctionText, path: str, x: str) -> str:
    """silu(x gate) * (x up), and back to the width."""
    hidden = bf16(POSITIONS, HIDDEN)
    gate = projection(function, f"{path}feed_forward.gate", x, (WIDTH, HIDDEN))
    gate = function.op("silu", [gate], hidden)
    up = projection(function, f"{path}feed_forward.up", x, (WIDTH, HIDDEN))
    product = function.op("multiply", [gate, up], hidden)
    return projection(function, f"{path}feed_forward.down", product, (HIDDEN, WIDTH))


if __name__ == "__main__":
    main()
