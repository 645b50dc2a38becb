"""The compute kernel of attention to more keys than L1 holds: a softmax in parts of the keys.

Of each row there is the greatest score so far, the sum of the exponentials of the scores less that,
and the sums of values weighted by them. A greater score makes all of it smaller by one factor
(Milakov and Gimelshein, arXiv:1805.02867). Rows take turns: what is kept of a row is at the front
of its circular buffers when a part comes to it, and goes to the back.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.attention.compute import AttentionCompute
from ttcodegen.conversions.ttir_to_ttmetal.rows.reduction import reduce_row, repeated_row
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttkernel.attributes import ReduceType
from ttcodegen.dialects.ttkernel.builder import Value
from ttcodegen.ops.core.tile_lowering import TileBuilder
from ttcodegen.ops.normalization.softmax import LEAST_SCORE

_LEAST = -3.3895313892515355e38
"""The lowest number of bf16, which no score of a key that is seen is below: unlike minus infinity
it can be subtracted from itself."""


class AttentionInParts(AttentionCompute):
    """The kernel of a plan whose keys come in parts."""

    def unit(self, unit: SSAValue) -> None:
        """The rows of a unit of work, part by part of the keys."""
        plan, kernel, builder = self.plan, self.kernel, self.kernel.builder
        queries = plan.buffers["query"], plan.unit_rows * plan.inner
        # With a causal mask a unit of work is one row.
        visible = plan.visible(builder, unit)
        with builder.loop(plan.unit_rows, name_hint="row"):
            with self.stage("begin_row"):
                self._begin()
        kernel.op("cb_wait_front", *queries)
        with builder.loop(visible, step=plan.part, name_hint="first_key_row") as first:
            count = builder.smaller(plan.part, builder.difference(visible, first))
            self._part(first, builder.named(count, "key_rows"), visible)
        with builder.loop(plan.unit_rows, name_hint="row"):
            with self.stage("finish_row"):
                self._finish()
        kernel.op("cb_pop_front", *queries)

    def _part(self, first: SSAValue, count: SSAValue, visible: Value) -> None:
        """A part of the keys, of which there are so many rows from `first` on."""
        plan, kernel, builder = self.plan, self.kernel, self.kernel.builder
        keys = plan.buffers["key"], plan.part * plan.inner
        values = plan.buffers["value"], plan.part * plan.width
        kernel.op("cb_wait_front", *keys)
        kernel.op("cb_wait_front", *values)
        whole = count
        if plan.hiding:
            # The last tile that is seen at all hides some of its keys.
            last = visible - 1 if isinstance(visible, int) else builder.difference(visible, 1)
            before = builder.difference(last, first)
            whole = builder.named(builder.smaller(count, before), "whole")
        with builder.loop(plan.unit_rows, name_hint="row") as row:
            query: Value = builder.product(row, plan.inner) if plan.unit_rows > 1 else 0
            with self.stage("compute_scores"):
                kernel.op("cb_reserve_back", "scores", plan.part)
                with builder.loop(whole, name_hint="column") as column:
                    self.score(column, "", query)
                if plan.hiding:
                    with builder.when(builder.compare("ne", whole, count)):
                        self.score(whole, plan.hiding, query)
                kernel.op("cb_push_back", "scores", plan.part)
                kernel.op("cb_wait_front", "scores", plan.part)
            with self.stage("find_greatest"):
                self._raise(count)
            with self.stage("compute_weights"):
                self.weights(count, "latest")
            with self.stage("add_weights"):
                self._add_weights(count)
            with self.stage("add_values"):
                self._add_products(count)
            for name, pages in (("scores", plan.part), ("weights", plan.part), ("latest", 1),
                                ("factor", 1), ("greatest", 1), ("sum", 1),
                                ("products", plan.width)):  # fmt: skip
                kernel.op("cb_pop_front", name, pages)
        kernel.op("cb_pop_front", *keys)
        kernel.op("cb_pop_front", *values)

    def _begin(self) -> None:
        """What is kept of a row before it has seen a key: a sink is a score without a value."""
        plan, kernel, tiles = self.plan, self.kernel, TileBuilder()
        sinks = [plan.buffers["sink"]] if plan.sink is not None else []
        tiles.fill(_LEAST if plan.mask is None else LEAST_SCORE, DataType.FLOAT32)
        tiles.fill(1.0 if sinks else 0.0, DataType.FLOAT32)
        tiles.fill(0.0, DataType.FLOAT32)
        kernel.op("cb_reserve_back", "products", plan.width)
        kernel.wait(sinks)
        with kernel.builder.destination_registers():
            kernel.forget_formats()
            for register, call in enumerate(tiles.calls):
                if register == 0 and sinks:
                    kernel.load(sinks[0], register)
                else:
                    kernel.call(call, [register])
            kernel.pack_when_free([(0, "greatest"), (1, "sum")])
            with kernel.builder.loop(plan.width, name_hint="value_column"):
                kernel.pack([(2, "products")])
        kernel.pop(sinks)
        kernel.push(["greatest", "sum"])
        kernel.op("cb_push_back", "products", plan.width)

    def _raise(self, count: Value) -> None:
        """The greatest score with those of the part, and what the sums have to be multiplied by."""
        kernel, tiles = self.kernel, TileBuilder()
        score = tiles.new_tile(DataType.FLOAT32)
        tiles.call("exp_tile", tiles.call("sub_binary_tile", score, score))
        difference, exponential = tiles.calls

        def begin() -> None:
            kernel.forget_formats()
            kernel.load("greatest", 0)

        kernel.wait(["greatest"])
        self.raise_greatest(begin, count, ["latest", "greatest"])
        kernel.wait(["latest"])
        with kernel.builder.destination_registers():
            kernel.forget_formats()
            kernel.load("greatest", 0)
            kernel.load("latest", 1)
            kernel.call(difference, [0, 1, 0])
            kernel.call(exponential, [0])
            kernel.pack_when_free([(0, "factor")])
        kernel.push(["factor"])
        kernel.wait(["factor"])

    def _add_weights(self, count: Value) -> None:
        """The sum of the exponentials with those of the part."""
        reduce_row(self.kernel, "weights", ReduceType.SUM, count, streams=False)
        self.kernel.wait(["sum"])
        with repeated_row(self.kernel):
            self._add_kept("sum", 0)
            self.kernel.pack_when_free([(0, "sum")])
        self.kernel.push(["sum"])

    def _add_products(self, count: Value) -> None:
        """The sums of values with those of the part."""
        self.kernel.op("cb_wait_front", "products", self.plan.width)
        with self.products(count, "products") as column:
            self._add_kept("products", column)

    def _add_kept(self, name: str, index: Value) -> None:
        """Adds to the first register what was kept, times the factor."""
        kernel, tiles = self.kernel, TileBuilder()
        tile = tiles.new_tile(DataType.FLOAT32)
        tiles.call("mul_binary_tile", tile, tile)
        tiles.call("add_binary_tile", tile, tile)
        kernel.load(name, 1, index)
        kernel.load("factor", 2)
        kernel.call(tiles.calls[0], [1, 2, 1])
        kernel.call(tiles.calls[1], [0, 1, 0])

    def _finish(self) -> None:
        """The result of a row that has seen all of its keys."""
        plan, kernel, tiles = self.plan, self.kernel, TileBuilder()
        tile = tiles.new_tile(DataType.FLOAT32)
        tiles.call("recip_tile", tile)
        tiles.call("mul_binary_tile", tile, tile)
        result = plan.buffers["result"]
        kernel.wait(["sum", "greatest"])
        kernel.op("cb_wait_front", "products", plan.width)
        with kernel.builder.loop(plan.width, name_hint="value_column") as column:
            with kernel.builder.destination_registers():
                kernel.forget_formats()
                kernel.load("products", 0, column)
                kernel.load("sum", 1)
                kernel.call(tiles.calls[0], [1])
                kernel.call(tiles.calls[1], [0, 1, 0])
                kernel.pack_when_free([(0, result)])
            kernel.push([result])
        for name, pages in (("sum", 1), ("greatest", 1), ("products", plan.width)):
            kernel.op("cb_pop_front", name, pages)
