"""Rotary embeddings, in the spellings of models."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from xdsl.ir import SSAValue

from tests.transforms.programs import Program, Transformed, transformed
from ttcodegen.dialects.core.datatypes import bf16, f32
from ttcodegen.transforms.ttir.canonicalize import TTIRCanonicalizePass
from ttcodegen.transforms.ttir.fusing.rules import TTIRFusingPass

ROTATION = "rotary_embedding"


def fused(p: Program, *results: SSAValue) -> Transformed:
    return transformed(p.returns(*results), TTIRCanonicalizePass(), TTIRFusingPass())


@dataclass(frozen=True)
class Rotation:
    """A rotation as models write it, and what may be different about it."""

    shape: tuple[int, ...] = (2, 3, 32, 64)
    table: tuple[int, ...] = (1, 1, 32)
    """The dimensions of the tables before the last one."""
    wide: bool = False
    flipped: bool = False
    """Factors and terms in the other order."""

    def _source(self, p: Program) -> SSAValue:
        value = p.argument(*self.shape, element=bf16)
        return p.make.typecast(value, f32) if self.wide else value

    def _tables(self, p: Program, width: int) -> list[SSAValue]:
        element = f32 if self.wide else bf16
        return [p.argument(*self.table, width, element=element) for _ in "cs"]

    def _ordered(self, p: Program, name: str, a: SSAValue, b: SSAValue) -> SSAValue:
        return p.make.broadcasting(name, *((b, a) if self.flipped else (a, b)))

    def _halves(self, p: Program, value: SSAValue) -> tuple[SSAValue, SSAValue]:
        last, width = len(self.shape) - 1, self.shape[-1]
        parts = ((0, width // 2), (width // 2, width))
        low, high = (p.make.slice_dim(value, last, *part) for part in parts)
        return low, high

    def whole_rows(self, p: Program) -> SSAValue:
        """x * cos + rotate_half(x) * sin."""
        x = self._source(p)
        cosines, sines = self._tables(p, self.shape[-1])
        low, high = self._halves(p, x)
        swapped = p.make.concat([p.make.like("neg", high), low], len(self.shape) - 1)
        straight = self._ordered(p, "multiply", x, cosines)
        across = self._ordered(p, "multiply", swapped, sines)
        return p.make.typecast(self._ordered(p, "add", straight, across), bf16)

    def halves(self, p: Program) -> SSAValue:
        """Both halves by themselves, with tables of half a row."""
        cosines, sines = self._tables(p, self.shape[-1] // 2)
        low, high = self._halves(p, self._source(p))
        first = p.make.like(
            "subtract",
            self._ordered(p, "multiply", low, cosines),
            self._ordered(p, "multiply", high, sines),
        )
        products = [self._ordered(p, "multiply", *pair) for pair in ((high, cosines), (low, sines))]
        second = self._ordered(p, "add", *products)
        return p.make.typecast(p.make.concat([first, second], len(self.shape) - 1), bf16)


ROTATIONS = [
    Rotation(),
    Rotation(wide=True),
    Rotation(flipped=True, wide=True),
    Rotation(table=(32,)),
    Rotation((1, 1, 32, 64)),
    Rotation((3, 32, 128), (32,)),
]


@pytest.mark.parametrize("rotation", ROTATIONS)
@pytest.mark.parametrize("spelling", ["whole_rows", "halves"])
def test_a_rotation_is_one_op(rotation: Rotation, spelling: str) -> None:
    p = Program()
    result = fused(p, getattr(rotation, spelling)(p))
    assert ROTATION in result.names
    assert {"multiply", "add", "neg", "subtract", "slice_static"}.isdisjoint(result.names)


@pytest.mark.parametrize("spelling", ["whole_rows", "halves"])
def test_positions_may_come_before_heads(spelling: str) -> None:
    p = Program()
    rotation = Rotation((2, 32, 3, 64), (1, 32, 1))
    result = fused(p, p.make.permute(getattr(rotation, spelling)(p), [0, 2, 1, 3]))
    assert result.names.count("permute") == 1
    assert ROTATION in result.names


OTHERS = [
    Rotation((2, 3, 32, 48)),
    Rotation((2, 3, 1, 64), (1, 1, 1)),
    Rotation(table=(2, 1, 32)),
    Rotation(table=(1, 3, 32)),
]


@pytest.mark.parametrize("rotation", OTHERS)
@pytest.mark.parametrize("spelling", ["whole_rows", "halves"])
def test_what_the_library_does_not_turn_stays(rotation: Rotation, spelling: str) -> None:
    p = Program()
    assert ROTATION not in fused(p, getattr(rotation, spelling)(p)).names


@pytest.mark.parametrize("wrong", ["sign", "order", "rows", "used"])
def test_other_formulas_stay(wrong: str) -> None:
    p = Program()
    make = p.make
    x, other = (p.argument(2, 3, 32, 64, element=bf16) for _ in range(2))
    cosines, sines = (p.argument(1, 1, 32, 64, element=bf16) for _ in range(2))
    low, high = make.slice_dim(x, 3, 0, 48), make.slice_dim(x, 3, 48, 64)
    if wrong == "sign":
        swapped = make.concat([high, make.like("neg", low)], 3)
    elif wrong == "order":
        swapped = make.concat([make.like("neg", low), high], 3)
    else:
        swapped = make.concat([make.like("neg", high), low], 3)
    across = make.broadcasting("multiply", swapped, sines)
    straight = make.broadcasting("multiply", other if wrong == "rows" else x, cosines)
    results = [make.like("add", straight, across)]
    if wrong == "used":
        results.append(across)
    assert ROTATION not in fused(p, *results).names
