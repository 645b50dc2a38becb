"""Elementwise ops of the catalogue on the emulated device, in all data types."""

from __future__ import annotations

import pytest

from tests.random_programs.checking import failures_built_together, module_of
from tests.ttmetal.elementwise import ELEMENTS, functions, tile_ops, tried_ops, typecasts
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain


def test_all_ops_on_tiles_are_tried() -> None:
    every = [function for data_type in ELEMENTS for function in functions(data_type)]
    assert tried_ops([*every, *typecasts()]) >= set(tile_ops())


@pytest.mark.slow
@pytest.mark.parametrize("data_type", ELEMENTS)
def test_the_three_runs_agree(
    data_type: str, toolchain: Toolchain, cpu_backend: CPUBackend
) -> None:
    text = module_of(functions(data_type))
    assert failures_built_together(text, toolchain, "ttmetal") == {}


@pytest.mark.slow
def test_typecasts_agree(toolchain: Toolchain, cpu_backend: CPUBackend) -> None:
    assert failures_built_together(module_of(typecasts()), toolchain, "ttmetal") == {}
