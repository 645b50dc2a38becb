"""Each op over its types, ranks and edge shapes: what it is lowered to means what it means."""

from __future__ import annotations

import pytest

from tests.op_cases.cases import cases, function_of
from tests.random_programs.checking import failures_in_numpy, module_of
from tests.random_programs.recipes import RECIPES


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_flatbuffer_agrees_with_golden(name: str) -> None:
    found = list(cases(name))
    assert found
    assert failures_in_numpy(module_of([function_of(name, found)])) == []
