"""Operations with one body for all kernels, and operations that are made of others."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lang.compiling import checked
from tests.lang.running import failure, run_text
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.project.cpu_backend import CPUBackend

HEAD = """import ttl, ttnn, numpy as np
draw = np.random.default_rng(3).standard_normal
def tensor(array):
    return ttnn.from_torch(np.asarray(array), ttnn.float32, layout=ttnn.TILE_LAYOUT)
"""
COMPOSED = (
    HEAD
    + """
TILES = 4
def scaled_by(factor):
    @ttl.operation()
    def scaled(source_dfb, result_dfb):
        for _ in range(TILES):
            with source_dfb.wait() as blk, result_dfb.reserve() as result:
                result.store(ttl.math.exp(blk) * ttl.block.fill(factor, shape=(1, 1)))
    return scaled
scaled = scaled_by(0.5)
@ttl.operation()
def load(source, row, dfb):
    for tile in range(TILES):
        with dfb.reserve() as blk:
            xf = ttl.copy(source[row, tile], blk)
            xf.wait()
@ttl.operation(grid=(1, 2))
def combine(x: ttnn.Tensor, z: ttnn.Tensor, y: ttnn.Tensor) -> None:
    row = ttl.node(dims=1)
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    z_dfb = ttl.make_dataflow_buffer_like(z, shape=(1, 1))
    s_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=TILES)
    y_dfb = ttl.make_dfb(ttnn.float32, (1, 1))
    load(x, row, x_dfb)
    scaled(source_dfb=x_dfb, result_dfb=s_dfb)
    for tile in range(TILES):
        with z_dfb.reserve() as blk:
            transfers = ttl.GroupTransfer()
            transfers.add(ttl.copy(z[row, tile], blk))
            transfers.wait_all()
        with s_dfb.wait() as blk, z_dfb.wait() as other, y_dfb.reserve() as result:
            total = blk + other
            if tile > 1:
                total = total * blk
            result.store(total)
        with y_dfb.wait() as blk:
            ttl.copy(blk, y[row, tile]).wait()
x, z, y = tensor(draw((64, 128))), tensor(draw((64, 128))), tensor(np.zeros((64, 128)))
combine(x, z, y)
"""
)
PIPED = (
    HEAD
    + """
@ttl.operation(grid=(1, 2))
def exchange(x: ttnn.Tensor, y: ttnn.Tensor) -> None:
    n = ttl.node(dims=1)
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    got_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1))
    net = ttl.PipeNet([ttl.Pipe((0, k), (0, (k + 1) % 2)) for k in range(2)])
    x_blk = x_dfb.reserve()
    ttl.copy(x[n, 0], x_blk).wait()
    x_blk.push()
    with x_dfb.wait() as out:
        def send(pipe):
            ttl.copy(out, pipe).wait()
        net.if_src(send)
    with got_dfb.reserve() as got:
        def receive(pipe):
            ttl.copy(pipe, got).wait()
        net.if_dst(receive)
    with got_dfb.wait() as got, y_dfb.reserve() as result:
        result.store(-got)
    with y_dfb.wait() as result:
        ttl.copy(result, y[n, 0]).wait()
x, y = tensor(draw((64, 32))), tensor(np.zeros((64, 32)))
exchange(x, y)
"""
)


def _elements(text: str, names: str) -> list[np.ndarray]:
    held = run_text(text)
    return [held[name].elements() for name in names]  # type: ignore[attr-defined]


def test_operations_are_made_of_others() -> None:
    x, z, y = _elements(COMPOSED, "xzy")
    scaled = np.exp(x) / 2
    expected = scaled + z
    expected[:, 64:] *= scaled[:, 64:]
    np.testing.assert_allclose(y, expected, rtol=1e-5)


def test_one_body_for_all_kernels() -> None:
    x, y = _elements(PIPED, "xy")
    np.testing.assert_array_equal(y, -np.concatenate([x[32:], x[:32]]))


@pytest.mark.slow
@pytest.mark.parametrize("text", [COMPOSED, PIPED], ids=["composed", "piped"])
def test_one_body_on_device(text: str, cpu_backend: CPUBackend) -> None:
    (found,) = checked(Source("program.py", text))
    assert found.agreement.passed


OPERATION = (
    HEAD
    + """
@ttl.operation(grid=(1, 1))
def op(x: ttnn.Tensor, y: ttnn.Tensor) -> None:
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1))
BODY
op(tensor(draw((64, 32))), tensor(np.zeros((64, 32))))
"""
)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("with x_dfb.reserve() as blk:\n    pass",
         "program.py:10:10: error: nothing uses the block 'blk', so no kernel acquires it"),
        ("with x_dfb.wait() as blk, y_dfb.reserve() as out:\n    out.store(blk)\n"
         "    ttl.copy(blk, y[0, 0]).wait()",
         "program.py:10:10: error: the block 'blk' is computed with and copied: each statement "
         "belongs to one kernel"),
        ("with x_dfb.wait() as blk:\n    ttl.copy(-blk, y[0, 0]).wait()\n    z = -blk",
         "the block 'blk' is computed with and copied"),
        ("with x_dfb.reserve() as blk:\n    ttl.copy(x[0, 0], blk).wait()\n"
         "    row = int(ttl.raw_element_read(blk, 0, 0))\n"
         "with x_dfb.wait() as out:\n    ttl.copy(out, y[row, 0]).wait()",
         "program.py:14:9: error: this statement is one of the kernels 'read' and 'write': each "
         "belongs to one kernel"),
        ("with x_dfb.reserve() as blk:\n    ttl.copy(x[0, 0], blk).wait()\n"
         "    row = ttl.read_index(blk, 0, 0)\n"
         "if row > 0:\n    with x_dfb.wait() as out:\n        ttl.copy(out, y[0, 0]).wait()",
         "what the kernel 'read' finds out decides about statements of the kernel 'write'"),
    ],
)  # fmt: skip
def test_statements_that_belong_to_no_kernel_or_to_several(body: str, message: str) -> None:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    assert message in failure(OPERATION.replace("BODY", lines))


OTHER = """
@ttl.operation()
def other(dfb):
    with dfb.wait() as blk:
        ttl.copy(blk, y[0, 0]).wait()
@ttl.operation()
def endless(dfb):
    endless(dfb)
@ttl.operation()
def assigning(dfb):
    dfb = 3
@ttl.operation()
def with_kernels(dfb):
    @ttl.datamovement()
    def read():
        pass
y = ttnn.zeros((32, 32))
"""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("other()", "the operation 'other' takes the arguments (dfb), all of them"),
        ("other(x_dfb, y_dfb)", "the operation 'other' takes the arguments (dfb), all of them"),
        ("other(*[x_dfb])", "a call of an operation in another one unpacks nothing"),
        ("z = other(x_dfb)", "the call of the operation 'other' is a statement: it has no value"),
        ("endless(x_dfb)", "the operation 'endless' calls itself"),
        ("assigning(x_dfb)", "the operation 'assigning' assigns to its parameter 'dfb'"),
        ("with_kernels(x_dfb)", "the operation 'with_kernels' has kernels of its own"),
    ],
)
def test_calls_of_operations_that_are_refused(call: str, message: str) -> None:
    text = OPERATION.replace("BODY", f"    {call}").replace(
        "\n@ttl.operation(grid", OTHER + "@ttl.operation(grid"
    )
    found = failure(text)
    assert message in found
    assert "^" in found
