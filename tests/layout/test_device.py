"""Devices as grids: the examples of the device specification, and where bytes are."""

from __future__ import annotations

from itertools import product

import pytest
from xdsl.ir.affine import AffineMap
from xdsl.parser import AttrParser, Parser

from tests.dialects.texts import parse, text_of
from ttcodegen.dialects.core.attribute_syntax import affine_map_text, parse_affine_map
from ttcodegen.dialects.ttcore.device import DeviceAttr
from ttcodegen.layout import Device, TensorLayout
from ttcodegen.layout.device import PhysicalCore
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.systems.cards import default_system


def affine(text: str) -> AffineMap:
    parser: AttrParser = Parser(load_dialects(), text)
    return parse_affine_map(parser)


def device_text(grid: str, map_: str, mesh: str, chips: str) -> str:
    return (
        f"#ttcore.device<workerGrid = #ttcore.grid<{grid}, {map_}>, meshShape = {mesh}, "
        f"chipIds = [{chips}]>"
    )


EXAMPLES = {
    "one chip": (
        Device.create(),
        device_text("8x8", "(d0, d1) -> (0, d0, d1)", "1", "0"),
    ),
    "data parallel over batch": (
        Device.create((2, 1, 1)),
        device_text("2x8x8", "(d0, d1, d2) -> (d0, d1, d2)", "2x1x1", "0, 1"),
    ),
    "data parallel over 2d": (
        Device.create((1, 2)),
        device_text(
            "8x16",
            "(d0, d1) -> ((d0 floordiv 8) * 2 + d1 floordiv 8, d0, d1 mod 8)",
            "1x2",
            "0, 1",
        ),
    ),
    "data parallel over 2d and batch": (
        Device.create((2, 1, 2)),
        device_text(
            "2x8x16",
            "(d0, d1, d2) -> (d0 * 2 + (d1 floordiv 8) * 2 + d2 floordiv 8, d1, d2 mod 8)",
            "2x1x2",
            "0, 1, 2, 3",
        ),
    ),
    "pipeline parallel": (
        Device.create((2, 2), chip_ids=(4, 5, 6, 7)),
        device_text(
            "16x16",
            "(d0, d1) -> ((d0 floordiv 8) * 2 + d1 floordiv 8, d0 mod 8, d1 mod 8)",
            "2x2",
            "4, 5, 6, 7",
        ),
    ),
    "transposed": (
        Device.create().reinterpret((8, 8), affine("(d0, d1) -> (0, d1, d0)")),
        device_text("8x8", "(d0, d1) -> (0, d1, d0)", "1", "0"),
    ),
    "extra wide": (
        Device.create().reinterpret(
            (1, 64), affine("(d0, d1) -> (0, d0 * 8 + d1 floordiv 8, d1 mod 8)")
        ),
        device_text("1x64", "(d0, d1) -> (0, d0 * 8 + d1 floordiv 8, d1 mod 8)", "1", "0"),
    ),
    "extra tall and transposed": (
        Device.create().reinterpret(
            (64, 1), affine("(d0, d1) -> (0, d1 * 8 + d0 floordiv 8, d0 mod 8)")
        ),
        device_text("64x1", "(d0, d1) -> (0, d1 * 8 + d0 floordiv 8, d0 mod 8)", "1", "0"),
    ),
    "staircase": (
        Device.create().reinterpret((8, 8), affine("(d0, d1) -> (0, d0, (d0 + d1) mod 8)")),
        device_text("8x8", "(d0, d1) -> (0, d0, (d0 + d1) mod 8)", "1", "0"),
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_the_specification(name: str) -> None:
    device, text = EXAMPLES[name]
    assert str(device) == text
    older = text.replace("ttcore.", "tt.")
    module = parse(f"module attributes {{tt.device = {older}}} {{}}")
    attribute = module.attributes["ttcore.device"]
    assert isinstance(attribute, DeviceAttr)
    assert text in text_of(module)
    again = Device.of(attribute.data)
    for core in product(*(range(side) for side in device.grid)):
        assert again.physical_core(core) == device.physical_core(core)


@pytest.mark.parametrize("name", EXAMPLES)
def test_cores_are_found_again(name: str) -> None:
    device, _ = EXAMPLES[name]
    cores = list(product(*(range(side) for side in device.grid)))
    for core in cores:
        assert device.logical_cores[device.physical_core(core)] == core
    chips = {core.chip for core in device.logical_cores}
    assert chips == set(range(len(device.chip_ids)))
    assert len(cores) == 64 * len(chips)


@pytest.mark.parametrize(
    "mesh", [(1,), (2,), (3, 1), (1, 3), (2, 3), (2, 2, 2), (3, 1, 2), (2, 2, 1, 1)]
)
@pytest.mark.parametrize("chip", [(8, 8), (10, 13), (1, 4)])
def test_sweep_of_meshes(mesh: tuple[int, ...], chip: tuple[int, int]) -> None:
    """Every core of every chip is one place of the grid."""
    device = Device.create(mesh, chip)
    expected = {
        PhysicalCore(number, row, column)
        for number in range(len(device.chip_ids))
        for row in range(chip[0])
        for column in range(chip[1])
    }
    assert set(device.logical_cores) == expected


def test_a_tensor_over_two_chips() -> None:
    """Half of the batch on each chip, on 2x4 of its cores."""
    device = Device.create((2, 1, 1))
    layout = TensorLayout.create(
        (16, 3, 64, 128), collapse_intervals=[(1, -1)], grid=(2, 2, 4)
    ).tilize((32, 32), "bfp_bf8")
    assert layout.memref_shape == (8, 3, 1)
    assert device.locate(layout, (0, 0, 0, 0))[0] == PhysicalCore(0, 0, 0)
    assert device.locate(layout, (8, 2, 63, 127))[0] == PhysicalCore(1, 1, 3)


def test_a_tensor_goes_over_to_the_next_chip() -> None:
    device = Device.create((1, 2))
    layout = TensorLayout.create((256, 1024), grid=(4, 16)).tilize((32, 32), "bfp_bf8")
    assert layout.memref_shape == (2, 2)
    assert device.locate(layout, (0, 511))[0] == PhysicalCore(0, 0, 7)
    assert device.locate(layout, (0, 512))[0] == PhysicalCore(1, 0, 0)


def test_a_transposed_grid_transposes_without_moving_data() -> None:
    device = EXAMPLES["transposed"][0]
    layout = TensorLayout.create((64, 64), grid=(8, 8))
    plain = Device.create()
    for index in ((0, 63), (20, 40)):
        there, _ = device.locate(layout, index)
        here, _ = plain.locate(layout, (index[1], index[0]))
        assert there == here


def test_grids_have_to_fit() -> None:
    device = Device.create()
    with pytest.raises(ValueError, match="1x64 does not fit on the device's, 8x8"):
        device.locate(TensorLayout.create((32, 64), grid=(1, 64)), (0, 0))
    wide = EXAMPLES["extra wide"][0]
    core, _ = wide.locate(TensorLayout.create((32, 64), grid=(1, 64)), (0, 63))
    assert core == PhysicalCore(0, 7, 7)
    with pytest.raises(ValueError, match=r"\(8, 0\) is no core of the grid 8x8"):
        device.physical_core((8, 0))


def test_views_of_cores_that_there_are_not_are_refused() -> None:
    device = Device.create()
    with pytest.raises(ValueError, match="which there is not"):
        device.reinterpret((9, 8), affine("(d0, d1) -> (0, d0, d1)"))
    with pytest.raises(ValueError, match="the same core"):
        device.reinterpret((8, 8), affine("(d0, d1) -> (0, d0, 0)"))
    with pytest.raises(ValueError, match="leads from the grid"):
        device.reinterpret((8, 8), affine("(d0, d1) -> (d0, d1)"))
    with pytest.raises(ValueError, match="has 2 chips, but 1 are given"):
        Device.create((1, 2), chip_ids=(0,))


def test_l1_addresses() -> None:
    device = Device.create((1, 2))
    assert device.l1_address((3, 9), 100, 1024) == (PhysicalCore(1, 3, 1), 1124)
    text = affine_map_text(Device.create().l1_map)
    assert text == "(d0, d1, d2)[s0] -> (0, d0, d1, d2 + s0)"


def test_dram_pages_go_round_the_banks() -> None:
    device = Device.create(dram_banks=12)
    layout = TensorLayout.create((64, 128), "f32", grid=(2, 2), memory_space="dram").tilize()
    page, base = 4096, 1 << 20
    assert layout.shard_bytes == 2 * page
    for number, core in enumerate(product(range(2), range(2))):
        for byte in (0, 5, page, page + 17):
            flat = number * layout.shard_bytes + byte
            bank, address = device.dram_address(layout, core, byte, base, page)
            assert bank == flat // page % 12
            assert address == base + flat // page // 12 * page + flat % page


def test_dram_map_of_the_specification() -> None:
    """The map takes shapes and the size of an element as symbols, as in the reference system."""
    device = Device.create(dram_banks=12)
    map_ = device.dram_map
    assert (map_.num_dims, map_.num_symbols) == (3, 7)
    grid, shard, page, base, element = (4, 4), (16, 64), 1024, 4096, 4
    seen: set[tuple[int, ...]] = set()
    for core in product(range(4), range(4)):
        for byte in range(0, 16 * 64 * element, 512):
            place = map_.eval([*core, byte], [*grid, *shard, page, base, element])
            assert place[:2] == (0, 0)
            assert place[2] < 12
            seen.add(place)
    assert len(seen) == 16 * (16 * 64 * element // 512)


def test_devices_of_systems() -> None:
    for arch, grid, banks in (("wormhole_b0", (8, 8), 12), ("blackhole", (10, 11), 8)):
        device = Device.of_system(default_system(arch))
        assert (device.grid, device.dram_banks) == (grid, banks)


def test_maps_of_memories_read_back() -> None:
    full = DeviceAttr(Device.create((1, 2)).full_description)
    module = parse(f"module attributes {{a = {full}}} {{}}")
    attribute = module.attributes["a"]
    assert isinstance(attribute, DeviceAttr)
    assert text_of(module) == text_of(parse(text_of(module)))
    assert attribute.data.dram_map is not None
    symbols = [2, 2, 16, 16, 1024, 0, 4]
    expected = Device.create((1, 2)).dram_map.eval([1, 1, 700], symbols)
    assert attribute.data.dram_map.eval([1, 1, 700], symbols) == expected
