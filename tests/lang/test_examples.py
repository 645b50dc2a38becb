"""Examples of the specification, and operations of models, in the simulator and in numpy."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.lang.running import PROGRAMS, run_file
from ttcodegen.lang.simulator.functions import MATH_FUNCTIONS
from ttcodegen.lang.simulator.locations import ProgramError


def check(name: str, *arguments: object, tolerance: float) -> None:
    results = run_file(name, *arguments)["results"]
    assert isinstance(results, dict)
    for found, expected in results.values():
        scale = np.abs(expected).max() or 1
        np.testing.assert_allclose(found, expected, atol=tolerance * scale)


GRIDS = [(1, 1), (8, 8), (3, 5)]


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("sizes", [(64, 32, 2), (64, 96, 1), (256, 64, 4)])
def test_elementwise_with_broadcast_and_reduce(
    sizes: tuple[int, ...], grid: tuple[int, ...]
) -> None:
    check("elementwise", *sizes, *grid, tolerance=1e-5)


def test_elementwise_with_more_blocks_than_y_has_room_for_is_a_deadlock() -> None:
    with pytest.raises(ProgramError) as raised:
        run_file("elementwise", 96, 32, 1, 1, 1)
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.message == "deadlock: no kernel can go on"
    notes = [note.message for note in diagnostic.notes]
    assert notes == [
        "the compute kernel 'elwise_compute' on node (0, 0) waits for a free block of 'y_dfb'",
        "the data movement kernel 'elwise_write' on node (0, 0) waits for a filled block of "
        "'z_dfb'",
        "the compute kernel 'elwise_compute' on node (0, 0) has not pushed the block of 'z_dfb' "
        "that it acquired by reserve here",
    ]


@pytest.mark.parametrize(
    ("blocks", "block"),
    [("1,1,1,1", "1,1,1,1"), ("2,1,2,3", "1,2,1,2"), ("4,6,1,2", "2,1,3,1")],
)
@pytest.mark.parametrize("grid", GRIDS)
def test_batched_matmul_with_bias(blocks: str, block: str, grid: tuple[int, int]) -> None:
    check("matmul", blocks, block, *grid, tolerance=2**-8)


@pytest.mark.parametrize("grid", [(1, 2), (8, 8), (3, 5)])
@pytest.mark.parametrize("kind", ["scatter", "scatter-gather", "forward", "permutation"])
def test_nets_of_pipes(kind: str, grid: tuple[int, int]) -> None:
    check("pipes", kind, *grid, tolerance=0)


@pytest.mark.parametrize("grid", [(2, 1), (8, 8), (3, 5)])
def test_gather(grid: tuple[int, int]) -> None:
    check("pipes", "gather", *grid, tolerance=0)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("sizes", [(1, 2, 3, 4, 2, 2), (2, 7, 4, 33, 3, 1)])
def test_upsample_with_group_transfers(sizes: tuple[int, ...], grid: tuple[int, int]) -> None:
    check("upsample", *sizes, *grid, tolerance=0)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i32"])
@pytest.mark.parametrize("sizes", [(6, 40, 3, 8, 1), (4, 64, 4, 16, 3), (5, 7, 1, 7, 1)])
def test_blocks_of_rows(sizes: tuple[int, ...], dtype: str) -> None:
    check("row_major", *sizes, dtype, tolerance=0)


@pytest.mark.parametrize("sizes", [(4, 5, 2, 1, 1), (2, 16, 1, 8, 8), (6, 31, 3, 3, 5)])
def test_tensor_slices(sizes: tuple[int, ...]) -> None:
    check("columns", *sizes, tolerance=0)


@pytest.mark.parametrize("grid", GRIDS)
def test_barriers_of_semaphores(grid: tuple[int, int]) -> None:
    check("barriers", *grid, tolerance=0)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("start", [0, 4])
def test_a_node_that_waits_for_all_others(grid: tuple[int, int], start: int) -> None:
    check("ordered", *grid, start, tolerance=0)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (3, 2, 3, 2), (20, 1, 2, 1)])
def test_attention(sizes: tuple[int, ...], grid: tuple[int, int]) -> None:
    check("attention", *sizes, *grid, tolerance=1e-5)


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (5, 3, 2, 2), (20, 1, 3, 5)])
@pytest.mark.parametrize(
    "kind",
    [
        "rms-norm-matmul",
        "layer-norm",
        "softmax",
        "masked-softmax",
        "gelu-matmul",
        "gated",
        "masked",
    ],
)
def test_operations_on_rows(kind: str, sizes: tuple[int, ...]) -> None:
    check("rows", kind, *sizes, tolerance=1e-5)


@pytest.mark.parametrize("kind", ["l1", "height", "width", "block", "ranges"])
def test_tensors_in_shards(kind: str) -> None:
    check("sharded", kind, tolerance=0)


@pytest.mark.parametrize("steps", [2, 5])
def test_sums_in_a_buffer_and_in_a_block(steps: int) -> None:
    check("accumulated", steps, tolerance=1e-5)


@pytest.mark.parametrize("grid", GRIDS)
def test_nodes_that_go_on_one_after_the_other(grid: tuple[int, int]) -> None:
    check("neighbors", *grid, tolerance=1e-6)


def test_numbers_that_loops_carry_and_conditions_change() -> None:
    check("counters", tolerance=1e-6)


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (3, 5, 17, 1), (8, 8, 3, 2)])
def test_formulas_of_models(sizes: tuple[int, ...]) -> None:
    check("formulas", *sizes, tolerance=1e-5)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("branches", ()),
        ("choices", ()),
        ("conditional", ()),
        ("gather_rows", ()),
        *(("halo", (nodes,)) for nodes in (1, 4, 8)),
        ("histogram", ()),
        ("integers", ()),
        ("integer_sums", ()),
        *(
            ("integer_functions", (kind, layout))
            for kind in ("int32", "uint32")
            for layout in ("TILE", "ROW_MAJOR")
        ),
        ("prefix_sum", ()),
        *(("ring", (nodes,)) for nodes in (2, 5, 8)),
        ("replaced", ()),
        ("running_sums", ()),
        ("split_k", ()),
        ("top1", ()),
        ("transposed_norm", ()),
    ],
)
def test_operations_of_other_kinds(name: str, arguments: tuple[object, ...]) -> None:
    check(name, *arguments, tolerance=1e-5)


def test_sixty_functions_and_operators_stand_in_programs() -> None:
    texts = [path.read_text() for path in PROGRAMS.glob("*.py")]
    found = {name for text in texts for name in re.findall(r"ttl\.((?:math|block)\.\w+)", text)}
    assert {f"math.{name}" for name in MATH_FUNCTIONS} <= found
    assert len(found) >= 59


@pytest.mark.parametrize("grid", [(2, 3), *GRIDS])
def test_what_differs_from_node_to_node(grid: tuple[int, int]) -> None:
    check("indices", *grid, tolerance=1e-6)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (4, 2, 3)])
def test_reductions_over_planes(sizes: tuple[int, ...]) -> None:
    check("planes", *sizes, tolerance=1e-5)
