"""Dataflow buffers that are made of data types, and of the memory of tensors."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lang.compiling import checked, refusal
from tests.lang.running import failure, operation, run_text
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.project.cpu_backend import CPUBackend

PROGRAM = """import ttl, ttnn, numpy as np
placed = ttnn.create_sharded_memory_config((128, 64), CORES, ttnn.ShardStrategy.KIND)
@ttl.operation(grid=GRID)
def grow(x: ttnn.Tensor, y: ttnn.Tensor) -> None:
    x_dfb = ttl.make_tensor_backed_dfb(x, shape=(1, WIDTH), block_count=COUNT)
    m_dfb = ttl.make_dfb(ttnn.float32, shape=(1, WIDTH))
    y_dfb = ttl.make_tensor_backed_dfb(y, shape=(1, WIDTH), block_count=COUNT)
    @ttl.datamovement()
    def read():
        x_dfb.publish()
    @ttl.compute()
    def compute():
        for _ in range(COUNT):
            with x_dfb.wait() as x_blk, m_dfb.reserve() as m_blk:
                half = ttl.block.fill(0.5, shape=(1, WIDTH), dtype=ttnn.float32,
                                      layout=ttnn.TILE_LAYOUT, tile=(32, 32))
                m_blk.store(ttl.math.exp(x_blk, scale=0.5) + half)
            with m_dfb.wait() as m_blk, y_dfb.reserve() as y_blk:
                y_blk.store(m_blk)
elements = np.arange(128 * 64, dtype=np.float32).reshape(128, 64) / 4096
def tensor(array):
    return ttnn.from_torch(array, ttnn.float32, layout=ttnn.TILE_LAYOUT, memory_config=placed)
x, y = tensor(elements), tensor(np.zeros((128, 64)))
grow(x, y)
"""
KINDS = {
    "HEIGHT": {"CORES": "ttnn.CoreGrid(y=2, x=1)", "GRID": "(1, 2)", "WIDTH": "2", "COUNT": "2"},
    "WIDTH": {"CORES": "ttnn.CoreGrid(y=1, x=2)", "GRID": "(2, 1)", "WIDTH": "1", "COUNT": "4"},
    "BLOCK": {"CORES": "ttnn.CoreGrid(y=2, x=2)", "GRID": "(2, 2)", "WIDTH": "1", "COUNT": "2"},
}


def _program(kind: str, text: str = PROGRAM) -> str:
    for name, value in KINDS[kind].items():
        text = text.replace(name, value)
    # The last one: a kind has the name of one of the numbers.
    return text.replace("KIND", kind)


@pytest.mark.parametrize("kind", KINDS)
def test_the_memory_of_a_shard(kind: str) -> None:
    held = run_text(_program(kind))
    elements = np.arange(128 * 64).reshape(128, 64) / 4096
    found = held["y"].elements()  # type: ignore[attr-defined]
    np.testing.assert_allclose(found, np.exp(elements / 2) + 0.5, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_buffers_on_device(kind: str, cpu_backend: CPUBackend) -> None:
    (found,) = checked(Source("grow.py", _program(kind)))
    assert found.agreement.passed


PART = PROGRAM.replace(
    "block_count=COUNT)\n    m_dfb", "block_count=1, byte_offset=8192)\n    m_dfb"
)
PART = PART.replace("y, shape=(1, WIDTH), block_count=COUNT", "y, shape=(1, WIDTH)")
PART = PART.replace("range(COUNT)", "range(1)")


def test_a_part_of_a_shard() -> None:
    held = run_text(_program("HEIGHT", PART))
    elements = np.arange(128 * 64).reshape(128, 64)[32:64] / 4096
    found = held["y"].elements()  # type: ignore[attr-defined]
    np.testing.assert_allclose(found[:32], np.exp(elements / 2) + 0.5, rtol=1e-6)
    assert not found[32:64].any()
    message = "the blocks of 'x_dfb' are a part of the shards of its tensor only"
    assert f"program.py:5:13: error: {message}" in refusal(_program("HEIGHT", PART))


def test_a_node_without_a_shard_has_no_memory_of_the_tensor() -> None:
    text = _program("HEIGHT", PROGRAM.replace("GRID", "(1, 3)"))
    message = "node (0, 2) has no whole shard of the tensor whose memory 'y_dfb' has"
    assert message in failure(text)


LARGE = """
placed = ttnn.create_sharded_memory_config((256, 832), ttnn.CoreGrid(y=1, x=1),
                                           ttnn.ShardStrategy.HEIGHT)
large = ttnn.zeros((256, 832), ttnn.float32, layout=ttnn.TILE_LAYOUT,
                   memory_config=placed)
"""


def test_a_buffer_in_the_memory_of_a_tensor_takes_none_of_its_own() -> None:
    made = "own_dfb = ttl.make_dfb(ttnn.float32, (8, 26), 1)\n"
    made += "large_dfb = ttl.make_tensor_backed_dfb(large, (8, 26))\n"
    made += "a_dfb = ttl.make_dfb(ttnn.bfloat16, (1, 1), 1)\n"
    text = operation(made + COPY)
    run_text(text.replace("@ttl.operation", LARGE + "@ttl.operation", 1))


COPY = """
@ttl.datamovement()
def read():
    with a_dfb.reserve() as a_blk:
        ttl.copy(x[1, 1], a_blk).wait()
@ttl.datamovement()
def write():
    with a_dfb.wait() as a_blk:
        ttl.copy(a_blk, y[0, 1]).wait()
"""


@pytest.mark.parametrize("dtype", ["ttnn.bfloat16", "'bf16'"])
def test_a_buffer_of_a_data_type(dtype: str) -> None:
    made = f"a_dfb = ttl.make_dfb({dtype}, (1, 1), 1, tile=(32, 32))"
    held = run_text(operation(made + COPY))
    x, y = (held[name].elements() for name in "xy")  # type: ignore[attr-defined]
    np.testing.assert_array_equal(y[:32, 32:], x[32:, 32:])


GROUPED = """
group = ttl.make_dfb_allocation_group()
b_dfb = ttl.make_dfb(ttnn.float32, (8, 20), 1, allocation_group=group)
c_dfb = ttl.make_dfb(ttnn.float32, (8, 20), 2, allocation_group=group)
a_dfb = ttl.make_dfb("bf16", (1, 1))
"""


def test_a_group_takes_the_memory_of_its_largest_buffer() -> None:
    text = operation(GROUPED + COPY)
    run_text(text)
    alone = text.replace(", allocation_group=group", "")
    assert "bytes of L1, but a node has" in failure(alone)
    message = "the compiler gives each dataflow buffer memory of its own, 'b_dfb' too"
    assert message in refusal(text)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ("ttl.make_dfb(3, (1, 1))", "ttl.make_dfb takes a data type, such as ttnn.bfloat16, not 3"),
        ("ttl.make_dfb('bf16', (1, 1), tile=(16, 32))",
         "ttl.make_dfb has tiles of 32x32 elements, not (16, 32)"),
        ("ttl.make_tensor_backed_dfb(x, (1, 1))",
         "ttl.make_tensor_backed_dfb takes a tiled tensor in L1 that is sharded by height, width"),
        ("ttl.make_dfb('bf16', (1, 1), allocation_group=1)",
         "allocation_group is what ttl.make_dfb_allocation_group gives, not int"),
    ],
)  # fmt: skip
def test_buffers_that_are_refused(made: str, message: str) -> None:
    assert message in failure(operation(f"a_dfb = {made}"))


def test_a_buffer_with_memory_of_its_own_is_not_published() -> None:
    body = "@ttl.datamovement()\ndef read():\n    x_dfb.publish()"
    assert "'x_dfb' has memory of its own: there is nothing to publish" in failure(operation(body))
