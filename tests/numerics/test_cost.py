"""Bytes, operations and roofline of ops."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.flatbuffer.programs import tensor
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.cost import (
    Cost,
    Roofline,
    card_roofline,
    cost_of,
    host_roofline,
    quick_runs,
)
from ttcodegen.flatbuffer import program as file
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.lowered import read_flatbuffer
from ttcodegen.rt.device_profile import Span, Trace
from ttcodegen.systems.cards import default_system


def cost(
    name: str,
    operands: list[tuple[int, ...]],
    result: tuple[int, ...],
    attributes: tuple[file.Attribute, ...] = (),
) -> Cost:
    """The cost of an op on f32 tensors of these shapes."""
    tensors = tuple(tensor(*shape) for shape in (*operands, result))
    count = len(operands)
    operation = file.Operation(
        f"ttnn.{name}", tuple(range(count)), (1,) * count, (count,), attributes
    )
    program = file.Program("main", "entry", tensors, (), (), (operation,))
    return cost_of(program, operation)


def numbers(name: str, *values: int) -> file.Attribute:
    return file.Attribute(name, file.Integers(values))


def number(name: str, value: int) -> file.Attribute:
    return file.Attribute(name, file.Integer(value))


@pytest.mark.parametrize(
    ("name", "operands", "result", "attributes", "flops"),
    [
        ("matmul", [(2, 32, 64), (64, 96)], (2, 32, 96), (), 2 * 2 * 32 * 64 * 96),
        ("linear", [(32, 64), (64, 96), (96,)], (32, 96), (), 2 * 32 * 64 * 96 + 32 * 96),
        (
            "matmul",
            [(64, 32), (64, 96)],
            (32, 96),
            (file.Attribute("transpose_a", file.Boolean(True)),),
            2 * 32 * 64 * 96,
        ),
        (
            "conv2d",
            [(1, 1, 64, 16), (32, 16, 3, 3)],
            (1, 1, 64, 32),
            (number("in_channels", 16), number("out_channels", 32)),
            2 * 64 * 32 * 16 * 9,
        ),
        (
            "conv_transpose2d",
            [(1, 1, 64, 16), (16, 32, 3, 3)],
            (1, 1, 256, 32),
            (number("in_channels", 16), number("out_channels", 32)),
            2 * 64 * 16 * 32 * 9,
        ),
        (
            "scaled_dot_product_attention",
            [(1, 2, 32, 64), (1, 2, 96, 64), (1, 2, 96, 64)],
            (1, 2, 32, 64),
            (),
            4 * 2 * 32 * 96 * 64,
        ),
        ("max_pool2d", [(1, 1, 64, 8)], (1, 1, 16, 8), (numbers("kernel_size", 2, 2),), 512),
        ("softmax", [(32, 32)], (32, 32), (), 5 * 1024),
        ("add", [(32, 32), (32, 1)], (32, 32), (), 1024),
        ("sum", [(32, 32)], (32, 1), (), 1024),
        ("reshape", [(32, 32)], (1024,), (), 0),
        ("deallocate", [(32, 32)], (0,), (), 0),
    ],
)
def test_operations(
    name: str,
    operands: list[tuple[int, ...]],
    result: tuple[int, ...],
    attributes: tuple[file.Attribute, ...],
    flops: int,
) -> None:
    assert cost(name, operands, result, attributes).flops == flops


def test_bytes_are_those_of_all_tensors() -> None:
    assert cost("add", [(32, 32), (32, 1)], (32, 32)).moved == 3 * 4096
    assert cost("deallocate", [(32, 32)], (0,)).moved == 0


@pytest.mark.parametrize(("arch", "flops"), [("wormhole_b0", 65.5e12), ("blackhole", 152.1e12)])
def test_the_roofline_of_a_card(arch: str, flops: float) -> None:
    roofline = card_roofline(default_system(arch).chip)
    assert roofline.flops == pytest.approx(flops, rel=0.01)


def test_what_takes_longer_is_the_bound() -> None:
    roofline = Roofline(flops=100.0, bandwidth=10.0)
    assert roofline.least_seconds(Cost(moved=20, flops=100)) == 2.0
    assert roofline.bound(Cost(moved=20, flops=100)) == "memory"
    assert roofline.bound(Cost(moved=5, flops=100)) == "compute"
    assert roofline.bound(Cost(0, 0)) == ""


def test_the_roofline_of_this_machine_is_measured() -> None:
    roofline = host_roofline()
    assert 1e8 < roofline.flops < 1e15
    assert 1e7 < roofline.bandwidth < 1e14


def test_traces() -> None:
    trace = Trace()
    trace.add("a.ttnn", "main", [Span("add", "op", 0.5, 0.25, {"bytes": np.int64(3).item()})])
    trace.add("a.ttnn", "other", [Span("relu", "op", 1.0, 1.0)])
    trace.add("b.ttnn", "main", [])
    content = json.loads(json.dumps(trace.to_json()))
    names = [(e["name"], e["pid"], e["tid"]) for e in content["traceEvents"] if e["ph"] == "M"]
    assert names == [
        ("process_name", 1, 0),
        ("thread_name", 1, 1),
        ("thread_name", 1, 2),
        ("process_name", 2, 0),
        ("thread_name", 2, 1),
    ]
    spans = [e for e in content["traceEvents"] if e["ph"] == "X"]
    assert [(e["ts"], e["dur"], e["pid"], e["tid"]) for e in spans] == [
        (5e5, 2.5e5, 1, 1),
        (1e6, 1e6, 1, 2),
    ]
    assert spans[0]["args"] == {"bytes": 3}


@pytest.mark.parametrize(("trips", "again"), [(2, True), (2000, False)])
def test_loops_count_as_often_as_they_run(trips: int, again: bool) -> None:
    whole = "tensor<64x256xf32>"
    text = f"""
func.func @main(%x: {whole}) -> {whole} {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%a = %x, %n = %zero) : {whole}, tensor<i32>
  cond {{
    %most = stablehlo.constant dense<{trips}> : tensor<i32>
    %more = stablehlo.compare LT, %n, %most, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %n, %one : tensor<i32>
    %y = stablehlo.sine %a : {whole}
    stablehlo.return %y, %next : {whole}, tensor<i32>
  }}
  return %r#0 : {whole}
}}"""
    compiled = compile_module(Source("m.mlir", text), CompileOptions("m"))
    runs = quick_runs(read_flatbuffer(compiled.flatbuffer))
    assert runs >= 2 if again else runs == 0


@pytest.mark.parametrize(
    ("target", "rows", "again"),
    [("ttnn", 64, True), ("ttnn", 16384, False), ("ttmetal", 64, True), ("ttmetal", 4096, False)],
)
def test_small_programs_run_again_in_a_part_of_their_build(
    target: str, rows: int, again: bool
) -> None:
    whole = f"tensor<{rows}x2048xf32>"
    text = f"""
func.func @main(%x: {whole}) -> {whole} {{
  %0 = "ttir.exp"(%x) : ({whole}) -> {whole}
  return %0 : {whole}
}}"""
    compiled = compile_module(Source("m.mlir", text), CompileOptions("m", target=target))
    runs = quick_runs(read_flatbuffer(compiled.flatbuffer))
    assert runs >= 2 if again else runs == 0
