"""Convolutions and pools: what becomes of them, and where their weights are."""

from __future__ import annotations

import pytest

from tests.ttmetal.function_text import call, function, tensor
from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.ops.convolution.device_windows import WINDOW_PRODUCT, axes_of
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.parsing import parse_module
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import Step, passes_of

NUMBERS = {name: "array<i32: 1, 1>" for name in ("stride", "dilation")}


def convolution(channels: int, outputs: int, kernel: int, groups: int = 1) -> str:
    """A function with a convolution of an image of 32x32 positions."""
    size = 33 - kernel
    types = [
        tensor((1, 32, 32, channels), "bf16"),
        tensor((outputs, channels // groups, kernel, kernel), "bf16"),
    ]
    op = call(
        "conv2d",
        ["%a0", "%a1"],
        types,
        tensor((1, size, size, outputs), "bf16"),
        padding="array<i32: 0, 0, 0, 0>",
        groups=f"{groups} : i32",
        **NUMBERS,
    )
    return f"module {{\n{function('f', types, [op])}}}\n"


def compiled(text: str) -> CompiledModule:
    return compile_module(Source("f.mlir", text), CompileOptions("f", target="ttmetal"))


@pytest.mark.parametrize(
    ("channels", "kernel", "expected"), [(4, 3, []), (256, 1, [("ttir.permute",)])]
)
def test_weights_that_tiles_would_mostly_pad_are_put_in_order_on_the_cpu(
    channels: int, kernel: int, expected: list[tuple[str, ...]]
) -> None:
    module = compiled(convolution(channels, 64, kernel))
    assert [tuple(each["ops"]) for each in module.description.cpu_functions] == expected
    assert any("matmul" in path or "window_product" in path for path in module.files)


def test_groups_are_put_together_to_whole_tiles() -> None:
    module = parse_module(Source("f.mlir", convolution(96, 96, 3, groups=96)))
    steps = [Step("ttir-to-ttmetal-fe-pipeline", {})]
    PassRunner(load_dialects()).run(module, passes_of(*steps))
    [product] = [op for op in module.walk() if op.name == WINDOW_PRODUCT]
    assert product.parameter("groups") == 3  # pyright: ignore
    assert shape_of(product.operands[1].type) == (3, 3, 32, 96)
    assert [axis.count for axis in axes_of(product)] == [30, 30]  # pyright: ignore


def reader(channels: int, kernel: int) -> str:
    """The kernel that gathers the rows of a convolution's windows, 33 - `kernel` in each line."""
    files = compiled(convolution(channels, 32, kernel)).files
    return next(text for path, text in files.items() if "read_window" in path)


def test_tiles_are_filled_only_where_no_window_gives_elements() -> None:
    assert "fill_padding<uint16_t>(address, 31, 32, 0)" in reader(32, 2)
    assert "fill_padding<uint16_t>(address, 31, 4, 0)" in reader(4, 2)
    assert "fill_padding<uint16_t>(address, 30, channels, 0)" in reader(40, 3)


def test_gathered_rows_stay_for_all_columns_if_there_is_work_for_all_cores() -> None:
    text = convolution(32, 128, 2).replace("1x32x32x", "4x32x32x").replace("1x31x31x", "4x31x31x")
    files = compiled(text).files
    compute = next(text for path, text in files.items() if "compute_window" in path)
    assert "cb_wait_front(cb_left, 4)" in compute
    assert "matmul_tiles(cb_left, cb_right, step, 0, dst0)" in compute
