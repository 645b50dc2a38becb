"""Experts on several devices, against loops over tokens."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.frontends import source_module
from ttcodegen.numerics.drawing import draw_inputs
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.numerics.interpreter import Interpreter

EXPERTS, HIDDEN, K = 8, 32, 2


def shard(name: str, value: str, whole: str, part: str, dims: str, counts: str, back: bool) -> str:
    direction = "shard_to_full" if back else "full_to_shard"
    source, result = (part, whole) if back else (whole, part)
    return (
        f'{name} = "ttir.mesh_shard"({value}) <{{shard_dims = array<i64: {dims}>, '
        f"shard_shape = array<i64: {counts}>, shard_type = #ttcore.shard_type<devices>, "
        f"shard_direction = #ttcore.shard_direction<{direction}>}}> : "
        f"(tensor<{source}>) -> tensor<{result}>"
    )


def program(mesh: tuple[int, int], axis: int, tokens: tuple[int, int], owners: int) -> str:
    """Tokens (batch, sequence) go to their experts, each of which scales by a number of its own."""
    batch, sequence = tokens
    devices = mesh[axis]
    local, here = EXPERTS // devices, batch // devices
    along = "-1, 0" if axis else "0, -1"
    x, named = f"{batch}x{sequence}x1x{HIDDEN}xf32", f"{batch}x{sequence}x1x{K}xi32"
    x_here, named_here = f"{here}{x[len(str(batch)) :]}", f"{here}{named[len(str(batch)) :]}"
    all_x, all_named = f"1x{batch}x{sequence}x{HIDDEN}xf32", f"1x{batch}x{sequence}x{K}xi32"
    made = f"{local}x{batch}x{sequence}x{HIDDEN}xf32"
    result, part = (f"{K}x{size}x{sequence}x{HIDDEN}xf32" for size in (batch, here))
    back = "-1, 1" if axis else "1, -1"
    owned = f"1x1x{EXPERTS}x{owners}xi32"
    travel = f"num_devices = {devices} : i64, cluster_axis = {axis} : i64"
    lines = [
        shard("%a", "%x", x, x_here, along, f"{devices}, 1, 1, 1", False),
        shard("%b", "%named", named, named_here, along, f"{devices}, 1, 1, 1", False),
        shard("%c", "%scale", f"{EXPERTS}x1x1x1xf32", f"{local}x1x1x1xf32", along,
              f"{devices}, 1, 1, 1", False),
        f'%d, %e = "ttir.all_to_all_dispatch"(%a, %b, %owners) <{{{travel}}}> : (tensor<{x_here}>, '
        f"tensor<{named_here}>, tensor<{owned}>) -> (tensor<{all_x}>, tensor<{all_named}>)",
        f'%f = "ttir.multiply"(%d, %c) : (tensor<{all_x}>, tensor<{local}x1x1x1xf32>) -> '
        f"tensor<{made}>",
        f'%g = "ttir.all_to_all_combine"(%f, %e, %owners) <{{{travel}, num_experts_per_tok = {K} '
        f": i64, output_shard_dim = 1 : i64}}> : (tensor<{made}>, tensor<{all_named}>, "
        f"tensor<{owned}>) -> tensor<{part}>",
        shard("%h", "%g", result, part, back, f"1, {devices}, 1, 1", True),
        f"return %h : tensor<{result}>",
    ]  # fmt: skip
    body = "\n    ".join(lines)
    return f"""module attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = {mesh[0]}x{mesh[1]}>]>}} {{
  func.func @main(%x: tensor<{x}>, %named: tensor<{named}>, %owners: tensor<{owned}>, %scale: tensor<{EXPERTS}x1x1x1xf32>) -> tensor<{result}> {{
    {body}
  }}
}}"""  # noqa: E501


@pytest.mark.parametrize(
    ("mesh", "axis", "tokens"),
    [((1, 4), 1, (8, 4)), ((2, 2), 0, (4, 3)), ((2, 4), 1, (4, 1))],
)
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_tokens_go_to_their_experts_and_back(
    mesh: tuple[int, int], axis: int, tokens: tuple[int, int], shuffled: bool, element: str
) -> None:
    generator = np.random.default_rng(0)
    devices = mesh[axis]
    x = generator.integers(-8, 9, (*tokens, 1, HIDDEN)).astype(np.float32)
    named = np.argsort(generator.random((*tokens, 1, EXPERTS)))[..., :K].astype(np.int32)
    homes = np.repeat(np.arange(devices), EXPERTS // devices)
    if shuffled:
        homes = generator.permutation(homes)
    owners = np.eye(devices, dtype=np.int32)[homes].reshape(1, 1, EXPERTS, devices)
    # Each device has the numbers of its experts in their order.
    scale = np.arange(1, EXPERTS + 1, dtype=np.float32)
    given = np.concatenate([scale[homes == device] for device in range(devices)])
    inputs = [x, named, owners, given.reshape(-1, 1, 1, 1)]
    expected = (x * scale[named[..., 0, :]][..., np.newaxis]).transpose(2, 0, 1, 3)

    text = program(mesh, axis, tokens, devices).replace("xf32", f"x{element}")
    (golden,) = Golden(source_module(Source("in.mlir", text))).run("main", inputs)
    assert np.array_equal(golden, expected)
    binary = read_ttnn(compile_module(Source("in.mlir", text), CompileOptions("m")).flatbuffer)
    (lowered,) = Interpreter(binary).run("main", inputs)
    np.testing.assert_allclose(lowered, expected, rtol=0.02)


def _function(module: ModuleOp) -> FuncOp:
    return next(op for op in module.walk() if isinstance(op, FuncOp))


def _calls(text: str) -> set[str]:
    """All-to-all calls for experts in the C++."""
    source = compile_module(Source("in.mlir", text), CompileOptions("m")).files["src/m.cpp"]
    return set(re.findall(r"ttnn::(all_to_all_\w+)\(", source))


def test_rows_of_bf16_travel_by_calls_of_the_library() -> None:
    text = program((1, 4), 1, (8, 4), 4).replace("xf32", "xbf16")
    assert _calls(text) == {"all_to_all_dispatch", "all_to_all_combine"}
    # The library has experts on all devices of a mesh, in rows of bf16.
    assert not _calls(program((1, 4), 1, (8, 4), 4))
    assert not _calls(program((2, 2), 0, (4, 3), 2).replace("xf32", "xbf16"))


@pytest.mark.parametrize(
    ("tokens", "part", "calls"),
    [
        pytest.param("1x2x4", "1x2x2", set[str](), id="sequences of several batches"),
        pytest.param("1x1x4", "1x1x2", {"all_to_all_combine"}, id="a sequence"),
        pytest.param("1x4x3", "1x2x3", {"all_to_all_combine"}, id="batches"),
    ],
)
def test_the_library_counts_tokens_device_after_device(
    tokens: str, part: str, calls: set[str]
) -> None:
    """Tokens sharded along the sequences of several batches are not in device order."""
    made, named = f"2x{tokens[2:]}x32xbf16", f"{tokens}x2xi32"
    result = f"2x{part[2:]}x32xbf16"
    text = f"""module attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>}} {{
  func.func @main(%made: tensor<{made}>, %named: tensor<{named}>, %owners: tensor<1x1x4x2xi32>) -> tensor<{result}> {{
    %0 = "ttir.all_to_all_combine"(%made, %named, %owners) <{{num_devices = 2 : i64, cluster_axis = 1 : i64, num_experts_per_tok = 2 : i64}}> : (tensor<{made}>, tensor<{named}>, tensor<1x1x4x2xi32>) -> tensor<{result}>
    return %0 : tensor<{result}>
  }}
}}"""  # noqa: E501
    assert _calls(text) == calls
    module = source_module(Source("in.mlir", text))
    inputs = draw_inputs(module, _function(module), 0)
    (golden,) = Golden(module).run("main", list(inputs.values()))
    binary = read_ttnn(compile_module(Source("in.mlir", text), CompileOptions("m")).flatbuffer)
    (lowered,) = Interpreter(binary).run("main", list(inputs.values()))
    np.testing.assert_allclose(lowered, golden, rtol=0.02)


def test_a_drawn_mapping_has_each_expert_on_one_device() -> None:
    text = program((1, 4), 1, (8, 4), 4)
    module = source_module(Source("in.mlir", text))
    owners = draw_inputs(module, _function(module), 0)["owners"]
    assert np.array_equal(owners[0, 0].argmax(1), np.repeat(np.arange(4), EXPERTS // 4))
    assert owners.sum() == EXPERTS


def test_devices_are_those_of_the_mesh() -> None:
    text = program((1, 4), 1, (8, 4), 4).replace("num_devices = 4", "num_devices = 2")
    text = text.replace("1x8x4x", "1x4x4x")
    with pytest.raises(CompileError, match="2 devices along the axis 1, and the mesh of 1x4"):
        compile_module(Source("in.mlir", text), CompileOptions("m"))


def test_tokens_divide_among_devices() -> None:
    """Each device gets its share of the results for batches or for sequences."""
    made, named, owned = "2x3x3x32xf32", "1x3x3x2xi32", "1x1x4x2xi32"
    result = "2x1x4x32xf32"
    text = f"""module attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>}} {{
  func.func @main(%made: tensor<{made}>, %named: tensor<{named}>, %owners: tensor<{owned}>) -> tensor<{result}> {{
    %0 = "ttir.all_to_all_combine"(%made, %named, %owners) <{{num_devices = 2 : i64, cluster_axis = 1 : i64, num_experts_per_tok = 2 : i64}}> : (tensor<{made}>, tensor<{named}>, tensor<{owned}>) -> tensor<{result}>
    return %0 : tensor<{result}>
  }}
}}"""  # noqa: E501
    message = r"a batch or a sequence that divides among 2 devices, found \(3, 3\)"
    with pytest.raises(CompileError, match=message):
        compile_module(Source("in.mlir", text), CompileOptions("m"))


def both(text: str, inputs: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Outputs of the module and of its flatbuffer."""
    golden = Golden(source_module(Source("in.mlir", text))).run("main", inputs)
    binary = read_ttnn(compile_module(Source("in.mlir", text), CompileOptions("m")).flatbuffer)
    return list(golden), list(Interpreter(binary).run("main", inputs))


@pytest.mark.parametrize("mesh", [(1, 2), (2, 2)])
def test_devices_remap_the_scores_of_their_experts(mesh: tuple[int, int]) -> None:
    """Each device has the scores of its own experts, and whether any of four tokens goes there."""
    generator = np.random.default_rng(1)
    devices, (batch, sequence) = mesh[0] * mesh[1], (2, 6)
    local, groups = EXPERTS // devices, 3
    scores, named = f"1x{batch}x{sequence}x{EXPERTS}xf32", f"1x{batch}x{sequence}x{K}xi32"
    owned = f"1x1x{EXPERTS}x{devices}xi32"
    kept, reduced = f"1x{batch}x{sequence}x{local}xf32", f"1x1x{groups}x{local}xf32"
    wholes = [f"{devices}x{each[2:]}" for each in (kept, reduced)]
    lines = [
        f'%a, %b = "ttir.moe_expert_token_remap"(%scores, %owners, %named) <{{reduction_size = 4 : '
        f"i64}}> : (tensor<{scores}>, tensor<{owned}>, tensor<{named}>) -> (tensor<{kept}>, "
        f"tensor<{reduced}>)",
        *(
            shard(name, value, whole, part, "0, 0", f"{devices}, 1, 1, 1", True)
            for name, value, whole, part in zip(
                ("%c", "%d"), ("%a", "%b"), wholes, (kept, reduced), strict=True
            )
        ),
        f"return %c, %d : tensor<{wholes[0]}>, tensor<{wholes[1]}>",
    ]
    body = "\n    ".join(lines)
    text = f"""module attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = {mesh[0]}x{mesh[1]}>]>}} {{
  func.func @main(%scores: tensor<{scores}>, %owners: tensor<{owned}>, %named: tensor<{named}>) -> (tensor<{wholes[0]}>, tensor<{wholes[1]}>) {{
    {body}
  }}
}}"""  # noqa: E501
    x = generator.integers(1, 9, (1, batch, sequence, EXPERTS)).astype(np.float32)
    chosen = np.argsort(generator.random((1, batch, sequence, EXPERTS)))[..., :K].astype(np.int32)
    homes = generator.permutation(np.repeat(np.arange(devices), local))
    owners = np.eye(devices, dtype=np.int32)[homes].reshape(1, 1, EXPERTS, devices)
    hits = (chosen[0, ..., np.newaxis] == np.arange(EXPERTS)).any(axis=2)
    any_of_four = hits.reshape(groups, 4, EXPERTS).any(axis=1)
    order = [np.flatnonzero(homes == device) for device in range(devices)]
    expected = [
        np.stack([np.where(hits, x[0], 0)[..., here] for here in order]),
        np.stack([any_of_four[np.newaxis, :, here] for here in order]),
    ]
    for found in both(text, [x, owners, chosen]):
        for value, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize(("mesh", "axis"), [((1, 4), 1), ((2, 2), 0)])
def test_devices_compute_what_their_experts_make_of_all_tokens(
    mesh: tuple[int, int], axis: int
) -> None:
    """Experts that no device along the axis has make nothing; each device gets its own tokens."""
    generator = np.random.default_rng(2)
    devices, ring, tokens, inner = mesh[0] * mesh[1], mesh[axis], 8, 32
    local, here = EXPERTS // devices, tokens // ring
    x, named = f"{tokens}x{HIDDEN}xf32", f"{tokens}x{K}xi32"
    weights = [f"1x{EXPERTS}x{HIDDEN}x{inner}xf32"] * 2 + [f"1x{EXPERTS}x{inner}x{HIDDEN}xf32"]
    parts = [each.replace(f"1x{EXPERTS}", f"1x{local}", 1) for each in weights]
    part, whole = f"{K}x{here}x{HIDDEN}xf32", f"{devices * K}x{here}x{HIDDEN}xf32"
    lines = [
        shard(f"%p{index}", f"%w{index}", weight, own, "1, 1", f"1, {devices}, 1, 1", False)
        for index, (weight, own) in enumerate(zip(weights, parts, strict=True))
    ]
    lines += [
        f'%a = "ttir.moe_compute"(%x, %named, %scores, %owners, %p0, %p1, %p2) <{{layer_id = 0 : '
        f"ui32, output_height_shard_dim = 1 : ui32, intermediate_size = {inner} : ui32, "
        f"cluster_axis = {axis} : ui32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 0, "
        f"0, 0>}}> : (tensor<{x}>, tensor<{named}>, tensor<{tokens}x{K}xf32>, "
        f"tensor<1x{EXPERTS}xi32>, {', '.join(f'tensor<{each}>' for each in parts)}) -> "
        f"tensor<{part}>",
        shard("%b", "%a", whole, part, "0, 0", f"{devices}, 1, 1", True),
        f"return %b : tensor<{whole}>",
    ]
    body = "\n    ".join(lines)
    taken = ", ".join(f"%w{index}: tensor<{each}>" for index, each in enumerate(weights))
    text = f"""module attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = {mesh[0]}x{mesh[1]}>]>}} {{
  func.func @main(%x: tensor<{x}>, %named: tensor<{named}>, %scores: tensor<{tokens}x{K}xf32>, %owners: tensor<1x{EXPERTS}xi32>, {taken}) -> tensor<{whole}> {{
    {body}
  }}
}}"""  # noqa: E501
    rows = generator.normal(size=(tokens, HIDDEN)).astype(np.float32)
    chosen = np.argsort(generator.random((tokens, EXPERTS)))[:, :K].astype(np.int32)
    owners = np.repeat(np.arange(devices), local)
    given = [
        (generator.normal(size=tuple(map(int, each.split("x")[:-1]))) / 6).astype(np.float32)
        for each in weights
    ]
    gate, up = (np.einsum("th,ehi->eti", rows, each[0]) for each in given[:2])
    made = np.einsum("eti,eih->eth", gate / (1 + np.exp(-gate)) * up, given[2][0])
    expected = np.zeros((devices, K, here, HIDDEN), np.float32)
    for device in range(devices):
        place = np.unravel_index(device, mesh)
        for k, token in np.ndindex(K, here):
            row = int(place[axis]) * here + token
            expert = chosen[row, k]
            # The chip of the expert is in the row or the column of this one.
            if np.unravel_index(owners[expert], mesh)[1 - axis] == place[1 - axis]:
                expected[device, k, token] = made[expert, row]
    scores = np.zeros((tokens, K), np.float32)
    inputs = [rows, chosen, scores, owners.astype(np.int32)[np.newaxis], *given]
    (golden,), (lowered,) = both(text, inputs)
    expected = expected.reshape(golden.shape)
    np.testing.assert_allclose(golden, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(lowered, expected, rtol=0.05, atol=0.02)


def test_experts_are_on_devices_of_the_mesh() -> None:
    text = """module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>} {
  func.func @main(%a: tensor<1x2x4x8xf32>, %b: tensor<1x1x8x4xi32>, %c: tensor<1x2x4x2xi32>) -> tensor<1x2x4x2xf32> {
    %0, %1 = "ttir.moe_expert_token_remap"(%a, %b, %c) <{reduction_size = 4 : i64}> : (tensor<1x2x4x8xf32>, tensor<1x1x8x4xi32>, tensor<1x2x4x2xi32>) -> (tensor<1x2x4x2xf32>, tensor<1x1x2x2xf32>)
    return %0 : tensor<1x2x4x2xf32>
  }
}"""  # noqa: E501
    with pytest.raises(CompileError, match="names 4 devices, and the mesh of 1x2 has 2"):
        compile_module(Source("in.mlir", text), CompileOptions("m"))
