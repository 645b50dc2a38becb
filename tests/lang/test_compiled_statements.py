"""Statements of kernels: what becomes of them, and what is refused at which line."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest

from tests.lang.compiling import refusal
from tests.lang.running import compiler_refusal, failure, operation, run_text
from tests.lang.test_functions import KERNELS
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.lang.projects.programs import run_program_text
from ttcodegen.lang.projects.projects import Projects


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("x_blk ^ x_blk", "the device has no operation ^ of blocks of f32"),
        ("(yield x_blk)", "kernels of the device have no statement 'yield'"),
    ],
)  # fmt: skip
def test_what_the_compiler_refuses_is_reported_at_its_line(expression: str, message: str) -> None:
    text = operation(KERNELS.replace("\n    ", "\n").replace("EXPRESSION", expression))
    text = text.replace("import ttl, ttnn", "import ttl, ttnn\ndef helper(x):\n    return -x", 1)
    reported = refusal(text).splitlines()
    assert reported[0].endswith(f"error: {message}")
    assert expression.split(" if ")[0] in reported[1]


_WRITES = """
@ttl.datamovement()
def write():
    for i in range(2):
        with y_dfb.wait() as y_blk:
            STATEMENT
            ttl.copy(y_blk, y[0, i]).wait()
"""


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("for j in range(-1, i): pass", "kernels count upwards from 0 or more"),
        ("for j in range(i, 0, -2): pass", "kernels count upwards from 0 or more"),
        ("i * (i - 1)", "kernels multiply numbers that are 0 or more"),
        ("for j in range(i - 1, 4): pass", "kernels count upwards from 0 or more"),
        ("if i < 1.5: pass", "kernels have no comparison Lt of these operands"),
        ("(1, 2)[2]", "this raises IndexError: tuple index out of range"),
        ("i // 0", "kernels divide numbers that are 0 or more by numbers above 0"),
        ("-1 % i", "kernels divide numbers that are 0 or more by numbers above 0"),
        ("ttl.copi(y_blk, y[0, i])", "ttl has no 'copi'; did you mean copy?"),
        ("part = x[0, i]; ttl.copy(part, part)", "there is no ttl.copy from a TensorSlice to a"),
    ],
)
def test_what_kernels_do_not_compute_is_refused_at_its_line(statement: str, message: str) -> None:
    text = refusal(operation(_WRITES.replace("STATEMENT", statement))).splitlines()
    assert "error: " in text[0]
    assert message in text[0]
    assert statement in text[1]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("if i - 1 >= 0: put(i)", "if (i >= 1) {"),
        ("if i - 3 < 2 * i - 1 - i: put(i)", "noc_async_write_page(i, y_tensor, y_dfb_block);"),
        ("if i - 3 < 2 * i - 1: put(i)", "if (0 < i + 2) {"),
        ("if i > -1: put(i)", "if (i + 1 > 0) {"),
        ("put((i - 1) % 2)", "first_column = (i + 1) % 2;"),
        ("put((i - 1) // 2 + 1)", "first_column = (i + 1) / 2 - 1 + 1;"),
        ("put(max(i - 1, 0))", "first_column = std::max<uint32_t>(i, 1) - 1;"),
        ("for j in range(i - 1): put(j)", "j < std::max<uint32_t>(i, 1) - 1;"),
        ("for j in range(i, 2): put((j - i) // 2)", "first_column = (j - i) / 2;"),
    ],
)
def test_numbers_below_zero_do_not_become_large_ones(
    statement: str, expected: str, tmp_path: Path
) -> None:
    copied = re.sub(r"put\((.*)\)$", r"ttl.copy(y_blk, y[0, \1]).wait()", statement)
    source = Source("program.py", operation(_WRITES.replace("STATEMENT", copied)))
    projects = Projects(source.digest, tmp_path)
    with suppress(CompileError):  # The simulator waits for a block that nobody computes.
        run_program_text(source, [], lambda launch: projects.watch(launch)())  # type: ignore
    (written,) = tmp_path.glob("*/kernels/write.cpp")
    assert expected in written.read_text()


def test_copies_are_found_however_they_are_called(tmp_path: Path) -> None:
    text = operation(_WRITES.replace("STATEMENT", "if y_dfb is not None and 1 in (0, 1): pass"))
    text = text.replace("ttl.copy(y_blk, y[0, i])", "copy(dst=y[0, i], src=y_blk)")
    text = text.replace(
        "@ttl.datamovement",
        """@ttl.compute()
    def compute():
        for _ in range(2):
            with y_dfb.reserve() as y_blk:
                a, b = ttl.block.fill(1, shape=[1, 1]), ttl.block.fill(2, shape=(1, 1))
                a = ttl.block.broadcast(a, dims=0, shape=[1, 1])
                y_blk.store(ttl.math.max(b=ttl.math.pow(expr=a, exponent=2), a=b))
    @ttl.datamovement""",
    )
    source = Source("program.py", "from ttl import copy\n" + text)
    projects = Projects(source.digest, tmp_path)
    run_program_text(source, [], projects.watch)
    written = (projects.written[0] / "kernels" / "write.cpp").read_text()
    assert "noc_async_write_page(i, y_tensor, y_dfb_block);" in written


_ROWS = """
import ttl, ttnn
x = ttnn.zeros((4, 64), layout=ttnn.ROW_MAJOR_LAYOUT)
y = ttnn.zeros((4, 64), layout=ttnn.ROW_MAJOR_LAYOUT)
@ttl.operation(grid=(1, 1))
def op(x, y):
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=SHAPE)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=SHAPE)
    @ttl.datamovement()
    def read():
        with x_dfb.reserve() as x_blk:
            ttl.copy(SLICE, x_blk).wait()
    @ttl.compute()
    def compute():
        with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
            y_blk.store(EXPRESSION)
    @ttl.datamovement()
    def write():
        with y_dfb.wait() as y_blk:
            ttl.copy(y_blk, y[:2, :32]).wait()
op(x, y)
"""


def of_rows(*, shape: str = "(2, 32)", part: str = "x[:2, :32]", expression: str = "-x_blk") -> str:
    """A program that computes with a block of rows."""
    return (
        _ROWS.replace("SHAPE", shape).replace("SLICE", part).replace("EXPRESSION", expression)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("x_blk @ x_blk", "@ is not supported for row-major blocks"),
        (
            "ttl.math.reduce_sum(x_blk, dims=[-1], shape=(2, 1))",
            "ttl.math.reduce_sum is not supported for row-major blocks",
        ),
        (
            "ttl.block.broadcast(x_blk, dims=[0], shape=(2, 32))",
            "ttl.block.broadcast is not supported for row-major blocks",
        ),
        ("ttl.block.transpose(x_blk)", "ttl.block.transpose is not supported for row-major blocks"),
        (
            "x_blk + ttl.block.fill(1, shape=(1, 64))",
            "operands of + have the shapes (2, 32) and (1, 64)",
        ),
    ],
)
def test_what_row_major_blocks_do_not_have(expression: str, message: str) -> None:
    text = of_rows(expression=expression)
    for reported in (failure(text), compiler_refusal(text)):
        assert f"error: {message}" in reported
        assert f"y_blk.store({expression})" in reported


def test_parts_of_rows_begin_where_the_noc_reads() -> None:
    reported = refusal(of_rows(part="x[:2, 8:40]"))
    assert "error: this slice begins within 32 bytes of a row" in reported
    assert "let parts of rows begin at multiples of 16 elements" in reported


def test_rows_lie_apart_in_packed_tiles(tmp_path: Path) -> None:
    source = Source("program.py", of_rows().replace("4, 64", "4, 40").replace("32", "40"))
    projects = Projects(source.digest, tmp_path)
    run_program_text(source, [], projects.watch)
    read = (projects.written[0] / "kernels" / "read.cpp").read_text()
    assert "blocks::clear_gaps(x_dfb_block, 2, 80, 96, 2048);" in read
    assert "noc_async_read_page(row, x_tensor, x_dfb_block + row * 96);" in read


_JOINED = """
@ttl.datamovement()
def write():
    for i in range(2):
        with y_dfb.wait() as y_blk:
            if i == 0:
                place = 1
            else:
                place = i - i
            ttl.copy(y_blk, y[0, place]).wait()
@ttl.compute()
def compute():
    for i in range(2):
        with y_dfb.reserve() as y_blk:
            if i == 0:
                value = ttl.block.fill(FIRST, shape=(1, 1))
            else:
                value = SECOND
            y_blk.store(value * value)
"""


def test_variables_of_both_branches_are_known_after_them(tmp_path: Path) -> None:
    body = _JOINED.replace("FIRST", "1").replace("SECOND", "ttl.block.fill(2, shape=(1, 1))")
    source = Source("program.py", operation(body))
    projects = Projects(source.digest, tmp_path)
    run_program_text(source, [], projects.watch)
    texts = {p.stem: p.read_text() for p in projects.written[0].glob("kernels/*.cpp")}
    for line in ("uint32_t place = 0;", "place = 1;", "noc_async_write_page(place, "):
        assert line in texts["write"], line
    for call in ("cb_reserve_back", "cb_push_back", "cb_wait_front"):
        assert texts["compute"].count(f"{call}(cb_value, 1);") == 2
    assert texts["compute"].count("cb_pop_front(cb_value, 1);") == 1


@pytest.mark.parametrize("second", ["ttl.block.fill(2, shape=(1, 2))", "3"])
def test_branches_give_a_variable_values_of_one_kind(second: str) -> None:
    body = _JOINED.replace("FIRST", "1").replace("SECOND", second)
    reported = refusal(operation(body))
    assert "'value' has another shape in each branch of the condition, or is a block" in reported


def test_a_buffer_that_two_kernels_push_is_refused_where_it_is_compiled() -> None:
    body = (
        "@ttl.datamovement()\ndef read():\n    with x_dfb.reserve() as blk:\n"
        "        ttl.copy(x[0, 0], blk).wait()\n"
        "@ttl.datamovement()\ndef write():\n    with x_dfb.wait() as blk:\n"
        "        ttl.copy(blk, y[0, 0]).wait()\n    with x_dfb.reserve() as blk:\n"
        "        ttl.copy(x[0, 1], blk).wait()"
    )
    run_text(operation(body))
    reported = refusal(operation(body)).splitlines()
    assert reported[0].endswith(
        "the kernels 'read' and 'write' both have reserve of 'x_dfb' on node (0, 0): on the "
        "device, one kernel pushes the blocks of a buffer, and one pops them"
    )
    assert reported[1].strip() == "with x_dfb.reserve() as blk:"
