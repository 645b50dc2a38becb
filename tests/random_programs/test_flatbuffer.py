"""Random programs: what they are compiled to means what they mean, without their C++."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from xdsl.dialects.builtin import ModuleOp

from tests.random_programs.checking import failures_in_numpy, generate
from tests.random_programs.choices import DrawnChoices
from tests.random_programs.recipes import OF_PROGRAMS, RECIPES, WITHOUT_RECIPE
from ttcodegen.ops.core.definition import TTIR

# CI sees the same programs each time; `search.py` looks for others.
CI = settings(
    max_examples=100,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@st.composite
def programs(draw: DrawFn) -> str:
    """The text of a module with one random function."""
    return str(ModuleOp([generate(DrawnChoices(draw), "random")]))


@CI
@given(programs())
def test_flatbuffer_agrees_with_golden(text: str) -> None:
    assert failures_in_numpy(text) == []


def test_each_op_has_a_recipe_or_a_reason() -> None:
    supported = {name for name, definition in TTIR.items() if definition.refusal is None}
    assert supported == RECIPES.keys() | WITHOUT_RECIPE.keys() | OF_PROGRAMS.keys()
    assert not RECIPES.keys() & WITHOUT_RECIPE.keys()
