"""Manual computations of StableHLO on meshes: how shardings divide, and what collectives become."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from ttcodegen.dialects.ttcore.device import declared_mesh
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.frontends import source_module
from ttcodegen.frontends.stablehlo.meshes import NamedMesh
from ttcodegen.numerics.golden_values import Golden

X = np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32)


MESH = '"x"=2, "y"=4'


def run(text: str) -> np.ndarray:
    module = source_module(Source("in.mlir", text))
    (result,) = Golden(module).run("main", [X])
    return result


def shardy(
    inside: str, outside: str, part: str, body: str, result: str, mesh: str = f"[{MESH}]"
) -> str:
    """A manual computation of a 16x8 tensor on a mesh of 2x4."""
    return f"""module {{
  sdy.mesh @mesh = <{mesh}>
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
    """A value sharded by y and x, reinterpreted by x and y: shards are transposed."""
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


ROWS_JOINED = "replica_groups = dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>"


def test_a_product_over_an_axis() -> None:
    body = f"""%1 = "stablehlo.all_reduce"(%p) <{{{ROWS_JOINED}}}> ({{
      ^bb0(%m: tensor<f32>, %n: tensor<f32>):
        %s = stablehlo.multiply %m, %n : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}) : (tensor<8x2xf32>) -> tensor<8x2xf32>
      sdy.return %1 : tensor<8x2xf32>"""
    found = run(shardy('{"x"}, {"y"}', '{}, {"y"}', "8x2", body, "8x8"))
    np.testing.assert_allclose(found, X[:8] * X[8:], rtol=1e-6)


@pytest.mark.parametrize("how", ["or", "and", "maximum"])
def test_booleans_of_chips(how: str) -> None:
    body = f"""%z = stablehlo.constant dense<0.0> : tensor<8x2xf32>
      %b = stablehlo.compare GT, %p, %z : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xi1>
      %1 = "stablehlo.all_reduce"(%b) <{{{ROWS_JOINED}}}> ({{
      ^bb0(%m: tensor<i1>, %n: tensor<i1>):
        %s = stablehlo.{how} %m, %n : tensor<i1>
        stablehlo.return %s : tensor<i1>
      }}) : (tensor<8x2xi1>) -> tensor<8x2xi1>
      %2 = stablehlo.convert %1 : (tensor<8x2xi1>) -> tensor<8x2xf32>
      sdy.return %2 : tensor<8x2xf32>"""
    found = run(shardy('{"x"}, {"y"}', '{}, {"y"}', "8x2", body, "8x8"))
    above, below = X[:8] > 0, X[8:] > 0
    assert np.array_equal(found, above & below if how == "and" else above | below)


CHANNEL = ", channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
WHOLE = sum(X[i : i + 8, j : j + 2] for i in (0, 8) for j in range(0, 8, 2))
COLUMNS = np.tile(X[:8] + X[8:], (2, 1))


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ("dense<[[2, 6], [0, 4], [3, 7], [1, 5]]> : tensor<4x2xi64>", COLUMNS),
        ("dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>", np.tile(WHOLE, (2, 4))),
        # All partitions of the only replica.
        ("dense<[[0]]> : tensor<1x1xi64>" + CHANNEL, np.tile(WHOLE, (2, 4))),
        ("dense<> : tensor<0x0xi64>" + CHANNEL, np.tile(WHOLE, (2, 4))),
        ("dense<[[0]]> : tensor<1x1xi64>", X),
    ],
)
def test_a_sum_over_groups(groups: str, expected: np.ndarray) -> None:
    body = f"""%1 = "stablehlo.all_reduce"(%p) <{{replica_groups = {groups}}}> ({{
      ^bb0(%m: tensor<f32>, %n: tensor<f32>):
        %s = stablehlo.add %m, %n : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}) : (tensor<8x2xf32>) -> tensor<8x2xf32>
      sdy.return %1 : tensor<8x2xf32>"""
    found = run(shardy('{"x"}, {"y"}', '{"x"}, {"y"}', "8x2", body, "16x8"))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


BY_COLUMNS = "replica_groups = dense<[[0, 4, 1, 5, 2, 6, 3, 7]]> : tensor<1x8xi64>"
"""All chips, those of a column after one another: what jax prints for the axes `("y", "x")`."""
PARTS = [X[row : row + 8, column : column + 2] for column in range(0, 8, 2) for row in (0, 8)]
ADD = """({
      ^bb0(%m: tensor<f32>, %n: tensor<f32>):
        %s = stablehlo.add %m, %n : tensor<f32>
        %t = sdy.sharding_constraint %s <@mesh, []> : tensor<f32>
        %u = stablehlo.custom_call @Sharding(%t) {mhlo.sharding = "{replicated}"}
            : (tensor<f32>) -> tensor<f32>
        stablehlo.return %u : tensor<f32>
      })"""


@pytest.mark.parametrize(
    ("op", "body", "part", "outside", "expected"),
    [
        ("all_gather", "all_gather_dim = 1 : i64", "8x16", "{}, {}", np.hstack(PARTS)),
        ("all_reduce", "", "8x2", "{}, {}", WHOLE),
        ("reduce_scatter", "scatter_dimension = 0 : i64", "1x2", '{"y", "x"}, {}', WHOLE),
        (
            "all_to_all",
            "split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 8 : i64",
            "1x16",
            '{"y", "x"}, {}',
            np.hstack(PARTS),
        ),
        (
            "all_to_all",
            "split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 8 : i64",
            "8x2",
            '{}, {"y", "x"}',
            np.hstack([np.vstack([each[[row]] for each in PARTS]) for row in range(8)]),
        ),
        ("collective_broadcast", "", "8x2", "{}, {}", PARTS[0]),
    ],
)
def test_all_chips_column_by_column(
    op: str, body: str, part: str, outside: str, expected: np.ndarray
) -> None:
    region = ADD if op in ("all_reduce", "reduce_scatter") else ""
    given = ", ".join(filter(None, (BY_COLUMNS, body)))
    text = f"""%1 = "stablehlo.{op}"(%p) <{{{given}}}> {region}
        : (tensor<8x2xf32>) -> tensor<{part}xf32>
      sdy.return %1 : tensor<{part}xf32>"""
    result = "x".join(map(str, expected.shape))
    found = run(shardy('{"x"}, {"y"}', outside, "8x2", text, result))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_groups_that_name_no_chips_are_refused() -> None:
    body = """%1 = "stablehlo.all_gather"(%p) <{all_gather_dim = 1 : i64, replica_groups = dense<> : tensor<0x0xi64>}> : (tensor<8x2xf32>) -> tensor<8x2xf32>
      sdy.return %1 : tensor<8x2xf32>"""  # noqa: E501
    with pytest.raises(CompileError, match="do not say which of 8 chips are joined"):
        run(shardy('{"x"}, {"y"}', '{"x"}, {"y"}', "8x2", body, "16x8"))


def number(op: str) -> str:
    return f"""%1 = stablehlo.{op} : tensor<ui32>
      %2 = stablehlo.convert %1 : (tensor<ui32>) -> tensor<f32>
      %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
      sdy.return %3 : tensor<1x1xf32>"""


@pytest.mark.parametrize(("replicas", "other"), [(1, 0.0), (8, 1.0)])
def test_each_chip_knows_its_number(replicas: int, other: float) -> None:
    """That of its partition, or of its replica if the program is not divided."""
    numbers = np.arange(8.0).reshape(2, 4)
    for op, factor in (("partition_id", 1 - other), ("replica_id", other)):
        text = shardy('{"x"}, {"y"}', '{"x"}, {"y"}', "8x2", number(op), "2x4")
        counted = f"module attributes {{mhlo.num_replicas = {replicas} : i32}} {{"
        assert np.array_equal(run(text.replace("module {", counted)), numbers * factor), op


def test_replicas_of_partitions_are_refused() -> None:
    text = shardy('{"x"}, {"y"}', '{"x"}, {"y"}', "8x2", number("replica_id"), "2x4")
    with pytest.raises(CompileError, match="replicas of a program"):
        run(text.replace("module {", "module attributes {mhlo.num_replicas = 2 : i32} {"))


def test_a_manual_computation_within_another_one_divides_parts() -> None:
    body = """%z = stablehlo.negate %p : tensor<8x8xf32>
      %1 = sdy.manual_computation(%z) in_shardings=[<@mesh, [{}, {"y"}]>] out_shardings=[<@mesh, [{}, {"y"}]>] manual_axes={"y"} (%q: tensor<8x2xf32>) {
        %2 = stablehlo.abs %q : tensor<8x2xf32>
        sdy.return %2 : tensor<8x2xf32>
      } : (tensor<8x8xf32>) -> tensor<8x8xf32>
      sdy.return %1 : tensor<8x8xf32>"""  # noqa: E501
    text = shardy('{"x"}, {}', '{"x"}, {}', "8x8", body, "16x8")
    assert np.array_equal(run(text.replace('manual_axes={"x", "y"}', 'manual_axes={"x"}')), abs(X))


def test_a_slice_of_all_chips_is_as_its_sharding_says() -> None:
    """On a mesh of equal sides, sizes do not say which axis divides which dimension."""
    body = """%1 = stablehlo.composite "sdy.all_slice" %p {composite_attributes = {out_sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, decomposition = @f} : (tensor<16x8xf32>) -> tensor<8x4xf32>
      sdy.return %1 : tensor<8x4xf32>"""  # noqa: E501
    mesh = '["x"=2, "y"=2]'
    assert np.array_equal(run(shardy("{}, {}", '{"x"}, {"y"}', "16x8", body, "16x8", mesh)), X)


NEGATED = "%1 = stablehlo.negate %p : tensor<8x8xf32>\n sdy.return %1 : tensor<8x8xf32>"


@pytest.mark.parametrize(
    ("inside", "outside", "mesh", "message"),
    [
        ('{"x"}, {}', '{}, {}], unreduced={"x"', f"[{MESH}]", "unreduced axes"),
        ('{"y":(1)2}, {}', '{"y":(1)2}, {}', f"[{MESH}]", "divided again"),
        (
            '{"x"}, {}',
            '{"x"}, {}',
            f"[{MESH}], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]",
            "in another order",
        ),
    ],
)
def test_shardings_that_are_not_read_are_refused(
    inside: str, outside: str, mesh: str, message: str
) -> None:
    text = shardy(inside, outside, "8x8", NEGATED, "16x8", mesh)
    with pytest.raises(CompileError, match=message):
        run(text.replace('unreduced={"x"]', 'unreduced={"x"}'))


def gspmd(sharding: str, part: str, body: str) -> str:
    """Text of a GSPMD module; the body makes %2 of %1, the shard of a 16x8 tensor."""
    return f"""module attributes {{mhlo.num_partitions = 8 : i32}} {{
  func.func @main(%a: tensor<16x8xf32>) -> tensor<16x8xf32> {{
    %0 = stablehlo.custom_call @Sharding(%a) {{mhlo.sharding = "{sharding}"}} : (tensor<16x8xf32>) -> tensor<16x8xf32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {{mhlo.sharding = "{{manual}}"}} : (tensor<16x8xf32>) -> tensor<{part}xf32>
    {body}
    %3 = stablehlo.custom_call @Sharding(%2) {{mhlo.sharding = "{{manual}}"}} : (tensor<{part}xf32>) -> tensor<{part}xf32>
    %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {{mhlo.sharding = "{sharding}"}} : (tensor<{part}xf32>) -> tensor<16x8xf32>
    return %4 : tensor<16x8xf32>
  }}
}}"""  # noqa: E501


def test_shardings_of_gspmd() -> None:
    """Both dimensions, the second one by the rows of the mesh."""
    body = "%2 = stablehlo.negate %1 : tensor<4x4xf32>"
    assert np.array_equal(run(gspmd("{devices=[4,2]<=[2,4]T(1,0)}", "4x4", body)), -X)


def test_parts_are_divided_again_in_gspmd() -> None:
    """Within a manual computation along rows, one along columns."""
    again = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dims={manual}}"
    body = f"""%10 = stablehlo.custom_call @Sharding(%1) {{mhlo.sharding = "{again}"}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %11 = stablehlo.custom_call @SPMDFullToShardShape(%10) {{mhlo.sharding = "{{manual}}"}} : (tensor<8x8xf32>) -> tensor<8x2xf32>
    %12 = stablehlo.negate %11 : tensor<8x2xf32>
    %2 = stablehlo.custom_call @SPMDShardToFullShape(%12) {{mhlo.sharding = "{again}"}} : (tensor<8x2xf32>) -> tensor<8x8xf32>"""  # noqa: E501
    sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"
    assert np.array_equal(run(gspmd(sharding, "8x8", body)), -X)


@pytest.mark.parametrize(
    ("sharding", "message"),
    [
        ("{devices=[8]<=[8]}", "divides 1 dimensions of 2"),
        ("{devices=[2,2]<=[4]}", "does not name each of 8 devices once"),
        ("{devices=[2,4]0,1,2,3,4,5,6,9}", "does not name each of 8 devices once"),
        ("{devices=[2,4]0,0,2,3,4,5,6,7}", "does not name each of 8 devices once"),
        ("{devices=[2,4]<=[2,3]}", "cannot reshape"),
        ("{devices=[2,4]7,6,5,4,3,2,1,0}", "does not divide along rows and columns"),
        ("{devices=[2,2,2]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}", "does not divide along"),
    ],
)
def test_tiles_that_are_no_parts_of_the_mesh_are_refused(sharding: str, message: str) -> None:
    body = "%2 = stablehlo.negate %1 : tensor<8x2xf32>"
    with pytest.raises(CompileError, match=message):
        run(gspmd(sharding, "8x2", body))


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


def alone(attribute: str) -> tuple[ModuleOp, Diagnostics]:
    """The module of TTIR, and what was warned of, for an argument with an attribute."""
    diagnostics = Diagnostics()
    text = f"""module attributes {{mhlo.num_partitions = 8 : i32}} {{
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%a: tensor<16x8xf32>{attribute}) -> tensor<16x8xf32> {{
    %0 = stablehlo.negate %a : tensor<16x8xf32>
    return %0 : tensor<16x8xf32>
  }}
}}"""
    return source_module(Source("in.mlir", text), diagnostics), diagnostics


def test_a_module_that_divides_nothing_is_for_one_chip() -> None:
    module, diagnostics = alone("")
    assert declared_mesh(module) == (1, 1)
    assert "compiled for one" in diagnostics.diagnostics[0].message


@pytest.mark.parametrize(
    ("sharding", "wanted"),
    [
        ('{"x"}, {}', "[array<i64: 0>, array<i64>]"),
        ('{"y", "x"}, {?}', "[array<i64: 1, 0>, array<i64: -1>]"),
        ('{}, {"y", ?}', "[array<i64>, array<i64: 1, -1>]"),
    ],
)
def test_shardings_alone_are_kept(sharding: str, wanted: str) -> None:
    module, diagnostics = alone(f" {{sdy.sharding = #sdy.sharding<@mesh, [{sharding}]>}}")
    assert declared_mesh(module) == (2, 4)
    assert f"ttcore.sharding = {wanted}" in str(module)
    assert not diagnostics.diagnostics


def test_axes_that_are_divided_again_divide_nothing() -> None:
    module, _ = alone(' {sdy.sharding = #sdy.sharding<@mesh, [{"y":(1)2}, {}]>}')
    assert "ttcore.sharding" not in str(module)


def test_groups_that_follow_no_axis_are_refused() -> None:
    body = """%1 = "stablehlo.all_gather"(%p) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 5], [1, 4], [2, 7], [3, 6]]> : tensor<4x2xi64>}> : (tensor<8x2xf32>) -> tensor<8x4xf32>
      sdy.return %1 : tensor<8x4xf32>"""  # noqa: E501
    with pytest.raises(CompileError, match="along its rows or its columns"):
        run(shardy('{"x"}, {"y"}', '{"x"}, {"y"}', "8x2", body, "16x16"))


def test_a_mesh_of_three_dimensions_is_refused() -> None:
    text = 'module { sdy.mesh @m = <["x"=2, "y"=2, "z"=2]>\n func.func @main() { return } }'
    with pytest.raises(CompileError, match="2x2x2"):
        source_module(Source("in.mlir", text))


NOTHING = """func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.negate %a : tensor<2xf32>
  return %0 : tensor<2xf32>
}"""


@pytest.mark.parametrize(
    "text",
    [
        'module { sdy.mesh @m = <["x"=65536, "y"=65536]>\n func.func @main() { return } }',
        f"module attributes {{mhlo.num_partitions = 2147483647 : i32}} {{ {NOTHING} }}",
        f"module attributes {{mhlo.num_replicas = 2147483647 : i32}} {{ {NOTHING} }}",
        gspmd(
            "{devices=[65536,65536]<=[4294967296]}",
            "8x2",
            "%2 = stablehlo.negate %1 : tensor<8x2xf32>",
        ),
    ],
)
def test_a_mesh_of_more_chips_than_any_system_is_refused(text: str) -> None:
    with pytest.raises(CompileError, match="has more chips than any system"):
        source_module(Source("in.mlir", text))


def test_tiles_for_more_chips_than_any_system_are_refused() -> None:
    body = "%2 = stablehlo.negate %1 : tensor<8x2xf32>"
    sharding = "{devices=[2,4]<=[8,4096,4096]}"
    with pytest.raises(CompileError, match="divides among more chips than any system has"):
        run(gspmd(sharding, "8x2", body))
