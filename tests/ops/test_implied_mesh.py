"""The mesh of modules that name none."""

from __future__ import annotations

import pytest

from ttcodegen.dialects.ttcore.device import ONE_CHIP, declared_mesh
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.frontends import source_module


def mesh_of(op: str, types: str, dialect: str = "ttir") -> tuple[int, int]:
    """The mesh of a module with one op, of which `types` are the operands and the result."""
    operands, result = types.split(" -> ")
    arguments = operands.split(", ")
    names = ", ".join(f"%a{index}" for index in range(len(arguments)))
    taken = ", ".join(f"%a{index}: tensor<{type_}>" for index, type_ in enumerate(arguments))
    name, _, attributes = op.partition(" ")
    signature = f"({', '.join(f'tensor<{each}>' for each in arguments)}) -> tensor<{result}>"
    text = f"""func.func @main({taken}) -> tensor<{result}> {{
  %0 = "{dialect}.{name}"({names}) <{{{attributes}}}> : {signature}
  return %0 : tensor<{result}>
}}
"""
    return declared_mesh(source_module(Source("in.mlir", text)))


@pytest.mark.parametrize(
    ("op", "types", "mesh"),
    [
        ("all_gather all_gather_dim = 1 : si32, cluster_axis = 1 : ui32", "8x8xf32 -> 8x32xf32",
         (1, 4)),
        ("all_gather all_gather_dim = 1 : si32, cluster_axis = 0 : ui32", "8x8xf32 -> 8x16xf32",
         (2, 1)),
        ("mesh_partition dim = 0 : si32, cluster_axis = 0 : ui32", "8x8xf32 -> 4x8xf32", (2, 1)),
        ("collective_permute source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>",
         "8x8xf32 -> 8x8xf32", (1, 3)),
        ("collective_broadcast replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>",
         "8x8xf32 -> 8x8xf32", (2, 2)),
        ("mesh_shard shard_dims = array<i64: 1, 0>, shard_shape = array<i64: 4, 2>, shard_type = "
         "#ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<full_to_shard>",
         "8x8xf32 -> 2x4xf32", (2, 4)),
        ("mesh_shard shard_dims = array<i64: -1, 0>, shard_shape = array<i64: 4, 1>, shard_type = "
         "#ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<full_to_shard>",
         "8x8xf32 -> 2x8xf32", (1, 4)),
        ("all_to_all_combine num_devices = 2 : i64, cluster_axis = 0 : i64, "
         "num_experts_per_tok = 2 : i64",
         "2x2x4x32xf32, 1x2x4x2xi32, 1x1x16x8xi32 -> 2x1x4x32xf32", (2, 4)),
        ("all_reduce reduce_type = #ttcore.reduce_type<sum>, cluster_axis = 1 : ui32",
         "8x8xf32 -> 8x8xf32", ONE_CHIP),
    ],
)  # fmt: skip
def test_ops_between_chips_imply_a_mesh(op: str, types: str, mesh: tuple[int, int]) -> None:
    assert mesh_of(op, types) == mesh


def test_an_expert_on_each_device_implies_a_mesh() -> None:
    text = """func.func @main(%a: tensor<1x2x4x8xf32>, %b: tensor<1x1x8x4xi32>, %c: tensor<1x2x4x2xi32>) -> tensor<1x2x4x2xf32> {
  %0, %1 = "ttir.moe_expert_token_remap"(%a, %b, %c) <{reduction_size = 4 : i64}> : (tensor<1x2x4x8xf32>, tensor<1x1x8x4xi32>, tensor<1x2x4x2xi32>) -> (tensor<1x2x4x2xf32>, tensor<1x1x2x2xf32>)
  return %0 : tensor<1x2x4x2xf32>
}
"""  # noqa: E501
    assert declared_mesh(source_module(Source("in.mlir", text))) == (1, 4)


def test_experts_on_several_devices_imply_a_mesh() -> None:
    """Two of eight experts here, and tokens for two devices along the first axis."""
    weights = ["tensor<1x2x32x32xf32>"] * 3
    taken = ["tensor<8x32xf32>", "tensor<8x2xi32>", "tensor<8x2xf32>", "tensor<1x8xi32>", *weights]
    names = [f"%a{index}" for index in range(len(taken))]
    arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, taken, strict=True))
    text = f"""func.func @main({arguments}) -> tensor<2x4x32xf32> {{
  %0 = "ttir.moe_compute"({", ".join(names)}) <{{layer_id = 0 : ui32, intermediate_size = 32 : ui32, cluster_axis = 0 : ui32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 0, 0, 0>}}> : ({", ".join(taken)}) -> tensor<2x4x32xf32>
  return %0 : tensor<2x4x32xf32>
}}
"""  # noqa: E501
    assert declared_mesh(source_module(Source("in.mlir", text))) == (2, 2)
