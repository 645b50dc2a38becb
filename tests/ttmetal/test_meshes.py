"""Programs of the device on a mesh of chips: each chip runs them on its share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from tests.examples.mesh_models import LlamaSizes, llama_layer, residual_blocks
from tests.random_programs.checking import Checked, run_module
from tests.random_programs.test_meshes import divided_module
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.conversions.mesh import Sharing
from ttcodegen.dialects.ttcore.device import MeshShape
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.numerics.drawing import draw_inputs
from ttcodegen.project.checking import run_in_numpy
from ttcodegen.project.cpu_backend import CPUBackend

CASES = Path(__file__).parents[1] / "op_cases" / "meshes.mlir"
"""Each op between chips, on 2x4 of them."""

SHARE = (
    "shard_dims = array<i64: -1, 0>, shard_shape = array<i64: 2, 1>, "
    "shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction"
)
ROWS = f"""
module attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>}} {{
  func.func @forward(
      %x: tensor<128x64xbf16> {{ttir.name = "x"}},
      %w: tensor<64x96xbf16> {{ttcore.argument_type = #ttcore.argument_type<parameter>}}
  ) -> tensor<128x96xbf16> {{
    %0 = "ttir.mesh_shard"(%x) <{{{SHARE}<full_to_shard>}}>
        : (tensor<128x64xbf16>) -> tensor<64x64xbf16>
    %1 = "ttir.matmul"(%0, %w) : (tensor<64x64xbf16>, tensor<64x96xbf16>) -> tensor<64x96xbf16>
    %2 = "ttir.tanh"(%1) {{ttir.should_hoist}} : (tensor<64x96xbf16>) -> tensor<64x96xbf16>
    %3 = "ttir.mesh_shard"(%2) <{{{SHARE}<shard_to_full>}}>
        : (tensor<64x96xbf16>) -> tensor<128x96xbf16>
    return %3 : tensor<128x96xbf16>
  }}
}}
"""
"""Rows divided among two chips, multiplied by programs of the device, with an op that the CPU
computes for each chip."""
GATHER = 'all_gather"(%2) <{all_gather_dim = 0 : si32, cluster_axis = 1 : ui32}>'
CACHE = f"""
module attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>}} {{
  func.func @step(%c: tensor<2x4x64x32xbf16>, %x: tensor<2x4x1x32xbf16>, %i: tensor<1xi32>)
      -> tensor<2x4x64x32xbf16> {{
    %0 = "ttir.mesh_shard"(%c) <{{{SHARE.replace("2, 1", "2, 1, 1, 1")}<full_to_shard>}}>
        : (tensor<2x4x64x32xbf16>) -> tensor<1x4x64x32xbf16>
    %1 = "ttir.mesh_shard"(%x) <{{{SHARE.replace("2, 1", "2, 1, 1, 1")}<full_to_shard>}}>
        : (tensor<2x4x1x32xbf16>) -> tensor<1x4x1x32xbf16>
    %2 = "ttir.update_cache"(%0, %1, %i) <{{batch_offset = 0 : i32}}>
        : (tensor<1x4x64x32xbf16>, tensor<1x4x1x32xbf16>, tensor<1xi32>) -> tensor<1x4x64x32xbf16>
    %3 = "ttir.mesh_shard"(%2) <{{{SHARE.replace("2, 1", "2, 1, 1, 1")}<shard_to_full>}}>
        : (tensor<1x4x64x32xbf16>) -> tensor<2x4x64x32xbf16>
    return %3 : tensor<2x4x64x32xbf16>
  }}
}}
"""
"""A cache, divided among two chips by users."""
DIVISIONS = {
    "both": ("4x8x6xf32", "2x2x6xf32", (0, 1)),
    "reversed": ("8x40x4xf32", "2x20x4xf32", (1, 0)),
    "last": ("3x5x8xsi32", "3x5x2xsi32", (-1, 2)),
    "columns": ("2x66x34xbf16", "2x33x34xbf16", (1, -1)),
    "one": ("3x64x96xbf16", "3x8x96xbf16", (1, 1)),
    "vector": ("80xf32", "10xf32", (0, 0)),
}
"""Tensors, parts, and the dimensions that are divided along the axes of a mesh of 2x4 chips."""


def divided_function(name: str) -> str:
    """A function that divides its argument, computes something, and puts the parts together."""
    whole, part, dims = DIVISIONS[name]
    counts = [1] * (whole.count("x"))
    for dim, chips in zip(dims, (2, 4), strict=True):
        if dim >= 0:
            counts[dim] *= chips
    divided = (
        f"shard_dims = array<i64: {dims[0]}, {dims[1]}>, shard_shape = array<i64: "
        f"{', '.join(map(str, counts))}>, shard_type = #ttcore.shard_type<devices>, "
        "shard_direction = #ttcore.shard_direction"
    )
    return f"""
  func.func @{name}(%a: tensor<{whole}>) -> tensor<{whole}> {{
    %0 = "ttir.mesh_shard"(%a) <{{{divided}<full_to_shard>}}>
        : (tensor<{whole}>) -> tensor<{part}>
    %1 = "ttir.add"(%0, %0) : (tensor<{part}>, tensor<{part}>) -> tensor<{part}>
    %2 = "ttir.mesh_shard"(%1) <{{{divided}<shard_to_full>}}>
        : (tensor<{part}>) -> tensor<{whole}>
    return %2 : tensor<{whole}>
  }}"""


DIVIDED = (
    'module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 2x4>]>} {'
    + "".join(map(divided_function, DIVISIONS))
    + "\n}\n"
)


def between_chips(name: str, op: str, shape: str, result: str) -> str:
    """A function in which chips have tensors of that shape, which an op between them changes."""
    sizes, rank = shape.split("x")[:-1], shape.count("x")
    divided = (
        "shard_dims = array<i64: 0, 0>, shard_shape = array<i64: 2, 2>, "
        "shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction"
    )
    kind, _, attributes = op.partition(" ")
    return f"""
  func.func @{name}(%a: tensor<8x{shape}>) -> tensor<8x{result}> {{
    %0 = "ttir.mesh_shard"(%a) <{{{divided}<full_to_shard>}}>
        : (tensor<8x{shape}>) -> tensor<2x{shape}>
    %1 = "ttir.slice_static"(%0) <{{begins = {i32s(1, *[0] * rank)}, ends = {i32s(2, *sizes)},
        step = {i32s(1, *[1] * rank)}}}> : (tensor<2x{shape}>) -> tensor<1x{shape}>
    %2 = "ttir.reshape"(%1) <{{shape = {i32s(*sizes)}}}> : (tensor<1x{shape}>) -> tensor<{shape}>
    %3 = "ttir.{kind}"(%2) <{{{attributes}}}> : (tensor<{shape}>) -> tensor<{result}>
    %4 = "ttir.reshape"(%3) <{{shape = {i32s(1, *result.split("x")[:-1])}}}>
        : (tensor<{result}>) -> tensor<1x{result}>
    %5 = "ttir.repeat"(%4) <{{repeat_dimensions = array<i64: 2{", 1" * rank}>}}>
        : (tensor<1x{result}>) -> tensor<2x{result}>
    %6 = "ttir.mesh_shard"(%5) <{{{divided}<shard_to_full>}}>
        : (tensor<2x{result}>) -> tensor<8x{result}>
    return %6 : tensor<8x{result}>
  }}"""


def i32s(*numbers: object) -> str:
    """An array of 32-bit integers."""
    return f"[{', '.join(f'{number} : i32' for number in numbers)}]"


def pairs(*numbers: tuple[int, int]) -> str:
    """The attribute of a permutation of chips."""
    rows = ", ".join(map(str, map(list, numbers)))
    return f"source_target_pairs = dense<[{rows}]> : tensor<{len(numbers)}x2xi64>"


ALL = "replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>"
ROW = "replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"
MAX = "reduce_type = #ttcore.reduce_type<max>"
STEPS = (
    between_chips(
        "rows",
        "all_gather all_gather_dim = 0 : si32, cluster_axis = 1 : ui32",
        "48x32xf32",
        "96x32xf32",
    ),
    between_chips(
        "columns",
        "all_gather all_gather_dim = 1 : si32, cluster_axis = 0 : ui32",
        "64x40xbf16",
        "64x80xbf16",
    ),
    between_chips(
        "vectors",
        "all_gather all_gather_dim = 0 : si32, cluster_axis = 1 : ui32",
        "20xsi32",
        "40xsi32",
    ),
    between_chips("from_all", "all_gather all_gather_dim = 1 : si32", "3x5xf32", "3x20xf32"),
    between_chips(
        "share", "mesh_partition dim = 0 : si32, cluster_axis = 0 : ui32", "96x40xf32", "48x40xf32"
    ),
    between_chips("share_of_all", "mesh_partition dim = 1 : si32", "2x64xbf16", "2x16xbf16"),
    between_chips(
        "parts",
        f"all_to_all split_dim = 0 : si32, concat_dim = 1 : si32, split_count = 2 : si32, {ROW}",
        "32x48xf32",
        "16x96xf32",
    ),
    between_chips(
        "parts_of_all",
        f"all_to_all split_dim = 1 : si32, concat_dim = 1 : si32, split_count = 4 : si32, {ALL}",
        "8x32xf32",
        "8x32xf32",
    ),
    between_chips("first", f"collective_broadcast {ROW}", "33x33xbf16", "33x33xbf16"),
    between_chips("first_of_all", f"collective_broadcast {ALL}", "7xf32", "7xf32"),
    between_chips(
        "along_columns", f"collective_permute {pairs((0, 2), (3, 1))}", "40x40xsi32", "40x40xsi32"
    ),
    between_chips(
        "transposed",
        f"collective_permute {pairs((0, 0), (1, 2), (2, 1), (3, 3))}",
        "40xf32",
        "40xf32",
    ),
    between_chips("greatest", f"all_reduce {MAX}, cluster_axis = 0 : ui32", "5x6xbf16", "5x6xbf16"),
    between_chips(
        "share_of_greatest",
        f"reduce_scatter {MAX}, scatter_dim = 0 : si32, cluster_axis = 1 : ui32",
        "64x33xf32",
        "32x33xf32",
    ),
)
"""Movements between chips along both axes of the mesh, of no whole tiles, or to other rows."""
IN_STEPS = (
    'module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 2x2>]>} {'
    + "".join(STEPS)
    + "\n}\n"
)


def compiled(text: str) -> CompiledModule:
    return compile_module(Source("in.mlir", text), CompileOptions("m", "ttmetal"))


def drawn(module: ModuleOp, function: FuncOp) -> tuple[np.ndarray, ...]:
    return tuple(draw_inputs(module, function, 0).values())


def disagreements(text: str) -> list[str]:
    """Differences between the flatbuffer of device programs and the source."""
    result = compiled(text)
    runs = run_in_numpy(Source("in.mlir", text), result, drawn)
    checked = Checked(result, tuple(runs))
    return [reason for run in runs for reason in checked.reasons(run)]


def test_each_chip_has_its_share() -> None:
    result = compiled(ROWS)
    host = result.files["src/m.cpp"]
    assert result.description.mesh == (1, 2)
    # A chip multiplies 64 of the 128 rows, and the CPU computes something of each.
    assert "{64, 96}, DataType" in host
    assert "support::cpu::on_each_chip(cpu_tanh, " in host
    # The host uploads its rows to each, and puts the result together of theirs.
    assert "exchange" not in host
    assert "mesh" not in result.files["src/cpu_functions.cpp"]
    (function,) = result.description.functions
    whole, replicated = function.arguments
    assert (whole.shape, whole.divided) == ((128, 64), (-1, 0))
    assert (replicated.shape, replicated.divided) == ((64, 96), ())
    assert [(each.shape, each.divided) for each in function.outputs] == [((128, 96), (-1, 0))]


@pytest.mark.parametrize("name", DIVISIONS)
def test_the_host_divides_along_any_dimension(name: str) -> None:
    whole, _, dims = DIVISIONS[name]
    result = compiled(DIVIDED)
    function = next(each for each in result.description.functions if each.name == name)
    shape = tuple(map(int, whole.split("x")[:-1]))
    assert [(each.shape, each.divided) for each in (*function.inputs, *function.outputs)] == [
        (shape, dims)
    ] * 2
    assert "exchange" not in result.files["src/m.cpp"]
    assert "src/cpu_functions.cpp" not in result.files


def test_chips_take_apart_what_they_need_as_a_whole() -> None:
    """An argument that an op takes as a whole is replicated; of one that is overwritten each chip
    copies its part."""
    text = ROWS.replace("(%2) {ttir.should_hoist}", "(%2)").replace(
        'ttir.matmul"(%0, %1)', 'ttir.matmul"(%0, %w)'
    )
    taken = """
    %p = "ttir.sum"(%x) <{dim_arg = [0 : i32], keep_dim = true}>
        : (tensor<128x64xbf16>) -> tensor<1x64xbf16>
    %q = "ttir.add"(%0, %p) : (tensor<64x64xbf16>, tensor<1x64xbf16>) -> tensor<64x64xbf16>
    %1 = "ttir.matmul"(%q, %w)"""
    result = compiled(text.replace('\n    %1 = "ttir.matmul"(%0, %w)', taken))
    (function,) = result.description.functions
    assert [each.divided for each in (*function.arguments, *function.outputs)] == [(), (), (-1, 0)]
    assert result.files["src/m.cpp"].count("    exchange(*constants.programs, ") == 1
    cache = compiled(CACHE).description.functions[0]
    assert [each.divided for each in cache.arguments] == [(-1, 0), (-1, 0), ()]


MODELS = {
    "rows": ROWS,
    "llama": llama_layer((1, 2), LlamaSizes(batch=2, width=64, heads=2, hidden=128)),
    "resnet": residual_blocks((1, 2), batch=2, channels=8, blocks=1),
    "cases": CASES.read_text("utf-8"),
    "steps": IN_STEPS,
    "divided": DIVIDED,
    "cache": CACHE,
}


@pytest.mark.parametrize("name", MODELS)
def test_flatbuffer_agrees_with_the_source(name: str) -> None:
    assert disagreements(MODELS[name]) == []


@pytest.mark.parametrize("name", ["steps", "cases"])
def test_chips_exchange_themselves_what_ops_between_them_move(name: str) -> None:
    result = compiled(MODELS[name])
    assert "exchange(" in result.files["src/m.cpp"]
    assert "src/cpu_functions.cpp" not in result.files


def test_the_manifest_says_what_links_carry() -> None:
    # Each sends the other one 2x3 tiles of bfloat16.
    text = ROWS.replace('mesh_shard"(%2) <{' + SHARE + "<shard_to_full>}>", GATHER)
    result = compiled(text)
    assert list(result.description.exchanges) == [
        {"name": "exchange_0", "axis": 1, "link_bytes": 2 * 3 * 2048},
    ]
    assert result.files["kernels/exchange_pages.cpp"]
    assert result.description.kernels[-1]["program"] == "exchange_0"


@pytest.mark.parametrize(
    ("joins", "pairs", "pages"),
    [
        # Over the link in the middle of four chips: from two of them to two others.
        (True, (), 4 * 5),
        (False, ((0, 1), (1, 2), (2, 3), (3, 0)), 5),
        (False, ((0, 3), (1, 2), (4, 4)), 2 * 5),
        (False, ((2, 2),), 0),
    ],
)
def test_the_busiest_link(joins: bool, pairs: tuple[tuple[int, int], ...], pages: int) -> None:
    sharing = Sharing(1, 4, 5, 5, 5, False, joins, pairs)
    assert sharing.pages_over_busiest_link((2, 4)) == pages


def run_of(seeds: Sequence[int], mesh: MeshShape) -> int:
    """Number of random modules whose ops all have device programs."""
    found = 0
    for seed in seeds:
        with suppress(CompileError):
            checked = run_module(divided_module([seed], mesh), "ttmetal")
            assert [reason for run in checked.runs for reason in checked.reasons(run)] == []
            found += 1
    return found


def test_random_divided_programs_agree() -> None:
    assert run_of(range(100, 110), (2, 2)) >= 5


def test_no_chip_holds_the_tensors_of_all_to_reduce_them() -> None:
    """Each of four reduces its share; what has no share in whole tiles is gathered."""
    share = SHARE.replace("2, 1", "4, 1")
    lines = [
        line
        for name, rows in (("a", 128), ("b", 5))
        for line in (
            f'%{name}0 = "ttir.mesh_shard"(%{name}) <{{{share}<full_to_shard>}}> : '
            f"(tensor<{4 * rows}x64xf32>) -> tensor<{rows}x64xf32>",
            f'%{name}1 = "ttir.all_reduce"(%{name}0) <{{reduce_type = #ttcore.reduce_type<sum>, '
            f"cluster_axis = 1 : ui32}}> : (tensor<{rows}x64xf32>) -> tensor<{rows}x64xf32>",
        )
    ]
    body = "\n    ".join(lines)
    project = compiled(f"""
module attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x4>]>}} {{
  func.func @f(%a: tensor<512x64xf32>, %b: tensor<20x64xf32>)
      -> (tensor<128x64xf32>, tensor<5x64xf32>) {{
    {body}
    return %a1, %b1 : tensor<128x64xf32>, tensor<5x64xf32>
  }}
}}
""")
    main_ = project.files["src/m.cpp"]
    sharings = [line.strip() for line in main_.splitlines() if ".divides" in line]
    reductions = [line for line in sharings if ".joins = true" in line]
    assert [".divides = true" in line for line in reductions] == [True, False, False]


def test_a_mesh_without_divided_tensors_is_one_chip() -> None:
    text = (
        'module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 2x4>]>} {\n'
        "  func.func @f(%a: tensor<32x32xf32>) -> tensor<32x32xf32> {\n"
        '    %0 = "ttir.exp"(%a) : (tensor<32x32xf32>) -> tensor<32x32xf32>\n'
        "    return %0 : tensor<32x32xf32>\n  }\n}\n"
    )
    assert compiled(text).description.mesh == (1, 1)


IN_CPU_MODULE = """
module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>} {
ttcore.device_module { builtin.module {
  func.func @f(%a: tensor<32x32xf32>) -> tensor<32x32xf32> {
    %0 = func.call @h(%a) : (tensor<32x32xf32>) -> tensor<32x32xf32>
    return %0 : tensor<32x32xf32>
  }
  func.func private @h(tensor<32x32xf32>) -> tensor<32x32xf32>
} }
ttcore.cpu_module { builtin.module {
  func.func @h(%a: tensor<32x32xf32>) -> tensor<32x32xf32> {
    %0 = "ttir.neg"(%a) : (tensor<32x32xf32>) -> tensor<32x32xf32>
    %1 = "ttir.all_reduce"(%0) <{reduce_type = #ttcore.reduce_type<sum>, cluster_axis = 1 : ui32}>
        : (tensor<32x32xf32>) -> tensor<32x32xf32>
    return %1 : tensor<32x32xf32>
  }
} }
}
"""


def test_chips_are_not_joined_in_a_function_for_each() -> None:
    with pytest.raises(CompileError, match=r"'ttir.all_reduce' joins chips"):
        compiled(IN_CPU_MODULE)


ALONE = f"""
module attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>}} {{
  func.func @f(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<0x2xf32>) {{
    %0 = "ttir.mesh_shard"(%x) <{{{SHARE}<full_to_shard>}}>
        : (tensor<64x64xf32>) -> tensor<32x64xf32>
    %1 = "ttir.mesh_shard"(%0) <{{{SHARE}<shard_to_full>}}>
        : (tensor<32x64xf32>) -> tensor<64x64xf32>
    %2 = "ttir.full"() <{{shape = array<i32: 0, 2>, fill_value = 0.0 : f32}}>
        : () -> tensor<0x2xf32>
    return %1, %2 : tensor<64x64xf32>, tensor<0x2xf32>
  }}
}}
"""
"""A function of the CPU that takes nothing, for each chip."""


@pytest.mark.slow
def test_the_cpu_computes_from_nothing_for_each_chip(
    cpu_backend: CPUBackend, tmp_path: Path
) -> None:
    source, out = tmp_path / "alone.mlir", tmp_path / "alone"
    source.write_text(ALONE, encoding="utf-8")
    assert main([str(source), "-o", str(out), "--target", "ttmetal", "--check"]) == 0
    assert "on_each_chip(cpu_full, device)" in (out / "src" / "alone.cpp").read_text()


@pytest.mark.slow
def test_projects_agree_with_the_source(cpu_backend: CPUBackend, tmp_path: Path) -> None:
    for name in ("rows", "cases", "steps", "divided", "cache"):
        source, out = tmp_path / f"{name}.mlir", tmp_path / name
        source.write_text(MODELS[name], encoding="utf-8")
        assert main([str(source), "-o", str(out), "--target", "ttmetal", "--check"]) == 0
        assert json.loads((out / "check.json").read_text())["passed"]
