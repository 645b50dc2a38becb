"""Models that are divided among the chips of a mesh, and the same models on one chip."""

from __future__ import annotations

from dataclasses import dataclass

Mesh = tuple[int, int]
ONE: Mesh = (1, 1)


class Program:
    """Writes the ops of a function, with the parts of tensors that a chip of the mesh has."""

    def __init__(self, mesh: Mesh, dtype: str = "f32", declared: Mesh | None = None) -> None:
        """With `declared` ops are those of one chip, and arguments say how they are divided among
        the chips of that mesh."""
        self.mesh = mesh
        self._dtype = dtype
        self._declared = declared
        self.arguments: list[str] = []
        self._lines: list[str] = []
        self._shapes: dict[str, tuple[int, ...]] = {}

    def type(self, shape: tuple[int, ...]) -> str:
        return f"tensor<{'x'.join(map(str, (*shape, self._dtype)))}>"

    def op(self, name: str, operands: list[str], shape: tuple[int, ...], given: str = "") -> str:
        result = f"%{len(self._lines)}"
        types = ", ".join(self.type(self._shapes[each]) for each in operands)
        self._lines.append(
            f'{result} = "ttir.{name}"({", ".join(operands)}) <{{{given}}}> : ({types}) -> '
            f"{self.type(shape)}"
        )
        self._shapes[result] = shape
        return result

    def shape(self, value: str) -> tuple[int, ...]:
        return self._shapes[value]

    def argument(self, name: str, shape: tuple[int, ...], dims: Mesh = (-1, -1)) -> str:
        """An argument; `dims` are the dimensions that rows and columns of chips divide."""
        kind = "input" if name == "x" else "parameter"
        sharding = ""
        if self._declared is not None:
            axes = [[axis for axis in (0, 1) if dims[axis] == each] for each in range(len(shape))]
            said = ", ".join(f"array<i64: {each[0]}>" if each else "array<i64>" for each in axes)
            sharding = f", ttcore.sharding = [{said}]"
        self.arguments.append(
            f"%{name}: {self.type(shape)} "
            f"{{ttcore.argument_type = #ttcore.argument_type<{kind}>{sharding}}}"
        )
        self._shapes[f"%{name}"] = shape
        return self._shard(f"%{name}", dims, "full_to_shard")

    def _shard(self, value: str, dims: Mesh, direction: str) -> str:
        shape, counts = list(self._shapes[value]), [1] * len(self._shapes[value])
        for chips, dim in zip(self.mesh, dims, strict=True):
            if dim >= 0:
                counts[dim] *= chips
        if max(counts) == 1:
            return value
        for dim, count in enumerate(counts):
            shape[dim] = shape[dim] // count if direction == "full_to_shard" else shape[dim] * count
        return self.op(
            "mesh_shard",
            [value],
            tuple(shape),
            f"shard_dims = array<i64: {dims[0]}, {dims[1]}>, "
            f"shard_shape = array<i64: {', '.join(map(str, counts))}>, "
            "shard_type = #ttcore.shard_type<devices>, "
            f"shard_direction = #ttcore.shard_direction<{direction}>",
        )

    def sum_of_columns(self, value: str) -> str:
        if self.mesh[1] == 1:
            return value
        given = "reduce_type = #ttcore.reduce_type<sum>, cluster_axis = 1 : ui32"
        return self.op("all_reduce", [value], self._shapes[value], given)

    def text(self, result: str, dims: Mesh) -> str:
        whole = self._shard(result, dims, "shard_to_full")
        type_ = self.type(self._shapes[whole])
        rows, columns = self._declared or self.mesh
        lines = "\n    ".join([*self._lines, f"return {whole} : {type_}"])
        return (
            f'module attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = {rows}x{columns}>]>}} '
            f"{{\n  func.func @main({', '.join(self.arguments)}) -> {type_} {{\n    {lines}\n"
            "  }\n}\n"
        )


@dataclass(frozen=True)
class LlamaSizes:
    """Sizes of a layer of llama."""

    batch: int = 8
    steps: int = 32
    width: int = 128
    heads: int = 8
    hidden: int = 256
    dtype: str = "f32"


LLAMA_1B = LlamaSizes(batch=8, steps=32, width=2048, heads=32, hidden=8192, dtype="bf16")
"""The sizes of Llama 3.2 1B, for 8 sequences of 32 tokens."""


def llama_layer(
    mesh: Mesh = ONE, sizes: LlamaSizes = LlamaSizes(), declared: Mesh | None = None
) -> str:
    """A layer of llama without positions: rows of chips divide the batch, columns the heads and the
    hidden units."""
    batch, steps, width, heads = sizes.batch, sizes.steps, sizes.width, sizes.heads
    p, hidden = Program(mesh, sizes.dtype, declared), sizes.hidden
    b, h = batch // mesh[0], heads // mesh[1]
    d, f, head = width // mesh[1], hidden // mesh[1], width // heads
    x = p.argument("x", (batch, steps, width), (0, -1))
    gains = [p.argument(f"g{i}", (width,)) for i in range(2)]
    q, k, v = (p.argument(f"w{name}", (width, width), (-1, 1)) for name in ("q", "k", "v"))
    out = p.argument("wo", (width, width), (-1, 0))
    gate, up = (p.argument(f"w{name}", (width, hidden), (-1, 1)) for name in ("gate", "up"))
    down = p.argument("wdown", (hidden, width), (-1, 0))

    def norm(value: str, gain: str) -> str:
        given = f"normalized_shape = array<i64: {width}>, epsilon = 1.0e-5 : f32, "
        given += "operandSegmentSizes = array<i32: 1, 1, 0>"
        return p.op("rms_norm", [value, gain], p.shape(value), given)

    def by_heads(weight: str, order: str, shape: tuple[int, ...]) -> str:
        flat = p.op("matmul", [normed, weight], (b, steps, d))
        listed = f"shape = [{b} : i32, {steps} : i32, {h} : i32, {head} : i32]"
        apart = p.op("reshape", [flat], (b, steps, h, head), listed)
        return p.op("permute", [apart], shape, f"permutation = array<i64: {order}>")

    normed = norm(x, gains[0])
    queries = by_heads(q, "0, 2, 1, 3", (b, h, steps, head))
    keys = by_heads(k, "0, 2, 3, 1", (b, h, head, steps))
    values = by_heads(v, "0, 2, 1, 3", (b, h, steps, head))
    scores = p.op("matmul", [queries, keys], (b, h, steps, steps))
    chances = p.op("softmax", [scores], (b, h, steps, steps), "dimension = 3 : si32")
    mixed = p.op("matmul", [chances, values], (b, h, steps, head))
    mixed = p.op("permute", [mixed], (b, steps, h, head), "permutation = array<i64: 0, 2, 1, 3>")
    joined = f"shape = [{b} : i32, {steps} : i32, {d} : i32]"
    mixed = p.op("reshape", [mixed], (b, steps, d), joined)
    attended = p.sum_of_columns(p.op("matmul", [mixed, out], (b, steps, width)))
    x = p.op("add", [x, attended], (b, steps, width))
    normed = norm(x, gains[1])
    gated = p.op("silu", [p.op("matmul", [normed, gate], (b, steps, f))], (b, steps, f))
    raised = p.op("matmul", [normed, up], (b, steps, f))
    product = p.op("multiply", [gated, raised], (b, steps, f))
    lowered = p.sum_of_columns(p.op("matmul", [product, down], (b, steps, width)))
    return p.text(p.op("add", [x, lowered], (b, steps, width)), (0, -1))


def residual_blocks(mesh: Mesh = ONE, batch: int = 8, channels: int = 16, blocks: int = 2) -> str:
    """Residual blocks of convolutions, as in a resnet; columns of chips divide the batch."""
    p, size = Program(mesh), 16
    shape = (batch // mesh[1], size, size, channels)
    x = p.argument("x", (batch, size, size, channels), (-1, 0))
    given = "stride = 1 : i32, padding = 1 : i32, dilation = 1 : i32, groups = 1 : i32"
    for block in range(blocks):
        inner = x
        for place in range(2):
            weight = p.argument(f"w{block}_{place}", (channels, channels, 3, 3))
            inner = p.op("conv2d", [inner, weight], shape, given)
            if place == 0:
                inner = p.op("relu", [inner], shape)
        x = p.op("relu", [p.op("add", [x, inner], shape)], shape)
    return p.text(x, (-1, 0))


def without_mesh(text: str) -> str:
    """A model of one chip whose module names no mesh."""
    return (
        "module" + text[text.index("{\n") - 1 :] if text.startswith("module attributes") else text
    )


def perceptron(rows: int = 8, width: int = 64, hidden: int = 128, dtype: str = "f32") -> str:
    """Two layers with biases."""
    p = Program(ONE, dtype)
    x = p.argument("x", (rows, width))
    up, down = p.argument("up", (width, hidden)), p.argument("down", (hidden, width))
    biases = p.argument("b0", (hidden,)), p.argument("b1", (width,))
    segments = "operandSegmentSizes = array<i32: 1, 1, 1>"
    inner = p.op("linear", [x, up, biases[0]], (rows, hidden), segments)
    inner = p.op("relu", [inner], (rows, hidden))
    return p.text(p.op("linear", [inner, down, biases[1]], (rows, width), segments), (-1, -1))


def mixture_of_experts(
    tokens: int = 8, width: int = 64, hidden: int = 96, experts: int = 8, dtype: str = "f32"
) -> str:
    """All tokens go through all experts, and are added up with the weights of a gate."""
    p = Program(ONE, dtype)
    x = p.argument("x", (tokens, width))
    gate = p.argument("wgate", (width, experts))
    up = p.argument("wup", (experts, width, hidden))
    down = p.argument("wdown", (experts, hidden, width))
    chances = p.op("matmul", [x, gate], (tokens, experts))
    chances = p.op("softmax", [chances], (tokens, experts), "dimension = 1 : si32")
    chances = p.op("permute", [chances], (experts, tokens), "permutation = array<i64: 1, 0>")
    listed = f"shape = [{experts} : i32, {tokens} : i32, 1 : i32]"
    chances = p.op("reshape", [chances], (experts, tokens, 1), listed)
    listed = f"shape = [1 : i32, {tokens} : i32, {width} : i32]"
    row = p.op("reshape", [x], (1, tokens, width), listed)
    factors = f"broadcast_dimensions = array<i64: {experts}, 1, 1>"
    copies = p.op("broadcast", [row], (experts, tokens, width), factors)
    inner = p.op("matmul", [copies, up], (experts, tokens, hidden))
    inner = p.op("relu", [inner], (experts, tokens, hidden))
    outer = p.op("matmul", [inner, down], (experts, tokens, width))
    outer = p.op("multiply", [outer, chances], (experts, tokens, width))
    given = "dim_arg = [0 : i32], keep_dim = false"
    return p.text(p.op("sum", [outer], (tokens, width), given), (-1, -1))


def residual_perceptrons(
    blocks: int = 2, rows: int = 32, width: int = 256, hidden: int = 512
) -> str:
    """Blocks whose norms are written as squares, means and roots, which divide features."""
    p, shape = Program(ONE, "bf16"), (1, rows, width)
    x = p.argument("x", shape)
    for block in range(blocks):
        squares = p.op("multiply", [x, x], shape)
        given = "dim_arg = [2 : i32], keep_dim = true"
        root = p.op("rsqrt", [p.op("mean", [squares], (1, rows, 1), given)], (1, rows, 1))
        normed = p.op("multiply", [x, root], shape)
        up = p.argument(f"up{block}", (width, hidden))
        down = p.argument(f"down{block}", (hidden, width))
        inner = p.op("silu", [p.op("matmul", [normed, up], (1, rows, hidden))], (1, rows, hidden))
        x = p.op("add", [x, p.op("matmul", [inner, down], shape)], shape)
    return p.text(x, (-1, -1))
