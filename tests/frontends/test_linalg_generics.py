"""Bodies of linalg.generic that no op of TTIR is named after."""

from __future__ import annotations

from math import erf

import numpy as np
import pytest

from tests.frontends.linalg_programs import check, draw, started, type_of
from tests.frontends.running import refusals

ROW = "affine_map<(d0, d1) -> (d0)>"
BOTH = "affine_map<(d0, d1) -> (d0, d1)>"


def generic(
    maps: list[str], kinds: str, operands: str, outputs: str, body: str, results: str
) -> str:
    """`kinds` has p and r for loops in order; operands and outputs are values with their types."""
    words = ", ".join({"p": '"parallel"', "r": '"reduction"'}[kind] for kind in kinds)
    return f"""%r{":2" if "," in results else ""} = linalg.generic {{
      indexing_maps = [{", ".join(maps)}], iterator_types = [{words}]}}
      ins({operands}) outs({outputs}) {{
      {body}
    }} -> {results}"""


UNARY = {
    "math.acosh": (np.arccosh, 1.5),
    "math.asinh": (np.arcsinh, 0.0),
    "math.atanh": (lambda x: np.arctanh(x / 8), 0.0),
    "math.cbrt": (np.cbrt, 0.0),
    "math.cosh": (np.cosh, 0.0),
    "math.erfc": (lambda x: 1 - np.vectorize(erf)(x), 0.0),
    "math.exp2": (np.exp2, 0.0),
    "math.log10": (np.log10, 4.0),
    "math.log2": (np.log2, 4.0),
    "math.round": (lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5), 0.0),
    "math.roundeven": (np.round, 0.0),
    "math.sinh": (np.sinh, 0.0),
    "math.trunc": (np.trunc, 0.0),
}


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_element(name: str) -> None:
    function, least = UNARY[name]
    x = (np.abs(draw(4, 8)) + np.float32(least)) if least else draw(4, 8)
    x = np.clip(np.round(x * 4) / 4, -4, 8).astype(np.float32)
    operand = "%s" if name == "math.atanh" else "%in"
    body = f"""^bb0(%in: f32, %out: f32):
        %e = arith.constant 0.125 : f32
        %s = arith.mulf %in, %e : f32
        %v = {name} {operand} : f32
        linalg.yield %v : f32"""
    expected = np.asarray(function(x), np.float32)
    text = generic([BOTH, BOTH], "pp", f"%a : {type_of(x)}", f"%a : {type_of(x)}", body, type_of(x))
    check(text, [x], expected)


def test_remainders_have_the_sign_of_the_dividend() -> None:
    a = np.asarray([[5.5, -5.5, 5.5, -5.5, 1.0]], np.float32)
    b = np.asarray([[2.0, 2.0, -2.0, -2.0, 4.0]], np.float32)
    body = """^bb0(%x: f32, %y: f32, %out: f32):
        %1 = arith.remf %x, %y fastmath<contract> : f32
        linalg.yield %1 : f32"""
    operands = f"%a, %b : {type_of(a)}, {type_of(b)}"
    text = generic([BOTH] * 3, "pp", operands, f"%a : {type_of(a)}", body, type_of(a))
    check(text, [a, b], np.fmod(a, b))


TESTS = {
    "arith.cmpf uno, %x, %x : f32": np.isnan,
    "arith.cmpf ord, %x, %x : f32": lambda x: ~np.isnan(x),
    "math.isnan %x : f32": np.isnan,
    "math.isinf %x : f32": np.isinf,
    "math.isfinite %x : f32": np.isfinite,
}


@pytest.mark.parametrize("operation", TESTS)
def test_what_is_no_number(operation: str) -> None:
    x = np.asarray([[1.0, np.nan, np.inf, -np.inf, 0.0]], np.float32)
    body = f"""^bb0(%x: f32, %out: f32):
        %one = arith.constant 1.0 : f32
        %none = arith.constant 0.0 : f32
        %c = {operation}
        %1 = arith.select %c, %one, %none : f32
        linalg.yield %1 : f32"""
    text = generic([BOTH] * 2, "pp", f"%a : {type_of(x)}", f"%a : {type_of(x)}", body, type_of(x))
    check(text, [x], TESTS[operation](x).astype(np.float32))


def test_functions_of_several_elements() -> None:
    a, b = draw(4, 8), draw(4, 8)
    body = """^bb0(%x: f32, %y: f32, %out: f32):
        %1 = arith.divf %x, %y : f32
        %2 = math.fma %x, %y, %1 : f32
        %3 = math.copysign %2, %x : f32
        %4 = math.atan2 %3, %y : f32
        linalg.yield %4 : f32"""
    expected = np.arctan2(np.copysign(a * b + a / b, a), b)
    type_ = type_of(a)
    text = generic([BOTH] * 3, "pp", f"%a, %b : {type_}, {type_}", f"%a : {type_}", body, type_)
    check(text, [a, b], expected)


def test_divisions_of_integers() -> None:
    a, b = np.arange(-16, 16).reshape(4, 8), np.resize([1, -2, 3, 5, -7], (4, 8))
    body = """^bb0(%x: i64, %y: i64, %out: i64):
        %1 = arith.divsi %x, %y : i64
        %2 = arith.remsi %x, %y : i64
        %3 = arith.floordivsi %x, %y : i64
        %4 = arith.ceildivsi %x, %y : i64
        %ten = arith.constant 10 : i64
        %5 = arith.muli %1, %ten : i64
        %6 = arith.addi %5, %2 : i64
        %7 = arith.muli %6, %ten : i64
        %8 = arith.addi %7, %3 : i64
        %9 = arith.muli %8, %ten : i64
        %10 = arith.addi %9, %4 : i64
        linalg.yield %10 : i64"""
    whole = np.trunc(a / b).astype(int)
    expected = ((whole * 10 + a - whole * b) * 10 + np.floor(a / b)) * 10 + np.ceil(a / b)
    type_ = type_of(a)
    text = generic([BOTH] * 3, "pp", f"%a, %b : {type_}, {type_}", f"%a : {type_}", body, type_)
    check(text, [a, b], expected.astype(np.int64))


def test_steps_that_depend_on_each_other() -> None:
    """A moving average with what was so far, and how often an element was larger than that."""
    x = draw(6, 5)
    averages, counts = np.zeros(6, np.float32), np.zeros(6, np.float32)
    for step in range(5):
        counts += (x[:, step] > averages) * np.float32(step)
        averages = averages * np.float32(0.5) + x[:, step]
    body = """^bb0(%in: f32, %average: f32, %count: f32):
        %half = arith.constant 0.5 : f32
        %zero0 = arith.constant 0.0 : f32
        %larger = arith.cmpf ogt, %in, %average : f32
        %i = linalg.index 1 : index
        %j = arith.index_cast %i : index to i64
        %k = arith.sitofp %j : i64 to f32
        %one = arith.select %larger, %k, %zero0 : f32
        %c = arith.addf %count, %one : f32
        %d = arith.mulf %average, %half : f32
        %e = arith.addf %d, %in : f32
        linalg.yield %e, %c : f32, f32"""
    row = type_of(averages)
    text = started("%zero", averages, "p") + started("%zero", averages, "q")
    text += generic([BOTH, ROW, ROW], "pr", f"%a : {type_of(x)}", f"%p, %q : {row}, {row}", body,
                    f"({row}, {row})")  # fmt: skip
    check(text, [x], averages, counts)


def test_too_many_steps_are_refused() -> None:
    body = """^bb0(%in: f32, %out: f32):
        %1 = arith.subf %in, %out : f32
        linalg.yield %1 : f32"""
    text = generic([BOTH, ROW], "pr", "%a : tensor<4x300xf32>", "%b : tensor<4xf32>", body,
                   "tensor<4xf32>")  # fmt: skip
    text = f"""func.func @f(%a: tensor<4x300xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {{
      {text}
      return %r : tensor<4xf32>
    }}"""
    assert refusals(text) == [
        "a linalg.generic that reduces in 300 steps is not supported: at most 256 are carried out "
        "one by one"
    ]


def test_the_smallest_element_and_its_place() -> None:
    x = draw(4, 7)
    body = """^bb0(%in: f32, %least: f32, %place: i64):
        %i = linalg.index 1 : index
        %j = arith.index_cast %i : index to i64
        %1 = arith.minimumf %in, %least : f32
        %2 = arith.cmpf olt, %in, %least : f32
        %3 = arith.select %2, %j, %place : i64
        linalg.yield %1, %3 : f32, i64"""
    places = x.argmin(1)
    inputs = [x, np.full(4, 1e30, np.float32), np.zeros(4, np.int64)]
    text = generic([BOTH, ROW, ROW], "pr", f"%a : {type_of(x)}",
                   "%b, %c : tensor<4xf32>, tensor<4xi64>", body,
                   "(tensor<4xf32>, tensor<4xi64>)")  # fmt: skip
    check(text, inputs, x.min(1), places)


def test_diagonals() -> None:
    x = draw(5, 5, 3)
    body = """^bb0(%in: f32, %out: f32):
        linalg.yield %in : f32"""
    expected = np.ascontiguousarray(x[range(5), range(5)])
    text = started("%zero", expected)
    text += generic(["affine_map<(d0, d1) -> (d0, d0, d1)>", BOTH], "pp", f"%a : {type_of(x)}",
                    f"%o : {type_of(expected)}", body, type_of(expected))  # fmt: skip
    check(text, [x], expected)


def test_places_that_loops_compute() -> None:
    """A convolution, reversed, in steps of two."""
    x, kernel = draw(2, 11), draw(4)
    expected = np.stack([(x[:, 2 * i : 2 * i + 4][:, ::-1] * kernel).sum(1) for i in range(4)], 1)
    body = """^bb0(%x: f32, %k: f32, %out: f32):
        %1 = arith.mulf %x, %k : f32
        %2 = arith.addf %1, %out : f32
        linalg.yield %2 : f32"""
    maps = ["affine_map<(d0, d1, d2) -> (d0, d1 * 2 - d2 + 3)>",
            "affine_map<(d0, d1, d2) -> (d2)>", "affine_map<(d0, d1, d2) -> (d0, d1)>"]  # fmt: skip
    text = started("%zero", expected)
    text += generic(maps, "ppr", f"%a, %b : {type_of(x)}, {type_of(kernel)}",
                    f"%o : {type_of(expected)}", body, type_of(expected))  # fmt: skip
    check(text, [x, kernel], expected)


@pytest.mark.parametrize("kind", ["f32", "i64"])
def test_elements_at_places_that_a_tensor_holds(kind: str) -> None:
    """torch-mlir's embedding, which asserts that indices are in the table."""
    table = draw(7, 3) if kind == "f32" else np.arange(21).reshape(7, 3) * 1000
    places = np.array([3, 0, 6, 6])
    expected = table[places]
    body = f"""^bb0(%in: i64, %out: {kind}):
        %i = arith.index_cast %in : i64 to index
        %j = linalg.index 1 : index
        %seven = arith.constant 7 : i64
        %fits = arith.cmpi slt, %in, %seven : i64
        cf.assert %fits, "index must be smaller than dim size"
        %element = tensor.extract %a[%i, %j] : {type_of(table)}
        linalg.yield %element : {kind}"""
    text = f"%o = tensor.empty() : {type_of(expected)}\n"
    text += generic([ROW, BOTH], "pp", "%b : tensor<4xi64>", f"%o : {type_of(expected)}", body,
                    type_of(expected))  # fmt: skip
    check(text, [table, places], expected)


def test_an_element_from_outside() -> None:
    x, scale = draw(4, 8), np.asarray(3.0, np.float32)
    body = """^bb0(%in: f32, %out: f32):
        %1 = arith.mulf %in, %s : f32
        linalg.yield %1 : f32"""
    text = "%s = tensor.extract %b[] : tensor<f32>\n"
    text += generic([BOTH, BOTH], "pp", f"%a : {type_of(x)}", f"%a : {type_of(x)}", body,
                    type_of(x))  # fmt: skip
    check(text, [x, scale], x * 3)


def test_named_operations_of_bodies() -> None:
    a, b = draw(4, 8), draw(4, 8)
    type_ = type_of(a)
    words = f"ins(%a, %b : {type_}, {type_}) outs(%a : {type_})"
    check(f"%r = linalg.map {{ arith.mulf }} {words}", [a, b], a * b)
    check(f"""%r = linalg.map {words} (%x: f32, %y: f32, %out: f32) {{
        %1 = arith.subf %x, %y : f32
        %2 = math.tanh %1 : f32
        linalg.yield %2 : f32
      }}""", [a, b], np.tanh(a - b))  # fmt: skip
    rows = np.exp(a) / np.exp(a).sum(1, keepdims=True)
    check(f"%r = linalg.softmax dimension(1) ins(%a : {type_}) outs(%a : {type_}) -> {type_}",
          [a], rows)  # fmt: skip


def test_vectors_of_a_batch() -> None:
    matrices, right, left = draw(3, 4, 6), draw(3, 6), draw(3, 4)
    for name, operands, expected in (
        ("batch_matvec", [matrices, right], np.einsum("bmk,bk->bm", matrices, right)),
        ("batch_vecmat", [left, matrices], np.einsum("bk,bkn->bn", left, matrices)),
    ):
        types = ", ".join(map(type_of, operands))
        check(started("%zero", expected) + f"%r = linalg.{name} ins(%a, %b : {types}) "
              f"outs(%o : {type_of(expected)}) -> {type_of(expected)}", operands,
              expected)  # fmt: skip


@pytest.mark.parametrize("predicate", ["ogt", "oge"])
@pytest.mark.parametrize("start", ["%lowest", "%zero"])
@pytest.mark.parametrize("chosen", ["place", "label", "other"])
def test_what_belongs_to_the_largest(predicate: str, start: str, chosen: str) -> None:
    """The first place or the last one, what a table has there, or what another choice gives."""
    x = np.round(draw(6, 5))
    labels = np.arange(30).reshape(6, 5) * 7
    best, kept = np.full(6, -np.inf if start == "%lowest" else 0.0), np.zeros(6, np.int64)
    for step in range(5):
        larger = x[:, step] > best if predicate == "ogt" else x[:, step] >= best
        own = labels[:, step] if chosen == "label" else np.full(6, step)
        kept = np.where(larger != (chosen == "other"), own, kept)
        best = np.maximum(best, x[:, step])
    own_value = "%label" if chosen == "label" else "%j"
    choice = f"%where, {own_value}" if chosen == "other" else f"{own_value}, %where"
    body = f"""^bb0(%in: f32, %label: i64, %best: f32, %where: i64):
        %i = linalg.index 1 : index
        %j = arith.index_cast %i : index to i64
        %larger = arith.cmpf {predicate}, %in, %best : f32
        %next = arith.select %larger, {choice} : i64
        %most = arith.maximumf %in, %best : f32
        linalg.yield %most, %next : f32, i64"""
    row, place = type_of(x[:, 0]), type_of(kept)
    text = started(start, x[:, 0], "m") + "%n = arith.constant 0 : i64\n"
    text += f"%ei = tensor.empty() : {place}\n"
    text += f"%k = linalg.fill ins(%n : i64) outs(%ei : {place}) -> {place}\n"
    text += generic(
        [BOTH, BOTH, ROW, ROW],
        "pr",
        f"%a, %b : {type_of(x)}, {type_of(labels)}",
        f"%m, %k : {row}, {place}",
        body,
        f"({row}, {place})",
    )
    check(text, [x, labels], best.astype(np.float32), kept)


PRODUCTS = {
    "matmul": ("ik,kj->ij", {"i": 3, "k": 4, "j": 5}, "dot_general"),
    "a factor transposed": ("ik,jk->ji", {"i": 3, "k": 4, "j": 5}, "dot_general"),
    "heads": ("bqhd,bkhd->bhqk", {"b": 2, "q": 3, "h": 4, "d": 5, "k": 6}, "dot_general"),
    "two loops at once": ("iab,baj->ij", {"i": 3, "a": 2, "b": 4, "j": 5}, "dot_general"),
    "matrix and vector": ("ik,k->i", {"i": 3, "k": 4}, "dot_general"),
    "a loop of one step": ("ik,kj->ij", {"i": 1, "k": 4, "j": 5}, "dot_general"),
    "row by row": ("ik,ik->i", {"i": 3, "k": 4}, "sum"),
    "a sum of one factor": ("ik,j->ij", {"i": 3, "k": 4, "j": 5}, "sum"),
}
"""Einsums written as generics, the sizes of their loops, and the op that sums."""


@pytest.mark.parametrize("name", PRODUCTS)
def test_sums_of_products(name: str) -> None:
    equation, sizes, expected = PRODUCTS[name]
    sides, result = equation.split("->")
    loops = sorted(sizes, key=lambda loop: loop not in result)
    arrays = [draw(*(sizes[loop] for loop in side)) for side in sides.split(",")]
    total = np.einsum(equation, *arrays)
    maps = [f"affine_map<({', '.join(loops)}) -> ({', '.join(side)})>"
            for side in (*sides.split(","), result)]  # fmt: skip
    body = """^bb0(%x: f32, %y: f32, %s: f32):
        %p = arith.mulf %x, %y : f32
        %t = arith.addf %p, %s : f32
        linalg.yield %t : f32"""
    kinds = "".join("p" if loop in result else "r" for loop in loops)
    operands = f"%a, %b : {', '.join(map(type_of, arrays))}"
    outputs = f"%o : {type_of(total)}"
    text = generic(maps, kinds, operands, outputs, body, type_of(total))
    assert expected in check(started("%zero", total) + text, arrays, total)


SEVERAL = {
    "elements": (
        "pp",
        ["(d0, d1) -> (d0, d1)", "(d0, d1) -> (d1)", "(d0, d1) -> (d0, d1)"],
        "%p = arith.mulf %x, %y : f32\n%q = math.sin %p : f32\n%v = arith.addf %q, %x : f32",
    ),
    "sums": (
        "pr",
        ["(d0, d1) -> (d0, d1)", "(d0, d1) -> (d1)", "(d0, d1) -> (d0)"],
        "%p = math.exp %x : f32\n%q = arith.addf %p, %y : f32\n%v = arith.addf %q, %o : f32",
    ),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_a_body_that_no_op_is_named_after_is_one_generic_of_the_device(name: str) -> None:
    """`--target ttmetal` has ops in `ttir.generic`: that of the body has the loops and the maps of
    linalg's."""
    from xdsl.dialects.builtin import AffineMapAttr

    from ttcodegen.dialects.ttir.generic import GenericOp
    from ttcodegen.foundation.diagnostics import Source
    from ttcodegen.frontends import read_module
    from ttcodegen.ops.dialects import load_dialects
    from ttcodegen.transforms.pass_runner import PassRunner
    from ttcodegen.transforms.registry import passes_of

    kinds, maps, body = SEVERAL[name]
    result = "tensor<64x96xf32>" if kinds == "pp" else "tensor<64xf32>"
    text = generic(
        [f"affine_map<{map_}>" for map_ in maps],
        kinds,
        "%a, %b : tensor<64x96xf32>, tensor<96xf32>",
        f"%s : {result}",
        f"^bb0(%x: f32, %y: f32, %o: f32):\n{body}\nlinalg.yield %v : f32",
        result,
    )
    module = read_module(
        Source(
            "in.mlir",
            f"""func.func @f(%a: tensor<64x96xf32>, %b: tensor<96xf32>) -> {result} {{
              %zero = arith.constant 0.0 : f32
              %e = tensor.empty() : {result}
              %s = linalg.fill ins(%zero : f32) outs(%e : {result}) -> {result}
              {text}
              return %r : {result}
            }}""",
        )
    )
    PassRunner(load_dialects(), verify=True).run(module, passes_of("ttir-to-ttmetal-fe-pipeline"))
    found = [op for op in module.walk() if isinstance(op, GenericOp) and op.indexing_maps.data]
    assert len(found) == 1
    words = {"p": "parallel", "r": "reduction"}
    assert [str(a.data) for a in found[0].iterator_types.data] == [words[kind] for kind in kinds]
    printed = [str(a.data) for a in found[0].indexing_maps.data if isinstance(a, AffineMapAttr)]
    assert printed[:2] == maps[:2]
