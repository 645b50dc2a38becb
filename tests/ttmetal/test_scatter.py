"""Scatters: those that have a program, and what becomes of elements that meet in one place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ttmetal.moving_functions import REDUCTIONS, gradient, scatter
from tests.ttmetal.test_grouping import programs
from ttcodegen.cli.ttcodegen import main
from ttcodegen.project.cpu_backend import CPUBackend


def test_a_row_that_does_not_fit_into_l1_is_several_units_of_work() -> None:
    def units(width: int) -> int:
        shapes = ((32, width), (32, 8), (32, 8))
        [program] = programs(scatter("f", shapes, "f32", "sum", 1), cpu_hoist=False)
        return program.work_units

    assert units(4096) == 1
    assert units(20000) == 5


def test_each_form_of_a_scatter_is_computed_by_the_device() -> None:
    shapes = ((6, 50, 40), (2, 30, 20), (2, 31, 25))
    for dim in (0, 1, 2):
        found = programs(scatter("f", shapes, "bf16", "invalid", dim, "si64"), cpu_hoist=False)
        assert "scatter" in [program.purpose for program in found]


def test_a_gradient_of_rows_is_added_up_by_the_device() -> None:
    found = programs(gradient("f", (2, 20), 70, 40, "bf16"), cpu_hoist=False)
    assert "scatter" in [program.purpose for program in found]


SHAPES = (
    ((3, 40, 70), (3, 40, 33), (3, 40, 33), 2),
    ((100,), (300,), (300,), 0),
    ((64, 8), (5, 8), (5, 8), 0),
    ((6, 50, 40), (2, 30, 20), (2, 31, 25), 1),
    ((3, 20000), (3, 500), (3, 500), 1),
    ((2, 5, 33, 7), (2, 8, 30, 6), (2, 8, 31, 7), 1),
)


@pytest.mark.slow
@pytest.mark.parametrize("element", ["bf16", "f32", "si32", "ui32"])
def test_what_the_device_writes_by_index_agrees_with_the_source(
    cpu_backend: CPUBackend, tmp_path: Path, element: str
) -> None:
    source, out = tmp_path / "scatters.mlir", tmp_path / "out"
    cases = [
        scatter(f"f{number}_{reduction}", (value, index, elements), element, reduction, dim)
        for number, (value, index, elements, dim) in enumerate(SHAPES)
        for reduction in REDUCTIONS
        if number < 2 or reduction in ("invalid", "sum")
    ]
    source.write_text(f"module {{\n{''.join(cases)}}}\n", encoding="utf-8")
    assert main([str(source), "-o", str(out), "--target", "ttmetal", "--check", "-q"]) == 0
    assert not (out / "src" / "cpu_functions.cpp").exists()


@pytest.mark.slow
def test_gradients_of_rows_agree_with_the_source(cpu_backend: CPUBackend, tmp_path: Path) -> None:
    source, out = tmp_path / "gradients.mlir", tmp_path / "out"
    cases = gradient("narrow", (2, 20), 70, 40, "bf16") + gradient("wide", (1, 64), 512, 128, "f32")
    source.write_text(f"module {{\n{cases}}}\n", encoding="utf-8")
    assert main([str(source), "-o", str(out), "--target", "ttmetal", "--check", "-q"]) == 0
    assert not (out / "src" / "cpu_functions.cpp").exists()
