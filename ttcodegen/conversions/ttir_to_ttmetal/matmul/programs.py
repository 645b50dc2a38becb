"""Matmul programs over a grid of cores, and their compute kernel."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import Group
from ttcodegen.conversions.ttir_to_ttmetal.matmul.movement import MatmulMovement
from ttcodegen.conversions.ttir_to_ttmetal.matmul.plan import MatmulPlan
from ttcodegen.conversions.ttir_to_ttmetal.parts.compute import ComputeKernel
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import Lowered, purpose_of
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttkernel.builder import Value
from ttcodegen.dialects.ttmetal.programs import ComputeSettings, Kernel
from ttcodegen.naming.programs import kernel_name

# The compute kernel of a matmul.

_SIZES = (
    "batches block_rows block_columns block_inner subblock_columns row_blocks column_blocks "
    "inner_blocks last_inner"
)


@dataclass(frozen=True)
class MatmulCompute:
    """Compute kernel of a matmul: multiplies blocks, accumulates, and applies the epilogue."""

    plan: MatmulPlan

    def kernel(self) -> tuple[Kernel, FuncOp]:
        """Returns the description of the kernel and its function."""
        kernel = ComputeKernel(kernel_name("compute", self.plan.name), fp32_destination=True)
        buffers = list(self.plan.parts.buffers)
        kernel.declare(buffers, self.plan.parts.tuning.values())
        kernel.know(self.plan.constants(_SIZES))
        outputs = self.plan.output_names
        kernel.unpacks([b.name for b in buffers if b.name not in outputs])
        kernel.packs([*outputs, *(["partial"] if self.plan.has_sums else [])])
        tiles = [
            kernel.builder.named(kernel.builder.product(first, second), f"{side}_tiles")
            for side, first, second in (
                ("left", kernel.size("block_rows"), kernel.size("block_inner")),
                ("right", kernel.size("block_inner"), kernel.size("block_columns")),
            )
        ]
        kernel.op("mm_block_init", "left", "right", outputs[0], *self._block_shape(kernel))
        blocks = kernel.builder.product(kernel.size("row_blocks"), kernel.size("column_blocks"))
        blocks = kernel.builder.product(kernel.size("batches"), blocks)
        with kernel.builder.loop(blocks, name_hint="block"):
            if self.plan.has_sums:
                before_last = kernel.builder.difference(kernel.size("inner_blocks"), 1)
                with kernel.builder.loop(before_last, name_hint="inner_block") as inner_block:
                    self._add_block(kernel, inner_block, *tiles)
            self._add_block(kernel, None, *tiles)
        purpose = "Computes a block of the product at a time."
        return self.plan.parts.compute(kernel, purpose, self.plan.cores, buffers)

    def _block_shape(self, kernel: ComputeKernel) -> tuple[Value, Value, Value, Value]:
        """Transposition of the right operand, and columns, rows and inner size of a matmul call."""
        transposed = int(self.plan.transposed)
        return transposed, kernel.size("subblock_columns"), 1, kernel.size("block_inner")

    def _add_block(
        self,
        kernel: ComputeKernel,
        inner_block: SSAValue | None,
        left_tiles: SSAValue,
        right_tiles: SSAValue,
    ) -> None:
        """Adds the products of one block of each operand, with these tile counts, to the sums.

        `inner_block` is None for the last block, after which the sums are the result."""
        inner_tiles = "last_inner" if inner_block is None else "block_inner"
        rows, columns, inner_size, width = (
            kernel.size(name)
            for name in ("block_rows", "block_columns", inner_tiles, "subblock_columns")
        )
        builder = kernel.builder
        kernel.op("cb_wait_front", "left", left_tiles)
        kernel.op("cb_wait_front", "right", right_tiles)
        with self._stage(kernel, inner_block is None), builder.loop(rows, name_hint="row") as row:
            first_left = builder.named(builder.product(row, inner_size), "first_left")
            with builder.loop(columns, step=width, name_hint="column") as column:
                with builder.destination_registers():
                    self._load_sums(kernel, inner_block)
                    with builder.loop(inner_size, name_hint="inner") as inner:
                        left = builder.sum(first_left, inner)
                        right = builder.sum(builder.product(inner, columns), column)
                        kernel.op(
                            "matmul_block",
                            "left",
                            "right",
                            left,
                            right,
                            0,
                            *self._block_shape(kernel),
                        )
                    if inner_block is not None:
                        self._keep_sums(kernel)
                    else:
                        self._finish(kernel)
                self._push(kernel, inner_block is None)
        kernel.op("cb_pop_front", "left", left_tiles)
        kernel.op("cb_pop_front", "right", right_tiles)

    def _stage(self, kernel: ComputeKernel, is_last: bool) -> AbstractContextManager[None]:
        """Stage that processes a block of the operands."""
        if not is_last:
            return kernel.builder.stage(
                "add_products",
                "Adds the products of a block of each operand to the partial sums.",
            )
        return kernel.builder.stage(
            "finish_block",
            "Adds the products of the last blocks, and computes the result of them.",
        )

    def _load_sums(self, kernel: ComputeKernel, inner_block: SSAValue | None) -> None:
        """Loads the partial sums of earlier blocks, if there are any."""
        builder = kernel.builder
        if inner_block is not None:
            with builder.when(builder.compare("ne", inner_block, 0)):
                self._copy_sums(kernel)
            self._resume_matmul(kernel, "partial")
            return
        last = self.plan.outer_names[-1] if self.plan.outer_names else "right"
        if not self.plan.has_sums:
            if not self.plan.epilogue.is_plain:
                self._resume_matmul(kernel, last)
            return
        with builder.when(self._has_several_blocks(kernel)):
            self._copy_sums(kernel)
            self._resume_matmul(kernel, "partial")
        if not self.plan.epilogue.is_plain:
            with builder.when(builder.compare("eq", kernel.size("inner_blocks"), 1)):
                self._resume_matmul(kernel, last)

    def _has_several_blocks(self, kernel: ComputeKernel) -> SSAValue:
        """Compile-time condition that the inner dimension has several blocks."""
        return kernel.builder.compare("ugt", kernel.size("inner_blocks"), 1)

    def _copy_sums(self, kernel: ComputeKernel) -> None:
        width = kernel.size("subblock_columns")
        kernel.op("cb_wait_front", "partial", width)
        kernel.op("copy_tile_to_dst_init_short_with_dt", "right", "partial")
        with kernel.builder.loop(width, name_hint="tile") as tile:
            kernel.op("copy_tile", "partial", tile, tile)
        kernel.op("cb_pop_front", "partial", width)

    def _resume_matmul(self, kernel: ComputeKernel, old: str) -> None:
        """Sets up the engines for matmul again, after tiles of `old` were copied."""
        shape = self._block_shape(kernel)
        kernel.op("mm_block_init_short_with_dt", "left", "right", old, *shape)

    def _keep_sums(self, kernel: ComputeKernel) -> None:
        kernel.op("cb_reserve_back", "partial", kernel.size("subblock_columns"))
        kernel.builder.start_packing()
        kernel.set_up_packer("partial")
        self._pack_row(kernel, "partial")

    def _pack_row(self, kernel: ComputeKernel, name: str) -> None:
        """Packs the tiles of a subblock."""
        with kernel.builder.loop(kernel.size("subblock_columns"), name_hint="tile") as tile:
            kernel.op("pack_tile", tile, name)

    def _finish(self, kernel: ComputeKernel) -> None:
        """Computes the epilogue and packs the results."""
        outputs = self.plan.output_names
        if self.plan.epilogue.is_plain:
            kernel.op("cb_reserve_back", outputs[0], kernel.size("subblock_columns"))
            kernel.builder.start_packing()
            self._set_up_packer(kernel, outputs[0])
            self._pack_row(kernel, outputs[0])
            return
        kernel.forget_formats()
        outer = self.plan.outer_names
        results = self.plan.epilogue.compute(kernel, outer, outputs)
        kernel.builder.start_packing()
        for register, name in results:
            self._set_up_packer(kernel, name)
            kernel.op("pack_tile", register, name)
        kernel.pop(outer)

    def _set_up_packer(self, kernel: ComputeKernel, output: str) -> None:
        """Sets up the packer for a result, if it may have packed another format before."""
        if not kernel.reconfigures_packer:
            return
        if self.plan.has_sums and len(self.plan.output_names) == 1:
            with kernel.builder.when(self._has_several_blocks(kernel)):
                kernel.set_up_packer(output)
        else:
            kernel.set_up_packer(output)

    def _push(self, kernel: ComputeKernel, is_last: bool) -> None:
        names = self.plan.output_names if is_last else ["partial"]
        count = kernel.size("subblock_columns")
        for name in names:
            kernel.op("cb_push_back", name, count)


# Matmuls over a grid of cores, optionally with an elementwise epilogue.
#
# Each core computes a block of the result. The operand blocks that it needs are read once by the
# first core of a row (left operand) or a column (right operand) and multicast to the others, one
# block of the inner dimension after the other.


def lower_matmul(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """Lowers a group whose root is a matmul to a program."""
    plan = MatmulPlan(group, names, name, cores)
    movement = MatmulMovement(plan)
    return plan.parts.program(
        name,
        purpose_of(group),
        plan.cores,
        (*movement.left_kernels(), MatmulCompute(plan).kernel(), *movement.right_kernels()),
        plan.costs(),
        ComputeSettings(fp32_destination=True, unpack_to_fp32=plan.full_width()),
        semaphores=plan.semaphores("left") + plan.semaphores("right"),
    )
