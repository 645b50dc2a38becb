"""Manual computations of StableHLO on meshes: how shardings divide, and what collectives become."""

from __future__ import annotations

import numpy as np
import pytest

from ttcodegen.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.dialects.mesh import declared_mesh
from ttcodegen.frontends import source_module
from ttcodegen.frontends.stablehlo.meshes import NamedMesh
from ttcodegen.numerics.golden import Golden

X = np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32)


def run(text: str) -> np.ndarray:
    module = source_module(Source("in.mlir", text))
    (result,) = Golden(module).run("main", [X])
    return result


def shardy(inside: str, outside: str, part: str, body: str, result: str) -> str:
    """A manual computation of a 16x8 tensor on a mesh of 2x4."""
    return f"""module {{
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%a: tensor<16x8xf32>) -> tensor<{result}xf32> {{
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{inside}]>] out_shardings=[<@mesh, [{outside}]>] manual_axes={{"x", "y"}} (%p: tensor<{part}xf32>) {{
      {body}
    }} : (tensor<16x8xf32>) -> tensor<{result}xf32>
    return %0 : tensor<{result}xf32>
  }}
}}"""  # noqa: E501


@pytest.mark.parametrize(
    ("sharding", "part"),
    [
        ('{"x"}, {"y"}', "8x2"),
        ('{"y"}, {"x"}', "4x4"),
        ('{"x", "y"}, {}', "2x8"),
        ('{"y", "x"}, {}', "2x8"),
        ('{}, {"y", "x"}', "16x1"),
        ('{}, {"y"}', "16x2"),
        ("{}, {}", "16x8"),
    ],
)
def test_parts_come_together_as_they_were_divided(sharding: str, part: str) -> None:
    body = f"%1 = stablehlo.negate %p : tensor<{part}xf32>\n sdy.return %1 : tensor<{part}xf32>"
    assert np.array_equal(run(shardy(sharding, sharding, part, body, "16x8")), -X)


def test_a_dimension_is_divided_by_the_first_axis_first() -> None:
    """What was divided by y and x, read as if by x and y: parts change places."""
    body = "sdy.return %p : tensor<2x8xf32>"
    found = run(shardy('{"y", "x"}, {}', '{"x", "y"}, {}', "2x8", body, "16x8"))
    assert np.array_equal(found, X.reshape(4, 2, 2, 8).transpose(1, 0, 2, 3).reshape(16, 8))


def test_a_sum_over_an_axis() -> None:
    body = """%1 = "stablehlo.all_reduce"(%p) <{replica_groups = dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>}> ({
      ^bb0(%m: tensor<f32>, %n: tensor<f32>):
        %s = stablehlo.add %m, %n : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<8x2xf32>) -> tensor<8x2xf32>
      sdy.return %1 : tensor<8x2xf32>"""  # noqa: E501
    found = run(shardy('{"x"}, {"y"}', '{}, {"y"}', "8x2", body, "8x8"))
    np.testing.assert_allclose(found, X[:8] + X[8:], rtol=1e-6)


def test_each_chip_knows_its_number() -> None:
    body = """%1 = stablehlo.partition_id : tensor<ui32>
      %2 = stablehlo.convert %1 : (tensor<ui32>) -> tensor<f32>
      %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
      sdy.return %3 : tensor<1x1xf32>"""
    found = run(shardy('{"x"}, {"y"}', '{"x"}, {"y"}', "8x2", body, "2x4"))
    assert np.array_equal(found, np.arange(8.0).reshape(2, 4))


def test_shardings_of_gspmd() -> None:
    """Both dimensions, the second one by the rows of the mesh."""
    sharding = '"{devices=[4,2]<=[2,4]T(1,0)}"'
    found = run(
        f"""module attributes {{mhlo.num_partitions = 8 : i32}} {{
  func.func @main(%a: tensor<16x8xf32>) -> tensor<16x8xf32> {{
    %0 = stablehlo.custom_call @Sharding(%a) {{mhlo.sharding = {sharding}}} : (tensor<16x8xf32>) -> tensor<16x8xf32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {{mhlo.sharding = "{{manual}}"}} : (tensor<16x8xf32>) -> tensor<4x4xf32>
    %2 = stablehlo.negate %1 : tensor<4x4xf32>
    %3 = stablehlo.custom_call @Sharding(%2) {{mhlo.sharding = "{{manual}}"}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {{mhlo.sharding = {sharding}}} : (tensor<4x4xf32>) -> tensor<16x8xf32>
    return %4 : tensor<16x8xf32>
  }}
}}"""  # noqa: E501
    )
    assert np.array_equal(found, -X)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{devices=[2,4]<=[8]}", ((0,), (1,))),
        ("{devices=[4,2]<=[2,4]T(1,0)}", ((1,), (0,))),
        ("{devices=[8,1]<=[8]}", ((0, 1), ())),
        ("{devices=[8,1]<=[2,4]T(1,0)}", ((1, 0), ())),
        ("{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}", ((), (1,))),
        ("{devices=[2,1,4]0,1,2,3,4,5,6,7 last_tile_dim_replicate}", ((0,), ())),
        ("{replicated}", ((), ())),
    ],
)
def test_tiles_are_read_as_axes(text: str, expected: tuple[tuple[int, ...], ...]) -> None:
    assert NamedMesh((2, 4), {}).tiled(text, 2) == expected


def test_shardings_alone_leave_a_program_for_one_chip() -> None:
    diagnostics = Diagnostics()
    text = """module attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<16x8xf32> {
    %0 = stablehlo.negate %a : tensor<16x8xf32>
    return %0 : tensor<16x8xf32>
  }
}"""  # noqa: E501
    module = source_module(Source("in.mlir", text), diagnostics)
    assert declared_mesh(module) == (1, 1)
    assert "compiled for one" in diagnostics.diagnostics[0].message


def test_groups_that_follow_no_axis_are_refused() -> None:
    body = """%1 = "stablehlo.all_gather"(%p) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 5], [1, 4], [2, 7], [3, 6]]> : tensor<4x2xi64>}> : (tensor<8x2xf32>) -> tensor<8x4xf32>
      sdy.return %1 : tensor<8x4xf32>"""  # noqa: E501
    with pytest.raises(CompileError, match="along its rows or its columns"):
        run(shardy('{"x"}, {"y"}', '{"x"}, {"y"}', "8x2", body, "16x16"))


def test_a_mesh_of_three_dimensions_is_refused() -> None:
    text = 'module { sdy.mesh @m = <["x"=2, "y"=2, "z"=2]>\n func.func @main() { return } }'
    with pytest.raises(CompileError, match="2x2x2"):
        source_module(Source("in.mlir", text))
