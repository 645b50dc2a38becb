"""The mesh of chips that a module is compiled for, and the system that has them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.diagnostics import CompileError, Source
from ttcodegen.systems.description import default_system, mesh_system

TEXT = """module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = %s>]>} {
  func.func @f(%%a: tensor<8x32xf32>) -> tensor<8x32xf32> {
    %%0 = "ttir.all_reduce"(%%a) <{reduce_type = #ttcore.reduce_type<sum>}>
        : (tensor<8x32xf32>) -> tensor<8x32xf32>
    return %%0 : tensor<8x32xf32>
  }
}
"""


def compiled(mesh: str, **options: object):
    return compile_module(Source("in.mlir", TEXT % mesh), CompileOptions("m", **options))  # pyright: ignore


@pytest.mark.parametrize(
    ("mesh", "found"), [("1x2", (1, 2)), ("8", (1, 8)), ("8x4", (8, 4)), ("1x2x4", (2, 4))]
)
def test_a_mesh_has_rows_and_columns(mesh: str, found: tuple[int, int]) -> None:
    assert compiled(mesh).description.mesh == found


def test_a_mesh_of_three_dimensions_is_refused() -> None:
    with pytest.raises(CompileError, match="a mesh of 2x2x2 chips is not supported"):
        compiled("2x2x2")


def test_a_described_system_has_the_chips_that_it_has() -> None:
    one = default_system("wormhole_b0")
    small = replace(one, chips=(replace(one.chip, l1_size=one.chip.l1_size - 1024),))
    with pytest.raises(CompileError, match="a mesh of 2x4 needs 8 chips, and the system has 1"):
        compiled("2x4", system=small)
    assert compiled("2x4", system=mesh_system("wormhole_b0", 8, 4)).description.mesh == (2, 4)


def test_chips_of_a_mesh_stand_in_rows() -> None:
    system = mesh_system("wormhole_b0", 2, 4)
    assert len(system.chip_indices) == 8
    assert system.chip_coordinates[5] == (0, 0, 1, 1)
