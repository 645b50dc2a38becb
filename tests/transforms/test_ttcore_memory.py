"""Memory of tensors in the banks of a device."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.dialect import set_system
from ttcodegen.dialects.ttcore.shards import Layout, Shards
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.parsing import parse_module
from ttcodegen.systems.cards import default_system
from ttcodegen.transforms.device import Banks, banks_of
from ttcodegen.transforms.registry import passes_of, step

WORMHOLE = default_system("wormhole_b0").chip
BLACKHOLE = default_system("blackhole").chip


@pytest.mark.parametrize(
    ("placement", "banks"),
    [
        # 24 tiles on 12 banks.
        (TensorPlacement((128, 192), DataType.BFLOAT16), Banks("dram", 2 * 2048)),
        # One tile more begins another round.
        (TensorPlacement((32, 25 * 32), DataType.FLOAT32), Banks("dram", 3 * 4096)),
        (TensorPlacement((1,), DataType.BFLOAT8_B), Banks("dram", 1088)),
        (TensorPlacement((), DataType.BFLOAT16), Banks("dram", 2048)),
        # Rows of 6 bytes begin at multiples of 32.
        (TensorPlacement((24, 3), DataType.BFLOAT16, Layout.ROW_MAJOR), Banks("dram", 2 * 32)),
        (TensorPlacement((5, 32), DataType.UINT8).with_(buffer_type="l1"), Banks("l1", 1024)),
        (
            TensorPlacement((1, 1, 96, 64), DataType.BFLOAT16).height_sharded(
                Shards.by_rows(3, (32, 64))
            ),
            Banks("l1", 4096),
        ),
        (TensorPlacement((5, 5), DataType.FLOAT32).on_host(), None),
    ],
)
def test_banks(placement: TensorPlacement, banks: Banks | None) -> None:
    assert banks_of(placement, WORMHOLE) == banks


def test_banks_of_another_chip() -> None:
    placement = TensorPlacement((24, 3), DataType.BFLOAT16, Layout.ROW_MAJOR)
    assert banks_of(placement, BLACKHOLE) == Banks("dram", 3 * 64)


def compiled(body: str, arguments: str, result: str) -> None:
    """Runs the whole pipeline."""
    text = f"func.func @f({arguments}) -> {result} {{\n{body}\n}}"
    module, context = parse_module(Source("m.mlir", text)), load_dialects()
    for pass_ in passes_of(step("ttir-to-ttnn-common-pipeline")):
        pass_.apply(context, module)


# 4 GiB each; a wormhole has 12 of them less a bit.
T = "tensor<65536x32768xbf16>"


def test_what_is_deallocated_makes_room() -> None:
    ops = [f'%{i + 1} = "ttir.exp"(%{i}) : ({T}) -> {T}' for i in range(4)]
    weight = "{ttcore.argument_type = #ttcore.argument_type<parameter>}"
    with pytest.raises(CompileError, match=r"needs 12\.00 GiB here"):
        compiled("\n".join([*ops, f"return %4 : {T}"]), f"%0: {T}", T)
    # Three quarters of it, though eight tensors are made.
    t = "tensor<65536x24576xbf16>"
    ops = [f'%{i + 1} = "ttir.exp"(%{i}) : ({t}) -> {t}' for i in range(8)]
    compiled("\n".join([*ops, f"return %8 : {t}"]), f"%0: {t}", t)
    with pytest.raises(CompileError, match="does not fit"):
        compiled(
            "\n".join([*ops, f'%9 = "ttir.add"(%8, %w) : ({t}, {t}) -> {t}', f"return %9 : {t}"]),
            f"%0: {t}, %w: {t} {weight}",
            t,
        )


def test_the_message_tells_what_takes_the_memory() -> None:
    weight = "{ttcore.argument_type = #ttcore.argument_type<parameter>}"
    body = (
        f'%0 = "ttir.exp"(%w) : ({T}) -> {T}\n%1 = "ttir.add"(%x, %0) : ({T}, {T}) -> {T}\n'
        f"return %1 : {T}"
    )
    with pytest.raises(CompileError) as error:
        compiled(body, f"%x: {T}, %w: {T} {weight}", T)
    (diagnostic,) = error.value.diagnostics
    notes = [note.message for note in diagnostic.notes]
    assert notes == ["inputs: 4.00 GiB", "weights: 4.00 GiB", "constants: 4.00 GiB"]


def test_circular_buffers_need_memory() -> None:
    text = """
        func.func @f(%x: tensor<64x64xbf16>, %y: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
          %0 = "ttir.add"(%x, %y) : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
          return %0 : tensor<64x64xbf16>
        }"""
    module, context = parse_module(Source("m.mlir", text)), load_dialects()
    system = default_system("wormhole_b0")

    def leave(size: int) -> None:
        chip = replace(system.chip, l1_unreserved_base=system.chip.l1_size - size)
        set_system(module, replace(system, chips=(chip,)))

    # Two tiles each of both inputs and the result have 12 KiB.
    leave(12 * 1024)
    for pass_ in passes_of("ttir-to-ttmetal-pipeline"):
        pass_.apply(context, module)
    leave(12 * 1024 - 1)
    (check,) = passes_of("ttcore-check-memory")
    with pytest.raises(CompileError, match="does not fit into the L1") as error:
        check.apply(context, module)
    (note,) = error.value.diagnostics[0].notes
    # On all 64 cores.
    assert note.message == "circular buffers: 768.00 KiB"
