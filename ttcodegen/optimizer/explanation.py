"""Explanation of decisions: the choice, the reason, and the cost of the runner-up."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.ir import Operation

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import ProgramConfig
from ttcodegen.optimizer.core.call import call_of
from ttcodegen.optimizer.core.candidate import Way
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.optimizer.overrides.overrides import FunctionOverrides
from ttcodegen.optimizer.search.beam_search import Decision

HEADINGS = ("call", "op", "result", "program", "us", "bound", "L1 KiB", "why", "next best")


def placement_text(placement: TensorPlacement) -> str:
    """The placement of a tensor, in a few words."""
    if placement.shards is None or placement.memory_layout is None:
        return placement.buffer_type
    kind = {"height_sharded": "hs", "width_sharded": "ws", "block_sharded": "bs"}
    height, width = placement.shards.shape
    cores = "+".join(f"{r.columns}x{r.rows}" for r in placement.shards.core_ranges)
    sharding = kind[placement.memory_layout]
    return f"{placement.buffer_type} {sharding} {cores} [{height}x{width}]"


def _program(way: Way) -> str:
    config = next((c for c in way.attributes.values() if isinstance(c, ProgramConfig)), None)
    if config is None:
        return ""
    name = config.cpp.rpartition("::")[2].removesuffix("ProgramConfig")
    return name.removeprefix("MatmulMultiCore") or name


def reason(decision: Decision, overridden: bool) -> str:
    """Reason for a decision."""
    if overridden:
        return "override"
    if decision.next_best is None:
        return "only way"
    # The search looks at what follows: a layout that costs more here may save more there.
    return "cheapest" if decision.seconds <= decision.next_best[0] else "saves later"


def table(
    decisions: Sequence[Decision],
    overrides: FunctionOverrides,
    model: CostModel,
    constants: Collection[Operation],
) -> str:
    """A row for each call that runs on the device, how many others are computed once, ahead of all
    runs, and the sum of the times."""
    rows: list[tuple[str, ...]] = [HEADINGS]
    total, names, once = 0.0, overrides.names, 0
    for decision in decisions:
        op = decision.op
        total += decision.seconds
        if not isinstance(op, CatalogueOp) or op not in names or not decision.way.results:
            continue
        if op in constants and overrides[op] is None:
            once += 1
            continue
        bound = model.cost(call_of(op)).bound
        other = ""
        if decision.next_best is not None and decision.next_best[1].results:
            seconds, way = decision.next_best
            more = (seconds - decision.seconds) * 1e6
            other = f"{placement_text(way.results[0])} {_program(way)}".strip() + f": {more:+.1f}"
        rows.append(
            (
                names[op],
                op.definition.short_name,
                placement_text(decision.way.results[0]),
                _program(decision.way),
                f"{decision.seconds * 1e6:.1f}",
                bound,
                f"{decision.l1_bytes / 1024:.0f}",
                reason(decision, overrides[op] is not None),
                other,
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    if once:
        calls = "1 call" if once == 1 else f"{once} calls"
        lines.append(f"{calls} on weights and constants alone: computed once, not in each run")
    return "\n".join([*lines, f"estimated: {total * 1e6:.1f} us"]) + "\n"
