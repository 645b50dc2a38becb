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
"""Attribute of a module: the shardings that were chosen, as JSON."""
SHARDINGS_EXPLANATION = "ttcodegen.shardings-explanation"
"""Attribute of a module: the table of the candidates."""

_MOST_LOWERED = 16
"""Upper bound on the candidates that are lowered; those that promise most come first."""

_KINDS_ALONG_AXIS: tuple[tuple[str, ...], ...] = (
    (),
    ("data",),
    ("tensor",),
    ("expert",),
    ("sequence",),
    ("expert", "tensor"),
)
"""The kinds of parallelism that a candidate has along an axis."""

LOWERING: tuple[Step | str, ...] = (
    "ttir-partition",
    "ttir-pipeline",
    "ttcore-record-chip-shares",
    "convert-ttir-to-ttnn",
    "remove-dead-values",
    "ttnn-set-compute-kernel-config",
    "ttnn-layout",
)
"""The steps to calls with layouts, which have costs."""
_CONSTANTS: tuple[Step | str, ...] = (
    "ttnn-prepare-conv2d-weights-and-bias",
    "const-eval-hoist-transform",
    "ttnn-decompose-layouts",
    "ttnn-deallocate",
)
"""The steps after them: what is computed once takes memory, but no time."""

Shardings = dict[str, dict[str, Sharding]]
"""The shardings of arguments by their names, by function."""


@dataclass(frozen=True)
class Estimate:
    """Estimated cost of a candidate on each device."""

    seconds: float
    link_seconds: float
    dram_bytes: int


@dataclass(frozen=True)
class _Candidate:
    """A kind of parallelism, and the dimensions that it shards."""

    parallelism: Parallelism
    shardings: tuple[dict[SSAValue, Sharding], ...]
    """Those of the arguments of each function."""
    promised: float
    """Seconds that it saves by the estimate before lowering."""


@dataclass(frozen=True)
class ChooseShardings(ModulePass):
    """Writes `ttcore.sharding` to the arguments of functions that say no shardings."""

    name = "ttir-choose-shardings"

    parallel: str = ""
    """`auto`, or kinds of parallelism with axes of the mesh."""
    overrides: str = ""
    """The text of a file of overrides."""
    weights: str = "none"
    """Types of the weights of matmuls, for the estimates."""

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
            _follow(entries, given, mesh)
            said = "shardings of the overrides\n"
        else:
            said = _Choice(ctx, op, entries, mesh, self).run(self.parallel)
        op.attributes[SHARDINGS] = StringAttr(json.dumps(_written(entries)))
        op.attributes[SHARDINGS_EXPLANATION] = StringAttr(said)


def _follow(entries: Sequence[FuncOp], given: Shardings, mesh: MeshShape) -> None:
    """Shards arguments as overrides say; raises CompileError for arguments that do not exist."""
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


def _written(entries: Sequence[FuncOp]) -> dict[str, dict[str, list[list[int]]]]:
    """The shardings of functions, as overrides have them."""
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


class _Choice:
    """Chooses among the candidates for a module."""

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
        """Annotates the functions; returns the explanation."""
        if parallel.strip().lower() == AUTO:
            candidates = self._candidates()
        else:
            wanted = Parallelism.parse(parallel, self._mesh)
            candidate, useful = self._candidate(wanted)
            refuse_useless(wanted, useful, self._mesh, self._divisions)
            candidates = [candidate]
        estimates = [self._estimate(each) for each in candidates]
        best = min(range(len(candidates)), key=lambda index: self._order(estimates[index]))
        for function, shardings in zip(self._entries, candidates[best].shardings, strict=True):
            annotate(function, shardings)
        return self._table(candidates, estimates, best)

    def _order(self, estimate: Estimate) -> tuple[bool, float]:
        """Candidates that fit come first, by time; others by the memory that they take."""
        if estimate.dram_bytes > dram_size(self._chip):
            return True, estimate.dram_bytes
        return False, estimate.seconds

    def _candidate(self, wanted: Parallelism) -> tuple[_Candidate, set[tuple[str, int]]]:
        useful: set[tuple[str, int]] = set()
        shardings: list[dict[SSAValue, Sharding]] = []
        promised = 0.0
        for divisions in self._divisions:
            axes, found = divisions.divided(wanted)
            useful |= found
            promised += divisions.saved(axes)
            shardings.append(divisions.shardings(axes))
        return _Candidate(wanted, tuple(shardings), promised), useful

    def _candidates(self) -> list[_Candidate]:
        """Candidates that divide all that they name, each division once; the undivided first."""
        found: dict[tuple[Sharding, ...], _Candidate] = {}
        for wanted in self._parallelisms():
            candidate, useful = self._candidate(wanted)
            key = tuple(each for table in candidate.shardings for each in table.values())
            if useful == set(wanted.entries):
                found.setdefault(key, candidate)
        first, *others = found.values()
        others.sort(key=lambda candidate: -candidate.promised)
        return [first, *others[: _MOST_LOWERED - 1]]

    def _parallelisms(self) -> Iterator[Parallelism]:
        along = [_KINDS_ALONG_AXIS if size > 1 else ((),) for size in self._mesh]
        for kinds in product(*along):
            entries = [(kind, axis) for axis, each in enumerate(kinds) for kind in each]
            yield Parallelism(tuple(entries))

    def _estimate(self, candidate: _Candidate) -> Estimate:
        """Lowers a copy of the module that is divided like this."""
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
        order = sorted(range(len(candidates)), key=lambda index: self._order(estimates[index]))
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
    """Figures for estimates before lowering: half of what the chip has at most."""
    model = CostModel(chip)
    speed = model.speed
    tile_flops = 2 * 32**3 / (speed.tile_product * 4)
    flops = chip.cores * tile_flops * speed.clock / 2
    devices = mesh[0] * mesh[1]
    link = links_between(chip.arch, devices) * speed.link_bandwidth
    return Rates(flops, speed.dram_bandwidth / 2, link)


_BALANCED_CONSTANTS = ("ttnn-prepare-conv2d-weights-and-bias", "const-eval-hoist-transform")
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
    *,
    over_hosts: bool = False,
) -> Stages:
    """Puts stages in the place of the functions of a module.

    Args:
        context: of the passes.
        module: ops of TTIR, whose functions call no others.
        wanted: the number of stages, or the names of the ops that all of them but the last end
            after, with commas.
        chip: what each stage runs on.
        micro_batches: parts of the batch that go through the stages one after the other.
        over_hosts: True if each stage has a host of its own.

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
        cuts, seconds = _Balance(
            context, module, lines, _count(wanted), chip, over_hosts=over_hosts
        ).run()
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
