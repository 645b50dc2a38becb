"""Masks are known by the comparisons that they are made of, whatever their size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from tests.transforms.numpy_execution import run
from tests.transforms.programs import Formulas, Transformed
from tests.transforms.test_fusing_repetitions import known_mask
from ttcodegen.dialects.core.datatypes import bf16, element_of, elements, f32, shape_of, si32
from ttcodegen.transforms.ttir.fusing.attention import SeenKeys, may_hide_rows, seen_keys
from ttcodegen.transforms.ttir.position_forms import Hiding, Linear, Region
from ttcodegen.transforms.ttir.position_values import form_of

LARGE = 40_000
"""Positions of which a mask would have 1.6e9 elements."""
Mask = Callable[[Formulas, int], SSAValue]


def positions(p: Formulas, size: int, axis: int, element: object = si32) -> SSAValue:
    line = p.make.emit("arange", [], TensorType(element, [size]), start=0, end=size, step=1)
    return p.make.reshape(line, [size, 1] if axis == 0 else [1, size])


def hiding(p: Formulas, seen: SSAValue, number: float = -3e38) -> SSAValue:
    numbers = [p.make.full([1, 1], each, f32) for each in (0.0, number)]
    return p.make.emit("where", [seen, *numbers], TensorType(f32, shape_of(seen.type)))


def compared(p: Formulas, size: int, name: str = "ge", shift: int = 0) -> SSAValue:
    queries, keys = positions(p, size, 0), positions(p, size, 1)
    if shift:
        queries = p.n("add", queries, shift)
    return p.make.broadcasting(name, queries, keys, element=f32)


def plain(p: Formulas, size: int) -> SSAValue:
    return hiding(p, compared(p, size))


def subtracted(p: Formulas, size: int) -> SSAValue:
    """1 less the truth, times the lowest number."""
    unseen = p.n("subtract", compared(p, size), 1.0, swap=True)
    return p.n("multiply", unseen, -3e38)


def triangle_of_a_number(p: Formulas, size: int) -> SSAValue:
    """torch.triu(torch.full(..., -inf), 1), and once more by positions of the cache, as
    transformers had it."""
    queries, keys = positions(p, size, 0), positions(p, size, 1)
    above = p.make.broadcasting("gt", keys, queries, element=f32)
    zero, low = (p.make.full([1, 1], each, f32) for each in (0.0, -3e38))
    mask = p.make.emit("where", [above, low, zero], TensorType(f32, [size, size]))
    return p.b("multiply", mask, p.make.broadcasting("gt", keys, queries, element=f32))


def windowed(p: Formulas, size: int) -> SSAValue:
    """The last seven keys, as two comparisons."""
    queries, keys = positions(p, size, 0), positions(p, size, 1)
    later = p.make.broadcasting("le", keys, queries, element=f32)
    near = p.make.broadcasting("gt", keys, p.n("subtract", queries, 7), element=f32)
    return hiding(p, p.b("logical_and", later, near))


def batched(p: Formulas, size: int) -> SSAValue:
    """With true for all tokens of a batch, and dimensions for heads."""
    truth = p.make.reshape(compared(p, size), [1, 1, size, size])
    both = p.make.broadcasting("logical_and", truth, p.make.full([2, 1, 1, 1], 1.0, f32))
    return hiding(p, p.make.reshape(both, [2, 1, size, size]))


def counted(p: Formulas, size: int) -> SSAValue:
    """Positions as sums of ones, as transformers counts tokens."""
    ones = p.make.full([1, size], 1, si32)
    count = p.make.emit("cumsum", [ones], ones.type, dim=1)
    queries = p.make.reshape(p.n("subtract", count, 1), [size, 1])
    return hiding(p, p.make.broadcasting("ge", queries, positions(p, size, 1), element=f32))


def packed(p: Formulas, size: int) -> SSAValue:
    """transformers: the sequences of a row start where positions do not follow each other."""
    line = p.make.emit("arange", [], TensorType(si32, [size]), start=0, end=size, step=1)
    row = p.make.reshape(line, [1, size])
    before = p.make.slice_dim(p.make.concat([p.make.full([1, 1], -1, si32), row], 1), 1, 0, size)
    starts = p.n("ne", p.b("subtract", row, before), 1)
    number = p.make.reshape(p.make.emit("cumsum", [starts], starts.type, dim=1), [size, 1])
    places = p.make.reshape(line, [size, 1])
    number = p.make.emit("gather", [number, places], number.type, dim=0)
    same = p.make.broadcasting("eq", number, p.make.reshape(number, [1, size]), element=f32)
    return hiding(p, p.b("logical_and", compared(p, size), same), float("-inf"))


CAUSAL: dict[str, tuple[Mask, int | None]] = {
    "plain": (plain, None),
    "subtracted": (subtracted, None),
    "triangle of a number": (triangle_of_a_number, None),
    "windowed": (windowed, 7),
    "batched": (batched, None),
    "counted": (counted, None),
    "packed": (packed, None),
}


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("size", [24, 1056, LARGE])
def test_causal_masks_of_any_size(name: str, size: int) -> None:
    build, window = CAUSAL[name]
    mask = build(Formulas(), size)
    assert seen_keys(mask, (2, 4, size, size)) == SeenKeys(window)
    assert not may_hide_rows(mask)


@pytest.mark.parametrize("name", CAUSAL)
def test_the_masks_are_what_numpy_makes_of_them(name: str) -> None:
    p = Formulas()
    build, window = CAUSAL[name]
    (found,) = run(Transformed(p.returns(build(p, 24))).function, [])
    before = np.arange(24)[:, None] - np.arange(24)[None, :]
    seen = (before >= 0) & (before < (window or 24))
    assert np.array_equal(found == 0, np.broadcast_to(seen, found.shape))
    assert (found[found != 0] <= -1e38).all()


OTHERS: dict[str, Mask] = {
    "strictly earlier": lambda p, n: hiding(p, compared(p, n, "gt")),
    "one later": lambda p, n: hiding(p, compared(p, n, shift=1)),
    "later": lambda p, n: hiding(p, compared(p, n, "le")),
    "nearly hidden": lambda p, n: hiding(p, compared(p, n), -100.0),
    "padded": lambda p, n: hiding(
        p, p.make.broadcasting("logical_and", compared(p, n), p.argument(1, n))
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_masks_are_not_causal(name: str) -> None:
    assert seen_keys(OTHERS[name](Formulas(), 24), (2, 4, 24, 24)) is None


def test_constants_are_known_by_what_they_hold() -> None:
    p = Formulas()
    tril = np.tril(np.ones((12, 12), np.float32))
    value = elements(f32, tril.shape, tril.tobytes())
    truth = p.make.emit("constant", [], TensorType(f32, [12, 12]), value=value)
    assert form_of(truth) == Region(frozenset([Linear((1, -1), 0)]), 2)
    assert seen_keys(hiding(p, truth), (1, 1, 12, 12)) == SeenKeys(None)
    assert seen_keys(known_mask(p, tril != 0), (2, 1, 12, 12)) == SeenKeys(None)


def test_what_16_bits_do_not_hold_is_no_position() -> None:
    p = Formulas()
    assert isinstance(form_of(p.make.typecast(positions(p, 257, 0), bf16)), Linear)
    assert form_of(p.make.typecast(positions(p, 258, 0), bf16)) is None


def test_values_that_inputs_made_are_not_known() -> None:
    p = Formulas()
    assert form_of(p.b("add", p.argument(4, 4), p.number(0.0, 4, 4))) is None
    x = p.argument(4, 4)
    for _ in range(5000):
        x = p.b("add", x, x)
    assert form_of(x) is None


@pytest.mark.parametrize(("number", "may"), [(-3e38, False), (float("-inf"), True)])
def test_masks_that_may_hide_whole_rows(number: float, may: bool) -> None:
    p = Formulas()
    assert may_hide_rows(hiding(p, p.argument(8, 8), number)) is may
    assert may_hide_rows(p.argument(8, 8))
    assert isinstance(form_of(hiding(p, compared(p, 8, "gt"), number)), Hiding)
    assert may_hide_rows(hiding(p, compared(p, 8, "gt"), number)) is may
    assert element_of(hiding(p, compared(p, 8)).type) == f32
