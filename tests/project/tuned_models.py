"""TTIR of two models that a tuner works on, with what changes between their versions."""

from __future__ import annotations

from dataclasses import dataclass, field

WEIGHT = "ttcore.argument_type = #ttcore.argument_type<parameter>"
INPUT = "ttcore.argument_type = #ttcore.argument_type<input>"


@dataclass
class _Body:
    """Ops of a function, one by one."""

    dtype: str
    arguments: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    types: dict[str, str] = field(default_factory=dict[str, str])

    def kind(self, *shape: int) -> str:
        return f"tensor<{'x'.join(map(str, shape))}x{self.dtype}>"

    def argument(self, name: str, kind: str, attributes: str = WEIGHT) -> str:
        self.types[name] = kind
        named = f', ttir.name = "{name}"' if attributes == WEIGHT else ""
        self.arguments.append(f"%{name.replace('.', '_')}: {kind} {{{attributes}{named}}}")
        return name

    def op(self, name: str, op: str, operands: list[str], kind: str, attributes: str = "") -> str:
        values = ", ".join(f"%{each.replace('.', '_')}" for each in operands)
        types = ", ".join(self.types[each] for each in operands)
        result = f"%{name} = " if name else ""
        self.types[name] = kind
        given = f" <{{{attributes}}}>" if attributes else ""
        self.lines.append(f'  {result}"ttir.{op}"({values}){given} : ({types}) -> {kind or "()"}')
        return name

    def text(self, function: str, results: list[str]) -> str:
        values, types = (
            ", ".join(f"%{each}" for each in results),
            ", ".join(self.types[each] for each in results),
        )
        arguments = ",\n    ".join(self.arguments)
        body = "\n".join(self.lines)
        return (
            f"func.func @{function}(\n    {arguments}) -> ({types}) {{\n{body}\n"
            f"  return {values} : {types}\n}}\n"
        )


def _list(*numbers: int) -> str:
    return f"[{', '.join(f'{each} : i32' for each in numbers)}]"


def decode_layers(
    layers: int = 1,
    *,
    users: int = 32,
    hidden: int = 256,
    inner: int = 512,
    activation: str = "silu",
    dtype: str = "bf16",
    gate: str = "gate",
    output: str = "o",
    query: str = "query",
    gated: bool = True,
) -> str:
    """Layers of a Llama that make one token of each user: norms, rotary position embedding,
    caches, attention of grouped heads, and a gated feed-forward part."""
    size, heads, groups, length = 64, 4, 2, 96
    body = _Body(dtype)
    kind = body.kind
    wide, narrow = heads * size, groups * size
    x = body.argument("x", kind(users, hidden), INPUT)
    position = body.argument("position", "tensor<1xi32>", INPUT)
    cosine = body.argument("cosine", kind(1, 1, 1, size), INPUT)
    sine = body.argument("sine", kind(1, 1, 1, size), INPUT)
    caches: list[str] = []
    cached = f"{INPUT}, ttcore.kv_cache"
    norm = (
        f"normalized_shape = array<i64: {hidden}>, epsilon = 1.0e-05 : f32, "
        "operandSegmentSizes = array<i32: 1, 1, 0>"
    )

    def rotated(name: str, value: str, of: tuple[int, ...]) -> str:
        half = size // 2
        parts: list[str] = []
        for part, (first, last) in (("low", (0, half)), ("high", (half, size))):
            begins, ends = _list(0, 0, 0, first), _list(*of[:3], last)
            parts.append(
                body.op(
                    f"{name}_{part}",
                    "slice_static",
                    [value],
                    kind(*of[:3], half),
                    f"begins = {begins}, ends = {ends}, step = {_list(1, 1, 1, 1)}",
                )
            )
        turned = body.op(f"{name}_negative", "neg", [parts[1]], kind(*of[:3], half))
        turned = body.op(
            f"{name}_turned", "concat", [turned, parts[0]], kind(*of), "dim = 3 : si32"
        )
        even = body.op(f"{name}_cosine", "multiply", [value, cosine], kind(*of))
        odd = body.op(f"{name}_sine", "multiply", [turned, sine], kind(*of))
        return body.op(f"{name}_rotated", "add", [even, odd], kind(*of))

    for layer in range(layers):
        at = f"layers.{layer}."
        here = f"l{layer}_"
        keys = body.argument(f"{here}keys", kind(users, groups, length, size), cached)
        values = body.argument(f"{here}values", kind(users, groups, length, size), cached)
        caches += [keys, values]
        scale = body.argument(f"{at}input_norm.weight", kind(hidden))
        normed = body.op(f"{here}input_norm", "rms_norm", [x, scale], kind(users, hidden), norm)
        heads_of: dict[str, str] = {}
        for name, width, count in (
            (query, wide, heads),
            ("key", narrow, groups),
            ("value", narrow, groups),
        ):
            weight = body.argument(f"{at}{name}.weight", kind(hidden, width))
            made = body.op(f"{here}{name}", "matmul", [normed, weight], kind(users, width))
            shape = (users, count, 1, size)
            made = body.op(
                f"{here}{name}_heads", "reshape", [made], kind(*shape), f"shape = {_list(*shape)}"
            )
            if name != "value":
                made = rotated(f"{here}{name}", made, shape)
            heads_of[name] = made
        for name, cache, count in (("key", keys, groups), ("value", values, groups)):
            entry = body.op(
                f"{here}{name}_entry",
                "permute",
                [heads_of[name]],
                kind(1, count, users, size),
                "permutation = array<i64: 2, 1, 0, 3>",
            )
            body.op("", "update_cache", [cache, entry, position], "", "batch_offset = 0 : i32")
        asked = body.op(
            f"{here}asked",
            "permute",
            [heads_of[query]],
            kind(1, users, heads, size),
            "permutation = array<i64: 2, 0, 1, 3>",
        )
        attended = body.op(
            f"{here}attention",
            "scaled_dot_product_attention_decode",
            [asked, keys, values],
            kind(1, users, heads, size),
            "is_causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0>",
        )
        flat = body.op(
            f"{here}flat",
            "reshape",
            [attended],
            kind(users, wide),
            f"shape = {_list(users, wide)}",
        )
        weight = body.argument(f"{at}{output}.weight", kind(wide, hidden))
        made = body.op(f"{here}{output}", "matmul", [flat, weight], kind(users, hidden))
        x = body.op(f"{here}residual", "add", [x, made], kind(users, hidden))
        scale = body.argument(f"{at}mlp_norm.weight", kind(hidden))
        normed = body.op(f"{here}mlp_norm", "rms_norm", [x, scale], kind(users, hidden), norm)
        weight = body.argument(f"{at}{gate}.weight", kind(hidden, inner))
        opened = body.op(f"{here}{gate}", "matmul", [normed, weight], kind(users, inner))
        if gated:
            opened = body.op(f"{here}active", activation, [opened], kind(users, inner))
        weight = body.argument(f"{at}up.weight", kind(hidden, inner))
        up = body.op(f"{here}up", "matmul", [normed, weight], kind(users, inner))
        product = body.op(f"{here}product", "multiply", [opened, up], kind(users, inner))
        weight = body.argument(f"{at}down.weight", kind(inner, hidden))
        down = body.op(f"{here}down", "matmul", [product, weight], kind(users, hidden))
        x = body.op(f"{here}output", "add", [x, down], kind(users, hidden))
    return body.text("decode", [x, *caches])


def residual_network(
    blocks: int = 2,
    *,
    images: int = 1,
    channels: int = 64,
    activation: str = "relu",
    dtype: str = "bf16",
    stem: str = "stem",
    reduce: str = "reduce",
    classifier: str = "classifier",
    activated: bool = True,
) -> str:
    """A stem, bottleneck blocks of three convolutions, and a classifier."""
    body = _Body(dtype)
    kind = body.kind
    size, inner = 16, channels // 2
    x = body.argument("image", kind(images, 32, 32, 16), INPUT)

    def convolution(
        name: str, value: str, taps: int, stride: int, of: tuple[int, int], side: int
    ) -> str:
        weight = body.argument(f"{name}.weight", kind(of[1], of[0], taps, taps))
        bias = body.argument(f"{name}.bias", kind(1, 1, 1, of[1]))
        return body.op(
            name.replace(".", "_"),
            "conv2d",
            [value, weight, bias],
            kind(images, side, side, of[1]),
            f"stride = {stride} : i32, padding = {taps // 2} : i32, dilation = 1 : i32, "
            "groups = 1 : i32",
        )

    def active(name: str, value: str, of: tuple[int, ...]) -> str:
        return body.op(name, activation, [value], kind(*of)) if activated else value

    x = convolution(stem, x, 3, 1, (16, channels), 32)
    x = active("stem_active", x, (images, 32, 32, channels))
    x = body.op(
        "pooled",
        "max_pool2d",
        [x],
        kind(images, size, size, channels),
        "kernel = array<i32: 2, 2>, stride = array<i32: 2, 2>, padding = array<i32: 0, 0>, "
        "dilation = array<i32: 1, 1>, ceil_mode = false",
    )
    for block in range(blocks):
        at = f"b{block}."
        here = f"b{block}_"
        made = convolution(f"{at}{reduce}", x, 1, 1, (channels, inner), size)
        made = active(f"{here}{reduce}_active", made, (images, size, size, inner))
        made = convolution(f"{at}spatial", made, 3, 1, (inner, inner), size)
        made = active(f"{here}spatial_active", made, (images, size, size, inner))
        made = convolution(f"{at}expand", made, 1, 1, (inner, channels), size)
        x = body.op(f"{here}sum", "add", [made, x], kind(images, size, size, channels))
        x = active(f"{here}active", x, (images, size, size, channels))
    x = body.op(
        "average",
        "mean",
        [x],
        kind(images, channels),
        "dim_arg = [1 : i32, 2 : i32], keep_dim = false",
    )
    weight = body.argument(f"{classifier}.weight", kind(channels, 96))
    bias = body.argument(f"{classifier}.bias", kind(96))
    x = body.op(classifier, "linear", [x, weight, bias], kind(images, 96))
    x = body.op("scores", "softmax", [x], kind(images, 96), "dimension = 1 : si32")
    return body.text("classify", [x])
