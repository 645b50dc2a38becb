"""Values of compute kernels that several expressions use: computed once, and kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.lang.compiling import checked
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.lang.projects.programs import run_program_text
from ttcodegen.lang.projects.projects import Projects
from ttcodegen.project.cpu_backend import CPUBackend

HEAD = """import ttl, ttnn, numpy as np
def softmax(x):
    m = ttl.math.reduce_max(x, dims=[-1], shape=(1, 1))
    e = ttl.math.exp(x - ttl.block.broadcast(m, dims=[-1], shape=x.shape))
    return e / ttl.block.broadcast(ttl.math.reduce_sum(e, dims=[-1], shape=(1, 1)), dims=[-1],
                                   shape=x.shape)
def twice(x):
    return x + x
def waved(x, y):
    s = ttl.math.sin(x)
    return s * y + s
"""
PROGRAM = """
@ttl.operation(grid=(1, 1))
def op(a: ttnn.Tensor, b: ttnn.Tensor, y: ttnn.Tensor) -> None:
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 2))
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(2, 2))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 2))
    OTHERS
    @ttl.datamovement()
    def read():
        with a_dfb.reserve() as a_blk:
            ttl.copy(a[0, :], a_blk).wait()
        for n in range(4):
            with b_dfb.reserve() as b_blk:
                ttl.copy(b[2 * n : 2 * n + 2, :], b_blk).wait()
    @ttl.compute()
    def compute():
        with a_dfb.wait() as a_blk:
BODY
    @ttl.datamovement()
    def write():
        for n in range(WRITES):
            with y_dfb.wait() as y_blk:
                ttl.copy(y_blk, y[n, :]).wait()
draw = np.random.default_rng(7).uniform
def tensor(*shape):
    return ttnn.from_torch(draw(-0.5, 0.5, shape) / 4, ttnn.float32, layout=ttnn.TILE_LAYOUT)
y = ttnn.zeros((32 * WRITES, 64), ttnn.float32)
op(tensor(32, 64), tensor(256, 64), y)
"""
EACH = """
for step in range(4):
    with b_dfb.wait() as b_blk:
        LINES
"""
STORED = """
with y_dfb.reserve() as y_blk:
    y_blk.store(VALUE)
"""
BODIES: dict[str, tuple[int, str]] = {
    "carried": (1, """
u = ttl.block.fill(0, shape=(1, 2))
v = ttl.block.fill(-9, shape=(1, 2))
for _ in range(4):
    with b_dfb.wait() as b_blk:
        s = a_blk @ b_blk
        u = u + s
        v = ttl.math.max(v, s * s)
with y_dfb.reserve() as y_blk:
    y_blk.store(u + v)
"""),
    "functions": (4, """
for _ in range(4):
    with b_dfb.wait() as b_blk, y_dfb.reserve() as y_blk:
        p = softmax(a_blk @ b_blk)
        q = softmax(p @ b_blk)
        y_blk.store(twice(p * q) - twice(ttl.math.exp(q)))
"""),
    "lists": (4, """
for _ in range(4):
    with b_dfb.wait() as b_blk, y_dfb.reserve() as y_blk:
        s = a_blk @ b_blk
        t = ttl.math.sin(s) + s
        parts = [s, t * t]
        s = ttl.math.tanh(t)
        u = s
        s = a_blk
        y_blk.store(parts[0] + parts[1] + u * u + s)
"""),
    "branches": (4, """
for step in range(4):
    with b_dfb.wait() as b_blk, y_dfb.reserve() as y_blk:
        s = a_blk @ b_blk
        if step % 2 == 0:
            e = ttl.math.exp(s)
            t = e * e + s
        else:
            t = ttl.math.sin(s)
        r = t * t
        if step > 1:
            c = ttl.math.cos(r)
            r = c + c * s
        y_blk.store(r - s)
"""),
    "replaced": (4, """
t = ttl.block.fill(0.25, shape=(1, 2))
for step in range(4):
    with b_dfb.wait() as b_blk, y_dfb.reserve() as y_blk:
        p = t * a_blk
        q = a_blk @ b_blk
        r = q @ b_blk
        if step == 1:
            q = ttl.math.sigmoid(q)
            t = q - a_blk
        t = ttl.math.sin(t)
        y_blk.store(p + q + r + ttl.math.tanh(r + t))
"""),
    "unrolled": (4, """
for n in (1, 2, 3, 4):
    with b_dfb.wait() as b_blk, y_dfb.reserve() as y_blk:
        s = a_blk @ b_blk
        s = ttl.math.tanh(s) * s + s
        y_blk.store(s * s + ttl.block.fill(n, shape=(1, 2)))
"""),
    "again": (3, """
t = ttl.block.fill(0.25, shape=(1, 2))
for step in (0, 1, 2):
    with b_dfb.wait() as b_blk, y_dfb.reserve() as y_blk:
        p = ttl.block.broadcast(ttl.math.reduce_max(t, dims=[-1], shape=(1, 1)), dims=[-1],
                                shape=(1, 2))
        t = t @ b_blk
        r = t
        s = waved(r, a_blk)
        u = ttl.math.sigmoid(s) * waved(p, r)
        y_blk.store(ttl.math.tanh(r) + ttl.math.tanh(s) + ttl.math.tanh(u))
with b_dfb.wait() as b_blk:
    b_blk + b_blk
"""),
    "outside": (4, """
e = ttl.math.exp(a_blk)
f = lambda x: x * e + e
for _ in range(4):
    with b_dfb.wait() as b_blk, y_dfb.reserve() as y_blk:
        t = ttl.block.transpose(b_blk)
        y_blk.store(f((e @ t) @ t))
"""),
    "chain": (4, """
for _ in range(4):
    with b_dfb.wait() as b_blk, y_dfb.reserve() as y_blk:
        p = a_blk @ b_blk
        q = ttl.math.exp(p) + p
        r = ttl.math.sin(q) + q
        s = ttl.math.cos(r) + r
        t = ttl.math.tanh(s) + s
        y_blk.store(t * t)
"""),
    "swapped": (1, """
u, v = ttl.math.exp(a_blk), ttl.math.sin(a_blk)
for _ in range(4):
    with b_dfb.wait() as b_blk:
        s = u @ b_blk
        u, v = v + s, u - s
with y_dfb.reserve() as y_blk:
    y_blk.store(ttl.math.tanh(u) + ttl.math.tanh(v))
"""),
}  # fmt: skip


def _program(name: str, others: str = "pass") -> Source:
    writes, body = BODIES[name]
    lines = "\n".join(f"            {line}" for line in body.strip().splitlines())
    text = HEAD + PROGRAM.replace("BODY", lines).replace("WRITES", str(writes))
    return Source("program.py", text.replace("OTHERS", others))


def _compute(out: Path, name: str, others: str = "pass") -> str:
    source = _program(name, others)
    projects = Projects(source.digest, out)
    run_program_text(source, [], projects.watch)
    (project,) = projects.written
    return (project / "kernels" / "compute.cpp").read_text()


def test_a_product_that_two_variables_and_a_power_use_is_computed_once(tmp_path: Path) -> None:
    kernel = _compute(tmp_path, "carried")
    assert kernel.count("matmul_block(") == 1
    assert "// `s` is computed once, for all that use it.\n" in kernel
    # u, v and s.
    assert kernel.count("cb_reserve_back(cb_s, 2);") == kernel.count("cb_pop_front(cb_s, 2);") == 1


def test_arguments_of_functions_are_computed_once(tmp_path: Path) -> None:
    kernel = _compute(tmp_path, "functions")
    assert kernel.count("matmul_block(") == 2
    assert kernel.count("exp_tile(") == 3
    assert kernel.count("reduce_tile<") == kernel.count("matmul_tiles(") == 2


def test_buffers_whose_values_are_no_longer_used_are_shared_where_there_are_too_many(
    tmp_path: Path,
) -> None:
    more = "more = [ttl.make_dfb(ttnn.float32, (1, 1), 1) for _ in range(26)]"
    alone = _compute(tmp_path / "few", "chain")
    assert all(f"cb_{name} = " in alone for name in "pqrst")
    shared = _compute(tmp_path / "many", "chain", more)
    assert shared.count("constexpr uint32_t cb_") == 3 + 2
    assert shared.count("matmul_block(") == shared.count("exp_tile(") == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_what_is_kept_is_what_the_simulator_computes(name: str, cpu_backend: CPUBackend) -> None:
    (found,) = checked(_program(name))
    assert found.agreement.passed
    assert found.agreement.max_abs_err <= 0.02 * float(np.abs(found.found).max())
