"""Fabric traffic of collectives, and the estimated time of programs with them."""

from __future__ import annotations

import pytest

from tests.examples.mesh_models import Mesh, llama_layer
from tests.ops.test_experts_on_meshes import HIDDEN, K, program
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.cost import FunctionEstimate
from ttcodegen.flatbuffer.system import load_system
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.systems.cards import (
    MACHINES,
    links_along,
    links_between,
    machine,
    performance,
)


def estimate(text: str, hosts: tuple[int, int] = (1, 1)) -> FunctionEstimate:
    compiled = compile_module(Source("in.mlir", text), CompileOptions("m", hosts=hosts))
    found = compiled.description.functions[0].estimate
    assert found is not None
    return found


def collective(name: str, given: str, result: str, mesh: str = "1x4") -> str:
    return f"""module attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = {mesh}>]>}} {{
  func.func @main(%x: tensor<1024x1024xbf16>) -> tensor<{result}xbf16> {{
    %0 = "ttir.{name}"(%x) <{{{given}}}> : (tensor<1024x1024xbf16>) -> tensor<{result}xbf16>
    return %0 : tensor<{result}xbf16>
  }}
}}"""


SIZE = 1024 * 1024 * 2
SUM = "reduce_type = #ttcore.reduce_type<sum>"


@pytest.mark.parametrize(
    ("name", "given", "result", "mesh", "sent"),
    [
        ("all_gather", "all_gather_dim = 0 : si32, cluster_axis = 1 : ui32", "4096x1024", "1x4",
         3 * SIZE),
        ("reduce_scatter", f"{SUM}, scatter_dim = 0 : si32, cluster_axis = 1 : ui32", "256x1024",
         "1x4", 3 * SIZE // 4),
        ("all_reduce", f"{SUM}, cluster_axis = 1 : ui32", "1024x1024", "1x4", 2 * 3 * SIZE // 4),
        # Rows gather two tensors, then columns gather what rows have.
        ("all_gather", "all_gather_dim = 0 : si32", "4096x1024", "2x2", SIZE + 2 * SIZE),
    ],
)  # fmt: skip
def test_bytes_over_the_busiest_link(
    name: str, given: str, result: str, mesh: str, sent: int
) -> None:
    found = estimate(collective(name, given, result, mesh))
    (call,) = [call for call in found.calls if call.op == f"ttnn.{name}"]
    assert call.cost.link_bytes == sent
    speed = performance("wormhole_b0")
    least = sent / (2 * speed.link_bandwidth)
    assert least < call.cost.link_seconds < least + 10e-6
    assert call.cost.bound == "link"


def test_a_tensor_goes_from_chip_to_chip() -> None:
    given = "source_target_pairs = dense<[[0, 3]]> : tensor<1x2xi64>"
    found = estimate(collective("collective_permute", given, "1024x1024"))
    (call,) = [call for call in found.calls if call.op == "ttnn.point_to_point"]
    assert call.cost.link_bytes == SIZE
    speed = performance("wormhole_b0")
    least = SIZE / (2 * speed.link_bandwidth)
    hop = links_along("wormhole_b0", 4, 1, 1).hop
    assert least + 3 * hop <= call.cost.link_seconds < least + 1e-5


def test_chips_exchange_shares() -> None:
    """Two chips of the one half of a line have a quarter for each of the two of the other."""
    given = (
        "split_dim = 1 : si32, concat_dim = 0 : si32, split_count = 4 : si32, "
        "replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>"
    )
    found = estimate(collective("all_to_all", given, "4096x256"))
    (call,) = [call for call in found.calls if call.op == "ttnn.all_to_all_async_generic"]
    assert call.cost.link_bytes == SIZE


def test_one_packet_passes_all_chips_of_a_line() -> None:
    given = "replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>"
    found = estimate(collective("collective_broadcast", given, "1024x1024"))
    (call,) = [call for call in found.calls if call.op == "ttnn.broadcast"]
    assert call.cost.link_bytes == SIZE


def test_tokens_travel_to_some_of_the_chips() -> None:
    """Two of four chips on average have an expert of a token, and all get the list of them."""
    text = program((1, 4), 1, (8, 4), 4).replace("xf32", "xbf16")
    calls = {call.op: call.cost for call in estimate(text).calls}
    tokens, row, results = 2 * 4, HIDDEN * 2, K * 2 * 4
    assert calls["ttnn.all_to_all_dispatch"].link_bytes == 3 * (tokens * row // 2 + tokens * K * 2)
    assert calls["ttnn.all_to_all_combine"].link_bytes == 4 * results * row // 4


def test_a_program_on_one_chip_has_no_links() -> None:
    assert "link_us" not in estimate(llama_layer()).to_json()


@pytest.mark.parametrize("mesh", [(1, 2), (2, 4)])
def test_links_overlap_with_what_chips_compute(mesh: Mesh) -> None:
    entry = estimate(llama_layer(mesh)).to_json()
    chips = sum(call.cost.chip_seconds for call in estimate(llama_layer(mesh)).calls) * 1e6
    assert 0 < entry["link_us"] < entry["time_us"]
    assert entry["overlapped_us"] == pytest.approx(max(chips, entry["link_us"]), abs=0.01)
    assert entry["overlapped_us"] <= entry["time_us"]
    assert entry["overlapped_bound"] == "chip"


# Machines


@pytest.mark.parametrize(
    ("name", "arch", "mesh"),
    [
        ("n150", "wormhole_b0", (1, 1)),
        ("n300", "wormhole_b0", (1, 2)),
        ("T3000", "wormhole_b0", (2, 4)),
        ("galaxy", "wormhole_b0", (8, 4)),
        ("p150", "blackhole", (1, 1)),
    ],
)
def test_systems_have_names(name: str, arch: str, mesh: Mesh) -> None:
    system = load_system(name)
    assert system.arch == arch
    assert len(system.chip_indices) == mesh[0] * mesh[1]
    assert system.chip_coordinates[-1][2:] == (mesh[0] - 1, mesh[1] - 1)


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(CompileError, match="there is no system 'n299'"):
        load_system("n299")


@pytest.mark.parametrize(
    ("name", "mesh", "fits"),
    [
        ("n150", "1x2", False),
        ("n300", "1x2", True),
        ("n300", "2x4", False),
        ("t3000", "2x4", True),
        ("galaxy", "4x8", True),
        ("galaxy", "8x4", True),
    ],
)
def test_a_mesh_of_more_chips_than_the_system_has_is_refused(
    name: str, mesh: str, fits: bool
) -> None:
    text = collective("all_reduce", SUM, "1024x1024", mesh)
    options = CompileOptions("m", system=load_system(name))
    if fits:
        assert compile_module(Source("in.mlir", text), options).flatbuffer
        return
    with pytest.raises(CompileError, match="the system has"):
        compile_module(Source("in.mlir", text), options)


def test_links_are_those_of_the_smallest_machine() -> None:
    assert [links_between("wormhole_b0", chips) for chips in (2, 4, 8, 32)] == [2, 2, 2, 4]
    assert len({each.name for each in MACHINES}) == len(MACHINES)
    assert machine("t3k") == machine("t3000")


@pytest.mark.parametrize(("axis", "links"), [(0, 1), (1, 4)])
def test_a_line_that_passes_hosts_has_the_links_between_them(axis: int, links: int) -> None:
    """Two Galaxies one above the other: columns pass both hosts, rows stay on one."""
    given = f"{SUM}, cluster_axis = {axis} : ui32"
    text = collective("all_reduce", given, "1024x1024", "8x8")
    bandwidth = performance("wormhole_b0").link_bandwidth
    for hosts, count in (((1, 1), 4), ((2, 1), links)):
        (call,) = [each for each in estimate(text, hosts).calls if "all_reduce" in each.op]
        sent = call.cost.link_bytes / (count * bandwidth)
        hops = 2 * 7 * links_along("wormhole_b0", 64, hosts[0], 1).hop
        assert call.cost.link_seconds == pytest.approx(sent + hops)


def test_over_the_whole_mesh_each_axis_has_its_own_links() -> None:
    text = collective("all_reduce", SUM, "1024x1024", "8x8")
    alone = [
        collective("all_reduce", f"{SUM}, cluster_axis = {axis} : ui32", "1024x1024", "8x8")
        for axis in (0, 1)
    ]
    whole, *axes = (
        sum(call.cost.link_seconds for call in estimate(each, (2, 1)).calls)
        for each in (text, *alone)
    )
    assert whole == pytest.approx(sum(axes))


def test_a_hop_takes_what_was_measured_on_the_machine() -> None:
    # On one board, between boards, in a Galaxy, between four p150.
    assert [round(each.hop * 1e9) for each in MACHINES if each.chips > 1] == [
        *(650, 801, 894),
        *(681, 681, 681, 681),
    ]
