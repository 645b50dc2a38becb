"""Loops that are not unrolled: trip counts known at run time only, and long ones that count."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ttcodegen
from tests.frontends.running import read, run
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.flatbuffer.modules import module_of, origin_of
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.flatbuffer.writer import Origin, write_ttnn
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.frontends.stablehlo.control import MOST_COPIES
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.numerics.interpreter import Interpreter
from ttcodegen.numerics.lowered import interpreter_of, read_flatbuffer
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.transforms.loops import UnrollLoops

ROOTS = """
func.func @main(%x: tensor<4x32xf32>, %bound: tensor<f32>) -> (tensor<4x32xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %half = stablehlo.constant dense<0.5> : tensor<4x32xf32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %r:3 = stablehlo.while(%steps = %zero, %root = %x, %error = %x)
      : tensor<i32>, tensor<4x32xf32>, tensor<4x32xf32>
  cond {
    %largest = stablehlo.reduce(%error init: %least) applies stablehlo.maximum
        across dimensions = [0, 1] : (tensor<4x32xf32>, tensor<f32>) -> tensor<f32>
    %again = stablehlo.compare GT, %largest, %bound : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %again : tensor<i1>
  } do {
    %next = stablehlo.add %steps, %one : tensor<i32>
    %other = stablehlo.divide %x, %root : tensor<4x32xf32>
    %sum = stablehlo.add %root, %other : tensor<4x32xf32>
    %better = stablehlo.multiply %sum, %half : tensor<4x32xf32>
    %change = stablehlo.subtract %root, %better : tensor<4x32xf32>
    %size = stablehlo.abs %change : tensor<4x32xf32>
    stablehlo.return %next, %better, %size : tensor<i32>, tensor<4x32xf32>, tensor<4x32xf32>
  }
  return %r#1, %r#0 : tensor<4x32xf32>, tensor<i32>
}
"""
"""Square roots by Newton's method, as long as they change by more than a bound; and the trips."""

TRIANGLE = """
func.func @main(%n: tensor<i32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %sum = %zero) : tensor<i32>, tensor<i32>
  cond {
    %again = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %again : tensor<i1>
  } do {
    %s:2 = stablehlo.while(%j = %zero, %inner = %sum) : tensor<i32>, tensor<i32>
    cond {
      %again = stablehlo.compare LE, %j, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %again : tensor<i1>
    } do {
      %next = stablehlo.add %j, %one : tensor<i32>
      %more = stablehlo.add %inner, %one : tensor<i32>
      stablehlo.return %next, %more : tensor<i32>, tensor<i32>
    }
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %s#1 : tensor<i32>, tensor<i32>
  }
  return %r#1 : tensor<i32>
}
"""
"""A loop in a loop: 1 + 2 + ... + n."""

POWERS = """
func.func @main(%x: tensor<2x32xf32> {ttcore.argument_type = #ttcore.argument_type<input>},
                %w: tensor<32x32xf32> {ttcore.argument_type = #ttcore.argument_type<parameter>},
                %n: tensor<i32> {ttcore.argument_type = #ttcore.argument_type<input>})
    -> tensor<2x32xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %row = %x) : tensor<i32>, tensor<2x32xf32>
  cond {
    %again = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %again : tensor<i1>
  } do {
    %scaled = stablehlo.exponential %w : tensor<32x32xf32>
    %product = stablehlo.dot_general %row, %scaled, contracting_dims = [1] x [0]
        : (tensor<2x32xf32>, tensor<32x32xf32>) -> tensor<2x32xf32>
    %bounded = stablehlo.tanh %product : tensor<2x32xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %bounded : tensor<i32>, tensor<2x32xf32>
  }
  return %r#1 : tensor<2x32xf32>
}
"""
"""A recurrence with a weight of which each iteration takes the exponential."""


DOUBLED = """
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %bound = stablehlo.constant dense<100.0> : tensor<f32>
  %r = stablehlo.while(%sum = %x) : tensor<f32>
  cond {
    %again = stablehlo.compare LT, %sum, %bound : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %again : tensor<i1>
  } do {
    %more = stablehlo.add %sum, %sum : tensor<f32>
    stablehlo.return %more : tensor<f32>
  }
  return %r : tensor<f32>
}
"""
"""A loop that carries one tensor."""

TABLES = """
func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %row = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %again = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %again : tensor<i1>
  } do {
    %table = stablehlo.constant dense<[1.0, 2.0, 3.0, 5.0]> : tensor<4xf32>
    %s:2 = stablehlo.while(%j = %zero, %inner = %row) : tensor<i32>, tensor<4xf32>
    cond {
      %again = stablehlo.compare LT, %j, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %again : tensor<i1>
    } do {
      %weights = stablehlo.constant dense<[0.5, 0.25, 2.0, 1.0]> : tensor<4xf32>
      %next = stablehlo.add %j, %one : tensor<i32>
      %more = stablehlo.multiply %inner, %weights : tensor<4xf32>
      stablehlo.return %next, %more : tensor<i32>, tensor<4xf32>
    }
    %sum = stablehlo.add %s#1, %table : tensor<4xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %sum : tensor<i32>, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}
"""
"""A loop in a loop, each with a table of its own."""


def roots(x: np.ndarray, bound: float) -> tuple[np.ndarray, int]:
    root, error, steps = x, x, 0
    while error.max() > bound:
        better = ((root + x / root) * np.float32(0.5)).astype(np.float32)
        root, error, steps = better, abs(root - better), steps + 1
    return root, steps


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).uniform(0.5, 4.0, shape).astype(np.float32)


@pytest.mark.parametrize("bound", [100.0, 0.5, 1e-3])
def test_the_source_runs_as_often_as_its_values_say(bound: float) -> None:
    x = drawn(4, 32)
    found, steps = run(ROOTS, x, np.array(bound, np.float32))
    expected, trips = roots(x, bound)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert steps == trips


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_loop_in_a_loop_takes_what_the_outer_one_carries(n: int) -> None:
    (found,) = run(TRIANGLE, np.array(n, np.int32))
    assert found == n * (n + 1) // 2


@pytest.mark.parametrize(
    "options", [["--optimize", "0"], ["--optimize", "2"], ["--target", "ttmetal"]]
)
def test_cpp_runs_as_often_as_its_values_say(options: list[str], tmp_path: Path) -> None:
    """In C++, on inputs that were not checked with, no iteration among them."""
    for name, text in (("roots", ROOTS), ("triangle", TRIANGLE), ("doubled", DOUBLED)):
        (tmp_path / f"{name}.mlir").write_text(text)
        arguments = [str(tmp_path / f"{name}.mlir"), "-o", str(tmp_path / name), "-q"]
        assert main([*arguments, *options]) == 0
    x = drawn(4, 32)
    with ttcodegen.load(tmp_path / "roots") as model:
        for bound in (100.0, 0.5, 0.01):
            found, steps = model.forward(x, np.array(bound, np.float32))
            expected, trips = roots(x, bound)
            np.testing.assert_allclose(found, expected, rtol=1e-3)
            assert steps == trips
    with ttcodegen.load(tmp_path / "triangle") as model:
        for n in (0, 4, 9):
            assert model.forward(np.array(n, np.int32)) == n * (n + 1) // 2
    with ttcodegen.load(tmp_path / "doubled") as model:
        for given, found in ((3, 192), (300, 300)):
            assert model.forward(np.array(given, np.float32)) == found


def test_loops_between_device_programs_run_on_the_cpu() -> None:
    """Tables of the iterations are constants of the entry function."""
    compiled = compile_module(Source("in.mlir", TABLES), CompileOptions("model", "ttmetal"))
    text = compiled.files["src/cpu_functions.cpp"]
    assert text.count("cpu::repeated(") == 2
    assert "cpu::Tensor& weights" in text
    assert "load_tensor" in compiled.files["src/model.cpp"]
    program = interpreter_of(read_flatbuffer(compiled.flatbuffer))
    x, weights = drawn(4), np.array([0.5, 0.25, 2, 1])
    for n in (0, 1, 3):
        expected = x
        for i in range(n):
            expected = expected * weights**i + [1, 2, 3, 5]
        (found,) = program.run("main", [x, np.array(n, np.int32)])
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_what_each_iteration_computes_of_weights_is_computed_once(tmp_path: Path) -> None:
    """And a loop is read back from the flatbuffer as it was written."""
    compiled = compile_module(Source("in.mlir", POWERS), CompileOptions("model"))
    text = compiled.files["src/model.cpp"]
    prepare, _, rest = text.partition("forward_loop_iteration")
    assert "ttnn::exp(weights.w)" in prepare
    assert "ttnn::exp" not in rest
    binary = read_ttnn(compiled.flatbuffer)
    x, w = drawn(2, 32), np.log(drawn(32, 32) / 40)
    (found,) = Interpreter(binary).run("main", [x, w, np.array(3, np.int32)])
    expected = x
    for _ in range(3):
        expected = np.tanh(expected @ np.exp(w))
    np.testing.assert_allclose(found, expected, rtol=2e-2)
    again = module_of(binary)
    again.verify()
    origin = origin_of(again, Origin(binary.input_hash, binary.arch, binary.release, b""))
    assert read_ttnn(write_ttnn(again, origin)).programs == binary.programs


COUNTED = """
func.func @main(%x: tensor<200x4xf32>) -> (tensor<4xf32>, tensor<200x4xf32>) {
  %first = stablehlo.constant dense<FIRST> : tensor<i32>
  %step = stablehlo.constant dense<STEP> : tensor<i32>
  %bound = stablehlo.constant dense<BOUND> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %start = stablehlo.constant dense<0.0> : tensor<4xf32>
  %none = stablehlo.constant dense<0.0> : tensor<200x4xf32>
  %r:3 = stablehlo.while(%i = %first, %sum = %start, %sums = %none)
      : tensor<i32>, tensor<4xf32>, tensor<200x4xf32>
  cond {
    %again = stablehlo.compare ORDER, %i, %bound : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %again : tensor<i1>
  } do {
    %row = stablehlo.dynamic_slice %x, %i, %zero, sizes = [1, 4]
        : (tensor<200x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %flat = stablehlo.reshape %row : (tensor<1x4xf32>) -> tensor<4xf32>
    %more = stablehlo.add %sum, %flat : tensor<4xf32>
    %again = stablehlo.reshape %more : (tensor<4xf32>) -> tensor<1x4xf32>
    %kept = stablehlo.dynamic_update_slice %sums, %again, %i, %zero
        : (tensor<200x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<200x4xf32>
    %next = stablehlo.add %i, %step : tensor<i32>
    stablehlo.return %next, %more, %kept : tensor<i32>, tensor<4xf32>, tensor<200x4xf32>
  }
  return %r#1, %r#2 : tensor<4xf32>, tensor<200x4xf32>
}
"""
"""A scan over rows: running sums."""


@pytest.mark.parametrize(
    ("first", "step", "bound", "order", "trips"),
    [
        (0, 1, 200, "LT", 200),
        (0, 1, 198, "LE", 199),
        (199, -1, -1, "GT", 200),
        (199, -1, 1, "GE", 199),
        (0, 3, 200, "LT", 67),
    ],
)
def test_long_loops_that_count_are_loops(
    first: int, step: int, bound: int, order: str, trips: int
) -> None:
    text = COUNTED.replace("FIRST", str(first)).replace("STEP", str(step))
    text = text.replace("BOUND", str(bound)).replace("ORDER", order)
    x = drawn(200, 4)
    places = range(first, first + step * trips, step)
    sums = np.zeros_like(x)
    sums[places] = np.cumsum(x[places], axis=0)
    last, found = run(text, x)
    np.testing.assert_allclose(found, sums, rtol=1e-5)
    np.testing.assert_allclose(last, sums[places[-1]], rtol=1e-5)
    compiled = compile_module(Source("in.mlir", text), CompileOptions("model"))
    written = f"trip < {trips};" in compiled.files["src/model.cpp"]
    assert written is (trips > MOST_COPIES)
    last, found = Interpreter(read_ttnn(compiled.flatbuffer)).run("main", [x])
    np.testing.assert_allclose(found, sums, rtol=1e-3)


def test_loops_that_count_are_unrolled_for_device_programs() -> None:
    text = COUNTED.replace("FIRST", "0").replace("STEP", "1")
    text = text.replace("BOUND", "130").replace("ORDER", "LT")
    module = read(text)
    UnrollLoops().apply(load_dialects(), module)
    (function,) = module.ops
    assert [op.name for op in function.body.block.ops].count("ttir.slice_dynamic") == 130  # pyright: ignore
    x = drawn(200, 4)
    last, _ = Golden(module).run("main", [x])
    np.testing.assert_allclose(last, x[:130].sum(axis=0), rtol=1e-5)


def test_a_table_that_a_long_loop_computes_is_a_constant() -> None:
    text = """
func.func @main() -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %bound = stablehlo.constant dense<300> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %sum = %zero) : tensor<i32>, tensor<i32>
  cond {
    %again = stablehlo.compare LT, %i, %bound : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %again : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %more = stablehlo.add %sum, %i : tensor<i32>
    stablehlo.return %next, %more : tensor<i32>, tensor<i32>
  }
  return %r#1 : tensor<i32>
}
"""
    (found,) = run(text)
    assert found == 300 * 299 // 2
    assert not any(op.name == "ttcore.while_loop" for op in read(text).walk())


def test_a_loop_that_does_not_end_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    endless = TRIANGLE.replace("%next = stablehlo.add %i, %one", "%next = stablehlo.add %i, %zero")
    with pytest.raises(CompileError, match="runs more than 65536 times on these inputs"):
        run(endless.replace("compare LE", "compare NE"), np.array(1, np.int32))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--trace"], "the host reads in each iteration whether there is another one"),
        (["--trace", "--target", "ttmetal"], "'func.call' cannot be part of a trace"),
    ],
)
def test_what_cannot_loop_says_so(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.mlir").write_text(TRIANGLE)
    assert main([str(tmp_path / "in.mlir"), "-o", str(tmp_path / "out"), *options]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert "in.mlir:5:10: error: " in error


def test_a_body_that_does_not_fit_its_loop_is_refused(tmp_path: Path) -> None:
    text = """
func.func @main(%go: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "ttcore.while_loop"(%go, %x) <{callee = @body, operandSegmentSizes = array<i32: 1, 1>}>
      : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @body(%x: tensor<4xf32>) -> (tensor<i1>, tensor<8xf32>)
    attributes {ttcodegen.loop_body = "conditional"} {
  %0 = "ttir.constant"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
  %1 = "ttir.constant"() <{value = dense<0.0> : tensor<8xf32>}> : () -> tensor<8xf32>
  return %0, %1 : tensor<i1>, tensor<8xf32>
}
"""
    with pytest.raises(CompileError, match=r"function @body returns tensor<8xf32> as result 1"):
        compile_module(Source("in.mlir", text), CompileOptions("model"))
