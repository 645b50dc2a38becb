"""Circular buffers of calls along rows and columns, as tt-metal 0.70.1 places them on the mocked
device."""

from __future__ import annotations

import pytest

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import ComputeConfig
from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.optimizer.call import LibraryCall
from ttcodegen.optimizer.circular_buffers import norm, softmax
from ttcodegen.systems.cards import default_system

CHIP = default_system("wormhole_b0").chip


def in_tiles(shape: tuple[int, ...], data_type: str) -> TensorPlacement:
    """A tensor in DRAM."""
    return TensorPlacement(shape, DataType.from_mlir(data_type), Layout.TILE)


def configured(wide: bool | None) -> dict[str, object]:
    """The attributes of a call that sums up in 32 bits, in 16, or as the library chooses."""
    return {} if wide is None else {"compute_config": ComputeConfig(fp32_dest_acc_en=wide)}


@pytest.mark.parametrize(
    ("shape", "axis", "data_type", "wide", "measured"),
    [
        ((1, 1, 32, 256), 3, "bf16", None, 92160),
        ((1, 1, 32, 256), 3, "bf16", True, 114688),
        ((1, 1, 32, 256), 3, "f32", None, 149504),
        ((1, 1, 32, 256), 3, "f32", False, 143360),
        ((1, 1, 32, 256), 3, "bfp_bf8", True, 99328),
        ((1, 1, 32, 992), 3, "bf16", True, 337920),
        ((1, 1, 32, 4096), 3, "bf16", True, 1343488),
        ((1, 1, 32, 4096), 3, "f32", False, 1126400),
        ((32, 131072), 1, "bf16", False, 540672),
        ((32, 131072), 1, "bf16", True, 864256),
        ((32, 131072), 1, "f32", False, 739328),
        ((32, 131072), 1, "bfp_bf8", True, 779776),
        ((2, 2, 1, 32, 512), 4, "bf16", None, 143360),
        ((2, 2, 1, 32, 512), 4, "f32", None, 286720),
        ((2, 2, 1, 32, 512), 4, "bfp_bf8", True, 184320),
        ((1, 1, 1024, 64), 2, "bf16", False, 274432),
        ((1, 1, 1024, 64), 2, "bf16", True, 411648),
        ((1, 1, 131072, 64), 2, "bfp_bf8", True, 35072),
        ((4, 64, 64), 0, "bf16", True, 30720),
        ((4, 64, 64), 0, "bfp_bf8", None, 10880),
        ((4, 64, 64), 0, "bfp_bf8", True, 25920),
    ],
)
def test_softmax_holds_what_sums_are_in_between(
    shape: tuple[int, ...], axis: int, data_type: str, wide: bool | None, measured: int
) -> None:
    tensor = in_tiles(shape, data_type)
    call = LibraryCall("softmax", (tensor,), (tensor,), {"dimension": axis, **configured(wide)})
    assert softmax(call, CHIP) == measured


@pytest.mark.parametrize(
    ("name", "width", "data_type", "wide", "alone", "with_residual"),
    [
        ("layer_norm", 768, "bf16", True, 319488, 401408),
        ("layer_norm", 768, "bf16", False, 212992, 278528),
        ("rms_norm", 768, "bf16", True, 212992, 294912),
        ("rms_norm", 256, "bf16", False, 94208, 159744),
        ("rms_norm", 2304, "f32", True, 671744, 737280),
    ],
)
def test_a_normalization_holds_the_sum_with_its_residual(
    name: str, width: int, data_type: str, wide: bool, alone: int, with_residual: int
) -> None:
    x = in_tiles((1, 1, 512, width), data_type)
    attributes = configured(wide)
    assert norm(LibraryCall(name, (x,), (x,), attributes), CHIP) == alone
    assert norm(LibraryCall(name, (x, x), (x,), attributes), CHIP) == with_residual
