"""One op, one place: what is true of an op is in the catalogue, not in sets of names."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from ttcodegen.ops.core.definition import TTIR, TTNN
from ttcodegen.ops.dialects import load_dialects

PACKAGE = Path(__file__).parents[2] / "ttcodegen"
OTHER_NAMES = tuple(
    "ops frontends emitc parsing dialects/ttkernel lang rt judging runtime compat "
    "systems/releases".split()
)
"""Folders with the catalogue itself, and with other names: of source dialects, of C++ operators, of
functions on tiles, of Python functions, of TT-Lang, of ways to make inputs, of former years, of
the functions of a release."""
KNOWN = {
    "conversions/ttir_to_ttmetal/grouping/index_maps.py": (
        1,
        "index maps of device programs, a function",
    ),
    "conversions/ttir_to_ttmetal/grouping/tile_operations.py": (1, "how kernels combine tiles"),
    "optimizer/circular_buffers.py": (
        4,
        "buffers of the program factories, read and measured",
    ),
    "optimizer/cost/work.py": (1, "traffic of collectives over links, as measured"),
    "optimizer/candidates.py": (1, "calls that were measured to take a target"),
    "project/tuning/matching.py": (1, "kinds of calls, which are no names of a model's ops"),
    "transforms/ttir/movement_passes.py": (1, "ops whose attributes the pass permutes"),
    "transforms/ttir/fusing/activations.py": (1, "a pattern: what scales a factor"),
    "transforms/ttir/fusing/attention.py": (4, "patterns: what is between the matmuls, masks"),
    "transforms/ttir/integer_arithmetic.py": (1, "ops whose sums the pass converts once, not each"),
    "transforms/ttir/integer_ranges.py": (1, "interval arithmetic, functions"),
    "transforms/ttir/position_forms.py": (1, "comparisons of two numbers, functions"),
    "transforms/ttir/position_values.py": (4, "forms of values by positions, functions"),
    "transforms/ttir/queries.py": (4, "signs of results, for this pass's look at a few ops"),
    "transforms/ttir/source_types.py": (1, "functions on which a rounded f16 shows"),
}
"""Number of such collections by file, and why they are no traits.

They are tables of functions that one pass or target has for each of a few ops, and patterns. The
numbers only go down; what is true of an op is a trait (`ttcodegen.ops.core.traits`) or a field of
its definition.
"""
FEW = 3


def texts(node: ast.AST) -> list[str | None]:
    """The elements of a collection of texts; None for one that is no text."""
    match node:
        case ast.Set(elements) | ast.List(elements) | ast.Tuple(elements):
            return [e.value if isinstance(e, ast.Constant) else None for e in elements]  # type: ignore[misc]
        case ast.Dict(keys):
            return [e.value if isinstance(e, ast.Constant) else None for e in keys]  # type: ignore[misc]
        case ast.Call(ast.Attribute(ast.Constant(str() as text), "split"), []):
            return list(text.split())
        case _:
            return []


def stray_sets(source: str) -> int:
    """Number of collections in a source file that consist mostly of names of ops."""
    names = {*TTIR, *TTNN}
    found = 0
    for node in ast.walk(ast.parse(source)):
        elements = texts(node)
        ops = [
            text
            for text in elements
            if isinstance(text, str) and text.removeprefix("ttir.").removeprefix("ttnn.") in names
        ]
        found += len(ops) >= FEW and 2 * len(ops) > len(elements)
    return found


def names_products(source: str) -> bool:
    """Returns whether a collection of a source file consists of the matmul ops."""
    found = (texts(node) for node in ast.walk(ast.parse(source)))
    plain = ({str(e).rpartition(".")[2] for e in elements} for elements in found)
    return {"matmul", "linear"} in plain


@pytest.fixture(autouse=True, scope="module")
def catalogue() -> None:
    """Loads the catalogue."""
    load_dialects()


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('x = frozenset("relu gelu silu".split())', 1),
        ('x = {"ttir.add": 1, "ttir.subtract": 2, "ttir.multiply": 3}', 1),
        ('x = ("ttnn.sum", "ttnn.max", "width", "height", "depth")', 0),
        ('x = ["relu", "gelu"]', 0),
    ],
)
def test_sets_of_ops_are_found(source: str, count: int) -> None:
    assert stray_sets(source) == count


def test_there_are_no_new_sets_of_ops() -> None:
    found: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(OTHER_NAMES):
            found[name] = stray_sets(path.read_text("utf-8"))
    known = {name: count for name, (count, _) in KNOWN.items()}
    assert {name: count for name, count in found.items() if count} == known


def test_products_of_matrices_are_a_trait() -> None:
    paths = [path for path in PACKAGE.rglob("*.py") if names_products(path.read_text("utf-8"))]
    named = {path.relative_to(PACKAGE).as_posix() for path in paths}
    # Where they are defined, and a table of calls in Python.
    assert named == {"ops/matmul/matmul.py", "judging/python_calls.py"}
