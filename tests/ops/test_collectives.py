"""Ops between devices: read, verified and lowered; a program for one device has none."""

from __future__ import annotations

import pytest

from tests.parsing.reading import parse
from ttcodegen.diagnostics import CompileError
from ttcodegen.dialects.verification import verify_module
from ttcodegen.ops.context import load_dialects
from ttcodegen.parsing.structure import check_supported
from ttcodegen.transforms.module_text import module_text
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import Step, passes_of

OPS = [
    ('"ttir.all_gather"(%a) <{all_gather_dim = 1 : si32, cluster_axis = 1 : ui32}>', "8x16"),
    ('"ttir.all_reduce"(%a) <{reduce_type = #tt.reduce_type<sum>}>', "8x4"),
    ('"ttir.reduce_scatter"(%a) <{scatter_dim = 0 : si32, cluster_axis = 1 : ui32}>', "2x4"),
    ('"ttir.collective_permute"(%a) <{source_target_pairs = [0, 1]}>', "8x4"),
    ('"ttir.mesh_shard"(%a) <{shard_shape = [2, 4], shard_dims = [0, 1]}>', "4x1"),
]  # fmt: skip


def program(op: str, result: str) -> str:
    return (
        f"func.func @f(%a: tensor<8x4xf32>) -> tensor<{result}xf32> {{\n"
        f"  %0 = {op} : (tensor<8x4xf32>) -> tensor<{result}xf32>\n"
        f"  return %0 : tensor<{result}xf32>\n}}\n"
    )


@pytest.mark.parametrize(("op", "result"), OPS)
def test_they_go_through_the_passes(op: str, result: str) -> None:
    module = parse(program(op, result))
    verify_module(module)
    passes = passes_of(Step("ttir-to-ttnn-backend-pipeline"))
    PassRunner(load_dialects()).run(module, passes)
    name = op.partition("ttir.")[2].partition('"')[0]
    assert f'"ttnn.{name}"' in module_text(module)


@pytest.mark.parametrize(("op", "result"), OPS)
def test_no_program_has_them(op: str, result: str) -> None:
    with pytest.raises(CompileError, match="works on a mesh of devices"):
        check_supported(parse(program(op, result)))


@pytest.mark.parametrize(("op", "result"), [(op, "8x5") for op, _ in OPS])
def test_shapes_are_verified(op: str, result: str) -> None:
    with pytest.raises(CompileError):
        verify_module(parse(program(op, result)))
