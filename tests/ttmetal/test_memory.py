"""Placement in L1 of tensors between device programs."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import ttcodegen
from tests.ttmetal.function_text import call, function, tensor
from ttcodegen.cli.ttcodegen import main as compile_project
from ttcodegen.compilation import PIPELINES
from ttcodegen.dialects.ttmetal.device_module import (
    functions_of,
    is_host_function,
    launch_of,
    launches,
)
from ttcodegen.dialects.ttmetal.programs import Program
from ttcodegen.dialects.ttnn.placement import placement_of
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.layout.device import Bank
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.parsing import parse_module
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.systems.cards import performance
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import passes_of, step

SIDE = 512
BYTES = SIDE * SIDE * 2


def lowered(text: str, *, tensors_in_l1: bool = True) -> ModuleOp:
    module = parse_module(Source("module.mlir", f"module {{\n{text}}}\n"))
    pipeline = step(PIPELINES["ttmetal"], tensors_in_l1=tensors_in_l1)
    PassRunner(load_dialects()).run(module, passes_of(pipeline))
    return module


def programs(module: ModuleOp) -> list[Program]:
    hosts = [function for function in functions_of(module) if is_host_function(function)]
    return [launch.program for launch in launches(hosts)]


def memories(module: ModuleOp) -> Mapping[str, str]:
    """The placement of what programs write, by the names of the programs."""
    hosts = [function for function in functions_of(module) if is_host_function(function)]
    return {
        launch.program.name: placement_of(launch.outputs[0]).buffer_type
        for launch in launches(hosts)
    }


def product(left: str, right: str, shape: tuple[int, int]) -> str:
    type_ = tensor(shape, "bf16")
    return call("matmul", [left, right], [type_, type_], type_)


def products(count: int, side: int = SIDE) -> str:
    """Programs one after the other."""
    values = ["%a0", *(f"%{number}" for number in range(count - 1))]
    ops = [product(value, "%a1", (side, side)) for value in values]
    return function("products", [tensor((side, side), "bf16")] * 2, ops)


def test_what_only_programs_use_stays_in_l1() -> None:
    module = lowered(products(3))
    assert list(memories(module).values()) == ["l1", "l1", "dram"]
    costs = [program.costs for program in programs(module)]
    assert [c.least_dram_read_bytes for c in costs] == [2 * BYTES, BYTES, BYTES]
    assert [c.dram_write_bytes for c in costs] == [0, 0, BYTES]
    assert [c.least_dram_write_bytes for c in costs] == [0, 0, BYTES]
    reads = [c.dram_read_bytes for c in costs]
    assert reads[1] == reads[2] < reads[0]
    assert len({c.noc_bytes for c in costs}) == 1


def test_nothing_does_if_that_is_not_wanted() -> None:
    module = lowered(products(3), tensors_in_l1=False)
    assert set(memories(module).values()) == {"dram"}
    assert len({program.costs for program in programs(module)}) == 1


def test_what_does_not_fit_beside_circular_buffers_goes_through_dram() -> None:
    # 128 MiB are 2 MiB of each core's L1.
    assert set(memories(lowered(products(2, 8192))).values()) == {"dram"}


def test_a_view_lies_where_its_buffer_does() -> None:
    type_, wide = tensor((64, 64), "bf16"), tensor((1, 64, 64), "bf16")
    ops = [
        product("%a0", "%a1", (64, 64)),
        call("reshape", ["%0"], [type_], wide, shape="[1 : i32, 64 : i32, 64 : i32]"),
        call("matmul", ["%1", "%a2"], [wide, wide], wide),
    ]
    module = lowered(function("viewed", [type_, type_, wide], ops))
    assert "ttmetal.view" in str(module)
    first, second = programs(module)
    assert (first.costs.dram_write_bytes, second.costs.least_dram_read_bytes) == (0, 64 * 64 * 2)


def test_what_is_returned_lies_in_dram() -> None:
    type_ = tensor((64, 64), "bf16")
    ops = [product("%a0", "%a0", (64, 64)), product("%0", "%0", (64, 64))]
    text = function("both", [type_], ops, f"%0, %1 : {type_}, {type_}")
    assert list(memories(lowered(text)).values()) == ["dram", "dram"]


def test_what_the_cpu_reads_lies_in_dram() -> None:
    type_ = tensor((64, 64), "bf16")
    ops = [
        product("%a0", "%a0", (64, 64)),
        f'"ttir.exp"(%0) {{ttir.should_hoist}} : ({type_}) -> {type_}',
    ]
    assert list(memories(lowered(function("hoisted", [type_], ops))).values()) == ["dram"]


def test_the_allocator_finds_room_for_what_is_placed() -> None:
    """Tensors that are needed again much later: what stays leaves room for circular buffers."""
    shape, count = (1024, 1024), 40
    ops = [product("%a0" if i == 0 else f"%{i - 1}", "%a0", shape) for i in range(count)]
    ops += [product(f"%{count + i - 1}", f"%{count - 1 - i}", shape) for i in range(count)]
    module = lowered(function("crossed", [tensor(shape, "bf16")], ops))
    [host] = [function for function in functions_of(module) if is_host_function(function)]
    bank, blocks = Bank(performance("wormhole_b0").l1_bank), dict[object, tuple[int, int]]()
    placed = set[str]()
    for op in host.body.block.ops:
        if op.name == "ttmetal.create_buffer":
            buffer_type = placement_of(op.results[0]).buffer_type
            placed.add(buffer_type)
            if buffer_type == "l1":
                blocks[op.results[0]] = bank.allocate(1024 * 1024 * 2 // 64)
        elif op.name == "ttmetal.deallocate_buffer" and op.operands[0] in blocks:
            bank.free(blocks.pop(op.operands[0]))
        elif op.name == "ttmetal.run_program":
            assert bank.lowest >= launch_of(op).program.l1_bytes
    assert placed == {"l1", "dram"}
    assert not blocks


@pytest.mark.slow
def test_two_hundred_models_share_the_emulated_device(
    cpu_backend: CPUBackend, tmp_path: Path
) -> None:
    """Each of another library, and all of them open, as several would be on one card."""
    type_ = tensor((32, 32), "f32")
    file, out = tmp_path / "exponential.mlir", tmp_path / "out"
    file.write_text(function("exponential", [type_], [call("exp", ["%a0"], [type_], type_)]))
    arguments = [str(file), "-o", str(out), "--target", "ttmetal", "--build", "--no-format", "-q"]
    assert compile_project(arguments) == 0
    models: list[Any] = []
    for number in range(200):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(out, copy)
        models.append(ttcodegen.load(copy))
    given = np.linspace(-1, 1, 1024, dtype=np.float32).reshape(32, 32)
    for model in (*models[::66], models[0]):
        np.testing.assert_allclose(model.exponential(given), np.exp(given), rtol=1e-3)
