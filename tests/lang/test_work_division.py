"""Work that TT-NN divides among cores, and descriptions of tensors."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lang.running import failure, run_text
from ttcodegen.lang import ttnn
from ttcodegen.lang.simulator.tensors import CoreCoord, CoreRange, CoreRangeSet


def _set(*corners: tuple[int, int, int, int]) -> CoreRangeSet:
    return CoreRangeSet([CoreRange(CoreCoord(a, b), CoreCoord(c, d)) for a, b, c, d in corners])


@pytest.mark.parametrize(
    ("units", "row_wise", "expected"),
    [
        # 3 columns of 2 rows, cores column by column.
        (12, False, (6, _set((0, 0, 2, 1)), _set((0, 0, 2, 1)), _set(), 2, 0)),
        (8, False, (6, _set((0, 0, 2, 1)), _set((0, 0, 0, 1)), _set((1, 0, 2, 1)), 2, 1)),
        (7, False, (6, _set((0, 0, 2, 1)), _set((0, 0, 0, 0)),
                    _set((0, 1, 0, 1), (1, 0, 2, 1)), 2, 1)),
        (3, False, (3, _set((0, 0, 0, 1), (1, 0, 1, 0)), _set((0, 0, 0, 1), (1, 0, 1, 0)),
                    _set(), 1, 0)),
        (8, True, (6, _set((0, 0, 2, 1)), _set((0, 0, 1, 0)),
                   _set((2, 0, 2, 0), (0, 1, 2, 1)), 2, 1)),
        (0, False, (0, _set(), _set(), _set(), 0, 0)),
    ],
)  # fmt: skip
def test_work_is_divided_as_evenly_as_possible(
    units: int, row_wise: bool, expected: tuple[object, ...]
) -> None:
    assert ttnn.split_work_to_cores(CoreCoord(3, 2), units, row_wise) == expected
    assert ttnn.split_work_to_cores(_set((0, 0, 2, 1)), units, row_wise) == expected


def test_the_first_cores_of_a_grid() -> None:
    found = ttnn.num_cores_to_corerangeset(5, CoreCoord(8, 2), row_wise=False)
    assert found == _set((0, 0, 1, 1), (2, 0, 2, 0))
    found = ttnn.num_cores_to_corerangeset(9, CoreCoord(8, 2), row_wise=True)
    assert found == _set((0, 0, 7, 0), (0, 1, 0, 1))


def test_a_specification_of_a_tensor() -> None:
    placed = ttnn.create_sharded_memory_config(
        (64, 64), ttnn.CoreGrid(y=2, x=1), ttnn.ShardStrategy.HEIGHT
    )
    spec = ttnn.TensorSpec((64, 64), ttnn.float32, ttnn.TILE_LAYOUT, placed)
    tensor = ttnn.from_torch(np.ones((64, 64)), spec=spec)
    assert ttnn.is_sharded(tensor)
    assert tensor.is_sharded()
    assert ttnn.get_memory_config(tensor) == placed
    assert tensor.spec == spec
    assert not ttnn.is_sharded(ttnn.ones((32, 32)))


SHARDS = """import ttl, ttnn, numpy as np
cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 1))])
config = ttnn.MemoryConfig(ttnn.BufferType.L1, ttnn.NdShardSpec((1, 32, 32), cores))
x = ttnn.from_torch(np.ones((2, 64, 32)), ttnn.float32, layout="tile", memory_config=config)
"""


def test_shards_of_several_dimensions() -> None:
    held = run_text(SHARDS + "is_sharded = ttnn.is_sharded(x)\n")
    assert held["is_sharded"] is True
    message = "the compiler places tensors in shards of two dimensions"
    assert message in failure(SHARDS + "x.placement\n")
