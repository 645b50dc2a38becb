from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt

import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from tests.transforms.programs import Formulas, Program, Transformed, transformed
from ttcodegen.dialects.core.datatypes import bf16, element_of, f32, shape_of, si32
from ttcodegen.transforms.ttir.canonicalize import TTIRCanonicalizePass
from ttcodegen.transforms.ttir.fusing.rules import TTIRFusingPass

Build = Callable[[Program], "SSAValue | list[SSAValue]"]


# Activations


def sigmoid(p: Formulas, x: SSAValue) -> SSAValue:
    return p.n("div", p.n("add", p.u("exp", p.u("neg", x)), 1.0), 1.0, swap=True)


def gelu(p: Formulas, x: SSAValue, half: float = 0.5, root: float = sqrt(0.5)) -> SSAValue:
    gate = p.n("add", p.u("erf", p.n("multiply", x, root)), 1.0)
    return p.b("multiply", p.n("multiply", x, half), gate)


def reflected_gelu(p: Formulas, x: SSAValue, two: float = 2.0, root: float = sqrt(0.5)) -> SSAValue:
    gate = p.n("subtract", p.u("erfc", p.n("multiply", x, root)), two, swap=True)
    return p.n("multiply", p.b("multiply", x, gate), 0.5)


def tanh_gelu(p: Formulas, x: SSAValue, cubic: float = 0.044715) -> SSAValue:
    cube = p.n("multiply", p.n("pow", x, 3.0), cubic)
    gate = p.u("tanh", p.n("multiply", p.b("add", x, cube), sqrt(2 / pi)))
    return p.n("multiply", p.b("multiply", x, p.n("add", gate, 1.0)), 0.5)


def factored_tanh_gelu(p: Formulas, x: SSAValue) -> SSAValue:
    square = p.n("multiply", p.b("multiply", x, x), 0.044715)
    inner = p.b("multiply", p.n("multiply", x, sqrt(2 / pi)), p.n("add", square, 1.0))
    gate = p.n("add", p.n("multiply", p.u("tanh", inner), 0.5), 0.5)
    return p.b("multiply", x, gate)


def mish(p: Formulas, x: SSAValue, one: float = 1.0) -> SSAValue:
    softplus = p.u("log", p.n("add", p.u("exp", x), one))
    return p.b("multiply", x, p.u("tanh", softplus))


def chosen_relu(p: Formulas, x: SSAValue) -> SSAValue:
    return p.b("where", p.n("gt", x, 0), x, zeros(p, x))


def zeros(p: Formulas, like: SSAValue) -> SSAValue:
    return p.make.full(shape_of(like.type), 0, element_of(like.type))


def kept_sigmoid(p: Formulas, x: SSAValue) -> list[SSAValue]:
    gate = p.u("sigmoid", x)
    return [p.b("multiply", x, gate), gate]


def on_argument(formula: Callable[..., SSAValue | list[SSAValue]], **options: float) -> Build:
    return lambda p: formula(p, p.argument(4, 5), **options)


ACTIVATIONS: dict[str, tuple[Build, list[str]]] = {
    "relu": (on_argument(lambda p, x: p.n("maximum", x, 0.0)), ["relu"]),
    "relu, zero first": (on_argument(lambda p, x: p.n("maximum", x, 0.0, swap=True)), ["relu"]),
    "no relu": (on_argument(lambda p, x: p.n("maximum", x, 0.1)), ["maximum"]),
    "chosen relu": (
        lambda p: chosen_relu(p, p.argument(4, 5, element=si32)),
        ["relu"],
    ),
    "chosen relu of floats": (on_argument(lambda p, x: chosen_relu(p, x)), ["gt", "where"]),
    "relu6": (on_argument(lambda p, x: p.n("minimum", p.n("maximum", x, 0.0), 6.0)), ["relu6"]),
    "relu6, 6 first": (
        on_argument(lambda p, x: p.n("maximum", p.n("minimum", x, 6.0), 0.0)),
        ["relu6"],
    ),
    "no relu6": (
        on_argument(lambda p, x: p.n("minimum", p.n("maximum", x, 0.0), 5.0)),
        ["relu", "minimum"],
    ),
    "clamped relu6": (
        on_argument(lambda p, x: p.make.like("clamp_scalar", x, min=0.0, max=6.0)),
        ["relu6"],
    ),
    "hardsigmoid": (
        on_argument(lambda p, x: p.n("div", p.u("relu6", p.n("add", x, 3.0)), 6.0)),
        ["hardsigmoid"],
    ),
    "hardsigmoid by a factor": (
        on_argument(lambda p, x: p.n("multiply", p.u("relu6", p.n("add", x, 3.0)), 1 / 6)),
        ["hardsigmoid"],
    ),
    "no hardsigmoid": (
        on_argument(lambda p, x: p.n("div", p.u("relu6", p.n("add", x, 2.0)), 6.0)),
        ["add", "relu6", "div"],
    ),
    "sigmoid": (on_argument(sigmoid), ["sigmoid"]),
    "silu": (on_argument(lambda p, x: p.b("multiply", p.u("sigmoid", x), x)), ["silu"]),
    "spelled silu": (on_argument(lambda p, x: p.b("multiply", x, sigmoid(p, x))), ["silu"]),
    "silu, divided": (
        on_argument(lambda p, x: p.b("div", x, p.n("add", p.u("exp", p.u("neg", x)), 1.0))),
        ["silu"],
    ),
    "a gate below": (
        on_argument(
            lambda p, x: p.b("div", p.argument(4, 5), p.n("add", p.u("exp", p.u("neg", x)), 1.0))
        ),
        ["neg", "exp", "add", "div"],
    ),
    "a number above a gate": (
        on_argument(
            lambda p, x: p.n("div", p.n("add", p.u("exp", p.u("neg", x)), 1.0), 3.0, swap=True)
        ),
        ["sigmoid", "multiply"],
    ),
    "gate of another": (
        lambda p: p.b("multiply", p.argument(4), p.u("sigmoid", p.argument(4))),
        ["sigmoid", "multiply"],
    ),
    "gate used elsewhere": (on_argument(kept_sigmoid), ["sigmoid", "multiply"]),
    "mish": (on_argument(mish), ["mish"]),
    "no mish": (on_argument(mish, one=2.0), ["exp", "add", "log", "tanh", "multiply"]),
    "gelu": (on_argument(gelu), ["gelu"]),
    "gelu of another scale": (
        on_argument(gelu, root=0.6),
        ["multiply", "erf", "add", "multiply", "multiply"],
    ),
    "two gelus": (
        on_argument(gelu, half=1.0),
        ["multiply", "erf", "add", "multiply"],
    ),
    "complementary gelu": (
        on_argument(
            lambda p, x: p.n(
                "multiply",
                p.b("multiply", x, p.u("erfc", p.n("multiply", p.u("neg", x), sqrt(0.5)))),
                0.5,
            )
        ),
        ["gelu"],
    ),
    "gelu of 2 - erfc": (on_argument(reflected_gelu), ["gelu"]),
    "gelu of 1.9 - erfc": (
        on_argument(reflected_gelu, two=1.9),
        ["multiply", "erfc", "subtract", "multiply", "multiply"],
    ),
    "gelu of 2 - erfc, negated inside": (
        on_argument(reflected_gelu, root=-sqrt(0.5)),
        ["multiply", "erfc", "subtract", "multiply", "multiply"],
    ),
    "divided gelu": (
        on_argument(
            lambda p, x: p.n(
                "div",
                p.b("multiply", x, p.n("add", p.u("erf", p.n("div", x, sqrt(2))), 1.0)),
                2.0,
            )
        ),
        ["gelu"],
    ),
    "tanh gelu": (on_argument(tanh_gelu), ["gelu"]),
    "factored tanh gelu": (on_argument(factored_tanh_gelu), ["gelu"]),
    "no tanh gelu": (
        on_argument(tanh_gelu, cubic=0.05),
        ["pow", "multiply", "add", "multiply", "tanh", "add", "multiply", "multiply"],
    ),
}


# Reductions and norms


def total(p: Formulas, x: SSAValue, name: str = "sum", dim: int = 1) -> SSAValue:
    return p.broadcast_along(p.make.reduce(name, x, [dim], keep_dim=False), x, dim)


def softmax(
    p: Formulas, x: SSAValue, stable: bool = True, dim: int = 1, sum_dim: int | None = None
) -> SSAValue:
    shifted = p.b("subtract", x, total(p, x, "max", dim)) if stable else x
    exponentials = p.u("exp", shifted)
    summed = total(p, exponentials, dim=dim if sum_dim is None else sum_dim)
    return p.b("div", exponentials, summed)


def kept_softmax(p: Formulas, x: SSAValue) -> list[SSAValue]:
    exponentials = p.u("exp", x)
    return [p.b("div", exponentials, total(p, exponentials)), exponentials]


def mean_square(p: Formulas, x: SSAValue, count: float | None = None) -> SSAValue:
    summed = p.make.reduce("sum", p.n("pow", x, 2.0), [1], keep_dim=False)
    return p.n("multiply", summed, 1.0 / (count or shape_of(x.type)[1]))


def rms_norm(
    p: Formulas, x: SSAValue, count: float | None = None, epsilon: float = 1e-5
) -> SSAValue:
    mean = p.make.reshape(mean_square(p, x, count), [*shape_of(x.type)[:1], 1])
    root = p.u("rsqrt", p.n("add", mean, epsilon))
    factors = [1, shape_of(x.type)[1]]
    repeated = p.make.emit("broadcast", [root], x.type, broadcast_dimensions=factors)
    return p.b("multiply", x, repeated)


def kept_rms_norm(p: Formulas, x: SSAValue) -> list[SSAValue]:
    mean = p.make.reduce("mean", p.b("multiply", x, x), [1])
    return [p.b("multiply", x, p.u("rsqrt", p.n("add", mean, 1e-5))), mean]


def layer_norm(p: Formulas, x: SSAValue, dim: int = 1) -> SSAValue:
    centered = p.b("subtract", x, p.make.reduce("mean", x, [dim]))
    variance = p.make.reduce("mean", p.b("multiply", centered, centered), [1])
    return p.b("div", centered, p.u("sqrt", p.n("add", variance, 1e-5)))


def converted_rms_norm(p: Formulas, weight_kind: str = "vector") -> SSAValue:
    x = p.make.typecast(p.argument(4, 8, element=bf16), f32)
    shape = {"vector": [8], "row": [1, 8], "column": [4, 1]}[weight_kind]
    weight = p.weight(*shape, element=bf16)
    return p.b("multiply", weight, p.make.typecast(rms_norm(p, x), bf16))


def added_weight_norm(p: Formulas) -> SSAValue:
    x = p.make.typecast(p.argument(4, 8, element=bf16), f32)
    weight = p.n("add", p.make.typecast(p.weight(8, element=bf16), f32), 1.0)
    return p.make.typecast(p.b("multiply", rms_norm(p, x), weight), bf16)


NORMS: dict[str, tuple[Build, list[str]]] = {
    "kept dimension": (
        on_argument(lambda p, x: p.make.reshape(p.make.reduce("max", x, [1], False), [4, 1])),
        ["max"],
    ),
    "dimension put elsewhere": (
        on_argument(lambda p, x: p.make.reshape(p.make.reduce("max", x, [1], False), [1, 4])),
        ["max", "reshape"],
    ),
    "mean": (on_argument(lambda p, x: p.n("div", p.make.reduce("sum", x, [1]), 5.0)), ["mean"]),
    "mean by a factor": (
        on_argument(lambda p, x: p.n("multiply", p.make.reduce("sum", x, [0, 1]), 1 / 20)),
        ["mean"],
    ),
    "no mean": (
        on_argument(lambda p, x: p.n("div", p.make.reduce("sum", x, [1]), 4.0)),
        ["sum", "div"],
    ),
    "stable softmax": (on_argument(softmax), ["softmax"]),
    "plain softmax": (on_argument(softmax, stable=False), ["exp", "sum", "div"]),
    "softmax of rows": (on_argument(softmax, dim=0), ["softmax"]),
    "softmax by a factor": (
        on_argument(
            lambda p, x: p.b("multiply", p.u("exp", x), p.u("reciprocal", total(p, p.u("exp", x))))
        ),
        ["exp", "sum", "reciprocal", "multiply"],
    ),
    "sum over another dimension": (
        on_argument(softmax, sum_dim=0),
        ["max", "subtract", "exp", "sum", "div"],
    ),
    "exponentials used elsewhere": (on_argument(kept_softmax), ["exp", "sum", "div"]),
    "rms_norm": (on_argument(rms_norm), ["rms_norm"]),
    "mean of a wrong count": (
        on_argument(rms_norm, count=4),
        ["multiply", "sum", "multiply", "reshape", "add", "rsqrt", "multiply"],
    ),
    "negative epsilon": (
        on_argument(rms_norm, epsilon=-1e-9),
        ["multiply", "mean", "add", "rsqrt", "multiply"],
    ),
    "mean used elsewhere": (
        on_argument(kept_rms_norm),
        ["multiply", "mean", "add", "rsqrt", "multiply"],
    ),
    "weighted rms_norm": (
        lambda p: p.b("multiply", rms_norm(p, p.argument(4, 8)), p.weight(8)),
        ["rms_norm"],
    ),
    "rms_norm of bf16": (converted_rms_norm, ["rms_norm"]),
    "rms_norm of bf16 and a row": (
        lambda p: converted_rms_norm(p, "row"),
        ["reshape", "rms_norm"],
    ),
    "rms_norm times a column": (
        lambda p: converted_rms_norm(p, "column"),
        ["rms_norm", "multiply"],
    ),
    "rms_norm with 1 + weight": (added_weight_norm, ["typecast", "add", "rms_norm"]),
    "layer_norm": (on_argument(layer_norm), ["layer_norm"]),
    "mean over another dimension": (
        on_argument(layer_norm, dim=0),
        ["mean", "subtract", "rms_norm"],
    ),
    "layer_norm with weight and bias": (
        lambda p: p.b(
            "add", p.b("multiply", layer_norm(p, p.argument(4, 8)), p.weight(8)), p.weight(1, 8)
        ),
        ["reshape", "layer_norm"],
    ),
    "layer_norm with bias only": (
        lambda p: p.b("add", layer_norm(p, p.argument(4, 8)), p.weight(8)),
        ["layer_norm", "add"],
    ),
}


# Products and convolutions


def product(p: Formulas, *, batch: tuple[int, ...] = (), rows: int = 4) -> SSAValue:
    a, b = p.argument(*batch, rows, 6), p.argument(*batch, 6, 8)
    return p.make.emit("matmul", [a, b], TensorType(f32, [*batch, rows, 8]))


def gated(p: Formulas, x: SSAValue) -> list[SSAValue]:
    return [x, p.u("sigmoid", x)]


def moved_silu(p: Formulas, *, transposed: bool) -> SSAValue:
    value = product(p)
    factor = p.u("sigmoid", value)
    first = p.make.permute(value, [1, 0]) if transposed else p.make.reshape(value, [8, 4])
    return p.b("multiply", first, p.make.reshape(factor, [8, 4]))


def kept_product(p: Formulas) -> list[SSAValue]:
    value = product(p)
    return [p.b("add", value, p.weight(8)), value]


def convolved(
    p: Formulas, *, bias: bool = False, permuted: bool = False, kind: str = "parameter"
) -> SSAValue:
    operands = [p.argument(2, 5, 5, 3), p.argument(4, 3, 3, 3, kind=kind)]
    operands.append(p.weight(1, 1, 1, 4) if bias else None)
    result = TensorType(f32, [2, 5, 5, 4])
    value = p.make.emit("conv2d", operands, result, padding=[1, 1, 1, 1], stride=[1, 1],
                        dilation=[1, 1])  # fmt: skip
    return p.make.permute(value, [0, 3, 1, 2]) if permuted else value


def batch_norm(p: Formulas, value: SSAValue, dimension: int, kind: str = "parameter") -> SSAValue:
    vectors = [p.argument(4, kind=kind) for _ in range(4)]
    return p.make.emit("batch_norm_inference", [value, *vectors], value.type,
                       epsilon=1e-5, dimension=dimension)  # fmt: skip


def kept_convolution(p: Formulas) -> list[SSAValue]:
    value = convolved(p)
    return [p.b("multiply", value, p.weight(1, 1, 1, 4)), value]


def padded_image(
    p: Formulas, *widths: int, value: float = 0.0, kept: bool = False
) -> SSAValue | list[SSAValue]:
    """A convolution, with padding (1, 0, 2, 1) of its own, of an image that others have padded."""
    image = p.argument(2, 5, 5, 3)
    pairs = list(zip(widths[::2], widths[1::2], strict=True))
    shape = [size + sum(pair) for size, pair in zip((2, 5, 5, 3), pairs, strict=True)]
    padded = p.make.emit("pad", [image], TensorType(f32, shape), padding=list(widths), value=value)
    weight = p.argument(4, shape[3], 3, 3, kind="parameter")
    result = TensorType(f32, [shape[0], shape[1] + 1, shape[2] - 1, 4])
    convolved = p.make.emit("conv2d", [padded, weight, None], result, padding=[1, 0, 2, 1],
                            stride=[1, 1], dilation=[1, 1])  # fmt: skip
    return [convolved, padded] if kept else convolved


def padded_volume(p: Formulas, *widths: int, mode: str = "zeros") -> SSAValue:
    volume, weight = p.argument(1, 3, 4, 5, 4), p.argument(2, 3, 2, 2, 2, kind="parameter")
    pairs = list(zip(widths[::2], widths[1::2], strict=True))
    shape = [size + sum(pair) for size, pair in zip((1, 3, 4, 5, 4), pairs, strict=True)]
    padded = p.make.emit("pad", [volume], TensorType(f32, shape), padding=list(widths), value=0.0)
    result = TensorType(f32, [1, 2, *(size - 1 for size in shape[2:])])
    places = {"batch": 0, "channel": 1, "depth": 2, "height": 3, "width": 4}
    return p.make.emit("conv3d", [padded, weight, None], result, padding=[0], stride=[1],
                       padding_mode=mode, **{f"{n}_dim": i for n, i in places.items()})  # fmt: skip


def padded_sequence(p: Formulas) -> SSAValue:
    sequence, weight = p.argument(2, 3, 8), p.argument(4, 3, 3, kind="parameter")
    padded = p.make.emit(
        "pad", [sequence], TensorType(f32, [2, 3, 11]), padding=[0, 0, 0, 0, 2, 1], value=0.0
    )
    return p.make.emit(
        "conv1d", [padded, weight, None], TensorType(f32, [2, 4, 9]), padding=[0], stride=[1],
        dilation=[1], batch_dim=0, channel_dim=1, length_dim=2,
    )  # fmt: skip


PRODUCTS: dict[str, tuple[Build, list[str]]] = {
    "padding": (lambda p: padded_image(p, 0, 0, 1, 2, 3, 0, 0, 0), ["conv2d"]),
    "padding of a number": (
        lambda p: padded_image(p, 0, 0, 1, 2, 3, 0, 0, 0, value=1.0),
        ["pad", "conv2d"],
    ),
    "padding of channels": (lambda p: padded_image(p, 0, 0, 1, 1, 1, 1, 0, 1), ["pad", "conv2d"]),
    "padding used elsewhere": (
        lambda p: padded_image(p, 0, 0, 1, 1, 1, 1, 0, 0, kept=True),
        ["pad", "conv2d"],
    ),
    "padding of a sequence": (padded_sequence, ["conv1d"]),
    "padding of a volume": (lambda p: padded_volume(p, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2), ["conv3d"]),
    "padding on one side of a volume": (
        lambda p: padded_volume(p, 0, 0, 0, 0, 0, 0, 1, 0, 2, 2),
        ["pad", "conv3d"],
    ),
    "padding of a volume that replicates": (
        lambda p: padded_volume(p, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, mode="replicate"),
        ["pad", "conv3d"],
    ),
    "bias": (lambda p: p.b("add", product(p), p.weight(8)), ["linear"]),
    "bias first": (lambda p: p.b("add", p.weight(1, 8), product(p)), ["reshape", "linear"]),
    "bias after a reshape": (
        lambda p: p.b("add", p.make.reshape(product(p), [2, 2, 8]), p.weight(8)),
        ["linear", "reshape"],
    ),
    "bias after a reshape of columns": (
        lambda p: p.b("add", p.make.reshape(product(p), [8, 4]), p.weight(4)),
        ["matmul", "reshape", "add"],
    ),
    "activation after a reshape": (
        lambda p: p.u("gelu", p.make.reshape(product(p), [2, 2, 8])),
        ["matmul", "gelu", "reshape"],
    ),
    "silu after a reshape": (
        lambda p: p.b("multiply", *gated(p, p.make.reshape(product(p), [1, 4, 8]))),
        ["matmul", "silu", "reshape"],
    ),
    "silu of which both factors are reshaped": (
        lambda p: moved_silu(p, transposed=False),
        ["matmul", "silu", "reshape"],
    ),
    "silu of which the factors are moved otherwise": (
        lambda p: moved_silu(p, transposed=True),
        ["matmul", "sigmoid", "permute", "reshape", "multiply"],
    ),
    "no row": (lambda p: p.b("add", product(p), p.argument(4, 8)), ["matmul", "add"]),
    "a column": (lambda p: p.b("add", product(p), p.weight(4, 1)), ["matmul", "add"]),
    "bias of a batch": (
        lambda p: p.b("add", product(p, batch=(3,)), p.weight(8)),
        ["matmul", "add"],
    ),
    "residual of one row": (
        lambda p: p.b("add", product(p, rows=1), p.argument(1, 8)),
        ["matmul", "add"],
    ),
    "product used elsewhere": (kept_product, ["matmul", "add"]),
    "convolution and bias": (
        lambda p: p.b("add", convolved(p), p.weight(1, 1, 1, 4)),
        ["conv2d"],
    ),
    "permuted convolution and bias": (
        lambda p: p.b("add", convolved(p, permuted=True), p.weight(1, 4, 1, 1)),
        ["reshape", "conv2d", "permute"],
    ),
    "convolution and activation": (
        lambda p: p.b("add", convolved(p), p.argument(1, 1, 1, 4)),
        ["conv2d", "add"],
    ),
    "convolution and row": (
        lambda p: p.b("add", convolved(p), p.weight(1, 1, 5, 1)),
        ["conv2d", "add"],
    ),
    "convolution and scale": (
        lambda p: p.b("multiply", convolved(p, bias=True), p.weight(1, 1, 1, 4)),
        ["reshape", "reshape", "multiply", "multiply", "reshape", "conv2d"],
    ),
    "convolution of an unknown weight": (
        lambda p: p.b("multiply", convolved(p, kind="input"), p.weight(1, 1, 1, 4)),
        ["conv2d", "multiply"],
    ),
    "convolution used elsewhere": (kept_convolution, ["conv2d", "multiply"]),
}


def check(
    build: Build, expected: list[str] | None, low: float = -2.0, tolerance: float | None = None
) -> Transformed:
    program = Formulas()
    value = build(program)
    module = program.returns(*(value if isinstance(value, list) else [value]))
    passes = (TTIRCanonicalizePass(), TTIRFusingPass())
    result = transformed(module, *passes, low=low, high=2.0, tolerance=tolerance)
    if expected is not None:
        assert result.names == expected
    return result


@pytest.mark.parametrize("case", ACTIVATIONS)
def test_activations(case: str) -> None:
    # The hyperbolic tangent in place of the error function is off by up to 5e-4 itself.
    check(*ACTIVATIONS[case], low=-4.0, tolerance=5e-4 if "tanh gelu" in case else None)


@pytest.mark.parametrize("case", NORMS)
def test_norms(case: str) -> None:
    check(*NORMS[case])


@pytest.mark.parametrize("case", PRODUCTS)
def test_products(case: str) -> None:
    check(*PRODUCTS[case])


@pytest.mark.parametrize(("permuted", "dimension"), [(False, 3), (True, 1)])
@pytest.mark.parametrize("bias", [False, True])
def test_batch_norm_goes_into_the_convolution(permuted: bool, dimension: int, bias: bool) -> None:
    result = check(
        lambda p: batch_norm(p, convolved(p, bias=bias, permuted=permuted), dimension),
        None,
        low=0.25,
    )
    assert "batch_norm_inference" not in result.names
    assert result.op("conv2d").optional_operand("bias") is not None
    following = result.names[result.names.index("conv2d") + 1 :]
    assert following == (["permute"] if permuted else [])


@pytest.mark.parametrize(
    "build",
    [
        lambda p: batch_norm(p, convolved(p), 3, kind="input"),
        lambda p: batch_norm(p, convolved(p, kind="input"), 3),
        lambda p: batch_norm(p, p.argument(2, 5, 5, 4), 3),
    ],
)
def test_batch_norm_of_what_is_not_known_stays(build: Build) -> None:
    assert "batch_norm_inference" in check(build, None, low=0.25).names


def test_a_stable_softmax_is_marked() -> None:
    result = check(on_argument(softmax), ["softmax"])
    assert result.op("softmax").parameter("numericStable") is True


def test_epsilon_and_shape_of_a_norm_are_kept() -> None:
    norm = check(on_argument(rms_norm, epsilon=1e-3), ["rms_norm"]).op("rms_norm")
    assert norm.parameter("epsilon") == pytest.approx(1e-3)
    assert norm.parameter("normalized_shape") == [5]
