"""Statements of kernels: what becomes of them, and what is refused at which line."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest

from tests.lang.compiling import refusal
from tests.lang.running import operation
from tests.lang.test_functions import KERNELS
from ttcodegen.diagnostics import CompileError, Source
from ttcodegen.lang.programs import run_program_text
from ttcodegen.lang.projects import Projects


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("x_blk ^ x_blk", "the device has no operation ^ of blocks of f32"),
        ("{1: x_blk}[1]", "the compiler does not take a Dict"),
    ],
)  # fmt: skip
def test_what_the_compiler_refuses_is_told_at_its_line(expression: str, message: str) -> None:
    text = operation(KERNELS.replace("\n    ", "\n").replace("EXPRESSION", expression))
    text = text.replace("import ttl, ttnn", "import ttl, ttnn\ndef helper(x):\n    return -x", 1)
    told = refusal(text).splitlines()
    assert told[0].endswith(f"error: {message}")
    assert expression.split(" if ")[0] in told[1]


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
        ("if i in (0, 1): pass", "kernels have no comparison In of these operands"),
        ("(1, 2)[2]", "this raises IndexError: tuple index out of range"),
        ("i // 0", "kernels divide numbers that are 0 or more by numbers above 0"),
        ("-1 % i", "kernels divide numbers that are 0 or more by numbers above 0"),
        ("ttl.copi(y_blk, y[0, i])", "this raises AttributeError: module "),
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
    told = refusal(operation(body))
    assert "'value' has another shape in each branch of the condition, or is a block" in told
