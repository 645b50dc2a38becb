"""Descriptions of systems survive their file, and no file can lie about itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttcodegen.flatbuffer import system as ttsys
from ttcodegen.flatbuffer.system import read_ttsys, read_ttsys_file, write_ttsys
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import ARCHITECTURES, ChipChannel, SystemDescription, differences

WORMHOLE = default_system("wormhole_b0")
FILE = write_ttsys(WORMHOLE)


def changed(**fields: object) -> SystemDescription:
    """A wormhole whose chip has other values of some fields."""
    return replace(WORMHOLE, chips=(replace(WORMHOLE.chip, **fields),))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_description_survives_its_file(arch: str) -> None:
    system = default_system(arch)
    assert read_ttsys(write_ttsys(system)) == system.check()


def test_a_system_of_several_chips_survives() -> None:
    system = SystemDescription(
        WORMHOLE.cpus,
        (WORMHOLE.chip, replace(WORMHOLE.chip, grid=(7, 8), harvested_rows=(1, 11))),
        (0, 1),
        (1, 0),
        ((0, 0, 0, 0), (0, 0, 0, 1)),
        (ChipChannel(0, (0, 8), 1, (0, 0)),),
    )
    assert read_ttsys(write_ttsys(system)) == system


def test_the_same_description_gives_the_same_bytes() -> None:
    assert write_ttsys(read_ttsys(FILE)) == FILE


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"arch": "grayskull"}, "architecture 'grayskull', which is not supported"),
        ({"grid": (9, 9)}, "9 rows and 8 columns"),
        ({"harvested_rows": (1, 2, 11)}, "7 rows and 8 columns"),
        ({"num_dram_channels": 0}, "'num_dram_channels' is 0"),
        ({"noc_l1_address_align_bytes": 24}, "no power of two"),
        ({"l1_unreserved_base": 1 << 30}, "nothing of L1 is left"),
        ({"dram_unreserved_end": 100}, "enclose no DRAM"),
        ({"dram_unreserved_base": -1}, "negative"),
        ({"supported_data_types": ("f32", "f8")}, "no data type 'f8'"),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        read_ttsys(write_ttsys(changed(**fields)))


@pytest.mark.parametrize("number", [-1, 1 << 32])
def test_numbers_that_no_file_has_are_refused(number: int) -> None:
    for description in (
        replace(WORMHOLE, chip_capabilities=(number,)),
        replace(WORMHOLE, chip_coordinates=((0, 0, number, 0),)),
        changed(coord_translation_offsets=(number, 18)),
        changed(l1_size=number << 40),
    ):
        with pytest.raises(CompileError, match="the system description is inconsistent"):
            description.check()


def test_chips_that_are_not_there_are_refused() -> None:
    with pytest.raises(CompileError, match="names no chip"):
        read_ttsys(write_ttsys(replace(WORMHOLE, chip_indices=(1,))))
    with pytest.raises(CompileError, match="has no chips"):
        read_ttsys(write_ttsys(replace(WORMHOLE, chips=(), chip_indices=())))


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ttsys, "MINOR", 7)
    newer = write_ttsys(WORMHOLE)
    monkeypatch.undo()
    with pytest.raises(CompileError, match=r"version 1\.7, which is newer"):
        read_ttsys(newer)


def test_a_file_that_cannot_be_read_is_named(tmp_path) -> None:
    with pytest.raises(CompileError, match=r"cannot read '.*missing\.ttsys'"):
        read_ttsys_file(tmp_path / "missing.ttsys")
    path = tmp_path / "text.ttsys"
    path.write_text("no flatbuffer at all")
    with pytest.raises(CompileError, match=r"text\.ttsys': this is not a \.ttsys file"):
        read_ttsys_file(path)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(FILE) - 1), st.integers(0, 255))
def test_a_damaged_byte_is_read_or_refused(position: int, value: int) -> None:
    data = bytearray(FILE)
    data[position] = value
    try:
        read_ttsys(bytes(data))
    except CompileError:
        pass


@given(st.integers(0, len(FILE) - 8))  # after that only padding is cut
def test_a_cut_file_is_refused(length: int) -> None:
    with pytest.raises(CompileError):
        read_ttsys(FILE[:length])


def test_differences_name_the_fields() -> None:
    assert differences(WORMHOLE, WORMHOLE) == []
    assert differences(WORMHOLE, changed(grid=(7, 8))) == ["grid: (8, 8) and (7, 8)"]


def test_physical_cores_leave_out_what_is_harvested() -> None:
    chip = changed(harvested_rows=(2, 11)).chip
    assert [chip.physical_core(row, 0) for row in range(3)] == [(1, 1), (3, 1), (4, 1)]
    assert chip.physical_core(7, 7) == (10, 9)
    with pytest.raises(IndexError):
        chip.physical_core(8, 0)
