"""Loops that add products up: where the sums are, and that nothing fills zeros or copies them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lang.compiling import checked
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.lang.projects.programs import run_program_text
from ttcodegen.lang.projects.projects import Projects
from ttcodegen.project.cpu_backend import CPUBackend

PROGRAM = """import ttl, ttnn, numpy as np
M, N, STEPS, OUTPUTS = SIZES
@ttl.operation(grid=(1, 1))
def op(a: ttnn.Tensor, b: ttnn.Tensor, y: ttnn.Tensor) -> None:
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(M, 2))
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(2, N))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(M, N))
    @ttl.datamovement()
    def read():
        for out in range(OUTPUTS):
            for step in range(STEPS):
                with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk:
                    inner = slice(2 * step, 2 * step + 2)
                    ttl.copy(a[:, inner], a_blk).wait()
                    ttl.copy(b[inner, out * N : (out + 1) * N], b_blk).wait()
    @ttl.compute()
    def compute():
        BEFORE
        for out in range(OUTPUTS):
BODY
    @ttl.datamovement()
    def write():
        for out in range(OUTPUTS):
            with y_dfb.wait() as y_blk:
                ttl.copy(y_blk, y[:, out * N : (out + 1) * N]).wait()
draw = np.random.default_rng(7).uniform
def tensor(*shape):
    return ttnn.from_torch(draw(-1, 1, shape), KIND, layout=ttnn.TILE_LAYOUT)
y = ttnn.zeros((32 * M, 32 * N * OUTPUTS), KIND, layout=ttnn.TILE_LAYOUT)
a, b = tensor(32 * M, 64 * STEPS), tensor(64 * STEPS, 32 * N * OUTPUTS)
op(a, b, y)
"""
SUM = """
acc = ttl.block.fill(0, shape=(M, N))
for step in range(STEPS):
    with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk:
        acc += a_blk @ b_blk
"""
STORED = SUM + "with y_dfb.reserve() as y_blk:\n    y_blk.store(VALUE)\n"
RESERVED = "with y_dfb.reserve() as y_blk:" + SUM.replace("\n", "\n    ") + "y_blk.store(acc)\n"
SMALL, LARGE = (2, 2, 4, 2), (4, 3, 3, 2)


def program(
    body: str, sizes: tuple[int, ...], kind: str = "ttnn.bfloat16", before: str = "pass"
) -> Source:
    lines = "\n".join(" " * 12 + line for line in body.strip("\n").splitlines())
    text = PROGRAM.replace("BODY", lines).replace("BEFORE", before)
    return Source("program.py", text.replace("SIZES", str(sizes)).replace("KIND", kind))


def compute_kernel(source: Source, out: Path) -> str:
    run_program_text(source, [], Projects(source.digest, out).watch)
    return (out / "op/kernels/compute.cpp").read_text()


def test_sums_that_fit_stay_in_the_registers(tmp_path: Path) -> None:
    kernel = compute_kernel(program(STORED.replace("VALUE", "acc"), SMALL), tmp_path)
    assert kernel.count("tile_regs_acquire") == kernel.count("matmul_block_init") == 1
    assert "cb_acc" not in kernel
    before, after = kernel.split("matmul_block(")
    assert "cb_wait_front(cb_a_dfb, 4);" in before.split("tile_regs_acquire")[1]
    assert after.count("pack_tile") == 4


def test_functions_of_sums_are_computed_in_their_registers(tmp_path: Path) -> None:
    text = STORED.replace("VALUE", "ttl.math.relu(acc)")
    kernel = compute_kernel(program(text, SMALL), tmp_path)
    assert kernel.count("tile_regs_acquire") == 1
    assert kernel.count("relu_tile(") == 4


def test_the_packer_adds_up_larger_sums_and_the_last_products_go_to_the_result(
    tmp_path: Path,
) -> None:
    kernel = compute_kernel(program(RESERVED, LARGE), tmp_path)
    assert kernel.count("tile_regs_acquire") == 1
    assert "fill_tile" not in kernel
    assert "const bool is_last = step == 2;" in kernel
    loaded = kernel.index("copy_tile(cb_acc")
    assert kernel.index("if (is_last)") < loaded < kernel.index("matmul_block(")
    assert "pack_tile<true>(dst0, cb_y_dfb" in kernel


def test_the_packer_adds_up_in_a_result_of_float32(tmp_path: Path) -> None:
    kernel = compute_kernel(program(RESERVED, LARGE, "ttnn.float32"), tmp_path)
    assert "cb_acc" not in kernel
    assert "copy_tile" not in kernel
    assert kernel.index("if (step != 0)") < kernel.index("pack_reconfig_l1_acc(1)")


SPLIT = SUM.replace("range(STEPS)", "range(STEPS - 2)") + "for step in range(2):\n" + (
    SUM.split(":\n", 1)[1].replace("a_blk @", "ttl.math.relu(a_blk) @")
)  # fmt: skip
BODIES = {
    "reserved": RESERVED,
    "function": STORED.replace("VALUE", "ttl.math.exp(acc * ttl.block.fill(0.1, shape=(M, N)))"),
    "read twice": STORED.replace("VALUE", "ttl.math.relu(acc) + acc * acc"),
    "not read": STORED.replace("VALUE", "ttl.block.fill(2, shape=(M, N))"),
    "from one": STORED.replace("fill(0", "fill(1").replace("VALUE", "acc"),
    "two loops": SPLIT + STORED[len(SUM) :].replace("VALUE", "acc"),
    "assigned": STORED.replace("with y_dfb", "acc = acc * acc\nwith y_dfb").replace("VALUE", "acc"),
    "in branches": STORED.replace(
        "y_blk.store(VALUE)",
        "if out == 0:\n        y_blk.store(acc)\n    else:\n        y_blk.store(-acc)",
    ),
    "two sums": STORED.replace("acc = ", "pos = ttl.block.fill(0, shape=(M, N))\nacc = ")
    .replace("        acc +=", "        pos += ttl.math.relu(a_blk) @ b_blk\n        acc +=")
    .replace("VALUE", "acc - pos"),
    "sum of sums": STORED.replace("with y_dfb", "total += acc\nwith y_dfb").replace(
        "VALUE", "total"
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize(
    ("sizes", "kind"), [(SMALL, "ttnn.bfloat16"), (LARGE, "ttnn.bfloat16"), (LARGE, "ttnn.float32")]
)
def test_sums_are_those_of_the_simulator(
    name: str, sizes: tuple[int, ...], kind: str, cpu_backend: CPUBackend
) -> None:
    before = "total = ttl.block.fill(0, shape=(M, N))" if name == "sum of sums" else "pass"
    (found,) = checked(program(BODIES[name], sizes, kind, before))
    assert found.agreement.passed, found.agreement.reason
