"""Choice of shardings for modules that say none: kinds of parallelism under the model of cost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
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
from ttcodegen.dialects.ttcore.dialect import system_of
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
from ttcodegen.systems.cards import default_system, links_between
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE, ChipDescription
from ttcodegen.transforms.const_eval import is_const_eval
from ttcodegen.transforms.device import dram_size, dram_use
from ttcodegen.transforms.mesh.logical_dimensions import Rates
from ttcodegen.transforms.mesh.parallelism import (
    AUTO,
    Divisions,
    Parallelism,
    annotate,
    argument_name,
    refuse_useless,
)
from ttcodegen.transforms.mesh.partition import split_biases
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
        system = system_of(module) or default_system(DEFAULT_ARCHITECTURE)
        self._context = context
        self._module = module
        self._entries = entries
        self._mesh = mesh
        self._chip = system.chip
        self._model = CostModel(system.chip)
        rates = rates_of(system.chip, mesh)
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
