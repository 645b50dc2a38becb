"""Products, convolutions, windows, norms, movement, reductions, orders and lookups, on inputs from
the edges of their types, in all three meanings and for both targets, against PyTorch: ten seeds of
each, along the first dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.op_cases.cpp_runs import run_cpp
from tests.op_cases.test_edge_values import (
    FLOATS,
    INTEGERS,
    NUMPY,
    SEEDS,
    kind_that_differs,
)
from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.project.checking import run_in_numpy
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.running import FunctionRuns
from ttcodegen.project.toolchain import Toolchain

torch = pytest.importorskip("torch")
functional = torch.nn.functional

FLOAT = ("f32", "bf16")
ORDINARY = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -0.25)
POOLS: dict[str, tuple[float, ...]] = {
    # Of numbers that overflow, the order of what is added decides.
    "sums": (*ORDINARY, *ORDINARY, *ORDINARY, 1e-40, -1e-40, np.inf, -np.inf, np.nan),
    "all": FLOATS,
    "ordinary": ORDINARY,
    "numbers": tuple(each for each in FLOATS if not np.isnan(each)),
}


@dataclass(frozen=True)
class Row:
    """An op of TTIR on operands of some shapes, and its meaning in PyTorch."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    result: tuple[int, ...]
    meaning: Callable[..., Any]
    attributes: str = ""
    types: tuple[str, ...] = FLOAT
    pool: str = "sums"
    weights: int = 0
    """Number of the last operands, which are finite."""
    indices: int | None = None
    """Places that the operand `index` has indices of."""
    index: int = 1
    yields: str | None = None
    """Element type of the result, if another one."""
    others: tuple[str, ...] = ()
    """Element types of further results, which are not compared."""


def _nchw(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of PyTorch on tensors with the channels last."""

    def apply(x: Any, *others: Any) -> Any:
        return function(x.permute(0, 3, 1, 2), *others).permute(0, 2, 3, 1)

    return apply


def _conv(function: Callable[..., Any], **options: int) -> Callable[..., Any]:
    return _nchw(lambda x, weight, bias: function(x, weight, bias.reshape(-1), **options))


EVERY = (*FLOAT, *INTEGERS)
WINDOW = "dilation = array<i32: 1, 1>, kernel = array<i32: 2, 2>, "
WINDOW += "padding = array<i32: 1, 1, 1, 1>, stride = array<i32: 2, 2>, ceil_mode = false"
CONV = "dilation = array<i32: 1, 1>, groups = 1 : i32, padding = array<i32: 1, 1, 1, 1>, "
CONV += "stride = array<i32: 1, 1>"
S = SEEDS
IMAGE = (S, 6, 6, 4)

PRODUCTS = (
    Row("matmul", ((S, 5, 40), (S, 40, 6)), (S, 5, 6), torch.matmul, weights=1),
    Row("matmul", ((S, 5, 40), (S, 40, 6)), (S, 5, 6), torch.matmul),
    Row(
        "matmul",
        ((S, 40, 5), (6, 40)),
        (S, 5, 6),
        lambda a, b: a.mT @ b.mT,
        "transpose_a = true, transpose_b = true",
        weights=1,
    ),
    Row(
        "linear",
        ((S, 40), (40, 6), (6,)),
        (S, 6),
        lambda x, w, b: x @ w + b,
        weights=2,
    ),
    Row(
        "conv2d",
        (IMAGE, (5, 4, 3, 3), (1, 1, 1, 5)),
        (S, 6, 6, 5),
        _conv(functional.conv2d, padding=1),
        CONV,
        weights=2,
    ),
    Row(
        "conv_transpose2d",
        (IMAGE, (4, 5, 3, 3), (1, 1, 1, 5)),
        (S, 8, 8, 5),
        _conv(functional.conv_transpose2d),
        CONV.replace("1, 1, 1, 1", "0, 0, 0, 0") + ", output_padding = array<i32: 0, 0>",
        weights=2,
    ),
    Row(
        "avg_pool2d",
        (IMAGE,),
        (S, 4, 4, 4),
        _nchw(lambda x: functional.avg_pool2d(x, 2, 2, 1)),
        WINDOW + ", count_include_pad = true",
    ),
    Row(
        "global_avg_pool2d",
        (IMAGE,),
        (S, 1, 1, 4),
        _nchw(lambda x: functional.adaptive_avg_pool2d(x, 1)),
    ),
    Row(
        "dot_general",
        ((S, 40, 5), (S, 6, 40)),
        (S, 5, 6),
        lambda a, b: a.mT @ b.mT,
        "batch_dims_lhs = array<i64: 0>, batch_dims_rhs = array<i64: 0>, "
        "contract_dims_lhs = array<i64: 1>, contract_dims_rhs = array<i64: 2>",
        weights=1,
    ),
    Row(
        "conv1d",
        ((S, 12, 4), (5, 4, 3)),
        (S, 10, 5),
        lambda x, w: functional.conv1d(x.mT, w).mT,
        "stride = 1 : i32, padding = array<i32: 0, 0>, dilation = 1 : i32",
        weights=1,
    ),
    Row(
        "group_norm",
        ((S, 1, 9, 8), (8,), (8,)),
        (S, 1, 9, 8),
        _nchw(lambda x, w, b: functional.group_norm(x, 2, w, b, 1e-5)),
        "num_groups = 2 : i64, epsilon = 1.0e-5 : f32, "
        "operandSegmentSizes = array<i32: 1, 0, 1, 1>",
        weights=2,
    ),
    Row(
        "max_pool2d",
        (IMAGE,),
        (S, 4, 4, 4),
        _nchw(lambda x: functional.max_pool2d(x, 2, 2, 1)),
        WINDOW,
        pool="numbers",
    ),
    Row(
        "layer_norm",
        ((S, 40), (40,), (40,)),
        (S, 40),
        lambda x, w, b: functional.layer_norm(x, (40,), w, b, 1e-5),
        "epsilon = 1.0e-5 : f32, normalized_shape = array<i64: 40>, "
        "operandSegmentSizes = array<i32: 1, 1, 1>",
        weights=2,
    ),
    Row(
        "rms_norm",
        ((S, 40), (40,)),
        (S, 40),
        lambda x, w: functional.rms_norm(x, (40,), w, 1e-5),
        "epsilon = 1.0e-5 : f32, normalized_shape = array<i64: 40>, "
        "operandSegmentSizes = array<i32: 1, 1, 0>",
        weights=1,
    ),
)


def _moved(
    name: str,
    result: tuple[int, ...],
    meaning: Callable[..., Any],
    attributes: str,
    shapes: tuple[tuple[int, ...], ...] = ((S, 3, 8),),
    **options: Any,
) -> Row:
    return Row(name, shapes, result, meaning, attributes, EVERY, "all", **options)


MOVEMENT = (
    _moved(
        "permute",
        (8, S, 3),
        lambda x: x.permute(2, 0, 1),
        "permutation = array<i64: 2, 0, 1>",
    ),
    _moved("transpose", (S, 8, 3), lambda x: x.mT, "dim0 = 1 : si32, dim1 = -1 : si32"),
    _moved(
        "reshape",
        (S * 2, 12),
        lambda x: x.reshape(S * 2, 12),
        f"shape = [{S * 2} : i32, 12 : i32]",
    ),
    _moved(
        "slice_static",
        (S, 2, 3),
        lambda x: x[:, 1:3, 1:7:2],
        f"begins = [0 : i32, 1 : i32, 1 : i32], ends = [{S} : i32, 3 : i32, 7 : i32], "
        "step = [1 : i32, 1 : i32, 2 : i32]",
    ),
    _moved(
        "concat",
        (S, 5, 8),
        lambda a, b: torch.cat([a, b], 1),
        "dim = 1 : si32",
        ((S, 3, 8), (S, 2, 8)),
    ),
    _moved(
        "pad",
        (S, 6, 9),
        lambda x: functional.pad(x, (0, 1, 1, 2), value=3),
        "padding = array<i32: 0, 0, 1, 2, 0, 1>, value = 3.0 : f32",
    ),
    _moved(
        "repeat",
        (S, 6, 8),
        lambda x: x.repeat(1, 2, 1),
        "repeat_dimensions = array<i64: 1, 2, 1>",
    ),
    _moved(
        "repeat_interleave",
        (S, 3, 16),
        lambda x: x.repeat_interleave(2, -1),
        "repeats = 2 : ui32, dim = 2 : si32",
    ),
    _moved("reverse", (S, 3, 8), lambda x: x.flip(2), "dimensions = array<i64: 2>"),
    _moved(
        "broadcast",
        (S, 3, 8),
        lambda x: x.expand(S, 3, 8),
        "broadcast_dimensions = array<i64: 1, 1, 8>",
        ((S, 3, 1),),
    ),
    _moved("squeeze", (S, 8), lambda x: x[:, 0], "dim = 1 : si32", ((S, 1, 8),)),
    _moved("unsqueeze", (S, 1, 3, 8), lambda x: x[:, None], "dim = 1 : si32"),
    _moved("rearrange", (S, 8, 3), lambda x: x.mT, 'pattern = "b r c -> b c r"'),
    _moved(
        "index",
        (S, 3, 3),
        lambda x: x[:, :, 1:7:2],
        "dim = 2 : i32, begin = 1 : i32, end = 7 : i32, step = 2 : i32",
    ),
    _moved(
        "upsample2d",
        (S, 6, 10, 4),
        _nchw(lambda x: x.repeat_interleave(2, 2).repeat_interleave(2, 3)),
        'scale_factor = 2 : si32, mode = "nearest"',
        ((S, 3, 5, 4),),
    ),
    _moved(
        "scatter",
        (S, 3, 8),
        lambda x, at, y: x.scatter(2, at, y),
        "dim = 2 : i32",
        ((S, 3, 8), (S, 3, 1), (S, 3, 1)),
        indices=8,
    ),
    _moved(
        "gather",
        (S, 3, 8),
        lambda x, at: torch.gather(x, 2, at),
        "dim = 2 : i32",
        ((S, 3, 8), (S, 3, 8)),
        indices=8,
    ),
    _moved(
        "embedding",
        (5, 8),
        lambda at, x: x[at],
        "",
        ((5,), (S, 8)),
        indices=S,
        index=0,
    ),
)


def _reduced(name: str, meaning: Callable[..., Any], types: tuple[str, ...], pool: str) -> Row:
    attributes = "dim_arg = [1 : i32, 2 : i32], keep_dim = true"
    return Row(name, ((S, 3, 8),), (S, 1, 1), meaning, attributes, types, pool)


REDUCTIONS = (
    _reduced("sum", lambda x: x.sum((1, 2), keepdim=True, dtype=x.dtype), EVERY, "sums"),
    _reduced("mean", lambda x: x.mean((1, 2), keepdim=True), FLOAT, "sums"),
    _reduced("max", lambda x: x.amax((1, 2), keepdim=True), EVERY, "all"),
    _reduced("min", lambda x: x.amin((1, 2), keepdim=True), EVERY, "all"),
    Row(
        "prod",
        ((S, 8),),
        (S,),
        lambda x: x.prod(1, dtype=x.dtype),
        "dim_arg = [1 : i32], keep_dim = false",
        (*FLOAT, "i32", "ui32"),
    ),
    *(
        Row(
            "scatter",
            ((S, 3, 8), (S, 3, 8), (S, 3, 8)),
            (S, 3, 8),
            meaning,
            f'dim = 2 : i32, scatter_reduce_type = "{kind}"',
            tuple(INTEGERS),
            indices=3,
        )
        for kind, meaning in (
            ("sum", lambda x, at, y: x.scatter_add(2, at, y)),
            ("prod", lambda x, at, y: x.scatter_reduce(2, at, y, "prod")),
        )
    ),
    Row(
        "cumsum",
        ((S, 8),),
        (S, 8),
        lambda x: x.cumsum(1, dtype=x.dtype),
        "dim = 1 : i64",
        (*FLOAT, "i32", "ui32"),
    ),
    Row(
        "cumprod",
        ((S, 8),),
        (S, 8),
        lambda x: x.cumprod(1, dtype=x.dtype),
        "dim = 1 : i64",
        (*FLOAT, "i32", "ui32"),
    ),
    Row(
        "topk",
        ((S, 8),),
        (S, 3),
        lambda x: x.topk(3).values,
        "k = 3 : i32, dim = -1 : i32, largest = true, sorted = true",
        (*FLOAT, "i32", "ui32"),
        "numbers",
        others=("i32",),
    ),
    Row(
        "argmax",
        ((S, 8),),
        (S,),
        lambda x: x.argmax(1),
        "dim_arg = [1 : i32], keep_dim = false",
        (*FLOAT, "i32"),
        "numbers",
        yields="i32",
    ),
    Row(
        "sort",
        ((S, 8),),
        (S, 8),
        lambda x: x.sort(1).values,
        "dim = 1 : si32, descending = false, stable = false",
        (*FLOAT, "i32", "ui32"),
        "numbers",
        others=("i32",),
    ),
)
ROWS = (*PRODUCTS, *MOVEMENT, *REDUCTIONS)
SUMS = {row.name for row in PRODUCTS} | {"sum", "mean", "prod", "cumsum", "cumprod"}
"""Ops whose results are as far off as their largest one allows."""


def rows_of(element: str) -> list[Row]:
    return [row for row in ROWS if element in row.types]


def tensor(shape: Sequence[int], element: str) -> str:
    return f"tensor<{'x'.join(map(str, (*shape, element)))}>"


def text_of(element: str, rows: Sequence[Row]) -> str:
    """A function of all rows, each with its own operands."""
    arguments: list[str] = []
    lines: list[str] = []
    results: list[tuple[str, str]] = []
    for index, row in enumerate(rows):
        types = [tensor(shape, element) for shape in row.shapes]
        if row.indices is not None:
            types[row.index] = tensor(row.shapes[row.index], "ui32")
        names = [f"%r{index}_{number}" for number in range(len(types))]
        arguments += [f"{name}: {type_}" for name, type_ in zip(names, types, strict=True)]
        result = tensor(row.result, row.yields or element)
        given = f" <{{{row.attributes}}}>" if row.attributes else ""
        further = [tensor(row.result, each) for each in row.others]
        of = f"({', '.join([result, *further])})" if further else result
        value = f"%v{index}:{1 + len(further)}" if further else f"%v{index}"
        call = f'"ttir.{row.name}"({", ".join(names)}){given}'
        lines.append(f"  {value} = {call} : ({', '.join(types)}) -> {of}")
        results.append((f"%v{index}#0" if further else f"%v{index}", result))
    values = ", ".join(name for name, _ in results)
    types_ = ", ".join(type_ for _, type_ in results)
    body = "\n".join(lines)
    return (
        f"func.func @{element}({', '.join(arguments)}) -> ({types_}) {{\n{body}\n"
        f"  return {values} : {types_}\n}}\n"
    )


def inputs_of(element: str, rows: Sequence[Row]) -> tuple[np.ndarray, ...]:
    """The operands: those of later seeds have no NaN, then no infinities."""
    found: list[np.ndarray] = []
    for number, row in enumerate(rows):
        for position, shape in enumerate(row.shapes):
            rng = np.random.default_rng(number * 10 + position)
            if row.indices is not None and position == row.index:
                found.append(rng.integers(0, row.indices, shape).astype(np.uint32))
                continue
            if element not in FLOAT:
                found.append(rng.choice(np.array(INTEGERS[element]), shape).astype(NUMPY[element]))
                continue
            is_weight = position >= len(row.shapes) - row.weights
            pool = np.array(ORDINARY if is_weight else POOLS[row.pool])
            drawn = rng.choice(pool, shape)
            if not is_weight and shape[0] == SEEDS:
                finite = rng.choice(pool[np.isfinite(pool)], shape)
                drawn[SEEDS // 2 :] = finite[SEEDS // 2 :]
                drawn[-2:] = rng.choice(np.array(ORDINARY), drawn[-2:].shape)
            found.append(drawn.astype(NUMPY[element]))
    return tuple(found)


_WIDE = {"bf16": np.float32, "ui32": np.int64, "ui16": np.int32}


def expected_of(element: str, rows: Sequence[Row]) -> list[np.ndarray]:
    """Results of PyTorch: those for bf16 in float32, integers modulo their width."""
    operands = iter(inputs_of(element, rows))
    found: list[np.ndarray] = []
    for row in rows:
        arrays = [next(operands) for _ in row.shapes]
        wide = _WIDE.get(element)
        tensors = [
            torch.from_numpy(
                each.astype(np.int64)
                if row.indices is not None and index == row.index
                else each.astype(wide or each.dtype)
            )
            for index, each in enumerate(arrays)
        ]
        result = np.asarray(row.meaning(*tensors).numpy())
        if element in _WIDE and row.yields is None and element != "bf16":
            result = result.astype(NUMPY[element])
        found.append(result)
    return found


def differs(row: Row, expected: np.ndarray, found: np.ndarray) -> str | None:
    """Kind of the first difference between two runs, None if there is none."""
    if expected.shape != found.shape:
        return "shape"
    if expected.dtype.kind in "biu":
        return None if np.array_equal(expected, found) else "integers"
    expected, found = np.asarray(expected, np.float64), found.astype(np.float64)
    if (kind := kind_that_differs(expected, found)) is not None:
        return kind
    finite = np.isfinite(expected)
    first, second = expected[finite], found[finite]
    size = np.abs(first)
    if row.name in SUMS:
        size = np.full_like(size, size.max(initial=1.0))
    exact = row in MOVEMENT or row.name in ("max", "min", "sort", "argmax", "topk")
    limit = (2.0**-8 if exact else 1e-2) * size + 1e-5
    return None if (np.abs(first - second) <= limit).all() else "numbers"


def differences(
    element: str, expected: Sequence[np.ndarray], found: Sequence[np.ndarray]
) -> set[tuple[str, str]]:
    """The ops whose results differ, and the kind of difference."""
    named = zip(rows_of(element), expected, found, strict=True)
    pairs = [(row.name, differs(row, first, second)) for row, first, second in named]
    return {(name, what) for name, what in pairs if what is not None}


def in_numpy(target: str, elements: tuple[str, ...]) -> tuple[CompiledModule, list[FunctionRuns]]:
    """The program of all rows of some types, run in numpy before and after lowering."""
    text = "\n".join(text_of(element, rows_of(element)) for element in elements)
    source = Source("families.mlir", text)
    compiled = compile_module(source, CompileOptions("families", target=target))
    runs = run_in_numpy(
        source,
        compiled,
        lambda _, op: inputs_of(op.sym_name.data, rows_of(op.sym_name.data)),
    )
    return compiled, runs


OWN_MEANING = {"ttnn": set[tuple[str, str]](), "ttmetal": {("cumsum", "NaN")}}
"""Differences from PyTorch by target (docs/numbers.md, Where frameworks differ)."""


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
@pytest.mark.parametrize("element", EVERY)
def test_families_mean_what_they_mean_to_pytorch(element: str, target: str) -> None:
    _, (run,) = in_numpy(target, (element,))
    with np.errstate(all="ignore"):
        expected = expected_of(element, rows_of(element))
    assert differences(element, expected, run.golden) == set()
    assert differences(element, run.golden, run.flatbuffer) <= OWN_MEANING[target]


@pytest.mark.slow
@pytest.mark.parametrize(("target", "elements"), [("ttnn", EVERY), ("ttmetal", ("bf16",))])
def test_cpp_computes_the_same(
    toolchain: Toolchain,
    cpu_backend: CPUBackend,
    tmp_path: Path,
    target: str,
    elements: tuple[str, ...],
) -> None:
    assert cpu_backend is not None
    compiled, runs = in_numpy(target, elements)
    outputs = run_cpp(compiled, runs, tmp_path / "out", toolchain)
    for run, found in zip(runs, outputs, strict=True):
        element = run.function.name
        assert differences(element, run.flatbuffer, found) == set(), element
