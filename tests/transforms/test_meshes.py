"""The mesh of chips that a module is compiled for, and the system that has them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.flatbuffer.system import load_system
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.systems.cards import default_system, mesh_system

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


@pytest.mark.parametrize("mesh", ["0x4", "2x0"])
def test_a_mesh_without_chips_is_refused(mesh: str) -> None:
    with pytest.raises(CompileError, match=f"a mesh of {mesh} chips is not supported"):
        compiled(mesh)


@pytest.mark.parametrize("mesh", ["129", "65536x65536", "1x200", f"{2**63}x{2**63}"])
@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_a_mesh_of_more_chips_than_any_system_is_refused(mesh: str, target: str) -> None:
    with pytest.raises(CompileError) as refused:
        compiled(mesh, target=target)
    (found,) = refused.value.diagnostics
    assert found.message == f"a mesh of {mesh} has more chips than any system"
    assert found.remedy == "the largest systems have 128 chips, such as 32x4"
    assert found.place == 0
    assert compiled("32x4").description.mesh == (32, 4)


def test_the_mesh_of_an_op_has_no_more_chips_than_any_system() -> None:
    text = (TEXT % "1x2").replace("<{", "<{mesh_shape = array<i64: 4294967296, 2>, ")
    with pytest.raises(CompileError, match="a mesh of 4294967296x2 has more chips than any system"):
        compile_module(Source("in.mlir", text), CompileOptions("m"))


GROUPS = """func.func @f(%%a: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %%0 = "ttir.collective_broadcast"(%%a) <{replica_groups = %s}>
      : (tensor<8x32xf32>) -> tensor<8x32xf32>
  return %%0 : tensor<8x32xf32>
}
"""


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("dense<[[0, 2147483647]]> : tensor<1x2xi64>", "1x2147483648 has more chips than any"),
        ("dense<0> : tensor<4294967296x1xi64>", "'replica_groups' should be rows of chips"),
        ('"all"', "'replica_groups' should be rows of chips"),
    ],
)
def test_groups_of_more_chips_than_any_system_are_refused(groups: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        compile_module(Source("in.mlir", GROUPS % groups), CompileOptions("m"))


def test_a_described_system_has_the_chips_that_it_has() -> None:
    one = default_system("wormhole_b0")
    small = replace(one, chips=(replace(one.chip, l1_size=one.chip.l1_size - 1024),))
    with pytest.raises(CompileError, match="a mesh of 2x4 needs 8 chips, and the system has 1"):
        compiled("2x4", system=small)
    assert compiled("2x4", system=mesh_system("wormhole_b0", 8, 4)).description.mesh == (2, 4)


@pytest.mark.parametrize(
    ("card", "mesh", "named"),
    [("n300", "2x4", "t3000, galaxy"), ("p150", "2x2", "p150_x4, p150_x8, bh_galaxy")],
)
def test_the_machines_of_the_architecture_that_have_the_chips_are_named(
    card: str, mesh: str, named: str
) -> None:
    with pytest.raises(CompileError) as error:
        compiled(mesh, system=load_system(card))
    assert error.value.diagnostics[0].remedy is not None
    assert f"with --machine ({named})," in error.value.diagnostics[0].remedy


def test_chips_of_a_mesh_stand_in_rows() -> None:
    system = mesh_system("wormhole_b0", 2, 4)
    assert len(system.chip_indices) == 8
    assert system.chip_coordinates[5] == (0, 0, 1, 1)


GATHER = """func.func @f(%a: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %0 = "ttir.mesh_shard"(%a) <{shard_dims = array<i64: -1, 1>, shard_shape = array<i64: 1, 4>,
      shard_type = #ttcore.shard_type<devices>,
      shard_direction = #ttcore.shard_direction<full_to_shard>}>
      : (tensor<8x32xf32>) -> tensor<8x8xf32>
  %1 = "ttir.all_gather"(%0) <{all_gather_dim = 1 : si32, cluster_axis = 1 : ui32}>
      : (tensor<8x8xf32>) -> tensor<8x32xf32>
  return %1 : tensor<8x32xf32>
}
"""


def command(tmp_path: Path, text: str, *options: str) -> int:
    source = tmp_path / "m.mlir"
    source.write_text(text)
    return main([str(source), "-o", str(tmp_path / "out"), "--no-format", *options])


@pytest.mark.parametrize(
    ("given", "mesh"),
    [
        ([], "1, 4"),
        (["--mesh-shape", "2x4"], "2, 4"),
        (["--mesh-shape", "2,4", "--system-desc", "t3000"], "2, 4"),
        (["--mesh-shape", "4", "--target", "ttmetal"], "1, 4"),
    ],
)
def test_the_command_line_names_a_mesh(given: list[str], mesh: str, tmp_path: Path) -> None:
    """Without it a module has as many chips as its ops divide among."""
    assert command(tmp_path, GATHER, *given) == 0
    sources = [path.read_text() for path in (tmp_path / "out" / "src").glob("*.cpp")]
    assert any(f"{{{mesh}}}}};" in text for text in sources)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (GATHER, ["2x4", "--system-desc", "n300"], "a mesh of 2x4 needs 8 chips, and the system"),
        (GATHER, ["1x2"], "ttir.mesh_shard: the mesh"),
        (TEXT % "1x2", ["2x4"], "the module is for a mesh of 1x2 chips, not of 2x4"),
        (TEXT % "1x2", ["1x2", "--arch", "blackhole", "--system-desc", "n150"], "wormhole_b0"),
    ],
)  # fmt: skip
def test_other_meshes_than_the_module_or_the_system_has_are_refused(
    text: str, options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(tmp_path, text, "--mesh-shape", *options) == 1
    assert message in capsys.readouterr().err


def test_a_mesh_of_one_chip_is_none() -> None:
    text = TEXT % "1x1"
    compiled = compile_module(Source("in.mlir", text), CompileOptions("m", mesh=(2, 4)))
    assert compiled.description.mesh == (2, 4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *((text, f"'{text}' is no mesh of chips") for text in ("2x", "two", "9" * 5000)),
        *((text, f"a mesh of {text} chips is not supported") for text in ("0x4", "2x2x2")),
    ],
)
def test_the_shape_of_a_mesh_is_rows_and_columns(
    given: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(tmp_path, GATHER, "--mesh-shape", given) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "rows and columns" in error


def test_the_command_line_names_no_more_chips_than_any_system_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(tmp_path, GATHER, "--mesh-shape", "65536x65536") == 2
    assert "a mesh of 65536x65536 has more chips than any system" in capsys.readouterr().err


def test_golden_values_are_those_of_the_mesh_that_is_given() -> None:
    compiled = compile_module(
        Source("in.mlir", GATHER), CompileOptions("m", mesh=(2, 4), golden_seed=0)
    )
    assert read_ttnn(compiled.flatbuffer).program("f").outputs
