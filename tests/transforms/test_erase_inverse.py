from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from tests.transforms.programs import Program, transformed
from ttcodegen.dialects.core.datatypes import bf16, element_of, shape_of
from ttcodegen.transforms.ttir.movement_passes import TTIREraseInversePass, keeps_order

FIRST, LAST = [0, 3, 1, 2], [0, 2, 3, 1]
"""Channels first, channels last."""


def image(p: Program) -> SSAValue:
    """An image that was permuted to channels first."""
    return p.make.permute(p.argument(2, 4, 5, 3), FIRST)


def emit(
    p: Program, name: str, source: SSAValue, shape: list[int], /, **attributes: object
) -> SSAValue:
    return p.make.emit(name, [source], TensorType(element_of(source.type), shape), **attributes)


def padded(p: Program, x: SSAValue) -> SSAValue:
    result = TensorType(element_of(x.type), [2, 3, 7, 6])
    return p.make.emit("pad", [x], result, padding=[0, 0, 0, 0, 1, 2, 0, 1])


def gated(p: Program, x: SSAValue) -> SSAValue:
    return p.make.like("multiply", x, p.make.like("sigmoid", x))


def scaled(p: Program, x: SSAValue) -> SSAValue:
    return p.make.broadcasting("multiply", x, p.weight(3, 1, 1))


def joined(p: Program, x: SSAValue) -> SSAValue:
    return p.make.concat([x, image(p), p.make.like("exp", x)], 1)


BETWEEN: dict[str, tuple[Callable[[Program, SSAValue], SSAValue], list[str]]] = {
    "unary": (lambda p, x: p.make.like("exp", x), ["exp"]),
    "conversion": (lambda p, x: p.make.typecast(x, bf16), ["typecast"]),
    "two permuted": (lambda p, x: p.make.like("add", x, image(p)), ["add"]),
    "several uses": (gated, ["sigmoid", "multiply"]),
    "a number": (
        lambda p, x: p.make.like("add", x, p.number(2.0, *shape_of(x.type))),
        ["add"],
    ),
    "a channel weight": (scaled, ["reshape", "multiply"]),
    "concat": (joined, ["exp", "concat"]),
    "slice": (lambda p, x: p.make.slice(x, [0, 1, 0, 1], [2, 3, 4, 5], [1, 1, 2, 1]),
              ["slice_static"]),
    "pad": (
        lambda p, x: padded(p, x),
        ["pad"],
    ),
    "mean": (lambda p, x: p.make.reduce("mean", x, [2, 3]), ["mean"]),
    "max": (lambda p, x: p.make.reduce("max", x, [1]), ["max"]),
    "repetition": (
        lambda p, x: emit(p, "repeat_interleave", x, [2, 3, 8, 5], repeats=2, dim=-2),
        ["repeat_interleave"],
    ),
    "choice": (
        lambda p, x: p.make.emit("where", [x, image(p), p.make.like("neg", x)], x.type),
        ["neg", "where"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BETWEEN)
def test_inverse_permutes_cancel(case: str) -> None:
    between, expected = BETWEEN[case]
    p = Program()
    value = p.make.permute(between(p, image(p)), LAST)
    result = transformed(p.returns(value), TTIREraseInversePass(), low=0.1)
    assert result.names == expected


KEPT: dict[str, Callable[[Program], SSAValue]] = {
    "no inverse after": lambda p: p.make.like("exp", image(p)),
    "another permute after": lambda p: p.make.permute(p.make.like("exp", image(p)), [0, 3, 1, 2]),
    "an activation of full size": lambda p: p.make.permute(
        p.make.like("add", image(p), p.argument(2, 3, 4, 5)), LAST
    ),
    "a reduction that gives dimensions up": lambda p: p.make.permute(
        p.make.reduce("sum", p.make.permute(p.argument(2, 3, 4, 5), [1, 0, 2, 3]), [3], False),
        [1, 0, 2],
    ),
}


@pytest.mark.parametrize("case", KEPT)
def test_permutes_stay(case: str) -> None:
    p = Program()
    module = p.returns(KEPT[case](p))
    before = sum(op.name == "ttir.permute" for op in module.walk())
    result = transformed(module, TTIREraseInversePass())
    assert result.names.count("permute") == before


def test_permutes_do_not_multiply() -> None:
    p = Program()
    x = image(p)
    inner = p.make.like("exp", x)
    outputs = [p.make.like(name, inner) for name in ("sin", "cos", "tanh")]
    results = [p.make.permute(inner, LAST), *(p.make.reshape(y, [60, 2]) for y in outputs)]
    result = transformed(p.returns(*results), TTIREraseInversePass())
    assert result.names.count("permute") <= 2


def test_a_chain_of_convolutions_in_the_other_order() -> None:
    p = Program()
    value = p.argument(2, 4, 4, 3)
    for _ in range(3):
        value = p.make.emit("conv2d", [value, p.weight(3, 3, 1, 1), None], value.type,
                            stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1])  # fmt: skip
        value = p.make.permute(value, FIRST)
        value = gated(p, p.make.broadcasting("add", value, p.weight(1, 3, 1, 1)))
        value = p.make.permute(value, LAST)
    result = transformed(p.returns(value), TTIREraseInversePass())
    assert "permute" not in result.names


def test_weights_do_not_pass_a_permute_on_to_each_other() -> None:
    """A linear layer with the skew-symmetric part of its weight, as for orthogonal matrices."""
    p = Program()
    x, w = p.argument(3, 4), p.weight(4, 4)
    skew = p.make.like("subtract", w, p.make.permute(w, [1, 0]))
    product = p.make.emit("matmul", [x, p.make.permute(skew, [1, 0])], x.type)
    result = transformed(p.returns(product), TTIREraseInversePass())
    assert result.names == ["permute", "subtract", "permute", "matmul"]


def pixels_averaged(p: Program, value: SSAValue) -> SSAValue:
    """The mean of the pixels of an image with channels first, as front ends write it."""
    flat = p.make.permute(p.make.reshape(value, [2, 1, 3, 20]), [0, 1, 3, 2])
    return p.make.reduce("mean", flat, [2])


def test_a_reshape_stands_between_inverses() -> None:
    p = Program()
    value = p.make.like("relu", p.make.like("add", image(p), image(p)))
    result = transformed(p.returns(pixels_averaged(p, value)), TTIREraseInversePass())
    assert result.names == ["add", "relu", "reshape", "mean"]


@pytest.mark.parametrize(
    ("shape", "before", "reshaped", "after", "kept"),
    [
        ((2, 4, 5, 3), FIRST, (2, 1, 3, 20), (0, 1, 3, 2), True),
        ((2, 4, 5, 3), FIRST, (2, 3, 20), (0, 2, 1), True),
        ((2, 4, 5, 3), FIRST, (6, 20), (1, 0), False),
        ((2, 4, 5, 3), FIRST, (2, 3, 5, 4), (0, 3, 2, 1), False),
        ((4, 6), (1, 0), (6, 2, 2), (1, 2, 0), True),
        ((4, 6), (1, 0), (6, 2, 2), (1, 0, 2), False),
        ((4, 6), (1, 0), (2, 3, 4), (2, 0, 1), True),
        ((4, 6), (1, 0), (3, 8), (1, 0), False),
    ],
)
def test_order_of_elements(
    shape: tuple[int, ...],
    before: list[int],
    reshaped: tuple[int, ...],
    after: tuple[int, ...],
    kept: bool,
) -> None:
    x = np.arange(np.prod(shape)).reshape(shape)
    y = x.transpose(before).reshape(reshaped).transpose(after)
    assert (y.ravel() == x.ravel()).all() == kept
    assert keeps_order(shape, before, reshaped, after) == kept
