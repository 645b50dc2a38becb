"""Sums, differences and products of two circular buffers, which the matrix engine computes; and
products with what is transposed on its way there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lang.compiling import checked
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.lang.projects.programs import run_program_text
from ttcodegen.lang.projects.projects import Projects
from ttcodegen.project.cpu_backend import CPUBackend

PROGRAM = """import ttl, ttnn, numpy as np
@ttl.operation(grid=(1, 1))
def op(a: ttnn.Tensor, b: ttnn.Tensor, y: ttnn.Tensor) -> None:
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(2, 2))
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(2, 2))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(2, 2))
    @ttl.datamovement()
    def read():
        with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk:
            ttl.copy(a[:, :], a_blk).wait()
            ttl.copy(b[:, :], b_blk).wait()
    @ttl.compute()
    def compute():
        with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, y_dfb.reserve() as y_blk:
            LINES
            y_blk.store(RESULT)
    @ttl.datamovement()
    def write():
        with y_dfb.wait() as y_blk:
            ttl.copy(y_blk, y[:, :]).wait()
draw = np.random.default_rng(7).uniform
def tensor():
    return ttnn.from_torch(draw(0.5, 1.5, (64, 64)), ttnn.KIND, layout=ttnn.TILE_LAYOUT)
op(tensor(), tensor(), tensor())
"""
REPEATED = "ttl.block.broadcast({}, dims=[{}], shape=(2, 2))"
SUM = "ttl.math.reduce_sum(b_blk, dims=[-1], shape=(2, 1))"
COLUMN = REPEATED.format(SUM, -1)
CARRIED = """t = ttl.block.fill(1, shape=(2, 2))
            for _ in range(3):
                t = t * a_blk"""
RESULTS = {
    "a_blk + b_blk": "add_tiles(cb_a_dfb, cb_b_dfb, ",
    "a_blk - b_blk": "sub_tiles(cb_a_dfb, cb_b_dfb, ",
    "a_blk * b_blk": "mul_tiles(cb_a_dfb, cb_b_dfb, ",
    "ttl.math.square(a_blk) + ttl.math.exp(b_blk)": "mul_tiles(cb_a_dfb, cb_a_dfb, ",
    f"a_blk - {COLUMN}": "sub_tiles_bcast<BroadcastType::COL>(cb_a_dfb, cb_partial0, ",
    f"{COLUMN} * a_blk": "mul_tiles_bcast<BroadcastType::COL>(cb_a_dfb, cb_partial0, ",
    "ttl.math.recip(a_blk * b_blk) - a_blk": "mul_tiles(cb_a_dfb, cb_b_dfb, ",
}


def program(result: str, kind: str = "bfloat16", lines: str = "pass") -> Source:
    text = PROGRAM.replace("LINES", lines).replace("RESULT", result).replace("KIND", kind)
    return Source("program.py", text)


def compute(source: Source, out: Path) -> str:
    projects = Projects(source.digest, out)
    run_program_text(source, [], projects.watch)
    return projects.written[0].joinpath("kernels", "compute.cpp").read_text()


@pytest.mark.parametrize("result", RESULTS)
def test_the_matrix_engine_reads_both_operands(tmp_path: Path, result: str) -> None:
    written = compute(program(result), tmp_path)
    assert RESULTS[result] in written
    assert "unary_bcast<" not in written


def test_numbers_of_32_bits_are_read_whole(tmp_path: Path) -> None:
    written = compute(program("a_blk + b_blk", "float32"), tmp_path)
    assert "add_binary_tile(" in written
    assert "add_tiles(" not in written


def test_what_a_loop_carries_is_read_whole(tmp_path: Path) -> None:
    written = compute(program("t + b_blk", lines=CARRIED), tmp_path)
    assert "mul_binary_tile(" in written
    assert "add_binary_tile(" in written
    assert "mul_tiles(" not in written
    assert "add_tiles(" not in written


def test_a_product_comes_into_a_register_that_held_nothing(tmp_path: Path) -> None:
    """The matrix engine adds it to what is there."""
    result = "ttl.math.max(ttl.math.exp(a_blk), ttl.math.exp(b_blk) + 1) + a_blk * b_blk"
    written = compute(program(result.replace("+ 1)", "+ b_blk)")), tmp_path)
    before, _, after = written.partition("mul_tiles(cb_a_dfb, cb_b_dfb, ")
    register = after.partition(");")[0].rpartition(" ")[2]
    assert not register or f"_tile({register}" not in before.rpartition("acquire")[2]


def test_the_unpacker_transposes_what_is_multiplied_by(tmp_path: Path) -> None:
    written = compute(program("a_blk @ ttl.block.transpose(b_blk)"), tmp_path)
    assert "transpose_tile" not in written
    assert "/*transpose=*/1" in written


@pytest.mark.slow
def test_pairs_on_device(cpu_backend: CPUBackend) -> None:
    """All of them in one program."""
    total = " + ".join(f"({result})" for result in RESULTS)
    quotient = REPEATED.format("ttl.math.recip(r)", -1)
    lines = f"p = a_blk @ ttl.block.transpose(b_blk)\n            r = {SUM}"
    (found,) = checked(program(f"{total} + p * {quotient}", lines=lines))
    assert found.agreement.passed
