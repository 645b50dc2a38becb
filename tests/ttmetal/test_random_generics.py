"""Random `ttir.generic`s mean in numpy, as flatbuffers and on the emulated device what they say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.random_programs.checking import (
    failures_built_together,
    functions_of,
    inputs_of,
    run_module,
)
from tests.random_programs.choices import DrawnChoices, SeededChoices
from tests.ttmetal.random_generics import RandomGeneric
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.parsing import parse_module
from ttcodegen.project.toolchain import Toolchain

SEEDS = range(60)
CI = settings(
    max_examples=40,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@st.composite
def generics(draw: DrawFn) -> RandomGeneric:
    """A function of one generic."""
    return RandomGeneric(DrawnChoices(draw), "f")


def _module(functions: Sequence[str]) -> str:
    return f"module {{\n{''.join(functions)}}}\n"


@CI
@given(generics())
def test_a_generic_computes_what_numpy_does(generic: RandomGeneric) -> None:
    text = _module([generic.text()])
    checked = run_module(text, "ttmetal")
    [run] = checked.runs
    assert checked.reasons(run) == []
    inputs = inputs_of(functions_of(parse_module(Source("random.mlir", text)))["f"])
    for found, expected in zip(run.golden, generic.expected(inputs), strict=True):
        assert found.shape == expected.shape
        # bf16 rounds each op to 8 bits.
        greatest = max(1.0, np.abs(expected).max())
        assert np.abs(found.astype(expected.dtype) - expected).max() <= 0.03 * greatest


@pytest.mark.slow
def test_generics_compute_the_same_on_the_emulated_device(toolchain: Toolchain) -> None:
    functions = [RandomGeneric(SeededChoices(seed), f"f{seed}").text() for seed in SEEDS]
    assert failures_built_together(_module(functions), toolchain, "ttmetal") == {}
