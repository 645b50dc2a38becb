"""Every elementwise op, reduction and order, on inputs from the edges of their types, in all three
meanings and for both targets, against PyTorch: ten seeds each, side by side in one program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.op_cases.cpp_runs import run_cpp
from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.project.checking import run_in_numpy
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.running import FunctionRuns
from ttcodegen.project.toolchain import Toolchain

torch = pytest.importorskip("torch")

SEEDS, WIDTH = 10, 64
_FINITE = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 1e-3, 7.25, -7.25)
FLOATS = (*_FINITE, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, -3e38)
INTEGERS = {
    "i32": (0, 1, -1, 2, -7, 2**24 + 1, -(2**24) - 1, 2**31 - 1, -(2**31), -(2**31) + 1),
    "ui32": (0, 1, 2, 7, 2**24 + 1, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1),
    "i16": (0, 1, -1, 2, -7, 300, 2**15 - 1, -(2**15)),
    "i8": (0, 1, -1, 2, -7, 100, 127, -128),
    "ui8": (0, 1, 2, 7, 100, 127, 128, 255),
    "ui16": (0, 1, 2, 7, 300, 2**15, 2**16 - 1),
}
NUMPY = {
    "f32": np.dtype(np.float32),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "i32": np.dtype(np.int32),
    "ui32": np.dtype(np.uint32),
    "i16": np.dtype(np.int16),
    "i8": np.dtype(np.int8),
    "ui8": np.dtype(np.uint8),
    "ui16": np.dtype(np.uint16),
}


@dataclass(frozen=True)
class Op:
    """An op of TTIR and what PyTorch has for it."""

    name: str
    meaning: Callable[..., Any]
    operands: int = 1
    attributes: str = ""
    reduces: bool = False
    integers: bool = False
    floats: bool = True


def _unary(names: str, **options: Any) -> list[Op]:
    return [Op(name, getattr(torch, name), **options) for name in names.split()]


OPS = (
    *_unary("exp log sqrt rsqrt reciprocal sigmoid tanh sin cos floor ceil trunc erf expm1 log1p"),
    *_unary("atan square log2 log10 round acos asin asinh erfc exp2 frac signbit tan"),
    *_unary("abs relu isfinite isinf isnan", integers=True),
    Op("neg", torch.neg, integers=True),
    Op("sign", torch.sign, integers=True),
    Op("silu", torch.nn.functional.silu),
    # Of f32 PyTorch's gelu by way of oneDNN is NaN for +inf and +inf for 3e38, its own is neither.
    Op("gelu", lambda x: torch.nn.functional.gelu(x.double())),
    *(
        Op(name, getattr(torch.nn.functional, name))
        for name in ("mish", "relu6", "hardsigmoid", "softsign", "selu", "elu")
    ),
    Op("leaky_relu", torch.nn.functional.leaky_relu, attributes="parameter = 0.01 : f32"),
    Op("cbrt", lambda x: torch.from_numpy(np.cbrt(x.numpy()))),
    Op("clone", torch.clone, integers=True),
    Op(
        "clamp_scalar",
        lambda x: x.clamp(-2, 3),
        attributes="min = -2.0 : f32, max = 3.0 : f32",
    ),
    Op("logical_not", torch.logical_not, integers=True),
    Op("bitwise_not", torch.bitwise_not, integers=True, floats=False),
    *(
        Op(name, getattr(torch, other), 2, integers=True)
        for name, other in (
            *(("add", "add"), ("subtract", "subtract"), ("multiply", "multiply")),
            *(("maximum", "maximum"), ("minimum", "minimum")),
            *((name, name) for name in "eq ne lt le gt ge".split()),
            *((f"logical_{name}", f"logical_{name}") for name in ("and", "or", "xor")),
        )
    ),
    *(
        Op(f"bitwise_{name}", getattr(torch, f"bitwise_{name}"), 2, integers=True, floats=False)
        for name in ("and", "or", "xor")
    ),
    Op("div", torch.div, 2),
    # PyTorch's is NaN where a quotient overflows, though its remainder does not.
    Op("remainder", lambda a, b: torch.from_numpy(np.remainder(a.numpy(), b.numpy())), 2),
    Op("atan2", torch.atan2, 2),
    Op("pow", torch.pow, 2),
    Op("where", lambda a, b: torch.where(a != 0, a, b), 2, integers=True),
    Op("sum", lambda x: x.sum(-1, keepdim=True), reduces=True),
    Op("max", lambda x: x.amax(-1, keepdim=True), reduces=True, integers=True),
    Op("min", lambda x: x.amin(-1, keepdim=True), reduces=True, integers=True),
    Op("softmax", lambda x: torch.softmax(x, -1), attributes="dimension = 1 : i32"),
)
TYPES = ("f32", "bf16", *INTEGERS)


def ops_of(element: str) -> list[Op]:
    """The ops for an element type."""
    return [op for op in OPS if (op.floats if element in ("f32", "bf16") else op.integers)]


def text_of(element: str) -> str:
    """A function of all ops."""
    whole, row = f"tensor<{SEEDS}x{WIDTH}x{element}>", f"tensor<{SEEDS}x1x{element}>"
    lines, results = [], []
    for index, op in enumerate(ops_of(element)):
        operands = ["%x", "%y"][: op.operands]
        if op.name == "where":
            operands = ["%x", *operands]
        attributes = "dim_arg = [1 : i32], keep_dim = true" if op.reduces else op.attributes
        given = f" <{{{attributes}}}>" if attributes else ""
        result = row if op.reduces else whole
        types = ", ".join([whole] * len(operands))
        lines.append(
            f'  %{index} = "ttir.{op.name}"({", ".join(operands)}){given} : ({types}) -> {result}'
        )
        results.append(result)
    values = ", ".join(f"%{index}" for index in range(len(results)))
    types = ", ".join(results)
    body = "\n".join(lines)
    return (
        f"func.func @{element}(%x: {whole}, %y: {whole}) -> ({types}) {{\n{body}\n"
        f"  return {values} : {types}\n}}\n"
    )


def inputs_of(element: str) -> tuple[np.ndarray, np.ndarray]:
    """Two tensors with a row for each seed; the last rows have no NaN, and no infinities."""
    pool = np.array(FLOATS if element in ("f32", "bf16") else INTEGERS[element])
    rows: list[list[np.ndarray]] = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        known = pool
        if element in ("f32", "bf16") and seed >= SEEDS // 2:
            known = pool[np.isfinite(pool)] if seed < SEEDS - 2 else np.array(_FINITE)
        rows.append([rng.choice(known, WIDTH) for _ in range(2)])
    first, second = (np.stack([row[i] for row in rows]).astype(NUMPY[element]) for i in range(2))
    return first, second


def expected_of(element: str) -> list[np.ndarray]:
    """Results of PyTorch; those for bf16 in float32."""
    wide = {"bf16": np.float32, "ui32": np.int64, "ui16": np.int32}.get(element)
    tensors = [torch.from_numpy(a.astype(wide or a.dtype)) for a in inputs_of(element)]
    found = [op.meaning(*tensors[: op.operands]).numpy() for op in ops_of(element)]
    if element in ("ui32", "ui16"):
        return [np.asarray(each).astype(NUMPY[element]) for each in found]
    return [np.asarray(each) for each in found]


def kind_that_differs(expected: np.ndarray, found: np.ndarray) -> str | None:
    """NaN or the infinity that is at other places, None if all are where they should be."""
    for kind, is_kind in (("NaN", np.isnan), ("+inf", np.isposinf), ("-inf", np.isneginf)):
        if (is_kind(expected) != is_kind(found)).any():
            return kind
    return None


def differs(expected: np.ndarray, found: np.ndarray) -> str | None:
    """Kind of the first difference between two runs, None if there is none."""
    if expected.dtype.kind in "biu":
        return None if np.array_equal(expected, found) else "integers"
    expected, found = np.asarray(expected, np.float64), found.astype(np.float64)
    if (kind := kind_that_differs(expected, found)) is not None:
        return kind
    finite = np.isfinite(expected)
    error = np.abs(expected[finite] - found[finite])
    limit = 1e-2 * np.abs(expected)[finite] + 1e-5
    return None if (error <= limit).all() else "numbers"


OWN_MEANING = {("sign", "numbers"), ("clamp_scalar", "NaN")}
"""Deviations of the vector engine from PyTorch (docs/numbers.md)."""


def in_numpy(target: str, elements: tuple[str, ...]) -> tuple[CompiledModule, list[FunctionRuns]]:
    """The program of all ops of some types, run in numpy before and after it was lowered."""
    source = Source("edges.mlir", "\n".join(map(text_of, elements)))
    compiled = compile_module(source, CompileOptions("edges", target=target))
    return compiled, run_in_numpy(source, compiled, lambda _, op: inputs_of(op.sym_name.data))


def differences(
    element: str, expected: Sequence[np.ndarray], found: Sequence[np.ndarray]
) -> set[tuple[str, str]]:
    """The ops that have something otherwise, and what."""
    # Where sums overflow depends on the order of what is added.
    adds_up = ~(np.abs(inputs_of(element)[0].astype(np.float64)) > 1e38).any(axis=1)
    pairs: list[tuple[str, str | None]] = []
    for op, first, second in zip(ops_of(element), expected, found, strict=True):
        rows = adds_up if op.name == "sum" else slice(None)
        pairs.append((op.name, differs(first[rows], second[rows])))
    return {(name, what) for name, what in pairs if what is not None}


@pytest.mark.parametrize("element", TYPES)
def test_ops_mean_what_they_mean_to_pytorch(element: str) -> None:
    _, (run,) = in_numpy("ttnn", (element,))
    with np.errstate(all="ignore"):
        expected = expected_of(element)
    assert differences(element, expected, run.golden) <= OWN_MEANING
    assert differences(element, run.golden, run.flatbuffer) == set()


@pytest.mark.parametrize("element", TYPES)
def test_programs_of_the_device_mean_the_same(element: str) -> None:
    _, (run,) = in_numpy("ttmetal", (element,))
    # Programs of the device may pass over NaN in the rows of a softmax.
    assert differences(element, run.golden, run.flatbuffer) <= {("softmax", "NaN")}


@pytest.mark.slow
@pytest.mark.parametrize(("target", "elements"), [("ttnn", TYPES), ("ttmetal", ("f32", "i32"))])
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
