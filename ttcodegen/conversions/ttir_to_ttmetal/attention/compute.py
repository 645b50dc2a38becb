"""Compute kernels of attention: scores, softmax and weighted sums, whole or in chunks of keys."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.attention.plan import AttentionPlan
from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import (
    Allocation,
    allocate,
    capacity,
    where_shown,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.compute import (
    PARTIAL,
    SCALER,
    SCALER_TILES,
    ComputeKernel,
    reduce_row,
    repeated_row,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import SHARE
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttkernel.attributes import ReduceType
from ttcodegen.dialects.ttkernel.builder import Value
from ttcodegen.dialects.ttmetal.programs import Kernel
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.naming.programs import kernel_name
from ttcodegen.ops.core.lowering import Tile, TileBuilder
from ttcodegen.ops.reduction.norms import LEAST_SCORE

# The compute kernel of attention: a row of score tiles, its softmax, and weighted sums of values.

_STAGES = {
    "begin_row": "Sets what is kept of a row of queries before any key was seen.",
    "compute_scores": "Multiplies queries and keys.",
    "find_greatest": "Finds the greatest score of each query.",
    "compute_weights": "Computes the exponentials of the distances from the greatest score.",
    "invert_sums": "Computes what the weights of each query are divided by.",
    "sum_values": "Multiplies the weights by the values.",
    "add_weights": "Adds the weights of a part of the keys to their sums.",
    "add_values": "Adds the values of a part of the keys to their sums.",
    "finish_row": "Computes the result of a row of queries that has seen all keys.",
}
"""Stages of the kernel by name, with their purposes."""


def _clamped_score(builder: TileBuilder, score: Tile) -> Tile:
    """Raises scores to at least `LEAST_SCORE`, so that their maximum can be subtracted.

    Minus infinity is kept: it hides a key whatever the other scores are."""
    least = builder.fill(LEAST_SCORE, DataType.FLOAT32)
    raised = builder.call("binary_max_tile", score, least)
    is_hidden = builder.call("isneginf_tile", score)
    wide = DataType.FLOAT32
    return builder.call("where_tile", is_hidden, score, raised, data_type=wide, dtype=wide)


class AttentionCompute:
    """Compute kernel of a plan."""

    def __init__(self, plan: AttentionPlan, name: str) -> None:
        self.plan = plan
        self.kernel = ComputeKernel(kernel_name("compute", name), fp32_destination=True)

    def finished(self) -> tuple[Kernel, FuncOp]:
        """Finishes the kernel; returns its description and its function."""
        plan, kernel = self.plan, self.kernel
        buffers = list(plan.parts.buffers)
        kernel.declare(buffers, plan.parts.tuning.values())
        kernel.packs(["scores", "weights", plan.buffers["result"]])
        first, count = (
            kernel.builder.argument(position, argument.name)
            for position, argument in enumerate(SHARE)
        )
        kernel.op("mm_init", plan.buffers["query"], plan.buffers["key"], "scores", 1)
        kernel.op("cb_wait_front", SCALER, SCALER_TILES)
        kernel.wait([plan.hiding] if plan.hiding else [])
        end = kernel.builder.sum(first, count)
        with kernel.builder.loop(end, start=first, name_hint="unit") as unit:
            self.unit(unit)
        purpose = "Computes attention, one row of query tiles at a time."
        return plan.parts.compute(kernel, purpose, plan.cores, buffers, SHARE)

    def unit(self, unit: SSAValue) -> None:
        plan, kernel, builder = self.plan, self.kernel, self.kernel.builder
        keys = plan.buffers["key"], plan.columns * plan.inner
        values = plan.buffers["value"], plan.columns * plan.width
        queries = plan.buffers["query"], plan.inner
        kernel.op("cb_wait_front", *keys)
        kernel.op("cb_wait_front", *values)
        with builder.loop(plan.unit_rows, name_hint="row") as row:
            kernel.op("cb_wait_front", *queries)
            whole = row
            if plan.is_causal and plan.units > 1:
                whole = builder.sum(builder.product(unit, plan.unit_rows), row)
            visible = plan.visible(builder, whole)
            with self.stage("compute_scores"):
                self._scores(visible)
            kernel.op("cb_pop_front", *queries)
            with self.stage("find_greatest"):
                self._greatest(visible)
            with self.stage("compute_weights"):
                self.weights(visible)
            with self.stage("invert_sums"):
                self._inverse(visible)
            with self.stage("sum_values"):
                self._products(visible)
            for name, pages in (("scores", plan.columns), ("weights", plan.columns),
                                ("greatest", 1), ("inverse", 1)):  # fmt: skip
                kernel.op("cb_pop_front", name, pages)
        kernel.op("cb_pop_front", *keys)
        kernel.op("cb_pop_front", *values)

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Stage of the kernel, which becomes a function if the kernel is long."""
        return self.kernel.builder.stage(name, _STAGES[name])

    # Scores

    def _scores(self, visible: Value) -> None:
        """Computes the scores of visible key tiles, and hides keys in the last one.

        Tiles after the visible ones are left unset."""
        plan, kernel, builder = self.plan, self.kernel, self.kernel.builder
        kernel.op("cb_reserve_back", "scores", plan.part)
        last: Value = plan.columns - 1
        if not isinstance(visible, int):
            last = builder.difference(visible, 1)
        whole = last if plan.hiding else visible
        if whole != 0:
            with builder.loop(whole, name_hint="column") as column:
                self.score(column, hiding="")
        if plan.hiding:
            self.score(last, plan.hiding)
        kernel.op("cb_push_back", "scores", plan.part)
        kernel.op("cb_wait_front", "scores", plan.part)

    def score(self, column: Value, hiding: str, first_query: Value = 0) -> None:
        plan, kernel, builder = self.plan, self.kernel, self.kernel.builder
        query, key = plan.buffers["query"], plan.buffers["key"]
        section, sources = self._section(hiding)
        result = next(iter(section.results.values()))
        masks = [plan.buffers["mask"]] if plan.mask is not None else []
        kernel.op("reconfig_data_format", key, query)
        kernel.op("mm_init_short", query, key, 1)
        with builder.destination_registers():
            first = (
                column * plan.inner
                if isinstance(column, int)
                else builder.product(column, plan.inner)
            )
            with builder.loop(plan.inner, name_hint="inner") as inner:
                is_first = isinstance(first_query, int)
                place = inner if is_first else builder.sum(first_query, inner)
                kernel.op("matmul_tiles", query, key, place, builder.sum(first, inner), 0)
            kernel.wait(masks)
            kernel.forget_formats()
            kernel.run(section, sources)
            builder.start_packing()
            kernel.pack([(result, "scores")])
        kernel.pop(masks)

    def _section(self, hiding: str) -> tuple[Allocation, Mapping[Tile, str]]:
        """Allocates the ops that scale and mask a matmul result in the first register."""
        plan = self.plan
        builder = TileBuilder()
        product = score = builder.new_tile(DataType.FLOAT32)
        sources: dict[Tile, str] = {}
        if plan.scale != 1.0:
            score = builder.call("mul_unary_tile", score, parameters=(plan.scale,))
        if plan.mask is not None:
            mask = builder.new_tile(declared_data_type(plan.mask))
            sources[mask] = plan.buffers["mask"]
            score = _clamped_score(builder, builder.call("add_binary_tile", score, mask))
        if hiding:
            shown = builder.new_tile(DataType.BFLOAT16)
            sources[shown] = hiding
            hidden = builder.fill(float("-inf"), DataType.FLOAT32)
            score = where_shown(builder, shown, score, hidden)
        return self.allocate(builder, score, {product: 0}), sources

    @staticmethod
    def allocate(builder: TileBuilder, result: Tile, held: Mapping[Tile, int]) -> Allocation:
        found = allocate(builder.calls, [result], capacity(True), held)
        assert found is not None
        return found

    # Softmax

    def _greatest(self, visible: Value) -> None:
        """Computes the maximum score of each query."""
        kernel, builder = self.kernel, TileBuilder()
        builder.fill(float("-inf"), DataType.FLOAT32)
        sink = self.plan.buffers.get("sink")

        def begin() -> None:
            kernel.forget_formats()
            if sink is None:
                kernel.call(builder.calls[0], [0])
            else:
                kernel.wait([sink])
                kernel.load(sink, 0)

        self.raise_greatest(begin, visible, ["greatest"])
        kernel.wait(["greatest"])

    def raise_greatest(self, begin: Callable[[], None], count: Value, kept: Sequence[str]) -> None:
        """Computes the maximum score of each query into the circular buffers `kept`.

        Takes `count` tiles, and the initial value that `begin` loads into the first register."""
        kernel, builder = self.kernel, TileBuilder()
        score = builder.new_tile(DataType.FLOAT32)
        builder.call("binary_max_tile", score, score)
        with kernel.builder.destination_registers():
            begin()
            with kernel.builder.loop(count, name_hint="column") as column:
                kernel.forget_formats()
                kernel.load("scores", 1, column)
                kernel.call(builder.calls[0], [0, 1, 0])
            kernel.pack_when_free([(0, PARTIAL)])
        kernel.push([PARTIAL])
        reduce_row(kernel, PARTIAL, ReduceType.MAX, 1, streams=True)
        with repeated_row(kernel):
            kernel.pack_when_free([(0, name) for name in kept])
        kernel.push(kept)

    def weights(self, visible: Value, greatest_of: str = "greatest") -> None:
        """Computes the exponentials of the differences from the maximum score."""
        plan, kernel = self.plan, self.kernel
        builder = TileBuilder()
        score, greatest = (builder.new_tile(DataType.FLOAT32) for _ in range(2))
        weight = builder.call("exp_tile", builder.call("sub_binary_tile", score, greatest))
        section = self.allocate(builder, weight, {})
        sources = {score: "scores", greatest: greatest_of}
        kernel.op("cb_reserve_back", "weights", plan.part)
        with kernel.builder.loop(visible, name_hint="column") as column:
            kernel.forget_formats()
            with kernel.builder.destination_registers():
                kernel.run(section, sources, {"scores": column})
                kernel.builder.start_packing()
                kernel.pack([(section.results[weight], "weights")])
        kernel.op("cb_push_back", "weights", plan.part)
        kernel.op("cb_wait_front", "weights", plan.part)

    def _inverse(self, visible: Value) -> None:
        """Computes the reciprocal of the sum of weights, including the sink."""
        kernel, builder = self.kernel, TileBuilder()
        total = found = builder.new_tile(DataType.FLOAT32)
        sources: dict[Tile, str] = {}
        sinks = [self.plan.buffers["sink"]] if self.plan.sink is not None else []
        for sink in sinks:
            score, greatest = (builder.new_tile(DataType.FLOAT32) for _ in range(2))
            sources |= {score: sink, greatest: "greatest"}
            weight = builder.call("exp_tile", builder.call("sub_binary_tile", score, greatest))
            total = builder.call("add_binary_tile", total, weight)
        section = self.allocate(builder, builder.call("recip_tile", total), {found: 0})
        reduce_row(kernel, "weights", ReduceType.SUM, visible, streams=False)
        with repeated_row(kernel):
            kernel.run(section, sources)
            kernel.pack_when_free([(next(iter(section.results.values())), "inverse")])
        kernel.pop(sinks)
        kernel.push(["inverse"])
        kernel.wait(["inverse"])

    def _products(self, visible: Value) -> None:
        """Computes the weighted sums of values, and divides them by the sum of weights."""
        kernel, tiles = self.kernel, TileBuilder()
        scaled = tiles.new_tile(DataType.FLOAT32)
        tiles.call("mul_binary_tile", scaled, scaled)
        with self.products(visible, self.plan.buffers["result"]):
            kernel.load("inverse", 1)
            kernel.call(tiles.calls[0], [0, 1, 0])

    @contextmanager
    def products(self, count: Value, target: str) -> Generator[SSAValue]:
        """Multiplies `count` tiles of weights by the values, column by column.

        The code inside finds the sum of a column in the first destination register, and leaves
        there the tile that is packed to the circular buffer `target`."""
        plan, kernel, builder = self.plan, self.kernel, self.kernel.builder
        value = plan.buffers["value"]
        with builder.loop(plan.width, name_hint="value_column") as column:
            kernel.op("reconfig_data_format", value, "weights")
            kernel.op("mm_init_short", "weights", value, 0)
            with builder.destination_registers():
                with builder.loop(count, name_hint="key") as key:
                    place = builder.sum(builder.product(key, plan.width), column)
                    kernel.op("matmul_tiles", "weights", value, key, place, 0)
                kernel.forget_formats()
                yield column
                kernel.pack_when_free([(0, target)])
            kernel.push([target])


# The compute kernel of attention to more keys than L1 holds: online softmax over chunks of keys.
#
# The state of each row is the running maximum of the scores, the sum of their exponentials relative
# to it, and the weighted sums of values. A greater maximum scales sum and weighted sums by one
# factor (Milakov and Gimelshein, arXiv:1805.02867). Rows take turns: the state of a row is at the
# front of its circular buffers when its turn comes, and is pushed to the back.

_LEAST = -3.3895313892515355e38
"""Lowest finite bf16: no visible score is lower.

Unlike minus infinity it can be subtracted from itself."""


class AttentionInParts(AttentionCompute):
    """Compute kernel of a plan that streams the keys in chunks."""

    def unit(self, unit: SSAValue) -> None:
        """Computes the rows of a unit of work, chunk by chunk of the keys."""
        plan, kernel, builder = self.plan, self.kernel, self.kernel.builder
        queries = plan.buffers["query"], plan.unit_rows * plan.inner
        # With a causal mask a unit of work is a single row.
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
        """Processes a chunk of `count` rows of keys, from row `first` on."""
        plan, kernel, builder = self.plan, self.kernel, self.kernel.builder
        keys = plan.buffers["key"], plan.part * plan.inner
        values = plan.buffers["value"], plan.part * plan.width
        kernel.op("cb_wait_front", *keys)
        kernel.op("cb_wait_front", *values)
        whole = count
        if plan.hiding:
            # The last visible tile hides some of its keys.
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
        """Sets the initial state of a row: a sink is a score without a value."""
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
        """Updates the running maximum, and computes the factor that rescales the sums."""
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
        """Adds the exponentials of a chunk to the running sum."""
        reduce_row(self.kernel, "weights", ReduceType.SUM, count, streams=False)
        self.kernel.wait(["sum"])
        with repeated_row(self.kernel):
            self._add_kept("sum", 0)
            self.kernel.pack_when_free([(0, "sum")])
        self.kernel.push(["sum"])

    def _add_products(self, count: Value) -> None:
        """Adds the weighted sums of a chunk to the running sums."""
        self.kernel.op("cb_wait_front", "products", self.plan.width)
        with self.products(count, "products") as column:
            self._add_kept("products", column)

    def _add_kept(self, name: str, index: Value) -> None:
        """Adds a kept tile, times the factor, to the first register."""
        kernel, tiles = self.kernel, TileBuilder()
        tile = tiles.new_tile(DataType.FLOAT32)
        tiles.call("mul_binary_tile", tile, tile)
        tiles.call("add_binary_tile", tile, tile)
        kernel.load(name, 1, index)
        kernel.load("factor", 2)
        kernel.call(tiles.calls[0], [1, 2, 1])
        kernel.call(tiles.calls[1], [0, 1, 0])

    def _finish(self) -> None:
        """Computes the result of a row that has seen all of its keys."""
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
