"""Mistakes of authors: one message with a caret, the same in the simulator and in the compiler."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.lang.running import compiler_refusal, failure

PROGRAM = """import ttl, ttnn
x, y = ttnn.rand((32, 32)), ttnn.zeros((32, 32))
@ttl.operation(grid=(1, 1))
def op(x, y):
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1))
    @ttl.datamovement()
    def read():
        with x_dfb.reserve() as x_blk:
            MOVE
    @ttl.compute()
    def compute():
        with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
            COMPUTE
    @ttl.datamovement()
    def write():
        with y_dfb.wait() as y_blk:
            ttl.copy(y_blk, y[0, 0]).wait()
op(x, y)
"""
MOVE, COMPUTE = "ttl.copy(x[0, 0], x_blk).wait()", "y_blk.store(-x_blk)"
INTERNAL = re.compile(
    r"Translator|ttcodegen|Moved|ComputeBlock|PrintedText|__init__|<locals>"
    r"|object has no attribute|FloorDiv|ufunc"
)


def _program(move: str = MOVE, compute: str = COMPUTE) -> str:
    return PROGRAM.replace("MOVE", move).replace("COMPUTE", compute)


OF_COMPUTE = [
    ("y_blk.stroe(x_blk)", "a block has no 'stroe'; did you mean store?"),
    ("y_blk.store(ttl.math.expp(x_blk))", "ttl.math has no 'expp'; did you mean exp?"),
    ("y_blk.store(ttl.math.expp)", "ttl.math has no 'expp'; did you mean exp?"),
    ("y_blk.store(ttl.block.fill(1.0, shpe=(1, 1)))",
     "fill has no argument 'shpe'; did you mean shape?"),
    ("y_blk.store(ttl.block.broadcast(x_blk, dim=[0], shape=(1, 1)))",
     "broadcast has no argument 'dim'; did you mean dims?"),
    ("y_blk.store(ttl.math.max(x_blk))", "max is missing the argument 'b'"),
    ("y_blk.store(ttl.block.transpose(x_blk, 3))", "transpose takes the arguments (expr)"),
    ("y_blk.store()", "store is missing the argument 'expr'"),
    ("y_blk.store((-x_blk).exp())", "a block expression has no 'exp'"),
    ("y_blk.store(ttnn.exp(x_blk))", "functions of ttnn take tensors, not a Block"),
    ("try: y_blk.store(x_blk)\n            except ValueError: pass",
     "kernels of the device have no statement 'try'"),
    ("class Kept: pass\n            y_blk.store(x_blk)",
     "kernels of the device have no statement 'class'"),
    ("again = lambda blk: again(-blk)\n            y_blk.store(again(x_blk))",
     "the function '<lambda>' calls itself without an end"),
    ("import numpy as np\n            y_blk.store(np.exp(x_blk))",
     "functions of Python and numpy do not take it"),
    ("import math\n            y_blk.store(math.exp(x_blk))",
     "functions of Python and numpy do not take it"),
    ("import math\n            y_blk.store(math.exp(-x_blk))",
     "functions of Python and numpy do not take it"),
    ("y_blk.store(ttl.block.broadcast(x_blk, dims=[0]))",
     "ttl.block.broadcast needs the shape of its result"),
    ("y_blk.store(x_blk * len(x_blk))", "object of type 'Block' has no len()"),
    ("y_blk.store(round(x_blk))", "type Block doesn't define __round__ method"),
    ('y_blk.store(f"{x_blk}")', "store takes a block expression, not a str"),
]  # fmt: skip
OF_MOVEMENT = [
    ("ttl.cpy(x[0, 0], x_blk).wait()", "ttl has no 'cpy'; did you mean copy?"),
    ("ttl.copy(x[0, 0], x_blk, 3).wait()", "copy takes the arguments (src, dst)"),
    ("ttl.copy(x[0, 0], x_blk).wiat()", "a transfer has no 'wiat'; did you mean wait?"),
    ("ttl.copy(x[0, 0], x_blk).wait(3)", "wait takes no arguments"),
    ("ttl.GroupTransfer().ad(ttl.copy(x[0, 0], x_blk))",
     "a group transfer has no 'ad'; did you mean add?"),
    ("number = int(x_blk)", "a real number, not 'Block'"),
    ("yield x_blk", "kernels of the device have no statement 'yield'"),
    ("ttl.copy(x[1 // 0, 0], x_blk).wait()", "integer division or modulo by zero"),
    ("column, row = ttl.core(dims=2)", "ttl has no 'core'; it is node now"),
]  # fmt: skip
PROGRAMS = [(_program(compute=statement), message) for statement, message in OF_COMPUTE]
PROGRAMS += [(_program(move=statement), message) for statement, message in OF_MOVEMENT]


@pytest.mark.parametrize("report", [failure, compiler_refusal], ids=["simulator", "compiler"])
@pytest.mark.parametrize(("text", "message"), PROGRAMS)
def test_a_mistake_in_a_kernel(text: str, message: str, report: Callable[[str], str]) -> None:
    found = report(text).splitlines()
    place = re.fullmatch(r"program\.py:(\d+):(\d+): error: (.*)", found[0])
    assert place is not None
    assert message in place[3]
    line = text.splitlines()[int(place[1]) - 1]
    assert found[1] == line
    assert found[2] == " " * (int(place[2]) - 1) + "^"
    assert not any(map(INTERNAL.search, found))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("y, shape=(1, 1))", "y, shape=(1, 1), buffer_factor=2)",
         "make_dataflow_buffer_like has no argument 'buffer_factor'; it is block_count now"),
        ("ttl.operation", "ttl.kernel", "ttl has no 'kernel'; it is operation now"),
        ("grid=(1, 1)", "gird=(1, 1)", "ttl.operation has no option 'gird'; did you mean grid?"),
        ("grid=(1, 1)", "grid=(20, 20)",
         "a grid of 20x20 nodes is larger than the device, which has 8x8 cores"),
        ("ttl.make_dataflow_buffer_like(x", "ttl.make_circular_buffer_like(x",
         "ttl has no 'make_circular_buffer_like'; it is make_dataflow_buffer_like now"),
        ("@ttl.compute()", "@ttl.compute",
         "compute takes no arguments; the decorator is written @ttl.compute()"),
        ("    def read", "    async def read", "kernels of the device have no statement 'async'"),
        ("    @ttl.datamovement()\n    def read",
         "    net = ttl.PipeNet(3)\n    @ttl.datamovement()\n    def read",
         "a pipe net is made of a list of pipes, not of a int"),
        ("    @ttl.datamovement()\n    def read",
         "    pipe = ttl.Pipe((0, 0), dest=(0, 0))\n    @ttl.datamovement()\n    def read",
         "Pipe has no argument 'dest'; did you mean dst?"),
        ("\nop(x, y)", "\nop(x)", "op is missing the argument 'y'"),
        ("\nop(x, y)", "\nop(x, y, z=x)", "op has no argument 'z'"),
    ],
)  # fmt: skip
def test_a_mistake_around_kernels(old: str, new: str, message: str) -> None:
    found = failure(_program().replace(old, new))
    assert message in found
    assert "^" in found


@pytest.mark.parametrize("report", [failure, compiler_refusal], ids=["simulator", "compiler"])
def test_rows_do_not_fit_into_tiles(report: Callable[[str], str]) -> None:
    text = _program().replace("ttnn.rand((32, 32))", "ttnn.rand((32, 32), layout='row_major')")
    message = "an expression of rows does not fit into a block of 'y_dfb', which has tiles"
    assert message in report(text.replace("x[0, 0]", "x[0:1, 0:1]"))
