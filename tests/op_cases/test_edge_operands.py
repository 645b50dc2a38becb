"""Ops whose operands are of several kinds (shifts, conversions, booleans, statistics, heads, masks,
caches), on inputs from the edges of their types, before and after lowering and for both targets,
against PyTorch or numpy: ten seeds of each, along the first dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.op_cases import edge_steps
from tests.op_cases.edge_case import Case, Given, Pool, in_torch
from tests.op_cases.test_edge_families import ORDINARY, POOLS, tensor
from tests.op_cases.test_edge_values import FLOATS, INTEGERS, NUMPY, SEEDS, kind_that_differs
from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.project.checking import run_in_numpy
from ttcodegen.project.running import FunctionRuns

torch = pytest.importorskip("torch")
functional = torch.nn.functional
S = SEEDS
WIDTHS = {"i8": 8, "ui8": 8, "i16": 16, "ui16": 16, "i32": 32, "ui32": 32}
INF = float("inf")
MASK = (0.0, 0.0, -INF)
ATTENTION = 5e-2
"""The largest error of attention of 16 bits, as a part of its range (docs/numbers.md)."""


def _shifts() -> list[Case]:
    found: list[Case] = []
    for element, bits in WIDTHS.items():
        operands = (Given((S, 8), element), Given((S, 8), element, range(bits)))
        unsigned = f"u{bits // 8}"
        meanings: dict[str, Callable[..., Any]] = {
            "logical_left_shift": np.left_shift,
            "logical_right_shift": lambda a, b, u=unsigned: np.right_shift(
                a.view(u), b.view(u)
            ).view(a.dtype),
            "right_shift": np.right_shift,
        }
        found += [
            Case(name, operands, ((S, 8), element), meaning) for name, meaning in meanings.items()
        ]
    return found


def _conversions() -> list[Case]:
    types = (*INTEGERS, "i1", "f32", "bf16")
    whole = (0.0, -0.0, 1.0, 2.0, 7.0, 100.0, 127.0, 0.5, 7.25)
    found: list[Case] = []
    for source in types:
        for target in types:
            if source == target:
                continue
            is_float = source in ("f32", "bf16") and target not in ("f32", "bf16", "i1")
            dtype = np.dtype(bool) if target == "i1" else NUMPY[target]
            pool: Pool = (0, 1) if source == "i1" else whole if is_float else "all"
            found.append(
                Case(
                    "typecast",
                    (Given((S, 8), source, pool),),
                    ((S, 8), target),
                    lambda x, dtype=dtype: x.astype(dtype),
                )
            )
    return found


def _truths() -> list[Case]:
    given = (Given((S, 40), "i1", (0, 1, 1, 1)), Given((S, 40), "i1", (0, 0, 0, 1)))
    attributes = "dim_arg = [1 : i32], keep_dim = false"
    return [
        Case(name, (operand,), ((S,), "i1"), meaning, attributes)
        for name, meaning in (("reduce_or", lambda x: x.any(1)), ("reduce_and", lambda x: x.all(1)))
        for operand in given
    ]


def _moved() -> list[Case]:
    found: list[Case] = []
    for element in ("f32", "bf16", "i32", "ui32", "i8"):
        found += [
            Case(
                "index_select",
                (Given((S, 12), element),),
                ((S, 4), element),
                lambda x: x[:, [2, 3, 7, 8]],
                "dim = 1 : si32, begin = 2 : si32, length = 2 : si32, stride = 5 : si32",
            ),
        ]
    for element in ("f32", "bf16"):
        found += [
            Case(
                "concatenate_heads",
                (Given((S, 2, 32, 32), element),),
                ((S, 32, 64), element),
                lambda x: x.transpose(0, 2, 1, 3).reshape(S, 32, 64),
            ),
            Case(
                "split_query_key_value_and_split_heads",
                (Given((S, 32, 192), element),),
                ((S, 2, 32, 32), element),
                lambda x: x[:, :, :64].reshape(S, 32, 2, 32).transpose(0, 2, 1, 3),
                "num_heads = 2 : ui32, transpose_key = false",
                others=(tensor((S, 2, 32, 32), element),) * 2,
            ),
            Case(
                "fill_cache",
                (Given((S, 2, 64, 32), element), Given((1, 2, 32, 32), element)),
                ((S, 2, 64, 32), element),
                _filled,
                "batch_offset = 3 : i32",
                in_place=True,
            ),
        ]
    # Of an f32 cache, tiles that are written to go through the source registers.
    caches = (
        Given((S, 2, 64, 32), "bf16"),
        Given((1, 2, S, 32), "bf16"),
        Given((1,), "i32", (63,)),
    )
    found.append(
        Case("update_cache", caches, ((S, 2, 64, 32), "bf16"), _updated,
             "batch_offset = 0 : i32", in_place=True)
    )  # fmt: skip
    for source, target in (("f32", "i32"), ("i32", "f32"), ("f32", "ui32"), ("bf16", "ui16")):
        pool: Pool = (0, 1, -1, 2**30, 2**31 - 1, -(2**31)) if source == "i32" else (*ORDINARY, INF)
        found.append(
            Case(
                "bitcast_convert",
                (Given((S, 8), source, pool),),
                ((S, 8), target),
                lambda x, dtype=NUMPY[target]: x.view(dtype),
            )
        )
    return found


def _filled(cache: np.ndarray, rows: np.ndarray) -> np.ndarray:
    cache = cache.copy()
    cache[3, :, :32] = rows[0]
    return cache


def _updated(cache: np.ndarray, rows: np.ndarray, place: np.ndarray) -> np.ndarray:
    cache = cache.copy()
    cache[:, :, place[0]] = rows[0].transpose(1, 0, 2)
    return cache


def _slope_of_gelu(gradient: Any, x: Any) -> Any:
    x = x.double().requires_grad_()
    functional.gelu(x).backward(gradient.double())
    return x.grad.float()


def _normalized(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    return functional.batch_norm(x, mean, variance, scale, offset, eps=1e-3)


def _attended(q: Any, k: Any, v: Any, mask: Any) -> Any:
    # PyTorch's fused attention has zeros for a row that sees nothing.
    return functional.scaled_dot_product_attention(q, k, v, mask)


def _computed() -> list[Case]:
    found: list[Case] = []
    for element in ("f32", "bf16"):
        image, channel = (S, 3, 4, 5), Given((3,), element, ORDINARY)
        positive = Given((3,), element, (0.25, 1.0, 2.0, 1e-3))
        found += [
            Case(
                "batch_norm_inference",
                (Given(image, element, "sums"), channel, channel, channel, positive),
                (image, element),
                in_torch(_normalized),
                "dimension = 1 : i32, epsilon = 1.0e-3 : f32",
                exact=False,
            ),
            Case(
                "gelu_bw",
                (Given((S, 8), element, ORDINARY), Given((S, 8), element, ORDINARY)),
                ((S, 8), element),
                in_torch(_slope_of_gelu),
                exact=False,
            ),
            Case(
                "conv3d",
                (
                    Given((S, 3, 4, 4, 2), element, "sums"),
                    Given((5, 2, 2, 2, 2), element, ORDINARY),
                ),
                ((S, 2, 3, 3, 5), element),
                in_torch(
                    lambda x, w: functional.conv3d(x.permute(0, 4, 1, 2, 3), w).permute(
                        0, 2, 3, 4, 1
                    )
                ),
                "stride = 1 : i32, padding = 0 : i32, groups = 1 : i32",
                exact=False,
            ),
            Case(
                "max_pool2d_with_indices",
                (Given((S, 6, 6, 4), element, "numbers"),),
                ((S, 3, 3, 4), element),
                in_torch(
                    lambda x: functional.max_pool2d(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1)
                ),
                "kernel = 2 : i32, stride = 2 : i32, padding = 0 : i32, dilation = 1 : i32, "
                "ceil_mode = false",
                others=(tensor((S, 3, 3, 4), "i32"),),
            ),
            Case(
                "embedding_backward",
                (
                    Given((1, 32), "i32", range(9)),
                    Given((9, 64), element, ORDINARY),
                    Given((1, 1, 32, 64), element, ORDINARY),
                ),
                ((9, 64), element),
                _gathered_gradient,
                exact=False,
            ),
            Case(
                "scaled_dot_product_attention",
                (
                    *(Given((S, 2, 32, 32), element, ORDINARY) for _ in range(3)),
                    Given((S, 1, 32, 32), element, MASK),
                ),
                ((S, 2, 32, 32), element),
                in_torch(_attended),
                "is_causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>",
                exact=False,
            ),
        ]
    return found


def _gathered_gradient(places: np.ndarray, table: np.ndarray, rows: np.ndarray) -> np.ndarray:
    found = np.zeros(table.shape, np.float32)
    np.add.at(found, places[0], rows[0, 0].astype(np.float32))
    return found


def _numbers() -> list[Case]:
    found: list[Case] = []
    for element, values in (*INTEGERS.items(), ("f32", (0.0, -0.0, 1e-40, 3e38, 0.1, -7.25))):
        dtype = NUMPY[element]
        shape = (len(values),)
        texts = [f"{value:e}" if element == "f32" else str(value) for value in values]
        kind = element if element == "f32" else "i32" if values[-1] < 2**31 else "i64"
        found += [
            Case("constant", (), (shape, element), lambda v=values, d=dtype: np.array(v, d),
                 f"value = dense<[{', '.join(texts)}]> : {tensor(shape, element)}"),
            Case("full", (), ((S, 3), element), lambda v=values, d=dtype: np.full((S, 3), v[-1], d),
                 f"shape = array<i32: {S}, 3>, fill_value = {texts[-1]} : {kind}"),
            Case("zeros", (), ((S, 3), element), lambda d=dtype: np.zeros((S, 3), d),
                 f"shape = array<i32: {S}, 3>"),
            Case("ones", (), ((S, 3), element), lambda d=dtype: np.ones((S, 3), d),
                 f"shape = array<i32: {S}, 3>"),
        ]  # fmt: skip
    for start, step in ((2**24 - 3, 1), (-(2**31), 3), (2**31 - 9, 2)):
        end = start + 4 * step
        found.append(
            Case("arange", (), ((4,), "i32"), lambda s=start, e=end, d=step: np.arange(s, e, d),
                 f"start = {start} : si64, end = {end} : si64, step = {step} : si64, "
                 "arange_dimension = 0 : i64")
        )  # fmt: skip
    return found


def _bounded() -> list[Case]:
    """Clamps, and slices from where operands say."""
    found: list[Case] = []
    for element, pool in {**INTEGERS, "f32": "numbers", "bf16": "numbers"}.items():
        is_float = element in ("f32", "bf16")
        values = (0, 1, 5) if not is_float else (-INF, -2.0, -1.0, 0.0)
        above = (5, 7, 100) if not is_float else (0.0, 1.0, 3.0, INF)
        given = (Given((S, 8), element, pool if is_float else "all"),
                 Given((S, 8), element, values), Given((S, 8), element, above))  # fmt: skip
        found.append(Case("clamp_tensor", given, ((S, 8), element), _clipped))
    for element in ("f32", "bf16", "i32", "ui32"):
        given = (Given((S, 12), element), Given((2,), "i32", (0,)), Given((2,), "i32", (4,)))
        found.append(
            Case("slice_dynamic", given, ((2, 4), element), lambda x, _begin, _end: x[:4:2, :4],
                 "step = [2 : i32, 1 : i32]")
        )  # fmt: skip
    size = (Given((S, 3), "f32"),)
    found.append(
        Case("get_dimension_size", size, ((1,), "i32"), lambda _: np.array([3], np.int32),
             "dimension = 1 : i32")
    )  # fmt: skip
    return found


def _clipped(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return np.minimum(np.maximum(x, low), high).astype(x.dtype)


_LAYOUT = (
    "#ttir<convolution_layout input_batch = 0, input_feature = 3, input_spatial_dimensions = 1x2, "
    "kernel_output_feature = 3, kernel_input_feature = 2, kernel_spatial_dimensions = 0x1, "
    "output_batch = 0, output_feature = 3, output_spatial_dimensions = 1x2>"
)


def _convolved(x: Any, weight: Any) -> Any:
    """With the kernel from right to left, and more padding below than above."""
    image = functional.pad(x.permute(0, 3, 1, 2), (0, 0, 1, 0))
    weight = weight.permute(3, 2, 0, 1).flip(3)
    return functional.conv2d(image, weight).permute(0, 2, 3, 1)


def _turned(x: Any, cosines: Any, sines: Any) -> Any:
    first, second = x.chunk(2, -1)
    return x * cosines + torch.cat([-second, first], -1) * sines


def _decoded(q: Any, k: Any, v: Any, place: Any) -> Any:
    mask = torch.where(torch.arange(64) <= place[:, None], 0.0, -INF)[:, None, None]
    found = functional.scaled_dot_product_attention(q.permute(1, 2, 0, 3), k, v, mask)
    return found.permute(2, 0, 1, 3)


def _page_updated(
    cache: np.ndarray, rows: np.ndarray, place: np.ndarray, pages: np.ndarray
) -> np.ndarray:
    cache = cache.copy()
    cache[pages[0, place[0] // 32], :, place[0] % 32] = rows[0, 0]
    return cache


def _pages_filled(
    cache: np.ndarray, rows: np.ndarray, pages: np.ndarray, user: np.ndarray
) -> np.ndarray:
    cache = cache.copy()
    cache[pages[user[0], 0]] = rows[0]
    return cache


def _in_windows() -> list[Case]:
    """Windows of all dimensions, and statistics of a batch."""
    found: list[Case] = []
    ones = "base_dilations = array<i64: 1, 1, 1, 1>, window_dilations = array<i64: 1, 1, 1, 1>"
    none = "padding = array<i64: 0, 0, 0, 0, 0, 0, 0, 0>"
    sizes = "array<i64: 1, 2, 2, 1>"
    methods: dict[str, Callable[..., Any]] = {
        "Max": lambda x: functional.max_pool2d(x, 2),
        "Average": lambda x: functional.avg_pool2d(x, 2),
        "Sum": lambda x: functional.avg_pool2d(x, 2, divisor_override=1),
    }
    for element in ("f32", "bf16"):
        image = Given((S, 6, 6, 4), element, "sums")
        found.append(
            Case("convolution", (image, Given((2, 2, 4, 5), element, ORDINARY)),
                 ((S, 6, 5, 5), element), in_torch(_convolved),
                 "window_strides = array<i64: 1, 1>, padding = array<i64: 1, 0, 0, 0>, "
                 "input_dilation = array<i64: 1, 1>, weight_dilation = array<i64: 1, 1>, "
                 f"window_reversal = array<i1: false, true>, convolution_layout = {_LAYOUT}, "
                 "feature_group_count = 1 : i64, batch_group_count = 1 : i64", exact=False)
        )  # fmt: skip
        for method, pool in methods.items():
            found.append(
                Case("pooling", (image,), ((S, 3, 3, 4), element),
                     in_torch(lambda x, f=pool: f(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)),
                     f"pooling_method = #ttir<pooling_method {method}>, "
                     f"window_dimensions = {sizes}, window_strides = {sizes}, {ones}, {none}",
                     exact=False)
            )  # fmt: skip
        channel = Given((4,), element, ORDINARY)
        found.append(
            Case("batch_norm_training",
                 (Given((S, 4, 3, 3), element, ORDINARY), channel, channel, channel,
                  Given((4,), element, (0.5, 1.0, 2.0))),
                 ((S, 4, 3, 3), element),
                 in_torch(lambda x, g, b, m, v: functional.batch_norm(
                     x, m.clone(), v.clone(), g, b, training=True, eps=1e-3)),
                 "dimension = 1 : i32, epsilon = 1.0e-3 : f32, momentum = 1.0e-1 : f32",
                 exact=False, others=(tensor((4,), element),) * 2)
        )  # fmt: skip
    return found


def _decoding() -> list[Case]:
    """Rotations, caches in pages, and attention to what a cache has so far."""
    table = Given((1, 1, 32, 64), "bf16", ORDINARY)
    cache = Given((8, 2, 32, 64), "bf16")
    return [
        Case("rotary_embedding", (Given((S, 2, 32, 64), "bf16", "sums"), table, table),
             ((S, 2, 32, 64), "bf16"), in_torch(_turned), exact=False),
        Case("paged_update_cache",
             (cache, Given((1, 1, 2, 64), "bf16"), Given((1,), "i32", (63,)),
              Given((1, 4), "i32", (7,))),
             ((8, 2, 32, 64), "bf16"), _page_updated, "share_cache = false", in_place=True),
        Case("paged_fill_cache",
             (cache, Given((1, 2, 32, 64), "bf16"), Given((2, 1), "i32", (7, 2)),
              Given((1,), "i32", (1,))),
             ((8, 2, 32, 64), "bf16"), _pages_filled, in_place=True),
        *(Case("scaled_dot_product_attention_decode",
               (Given((1, 2, 4, 32), "bf16", ORDINARY), Given((2, 2, 64, 32), "bf16", ORDINARY),
                Given((2, 2, 64, 32), "bf16", ORDINARY), Given((2,), "i32", (place,))),
               ((1, 2, 4, 32), "bf16"),
               in_torch(lambda q, k, v, at: _decoded(
                   q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1), at)),
               "is_causal = true, operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 0>",
               exact=False)
          for place in (0, 31, 32, 63)),
    ]  # fmt: skip


GROUPS = {
    "bounded": _bounded(),
    "in_windows": _in_windows(),
    "decoding": _decoding(),
    "shifts": _shifts(),
    "conversions": _conversions(),
    "truths": _truths(),
    "moved": _moved(),
    "computed": _computed(),
    "numbers": _numbers(),
    **edge_steps.GROUPS,
}
OPS = {case.name for cases in GROUPS.values() for case in cases}


def text_of(group: str) -> str:
    """A function of the cases of a group, each with its own operands."""
    arguments: list[str] = []
    lines: list[str] = []
    results: list[tuple[str, str]] = []
    for index, case in enumerate(GROUPS[group]):
        names = [f"%c{index}_{number}" for number in range(len(case.operands))]
        types = [tensor(each.shape, each.element) for each in case.operands]
        arguments += [f"{name}: {type_}" for name, type_ in zip(names, types, strict=True)]
        given = f" <{{{case.attributes}}}>" if case.attributes else ""
        result = tensor(*case.result)
        call = f'"ttir.{case.name}"({", ".join(names)}){given} : ({", ".join(types)}) -> '
        if case.in_place:
            lines.append(f"  {call}()")
            results.append((names[0], result))
        elif case.others:
            every = (result, *case.others)
            lines.append(f"  %v{index}:{len(every)} = {call}({', '.join(every)})")
            results.append((f"%v{index}#0", result))
        else:
            lines.append(f"  %v{index} = {call}{result}")
            results.append((f"%v{index}", result))
    body = "\n".join(lines)
    types_ = ", ".join(type_ for _, type_ in results)
    return (
        f"func.func @{group}({', '.join(arguments)}) -> ({types_}) {{\n{body}\n"
        f"  return {', '.join(name for name, _ in results)} : {types_}\n}}\n"
    )


def inputs_of(group: str) -> tuple[np.ndarray, ...]:
    """The operands of the cases, one after the other."""
    found: list[np.ndarray] = []
    for number, case in enumerate(GROUPS[group]):
        for position, each in enumerate(case.operands):
            rng = np.random.default_rng(number * 10 + position)
            found.append(_drawn(rng, each))
    return tuple(found)


def _drawn(rng: np.random.Generator, given: Given) -> np.ndarray:
    if not isinstance(given.pool, str):
        pool = np.array(given.pool)
    elif given.element in INTEGERS:
        pool = np.array(INTEGERS[given.element])
    else:
        pool = np.array(FLOATS if given.pool == "all" else POOLS[given.pool])
    drawn = rng.choice(pool, given.shape)
    if drawn.dtype.kind == "f" and isinstance(given.pool, str) and given.shape[0] == S:
        finite = rng.choice(pool[np.isfinite(pool)], given.shape)
        drawn[S // 2 :] = finite[S // 2 :]
    if given.element == "i1":
        return drawn.astype(bool)
    if given.pool == MASK:
        drawn[:, :, 5] = -INF  # A row that sees nothing.
    return drawn.astype(NUMPY[given.element])


def expected_of(group: str) -> list[np.ndarray]:
    operands = iter(inputs_of(group))
    return [
        np.asarray(case.meaning(*(next(operands) for _ in case.operands))) for case in GROUPS[group]
    ]


def differs(case: Case, expected: np.ndarray, found: np.ndarray) -> str | None:
    """Kind of the first difference between two runs, None if there is none."""
    if expected.shape != found.shape:
        return "shape"
    if expected.dtype.kind in "biu":
        return None if np.array_equal(expected, found) else "integers"
    first, second = np.asarray(expected, np.float64), found.astype(np.float64)
    if (kind := kind_that_differs(first, second)) is not None:
        return kind
    finite = np.isfinite(first)
    first, second = first[finite], second[finite]
    size = np.abs(first) if case.exact else max(np.abs(first).max(initial=1.0), 1.0)
    inexact = ATTENTION if "dot_product" in case.name else 2e-2
    limit = (2.0**-8 if case.exact else inexact) * size + 1e-38
    return None if (np.abs(first - second) <= limit).all() else "numbers"


def differences(
    group: str, expected: Sequence[np.ndarray], found: Sequence[np.ndarray]
) -> set[tuple[str, str, str]]:
    """The ops whose results differ, with the type of their first operand and the kind."""
    named = zip(GROUPS[group], expected, found, strict=True)
    return {
        (case.name, " ".join([*(each.element for each in case.operands), case.result[1]]), what)
        for case, first, second in named
        if (what := differs(case, first, second)) is not None
    }


def in_numpy(target: str, groups: Sequence[str]) -> tuple[CompiledModule, list[FunctionRuns]]:
    """The program of some groups, run in numpy before and after lowering."""
    source = Source("operands.mlir", "\n".join(map(text_of, groups)))
    compiled = compile_module(source, CompileOptions("operands", target=target))
    return compiled, run_in_numpy(source, compiled, lambda _, op: inputs_of(op.sym_name.data))


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
@pytest.mark.parametrize("group", GROUPS)
def test_ops_mean_what_they_mean_to_frameworks(group: str, target: str) -> None:
    _, (run,) = in_numpy(target, (group,))
    with np.errstate(all="ignore"):
        expected = expected_of(group)
    assert differences(group, expected, run.golden) == set()
    assert differences(group, run.golden, run.flatbuffer) == set()
