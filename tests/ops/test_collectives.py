"""Ops between devices: what they are on one, and that several are read, verified and lowered."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parsing.reading import parse
from ttcodegen.diagnostics import CompileError, Source
from ttcodegen.dialects.verification import verify_module
from ttcodegen.frontends import source_module
from ttcodegen.numerics.golden import Golden
from ttcodegen.ops.context import load_dialects
from ttcodegen.parsing.structure import check_supported
from ttcodegen.transforms.module_text import module_text
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import Step, passes_of

MESH = 'ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>'
OPS = [
    ('"ttir.all_gather"(%a) <{all_gather_dim = 1 : si32, cluster_axis = 1 : ui32}>', "8x16"),
    ('"ttir.all_reduce"(%a) <{reduce_type = #tt.reduce_type<sum>}>', "8x4"),
    ('"ttir.reduce_scatter"(%a) <{scatter_dim = 0 : si32, cluster_axis = 1 : ui32}>', "2x4"),
    ('"ttir.collective_permute"(%a) <{source_target_pairs = [0, 1]}>', "8x4"),
    ('"ttir.mesh_shard"(%a) <{shard_shape = [2, 4], shard_dims = [0, 1]}>', "4x1"),
]  # fmt: skip


LOCAL = [
    '"ttir.all_gather"(%a) <{all_gather_dim = 1 : si32, cluster_axis = 1 : ui32}>',
    '"ttir.all_reduce"(%a) <{reduce_type = #ttcore.reduce_type<max>, cluster_axis = 0 : ui32}>',
    '"ttir.reduce_scatter"(%a) <{scatter_dim = 0 : si32, cluster_axis = 1 : ui32}>',
    '"ttir.collective_permute"(%a) <{source_target_pairs = dense<0> : tensor<1x2xi64>}>',
    '"ttir.mesh_shard"(%a) <{shard_shape = array<i64: 1>, shard_dims = array<i64: -1>}>',
]


def program(op: str, result: str, attributes: str = "") -> str:
    return (
        f"module attributes {{{attributes}}} {{\n"
        f"func.func @f(%a: tensor<8x4xf32>) -> tensor<{result}xf32> {{\n"
        f"  %0 = {op} : (tensor<8x4xf32>) -> tensor<{result}xf32>\n"
        f"  return %0 : tensor<{result}xf32>\n}}\n}}\n"
    )


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


@pytest.mark.parametrize(("op", "result"), OPS)
def test_they_go_through_the_passes(op: str, result: str) -> None:
    module = parse(program(op, result, MESH))
    verify_module(module)
    passes = passes_of(Step("ttir-to-ttnn-backend-pipeline"))
    PassRunner(load_dialects()).run(module, passes)
    name = op.partition("ttir.")[2].partition('"')[0]
    assert f'"ttnn.{name}"' in module_text(module)


@pytest.mark.parametrize(("op", "result"), OPS)
def test_no_program_has_them(op: str, result: str) -> None:
    with pytest.raises(CompileError, match="works on a mesh of devices"):
        check_supported(parse(program(op, result, MESH)))


@pytest.mark.parametrize(("op", "result"), [(op, "8x5") for op, _ in OPS])
def test_shapes_are_verified(op: str, result: str) -> None:
    with pytest.raises(CompileError):
        verify_module(parse(program(op, result)))
