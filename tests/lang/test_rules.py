"""Programs that break a rule of the language, and what they are reported."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lang.running import compiler_refusal, failure, operation, run_text
from ttcodegen.cli.lang import main
from ttcodegen.lang.simulator.spelling import FEATURES, Feature
from ttcodegen.lang.simulator.tensors import Tensor

READ = """
@ttl.datamovement()
def read():
    with x_dfb.reserve() as x_blk:
        ttl.copy(x[0, 0], x_blk).wait()
"""
MUST_BE_WRITTEN = (
    "Must be Written: the block was reserved and contains garbage data and therefore must be "
    "written to"
)
MUST_BE_READ = (
    "Must be Read: the block was waited on or written to and never read and therefore must be "
    "read from or pushed"
)

STATES = [
    ("DM", "blk = x_dfb.reserve()\nblk.push()",
     f"cannot push a block of 'x_dfb' in the state MW ({MUST_BE_WRITTEN})"),
    ("DM", "blk = x_dfb.reserve()\nttl.copy(blk, y[0, 0])",
     f"cannot copy from a block of 'x_dfb' in the state MW ({MUST_BE_WRITTEN})"),
    ("DM", "blk = x_dfb.reserve()\nttl.copy(x[0, 0], blk).wait()\nttl.copy(x[0, 0], blk)",
     f"cannot copy to a block of 'x_dfb' in the state MR ({MUST_BE_READ})"),
    ("DM", "blk = x_dfb.reserve()\nttl.copy(x[0, 0], blk)\nblk.push()",
     "cannot push a block of 'x_dfb' in the state NAW (No Access while Writing: the block is being "
     "asynchronously written to)"),
    ("DM", "blk = x_dfb.reserve()\nttl.copy(x[0, 0], blk)\nttl.copy(blk, y[0, 0])",
     "cannot copy from a block of 'x_dfb' in the state NAW (No Access while Writing: the block is "
     "being asynchronously written to)"),
    ("DM", "blk = x_dfb.reserve()\nttl.copy(x[0, 0], blk).wait()\nttl.copy(blk, y[0, 0])\n"
     "ttl.copy(blk, y[0, 1])\nttl.copy(x[0, 0], blk)",
     "cannot copy to a block of 'x_dfb' in the state ROR(2) (Read Only while Reading: the block is "
     "being asynchronously read from by ttl.copy)"),
    ("DM", "blk = x_dfb.reserve()\nttl.copy(x[0, 0], blk).wait()\nblk.push()\n"
     "ttl.copy(blk, y[0, 0])",
     "cannot copy from a block of 'x_dfb' in the state OS (Out of Scope: the block was pushed or "
     "popped)"),
    ("DM", "blk = x_dfb.reserve()\nttl.copy(x[0, 0], blk).wait()\nblk.pop()",
     f"cannot pop a block of 'x_dfb' in the state MR ({MUST_BE_READ})"),
    ("C", "blk = x_dfb.wait()\nblk.pop()",
     f"cannot pop a block of 'x_dfb' in the state MR ({MUST_BE_READ})"),
    ("C", "blk = x_dfb.wait()\nblk.store(ttl.block.fill(0, shape=(1, 1)))",
     f"cannot store to a block of 'x_dfb' in the state MR ({MUST_BE_READ})"),
    ("C", "blk = y_dfb.reserve()\n-blk",
     f"cannot read a block of 'y_dfb' in the state MW ({MUST_BE_WRITTEN})"),
    ("C", "blk = y_dfb.reserve()\nblk.store(ttl.block.fill(0, shape=(1, 1)))\n"
     "blk.store(ttl.block.fill(0, shape=(1, 1)))",
     f"cannot store to a block of 'y_dfb' in the state MR ({MUST_BE_READ})"),
    ("C", "with x_dfb.wait() as blk:\n    -blk\n-blk",
     "cannot read a block of 'x_dfb' in the state OS (Out of Scope: the block was pushed or "
     "popped)"),
    ("C", "with x_dfb.wait() as blk:\n    pass",
     f"cannot pop a block of 'x_dfb' in the state MR ({MUST_BE_READ})"),
    ("C", "blk = x_dfb.wait()\n-blk", "a block of 'x_dfb' is never popped on node (0, 0)"),
    ("C", "blk = x_dfb.wait()\nx_dfb.wait()",
     "wait of 'x_dfb' while a block of it is acquired and not popped yet"),
]  # fmt: skip


def kernel(kind: str, text: str) -> str:
    """A kernel with statements; one that computes has another that reads."""
    body = "\n".join(f"    {line}" for line in text.splitlines())
    if kind == "C":
        return f"{READ}@ttl.compute()\ndef compute():\n{body}"
    return f"@ttl.datamovement()\ndef dm():\n{body}"


@pytest.mark.parametrize(("kind", "text", "message"), STATES)
def test_a_transition_that_the_states_do_not_have(kind: str, text: str, message: str) -> None:
    assert failure(operation(kernel(kind, text))).splitlines()[0].partition("error: ")[2] == message


def test_a_block_may_be_read_and_overwritten_and_read_again() -> None:
    body = (
        "@ttl.compute()\ndef compute():\n    with y_dfb.reserve() as y_blk:\n"
        "        y_blk.store(ttl.block.fill(1, shape=(1, 1)))\n        y_blk += y_blk\n"
        "        y_blk.store(y_blk + y_blk)\n"
        "@ttl.datamovement()\ndef write():\n    with y_dfb.wait() as y_blk:\n"
        "        ttl.copy(y_blk, y[0, 0]).wait()\n        ttl.copy(x[0, 0], y_blk).wait()\n"
        "        ttl.copy(y_blk, y[0, 1]).wait()"
    )
    held = run_text(operation(body))
    assert held["y"].elements()[0, 0] == 4  # type: ignore[attr-defined]
    assert (held["y"].elements()[:32, 32:] == held["x"].elements()[:32, :32]).all()  # type: ignore[attr-defined]


OTHERS = [
    ("DM", "ttl.copy(x[0:2:2, 0], x_dfb.reserve())",
     "a slice has the step 2; slices are contiguous"),
    ("DM", "xf = ttl.copy(x[0, 0], x_dfb.reserve())\nxf.wait()\nxf.wait()",
     "a transfer handle cannot be used after wait was called"),
    ("DM", "g = ttl.GroupTransfer()\ng.wait_all()\ng.add(None)",
     "ttl.GroupTransfer.add cannot be called after wait_all was called"),
    ("DM", "ttl.copy(x[0, 0:2], x_dfb.reserve())",
     "a slice of the shape (1, 2) does not fit a block of 'x_dfb', which has the shape (1, 1)"),
    ("DM", "ttl.copy(x[2, 0], x_dfb.reserve())",
     "dimension 0 of a slice goes from 2 to 3, but the tensor has 2 tiles there"),
    ("DM", "ttl.copy(x[0], x_dfb.reserve())",
     "a slice has 1 indices, but the tensor has 2 dimensions: (2, 2) in tiles"),
    ("DM", "ttl.copy(x, x_dfb.reserve())", "there is no ttl.copy from a Tensor to a Block"),
    ("DM", "-x_dfb.reserve()",
     "- of block expressions can only be used inside of a compute kernel function"),
    ("C", "ttl.copy(x, y)", "ttl.copy can only be used inside of a data movement kernel function"),
    ("C", "x[0, 0]", "a tensor slice can only be used inside of a data movement kernel function"),
    ("C", "ttl.Semaphore()",
     "ttl.Semaphore can be used in the scope of the operation function only, not in a kernel"),
    ("DM", "ttl.block.fill(0, shape=(1, 1))",
     "ttl.block.fill can only be used inside of a compute kernel function"),
    ("DM", "ttl.signpost('read')", "ttl.signpost can be used with the with statement only"),
    ("C", "x_dfb.wait() * 2", "an operand of * is a int, not a block expression"),
    ("C", "ttl.math.exp(2)", "an operand of ttl.math.exp is a int, not a block expression"),
    ("C", "1 if y_dfb.reserve() else 0",
     "a block expression is no condition: kernels cannot branch on its elements"),
    ("C", "x_dfb.wait() > 1", "block expressions have no comparisons"),
    ("C", "x_dfb.wait()[0]", "a block expression has no elements that kernels could name"),
    ("C", "y_dfb.reserve().store(3)", "store takes a block expression, not a int"),
    ("DM", "x_dfb.reserve().store(None)",
     "ttl.Block.store can only be used inside of a compute kernel function"),
    ("DM", "print(x, y_dfb)",
     "print takes one object of TT-Lang at a time, besides strings and numbers"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "message"), OTHERS)
def test_what_a_kernel_may_not_do(kind: str, text: str, message: str) -> None:
    assert failure(operation(kernel(kind, text))).splitlines()[0].partition("error: ")[2] == message


REMOTE = [
    ("s.get_remote_multicast().inc(1)",
     "a semaphore of several nodes can be set only, not incremented"),
    ("many.inc(1)", "a semaphore of several nodes can be set only, not incremented"),
    ("s.get_remote((9, 0)).inc(1)",
     "the node of a remote semaphore, (9, 0), is not on the grid of (1, 1) nodes"),
    ("ttl.copy(x_dfb.reserve(), pipe)", "there is no ttl.copy from a Block to a Pipe"),
    ("if ttl.node(dims=1) == 0:\n    xf = ttl.copy(x[0, 0], x_dfb.reserve())\n    xf.wait()\n"
     "    xf.wait()", "a transfer handle cannot be used after wait was called"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REMOTE)
@pytest.mark.parametrize("report", [failure, compiler_refusal])
def test_what_is_wrong_with_other_nodes(
    text: str, message: str, report: Callable[[str], str]
) -> None:
    made = "s = ttl.Semaphore()\nmany = s.get_remote_multicast()\npipe = ttl.Pipe((0, 0), (0, 0))\n"
    reported = report(operation(made + kernel("DM", text))).splitlines()
    assert reported[0].partition("error: ")[2] == message
    assert reported[1].strip() in text
    assert reported[2].strip() == "^"


@pytest.mark.parametrize(("kind", "text", "message"), [*STATES, *OTHERS])
def test_the_compiler_refuses_it_too(kind: str, text: str, message: str) -> None:
    reported = compiler_refusal(operation(kernel(kind, text))).splitlines()
    # All nodes are compiled at once.
    assert reported[0].partition("error: ")[2] == message.removesuffix(" on node (0, 0)")
    assert reported[1].strip() in text
    assert reported[2].strip() == "^"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("x_dfb.reserve()",
         "ttl.DataflowBuffer.reserve can only be used inside of a kernel function"),
        ("ttl.make_dataflow_buffer_like(x, shape=(2,))",
         "the shape (2,) has one dimension, but blocks of tiled tensors have at least two"),
        ("ttl.make_dataflow_buffer_like(x, shape=(1, 0))",
         "the shape of a dataflow buffer is a tuple of positive integers, not (1, 0)"),
        ("big = ttl.make_dataflow_buffer_like(x, shape=(32, 32))",
         "the dataflow buffers take 4202496 bytes of L1, but a node has 1499136"),
        ("net = ttl.PipeNet([ttl.Pipe((0, 0), (1, 0))])\n"
         "@ttl.datamovement()\ndef dm():\n    net.if_src(lambda pipe: None)\n    net.is_dst()",
         "the destination of a pipe, (1, 0), is not on the grid of (1, 1) nodes"),
        ("net = ttl.PipeNet([ttl.Pipe((0, 1), (0, 0))])\n@ttl.datamovement()\ndef dm():\n    pass",
         "the source of a pipe, (0, 1), is not on the grid of (1, 1) nodes"),
        ("all_barrier = ttl.Semaphore().get_remote_multicast()\n"
         "@ttl.datamovement()\ndef dm():\n    all_barrier.inc(1)",
         "a semaphore of several nodes can be set only, not incremented"),
        ("ttl.signpost('a')", "ttl.signpost can only be used inside of a kernel function"),
        ("pass", "the operation 'op' has no kernel function"),
        ("return 1", "the operation 'op' returns a value; operations return None"),
    ],
)  # fmt: skip
def test_what_the_body_of_an_operation_may_not_do(body: str, message: str) -> None:
    assert failure(operation(body)).splitlines()[0].partition("error: ")[2] == message


PIPE = """
net = ttl.PipeNet([ttl.Pipe((0, 0), (1, 0))])
@ttl.datamovement()
def dm():
    def src(pipe):
        with x_dfb.reserve() as x_blk:
            ttl.copy(x[0, 0], x_blk).wait()
            ttl.copy(x_blk, pipe).wait()
    def dst(pipe):
        with y_dfb.reserve() as y_blk:
            ttl.copy(pipe, y_blk).wait()
    net.if_src(src)
    net.if_dst(dst)
"""


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("x_blk + n_blk", "the operands of + have different data types"),
        ("ttl.block.where(x_blk, x_blk, n_blk)",
         "the operands of ttl.block.where have different data types"),
        ("ttl.block.mask_posinf(n_blk, x_blk)",
         "ttl.block.mask_posinf takes blocks of floats: integers have no infinity"),
        ("x_blk * ttl.math.sign(n_blk)", "the operands of * have different data types"),
        ("-n_blk", "an expression of int32 does not fit into a block of 'y_dfb', which holds "
         "float32: kernels do not convert"),
    ],
)  # fmt: skip
def test_integers_are_no_floats(expression: str, message: str) -> None:
    body = (
        "n_dfb = ttl.make_dataflow_buffer_like(n, shape=(1, 1))\n"
        "@ttl.datamovement()\ndef read():\n"
        "    with x_dfb.reserve() as x_blk, n_dfb.reserve() as n_blk:\n"
        "        ttl.copy(x[0, 0], x_blk).wait()\n        ttl.copy(n[0, 0], n_blk).wait()\n"
        "@ttl.compute()\ndef compute():\n"
        "    with x_dfb.wait() as x_blk, n_dfb.wait() as n_blk, y_dfb.reserve() as y_blk:\n"
        f"        y_blk.store({expression})"
    )
    integers = "n = ttnn.zeros((64, 64), dtype=ttnn.int32)\n@ttl.operation"
    program = operation(body).replace("@ttl.operation", integers)
    for each in (failure(program), compiler_refusal(program)):
        assert each.splitlines()[0].partition("error: ")[2] == message
        assert each.splitlines()[2].strip() == "^"


@pytest.mark.parametrize(
    ("body", "message", "line"),
    [
        ("@ttl.datamovement()\ndef dm():\n    return 3",
         "the kernel 'dm' returns a value; kernel functions return None", "@ttl.datamovement()"),
        ("done = ttl.Semaphore()\n@ttl.datamovement()\ndef dm():\n    done.wait_ge('a')",
         "the value of a semaphore is an unsigned integer of 32 bits, not 'a'",
         "done.wait_ge('a')"),
        ("all_done = ttl.Semaphore().get_remote_multicast()\n"
         "@ttl.datamovement()\ndef dm():\n    all_done.set(-1)",
         "the value of a semaphore is an unsigned integer of 32 bits, not -1", "all_done.set(-1)"),
    ],
)  # fmt: skip
def test_what_kernels_return_and_semaphores_hold(body: str, message: str, line: str) -> None:
    for reported in (failure(operation(body)), compiler_refusal(operation(body))):
        lines = reported.splitlines()
        assert lines[0].partition("error: ")[2] == message
        assert lines[1].strip() == line


def test_the_compiler_refuses_a_block_that_a_loop_never_gives_back() -> None:
    reported = compiler_refusal(operation(kernel("DM", "for i in range(3):\n    x_dfb.reserve()")))
    assert reported.splitlines()[0].endswith("error: a block of 'x_dfb' is never pushed")


def test_a_pipe_that_is_sent_to_more_often_than_received_from() -> None:
    reported = failure(operation(PIPE.replace("net.if_dst(dst)", "pass"), grid="(2, 1)"))
    assert "the pipe (0, 0) -> (1, 0) of 'net' is not balanced: 1 copies into it, 0 out" in reported
    assert "ttl.copy(x_blk, pipe)" in reported


@pytest.mark.parametrize(("here", "there"), [("if_src(src)", "if_dst"), ("if_dst(dst)", "if_src")])
def test_the_compiler_refuses_a_net_that_has_one_end(here: str, there: str) -> None:
    other = "net.if_dst(dst)" if there == "if_dst" else "net.if_src(src)"
    reported = compiler_refusal(operation(PIPE.replace(other, "pass"), grid="(2, 1)"))
    assert (
        f"the pipes of 'net' are not balanced: the kernel 'dm' calls {here[:6]}, but no kernel "
        f"calls {there}"
    ) in reported


def test_a_pipe_that_nobody_sends_to_names_who_waits() -> None:
    reported = failure(operation(PIPE.replace("net.if_src(src)", "pass"), grid="(2, 1)"))
    assert reported.splitlines()[0].endswith("error: deadlock: no kernel can go on")
    assert "node (1, 0) waits for a block out of the pipe (0, 0) -> (1, 0)" in reported


def test_a_pipe_between_blocks_of_different_shapes() -> None:
    body = "z_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))\n" + PIPE.lstrip("\n")
    reported = failure(operation(body.replace("y_dfb.reserve", "z_dfb.reserve"), grid="(2, 1)"))
    assert (
        "a block of the shape (1, 1) was sent to the pipe (0, 0) -> (1, 0), but it is" in reported
    )


def test_a_semaphore_that_nobody_sets_names_who_waits() -> None:
    body = "done = ttl.Semaphore(3)\n@ttl.datamovement()\ndef dm():\n    done.wait_eq(5)"
    reported = failure(operation(body))
    assert "on node (0, 0) waits for 'done' to be 5 (it is 3)" in reported
    assert "done.wait_eq(5)" in reported


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("ttnn.create_sharded_memory_config((64, 64), ttnn.CoreGrid(y=3, x=1), "
         "ttnn.ShardStrategy.HEIGHT)",
         "64 rows and 64 columns cannot be divided evenly into 3 x 1 shards"),
        ("ttnn.create_sharded_memory_config((64, 64), ttnn.CoreGrid(y=4, x=1), "
         "ttnn.ShardStrategy.HEIGHT)",
         "shards of a tiled tensor are whole tiles, not 16x64 elements"),
        ("ttnn.create_sharded_memory_config((32, 64), ttnn.CoreGrid(y=1, x=1), "
         "ttnn.ShardStrategy.HEIGHT, use_height_and_width_as_shard_shape=True)",
         "a tensor of 64x64 elements has 2 x 1 shards of 32x64, but the cores have 1 x 1"),
        ("ttnn.MemoryConfig(ttnn.TensorMemoryLayout.WIDTH_SHARDED, ttnn.BufferType.L1)",
         "the memory layout WIDTH_SHARDED needs a shard_spec"),
    ],
)  # fmt: skip
def test_shards_that_do_not_suit_a_tensor(config: str, message: str) -> None:
    reported = failure(f"import ttnn\nx = ttnn.zeros((64, 64), memory_config={config})\n")
    assert reported.splitlines()[0] == f"program.py:2:{reported.split(':')[2]}: error: {message}"


def test_an_exception_of_the_program_is_reported_where_it_was_raised() -> None:
    reported = failure("def f():\n    return 1 // 0\n\nf()\n")
    assert reported.splitlines()[:3] == [
        "program.py:2:12: error: the program raised ZeroDivisionError: integer division or modulo "
        "by zero",
        "    return 1 // 0",
        "           ^",
    ]
    assert "program.py:4:1: note: called from here" in reported


def test_a_signpost_changes_nothing() -> None:
    body = (
        "@ttl.compute()\ndef compute():\n"
        "    with ttl.signpost('fill y'), y_dfb.reserve() as y_blk:\n"
        "        y_blk.store(ttl.block.fill(3, shape=(1, 1)))\n"
        "@ttl.datamovement()\ndef write():\n    with ttl.signpost('write y'):\n"
        "        with y_dfb.wait() as y_blk:\n            ttl.copy(y_blk, y[1, 1]).wait()"
    )
    y = run_text(operation(body))["y"]
    assert isinstance(y, Tensor)
    assert (y.elements()[32:, 32:] == 3).all()
    assert not y.elements()[:32].any()


def test_debug_printing(capsys: pytest.CaptureFixture[str]) -> None:
    body = (
        'print("x:", x)\n@ttl.datamovement()\ndef dm():\n    with x_dfb.reserve() as x_blk:\n'
        "        ttl.copy(x[0, 0], x_blk).wait()\n"
        '        print("i=", 3, " state: ", x_dfb)\n        print("x: ", x, num_pages=2)\n'
        '        print("blk", x_blk)'
    )
    run_text(operation(body).replace("ttnn.rand((64, 64))", "ttnn.ones((64, 64))"))
    reported = capsys.readouterr().out
    assert (
        "i= 3  state:  DataflowBuffer x_dfb: shape=(1, 1), block_count=2, size=4096, " in reported
    )
    assert "page_size=2048, rd_ptr=0, wr_ptr=0, wr_tile_ptr=0" in reported
    assert "page 1:\n[[1. 1." in reported
    assert "page 2" not in reported


def test_the_command_line_runs_a_program_with_its_arguments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, ttl, ttnn\nimport beside\nprint(sys.argv[1:], ttl.__name__, beside.N, "
        "__name__)\nsys.exit(3)\n"
    )
    tmp_path.joinpath("beside.py").write_text("N = 5\n")
    assert main([str(program), "--", "a", "b"]) == 3
    assert capsys.readouterr().out == "['a', 'b'] ttcodegen.lang.ttl 5 __main__\n"
    assert "ttl" not in sys.modules
    assert "ttnn" not in sys.modules


def test_a_wrong_program_ends_the_command_with_a_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.py"
    program.write_text("import ttl\nttl.node(dims=1)\n")
    assert main([str(program)]) == 1
    assert capsys.readouterr().err == (
        f"{program}:2:1: error: ttl.node can be used inside an operation function only\n"
        "ttl.node(dims=1)\n^\n"
    )
    assert main([str(tmp_path / "missing.py")]) == 1


def test_the_real_packages_are_not_hidden_outside() -> None:
    text = "import ttcodegen.lang.ttl, sys; print([n for n in ('ttl', 'ttnn') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_versions_of_the_specification_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--spec"]) == 0
    printed = capsys.readouterr().out
    assert "0.21     yes        yes       ttl.read_index\n" in printed
    assert "0.22     yes        no        ttnn.NdShardSpec" in printed


def test_the_documentation_lists_the_same_features() -> None:
    text = (Path(__file__).parents[2] / "docs" / "tt-lang.md").read_text("utf-8")
    rows = re.findall(r"^\| (0\.\d+): (.*) \| .* \| (.*) \|$", text, re.MULTILINE)
    assert [Feature(version, name, made != "no") for version, name, made in rows] == [*FEATURES]
