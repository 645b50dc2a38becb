"""Writes a TTIR module of a given number of ops: python benchmarks/synthetic.py 10000 > model.mlir

Ops come in the mix of real models: decoder layers (matmuls, attention with masks and rotary
embeddings, norms written out, gated activations) with a residual convolution block after every
eighth of them, each with its own weights and locations. `--splat` adds a constant of 139 million
equal elements and an embedding that reads it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

BATCH, LENGTH, WIDTH, HEADS, HIDDEN = 1, 128, 256, 4, 688
HEAD = WIDTH // HEADS
IMAGE, CHANNELS = 16, 64
SPLAT_SHAPE = (128256, 1088)
LAYERS_PER_BLOCK = 8


def _tensor(shape: Sequence[int], element: str = "bf16") -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def _array(values: Sequence[int], kind: str = "i64") -> str:
    return f"array<{kind}: {', '.join(map(str, values))}>"


def _list(values: Sequence[int]) -> str:
    return f"[{', '.join(f'{value} : i32' for value in values)}]"


@dataclass
class Writer:
    """The function that is being written; values are known by number, with their types."""

    arguments: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    types: dict[str, str] = field(default_factory=dict[str, str])

    def argument(self, name: str, shape: Sequence[int], kind: str = "parameter") -> str:
        """An argument of the function."""
        value = f"%arg{len(self.arguments)}"
        self.types[value] = _tensor(shape)
        self.arguments.append(
            f"{value}: {_tensor(shape)} {{ttcore.argument_type = #ttcore.argument_type<{kind}>, "
            f'ttir.name = "{name}"}}'
        )
        return value

    def op(
        self,
        name: str,
        operands: Sequence[str],
        shape: Sequence[int],
        attributes: str = "",
        location: str = "",
    ) -> str:
        """Adds an op and gives its result."""
        value = f"%{len(self.lines)}"
        self.types[value] = _tensor(shape)
        types = ", ".join(self.types[operand] for operand in operands)
        properties = f" <{{{attributes}}}>" if attributes else ""
        place = f' loc("{location}")' if location else ""
        self.lines.append(
            f'    {value} = "ttir.{name}"({", ".join(operands)}){properties} : '
            f"({types}) -> {_tensor(shape)}{place}"
        )
        return value

    def module(self, result: str) -> str:
        """The text of the module."""
        arguments = ",\n      ".join(self.arguments)
        body = "\n".join(self.lines)
        return (
            f"module @synthetic {{\n  func.func @forward(\n      {arguments}\n  ) -> "
            f"{self.types[result]} {{\n{body}\n    return {result} : {self.types[result]}\n"
            "  }\n}\n"
        )


SEQUENCE = (BATCH, LENGTH, WIDTH)
BY_HEAD = (BATCH, HEADS, LENGTH, HEAD)
ROWS = (BATCH, LENGTH, 1)


def norm(writer: Writer, name: str, value: str, epsilon: str) -> str:
    """Root-mean-square norm, written out as frontends do."""
    place = f"{name}/norm"
    weight = writer.argument(f"{name}.norm.weight", (WIDTH,))
    square = writer.op("multiply", [value, value], SEQUENCE, location=place)
    attributes = "dim_arg = [2 : i32], keep_dim = true"
    mean = writer.op("mean", [square], ROWS, attributes, place)
    safe = writer.op("add", [mean, epsilon], ROWS, location=place)
    scale = writer.op("rsqrt", [safe], ROWS, location=place)
    scaled = writer.op("multiply", [value, scale], SEQUENCE, location=place)
    return writer.op("multiply", [scaled, weight], SEQUENCE, location=place)


def project(writer: Writer, name: str, value: str, sizes: tuple[int, int]) -> str:
    """A linear layer without bias; its weight is stored transposed."""
    rows, columns = sizes
    weight = writer.argument(f"{name}.weight", (columns, rows))
    transposed = writer.op(
        "permute", [weight], (rows, columns), f"permutation = {_array((1, 0))}", name
    )
    return writer.op("matmul", [value, transposed], (BATCH, LENGTH, columns), location=name)


def heads(writer: Writer, name: str, value: str) -> str:
    """(batch, length, width) to (batch, heads, length, head)."""
    split = (BATCH, LENGTH, HEADS, HEAD)
    value = writer.op("reshape", [value], split, f"shape = {_list(split)}", name)
    permutation = f"permutation = {_array((0, 2, 1, 3))}"
    return writer.op("permute", [value], BY_HEAD, permutation, name)


def rotate(writer: Writer, name: str, value: str, tables: tuple[str, str]) -> str:
    """A rotary embedding with given cosines and sines."""
    half = (BATCH, HEADS, LENGTH, HEAD // 2)
    parts: list[str] = []
    for start in (0, HEAD // 2):
        attributes = (
            f"begins = {_list((0, 0, 0, start))}, "
            f"ends = {_list((BATCH, HEADS, LENGTH, start + HEAD // 2))}, step = {_list((1,) * 4)}"
        )
        parts.append(writer.op("slice_static", [value], half, attributes, name))
    negated = writer.op("neg", [parts[1]], half, location=name)
    turned = writer.op("concat", [negated, parts[0]], BY_HEAD, "dim = 3 : si32", name)
    straight = writer.op("multiply", [value, tables[0]], BY_HEAD, location=name)
    across = writer.op("multiply", [turned, tables[1]], BY_HEAD, location=name)
    return writer.op("add", [straight, across], BY_HEAD, location=name)


def attention(writer: Writer, name: str, value: str, shared: dict[str, str]) -> str:
    """Masked attention of several heads."""
    size = (WIDTH, WIDTH)
    query, key, content = (
        heads(writer, f"{name}.{part}", project(writer, f"{name}.{part}", value, size))
        for part in ("query", "key", "value")
    )
    tables = (shared["cosines"], shared["sines"])
    query = rotate(writer, f"{name}.query/rotary", query, tables)
    key = rotate(writer, f"{name}.key/rotary", key, tables)
    turned = (BATCH, HEADS, HEAD, LENGTH)
    permutation = f"permutation = {_array((0, 1, 3, 2))}"
    key = writer.op("permute", [key], turned, permutation, name)
    square = (BATCH, HEADS, LENGTH, LENGTH)
    scores = writer.op("matmul", [query, key], square, location=name)
    scores = writer.op("multiply", [scores, shared["scale"]], square, location=name)
    scores = writer.op("add", [scores, shared["mask"]], square, location=name)
    part = writer.op("softmax", [scores], square, "dimension = 3 : si32", name)
    mixed = writer.op("matmul", [part, content], BY_HEAD, location=name)
    together = (BATCH, LENGTH, HEADS, HEAD)
    permutation = f"permutation = {_array((0, 2, 1, 3))}"
    mixed = writer.op("permute", [mixed], together, permutation, name)
    mixed = writer.op("reshape", [mixed], SEQUENCE, f"shape = {_list(SEQUENCE)}", name)
    return project(writer, f"{name}.output", mixed, size)


def decoder_layer(writer: Writer, name: str, value: str, shared: dict[str, str]) -> str:
    """Attention and a gated feed-forward network, each after a norm."""
    normed = norm(writer, f"{name}.attention", value, shared["epsilon"])
    attended = attention(writer, f"{name}.attention", normed, shared)
    value = writer.op("add", [value, attended], SEQUENCE, location=f"{name}/residual")
    normed = norm(writer, f"{name}.feed_forward", value, shared["epsilon"])
    wide = (BATCH, LENGTH, HIDDEN)
    gate = project(writer, f"{name}.gate", normed, (WIDTH, HIDDEN))
    slope = writer.op("sigmoid", [gate], wide, location=f"{name}.gate")
    gate = writer.op("multiply", [gate, slope], wide, location=f"{name}.gate")
    up = project(writer, f"{name}.up", normed, (WIDTH, HIDDEN))
    hidden = writer.op("multiply", [gate, up], wide, location=f"{name}.up")
    down = project(writer, f"{name}.down", hidden, (HIDDEN, WIDTH))
    return writer.op("add", [value, down], SEQUENCE, location=f"{name}/residual")


def convolution_block(writer: Writer, name: str, value: str) -> str:
    """Two convolutions with scale and shift, and a residual connection."""
    shape = (1, IMAGE, IMAGE, CHANNELS)
    entry = value
    for index in range(2):
        place = f"{name}.conv{index}"
        weight = writer.argument(f"{place}.weight", (CHANNELS, CHANNELS, 3, 3))
        attributes = (
            f"dilation = {_array((1, 1), 'i32')}, groups = 1 : i32, "
            f"padding = {_array((1,) * 4, 'i32')}, stride = {_array((1, 1), 'i32')}"
        )
        value = writer.op("conv2d", [value, weight], shape, attributes, place)
        for kind, part in (("multiply", "scale"), ("add", "shift")):
            factor = writer.argument(f"{place}.{part}", (1, 1, 1, CHANNELS))
            value = writer.op(kind, [value, factor], shape, location=place)
        value = writer.op("relu", [value], shape, location=place)
    return writer.op("add", [value, entry], shape, location=f"{name}/residual")


def image_branch(writer: Writer, name: str, value: str) -> str:
    """A convolution block on the sequence seen as an image, and back."""
    image = (1, IMAGE, IMAGE, CHANNELS)
    rows = writer.op("reshape", [value], (LENGTH * WIDTH,), f"shape = {_list((LENGTH * WIDTH,))}")
    part = (IMAGE * IMAGE * CHANNELS,)
    attributes = f"begins = {_list((0,))}, ends = {_list(part)}, step = {_list((1,))}"
    pixels = writer.op("slice_static", [rows], part, attributes)
    pixels = writer.op("reshape", [pixels], image, f"shape = {_list(image)}", name)
    made = convolution_block(writer, name, pixels)
    attributes = "dim_arg = [1 : i32, 2 : i32, 3 : i32], keep_dim = true"
    made = writer.op("mean", [made], (1, 1, 1, 1), attributes, name)
    made = writer.op("reshape", [made], (1, 1, 1), f"shape = {_list((1, 1, 1))}", name)
    return writer.op("add", [value, made], SEQUENCE, location=name)


def inputs(writer: Writer, splat: bool) -> tuple[str, dict[str, str]]:
    """The sequence that the first layer reads, and what all layers share."""
    shared = {
        "cosines": writer.argument("cosines", (1, 1, LENGTH, HEAD), "input"),
        "sines": writer.argument("sines", (1, 1, LENGTH, HEAD), "input"),
        "mask": writer.argument("attention_mask", (1, 1, LENGTH, LENGTH), "input"),
    }
    value = writer.argument("sequence", SEQUENCE, "input")
    for name, number in (("epsilon", "1.0e-05"), ("scale", "1.25e-01")):
        attributes = f"value = dense<{number}> : {_tensor((1,))}"
        shared[name] = writer.op("constant", [], (1,), attributes)
    if splat:
        attributes = f"value = dense<1.0> : {_tensor(SPLAT_SHAPE)}"
        table = writer.op("constant", [], SPLAT_SHAPE, attributes, "table")
        writer.arguments.append(f"%tokens: {_tensor((1, LENGTH), 'ui32')}")
        writer.types["%tokens"] = _tensor((1, LENGTH), "ui32")
        rows = (1, LENGTH, SPLAT_SHAPE[1])
        words = writer.op("embedding", ["%tokens", table], rows, location="words")
        attributes = (
            f"begins = {_list((0, 0, 0))}, ends = {_list(SEQUENCE)}, step = {_list((1, 1, 1))}"
        )
        words = writer.op("slice_static", [words], SEQUENCE, attributes, "words")
        value = writer.op("add", [value, words], SEQUENCE, location="words")
    return value, shared


def layer(writer: Writer, index: int, value: str, shared: dict[str, str]) -> str:
    """A decoder layer, and after every eighth a convolution block."""
    value = decoder_layer(writer, f"layers.{index}", value, shared)
    if index % LAYERS_PER_BLOCK == LAYERS_PER_BLOCK - 1:
        value = image_branch(writer, f"images.{index}", value)
    return value


def synthetic_module(ops: int, *, splat: bool = False) -> str:
    """The text of a module of `ops` ops, counting constants, not counting the return."""
    writer = Writer()
    value, shared = inputs(writer, splat)
    largest = index = 0
    while len(writer.lines) + largest <= ops or index < LAYERS_PER_BLOCK:
        before = len(writer.lines)
        value = layer(writer, index, value, shared)
        largest = max(largest, len(writer.lines) - before)
        index += 1
    while len(writer.lines) < ops:
        value = writer.op("tanh", [value], SEQUENCE, location="head")
    return writer.module(value)


def main() -> None:
    """Writes to standard output."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("ops", type=int)
    parser.add_argument("--splat", action="store_true", help="with 139 million equal elements")
    options = parser.parse_args()
    sys.stdout.write(synthetic_module(options.ops, splat=options.splat))


if __name__ == "__main__":
    main()
