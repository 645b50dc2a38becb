"""Variables of an operation's body, as its kernels find them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lang.running import operation
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.lang.projects.programs import run_program_text
from ttcodegen.lang.projects.projects import Projects

WRITE = """
@ttl.compute()
def compute():
    with y_dfb.reserve() as y_blk:
        y_blk.store(ttl.block.fill(1, shape=(1, 1)))
@ttl.datamovement()
def write():
    with y_dfb.wait() as y_blk:
        ttl.copy(y_blk, y[PLACE]).wait()
"""


def writer(tmp_path: Path, body: str, place: str, grid: str = "(2, 2)") -> str:
    """The kernel that writes a tile to a place that the body gives each node."""
    text = operation(body + WRITE.replace("PLACE", place), grid=grid)
    source = Source("program.py", text)
    projects = Projects(source.digest, tmp_path)
    run_program_text(source, [], projects.watch)
    return (projects.written[0] / "kernels" / "write.cpp").read_text()


@pytest.mark.parametrize(
    ("body", "place", "text"),
    [
        ("n = 1", "n, 0", "noc_async_write_page(2, y_tensor, y_dfb_block);"),
        ("n = ttl.node(dims=1) // 2", "n, 0",
         "noc_async_write_page(node_column * 2, y_tensor, y_dfb_block);"),
        ("place = ttl.node(dims=2)", "place[0], place[1]",
         "noc_async_write_page(node_column * 2 + node_row, y_tensor, y_dfb_block);"),
        ("x_place, y_place = ttl.node(dims=2)", "y_place, x_place",
         "noc_async_write_page(node_row * 2 + node_column, y_tensor, y_dfb_block);"),
        ("n = min(ttl.node(dims=1), 1)", "n, 0", "std::min<uint32_t>("),
        ("place = [(0, ttl.node(dims=1) // 2)]", "place[0][1], place[0][0]",
         "noc_async_write_page(node_column * 2, y_tensor, y_dfb_block);"),
        ("import numpy\nn = numpy.int64(ttl.node(dims=1) // 2)", "n, 0",
         "noc_async_write_page(node_column * 2, y_tensor, y_dfb_block);"),
        ("n = [1, 0, 0, 1][ttl.node(dims=1)]", "0, n",
         "const uint32_t n = (node_column + node_row + 1) % 2;"),
        ("n = [1, 0, 0, 0][ttl.node(dims=1)]", "0, n",
         "constexpr uint32_t n_of_node[] = {1, 0, 0, 0};"),
        ("n = ttl.node(dims=2)[1] ^ 1", "0, n", "const uint32_t n = 1 - node_row;"),
        ("n = [1, 0][ttl.node(dims=2)[0]] * 3 // 2", "0, n", "const uint32_t n = "),
        ("part = slice(ttl.node(dims=2)[1], ttl.node(dims=2)[1] + 1)", "0, part",
         "noc_async_write_page(node_row, y_tensor, y_dfb_block);"),
        ("at = {'row': ttl.node(dims=2)[1]}", "0, at['row']",
         "noc_async_write_page(node_row, y_tensor, y_dfb_block);"),
        ("import types\nat = types.SimpleNamespace(row=ttl.node(dims=2)[1])", "0, at.row",
         "noc_async_write_page(node_row, y_tensor, y_dfb_block);"),
        ("ns = [0, 1, 0, 1][ttl.node(dims=1):]", "0, ns[0]",
         "constexpr uint32_t ns[] = {0, 1, 0, 1, 1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 0, 1};"),
        ("here = ttl.node(dims=1)\ndef at(n):\n    return here % 2 + n", "0, at(0)",
         "const uint32_t first_column = here % 2;"),
        ("place = lambda n, m=0: (n + m, 0)", "place(ttl.node(dims=2)[0])",
         "noc_async_write_page(node_column * 2, y_tensor, y_dfb_block);"),
        ("two = 2\ndef first(n):\n    return n % two", "first(3), 0",
         "noc_async_write_page(2, y_tensor, y_dfb_block);"),
    ],
)  # fmt: skip
def test_a_number_that_depends_on_the_node(
    tmp_path: Path, body: str, place: str, text: str
) -> None:
    assert text in writer(tmp_path, body, place)


@pytest.mark.parametrize(
    ("body", "place", "message"),
    [
        ("n = 'ab'[ttl.node(dims=1) % 2]", "0, n", "'n' is not the same on all nodes"),
        ("n = None if ttl.node(dims=1) == 0 else 1", "0, n", "'n' is not the same on all nodes"),
        ("if ttl.node(dims=1) == 0:\n    n = 1", "0, n", "'n' is not set on all nodes"),
    ],
)  # fmt: skip
def test_what_depends_on_the_node_in_another_way_is_refused_at_its_line(
    tmp_path: Path, body: str, place: str, message: str
) -> None:
    with pytest.raises(CompileError, match=message) as raised:
        writer(tmp_path, body, place)
    text = raised.value.render(Source("program.py", operation(body + WRITE, grid="(2, 2)")))
    assert "ttl.copy(y_blk, y[" in text


@pytest.mark.parametrize(
    ("chosen", "used", "instead", "text"),
    [
        ("x if is_first else y", "y[PLACE]", "chosen[PLACE]",
         "if (node_column == 0 && node_row == 0) {"),
        ("x_dfb if is_first else y_dfb", "y_dfb.", "chosen.", "cb_wait_front(cb_x_dfb, 1);"),
    ],
)  # fmt: skip
def test_a_tensor_or_buffer_that_depends_on_the_node_is_a_part_of_the_kernel(
    tmp_path: Path, chosen: str, used: str, instead: str, text: str
) -> None:
    body = f"is_first = ttl.node(dims=1) == 0\nchosen = {chosen}" + WRITE.replace(used, instead)
    source = Source("program.py", operation(body.replace("PLACE", "0, 0"), grid="(2, 2)"))
    projects = Projects(source.digest, tmp_path)
    run_program_text(source, [], projects.watch)
    written = (projects.written[0] / "kernels" / "write.cpp").read_text()
    assert text in written
    assert written.count("cb_wait_front") == 2


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("if ttl.node(dims=1):\n    z_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))",
         "node (0, 1) makes other dataflow buffers than node (0, 0): circular buffers are the same "
         "on all cores"),
        ("if ttl.node(dims=1):\n    @ttl.datamovement()\n    def read(): pass",
         "node (0, 1) has the kernels read, compute, write, but node (0, 0) has compute, write"),
    ],
)  # fmt: skip
def test_nodes_that_have_other_buffers_or_kernels_are_refused(
    tmp_path: Path, body: str, message: str
) -> None:
    with pytest.raises(CompileError) as raised:
        writer(tmp_path, body, "0, 0")
    assert raised.value.diagnostics[0].message == message


def test_a_truth_that_depends_on_the_node_is_a_condition_of_the_kernel(tmp_path: Path) -> None:
    text = operation(
        "is_last = ttl.node(dims=1) == 1"
        + WRITE.replace(
            "    with y_dfb.wait() as y_blk:\n        ttl.copy(y_blk, y[PLACE]).wait()",
            "    if is_last:\n        with y_dfb.wait() as y_blk:\n"
            "            ttl.copy(y_blk, y[0, 0]).wait()",
        ),
        grid="(2, 1)",
    )
    source = Source("program.py", text)
    projects = Projects(source.digest, tmp_path)
    run_program_text(source, [], projects.watch)
    assert "if (node_column != 0) {" in (projects.written[0] / "kernels/write.cpp").read_text()
