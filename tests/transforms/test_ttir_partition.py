"""Modules that only say how tensors are divided compute on a mesh what they compute on one chip."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.verification import verify_module
from ttcodegen.dialects.ttcore.device import declared_mesh
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.frontends import source_module
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.numerics.interpreter import Interpreter
from ttcodegen.transforms.mesh.partition import TTIRPartition

BETWEEN_CHIPS = ("all_gather", "all_reduce", "mesh_partition", "mesh_shard", "reduce_scatter")


def partitioned(text: str) -> tuple[ModuleOp, Counter[str]]:
    """The module on its mesh, and its ops between chips; it computes what it did on one chip."""
    module = source_module(Source("in.mlir", text), Diagnostics())
    (function,) = [op for op in module.ops if isinstance(op, FuncOp)]
    name = function.sym_name.data
    generator = np.random.default_rng(0)
    inputs = [
        generator.standard_normal(shape_of(type_)).astype(np.float32)
        if "f32" in str(type_)
        else generator.integers(0, 8, shape_of(type_)).astype(np.int32)
        for type_ in function.function_type.inputs
    ]
    expected = Golden(module).run(name, [array.copy() for array in inputs])
    TTIRPartition().apply(Context(), module)
    verify_module(module)
    found = Golden(module).run(name, inputs)
    for one, several in zip(expected, found, strict=True):
        np.testing.assert_allclose(several, one, rtol=1e-4, atol=1e-5)
    counted = Counter(op.name.partition(".")[2] for op in module.walk())
    return module, Counter({name: counted[name] for name in BETWEEN_CHIPS if counted[name]})


def function(arguments: str, result: str, body: str, mesh: str = '"x"=2, "y"=4') -> str:
    """A function in StableHLO; `S[..]` is a sharding of Shardy."""
    text = f"""module {{
  sdy.mesh @mesh = <[{mesh}]>
  func.func public @main({arguments}) -> ({result}) {{
    {body}
  }}
}}"""
    return text.replace("S[", "sdy.sharding = #sdy.sharding<@mesh, [").replace("]S", "]>")


MLP = function(
    '%x: tensor<16x64xf32> {S[{"x"}, {}]S}, %v: tensor<64x128xf32> {S[{}, {"y"}]S}, '
    '%b: tensor<128xf32> {S[{"y"}]S}, %w: tensor<128x32xf32> {S[{"y"}, {}]S}',
    'tensor<16x32xf32> {S[{"x"}, {RESULT}]S}',
    """%0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<16x64xf32>, tensor<64x128xf32>) -> tensor<16x128xf32>
    %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<128xf32>) -> tensor<16x128xf32>
    %2 = stablehlo.add %0, %1 : tensor<16x128xf32>
    %3 = stablehlo.tanh %2 : tensor<16x128xf32>
    %4 = stablehlo.dot_general %3, %w, contracting_dims = [1] x [0] : (tensor<16x128xf32>, tensor<128x32xf32>) -> tensor<16x32xf32>
    return %4 : tensor<16x32xf32>""",  # noqa: E501
)


def test_a_hidden_layer_that_is_divided_needs_one_sum() -> None:
    """As Megatron divides it: by columns, then by rows."""
    module, between = partitioned(MLP.replace("{RESULT}", "{}"))
    assert declared_mesh(module) == (2, 4)
    assert between == {"mesh_shard": 5, "all_reduce": 1}


def test_a_sum_that_is_to_be_divided_is_scattered() -> None:
    _, between = partitioned(MLP.replace("{RESULT}", '{"y"}'))
    assert between == {"mesh_shard": 5, "reduce_scatter": 1}


def test_shardings_of_gspmd_are_those_of_shardy() -> None:
    text = MLP.replace("{RESULT}", "{}").replace('  sdy.mesh @mesh = <["x"=2, "y"=4]>\n', "")
    text = text.replace("module {", "module attributes {mhlo.num_partitions = 8 : i32} {")
    for sdy, tiles in (
        ('[{"x"}, {}]', "[2,1,4]<=[8]"),
        ('[{}, {"y"}]', "[1,4,2]<=[2,4]T(1,0)"),
        ('[{"y"}]', "[4,2]<=[2,4]T(1,0)"),
        ('[{"y"}, {}]', "[4,1,2]<=[2,4]T(1,0)"),
    ):
        old = f"sdy.sharding = #sdy.sharding<@mesh, {sdy}>"
        new = f'mhlo.sharding = "{{devices={tiles} last_tile_dim_replicate}}"'
        text = text.replace(old, new)
    assert "sdy" not in text
    assert partitioned(text)[1] == {"mesh_shard": 5, "all_reduce": 1}


def unary(body: str, sharding: str = '{"x"}, {"y"}', result: str = "16x8xf32") -> str:
    lines = body.replace("T", "tensor<16x8xf32>") + f"\n    return %r : tensor<{result}>"
    return function(f"%a: tensor<16x8xf32> {{S[{sharding}]S}}", f"tensor<{result}>", lines)


@pytest.mark.parametrize(
    ("sharding", "between"),
    [
        ('{"x"}, {"y"}', {"mesh_shard": 2}),
        ('{"x", "y"}, {}', {"mesh_shard": 2}),
        ('{"y", "x"}, {}', {"mesh_shard": 2, "mesh_partition": 1, "all_gather": 1}),
        ('{}, {"x", "y"}', {"mesh_shard": 2}),
        ("{}, {}", {}),
    ],
)
def test_elements_are_computed_where_they_are(sharding: str, between: dict[str, int]) -> None:
    assert partitioned(unary("%r = stablehlo.negate %a : T", sharding))[1] == between


def test_a_dimension_that_does_not_divide_stays_whole() -> None:
    text = unary("%r = stablehlo.negate %a : T", '{}, {"x"}').replace("16x8", "16x7")
    assert partitioned(text)[1] == {}


def test_an_axis_that_is_named_twice_divides_nothing() -> None:
    text = """module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 2x4>]>} {
      func.func @main(%a: tensor<8x8xf32> {ttcore.sharding = [array<i64: 0>, array<i64: 0>]})
          -> tensor<8x8xf32> {
        %r = "ttir.neg"(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>
        return %r : tensor<8x8xf32>
      }
    }"""
    assert partitioned(text)[1] == {}


def test_a_constraint_is_followed() -> None:
    body = """%0 = stablehlo.negate %a : T
    %1 = sdy.sharding_constraint %0 <@mesh, [{"y"}, {}]> : T
    %r = stablehlo.abs %1 : T"""
    _, between = partitioned(unary(body, '{"x"}, {}'))
    assert between == {"mesh_shard": 2, "all_gather": 1, "mesh_partition": 1}


def test_an_op_without_a_rule_gets_whole_tensors() -> None:
    body = """%i = stablehlo.constant dense<[[3], [1]]> : tensor<2x1xi32>
    %r = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<16x8xf32>, tensor<2x1xi32>) -> tensor<2x8xf32>"""  # noqa: E501
    _, between = partitioned(unary(body, '{"x"}, {}', "2x8xf32"))
    assert between["all_gather"] == 1


def test_manual_computations_take_the_parts_that_are_there() -> None:
    body = """%0 = stablehlo.negate %a : T
    %r = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x", "y"} (%p: tensor<8x2xf32>) {
      %1 = stablehlo.abs %p : tensor<8x2xf32>
      sdy.return %1 : tensor<8x2xf32>
    } : (T) -> T"""  # noqa: E501
    assert partitioned(unary(body))[1] == {"mesh_shard": 2}


# Any program

SHARDINGS = ("{}", '{"x"}', '{"y"}', '{"x", "y"}', '{"y", "x"}', "{?}", '{"x", ?}')


class Drawn:
    """A random program on tensors of 8 elements in each dimension."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)
        self._lines: list[str] = []
        self._values: list[tuple[str, tuple[int, ...]]] = []

    def _sharding(self, rank: int) -> str:
        """Axes of the mesh are used once."""
        found: list[str] = []
        used = ""
        for _ in range(rank):
            choices = [s for s in SHARDINGS if not any(f'"{a}"' in s and a in used for a in "xy")]
            found.append(str(self._generator.choice(choices)))
            used += found[-1]
        return f"[{', '.join(found)}]"

    @staticmethod
    def _type(shape: tuple[int, ...]) -> str:
        return f"tensor<{'x'.join(map(str, (*shape, 'f32')))}>"

    def _add(self, text: str, shape: tuple[int, ...]) -> None:
        name = f"%v{len(self._values)}"
        self._lines.append(f"{name} = {text}")
        self._values.append((name, shape))
        if self._generator.random() < 0.2:
            constraint = f"<@mesh, {self._sharding(len(shape))}> : {self._type(shape)}"
            self._lines.append(f"%c{name[1:]} = sdy.sharding_constraint {name} {constraint}")
            self._values.append((f"%c{name[1:]}", shape))

    def _pick(self, rank: int | None = None) -> tuple[str, tuple[int, ...]]:
        fitting = [each for each in self._values if rank is None or len(each[1]) == rank]
        return fitting[int(self._generator.integers(len(fitting)))]

    def _step(self) -> None:
        kind = int(self._generator.integers(7))
        value, shape = self._pick()
        type_, rank = self._type(shape), len(shape)
        dim = int(self._generator.integers(rank))
        if kind == 0:
            other, _ = self._pick(rank)
            if dict(self._values)[other] == shape:
                self._add(f"stablehlo.add {value}, {other} : {type_}", shape)
        elif kind == 1:
            self._add(f"stablehlo.tanh {value} : {type_}", shape)
        elif kind == 2:
            order = [int(each) for each in self._generator.permutation(rank)]
            moved = tuple(shape[each] for each in order)
            given = f"dims = {order} : ({type_}) -> {self._type(moved)}"
            self._add(f"stablehlo.transpose {value}, {given}", moved)
        elif kind == 3 and rank == 2:
            other, right = self._pick(2)
            if shape[1] == right[0]:
                product = (shape[0], right[1])
                types = f"({type_}, {self._type(right)}) -> {self._type(product)}"
                given = f"contracting_dims = [1] x [0] : {types}"
                self._add(f"stablehlo.dot_general {value}, {other}, {given}", product)
        elif kind == 4 and rank == 2:
            split = (shape[0], 2, shape[1] // 2)
            self._add(f"stablehlo.reshape {value} : ({type_}) -> {self._type(split)}", split)
        elif kind == 5 and rank == 3:
            joined = (shape[0] * shape[1], shape[2])
            self._add(f"stablehlo.reshape {value} : ({type_}) -> {self._type(joined)}", joined)
        elif kind == 6 and rank > 1:
            left = (*shape[:dim], *shape[dim + 1 :])
            how = str(self._generator.choice(["add", "maximum"]))
            zero = "%zero" if how == "add" else "%low"
            given = f"applies stablehlo.{how} across dimensions = [{dim}]"
            types = f"({type_}, tensor<f32>) -> {self._type(left)}"
            again = [each for each in range(rank) if each != dim]
            name = f"%s{len(self._values)}"
            self._lines.append(f"{name} = stablehlo.reduce({value} init: {zero}) {given} : {types}")
            types = f"({self._type(left)}) -> {type_}"
            self._add(f"stablehlo.broadcast_in_dim {name}, dims = {again} : {types}", shape)

    def text(self) -> str:
        arguments: list[str] = []
        for index, shape in enumerate(((8, 8), (8, 8), (8, 8, 8))):
            self._values.append((f"%a{index}", shape))
            attributes = f"{{S{self._sharding(len(shape))}S}}"
            arguments.append(f"%a{index}: {self._type(shape)} {attributes}")
        while len(self._lines) < 14:
            self._step()
        results = self._values[-3:]
        types = ", ".join(self._type(shape) for _, shape in results)
        body = "\n    ".join(
            [
                "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
                "%low = stablehlo.constant dense<0xFF800000> : tensor<f32>",
                *self._lines,
                f"return {', '.join(name for name, _ in results)} : {types}",
            ]
        )
        return function(", ".join(arguments), types, body)


@pytest.mark.parametrize("seed", range(40))
def test_any_program_computes_what_one_chip_computes(seed: int) -> None:
    partitioned(Drawn(seed).text())


CACHE = "tensor<8x4x32x16xf32>"
UPDATE = """module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 2x4>]>} {
  func.func @main(%cache: CACHE {ttcore.sharding = [CACHED]}, %x: tensor<ROWSxf32>, %at: tensor<1xi32>) -> (CACHE, CACHE, CACHE) {
    %before = "ttir.neg"(%cache) : (CACHE) -> CACHE
    WRITE
    %after = "ttir.exp"(%cache) : (CACHE) -> CACHE
    WRITE
    return %before, %after, %cache : CACHE, CACHE, CACHE
  }
}
"""  # noqa: E501
WRITES = {
    "update_cache": (
        '"ttir.update_cache"(%cache, %x, %at) <{batch_offset = 0 : i32}> : '
        "(CACHE, tensor<ROWSxf32>, tensor<1xi32>) -> ()",
        "1x4x8x16",
    ),
    "fill_cache": (
        '"ttir.fill_cache"(%cache, %x) <{batch_offset = 0 : i32}> : '
        "(CACHE, tensor<ROWSxf32>) -> ()",
        "8x4x32x16",
    ),
    "fill one user": (
        '"ttir.fill_cache"(%cache, %x) <{batch_offset = 3 : i32}> : '
        "(CACHE, tensor<ROWSxf32>) -> ()",
        "1x4x32x16",
    ),
}


def cache_program(write: str, sharding: str) -> str:
    text, rows = WRITES[write]
    text = UPDATE.replace("WRITE", text).replace("ROWS", rows).replace("CACHED", sharding)
    return text.replace("CACHE", CACHE)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(
    "sharding",
    [
        "array<i64: 0>, array<i64: 1>, array<i64>, array<i64>",
        "array<i64>, array<i64>, array<i64: 1>, array<i64: 0>",
        "array<i64: 0, 1>, array<i64>, array<i64>, array<i64>",
        "array<i64>, array<i64>, array<i64>, array<i64>",
    ],
)
def test_what_is_overwritten_has_its_new_elements(write: str, sharding: str) -> None:
    """As it is read later, overwritten again and returned, and as it was read before."""
    partitioned(cache_program(write, sharding))


def test_users_and_heads_of_a_cache_stay_divided() -> None:
    sharding = "array<i64: 0>, array<i64: 1>, array<i64>, array<i64>"
    _, between = partitioned(cache_program("update_cache", sharding))
    assert "all_gather" not in between


def test_an_argument_that_is_overwritten_on_chips_is_returned() -> None:
    sharding = "array<i64: 0>, array<i64: 1>, array<i64>, array<i64>"
    text = cache_program("update_cache", sharding)
    text = text.replace("%after, %cache :", "%after, %after :")
    with pytest.raises(CompileError, match="overwrites an argument that is divided among chips"):
        partitioned(text)


@pytest.mark.parametrize("write", WRITES)
def test_calls_of_the_library_overwrite_the_parts(write: str) -> None:
    sharding = "array<i64: 0>, array<i64: 1>, array<i64>, array<i64>"
    source = Source("in.mlir", cache_program(write, sharding))
    compiled = compile_module(source, CompileOptions("m"))
    generator = np.random.default_rng(0)
    rows = tuple(map(int, WRITES[write][1].split("x")))
    inputs = [
        generator.standard_normal((8, 4, 32, 16)).astype(np.float32),
        generator.standard_normal(rows).astype(np.float32),
        np.array([5], np.int32),
    ]
    expected = Golden(source_module(source)).run("main", [array.copy() for array in inputs])
    found = Interpreter(read_ttnn(compiled.flatbuffer)).run("main", inputs)
    for one, several in zip(expected, found, strict=True):
        np.testing.assert_allclose(several, one, rtol=0.01, atol=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_the_project_overwrites_the_parts(target: str, tmp_path: Path) -> None:
    sharding = "array<i64: 0>, array<i64: 1>, array<i64>, array<i64>"
    source = tmp_path / "cache.mlir"
    source.write_text(cache_program("update_cache", sharding))
    options = ["--target", target, "--check", "-q"]
    assert main([str(source), "-o", str(tmp_path / "out"), *options]) == 0
