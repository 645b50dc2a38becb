"""The compute kernel of a product of matrices."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.compute import ComputeKernel
from ttcodegen.conversions.ttir_to_ttmetal.matmul_plan import MatmulPlan
from ttcodegen.conversions.ttir_to_ttmetal.registers import allocate, capacity
from ttcodegen.dialects.programs import Kernel, Processor
from ttcodegen.dialects.ttkernel.builder import Value


@dataclass(frozen=True)
class MatmulCompute:
    """Writes the kernel that multiplies blocks, adds the products up, and computes what follows."""

    plan: MatmulPlan

    def kernel(self) -> tuple[Kernel, FuncOp]:
        """What the program says of the kernel, and its function."""
        symbol = f"compute_{self.plan.name}"
        kernel = ComputeKernel(symbol, True)
        buffers = self.plan.parts.buffers
        kernel.declare(buffers)
        outputs = self.plan.output_names
        kernel.unpacks([b.name for b in buffers if b.name not in outputs])
        kernel.packs([*outputs, *(["partial"] if self.plan.blocking.inner_blocks > 1 else [])])
        kernel.op("mm_block_init", "left", "right", outputs[0], *self._block_shape)
        with kernel.builder.loop(self.plan.blocking.passes, name_hint="block"):
            if self.plan.blocking.inner_blocks > 1:
                with kernel.builder.loop(
                    self.plan.blocking.inner_blocks - 1, name_hint="inner_block"
                ) as inner_block:
                    self._add_block(kernel, inner_block)
            self._add_block(kernel, None)
        described = Kernel(
            symbol,
            Processor.COMPUTE,
            "Computes a block of the product at a time.",
            self.plan.cores,
            symbol,
            constants=self.plan.parts.constants(b.name for b in buffers),
        )
        return described, kernel.builder.finish()

    @property
    def _block_shape(self) -> tuple[int, int, int, int]:
        """Whether the right operand is transposed; columns, rows and inner dimension of a call."""
        return int(self.plan.transposed), self.plan.width, 1, self.plan.blocking.block_inner

    def _add_block(self, kernel: ComputeKernel, inner_block: SSAValue | None) -> None:
        """Adds the products of one block of each operand to the sums; `inner_block` is None for the
        last, after which the sums are the result."""
        b = self.plan.blocking
        kernel.op("cb_wait_front", "left", b.block_rows * b.block_inner)
        kernel.op("cb_wait_front", "right", b.block_inner * b.block_columns)
        with kernel.builder.loop(b.block_rows, name_hint="row") as row:
            first_left = kernel.builder.product(row, b.block_inner)
            with kernel.builder.loop(
                b.block_columns, step=self.plan.width, name_hint="column"
            ) as column:
                with kernel.builder.destination_registers():
                    self._load_sums(kernel, inner_block)
                    with kernel.builder.loop(b.block_inner, name_hint="inner") as inner:
                        left = kernel.builder.sum(first_left, inner)
                        right = kernel.builder.product(inner, b.block_columns)
                        right = kernel.builder.sum(right, column)
                        kernel.op(
                            "matmul_block", "left", "right", left, right, 0, *self._block_shape
                        )
                    if inner_block is not None:
                        self._keep_sums(kernel)
                    else:
                        self._finish(kernel)
                self._push(kernel, inner_block is None)
        kernel.op("cb_pop_front", "left", b.block_rows * b.block_inner)
        kernel.op("cb_pop_front", "right", b.block_inner * b.block_columns)

    def _load_sums(self, kernel: ComputeKernel, inner_block: SSAValue | None) -> None:
        """What the blocks before came to, unless there are none."""
        if self.plan.blocking.inner_blocks == 1:
            if not self.plan.is_plain:
                self._return_to_products(kernel)
            return
        if inner_block is None:
            self._copy_sums(kernel)
        else:
            condition = kernel.builder.compare("ne", inner_block, 0)
            with kernel.builder.when(condition):
                self._copy_sums(kernel)
        self._return_to_products(kernel)

    def _copy_sums(self, kernel: ComputeKernel) -> None:
        kernel.op("cb_wait_front", "partial", self.plan.width)
        kernel.op("copy_tile_to_dst_init_short_with_dt", "right", "partial")
        for register in range(self.plan.width):
            kernel.op("copy_tile", "partial", register, register)
        kernel.op("cb_pop_front", "partial", self.plan.width)

    def _return_to_products(self, kernel: ComputeKernel) -> None:
        """After copies the engines are set up for products again."""
        last = self.plan.outer_names[-1] if self.plan.outer_names else "right"
        old = "partial" if self.plan.blocking.inner_blocks > 1 else last
        kernel.op("mm_block_init_short_with_dt", "left", "right", old, *self._block_shape)

    def _keep_sums(self, kernel: ComputeKernel) -> None:
        kernel.op("cb_reserve_back", "partial", self.plan.width)
        kernel.builder.start_packing()
        kernel.pack([(register, "partial") for register in range(self.plan.width)])

    def _finish(self, kernel: ComputeKernel) -> None:
        """What is computed after the product; packs the results."""
        outputs = self.plan.output_names
        if self.plan.is_plain:
            kernel.op("cb_reserve_back", outputs[0], self.plan.width)
            kernel.builder.start_packing()
            kernel.pack([(register, outputs[0]) for register in range(self.plan.width)])
            return
        kernel.forget_formats()
        outer = self.plan.outer_names
        sources = dict(zip(self.plan.outer.values(), outer, strict=True))
        allocation = allocate(
            self.plan.builder.calls, self.plan.results, capacity(True), {self.plan.product: 0}
        )
        assert allocation is not None, "groups are formed so that they fit"
        kernel.wait(outer)
        kernel.run(allocation, sources)
        for name in outputs:
            kernel.op("cb_reserve_back", name, 1)
        kernel.builder.start_packing()
        places = [allocation.results[tile] for tile in self.plan.results]
        kernel.pack(list(zip(places, outputs, strict=True)))
        kernel.pop(outer)

    def _push(self, kernel: ComputeKernel, is_last: bool) -> None:
        names = self.plan.output_names if is_last else ["partial"]
        count: Value = self.plan.width
        for name in names:
            kernel.op("cb_push_back", name, count)
