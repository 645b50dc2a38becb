"""`--system-desc` decides what is compiled for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ttcodegen.cli.ttcodegen import main
from ttcodegen.flatbuffer.reader import read_ttnn_file
from ttcodegen.flatbuffer.system import read_ttsys, write_ttsys
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import SystemDescription

WORMHOLE = default_system("wormhole_b0")
EXP = """
func.func @f(%x: tensor<512x512xbf16>) -> tensor<512x512xbf16> {
  %0 = "ttir.exp"(%x) : (tensor<512x512xbf16>) -> tensor<512x512xbf16>
  return %0 : tensor<512x512xbf16>
}
"""
CACHE = """
func.func @f(%c: tensor<8x2x64x32xbf16>, %u: tensor<1x8x2x32xbf16>, %i: tensor<8xi32>)
    -> tensor<8x2x64x32xbf16> {
  %0 = "ttir.paged_update_cache"(%c, %u, %i) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}>
      : (tensor<8x2x64x32xbf16>, tensor<1x8x2x32xbf16>, tensor<8xi32>) -> tensor<8x2x64x32xbf16>
  return %0 : tensor<8x2x64x32xbf16>
}
"""


def changed(**fields: object) -> SystemDescription:
    """A wormhole whose chip has other values of some fields."""
    return replace(WORMHOLE, chips=(replace(WORMHOLE.chip, **fields),))


@pytest.fixture
def described(tmp_path: Path):
    """Compiles a text for a description; gives the exit status and the project's folder."""

    def run(text: str, system: SystemDescription | str, *options: str) -> tuple[int, Path]:
        source, file, out = tmp_path / "m.mlir", tmp_path / "m.ttsys", tmp_path / "out"
        source.write_text(text)
        if not isinstance(system, str):
            file.write_bytes(write_ttsys(system))
            system = str(file)
        arguments = [str(source), "-o", str(out), "--no-format", "--system-desc", system]
        return main([*arguments, *options]), out

    return run


def test_a_card_by_name(described) -> None:
    status, out = described(EXP, "blackhole")
    assert status == 0
    assert json.loads((out / "manifest.json").read_text())["arch"] == "blackhole"
    binary = read_ttnn_file(out / "model.ttnn")
    # What a blackhole has by default need not be reported.
    assert (binary.arch, bytes(binary.system)) == ("blackhole", b"")


def test_the_description_stands_in_the_flatbuffer(described) -> None:
    system = changed(grid=(7, 8), harvested_rows=(1, 11))
    status, out = described(EXP, system)
    assert status == 0
    assert read_ttsys(read_ttnn_file(out / "model.ttnn").system) == system


def test_the_system_of_the_module_counts_unless_another_is_named(described, capsys) -> None:
    from ttcodegen.foundation.diagnostics import Source
    from ttcodegen.ops.dialects import load_dialects
    from ttcodegen.parsing import parse_module
    from ttcodegen.transforms.module_text import module_text
    from ttcodegen.transforms.registry import passes_of, step

    module = parse_module(Source("m.mlir", EXP))
    registered = step("ttcore-register-device", mock_system_desc_arch="blackhole")
    for pass_ in passes_of(registered):
        pass_.apply(load_dialects(), module)
    status, out = described(module_text(module), "wormhole_b0")
    assert status == 0
    assert json.loads((out / "manifest.json").read_text())["arch"] == "wormhole_b0"
    source = out.parent / "own.mlir"
    source.write_text(module_text(module))
    assert main([str(source), "-o", str(out), "--no-format"]) == 0
    assert json.loads((out / "manifest.json").read_text())["arch"] == "blackhole"


def test_two_architectures_are_one_too_many(described, capsys) -> None:
    assert described(EXP, WORMHOLE, "--arch", "wormhole_b0")[0] == 0
    assert described(EXP, WORMHOLE, "--arch", "blackhole")[0] == 1
    error = capsys.readouterr().err
    assert "the system description is of a wormhole_b0, not of a blackhole" in error


def test_programs_that_do_not_fit_are_refused_before_anything_is_written(described, capsys) -> None:
    chip = {"dram_channel_size": 65536, "dram_unreserved_end": 65536}
    assert described(EXP, changed(**chip))[0] == 1
    error = capsys.readouterr().err
    assert "m.mlir:3:8: error: 'f' does not fit into the DRAM of wormhole_b0" in error
    assert not described(EXP, changed(**chip))[1].exists()


def test_data_types_that_the_chip_lacks_are_refused(described, capsys) -> None:
    assert described(EXP, changed(supported_data_types=("f32", "si32")))[0] == 1
    assert "error: the chip has no tensors of bf16" in capsys.readouterr().err


@pytest.mark.parametrize(("columns", "cores"), [(8, "({0, 0}, {7, 0})"), (7, "({0, 0}, {6, 0})")])
def test_shards_lie_on_the_grid_that_there_is(described, columns: int, cores: str) -> None:
    harvested = () if columns == 8 else (9,)
    status, out = described(CACHE, changed(grid=(8, columns), harvested_columns=harvested))
    assert status == 0
    assert f"ttnn::CoreRange{cores}" in (out / "src" / "tuning.hpp").read_text()


def test_shards_need_cores(described, capsys) -> None:
    assert described(CACHE, changed(grid=(1, 4)))[0] == 1
    assert "a tensor is divided among 8 cores, the chip has 4" in capsys.readouterr().err


def test_shards_need_memory(described, capsys) -> None:
    # A tile of bf16 has two KiB; one KiB is left.
    assert described(CACHE, changed(l1_unreserved_base=1464 * 1024 - 1024))[0] == 1
    assert "does not fit into the L1 of wormhole_b0" in capsys.readouterr().err


def test_a_file_that_is_none_is_refused(described, capsys) -> None:
    assert described(EXP, str(Path(__file__)))[0] == 1
    assert "this is not a .ttsys file" in capsys.readouterr().err
