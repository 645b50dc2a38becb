"""Statements and expressions of Python in kernels: they do what Python does, or are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lang.running import HEAD, compiler_refusal
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.lang.projects.programs import run_program_text
from ttcodegen.lang.projects.projects import Projects

_PROGRAM = """
@ttl.operation(grid=(1, 2))
def op(y):
    dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1))
    first, second = lambda a: a + 1, lambda a: a + 2
    options = dict(scale=3)
    shared, own = 0, ttl.node(dims=1)
    @ttl.compute()
    def compute():
        assert shared == 0
        for _ in range(2):
            with dfb.reserve() as blk:
                blk.store(ttl.block.fill(1, shape=(1, 1)))
    @ttl.datamovement()
    def write():
        row = ttl.node(dims=2)[1]
        def put(n):
            with dfb.wait() as blk:
                ttl.copy(blk, y[row, n]).wait()
        STATEMENTS
op(y)
"""
_FUNCTIONS = """
from ttl import node as where
def place():
    return where(dims=1)
def after(n):
    return place() + n
def scaled(n, scale=1):
    return n * scale
def counted(n):
    total = 0
    while n:
        n, total = n - 1, total + 2
    return total
"""


def program(statements: str) -> str:
    """A program whose kernel has these statements."""
    lines = statements.replace("\n", "\n        ")
    return HEAD + _FUNCTIONS + _PROGRAM.replace("STATEMENTS", lines)


@pytest.mark.parametrize(
    ("statements", "message", "at"),
    [
        (
            "n = 3\nfor i in range(2):\n    put(i)\n    n -= 1\nprint(n)",
            "may become negative",
            "n -=",
        ),
        ("n = -1\nfor i in range(2):\n    n += 1\n    put(n)", "may become negative", "for i in"),
        ("a = True\nfor i in range(2):\n    put(0 if a else i)\n    a = False", "'a' is", "a else"),
        ("for i in range(2):\n    put(i)\nprint(i)", "'i' depends on the control flow", "i)"),
        ("for i in range(2):\n    a = (i, 0)\n    put(i)\nprint(a[0])", "'a' depends", "a[0]"),
        ("for i in range(2):\n    a = i == 1\n    put(i)\nif a: print(a)", "'a' depends", "a:"),
        ("for i in [r for r in range(2) if r != row]: put(i)", "takes a choice that is", "r !="),
        (
            "n = 'a'\ndef f():\n    nonlocal n\n    n = 'b'\nf()\nprint(n)",
            "'n' is a variable of a function around this one",
            "n = 'b'",
        ),
        ("nonlocal shared\nshared += 1", "'write' and 'compute' share the variable", "nonlocal"),
        ("nonlocal first\nfirst = 1", "'first' is no number", "nonlocal"),
        ("print(row or 'a')", "does not choose between these", "row or"),
        ("match row:\n    case [1, *_]: put(1)", "values, | and names only", "match"),
        ("try: put(1)\nexcept ValueError: pass", "have no statement 'try'", "try"),
        ("if row: raise ValueError", "have no statement 'raise'", "raise"),
        (
            "if row:\n    def f(): return 0\nelse:\n    def f(): return 1\nput(f())",
            "'f' dep",
            "f()",
        ),
        ("n = row\nwhile n < 4: n -= 1", "this loop changes never makes its", "while"),
        ("n = row\nwhile n < 4: put(n)", "never ends: nothing in this loop", "while"),
        ("n = 0\nwhile n < row: n += 2\nprint(n)", "'n' depends on the control flow", "n)"),
        ("d = {row: 1}\nprint(d[0])", "a key of a dictionary is known", "row:"),
        ("d = {'a': 1}\nprint(d[row])", "is one of integers", "d[row]"),
        ("print(-row & 1)", "operators of bits of numbers that are 0 or more", "-row &"),
        ("print([(1, 'a'), (2, 'b')][row])", "one of a sequence of integers", "[(1"),
        ("if [row] == [5]: put(0)", "no comparison Eq of these", "[row]"),
        ("if (row == 5) is True: put(0)", "no comparison Is of these", "row =="),
        ("for i in range(2): put('a')", "an index of a tensor is an integer or a slice", "ttl.co"),
        ("for i in range(2): put(row == i)", "an index of a tensor is an integer or", "ttl.copy"),
        ("for i in range(2): put(slice(0, None, 2))", "a slice has the step 2", "ttl.copy"),
    ],
)
def test_what_a_kernel_cannot_do_as_python_does_is_refused(
    statements: str, message: str, at: str
) -> None:
    reported = compiler_refusal(program(statements)).splitlines()
    assert message in reported[0]
    assert reported[1][reported[2].index("^") :].startswith(at)


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ("if not row: print('first')", "if (node_row == 0) {"),
        ("if not (row and True): print('first')", "if (node_row == 0) {"),
        ("if row and (0 or row == 1): print('last')", "if (node_row != 0 && node_row == 1) {"),
        ("if 0 < row <= 1 < 2: print('last')", "if (0 < node_row && node_row <= 1) {"),
        ("print(first(row), second(row))", 'DPRINT("{} {}\\n", node_row + 1, node_row + 2);'),
        ("print(scaled(row, **options))", 'DPRINT("{}\\n", node_row * 3);'),
        ("print(after(1))", 'DPRINT("{}\\n", node_column * 2 + node_row + 1);'),
        ("print(counted(3), row, sep=None)", 'DPRINT("6 {}\\n", node_row);'),
        ("assert row < 2", "noc_async_write_page(node_row * 2 + i"),
        ("n = 5\nfor k in range(1, 3):\n    n = k\n    print(n)\n    n = 5", 'DPRINT("{}\\n", k);'),
        ("n = 0\nfor k in range(2):\n    print(n)\n    n = n + 1", "n = n + 1;"),
        ("n = 0\nfor k in range(2):\n    n += 1\n    m = n\n    print(m)", 'DPRINT("{}\\n", n);'),
        ("a, b = 0, 1\nfor k in range(2):\n    print(a)\n    a, b = b, a", "b = a_before;"),
        ("n = 0\nfor k in range(2):\n    m = n\n    n += k\n    print(m)", '", n_before);'),
        ("n = 1\nif row == 1: n = 2\nprint(n)", 'DPRINT("{}\\n", n);'),
        ("n = 1\nif row == 1: n = 2\nelse: n = row + 3\nprint(n)", "n = node_row + 3;"),
        ("n = row * 2\nfor k in range(2): n = max(n, k)\nprint(n)", "n = node_row * 2;"),
        (
            "n = 0\nfor k in range(2):\n    if n == 0: n = 1\n    else: n = 0",
            "if (n == 0) {",
        ),
        ("print(row ^ 1, 6 & row, row | 4)", '"{} {} {}\\n", (node_row ^ 1), (6 & node_row)'),
        ("print(row << 2, row >> 1)", 'DPRINT("{} {}\\n", node_row * 4, node_row / 2);'),
        ("print(row ** 2, abs(row - 3))", "node_row * node_row"),
        (
            "n = 5 if row == 1 else row\nprint(n)",
            "uint32_t n = node_row == 1 ? 5 : node_row;",
        ),
        ("if row in (1, 3): print(1)", "if (node_row == 1 || node_row == 3) {"),
        ("if row not in range(2, 8, 2): print(1)", "if (node_row < 2 || node_row >= 8"),
        ("if any([row == 5, row > 6]): print(1)", "if (node_row == 5 || node_row > 6) {"),
        ("print(int((row + 2) / 3), int(row / 3))", "(node_row + 2) / 3"),
        ("print(sum([row, 2, row]))", "node_row + 2 + node_row"),
        ("if (n := row + 1) > 3: print(n)", "const uint32_t n = node_row + 1;"),
        ("order = (3, 1, 0, 2)\nprint(order[row])", "constexpr uint32_t order[] = {3, 1, 0, 2};"),
        ("for n, m in enumerate(range(row, 4)): print(n, m)", "position < 4 - node_row;"),
        ("for n, m in zip(range(4), range(row, 9)): print(n, m)", "std::min<uint32_t>("),
        ("ns = range(row, 8, 2)\nfor n in ns: print(n)", "n = node_row; n < 8; n += 2"),
        ("for n in range(4): print(n)\nelse: print(7)", 'DPRINT("7\\n");'),
        (
            "n = row\nwhile True:\n    if n >= 4: break\n    print(n)\n    n += 1",
            "n = node_row; n < 4; ++n",
        ),
        ("n = row * 9\nwhile n > 2: n //= 2\nprint(n)", "while (n > 2) {"),
        ("n = row * 9\nwhile n > 0: n -= 1", "n = n - 1;"),
        ("for n in range(9):\n    if n * n > row: break\n    print(n)", "going = 0;"),
        ("n = 0\nfor k in range(3):\n    for m in range(n): print(m)\n    n += 1", "m < n; ++m"),
        ("for k in range(2): pass\nfor k in range(3):\n    print(k)", 'DPRINT("{}\\n", k);'),
        ("print(len([row]), [row, 7][1], max([row, 2]))", 'DPRINT("1 7 {}\\n", std::max<'),
        ("print(max([7]), min((row,)))", 'DPRINT("7 {}\\n", node_row);'),
        ("for a, b in zip([row] * 2, [1] + [row]): print(a, b)", 'DPRINT("{} 1\\n", node_row);'),
        ("for n in range(6, 0, -2): print(n)", "n = 6 - iteration * 2;"),
        ("for n in range(row + 1, 0, -1): print(n)", "n = sum - iteration;"),
        ("n = row\nwhile n < 2:\n    print(n)\n    n += 1", "n = node_row; n < 2; ++n"),
        ("n = 0\nwhile n <= row:\n    print(n)\n    n = n + 3", "n < node_row + 1; n += 3"),
        ("n = 0\nwhile n < row: n += 1\nprint(n)", 'DPRINT("{}\\n", n);'),
        ("n = 1\nwhile n < 6: n += 2\nprint(n)", 'DPRINT("7\\n");'),
        ("n = 4\nwhile n > 2: n -= 1\nprint(n)", 'DPRINT("2\\n");'),
        ("for k in range(5):\n    if k == row: continue\n    print(k)", "if (k != node_row) {"),
        ("for k in [1, 2]:\n    if k == 1: continue\n    print(k)", 'DPRINT("2\\n");'),
        ("print([(a, b) for a in range(3) if a for b in range(a)])", "[(1, 0), (2, 0), (2, 1)]"),
        ("print(*divmod(row + 5, 3))", 'DPRINT("{} {}\\n", sum / 3, '),
        ("range = lambda n: (1, 0)", "noc_async_write_page(node_row * 2 + 1,"),
        (
            "for k in range(5):\n    if row:\n        if k: continue\n        print(k)\n"
            "    print(9)",
            "    if (live != 0) {",
        ),
        (
            "for k in range(5):\n    if k == row: continue\n    if k > 2: break\n    print(k)",
            "going",
        ),
        (
            "n = k = 0\nwhile n < 4:\n    k += 1\n    if k % 2: continue\n    n += 1\nprint(k)",
            "while (n < 4) {",
        ),
        ("match row:\n    case 0: print(5)\n    case _: print(6)", "if (node_row == 0) {"),
        (
            "match row + 1:\n    case 1 | 3: print(5)\n    case n if n > 1: print(n)",
            "if (matched == 1 || matched == 3) {",
        ),
        (
            "match ttl.node(dims=2):\n    case (0, r) if r > 0: print(r)\n    case _: pass",
            "if (node_column == 0 && node_row > 0) {",
        ),
        ("match (row, 2):\n    case (1, 3) | (0, 2): print(4)", "if (node_row == 0) {"),
        ("d = {0: 5, 1: 7}\nprint(d[row])", "constexpr uint32_t table[] = {5, 7};"),
        ("d = dict([(1, 5), (3, 7)])\nprint(d[row * 2 + 1])", "== 1 ? 5 : 7));"),
        ("d = {n: n * n for n in range(3)}\nprint(d[row + 1])", "table[] = {0, 1, 4};"),
        ("if row in {1, 4}: print(1)", "if (node_row == 1 || node_row == 4) {"),
        (
            "for k in range(4):\n    if k > row: break\n    print(k)\nelse: print(9)",
            "    if (going != 0) {\n        DPRINT",
        ),
        ("z = 3\nfor k in range(2): z = z - 1 if z > 0 else 0\nprint(z)", "z > 0 ? z - 1 : 0;"),
        (
            "if row == 0: v = 3\nelif row == 1: v = row + 7\nelse: v = 0\nprint(v)",
            "v = node_row + 7;",
        ),
        ("print(row or 3, row and 4)", "(node_row != 0 ? node_row : 3), "),
        ("n = 0\ndef f():\n    nonlocal n\n    n += row\nf()\nprint(n)", "n = n + node_row;"),
        ("nonlocal own\nown += 1\nprint(own)", "own = own + 1;"),
        ("import math\nprint(math.ceil(row / 3))", "(node_row + 2) / 3"),
        ("from math import floor as down\nprint(down(row / 3))", "node_row / 3"),
    ],
)
def test_kernels_do_what_python_does(statements: str, expected: str, tmp_path: Path) -> None:
    text = program(statements + "\nfor i in range(2):\n    put(i)")
    source = Source("program.py", text)
    projects = Projects(source.digest, tmp_path)
    run_program_text(source, [], projects.watch)
    written = (projects.written[0] / "kernels" / "write.cpp").read_text()
    assert expected in written


def test_a_function_may_end_early_several_times(tmp_path: Path) -> None:
    statements = "for i in range(2): put(i)\nif 1 > 2: return\nif row == 0: return\n"
    statements += "print('a')\nif row == 1: return\nprint('b')"
    source = Source("program.py", program(statements))
    projects = Projects(source.digest, tmp_path)
    run_program_text(source, [], projects.watch)
    written = (projects.written[0] / "kernels" / "write.cpp").read_text()
    ends = [written.index(f"node_row != {row}") for row in (0, 1)]
    prints = [written.index(f'DPRINT("{text}') for text in "ab"]
    assert ends[0] < prints[0] < ends[1] < prints[1]


def computing(statements: str) -> str:
    """A program whose compute kernel has these statements, which push two blocks."""
    before, after = (
        (
            "        for _ in range(2):\n            with dfb.reserve() as blk:\n"
            "                blk.store(ttl.block.fill(1, shape=(1, 1)))\n"
        ),
        "        " + statements.replace("\n", "\n        ") + "\n",
    )
    text = program("for i in range(2): put(i)")
    assert before in text
    return text.replace(before, after)


def test_blocks_that_change_places_in_a_loop_are_kept_apart(tmp_path: Path) -> None:
    statements = (
        "a = ttl.block.fill(1, shape=(1, 1))\nb = ttl.block.fill(2, shape=(1, 1))\n"
        "for _ in range(2):\n"
        "    a, b = b, a\n    with dfb.reserve() as blk: blk.store(a)"
    )
    source = Source("program.py", computing(statements))
    projects = Projects(source.digest, tmp_path)
    run_program_text(source, [], projects.watch)
    written = (projects.written[0] / "kernels" / "compute.cpp").read_text()
    kept, first, second = (
        written.index(f"cb_reserve_back(cb_{name}, 1);", written.index("for (uint32_t"))
        for name in ("b_before", "a", "b")
    )
    assert kept < first < second < written.index("cb_pop_front(cb_b_before, 1);")


def test_a_variable_that_holds_a_copy_of_a_block_is_not_stored_into() -> None:
    statements = (
        "p = ttl.block.fill(1, shape=(1, 1))\nfor _ in range(2):\n"
        "    p = -p\n    with dfb.reserve() as blk:\n        blk.store(p)\n"
        "        p = blk\n        p += p"
    )
    reported = compiler_refusal(computing(statements)).splitlines()
    assert "'p' is a block of 'dfb' here, into which += stores, and another value" in reported[0]
    assert reported[1].strip() == "p += p"


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        # Only += stores: other assignments with operators give the variable an expression.
        ("    blk *= blk", []),
        ("    blk += blk", ["add_binary_tile(dst0, dst0, dst0);"]),
        # What is needed of a block after it was pushed is computed before.
        (
            "    twice = blk + blk\nwith dfb.reserve() as blk: blk.store(twice)",
            ["cb_reserve_back(cb_twice, 1);", "cb_push_back(cb_dfb, 1);", "cb_pop_front(cb_twice"],
        ),
    ],
)
def test_what_becomes_of_a_block_that_is_stored_into(
    statements: str, expected: list[str], tmp_path: Path
) -> None:
    start = "with dfb.reserve() as blk:\n    blk.store(ttl.block.fill(3, shape=(1, 1)))\n"
    end = "" if "twice" in statements else "\nwith dfb.reserve() as last:\n    last.store(one)"
    start = "one = ttl.block.fill(1, shape=(1, 1))\n" + start
    source = Source("program.py", computing(start + statements + end))
    projects = Projects(source.digest, tmp_path)
    run_program_text(source, [], projects.watch)
    written = (projects.written[0] / "kernels" / "compute.cpp").read_text()
    places = [written.find(line) for line in expected]
    assert -1 not in places
    assert places == sorted(places)
    assert ("_binary_tile(" in written) is bool(expected)
