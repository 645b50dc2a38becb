"""Programs of convolutions and pools, perhaps with elementwise ops after them.

The reader gathers the rows that windows see, one tile for each element of the kernel: row by row
they belong to a tile of the result. Nothing is unfolded in DRAM. A convolution multiplies them with
the channels' matrix for that element and adds up; a pool compares or adds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import Group
from ttcodegen.conversions.ttir_to_ttmetal.grouping.reductions import REDUCTIONS
from ttcodegen.conversions.ttir_to_ttmetal.parts.compute import ComputeKernel
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import COUNT, Lowered, purpose_of
from ttcodegen.conversions.ttir_to_ttmetal.windows.movement import WindowMovement
from ttcodegen.conversions.ttir_to_ttmetal.windows.plan import WindowPlan
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.cores import CoreRange
from ttcodegen.dialects.ttmetal.programs import (
    ComputeSettings,
    Kernel,
)
from ttcodegen.naming.programs import kernel_name
from ttcodegen.ops.core.tile_lowering import TileBuilder, TileCall


def lower_window(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """The program of a group that is built around a convolution or a pool."""
    plan = WindowPlan(group, names, name, cores)
    movement = WindowMovement(plan)
    return plan.parts.program(
        name,
        purpose_of(group),
        cores,
        (movement.reader(), _WindowCompute(plan).kernel(), movement.writer()),
        plan.costs(),
        ComputeSettings(fp32_destination=True, unpack_to_fp32=plan.full_width()),
        work_units=plan.units,
        work_unit="output tile" if plan.unit_columns == 1 else "row of output tiles",
    )


_Calls = Sequence[tuple[TileCall, Sequence[int]]]
"""Ops on registers, and which ones."""


@dataclass(frozen=True)
class _PoolSteps:
    """What becomes of the elements that windows see, which come to register 1, in register 0."""

    first: _Calls
    each: _Calls
    last: _Calls = ()


def _call(kernel: ComputeKernel, calls: _Calls) -> None:
    for call, registers in calls:
        kernel.call(call, registers)


def _tile_call(op: str, *parameters: float) -> TileCall:
    """An op on tiles, whichever they are."""
    tiles = TileBuilder()
    tiles.call(op, tiles.new_tile(DataType.FLOAT32), parameters=parameters)
    return tiles.calls[0]


def _combined(plan: WindowPlan) -> _PoolSteps:
    """The greatest of them, or their sum."""
    reduction = REDUCTIONS[f"ttir.{plan.root.parameter('method')}"]
    return _PoolSteps(
        [(_tile_call("fill_tile", reduction.neutral), [0])],
        [(_tile_call(reduction.combine), [0, 1, 0])],
    )


def _argmax(taps: int) -> _PoolSteps:
    """Which of them is the greatest one: register 0 counts those that came since, register 2 holds
    the greatest one so far, and register 3 is 0 where the next one is greater."""
    greatest, since, next_one, stays = 2, 0, 1, 3
    return _PoolSteps(
        [
            (_tile_call("fill_tile", 0.0), [since]),
            (_tile_call("fill_tile", float("-inf")), [greatest]),
        ],
        [
            (_tile_call("le_binary_tile"), [next_one, greatest, stays]),
            (_tile_call("binary_max_tile"), [greatest, next_one, greatest]),
            (_tile_call("add_unary_tile", 1.0), [since]),
            (_tile_call("mul_binary_tile"), [since, stays, since]),
        ],
        [
            (_tile_call("mul_unary_tile", -1.0), [since]),
            (_tile_call("add_unary_tile", float(taps - 1)), [since]),
            # Where all elements are minus infinity, none was greater than that.
            (_tile_call("relu_tile"), [since]),
        ],
    )


@dataclass(frozen=True)
class _WindowCompute:
    """Writes the kernel that multiplies, or compares, what was gathered."""

    plan: WindowPlan

    def kernel(self) -> tuple[Kernel, FuncOp]:
        """What the program says of the kernel, and its function."""
        plan = self.plan
        kernel = ComputeKernel(kernel_name("compute", plan.name), fp32_destination=True)
        buffers = [b for b in plan.parts.buffers if b.name not in plan.memories]
        kernel.declare(buffers, plan.parts.tuning.values())
        kernel.unpacks([b.name for b in buffers if b.name not in plan.output_names])
        kernel.packs(plan.output_names)
        count = kernel.builder.argument(0, "count")
        if plan.is_product:
            purpose = "Multiplies the windows with the weights of the convolution."
            self._multiply(kernel, count)
        else:
            purpose = "Reduces the elements of each window."
            self._pool(kernel, count, _argmax(plan.taps) if plan.finds_place else _combined(plan))
        return plan.parts.compute(kernel, purpose, plan.cores, buffers, COUNT)

    def _multiply(self, kernel: ComputeKernel, count: SSAValue) -> None:
        plan, builder = self.plan, kernel.builder
        kernel.op("mm_init", "left", "right", plan.output_names[0])
        with builder.loop(count, name_hint="unit"):
            if plan.keeps_rows:
                kernel.op("cb_wait_front", "left", plan.inner)
            with builder.loop(plan.unit_columns, name_hint="column"):
                with builder.destination_registers():
                    if not plan.epilogue.is_plain:
                        last = plan.outer_names[-1] if plan.outer_names else "right"
                        kernel.op("mm_init_short_with_dt", "left", "right", last)
                    with builder.loop(plan.inner, name_hint="step") as step:
                        self._multiply_step(kernel, step)
                    kernel.forget_formats()
                    self._finish(kernel)
                kernel.push(plan.output_names)
            if plan.keeps_rows:
                kernel.op("cb_pop_front", "left", plan.inner)

    def _multiply_step(self, kernel: ComputeKernel, step: SSAValue) -> None:
        brought = ["right"] if self.plan.keeps_rows else ["left", "right"]
        kernel.wait(brought)
        kernel.op("matmul_tiles", "left", "right", step if self.plan.keeps_rows else 0, 0, 0)
        kernel.pop(brought)

    def _pool(self, kernel: ComputeKernel, count: SSAValue, steps: _PoolSteps) -> None:
        plan, builder = self.plan, kernel.builder
        kernel.start(["seen"], plan.output_names[0])
        with builder.loop(count, name_hint="tile"):
            kernel.forget()
            with builder.destination_registers():
                _call(kernel, steps.first)
                with builder.loop(plan.taps, name_hint="tap"):
                    kernel.forget()
                    kernel.wait(["seen"])
                    kernel.load("seen", 1)
                    _call(kernel, steps.each)
                    kernel.pop(["seen"])
                kernel.forget()
                _call(kernel, steps.last)
                self._finish(kernel)
            kernel.push(plan.output_names)

    def _finish(self, kernel: ComputeKernel) -> None:
        """What is computed after the convolution or the pool; packs the results."""
        plan = self.plan
        results = plan.epilogue.compute(kernel, plan.outer_names, plan.output_names)
        kernel.builder.start_packing()
        kernel.pack(results)
        kernel.pop(plan.outer_names)
