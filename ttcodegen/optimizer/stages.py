"""Choice of the stages of a pipeline: as even as they can be under the model of cost."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ttcodegen.dialects.operations.functions import body_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import ONE_CHIP
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import aligned
from ttcodegen.optimizer.call import call_of
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.optimizer.parallelism import LOWERING, rates_of
from ttcodegen.systems.description import ChipDescription
from ttcodegen.transforms.const_eval import is_const_eval
from ttcodegen.transforms.mesh.logical_dimensions import seconds_before_lowering
from ttcodegen.transforms.mesh.stages import (
    MOST_STAGES,
    Line,
    StagedFunction,
    divide,
    divide_batch,
)
from ttcodegen.transforms.registry import passes_of
from ttcodegen.transforms.rewriting import functions

_CONSTANTS = ("ttnn-prepare-conv2d-weights-and-bias", "const-eval-hoist-transform")
"""The steps after which what is computed once is in functions of its own."""
_MOST_PLACES = 256
"""Upper bound on the places that stages may begin at: in each part of the time of a function the
one that the fewest bytes cross."""
_ROUNDS = 4
"""Rounds of lowering stages and cutting again with the times that come out."""


@dataclass(frozen=True)
class Stages:
    """A module in stages, and how long they take."""

    functions: tuple[StagedFunction, ...]
    seconds: Mapping[str, float]
    """Estimated time of each stage, by its function."""

    def explanation(self) -> str:
        """The table of the stages, with what each of them gets from others."""
        rows = [("stage", "us", "inputs of other stages")]
        for function in self.functions:
            for stage in function.stages:
                count = sum(not origin.is_argument for origin in stage.arguments)
                rows.append((stage.name, f"{self.seconds[stage.name] * 1e6:.1f}", str(count)))
        return "\n".join(["stages, on one device each", *aligned(rows)]) + "\n"


def divide_into_stages(
    context: Context,
    module: ModuleOp,
    wanted: str,
    chip: ChipDescription,
    micro_batches: int = 1,
) -> Stages:
    """Puts stages in the place of the functions of a module.

    Args:
        context: of the passes.
        module: ops of TTIR, whose functions call no others.
        wanted: the number of stages, or the names of the ops that all of them but the last end
            after, with commas.
        chip: what each stage runs on.
        micro_batches: parts of the batch that go through the stages one after the other.

    Raises:
        CompileError: if a function does not divide so.
    """
    if micro_batches > 1:
        divide_batch(context, module, micro_batches, rates_of(chip, ONE_CHIP))
    lines = [Line(function) for function in functions(module) if not function.is_declaration]
    if not lines:
        raise CompileError("there is no function to divide into stages", module)
    if re.fullmatch(r"\d+", wanted.strip()) is None:
        names = [name.strip() for name in wanted.split(",")]
        cuts = [line.named(names) for line in lines]
        seconds = _lowered(context, module, cuts, chip)
    else:
        cuts, seconds = _Balance(context, module, lines, _count(wanted), chip).run()
    return Stages(tuple(divide(module, lines, cuts)), seconds)


def _count(wanted: str) -> int:
    count = int(wanted)
    if not 2 <= count <= MOST_STAGES:
        raise CompileError(
            f"a pipeline has between 2 and {MOST_STAGES} stages, not {count}",
            remedy="each stage runs on a device of its own",
        )
    return count


class _Balance:
    """Searches the cuts of functions whose longest stage is shortest."""

    def __init__(
        self,
        context: Context,
        module: ModuleOp,
        lines: Sequence[Line],
        count: int,
        chip: ChipDescription,
    ) -> None:
        self._context, self._module, self._chip = context, module, chip
        self._lines, self._count = lines, count
        rates = rates_of(chip, ONE_CHIP)
        self._link = rates.link
        self._times = [[seconds_before_lowering(op, rates) for op in line.ops] for line in lines]
        self._crossing = [line.crossing() for line in lines]

    def run(self) -> tuple[list[list[int]], Mapping[str, float]]:
        """The cuts of each function, and the time of each stage by its name."""
        best: tuple[float, list[list[int]], Mapping[str, float]] | None = None
        tried: set[tuple[tuple[int, ...], ...]] = set()
        for _ in range(_ROUNDS):
            cuts = [self._cut(index) for index in range(len(self._lines))]
            key = tuple(map(tuple, cuts))
            if key in tried:
                break
            tried.add(key)
            seconds = _lowered(self._context, self._module, cuts, self._chip)
            longest = max(seconds.values(), default=0.0)
            if best is None or longest < best[0]:
                best = longest, cuts, seconds
            self._correct(cuts, list(seconds.values()))
        assert best is not None
        return best[1], best[2]

    def _correct(self, cuts: Sequence[Sequence[int]], seconds: Sequence[float]) -> None:
        """Scales the times of the ops of each stage to the time that it takes when lowered."""
        measured = iter(seconds)
        for index, places in enumerate(cuts):
            times = self._times[index]
            for begin, end in pairwise([0, *places, len(times)]):
                before, after = sum(times[begin:end]), next(measured)
                if before > 0:
                    times[begin:end] = [each * after / before for each in times[begin:end]]

    def _cut(self, index: int) -> list[int]:
        """The places that stages begin at, by the shortest time of the longest stage with what it
        gets from others."""
        line, times, crossing = self._lines[index], self._times[index], self._crossing[index]
        before = [0.0, *accumulate(times)]
        places = self._places(index, before)
        if len(places) < self._count - 1:
            name = line.function.sym_name.data
            raise CompileError(
                f"'{name}' has {len(places) + 1} parts that can be stages, and {self._count} are "
                "wanted",
                line.function,
                remedy="give a smaller number with --stages",
            )
        ends = [*places, len(times)]
        # By the number of stages so far and where the last one ends: longest stage, where it began.
        longest: list[float] = [before[end] for end in ends]
        began: list[list[int]] = []
        for stage in range(1, self._count):
            found = [float("inf")] * len(ends)
            start = [0] * len(ends)
            for last in range(stage, len(ends)):
                for cut in range(stage - 1, last):
                    begin = ends[cut]
                    own = before[ends[last]] - before[begin] + crossing[begin] / self._link
                    slowest = max(longest[cut], own)
                    if slowest < found[last]:
                        found[last], start[last] = slowest, cut
            longest = found
            began.append(start)
        cuts: list[int] = []
        last = len(ends) - 1
        for start in reversed(began):
            last = start[last]
            cuts.append(ends[last])
        return cuts[::-1]

    def _places(self, index: int, before: Sequence[float]) -> list[int]:
        """The places that are considered, in order."""
        line, crossing = self._lines[index], self._crossing[index]
        possible = [place for place in range(1, len(line.ops)) if line.may_begin(place)]
        if len(possible) <= _MOST_PLACES:
            return possible
        chosen: dict[int, int] = {}
        for place in possible:
            part = int(before[place] / (before[-1] or 1.0) * _MOST_PLACES)
            if part not in chosen or crossing[place] < crossing[chosen[part]]:
                chosen[part] = place
        return sorted(chosen.values())


def _lowered(
    context: Context, module: ModuleOp, cuts: Sequence[Sequence[int]], chip: ChipDescription
) -> dict[str, float]:
    """The time of each stage in the order of the module, by its name: a copy is lowered to calls
    of the library."""
    copy = module.clone()
    lines = [Line(function) for function in functions(copy) if not function.is_declaration]
    staged = divide(copy, lines, cuts)
    for each in passes_of(*LOWERING, *_CONSTANTS):
        each.apply(context, copy)
    model = CostModel(chip)
    found = {
        function.sym_name.data: sum(
            model.cost(call_of(op)).seconds
            for op in body_of(function).ops
            if isinstance(op, CatalogueOp)
        )
        for function in functions(copy)
        if not function.is_declaration and not is_const_eval(function)
    }
    return {stage.name: found[stage.name] for each in staged for stage in each.stages}
