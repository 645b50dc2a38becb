"""Random numbers of device programs: what the generator gives, and what kernels make of it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.ttmetal.function_text import call, function, integers, tensor
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.ops.core.engine import are_kept, random_bits, scale_of_range, uniform_numbers

T = tensor((64, 96), "bf16")


def kernels(*functions: str) -> dict[str, str]:
    """The kernels of a module, by the names of their files."""
    source = Source("module.mlir", f"module {{\n{''.join(functions)}}}\n")
    files = compile_module(source, CompileOptions("module", target="ttmetal")).files
    assert "src/cpu_functions.cpp" not in files
    return {path: text for path, text in files.items() if path.startswith("kernels/")}


def step_by_step(seed: int, count: int) -> list[int]:
    """The generator of the emulated device, one number after the other."""
    state, found = seed, list[int]()
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        bits = (state ^ state >> 16) * 0x7FEB352D % 2**32
        found.append(bits ^ bits >> 15)
    return found


def test_each_tile_has_a_generator_that_goes_through_it_face_by_face() -> None:
    bits = random_bits(2**32 - 2, (2, 40, 33))
    for tile, (batch, row, column) in enumerate(np.ndindex(2, 2, 2)):
        expected = np.array(step_by_step((2**32 - 2 + tile) % 2**32, 1024))
        faces = expected.reshape(2, 2, 16, 16).transpose(0, 2, 1, 3).reshape(32, 32)
        found = bits[batch, row * 32 : row * 32 + 32, column * 32 : column * 32 + 32]
        np.testing.assert_array_equal(found, faces[: found.shape[0], : found.shape[1]])


@pytest.mark.parametrize("shape", [(), (1,), (70,), (3, 1), (2, 0, 5)])
def test_tensors_of_any_shape_get_numbers(shape: tuple[int, ...]) -> None:
    assert random_bits(1, shape).shape == shape


@pytest.mark.parametrize("bfloat16", [True, False])
@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-1, 3), (-1, 0), (-2, -1), (0.5, 0.6), (-3, -2.99), (0, 1e-30)]
)
def test_no_number_is_rounded_to_the_end_of_the_range(
    low: float, high: float, bfloat16: bool
) -> None:
    scale = scale_of_range(low, high, bfloat16)
    most = np.float32(1 - 2.0**-23) * np.float32(scale) + np.float32(low)
    rounded = np.float32(most.astype(ml_dtypes.bfloat16)) if bfloat16 else most
    assert rounded < np.float32(high)
    numbers = uniform_numbers(5, (300, 300), low, scale)
    assert numbers.min() >= np.float32(low)
    middle, width = (low + high) / 2, high - low
    assert abs(numbers.mean() - middle) < 0.01 * width + (2**-8 * abs(high) if bfloat16 else 0)


def test_a_dropout_keeps_by_its_odds() -> None:
    assert abs(are_kept(0, (500, 500), 0.3).mean() - 0.7) < 0.005


def test_kernels_set_the_generator_for_each_tile() -> None:
    """So what is drawn is the same on any grid of cores."""
    dropped = call(
        "dropout", ["%0"], [T], T, prob="0.25 : f32", scale="1.5 : f32", seed="21 : ui32"
    )
    found = kernels(function("f", [T], [call("exp", ["%a0"], [T], T), dropped]))
    text = found["kernels/compute_exp_dropout.cpp"]
    assert "for (uint32_t tile = first; tile < first + count; ++tile)" in text
    assert "dropout_kernel_init(tile + 21);" in text
    assert "dropout_tile(dst0, 0x1fffffff, __builtin_bit_cast(uint32_t, 1.5f));" in text


def test_the_number_of_a_tile_is_its_place_in_the_tensor() -> None:
    """Also where tiles are counted in another order, so that fewer of them are read."""
    whole, row = tensor((8, 512, 512), "bf16"), tensor((512, 512), "bf16")
    ops = [
        call("add", ["%a0", "%a1"], [whole, row], whole),
        call("dropout", ["%0"], [whole], whole, prob="0.5 : f32"),
    ]
    text = kernels(function("f", [whole, row], ops))["kernels/compute_add_dropout.cpp"]
    assert "counted along batch0, then column, then row" in text
    assert "const uint32_t column = tile / 8;" in text
    assert "const uint32_t batch0 = tile % 8;" in text
    assert "dropout_kernel_init(column + batch0 * 256);" in text


def test_what_draws_nothing_but_numbers_has_no_reader() -> None:
    drawn = call("rand", [], [], T, size=integers((64, 96)), seed="7 : ui32")
    found = kernels(function("f", [], [drawn]))
    assert sorted(path for path in found if "/blocks/" not in path) == [
        "kernels/compute_rand.cpp",
        "kernels/write_rand.cpp",
    ]


@pytest.mark.parametrize("op", ["matmul", "sum", "softmax"])
def test_what_is_drawn_is_computed_once_for_each_tile(op: str) -> None:
    """Programs around products and reductions compute tiles in other orders, or several times."""
    square, column = tensor((64, 64), "bf16"), tensor((64, 1), "bf16")
    dropped = call("dropout", ["%0"], [square], square, prob="0.5 : f32")
    rooted = {
        "matmul": call("matmul", ["%a0", "%a0"], [square] * 2, square),
        "sum": call("sum", ["%1"], [square], column, dim_arg=integers((1,)), keep_dim="true"),
        "softmax": call("softmax", ["%a0"], [square], square, dimension="1 : si32"),
    }[op]
    ops = [call("abs", ["%a0"], [square], square), dropped, rooted]
    if op != "sum":
        ops = [rooted, dropped]
    found = kernels(function("f", [square], ops))
    [text] = [text for text in found.values() if "dropout_tile(" in text]
    assert "matmul_tiles" not in text
    assert "reduce_tile" not in text
