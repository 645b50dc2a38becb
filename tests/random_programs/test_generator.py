"""Guarantees of the generator: well typed, repeatable and stable programs."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType

from tests.random_programs.checking import functions_of, inputs_of, seeded_module
from tests.random_programs.choices import SeededChoices
from tests.random_programs.generator import Generator
from tests.random_programs.recipes import RECIPES
from tests.random_programs.reducing import reduced
from tests.random_programs.witnesses import Rejected
from ttcodegen.dialects.core.datatypes import bf16, f32, i1
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.parsing import parse_module


def read(text: str):
    module = parse_module(Source("random.mlir", text))
    return module, functions_of(module)


def test_a_seed_gives_the_same_program_always() -> None:
    assert seeded_module([7, 8]) == seeded_module([7, 8])


def test_a_program_runs_in_range_on_inputs_that_its_text_describes() -> None:
    module, functions = read(seeded_module(range(5)))
    for name, function in functions.items():
        for result in Golden(module).run(name, inputs_of(function)):
            assert np.isfinite(result).all()


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_each_recipe_adds_its_op(name: str) -> None:
    generator = Generator(SeededChoices(1))
    assert any(generator.attempt(RECIPES[name]) for _ in range(20))
    assert name in {op.definition.short_name for op in generator.ops}


def test_what_rounding_decides_is_rejected() -> None:
    generator = Generator(SeededChoices(0))
    x = generator.argument((40, 40), bf16, -2.0, 2.0)
    (exact,) = generator.apply("neg", [x], x.type)
    truth = TensorType(i1, (40, 40))
    generator.apply("gt", [exact, x], truth)
    (rounded,) = generator.apply("sin", [x], x.type)
    (twice,) = generator.apply("sin", [rounded], x.type)
    assert len(generator.apply("add", [rounded, twice], x.type)) == 1
    with pytest.raises(Rejected, match="rounding decides"):
        generator.apply("ceil", [generator.apply("add", [twice, twice], x.type)[0]], x.type)


def test_what_the_last_bit_decides_is_rejected() -> None:
    generator = Generator(SeededChoices(0))
    x = generator.argument((3, 2), f32, -2.0, 2.0)
    truth = TensorType(i1, (3, 2))
    (exact,) = generator.apply("neg", [x], x.type)
    assert len(generator.apply("eq", [exact, x], truth)) == 1
    (angle,) = generator.apply("atan", [x], x.type)
    (again,) = generator.apply("tan", [angle], x.type)
    # Few of them are what x is, and in no run exactly so.
    bounds = {"min": 0.5625, "max": 1.4375}
    (clamped,) = generator.apply("clamp_scalar", [again], x.type, **bounds)
    with pytest.raises(Rejected, match="rounding decides about a comparison"):
        generator.apply("eq", [clamped, x], truth)
    (larger,) = generator.apply("exp", [x], x.type)
    assert len(generator.apply("ge", [larger, exact], truth)) == 1


def test_what_is_out_of_range_is_rejected() -> None:
    generator = Generator(SeededChoices(0))
    x = generator.argument((3,), f32, -2.0, -1.0)
    with pytest.raises(Rejected, match="too large"):
        generator.apply("log", [x], x.type)
    before = len(generator.ops)
    assert not generator.attempt(
        lambda g: [g.apply("neg", [x], x.type), g.apply("log", [x], x.type)]
    )
    assert len(generator.ops) == before


def test_a_failing_program_is_cut_down_to_the_first_wrong_op() -> None:
    text = """
func.func @f(%x: tensor<2xf32> {drawn.seed = 0 : i64}, %y: tensor<2xf32> {drawn.seed = 1 : i64})
    -> tensor<2xf32> {
  %0 = "ttir.neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "ttir.abs"(%y) : (tensor<2xf32>) -> tensor<2xf32>
  %2 = "ttir.exp"(%0) : (tensor<2xf32>) -> tensor<2xf32>
  %3 = "ttir.add"(%1, %2) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %3 : tensor<2xf32>
}"""

    def failing(part: str) -> list[str]:
        _, functions = read(part)
        return [
            name
            for name, function in functions.items()
            if any(op.name == "ttir.exp" for op in function.body.block.ops)
        ]

    _, functions = read(reduced(text, "f", failing))
    (function,) = functions.values()
    assert [op.name for op in function.body.block.ops] == ["ttir.neg", "ttir.exp", "func.return"]
    assert len(function.args) == 1
