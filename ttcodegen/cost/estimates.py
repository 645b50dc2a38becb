"""Cost estimates of each call of a function and their sum."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.func import FuncOp

from ttcodegen.cost.roofline import Cost, call_work, card_roofline
from ttcodegen.dialects.operations.functions import location_text
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.optimizer.call import call_of
from ttcodegen.optimizer.cost.calls import CallCost, CostModel
from ttcodegen.optimizer.programs.matmul import fidelity_passes
from ttcodegen.systems.description import ChipDescription


@dataclass(frozen=True)
class CallEstimate:
    """One call of the library."""

    op: str
    location: str | None
    cost: CallCost
    least_seconds: float
    """Its roofline: what it takes at least in its fidelity, with all cores and all of DRAM's
    bandwidth."""

    def to_json(self) -> dict[str, Any]:
        """The row of the manifest. Times are in microseconds, `l1_bytes` those of each core."""
        return {
            "op": self.op,
            "location": self.location,
            "time_us": _microseconds(self.cost.seconds),
            "least_us": _microseconds(self.least_seconds),
            "bound": self.cost.bound,
            "cores": self.cost.cores,
            "l1_bytes": self.cost.l1_bytes,
            "dram_bytes": self.cost.dram_bytes,
            **({"link_bytes": self.cost.link_bytes} if self.cost.link_bytes else {}),
        }


@dataclass(frozen=True)
class FunctionEstimate:
    """All calls of a function that take time."""

    calls: tuple[CallEstimate, ...]

    def to_json(self) -> dict[str, Any]:
        """The entry of the manifest: sums, by what bounds the calls as well, and the calls."""
        by_bound: defaultdict[str, float] = defaultdict(float)
        for call in self.calls:
            by_bound[call.cost.bound] += call.cost.seconds
        return {
            "time_us": _microseconds(sum(call.cost.seconds for call in self.calls)),
            "least_us": _microseconds(sum(call.least_seconds for call in self.calls)),
            "bound_us": {name: _microseconds(by_bound[name]) for name in sorted(by_bound)},
            "l1_bytes": max((call.cost.l1_bytes for call in self.calls), default=0),
            "dram_bytes": sum(call.cost.dram_bytes for call in self.calls),
            **self._links(),
            "ops": [call.to_json() for call in self.calls],
        }

    def _links(self) -> dict[str, Any]:
        """Of a program on several chips: how long links are busy, what goes over the busiest ones,
        and the time if chips computed all the while: at least that of the chips, and of the links.
        `time_us` is that without such overlap."""
        link_seconds = sum(call.cost.link_seconds for call in self.calls)
        if not link_seconds:
            return {}
        chip_seconds = sum(call.cost.chip_seconds for call in self.calls)
        return {
            "link_us": _microseconds(link_seconds),
            "link_bytes": sum(call.cost.link_bytes for call in self.calls),
            "overlapped_us": _microseconds(max(chip_seconds, link_seconds)),
            "overlapped_bound": "link" if link_seconds > chip_seconds else "chip",
        }


def function_estimate(function: FuncOp, chip: ChipDescription) -> FunctionEstimate:
    """Estimates the calls of a laid-out function on a chip.

    Const-eval functions, computed once from weights alone, are not counted.
    """
    return FunctionEstimate(tuple(_calls(function, chip)))


def _calls(function: FuncOp, chip: ChipDescription) -> Iterator[CallEstimate]:
    model = CostModel(chip)
    known: dict[object, tuple[CallCost, float]] = {}
    for op in function.walk():
        if not isinstance(op, CatalogueOp):
            continue
        key = (op.name, tuple(v.type for v in (*op.operands, *op.results)), *op.properties.items())
        if key not in known:
            call = call_of(op)
            cost = model.cost(call)
            work = call_work(call.name, call.operands, call.results, call.attributes)
            roofline = card_roofline(chip, fidelity_passes(call, chip.arch == "wormhole_b0"))
            known[key] = cost, roofline.least_seconds(Cost(cost.dram_bytes, work.flops))
        cost, least = known[key]
        if cost.seconds:
            yield CallEstimate(op.name, location_text(op), cost, least)


def _microseconds(seconds: float) -> float:
    return round(seconds * 1e6, 3)
