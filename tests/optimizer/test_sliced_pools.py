"""Pools that the library computes in slices through DRAM."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ttcodegen.cli.rt import main
from ttcodegen.cli.ttcodegen import main as ttcodegen
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.flatbuffer.program import Binary
from ttcodegen.flatbuffer.system import load_system
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.lowered import read_flatbuffer
from ttcodegen.optimizer.call import LibraryCall
from ttcodegen.optimizer.programs.pool_slices import image_bytes, is_sliced
from ttcodegen.systems.cards import performance_of
from ttcodegen.systems.releases import RELEASES

MEASURED = [
    ("n150", "max", (2, 1175, 336, 32), (2, 2, 0), False, True),
    ("n150", "avg", (8, 604, 605, 16), (3, 2, 1), False, True),
    ("n150", "max", (1, 113, 226, 512), (7, 7, 0), False, True),
    ("n150", "avg", (2, 149, 149, 1024), (5, 2, 2), True, True),
    ("n150", "max", (1, 436, 436, 96), (5, 2, 2), True, True),
    ("n150", "avg", (4, 203, 58, 1024), (5, 2, 2), False, True),
    ("n150", "max", (8, 430, 123, 64), (7, 7, 0), False, True),
    ("n150", "max", (1, 124, 251, 1024), (3, 1, 1), False, True),
    ("n150", "max", (1, 740, 211, 256), (2, 2, 0), True, True),
    ("n150", "avg", (1, 272, 546, 96), (5, 2, 2), True, True),
    ("n150", "avg", (1, 119, 119, 1024), (5, 2, 2), False, False),
    ("n150", "max", (1, 92, 92, 1024), (3, 1, 1), True, False),
    ("n150", "max", (2, 137, 277, 256), (2, 2, 0), True, False),
    ("n150", "max", (2, 211, 60, 256), (3, 2, 1), True, False),
    ("n150", "max", (1, 309, 309, 96), (3, 1, 1), False, False),
    ("n150", "max", (2, 72, 73, 1024), (7, 7, 0), False, False),
    ("n150", "avg", (8, 181, 182, 48), (3, 1, 1), False, False),
    ("n150", "max", (8, 138, 279, 32), (7, 7, 0), False, False),
    ("n150", "avg", (2, 217, 62, 512), (5, 2, 2), False, False),
    ("n150", "max", (4, 710, 202, 32), (2, 2, 0), False, False),
    ("p150", "avg", (1, 685, 686, 96), (5, 2, 2), False, True),
    ("p150", "max", (1, 113, 226, 512), (7, 7, 0), False, True),
    ("p150", "avg", (2, 179, 359, 256), (2, 2, 0), False, True),
    ("p150", "avg", (4, 203, 58, 1024), (5, 2, 2), False, True),
    ("p150", "avg", (1, 287, 576, 256), (3, 1, 1), False, True),
    ("p150", "max", (1, 740, 211, 256), (2, 2, 0), True, True),
    ("p150", "max", (1, 400, 801, 96), (7, 7, 0), True, True),
    ("p150", "max", (2, 1140, 326, 64), (7, 7, 0), False, True),
    ("p150", "max", (1, 556, 158, 512), (7, 7, 0), False, True),
    ("p150", "avg", (4, 174, 49, 1024), (3, 1, 1), False, True),
    ("p150", "max", (2, 1175, 336, 32), (2, 2, 0), False, False),
    ("p150", "max", (8, 155, 44, 512), (2, 2, 0), False, False),
    ("p150", "avg", (1, 891, 1783, 16), (2, 2, 0), False, False),
    ("p150", "max", (1, 147, 294, 512), (5, 2, 2), False, False),
    ("p150", "max", (2, 688, 688, 32), (3, 1, 1), False, False),
    ("p150", "avg", (1, 272, 546, 96), (5, 2, 2), True, False),
    ("p150", "max", (1, 232, 464, 64), (5, 2, 2), False, False),
    ("p150", "max", (2, 414, 830, 16), (5, 2, 2), True, False),
    ("p150", "avg", (2, 157, 158, 256), (7, 7, 0), False, False),
    ("p150", "avg", (4, 435, 124, 64), (5, 2, 2), True, False),
]
"""Machine, pool, image, kernel, stride and padding, whether the image is in tiles, and whether the
packages gave the result as an image (0.70.1 on n150, 0.81.1 on p150)."""


def pool(
    kind: str,
    image: tuple[int, int, int, int],
    window: tuple[int, int, int],
    in_tiles: bool,
    buffer: str = "dram",
) -> LibraryCall:
    (count, height, width, channels), (kernel, stride, padding) = image, window
    high, wide = ((size + 2 * padding - kernel) // stride + 1 for size in (height, width))
    bf16 = DataType.BFLOAT16
    rows = (1, 1, count * height * width, channels)
    layout = Layout.TILE if in_tiles else Layout.ROW_MAJOR
    result = TensorPlacement((1, 1, count * high * wide, channels), bf16, Layout.ROW_MAJOR)
    attributes = {
        "batch_size": count,
        "input_height": height,
        "input_width": width,
        "channels": channels,
        "kernel_size": [kernel, kernel],
        "stride": [stride, stride],
        "padding": [padding, padding],
    }
    operand = TensorPlacement(rows, bf16, layout, buffer_type=buffer)
    return LibraryCall(f"{kind}_pool2d", (operand,), (result,), attributes)


@pytest.mark.parametrize(("machine", "kind", "image", "window", "in_tiles", "sliced"), MEASURED)
def test_pools_are_in_slices_where_the_library_slices_them(
    machine: str,
    kind: str,
    image: tuple[int, int, int, int],
    window: tuple[int, int, int],
    in_tiles: bool,
    sliced: bool,
) -> None:
    chip = load_system(machine).chip
    room = performance_of(chip).usable_l1
    assert is_sliced(pool(kind, image, window, in_tiles), chip, room) == sliced


def test_an_image_in_l1_is_never_sliced() -> None:
    chip = load_system("n150").chip
    call = pool("max", (2, 1175, 336, 32), (2, 2, 0), in_tiles=False, buffer="l1")
    assert not is_sliced(call, chip, performance_of(chip).usable_l1)


def test_what_other_tensors_take_of_l1_is_not_free() -> None:
    chip = load_system("n150").chip
    call = pool("max", (4, 710, 202, 32), (2, 2, 0), in_tiles=False)
    size = image_bytes(call, chip)
    assert not is_sliced(call, chip, size)
    assert is_sliced(call, chip, size - 1)


WINDOW = (
    "kernel = array<i32: 2, 2>, stride = array<i32: 2, 2>, padding = array<i32: 0, 0, 0, 0>, "
    "dilation = array<i32: 1, 1>, ceil_mode = false"
)
MODULE = f"""
func.func @pooled(%x: tensor<1x512x512x128xbf16>, %z: tensor<1x1x65536x128xbf16>)
    -> tensor<1x1x65536x128xbf16> {{
  %0 = "ttir.max_pool2d"(%x) <{{{WINDOW}}}>
      : (tensor<1x512x512x128xbf16>) -> tensor<1x256x256x128xbf16>
  %1 = "ttir.reshape"(%0) <{{shape = [1 : i32, 1 : i32, 65536 : i32, 128 : i32]}}>
      : (tensor<1x256x256x128xbf16>) -> tensor<1x1x65536x128xbf16>
  %2 = "ttir.add"(%1, %z) : (tensor<1x1x65536x128xbf16>, tensor<1x1x65536x128xbf16>)
      -> tensor<1x1x65536x128xbf16>
  return %2 : tensor<1x1x65536x128xbf16>
}}
"""


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("machine", ["n150", "p150"])
def test_calls_after_a_sliced_pool_get_rows(machine: str, level: int) -> None:
    options = CompileOptions("m", optimize=level, system=load_system(machine))
    binary = read_flatbuffer(compile_module(Source("<m>", MODULE), options).flatbuffer)
    assert isinstance(binary, Binary)
    (program,) = [each for each in binary.programs if each.kind == "entry"]
    pooled, flat = (
        next(each for each in program.operations if each.name == name)
        for name in ("ttnn.max_pool2d", "ttnn.add")
    )
    assert program.tensors[pooled.results[0]].type.shape == (1, 256, 256, 128)
    assert [program.tensors[each].type.shape for each in flat.operands] == [(1, 1, 65536, 128)] * 2


@pytest.mark.slow
def test_the_library_takes_calls_after_a_sliced_pool(
    tmp_path: Path, ttnn_pythons: Callable[[str], str]
) -> None:
    module, out = tmp_path / "pooled.mlir", tmp_path / "out"
    module.write_text(MODULE)
    for release in RELEASES:
        for level in ("0", "2"):
            given = [str(module), "-o", str(out), "--tt-metal", release, "--optimize", level]
            assert ttcodegen([*given, "--machine", "p150", "-q"]) == 0
            assert main(["validate", str(out), "--python", ttnn_pythons(release)]) == 0
