"""Ops between chips: what they are on one, what each chip of a mesh gets, and how they lower."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.parsing.reading import parse
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.operations.verification import verify_module
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.frontends import source_module
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.numerics.interpreter import Interpreter
from ttcodegen.numerics.lowered import interpreter_of, read_flatbuffer
from ttcodegen.ops.core.definition import TTIRDefinition
from ttcodegen.ops.core.traits import ChipMovement
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.parsing.structure import check_supported
from ttcodegen.transforms.module_text import module_text
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import Step, passes_of

LOCAL = [
    '"ttir.all_gather"(%a) <{all_gather_dim = 1 : si32, cluster_axis = 1 : ui32}>',
    '"ttir.all_reduce"(%a) <{reduce_type = #ttcore.reduce_type<max>, cluster_axis = 0 : ui32}>',
    '"ttir.reduce_scatter"(%a) <{scatter_dim = 0 : si32, cluster_axis = 1 : ui32}>',
    '"ttir.collective_permute"(%a) <{source_target_pairs = dense<0> : tensor<1x2xi64>}>',
    '"ttir.mesh_shard"(%a) <{shard_shape = array<i64: 1>, shard_dims = array<i64: -1>}>',
]

ROWS, COLUMNS = 2, 4
MESH = f'ttcore.meshes = #ttcore.meshes<[<"mesh" = {ROWS}x{COLUMNS}>]>'
Parts = list[list[np.ndarray]]
"""Shard of each device, by row and column of the mesh."""


def program(op: str, result: str, attributes: str = "") -> str:
    return (
        f"module attributes {{{attributes}}} {{\n"
        f"func.func @f(%a: tensor<8x4xf32>) -> tensor<{result}xf32> {{\n"
        f"  %0 = {op} : (tensor<8x4xf32>) -> tensor<{result}xf32>\n"
        f"  return %0 : tensor<{result}xf32>\n}}\n}}\n"
    )


def between(op: str, result: tuple[int, int]) -> str:
    """A program for the mesh: each chip has 4x8 of 8x32, and 2-D results are put together."""
    rows, columns = result
    whole = f"tensor<{rows * ROWS}x{columns * COLUMNS}xf32>"
    shard = "shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>"
    kind = "shard_type = #ttcore.shard_type<devices>"
    part, joined = "tensor<4x8xf32>", f"tensor<{rows}x{columns}xf32>"
    return (
        f"module attributes {{{MESH}}} {{\n"
        f"func.func @f(%a: tensor<8x32xf32>) -> {whole} {{\n"
        f'  %0 = "ttir.mesh_shard"(%a) <{{{shard}, {kind}, shard_direction = '
        f"#ttcore.shard_direction<full_to_shard>}}> : (tensor<8x32xf32>) -> {part}\n"
        f"  %1 = {op} : ({part}) -> {joined}\n"
        f'  %2 = "ttir.mesh_shard"(%1) <{{{shard}, {kind}, shard_direction = '
        f"#ttcore.shard_direction<shard_to_full>}}> : ({joined}) -> {whole}\n"
        f"  return %2 : {whole}\n}}\n}}\n"
    )


def groups(*rows: list[int]) -> str:
    return f"dense<{[list(row) for row in rows]}> : tensor<{len(rows)}x{len(rows[0])}xi64>"


def _row(parts: Parts, row: int, axis: int) -> np.ndarray:
    return np.concatenate(parts[row], axis=axis)


ROW_GROUPS = groups([0, 1, 2, 3], [4, 5, 6, 7])
PAIRS = "dense<[[0, 5], [5, 0], [3, 7]]> : tensor<3x2xi64>"
SENT = {5: 0, 0: 5, 7: 3}


def _sent(p: Parts, r: int, c: int) -> np.ndarray:
    source = SENT.get(r * COLUMNS + c)
    return np.zeros((4, 8)) if source is None else p[source // COLUMNS][source % COLUMNS]


CASES: dict[str, tuple[str, tuple[int, int], Callable[[Parts, int, int], np.ndarray]]] = {
    "gather along rows": (
        '"ttir.all_gather"(%0) <{all_gather_dim = 1 : si32, cluster_axis = 1 : ui32}>',
        (4, 32),
        lambda p, r, c: _row(p, r, 1),
    ),
    "gather along columns": (
        '"ttir.all_gather"(%0) <{all_gather_dim = -2 : si32, cluster_axis = 0 : ui32}>',
        (8, 8),
        lambda p, r, c: np.concatenate([p[0][c], p[1][c]]),
    ),
    "sum along columns": (
        '"ttir.all_reduce"(%0) <{reduce_type = #ttcore.reduce_type<sum>, cluster_axis = 0 : ui32}>',
        (4, 8),
        lambda p, r, c: p[0][c] + p[1][c],
    ),
    "sum of all": (
        '"ttir.all_reduce"(%0) <{reduce_type = #ttcore.reduce_type<sum>}>',
        (4, 8),
        lambda p, r, c: np.sum([part for row in p for part in row], axis=0),
    ),
    "largest along rows": (
        '"ttir.all_reduce"(%0) <{reduce_type = #ttcore.reduce_type<max>, cluster_axis = 1 : ui32}>',
        (4, 8),
        lambda p, r, c: np.max(p[r], axis=0),
    ),
    "product along rows": (
        '"ttir.all_reduce"(%0) <{reduce_type = #ttcore.reduce_type<prod>, '
        "cluster_axis = 1 : ui32}>",
        (4, 8),
        lambda p, r, c: np.prod(p[r], axis=0),
    ),
    "share of the product": (
        '"ttir.reduce_scatter"(%0) <{reduce_type = #ttcore.reduce_type<prod>, '
        "scatter_dim = 0 : si32, cluster_axis = 0 : ui32}>",
        (2, 8),
        lambda p, r, c: (p[0][c] * p[1][c])[2 * r : 2 * r + 2],
    ),
    "share of the sum": (
        '"ttir.reduce_scatter"(%0) <{reduce_type = #ttcore.reduce_type<sum>, '
        "scatter_dim = 1 : si32, cluster_axis = 1 : ui32}>",
        (4, 2),
        lambda p, r, c: np.sum(p[r], axis=0)[:, 2 * c : 2 * c + 2],
    ),
    "share of the minimum": (
        '"ttir.reduce_scatter"(%0) <{reduce_type = #ttcore.reduce_type<min>, '
        "scatter_dim = 0 : si32, cluster_axis = 0 : ui32}>",
        (2, 8),
        lambda p, r, c: np.min([p[0][c], p[1][c]], axis=0)[2 * r : 2 * r + 2],
    ),
    "partition": (
        '"ttir.mesh_partition"(%0) <{dim = 1 : si32, cluster_axis = 1 : ui32}>',
        (4, 2),
        lambda p, r, c: p[r][c][:, 2 * c : 2 * c + 2],
    ),
    "exchange": (
        '"ttir.all_to_all"(%0) <{split_dim = 1 : si32, concat_dim = 0 : si32, '
        f"split_count = 4 : si32, replica_groups = {ROW_GROUPS}}}>",
        (16, 2),
        lambda p, r, c: np.concatenate([part[:, 2 * c : 2 * c + 2] for part in p[r]]),
    ),
    "exchange within a dimension": (
        '"ttir.all_to_all"(%0) <{split_dim = 1 : si32, concat_dim = 1 : si32, '
        f"split_count = 4 : si32, replica_groups = {ROW_GROUPS}}}>",
        (4, 8),
        lambda p, r, c: np.concatenate([part[:, 2 * c : 2 * c + 2] for part in p[r]], axis=1),
    ),
    "broadcast": (
        f'"ttir.collective_broadcast"(%0) <{{replica_groups = {ROW_GROUPS}}}>',
        (4, 8),
        lambda p, r, c: p[r][0],
    ),
    "permutation": (
        f'"ttir.collective_permute"(%0) <{{source_target_pairs = {PAIRS}}}>',
        (4, 8),
        _sent,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_golden_and_lowered_program_agree_on_a_mesh(case: str) -> None:
    op, result, each = CASES[case]
    text = between(op, result)
    x = np.random.default_rng(0).standard_normal((8, 32)).astype(np.float32)
    parts = [np.split(row, COLUMNS, axis=1) for row in np.split(x, ROWS)]
    expected = np.block([[each(parts, r, c) for c in range(COLUMNS)] for r in range(ROWS)])
    (golden,) = Golden(source_module(Source("in.mlir", text))).run("f", [x])
    np.testing.assert_allclose(golden, expected, rtol=1e-5, atol=1e-6)
    compiled = compile_module(Source("in.mlir", text), CompileOptions("m"))
    assert compiled.description.mesh == (ROWS, COLUMNS)
    (lowered,) = Interpreter(read_ttnn(compiled.flatbuffer)).run("f", [x])
    np.testing.assert_allclose(lowered, expected, rtol=1e-3, atol=1e-3)


EXCHANGES = [
    pytest.param("1x4", (64, 128), 1, 0, "all_to_all_async_generic", id="tiles"),
    pytest.param("4x1", (8, 32, 128), 0, 1, "all_to_all_async_generic", id="of three dimensions"),
    pytest.param("1x4", (64, 64), 1, 0, "all_gather", id="parts of tiles"),
    pytest.param("1x4", (16, 128), 1, 0, "all_gather", id="rows that fill no tile"),
    pytest.param("1x4", (64, 128), 1, 1, "all_gather", id="one dimension"),
]


@pytest.mark.parametrize(("mesh", "shape", "split", "concat", "call"), EXCHANGES)
def test_chips_exchange_whole_tiles_by_one_call(
    mesh: str, shape: tuple[int, ...], split: int, concat: int, call: str
) -> None:
    """The call of the library takes whole tiles; anything else is gathered and divided."""
    result = list(shape)
    result[split] //= 4
    result[concat] *= 4
    before, after = (f"tensor<{'x'.join(map(str, each))}xbf16>" for each in (shape, result))
    text = (
        f'module attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = {mesh}>]>}} {{\n'
        f"func.func @f(%a: {before}) -> {after} {{\n"
        f'  %0 = "ttir.all_to_all"(%a) <{{split_dim = {split} : si32, concat_dim = {concat} : '
        f"si32, split_count = 4 : si32, replica_groups = {groups([0, 1, 2, 3])}}}> : ({before}) "
        f"-> {after}\n  return %0 : {after}\n}}\n}}\n"
    )
    x = np.random.default_rng(0).integers(-8, 8, shape).astype(np.float32)
    expected = np.concatenate([np.split(x, 4, axis=split)[0]] * 4, axis=concat)
    compiled = compile_module(Source("in.mlir", text), CompileOptions("m"))
    assert f"{call}(" in compiled.files["src/m.cpp"]
    (lowered,) = Interpreter(read_ttnn(compiled.flatbuffer)).run("f", [x])
    np.testing.assert_array_equal(lowered, expected)


@pytest.mark.parametrize(("mesh", "broadcasts"), [("1x4", True), ("4x1", True), ("2x2", False)])
def test_one_chip_sends_to_a_line(mesh: str, broadcasts: bool) -> None:
    """The library's call has one sender: rows of a mesh of several would wait for theirs."""
    rows = groups([0, 1], [2, 3]) if mesh == "2x2" else groups([0, 1, 2, 3])
    type_ = "tensor<32x32xbf16>"
    text = (
        f'module attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = {mesh}>]>}} {{\n'
        f"func.func @f(%a: {type_}) -> {type_} {{\n"
        f'  %0 = "ttir.collective_broadcast"(%a) <{{replica_groups = {rows}}}> : ({type_}) -> '
        f"{type_}\n  return %0 : {type_}\n}}\n}}\n"
    )
    compiled = compile_module(Source("in.mlir", text), CompileOptions("m"))
    assert ("ttnn::broadcast(" in compiled.files["src/m.cpp"]) == broadcasts
    x = np.arange(1024, dtype=np.float32).reshape(32, 32) % 8
    (lowered,) = Interpreter(read_ttnn(compiled.flatbuffer)).run("f", [x])
    np.testing.assert_array_equal(lowered, x)


@pytest.mark.parametrize("centers", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_are_normalized_over_chips(axis: int, centers: bool) -> None:
    """Along axis 0 the parts of a row are one below the other."""
    name = "distributed_layer_norm" if centers else "distributed_rms_norm"
    sizes = "1, 1, 1, 0" if centers else "1, 1, 0"
    vectors = ", %w, %w" if centers else ", %w"
    types = ", tensor<8xf32>" * (2 if centers else 1)
    op = (
        f'"ttir.{name}"(%0{vectors}) <{{cluster_axis = {axis} : ui32, epsilon = 0.01 : f32, '
        f"operandSegmentSizes = array<i32: {sizes}>}}>"
    )
    text = between(op, (4, 8)).replace("(%a: tensor<8x32xf32>)", "(%a: tensor<8x32xf32>, "
                                       "%w: tensor<8xf32>)")  # fmt: skip
    text = text.replace(": (tensor<4x8xf32>) -> tensor<4x8xf32>\n  %2",
                        f": (tensor<4x8xf32>{types}) -> tensor<4x8xf32>\n  %2")  # fmt: skip
    generator = np.random.default_rng(2)
    x = generator.standard_normal((8, 32)).astype(np.float32)
    w = generator.standard_normal(8).astype(np.float32)
    rows = x.astype(np.float64)
    if axis == 0:  # The two rows of chips hold the halves of four rows for each column of chips.
        rows = np.concatenate([rows[:4].reshape(4, 4, 8), rows[4:].reshape(4, 4, 8)], axis=2)
    if centers:
        rows = rows - rows.mean(axis=-1, keepdims=True)
    rows = rows / np.sqrt(np.square(rows).mean(axis=-1, keepdims=True) + 0.01)
    if axis == 0:
        rows = np.concatenate([rows[..., :8].reshape(4, 32), rows[..., 8:].reshape(4, 32)])
    expected = rows * np.tile(w, 4) + (np.tile(w, 4) if centers else 0)
    (golden,) = Golden(source_module(Source("in.mlir", text))).run("f", [x, w])
    np.testing.assert_allclose(golden, expected, rtol=1e-4, atol=1e-5)
    compiled = compile_module(Source("in.mlir", text), CompileOptions("m"))
    (lowered,) = Interpreter(read_ttnn(compiled.flatbuffer)).run("f", [x, w])
    np.testing.assert_allclose(lowered, expected, rtol=1e-2, atol=2e-2)


def test_chips_add_up_a_single_number() -> None:
    text = f"""module attributes {{{MESH}}} {{
  func.func @f(%a: tensor<f32>) -> tensor<f32> {{
    %0 = "ttir.all_reduce"(%a) <{{reduce_type = #ttcore.reduce_type<sum>}}> : (tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }}
}}"""  # noqa: E501
    (golden,) = Golden(parse(text)).run("f", [np.array(3.0, np.float32)])
    assert golden == 3.0 * ROWS * COLUMNS


def test_a_dimension_is_divided_along_both_axes() -> None:
    """By rows first: the library divides along one axis, and each chip takes its share of that."""
    shard = "shard_dims = array<i64: 0, 0>, shard_shape = array<i64: 8, 1>"
    text = (
        f"module attributes {{{MESH}}} {{\n"
        f"func.func @f(%a: tensor<16x4xf32>, %v: tensor<16xf32>) "
        f"-> (tensor<16x4xf32>, tensor<16xf32>) {{\n"
        f'  %0 = "ttir.mesh_shard"(%a) <{{{shard}, shard_direction = '
        "#ttcore.shard_direction<full_to_shard>}> : (tensor<16x4xf32>) -> tensor<2x4xf32>\n"
        '  %1 = "ttir.relu"(%0) : (tensor<2x4xf32>) -> tensor<2x4xf32>\n'
        f'  %2 = "ttir.mesh_shard"(%1) <{{{shard}, shard_direction = '
        "#ttcore.shard_direction<shard_to_full>}> : (tensor<2x4xf32>) -> tensor<16x4xf32>\n"
        '  %3 = "ttir.mesh_shard"(%v) <{shard_dims = array<i64: 0, -1>, shard_shape = '
        "array<i64: 2>, shard_direction = #ttcore.shard_direction<full_to_shard>}> : "
        "(tensor<16xf32>) -> tensor<8xf32>\n"
        '  %4 = "ttir.mesh_shard"(%3) <{shard_dims = array<i64: 0, -1>, shard_shape = '
        "array<i64: 2>, shard_direction = #ttcore.shard_direction<shard_to_full>}> : "
        "(tensor<8xf32>) -> tensor<16xf32>\n"
        "  return %2, %4 : tensor<16x4xf32>, tensor<16xf32>\n}\n}\n"
    )
    x = np.random.default_rng(1).standard_normal((16, 4)).astype(np.float32)
    v = np.arange(16, dtype=np.float32)
    compiled = compile_module(Source("in.mlir", text), CompileOptions("m"))
    found, vector = Interpreter(read_ttnn(compiled.flatbuffer)).run("f", [x, v])
    assert np.array_equal(found, np.maximum(x, 0))
    assert np.array_equal(vector, v)


@pytest.mark.parametrize("given", ["ttcore.shard_status = #ttcore.shard_status<presharded>", ""])
def test_parts_that_a_caller_has_are_parts_of_what_a_program_takes(given: str) -> None:
    """Other compilers leave `identity` where the caller divides a tensor, or wants its parts."""
    text = between(CASES["share of the sum"][0], (4, 2)).replace(
        "shard_type<devices>", "shard_type<identity>"
    )
    text = text.replace("%a: tensor<8x32xf32>", f"%a: tensor<8x32xf32> {{{given}}}")
    x = np.random.default_rng(0).standard_normal((8, 32)).astype(np.float32)
    expected = np.concatenate([x[r : r + 4].reshape(4, 4, 8).sum(1) for r in (0, 4)])
    (golden,) = Golden(source_module(Source("in.mlir", text))).run("f", [x])
    np.testing.assert_allclose(golden, expected, rtol=1e-5, atol=1e-6)
    compiled = compile_module(Source("in.mlir", text), CompileOptions("m"))
    assert "create_mesh_mapper" in compiled.files["src/m.cpp"]
    (lowered,) = Interpreter(read_ttnn(compiled.flatbuffer)).run("f", [x])
    np.testing.assert_allclose(lowered, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mesh", ["", 'ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>'])
@pytest.mark.parametrize("op", LOCAL)
def test_one_device_has_all_parts(op: str, mesh: str) -> None:
    module = parse(program(op, "8x4", mesh))
    check_supported(module)
    verify_module(module)
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    (result,) = Golden(module).run("f", [x])
    assert np.array_equal(result, x)
    PassRunner(load_dialects()).run(module, passes_of(Step("ttir-to-ttnn-backend-pipeline")))
    assert op.split('"')[1].removeprefix("ttir.") not in module_text(module)


@pytest.mark.parametrize("name", ["all_gather", "all_reduce", "reduce_scatter", "mesh_shard"])
def test_calls_of_the_library_on_one_device_are_left_out(name: str) -> None:
    text = (
        "func.func @f(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {\n"
        '  %d = "ttnn.get_device"() <{mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device\n'
        f'  %0 = "ttnn.{name}"(%a, %d) : (tensor<8x4xf32>, !ttnn.device) -> tensor<8x4xf32>\n'
        '  %1 = "ttnn.relu"(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>\n'
        "  return %1 : tensor<8x4xf32>\n}\n"
    )
    assert f'"ttnn.{name}"' not in module_text(source_module(Source("in.mlir", text)))
    several = text.replace("1x1", "1x2")
    assert f'"ttnn.{name}"' in module_text(source_module(Source("in.mlir", several)))


WRONG = [
    ('"ttir.all_gather"(%a) <{all_gather_dim = 1 : si32, cluster_axis = 1 : ui32}>', "8x8",
     "4 chips participate"),
    ('"ttir.all_gather"(%a) <{all_gather_dim = 1 : si32, cluster_axis = 2 : ui32}>', "8x8",
     "axes 0 and 1"),
    ('"ttir.all_gather"(%a) <{all_gather_dim = 1 : si32, cluster_axis = 1 : ui32, '
     'num_links = 0 : ui32}>', "8x16", "over links, found num_links 0"),
    ('"ttir.all_reduce"(%a) <{reduce_type = #ttcore.reduce_type<var>}>', "8x4", "chips reduce by"),
    ('"ttir.all_reduce"(%a) <{reduce_type = #ttcore.reduce_type<sum>}>', "8x5", "shape"),
    ('"ttir.collective_permute"(%a) <{source_target_pairs = dense<[[0, 8]]> : tensor<1x2xi64>}>',
     "8x4", "chips 0 to 7"),
    ('"ttir.collective_permute"(%a) <{source_target_pairs = dense<[[0, 1], [2, 1]]> : '
     "tensor<2x2xi64>}>", "8x4", "target of two pairs"),
    ('"ttir.collective_broadcast"(%a) <{replica_groups = dense<[[0, 0]]> : tensor<1x2xi64>}>',
     "8x4", "each once"),
    ('"ttir.mesh_shard"(%a) <{shard_shape = array<i64: 4, 1>, shard_dims = array<i64: 0, -1>}>',
     "2x4", "divides into"),
    ('"ttir.mesh_shard"(%a) <{shard_shape = array<i64: 1, 3>, shard_dims = array<i64: -1, 1>}>',
     "8x1", "does not divide"),
    ('"ttir.mesh_shard"(%a) <{shard_shape = array<i64: 1, 4>, shard_dims = array<i64: -1, 3>}>',
     "8x1", "dimension 3 is out of range"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "result", "message"), WRONG)
def test_what_does_not_fit_the_mesh_is_refused(op: str, result: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        verify_module(parse(program(op, result, MESH)))


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([[0, 5], [1, 4]], id="crosswise"),
        pytest.param([[0, 1]], id="some"),
        pytest.param([[7, 6, 5, 4, 3, 2, 1, 0]], id="in another order"),
    ],
)
def test_groups_that_are_no_rows_or_columns_are_refused(rows: list[list[int]]) -> None:
    op = f'"ttir.collective_broadcast"(%0) <{{replica_groups = {groups(*rows)}}}>'
    with pytest.raises(CompileError, match="rows or its columns"):
        check_supported(parse(between(op, (4, 8))))


MOVED: dict[str, ChipMovement | None] = {
    "gather along rows": ChipMovement(1, None, 1),
    "gather along columns": ChipMovement(0, None, 0),
    "partition": ChipMovement(1, 1, None),
    "exchange": ChipMovement(1, 1, 0),
    "exchange within a dimension": ChipMovement(1, 1, 1),
    "sum along columns": None,
    "broadcast": ChipMovement(1, pairs=tuple((chip // 4 * 4, chip) for chip in range(8))),
}


def movement_of(module: ModuleOp, name: str) -> ChipMovement | None:
    """Fabric traffic of the first op of that name between the devices of a mesh."""
    op = next(op for op in module.walk() if isinstance(op, CatalogueOp) and op.name == name)
    assert isinstance(op.definition, TTIRDefinition)
    return op.definition.between_chips(op) if op.definition.between_chips else None


@pytest.mark.parametrize("case", MOVED)
def test_the_catalogue_says_what_chips_move(case: str) -> None:
    op, result, _ = CASES[case]
    module = parse(between(op, result))
    assert movement_of(module, op.split('"')[1]) == MOVED[case]
    # Along both axes of the mesh at once is more than one movement.
    assert movement_of(module, "ttir.mesh_shard") is None


def test_chips_move_nothing_along_an_axis_of_one() -> None:
    alone = groups([0], [1], [2], [3])
    op = (
        '"ttir.all_to_all"(%a) <{split_dim = 1 : si32, concat_dim = 0 : si32, '
        f"split_count = 1 : si32, replica_groups = {alone}}}>"
    )
    mesh = 'ttcore.meshes = #ttcore.meshes<[<"mesh" = 4x1>]>'
    assert movement_of(parse(program(op, "8x4", mesh)), "ttir.all_to_all") is None


@pytest.mark.parametrize(
    ("pairs", "sent", "copies"),
    [
        # Along the row, and then along the column.
        ([[0, 5], [5, 0], [3, 7]], 5, 1),
        ([[chip, (chip + 1) % 4] for chip in range(4)], 4, 1),
        # Nobody is left without: nothing needs to be there before.
        ([[chip, chip ^ 1] for chip in range(8)], 8, 0),
        ([[0, 0], *([chip, chip % 7 + 1] for chip in range(1, 8))], 9, 1),
    ],
)
def test_chips_send_to_each_other(pairs: list[list[int]], sent: int, copies: int) -> None:
    """One tensor goes over the links, not those of all; only what others read is copied before the
    call writes into it."""
    dense = f"dense<{pairs}> : tensor<{len(pairs)}x2xi64>"
    op = f'"ttir.collective_permute"(%0) <{{source_target_pairs = {dense}}}>'
    compiled = compile_module(Source("in.mlir", between(op, (4, 8))), CompileOptions("m"))
    code = compiled.files["src/m.cpp"]
    assert code.count("ttnn::point_to_point(") == sent
    assert code.count("ttnn::clone(") == copies
    assert "all_gather" not in code
    x = np.arange(8 * 32, dtype=np.float32).reshape(8, 32)
    (found,) = Interpreter(read_ttnn(compiled.flatbuffer)).run("f", [x])
    source = {target: chip for chip, target in pairs}
    for chip in range(8):
        row, column = divmod(chip, 4)
        part = found[4 * row : 4 * row + 4, 8 * column : 8 * column + 8]
        if chip in source:
            row, column = divmod(source[chip], 4)
            expected = x[4 * row : 4 * row + 4, 8 * column : 8 * column + 8]
            assert np.array_equal(part, expected)
        else:
            assert not part.any()


NUMBERS = {
    "all_gather": ("all_gather_dim = 0 : si32, cluster_axis = 1 : ui32", "32x8"),
    "all_reduce": ("reduce_type = #ttcore.reduce_type<sum>", "8x8"),
    "reduce_scatter": (
        "reduce_type = #ttcore.reduce_type<max>, scatter_dim = 0 : si32, cluster_axis = 0 : ui32",
        "4x8",
    ),
    "mesh_partition": ("dim = 1 : si32, cluster_axis = 1 : ui32", "8x2"),
    "collective_permute": (f"source_target_pairs = {PAIRS}", "8x8"),
}
"""Ops of a tensor of one number, and the shapes of their results."""


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
@pytest.mark.parametrize(("element", "number"), [("bf16", "1.5 : f32"), ("si32", "3 : i32")])
def test_chips_need_not_send_a_number(element: str, number: str, target: str) -> None:
    functions = "".join(
        f"""func.func @{name}() -> tensor<{result}x{element}> {{
  %0 = "ttir.full"() <{{shape = array<i32: 8, 8>, fill_value = {number}}}>
      : () -> tensor<8x8x{element}>
  %1 = "ttir.{name}"(%0) <{{{given}}}> : (tensor<8x8x{element}>) -> tensor<{result}x{element}>
  return %1 : tensor<{result}x{element}>
}}
"""
        for name, (given, result) in NUMBERS.items()
    )
    source = Source("in.mlir", f"module attributes {{{MESH}}} {{\n{functions}}}\n")
    compiled = compile_module(source, CompileOptions("m", target=target))
    golden = Golden(source_module(source))
    lowered = interpreter_of(read_flatbuffer(compiled.flatbuffer))
    for name in NUMBERS:
        assert np.array_equal(lowered.run(name, [])[0], golden.run(name, [])[0])
    code = compiled.files["src/m.cpp"]
    for word in (
        "ttnn::all_",
        "ttnn::reduce_scatter",
        "point_to_point",
        "cpu_all",
        ".joins = true",
    ):
        assert word not in code


def test_bytes_are_no_bytes_while_they_are_gathered() -> None:
    """Of parts that are no whole tiles the library makes rows, and tiles of bytes it does not."""
    text = between(CASES["gather along columns"][0], (8, 8)).replace("f32", "ui8")
    code = compile_module(Source("in.mlir", text), CompileOptions("m")).files["src/m.cpp"]
    before = code[: code.index("ttnn::all_gather(")]
    assert before.rindex("DataType::UINT32)") > before.rfind("DataType::UINT8)")
