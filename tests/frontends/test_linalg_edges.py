"""Scalar operations in bodies of linalg on the edges of their types, as numpy has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.frontends.running import ops_of, read
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.project.checking import run_in_numpy

NAMES = {
    "float32": "f32",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "bool": "i1",
}
INTEGERS = (
    *(0, 1, 2, -1, -7, 100, 127, -128, 150, 255, 300, 2**15, 2**16 - 1, 2**24 + 1),
    *(-(2**24) - 1, 2**31 - 1, -(2**31), -(2**31) + 1),
)
FLOATS = (0.0, -0.0, 1.0, -1.0, 2.5, 1e30, -1e30, np.inf, -np.inf, np.nan)


def type_of(array: np.ndarray) -> str:
    """As MLIR writes the type of a tensor."""
    return f"tensor<{'x'.join([*map(str, array.shape), NAMES[array.dtype.name]])}>"


def elementwise(body: str, inputs: Sequence[np.ndarray], result: np.ndarray) -> str:
    """A generic on elements %x and %y, whose body gives %r."""
    loops = ", ".join(f"d{axis}" for axis in range(result.ndim))
    kinds = ", ".join(['"parallel"'] * result.ndim)
    maps = ", ".join([f"affine_map<({loops}) -> ({loops})>"] * (len(inputs) + 1))
    names = [f"%{'xyz'[index]}" for index in range(len(inputs))]
    arguments = ", ".join(
        f"{name}: {NAMES[each.dtype.name]}" for name, each in zip(names, inputs, strict=True)
    )
    operands = ", ".join(f"%{'abc'[index]}" for index in range(len(inputs)))
    types = ", ".join(map(type_of, inputs))
    given = ", ".join(f"%{'abc'[index]}: {type_of(each)}" for index, each in enumerate(inputs))
    element, type_ = NAMES[result.dtype.name], type_of(result)
    return f"""func.func @f({given}) -> {type_} {{
  %e = tensor.empty() : {type_}
  %v = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins({operands} : {types}) outs(%e : {type_}) {{
  ^bb0({arguments}, %o: {element}):
    {body}
    linalg.yield %r : {element}
  }} -> {type_}
  return %v : {type_}
}}
"""


def check(text: str, inputs: Sequence[np.ndarray], expected: np.ndarray) -> None:
    """Compares what a text computes, before and after it is lowered, bit by bit."""
    source = Source("in.mlir", text)
    for target in ("ttnn", "ttmetal"):
        compiled = compile_module(source, CompileOptions("m", target))
        (run,) = run_in_numpy(source, compiled, lambda _module, _function: tuple(inputs))
        for results in (run.golden, run.flatbuffer):
            assert results is not None
            (found,) = results
            np.testing.assert_array_equal(found.astype(expected.dtype), expected)


def pairs(values: Sequence[float], dtype: type[np.generic]) -> tuple[np.ndarray, np.ndarray]:
    """Each value beside each other one."""
    array: np.ndarray = np.array(values).astype(dtype)
    count = len(array)
    return np.repeat(array[:, None], count, 1), np.repeat(array[None], count, 0)


SIGNED = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
UNSIGNED = {"i8": np.uint8, "i16": np.uint16, "i32": np.uint32}


def conversions() -> list[tuple[str, str, str]]:
    """Names, and types of the operand and the result."""
    names = list(SIGNED)
    found = [("trunci", b, a) for b in names for a in names if names.index(a) < names.index(b)]
    wider = [(a, b) for b in names for a in names if names.index(a) < names.index(b)]
    found += [("extsi", a, b) for a, b in wider]
    # A device has no 64 bits for the upper half.
    found += [("extui", a, b) for a, b in wider if a != "i32"]
    found += [("sitofp", a, "f32") for a in names] + [("uitofp", a, "f32") for a in UNSIGNED]
    found += [("fptoui", "f32", a) for a in UNSIGNED] + [("fptosi", "f32", a) for a in names]
    found += [(name, "i1", a) for a in ("i8", "i32", "f32") for name in ("ext", "tofp")
              if (a == "f32") == (name == "tofp")]  # fmt: skip
    return [*found, *(("trunci", a, "i1") for a in ("i8", "i32"))]


@pytest.mark.parametrize(("name", "given", "result"), conversions())
def test_conversions(name: str, given: str, result: str) -> None:
    numbers = np.array(INTEGERS, np.int64)
    dtypes = {**SIGNED, "f32": np.float32, "i1": np.bool_}
    if given == "i1":
        x = np.array([True, False])
        for sign, truth in (("s", -1), ("u", 1)):
            operation = f"ext{sign}i" if name == "ext" else f"{sign}itofp"
            expected = np.where(x, truth, 0).astype(dtypes[result])
            text = elementwise(f"%r = arith.{operation} %x : i1 to {result}", [x], expected)
            check(text, [x], expected)
        return
    if name == "trunci" and result == "i1":
        x = numbers.astype(SIGNED[given])
        expected = (x & 1).astype(np.bool_)
    elif name == "fptoui":
        limit = np.iinfo(UNSIGNED[result]).max
        x = np.array([0, 1, 100, 200.75, limit // 2 + 1, limit // 4 * 3], np.float32)
        expected = x.astype(UNSIGNED[result]).view(SIGNED[result])
    elif name == "fptosi":
        x = np.array([0, -0.0, 1.75, -1.75, 127, -128], np.float32)
        expected = x.astype(SIGNED[result])
    else:
        x = numbers.astype(SIGNED[given])
        bits = x.view(UNSIGNED[given]) if name in ("extui", "uitofp") else x
        expected = bits.astype(dtypes[result])
    check(elementwise(f"%r = arith.{name} %x : {given} to {result}", [x], expected), [x], expected)


def either(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.isnan(a) | np.isnan(b)


ORDERED: dict[str, Callable[..., np.ndarray]] = {
    "eq": np.equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal,
}  # fmt: skip
COMPARED: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    **{f"o{name}": function for name, function in ORDERED.items()},
    **{
        f"u{name}": lambda a, b, function=function: function(a, b) | either(a, b)
        for name, function in ORDERED.items()
    },
    "one": lambda a, b: (a != b) & ~either(a, b),
    "une": lambda a, b: (a != b) | either(a, b),
    "ord": lambda a, b: ~either(a, b),
    "uno": either,
}


@pytest.mark.parametrize("predicate", COMPARED)
def test_comparisons_of_floats(predicate: str) -> None:
    a, b = pairs(FLOATS, np.float32)
    expected = COMPARED[predicate](a, b)
    check(elementwise(f"%r = arith.cmpf {predicate}, %x, %y : f32", [a, b], expected), [a, b],
          expected)  # fmt: skip


@pytest.mark.parametrize("predicate", ["slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i1"])
def test_comparisons_of_integers(predicate: str, element: str) -> None:
    a, b = pairs(INTEGERS, SIGNED.get(element, np.bool_))  # pyright: ignore[reportArgumentType]
    compare = ORDERED[predicate[1:]]
    if element == "i1":
        numbers = [(-1 if predicate[0] == "s" else 1) * each.astype(int) for each in (a, b)]
    else:
        numbers = (
            [a, b] if predicate[0] == "s" else [each.view(UNSIGNED[element]) for each in (a, b)]
        )
    expected = compare(*numbers)
    check(elementwise(f"%r = arith.cmpi {predicate}, %x, %y : {element}", [a, b], expected),
          [a, b], expected)  # fmt: skip


BOOLEANS = {"addi": np.logical_xor, "subi": np.logical_xor, "muli": np.logical_and,
            "maxui": np.logical_or, "minui": np.logical_and, "maxsi": np.logical_and,
            "minsi": np.logical_or, "andi": np.logical_and, "ori": np.logical_or,
            "xori": np.logical_xor}  # fmt: skip


@pytest.mark.parametrize("name", BOOLEANS)
def test_arithmetic_of_booleans(name: str) -> None:
    a, b = pairs([0, 1], np.bool_)
    expected = BOOLEANS[name](a, b)
    check(elementwise(f"%r = arith.{name} %x, %y : i1", [a, b], expected), [a, b], expected)


EXTREMES = {
    "maximumf": np.maximum, "minimumf": np.minimum, "maxnumf": np.fmax, "minnumf": np.fmin,
}  # fmt: skip


@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("swapped", [False, True])
def test_extremes(name: str, swapped: bool) -> None:
    a, b = pairs(FLOATS, np.float32)
    operands = "%y, %x" if swapped else "%x, %y"
    expected = EXTREMES[name](a, b)
    check(elementwise(f"%r = arith.{name} {operands} : f32", [a, b], expected), [a, b], expected)


@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("form", ["generic", "reduce"])
def test_reduced_extremes(name: str, form: str) -> None:
    x = np.array([[1, np.nan, 3, -2], [np.nan] * 4, [-np.inf, 2, np.inf, 0]], np.float32)
    x = np.tile(x, (1, 100))
    start = np.float32("-inf" if "max" in name else "inf")
    expected = EXTREMES[name].reduce(x, axis=1, initial=start)
    bits = "0xFF800000" if start < 0 else "0x7F800000"
    step = f"%r = arith.{name} %x, %o : f32\n    linalg.yield %r : f32"
    generic = f"""linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}}
      ins(%a : {type_of(x)}) outs(%s : {type_of(expected)}) {{
  ^bb0(%x: f32, %o: f32):
    {step}
  }} -> {type_of(expected)}"""
    reduce = f"""linalg.reduce ins(%a : {type_of(x)}) outs(%s : {type_of(expected)})
      dimensions = [1] (%x: f32, %o: f32) {{
    {step}
  }}"""
    text = f"""func.func @f(%a: {type_of(x)}) -> {type_of(expected)} {{
  %n = arith.constant {bits} : f32
  %e = tensor.empty() : {type_of(expected)}
  %s = linalg.fill ins(%n : f32) outs(%e : {type_of(expected)}) -> {type_of(expected)}
  %v = {generic if form == "generic" else reduce}
  return %v : {type_of(expected)}
}}
"""
    check(text, [x], expected)


@pytest.mark.parametrize(("combine", "predicate"), [("maxsi", "sgt"), ("minsi", "slt")])
@pytest.mark.parametrize("element", ["i8", "i32"])
def test_places_of_extremes_of_integers(combine: str, predicate: str, element: str) -> None:
    """The lowest number has no negative."""
    limits = np.iinfo(SIGNED[element])
    x = np.array([[3, limits.min, limits.max, 0], [limits.max, 1, 1, limits.min]], SIGNED[element])
    place = (x.argmax if combine == "maxsi" else x.argmin)(axis=1)
    start = limits.min if combine == "maxsi" else limits.max
    text = f"""func.func @f(%a: {type_of(x)}) -> tensor<2xi64> {{
  %n = arith.constant {start} : {element}
  %zero = arith.constant 0 : i64
  %e = tensor.empty() : tensor<2x{element}>
  %s = linalg.fill ins(%n : {element}) outs(%e : tensor<2x{element}>) -> tensor<2x{element}>
  %g = tensor.empty() : tensor<2xi64>
  %h = linalg.fill ins(%zero : i64) outs(%g : tensor<2xi64>) -> tensor<2xi64>
  %v:2 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}}
      ins(%a : {type_of(x)}) outs(%s, %h : tensor<2x{element}>, tensor<2xi64>) {{
  ^bb0(%x: {element}, %o: {element}, %p: i64):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i64
    %m = arith.{combine} %x, %o : {element}
    %c = arith.cmpi {predicate}, %x, %o : {element}
    %k = arith.select %c, %j, %p : i64
    linalg.yield %m, %k : {element}, i64
  }} -> (tensor<2x{element}>, tensor<2xi64>)
  return %v#1 : tensor<2xi64>
}}
"""
    check(text, [x], place)


def test_integers_are_looked_up_with_all_bits() -> None:
    table = np.array([2**24 + 1, -(2**24) - 3, 2**31 - 1, 5], np.int64)
    places = np.array([2, 0, 1, 1, 3], np.int64)
    text = """func.func @f(%t: tensor<4xi64>, %a: tensor<5xi64>) -> tensor<5xi64> {
  %e = tensor.empty() : tensor<5xi64>
  %v = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%a : tensor<5xi64>) outs(%e : tensor<5xi64>) {
  ^bb0(%x: i64, %o: i64):
    %i = arith.index_cast %x : i64 to index
    %r = tensor.extract %t[%i] : tensor<4xi64>
    linalg.yield %r : i64
  } -> tensor<5xi64>
  return %v : tensor<5xi64>
}
"""
    check(text, [table, places], table[places])


@pytest.mark.parametrize(
    ("predicate", "ops"), [("ugt", ["relu"]), ("ogt", ["full", "gt", "where"])]
)
def test_rectifiers_are_what_they_are_for_nan(predicate: str, ops: list[str]) -> None:
    """torch-mlir asks `ugt` for a relu, which is true for NaN."""
    x = np.array(FLOATS, np.float32)
    keep = COMPARED[predicate](x, np.zeros_like(x))
    body = f"""%n = arith.constant 0.0 : f32
    %c = arith.cmpf {predicate}, %x, %n : f32
    %r = arith.select %c, %x, %n : f32"""
    text = elementwise(body, [x], x)
    check(text, [x], np.where(keep, x, np.float32(0)))
    compiled = compile_module(Source("in.mlir", text), CompileOptions("m"))
    assert ("ttnn::relu" in "".join(compiled.files.values())) == (ops == ["relu"])
    assert "where" in ops_of(read(text))
