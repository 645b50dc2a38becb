"""Cost of library calls, with and without assigned layouts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import ONE_CHIP, MeshShape, chips_of, declared_hosts
from ttcodegen.dialects.ttcore.dialect import system_of
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.layout import placements
from ttcodegen.ops.core.definition import call_has_trait, call_kind
from ttcodegen.ops.core.traits import CallKind, Trait
from ttcodegen.ops.dialects import ttnn_op_classes
from ttcodegen.optimizer import call
from ttcodegen.optimizer.call import LibraryCall, call_of
from ttcodegen.optimizer.circular_buffers import circular_buffers
from ttcodegen.optimizer.cost import convolution as image_work
from ttcodegen.optimizer.cost import program_work, transfers
from ttcodegen.optimizer.cost.measurements import call_key
from ttcodegen.optimizer.cost.work import LinkWork, Machine, Work, WorkRule
from ttcodegen.systems.cards import Performance, default_system, links_along, performance
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE, ChipDescription
from ttcodegen.transforms.const_eval import constant_calls
from ttcodegen.transforms.rewriting import body_of, functions
from ttcodegen.transforms.ttnn.layout import TTNNLayout

# Data movement and computation overlap, so the slowest resource sets the time of a program, and
# its launch adds to it. Figures of the chips: `ttcodegen.systems.cards`.


@dataclass(frozen=True)
class CallCost:
    """Cost of one call."""

    cores: int = 0
    circular_buffers: int = 0
    """Bytes of L1 per core of the circular buffers of its largest program."""
    tensors: int = 0
    """Bytes of L1 per core of its operands and results."""
    intermediates: int = 0
    """Bytes of L1 per core of the tensors between its programs."""
    dram_bytes: int = 0
    noc_bytes: int = 0
    engine_cycles: int = 0
    """Cycles of the matrix engine of each core, unpacker and packer included."""
    vector_cycles: int = 0
    """Cycles of the vector engine of each core."""
    seconds: float = 0.0
    bound: str = ""
    """Slowest resource: dram, noc, engine, vector, link or launch; empty if nothing runs."""
    link_bytes: int = 0
    """Bytes over the busiest link between neighbours, in one direction."""
    link_seconds: float = 0.0
    """Seconds during which links between devices are busy."""
    chip_seconds: float = 0.0
    """Seconds on the device without link time."""
    between_seconds: float = 0.0
    """Part of `seconds` in which no kernel runs: between its programs, and before the next call."""

    @property
    def l1_bytes(self) -> int:
        """Bytes of L1 per core while the call runs."""
        return self.working_bytes + self.tensors

    @property
    def working_bytes(self) -> int:
        """Bytes of L1 per core besides operands and results."""
        return self.circular_buffers + self.intermediates


def total_cost(costs: Sequence[CallCost]) -> CallCost:
    """Cost of calls one after another: times and transfers of all, cores and L1 of the largest."""
    slowest = max(costs, key=lambda each: each.seconds)
    largest = max(costs, key=lambda each: each.l1_bytes)
    summed = ("dram_bytes", "noc_bytes", "engine_cycles", "vector_cycles", "seconds")
    summed = (*summed, "link_bytes", "link_seconds", "chip_seconds", "between_seconds")
    totals: dict[str, Any] = {name: sum(getattr(each, name) for each in costs) for name in summed}
    return replace(largest, cores=slowest.cores, bound=slowest.bound, **totals)


class CostModel:
    """Cost model of calls on one chip.

    Args:
        chip: the chip.
        measured: measured seconds of calls on it, by `call_key`.
        hosts: rows and columns of the hosts that share the mesh.
    """

    def __init__(
        self,
        chip: ChipDescription,
        measured: Mapping[str, float] | None = None,
        hosts: MeshShape = ONE_CHIP,
    ) -> None:
        self.chip = chip
        self._hosts = hosts
        self.measured = measured or {}
        self.machine = Machine(chip)
        self.speed: Performance = self.machine.speed
        self.grid = self.machine.grid
        self._known: dict[object, CallCost] = {}
        # `call_kind` reads the catalogue, which is loaded with the op classes.
        ttnn_op_classes()

    @staticmethod
    def of(module: ModuleOp) -> CostModel:
        """Returns the model of the system that a module is compiled for, or of the default one."""
        system = system_of(module) or default_system(DEFAULT_ARCHITECTURE)
        return CostModel(system.chip, hosts=declared_hosts(module))

    def cost(self, call: LibraryCall) -> CallCost:
        """Cost of a call; zero for a view or a host operation.

        Measured seconds replace estimated ones."""
        found = self._estimate(call)
        seconds = self.measured.get(call_key(call)) if self.measured else None
        return found if seconds is None else replace(found, seconds=seconds)

    def seconds(self, call: LibraryCall) -> float:
        """Seconds of a call, measured or estimated."""
        return self.cost(call).seconds

    def _estimate(self, call: LibraryCall) -> CallCost:
        if call.is_on_host or call.name in _FREE or is_view(call):
            return CallCost(tensors=self._tensors(call))
        work = _RULES[call_kind(call.name)](self.machine, call)
        known = circular_buffers(call, self.chip)
        if known is not None:
            work.circular_buffers = known
        return self._finish(call, work)

    def bank_bytes(self, placement: TensorPlacement) -> int:
        """Bytes of L1 per core of a tensor."""
        return call.bank_bytes(placement, self.chip)

    def movement(self, source: TensorPlacement, target: TensorPlacement) -> CallCost:
        """Cost of moving a tensor to another placement."""
        return self.cost(LibraryCall("to_memory_config", (source,), (target,)))

    def _tensors(self, call: LibraryCall) -> int:
        # A view shares the memory of its operand.
        results = () if call.results and is_view(call) else call.results
        return sum(self.bank_bytes(placement) for placement in (*call.operands, *results))

    def _finish(self, call: LibraryCall, work: Work) -> CallCost:
        speed = self.speed
        fitted = self.machine.fitted
        banks = speed.dram_bandwidth / performance(self.chip.arch).dram_bandwidth
        rate = (work.dram_rate or fitted.dram_interleaved) * banks
        page = fitted.dram_page if work.page_seconds is None else work.page_seconds
        times = {
            "dram": work.dram_bytes / rate + work.dram_pages * page / banks,
            "noc": max(work.noc_bytes / (work.cores * speed.noc_bytes), work.movement_cycles)
            / speed.clock,
            "engine": work.engine_cycles / speed.clock,
            "vector": work.vector_cycles / speed.clock,
        }
        # One thread of a core issues to both engines, so their times add up.
        computing = times["engine"] + times["vector"]
        on_chip = _overlapped((times["dram"], times["noc"], computing), work.overlap)
        if work.links is not None:
            times["link"] = self._link_seconds(call, work.links)
        longest = max(on_chip, times.get("link", 0.0))
        launching = work.launches * (fitted.between + (work.start or self._start(call)))
        launching += work.host_wait
        bound = max(times, key=lambda name: times[name]) if longest > launching else "launch"
        return CallCost(
            work.cores,
            work.circular_buffers,
            self._tensors(call),
            work.intermediates,
            work.dram_bytes,
            work.noc_bytes,
            work.engine_cycles,
            work.vector_cycles,
            longest + launching,
            bound,
            0 if work.links is None else work.links.bytes,
            times.get("link", 0.0),
            on_chip + launching,
            work.launches * fitted.between + work.host_wait,
        )

    def _start(self, call: LibraryCall) -> float:
        """Seconds from the launch of a program to its first tile."""
        home = call.result.shards
        local = home is not None and all(
            each.shards == home and each.buffer_type == "l1"
            for each in (*call.operands, *call.results)
        )
        return self.machine.fitted.start_in_shards if local else self.machine.fitted.start

    def exchange(self, link_bytes: int, hops: int) -> CallCost:
        """Cost of an exchange of pages between device programs, over one link per direction."""
        hop = links_along(self.chip.arch, 1, 1, 1).hop
        seconds = link_bytes / self.speed.link_bandwidth + hops * hop
        return CallCost(
            cores=1,
            noc_bytes=link_bytes,
            seconds=seconds + self.speed.launch,
            bound="link" if seconds > self.speed.launch else "launch",
            link_bytes=link_bytes,
            link_seconds=seconds,
            chip_seconds=self.speed.launch,
        )

    def _link_seconds(self, call: LibraryCall, work: LinkWork) -> float:
        chips, hosts = chips_of(call.attributes), prod(self._hosts)
        axis: int | None = call.attributes.get("cluster_axis")
        seconds = 0.0
        for along, sent, hops in work.axes or ((axis, work.bytes, work.hops),):
            passed = hosts if along is None else self._hosts[along]
            links = links_along(self.chip.arch, chips, hosts, passed)
            seconds += sent / (links.count * self.speed.link_bandwidth) + hops * links.hop
        return seconds


def _overlapped(times: tuple[float, ...], exponent: float) -> float:
    """Returns the p-norm of times, where `exponent` is p: the higher, the more they overlap."""
    longest = max(times)
    if not longest:
        return 0.0
    return longest * sum((time / longest) ** exponent for time in times) ** (1 / exponent)


_FREE = frozenset({"deallocate", "get_device"})


def is_view(call: LibraryCall) -> bool:
    """Returns whether the result of a ttnn call shares the buffer of its operand, as measured."""
    if not call.operands or not call.results:
        return False
    source, target = call.operands[0], call.results[0]
    if call_has_trait(call.name, Trait.PLACES):
        # typecast copies even a tensor that already has the data type.
        return source == target and call.name != "typecast"
    if call.name in ("permute", "permute_row_major"):
        order = list(call.attributes.get("permutation", ()))
        return order == sorted(order)
    return call_kind(call.name) is CallKind.RESHAPE and placements.is_view(source, target)


_RULES: dict[CallKind, WorkRule] = {
    CallKind.ELEMENTWISE: program_work.elementwise,
    CallKind.PRODUCT: program_work.multiplied,
    CallKind.NORMALIZATION: program_work.normalised,
    CallKind.REDUCTION: program_work.reduced,
    CallKind.COPY: transfers.copied,
    CallKind.INTERPOLATION: transfers.copied,
    CallKind.SCAN: transfers.scanned,
    CallKind.LAYOUT: transfers.changed_layout,
    CallKind.RESHAPE: transfers.reshaped,
    CallKind.PERMUTATION: transfers.permuted,
    CallKind.SLICE: transfers.sliced,
    CallKind.GATHER: transfers.gathered,
    CallKind.CACHE_WRITE: transfers.written,
    CallKind.CONVOLUTION: image_work.convolved,
    CallKind.POOLING: image_work.pooled,
    CallKind.ATTENTION: program_work.attended,
    CallKind.ATTENTION_OF_ONE: program_work.attended_by_one,
    CallKind.COLLECTIVE: transfers.between_chips,
}


# Estimates for passes that run before layouts are assigned.


def apply_if_faster(
    context: Context,
    module: ModuleOp,
    names: Collection[str],
    change: Callable[[FuncOp], bool],
    price: Callable[[LibraryCall], float] | None = None,
) -> None:
    """Applies a change to each function with calls of these names, unless it costs time.

    Args:
        context: the context of passes.
        module: the module.
        names: names of calls without which the change does nothing.
        change: rewrites a function; returns whether it changed anything.
        price: seconds of a call; by default those of its placements and program config at level 0.
    """
    price = price or CostModel.of(module).seconds
    for function in functions(module):
        if _has_calls(function, names):
            changed = function.clone()
            if change(changed):
                before, after = (
                    _unplaced_seconds(context, each, price) for each in (function.clone(), changed)
                )
                if after <= before:
                    change(function)


def _has_calls(function: FuncOp, names: Collection[str]) -> bool:
    return any(
        isinstance(op, CatalogueOp) and op.definition.short_name in names
        for op in body_of(function).ops
    )


def _unplaced_seconds(
    context: Context, function: FuncOp, price: Callable[[LibraryCall], float]
) -> float:
    """Assigns layouts to a copy of a function; returns its seconds without const-eval calls."""
    TTNNLayout().apply(context, ModuleOp([function]))
    once = constant_calls(function)
    return sum(
        price(call_of(op))
        for op in body_of(function).ops
        if isinstance(op, CatalogueOp) and op not in once
    )
