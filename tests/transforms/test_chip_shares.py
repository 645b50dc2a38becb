"""Comments on structures of the C++ about the sharding of tensors over a mesh."""

from __future__ import annotations

import re

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source

SHARDINGS = """module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 2x4>]>} {
  func.func @main(
      %x: tensor<16x64xf32> {ttcore.sharding = [array<i64: 1, 0>, array<i64>]},
      %y: tensor<16x64xf32> {ttcore.sharding = [array<i64: 0, 1>, array<i64>]},
      %w: tensor<64x32xf32> {ttcore.argument_type = #ttcore.argument_type<parameter>,
                             ttcore.sharding = [array<i64>, array<i64: 1>]},
      %scale: tensor<1x1xf32>)
      -> (tensor<16x32xf32> {ttcore.sharding = [array<i64: 0>, array<i64: 1>]}, tensor<64xf32>) {
    %0 = "ttir.add"(%x, %y) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
    %1 = "ttir.matmul"(%0, %w) : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
    %2 = "ttir.multiply"(%1, %scale)
        : (tensor<16x32xf32>, tensor<1x1xf32>) -> tensor<16x32xf32>
    %3 = "ttir.sum"(%x) <{dim_arg = [0 : i32], keep_dim = false}>
        : (tensor<16x64xf32>) -> tensor<64xf32>
    return %2, %3 : tensor<16x32xf32>, tensor<64xf32>
  }
}
"""


def fields(text: str, target: str) -> dict[str, str]:
    """The fields of the structures of a module's header, with the comments before them."""
    compiled = compile_module(Source("m.mlir", text), CompileOptions("m", target=target))
    (header,) = (file for name, file in compiled.files.items() if name.endswith("m.hpp"))
    found = re.findall(r"((?:^ +//.*\n)+) +[\w:]+ (\w+);", header, re.MULTILINE)
    return {name: re.sub(r"\s*//\s*", " ", comment).strip() for comment, name in found}


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_fields_say_what_each_chip_has(target: str) -> None:
    assert fields(SHARDINGS, target) == {
        "x": "Shards of 2x64: dimension 0 along axes 1 and 0 of the mesh (8 devices).",
        "y": "Shards of 2x64: dimension 0 along axes 0 and 1 of the mesh (8 devices).",
        "w": "Shards of 64x8: dimension 1 along axis 1 of the mesh (4 devices).",
        "scale": "Replicated on all devices.",
        "output0": "Concatenated from shards of 8x8: dimension 0 along axis 0 of the mesh "
        "(2 devices), dimension 1 along axis 1 of the mesh (4 devices).",
        "output1": "Read from the first device.",
    }


def test_on_one_chip_there_is_nothing_to_say() -> None:
    assert fields(SHARDINGS.replace("2x4", "1x1"), "ttnn") == {}


def test_an_argument_that_is_divided_in_two_ways_says_nothing() -> None:
    def shard(dims: str, counts: str, part: str) -> str:
        return (
            f'"ttir.mesh_shard"(%x) <{{shard_dims = array<i64: {dims}>, shard_shape = '
            f"array<i64: {counts}>, shard_type = #ttcore.shard_type<devices>, shard_direction = "
            f"#ttcore.shard_direction<full_to_shard>}}> : (tensor<8x8xf32>) -> tensor<{part}xf32>"
        )

    text = f"""module attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>}} {{
  func.func @main(%x: tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<8x4xf32>) {{
    %0 = {shard("-1, 0", "2, 1", "4x8")}
    %1 = {shard("-1, 1", "1, 2", "8x4")}
    return %0, %1 : tensor<4x8xf32>, tensor<8x4xf32>
  }}
}}"""
    assert "x" not in fields(text, "ttnn")
