"""Automatic parallelism under the cost model: shardings over a mesh, and pipeline stages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, product
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.functions import argument_attribute, body_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import ONE_CHIP, MeshShape, declared_mesh
from ttcodegen.dialects.ttir.annotations import (
    SHARDING,
    Sharding,
    WantedSharding,
    says_shardings,
    undivided,
)
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import aligned, did_you_mean
from ttcodegen.ops.core.definition import works_between_chips
from ttcodegen.optimizer.call import call_of
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.optimizer.overrides.overrides import read_shardings
from ttcodegen.systems.cards import links_along, links_between, performance
from ttcodegen.systems.description import ChipDescription
from ttcodegen.transforms.const_eval import is_const_eval
from ttcodegen.transforms.device import dram_size, dram_use
from ttcodegen.transforms.mesh.logical_dimensions import Rates, seconds_before_lowering
from ttcodegen.transforms.mesh.parallelism import (
    AUTO,
    Divisions,
    Parallelism,
    annotate,
    argument_name,
    refuse_useless,
)
from ttcodegen.transforms.mesh.partition import split_biases
from ttcodegen.transforms.mesh.stages import MOST_STAGES, Line, StagedFunction, divide, divide_batch
from ttcodegen.transforms.registry import Step, passes_of
from ttcodegen.transforms.rewriting import functions

SHARDINGS = "ttcodegen.shardings"
"""Module attribute with the chosen shardings, as JSON."""
SHARDINGS_EXPLANATION = "ttcodegen.shardings-explanation"
"""Module attribute with the table of candidates."""

_MAX_LOWERED = 16
"""Maximum number of candidates that are lowered, in order of estimated gain."""

_KINDS_ALONG_AXIS: tuple[tuple[str, ...], ...] = (
    (),
    ("data",),
    ("tensor",),
    ("expert",),
    ("sequence",),
    ("expert", "tensor"),
)
"""Combinations of kinds of parallelism along a mesh axis."""

LOWERING: tuple[Step | str, ...] = (
    "ttir-partition",
    "ttir-pipeline",
    "ttcore-record-chip-shares",
    "convert-ttir-to-ttnn",
    "remove-dead-values",
    "ttnn-set-compute-kernel-config",
    "ttnn-layout",
)
"""Passes that lower to calls with layouts, whose cost can be estimated."""
_CONSTANTS: tuple[Step | str, ...] = (
    "ttnn-prepare-conv2d-weights-and-bias",
    "const-eval-hoist-transform",
    "ttnn-decompose-layouts",
    "ttnn-deallocate",
)
"""Passes after `LOWERING` that hoist constants: these take memory, but no time per run."""

Shardings = dict[str, dict[str, Sharding]]
"""Shardings by function and argument name."""


@dataclass(frozen=True)
class Estimate:
    """Estimated cost of a candidate per device."""

    seconds: float
    link_seconds: float
    dram_bytes: int


@dataclass(frozen=True)
class _Candidate:
    """Kinds of parallelism along the mesh axes, with the resulting shardings."""

    parallelism: Parallelism
    shardings: tuple[dict[SSAValue, Sharding], ...]
    """Shardings of the arguments of each function."""
    saved_seconds: float
    """Estimate before lowering of the seconds that the shardings save."""


@dataclass(frozen=True)
class ChooseShardings(ModulePass):
    """Annotates arguments with `ttcore.sharding` in modules without shardings."""

    name = "ttir-choose-shardings"

    parallel: str = ""
    """`auto`, or kinds of parallelism with mesh axes."""
    overrides: str = ""
    """Text of an overrides file."""
    weights: str = "none"
    """Weight type of matmuls, for the estimates."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        given = read_shardings(self.overrides) if self.overrides else {}
        if not self.parallel and not given:
            return
        mesh = declared_mesh(op)
        if mesh == ONE_CHIP:
            raise CompileError(
                "tensors are divided among the devices of a mesh, and there is one device",
                op,
                remedy="give the mesh: --mesh-shape 2x4 for instance",
            )
        entries = [f for f in functions(op) if not f.is_declaration]
        if any(map(says_shardings, entries)) or any(map(works_between_chips, op.walk())):
            raise CompileError(
                "the module says how its tensors are divided among devices: nothing is left to "
                "choose",
                op,
                remedy="leave out --parallel, and shardings in overrides",
            )
        for function in entries:
            split_biases(function)
        if given:
            _apply_given(entries, given, mesh)
            said = "shardings of the overrides\n"
        else:
            said = _ShardingChoice(ctx, op, entries, mesh, self).run(self.parallel)
        op.attributes[SHARDINGS] = StringAttr(json.dumps(_overrides_of(entries)))
        op.attributes[SHARDINGS_EXPLANATION] = StringAttr(said)


def _apply_given(entries: Sequence[FuncOp], given: Shardings, mesh: MeshShape) -> None:
    """Shards arguments by overrides.

    Raises:
        CompileError: if a function or an argument does not exist, or a sharding does not fit it.
    """
    known = {function.sym_name.data: function for function in entries}
    for name in given:
        if name not in known:
            raise CompileError(
                f"there is no function '{name}' to divide arguments of{did_you_mean(name, known)}"
            )
    for name, function in known.items():
        arguments = {argument_name(function, each): each for each in body_of(function).args}
        shardings: dict[SSAValue, Sharding] = {
            each: _undivided(each) for each in arguments.values()
        }
        for argument, axes in given.get(name, {}).items():
            if argument not in arguments:
                raise CompileError(
                    f"'{name}' has no argument '{argument}' to divide"
                    + did_you_mean(argument, arguments)
                )
            value = arguments[argument]
            if len(axes) != len(shardings[value]):
                raise CompileError(
                    f"the sharding of '{argument}' in '{name}' lists {len(axes)} dimensions, the "
                    f"argument has {len(shardings[value])}"
                )
            for dim, (size, divided) in enumerate(zip(shape_of(value.type), axes, strict=True)):
                parts = prod(mesh[axis] for axis in divided)
                if parts and size % parts:
                    raise CompileError(
                        f"dimension {dim} of '{argument}' in '{name}' has {size} elements, which "
                        f"do not divide among {parts} devices"
                    )
            shardings[value] = axes
        annotate(function, shardings)


def _undivided(argument: BlockArgument) -> Sharding:
    return undivided(len(shape_of(argument.type)))


def _overrides_of(entries: Sequence[FuncOp]) -> dict[str, dict[str, list[list[int]]]]:
    """Returns the shardings of functions in the form of overrides."""
    found: dict[str, dict[str, list[list[int]]]] = {}
    for function in entries:
        table = found.setdefault(function.sym_name.data, {})
        for argument in body_of(function).args:
            said = WantedSharding.of(
                argument_attribute(function, argument.index, SHARDING),
                len(shape_of(argument.type)),
            )
            if said is not None and any(said.axes):
                table[argument_name(function, argument)] = [list(axes) for axes in said.axes]
    return found


class _ShardingChoice:
    """Chooser among the candidates of a module."""

    def __init__(
        self,
        context: Context,
        module: ModuleOp,
        entries: Sequence[FuncOp],
        mesh: MeshShape,
        options: ChooseShardings,
    ) -> None:
        self._context = context
        self._module = module
        self._entries = entries
        self._mesh = mesh
        self._model = CostModel.of(module)
        self._chip = self._model.chip
        rates = rates_of(self._chip, mesh)
        self._divisions = [Divisions(function, mesh, rates) for function in entries]
        converted = Step("ttnn-weight-dtype-conversion", {"target": options.weights})
        weights = [] if options.weights == "none" else [converted]
        self._lowering = [*LOWERING, *weights, *_CONSTANTS]

    def run(self, parallel: str) -> str:
        """Annotates the functions with the best candidate and returns the explanation."""
        if parallel.strip().lower() == AUTO:
            candidates = self._candidates()
        else:
            wanted = Parallelism.parse(parallel, self._mesh)
            candidate, useful = self._candidate(wanted)
            refuse_useless(wanted, useful, self._mesh, self._divisions)
            candidates = [candidate]
        estimates = [self._estimate(each) for each in candidates]
        best = min(range(len(candidates)), key=lambda index: self._sort_key(estimates[index]))
        for function, shardings in zip(self._entries, candidates[best].shardings, strict=True):
            annotate(function, shardings)
        return self._table(candidates, estimates, best)

    def _sort_key(self, estimate: Estimate) -> tuple[bool, float]:
        """Sort key: candidates that fit into DRAM by time, then the others by memory."""
        if estimate.dram_bytes > dram_size(self._chip):
            return True, estimate.dram_bytes
        return False, estimate.seconds

    def _candidate(self, wanted: Parallelism) -> tuple[_Candidate, set[tuple[str, int]]]:
        useful: set[tuple[str, int]] = set()
        shardings: list[dict[SSAValue, Sharding]] = []
        saved_seconds = 0.0
        for divisions in self._divisions:
            axes, found = divisions.divided(wanted)
            useful |= found
            saved_seconds += divisions.saved(axes)
            shardings.append(divisions.shardings(axes))
        return _Candidate(wanted, tuple(shardings), saved_seconds), useful

    def _candidates(self) -> list[_Candidate]:
        """Returns distinct candidates whose kinds all shard something, the undivided one first."""
        found: dict[tuple[Sharding, ...], _Candidate] = {}
        for wanted in self._parallelisms():
            candidate, useful = self._candidate(wanted)
            key = tuple(each for table in candidate.shardings for each in table.values())
            if useful == set(wanted.entries):
                found.setdefault(key, candidate)
        first, *others = found.values()
        others.sort(key=lambda candidate: -candidate.saved_seconds)
        return [first, *others[: _MAX_LOWERED - 1]]

    def _parallelisms(self) -> Iterator[Parallelism]:
        along = [_KINDS_ALONG_AXIS if size > 1 else ((),) for size in self._mesh]
        for kinds in product(*along):
            entries = [(kind, axis) for axis, each in enumerate(kinds) for kind in each]
            yield Parallelism(tuple(entries))

    def _estimate(self, candidate: _Candidate) -> Estimate:
        """Estimates a candidate by lowering a copy of the module with its shardings."""
        module = self._module.clone()
        copies = [f for f in functions(module) if not f.is_declaration]
        for function, shardings in zip(copies, candidate.shardings, strict=True):
            arguments = body_of(function).args
            annotate(function, dict(zip(arguments, shardings.values(), strict=True)))
        for each in passes_of(*self._lowering):
            each.apply(self._context, module)
        seconds, link_seconds, dram = 0.0, 0.0, 0
        for function in functions(module):
            if function.is_declaration:
                continue
            dram = max(dram, dram_use(function, self._chip))
            if is_const_eval(function):
                continue
            for op in body_of(function).ops:
                if isinstance(op, CatalogueOp):
                    cost = self._model.cost(call_of(op))
                    seconds += cost.seconds
                    link_seconds += cost.link_seconds
        return Estimate(seconds, link_seconds, dram)

    def _table(
        self, candidates: Sequence[_Candidate], estimates: Sequence[Estimate], best: int
    ) -> str:
        rows = [("parallel", "us", "links us", "DRAM MiB", "")]
        order = sorted(range(len(candidates)), key=lambda index: self._sort_key(estimates[index]))
        for index in order:
            estimate = estimates[index]
            fits = estimate.dram_bytes <= dram_size(self._chip)
            more = (estimate.seconds - estimates[best].seconds) * 1e6
            rows.append(
                (
                    str(candidates[index].parallelism),
                    f"{estimate.seconds * 1e6:.1f}",
                    f"{estimate.link_seconds * 1e6:.1f}",
                    f"{estimate.dram_bytes / 2**20:.1f}",
                    "chosen" if index == best else f"{more:+.1f}" if fits else "does not fit",
                )
            )
        shape = "x".join(map(str, self._mesh))
        return "\n".join([f"shardings on a mesh of {shape}, per device", *aligned(rows)]) + "\n"


def rates_of(chip: ChipDescription, mesh: MeshShape) -> Rates:
    """Returns rates for estimates before lowering: half of the chip's peak FLOPS and bandwidth."""
    model = CostModel(chip)
    speed = model.speed
    tile_flops = 2 * 32**3 / (speed.tile_product * 4)
    flops = chip.cores * tile_flops * speed.clock / 2
    devices = mesh[0] * mesh[1]
    link = links_between(chip.arch, devices) * speed.link_bandwidth
    return Rates(flops, speed.dram_bandwidth / 2, link)


_BALANCED_CONSTANTS = ("ttnn-prepare-conv2d-weights-and-bias", "const-eval-hoist-transform")
"""Passes after `LOWERING` that hoist constants out of the stages."""
_MAX_CUT_POINTS = 256
"""Maximum number of cut points that are considered.

A function is divided into as many intervals of equal time; in each, the cut point that the fewest
bytes cross is kept."""
_ROUNDS = 4
"""Maximum number of rounds in which stages are cut by the times of the lowered ones before."""


@dataclass(frozen=True)
class Stages:
    """Pipeline stages of a module, with their estimated times."""

    functions: tuple[StagedFunction, ...]
    seconds: Mapping[str, float]
    """Estimated seconds of each stage, by function name."""

    def explanation(self) -> str:
        """Returns the table of stages: time, and number of inputs from other stages."""
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
    *,
    over_hosts: bool = False,
) -> Stages:
    """Replaces the functions of a module by pipeline stages.

    Args:
        context: context of the passes.
        module: TTIR module whose functions call no others.
        wanted: number of stages, or comma-separated names of the ops that end all stages but the
            last.
        chip: chip that each stage runs on.
        micro_batches: number of parts of the batch that go through the stages in turn.
        over_hosts: True if each stage runs on another host.

    Raises:
        CompileError: if a function cannot be divided into such stages.
    """
    if micro_batches > 1:
        divide_batch(context, module, micro_batches, rates_of(chip, ONE_CHIP))
    lines = [Line(function) for function in functions(module) if not function.is_declaration]
    if not lines:
        raise CompileError("there is no function to divide into stages", module)
    if re.fullmatch(r"\d+", wanted.strip()) is None:
        names = [name.strip() for name in wanted.split(",")]
        cuts = [line.named(names) for line in lines]
        seconds = _lowered_seconds(context, module, cuts, chip)
    else:
        cuts, seconds = _Balance(
            context, module, lines, _stage_count(wanted), chip, over_hosts=over_hosts
        ).run()
    return Stages(tuple(divide(module, lines, cuts)), seconds)


def _stage_count(wanted: str) -> int:
    count = int(wanted)
    if not 2 <= count <= MOST_STAGES:
        raise CompileError(
            f"a pipeline has between 2 and {MOST_STAGES} stages, not {count}",
            remedy="each stage runs on a device of its own",
        )
    return count


class _Balance:
    """Search for the cut points of functions that minimize the time of the slowest stage."""

    def __init__(
        self,
        context: Context,
        module: ModuleOp,
        lines: Sequence[Line],
        count: int,
        chip: ChipDescription,
        *,
        over_hosts: bool,
    ) -> None:
        self._context, self._module, self._chip = context, module, chip
        self._lines, self._count = lines, count
        rates = rates_of(chip, ONE_CHIP)
        hosts = count if over_hosts else 1
        links = links_along(chip.arch, count, hosts, hosts)
        self._link = links.count * performance(chip.arch).link_bandwidth
        self._times = [[seconds_before_lowering(op, rates) for op in line.ops] for line in lines]
        self._crossing = [line.crossing() for line in lines]

    def run(self) -> tuple[list[list[int]], Mapping[str, float]]:
        """Returns the cut points of each function, and the seconds of each stage by name."""
        best: tuple[float, list[list[int]], Mapping[str, float]] | None = None
        tried: set[tuple[tuple[int, ...], ...]] = set()
        for _ in range(_ROUNDS):
            cuts = [self._cut(index) for index in range(len(self._lines))]
            key = tuple(map(tuple, cuts))
            if key in tried:
                break
            tried.add(key)
            seconds = _lowered_seconds(self._context, self._module, cuts, self._chip)
            longest = max(seconds.values(), default=0.0)
            if best is None or longest < best[0]:
                best = longest, cuts, seconds
            self._correct(cuts, list(seconds.values()))
        assert best is not None
        return best[1], best[2]

    def _correct(self, cuts: Sequence[Sequence[int]], seconds: Sequence[float]) -> None:
        """Scales the times of each stage's ops so that they add up to its lowered time."""
        measured = iter(seconds)
        for index, places in enumerate(cuts):
            times = self._times[index]
            for begin, end in pairwise([0, *places, len(times)]):
                before, after = sum(times[begin:end]), next(measured)
                if before > 0:
                    times[begin:end] = [each * after / before for each in times[begin:end]]

    def _cut(self, index: int) -> list[int]:
        """Returns the cut points that minimize the slowest stage, transfers over links included.

        Dynamic programming over the number of stages and the end of the last one."""
        line, times, crossing = self._lines[index], self._times[index], self._crossing[index]
        before = [0.0, *accumulate(times)]
        places = self._cut_points(index, before)
        if len(places) < self._count - 1:
            name = line.function.sym_name.data
            raise CompileError(
                f"'{name}' has {len(places) + 1} parts that can be stages, and {self._count} are "
                "wanted",
                line.function,
                remedy="give a smaller number with --stages",
            )
        ends = [*places, len(times)]
        # `longest` has the slowest stage up to each end, `began` the best begin of each stage but
        # the first by its end.
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

    def _cut_points(self, index: int, before: Sequence[float]) -> list[int]:
        """Returns the cut points that are considered, in order."""
        line, crossing = self._lines[index], self._crossing[index]
        possible = [place for place in range(1, len(line.ops)) if line.may_begin(place)]
        if len(possible) <= _MAX_CUT_POINTS:
            return possible
        chosen: dict[int, int] = {}
        for place in possible:
            part = int(before[place] / (before[-1] or 1.0) * _MAX_CUT_POINTS)
            if part not in chosen or crossing[place] < crossing[chosen[part]]:
                chosen[part] = place
        return sorted(chosen.values())


def _lowered_seconds(
    context: Context, module: ModuleOp, cuts: Sequence[Sequence[int]], chip: ChipDescription
) -> dict[str, float]:
    """Returns the estimated seconds of each stage by name, in module order.

    A copy of the module is divided and lowered to library calls."""
    copy = module.clone()
    lines = [Line(function) for function in functions(copy) if not function.is_declaration]
    staged = divide(copy, lines, cuts)
    for each in passes_of(*LOWERING, *_BALANCED_CONSTANTS):
        each.apply(context, copy)
    model = CostModel(chip)
    found = {
        function.sym_name.data: sum(
            model.seconds(call_of(op))
            for op in body_of(function).ops
            if isinstance(op, CatalogueOp)
        )
        for function in functions(copy)
        if not function.is_declaration and not is_const_eval(function)
    }
    return {stage.name: found[stage.name] for each in staged for stage in each.stages}
