"""Kinds of parallelism: division of whole functions along the axes of a mesh.

`data=0,tensor=1` divides the batch along axis 0 of the mesh, and weights along axis 1. A kind
chooses logical dimensions (`logical_dimensions`), which determine the shardings of arguments; those
of all other values follow by propagation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, SSAValue

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.functions import argument_attribute, attributes_at, body_of
from ttcodegen.dialects.ttcore.device import ONE_CHIP, MeshShape, declared_mesh, set_mesh
from ttcodegen.dialects.ttir.annotations import SHARDING, Sharding, WantedSharding, says_shardings
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Severity
from ttcodegen.foundation.messages import did_you_mean
from ttcodegen.naming.sources import name_in_text
from ttcodegen.ops.core.definition import works_between_chips
from ttcodegen.transforms.mesh.logical_dimensions import (
    Axes,
    Gain,
    LogicalDimensions,
    Rates,
    divisible,
)
from ttcodegen.transforms.rewriting import functions

KINDS = ("data", "sequence", "expert", "tensor")
"""Kinds of parallelism, in the order in which they claim logical dimensions."""
AUTO = "auto"
"""Lets the cost model choose the kinds."""

_NOTHING = {
    "data": "no input has a batch, a first dimension of its own, to divide",
    "sequence": "no input has a sequence, a dimension beside batch and features, to divide",
    "expert": "no matmul has a batch of weights, experts, to divide",
    "tensor": "no weight of a matmul is left to divide",
}
"""Reasons for a kind to divide nothing."""

_TIE = 1e-6
"""Relative difference below which sums are equal but for rounding."""

_ENTRY = re.compile(r"\s*([a-z_]+)\s*=\s*(\d{1,3})\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Parallelism:
    """Kinds of parallelism, each with its mesh axis."""

    entries: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        """Text of the command-line option."""
        return ",".join(f"{kind}={axis}" for kind, axis in self.entries) or "none"

    @staticmethod
    def parse(text: str, mesh: MeshShape) -> Parallelism:
        """Parses the text of the command-line option.

        Raises:
            CompileError: if it names an unknown kind, an axis that the mesh lacks or that has one
                device, or an axis twice for a kind.
        """
        entries: list[tuple[str, int]] = []
        shape = "x".join(map(str, mesh))
        for part in text.split(","):
            found = _ENTRY.fullmatch(part)
            if found is None:
                raise CompileError(
                    f"'{part}' is no kind of parallelism with an axis of the mesh",
                    remedy="auto, or for instance data=0,tensor=1",
                )
            kind, axis = found[1].lower(), int(found[2])
            if kind not in KINDS:
                raise CompileError(
                    f"there is no parallelism '{kind}'{did_you_mean(kind, KINDS)}",
                    remedy=f"there are {', '.join(KINDS)}",
                )
            if axis >= len(mesh) or mesh[axis] == 1:
                why = "has no axis" if axis >= len(mesh) else "has one device along axis"
                raise CompileError(f"the mesh {shape} {why} {axis}, which {kind}={axis} names")
            if (kind, axis) in entries:
                raise CompileError(f"the parallelism '{text}' has {kind}={axis} twice")
            entries.append((kind, axis))
        return Parallelism(tuple(entries))


class Divisions:
    """Possible divisions of a function along the axes of a mesh."""

    def __init__(self, function: FuncOp, mesh: MeshShape, rates: Rates) -> None:
        self.function = function
        self.dimensions = LogicalDimensions(function)
        self._mesh = mesh
        self._rates = rates
        self._gains: dict[int, dict[int, Gain]] = {}

    def gains(self, parts: int) -> Mapping[int, Gain]:
        """Returns the estimated effect of dividing logical dimensions into `parts`."""
        if parts not in self._gains:
            self._gains[parts] = self.dimensions.gains(parts, self._rates)
        return self._gains[parts]

    def _input_dimensions(self) -> Iterator[tuple[int, int]]:
        """Yields index and logical dimension of the input dimensions larger than 1."""
        for argument in body_of(self.function).args:
            if argument not in self.dimensions.weights:
                for dim, size in enumerate(shape_of(argument.type)):
                    if size > 1:
                        yield dim, self.dimensions.of(argument, dim)

    @cached_property
    def _batches(self) -> frozenset[int]:
        """Leading dimensions of inputs that are neither another input dimension nor a weight's."""
        later = {number for dim, number in self._input_dimensions() if dim}
        return frozenset(
            number
            for dim, number in self._input_dimensions()
            if dim == 0 and number not in later and not self.dimensions.found[number].is_of_weights
        )

    def _candidates(self, kind: str, parts: int) -> list[int]:
        """Returns the logical dimensions that a kind may divide, the most profitable first."""
        found, gains = self.dimensions.found, self.gains(parts)
        if kind == "data":
            return sorted(self._batches, key=lambda each: (-gains[each].saved, each))
        if kind == "sequence":
            numbers = {
                number
                for dim, number in self._input_dimensions()
                if dim and not found[number].is_of_weights and gains[number].saved > 0
            }
            return sorted(numbers - self._batches, key=lambda each: (-gains[each].net, each))
        experts = {number for number, each in found.items() if each.is_batch_of_weights}
        if kind == "expert":
            return sorted(experts - self._batches)
        weights = {number for number, each in found.items() if each.is_of_weights}
        numbers = weights - experts - self._batches
        return sorted(numbers, key=lambda each: (-gains[each].net, each))

    def indivisible(self, kind: str, parts: int) -> str:
        """Describes an argument dimension that a kind cannot divide into `parts`, for messages."""
        for number in self._candidates(kind, parts):
            found = self.dimensions.found[number]
            for value, dim in found.members:
                if isinstance(value, BlockArgument) and found.size % parts:
                    name = argument_name(self.function, value)
                    size = shape_of(value.type)[dim]
                    return f"the {size} elements of dimension {dim} of '{name}'"
        return ""

    def divided(self, parallelism: Parallelism) -> tuple[dict[int, Axes], set[tuple[str, int]]]:
        """Returns mesh axes by logical dimension, and the entries that divide something."""
        axes: dict[int, Axes] = {}
        useful: set[tuple[str, int]] = set()
        for kind, axis in sorted(parallelism.entries, key=lambda entry: KINDS.index(entry[0])):
            if chosen := self._chosen(kind, axis, axes):
                useful.add((kind, axis))
            for number in chosen:
                axes[number] = (*axes.get(number, ()), axis)
        return axes, useful

    def _chosen(self, kind: str, axis: int, axes: Mapping[int, Axes]) -> list[int]:
        """Returns the logical dimensions that a kind divides along an axis, beside the divided
        ones."""
        parts, found = self._mesh[axis], self.dimensions.found
        taken = {number for number, divided in axes.items() if axis in divided}

        def is_free(number: int) -> bool:
            each = found[number]
            before = prod(self._mesh[other] for other in axes.get(number, ()))
            divides = each.size > 0 and each.size % (before * parts) == 0
            return divides and number not in taken and each.conflicts.isdisjoint(taken)

        free = list(filter(is_free, self._candidates(kind, parts)))
        if kind == "tensor":
            return self._independent(free, self.gains(parts))
        if kind == "sequence":
            return free[:1]
        chosen: list[int] = []
        for number in free:
            if kind == "data" and chosen and found[number].size != found[chosen[0]].size:
                continue
            if found[number].conflicts.isdisjoint(chosen):
                chosen.append(number)
        return chosen

    def _independent(self, numbers: Sequence[int], gains: Mapping[int, Gain]) -> list[int]:
        """Returns conflict-free logical dimensions of the largest total gain; else the best alone.

        Features that all layers share save more than the heads of one layer, but less than the
        heads and the hidden units of all of them.
        """
        found = self.dimensions.found
        left = dict.fromkeys(number for number in numbers if gains[number].net > 0)
        ranks = {number: rank for rank, number in enumerate(left)}
        chosen: list[int] = []
        while left:
            number = next(iter(left))
            others: list[int] = []
            for other in sorted(found[number].conflicts & left.keys(), key=ranks.__getitem__):
                if found[other].conflicts.isdisjoint(others):
                    others.append(other)
            if sum(gains[other].net for other in others) > gains[number].net * (1 + _TIE):
                del left[number]
                continue
            chosen.append(number)
            for other in (number, *found[number].conflicts):
                left.pop(other, None)
        return chosen or list(numbers[:1])

    def shardings(self, axes: Mapping[int, Axes]) -> dict[SSAValue, Sharding]:
        """Returns the argument shardings of a division."""
        found: dict[SSAValue, Sharding] = {}
        for argument in body_of(self.function).args:
            sharding: list[Axes] = []
            used: set[int] = set()
            shape = shape_of(argument.type)
            for dim in range(len(shape)):
                wanted = axes.get(self.dimensions.of(argument, dim), ())
                kept = () if used & set(wanted) else wanted
                used |= set(kept)
                sharding.append(kept)
            found[argument] = divisible(shape, tuple(sharding), self._mesh)
        return found

    def saved(self, axes: Mapping[int, Axes]) -> float:
        """Returns the estimated seconds that a division saves, without costs common to all
        divisions.
        """
        return sum(
            self.gains(self._mesh[axis])[number].net
            for number, divided in axes.items()
            for axis in divided
        )


def argument_name(function: FuncOp, argument: BlockArgument) -> str:
    """Returns the user-visible name of an argument, as overrides use it."""
    said = argument_attribute(function, argument.index, "ttir.name")
    if isinstance(said, StringAttr):
        return said.data
    return name_in_text(argument, f"arg{argument.index}")


def refuse_useless(
    parallelism: Parallelism,
    useful: set[tuple[str, int]],
    mesh: MeshShape,
    divisions: Sequence[Divisions],
) -> None:
    """Raises CompileError for a kind that divides nothing."""
    for kind, axis in parallelism.entries:
        if (kind, axis) in useful:
            continue
        among = f"among the {mesh[axis]} devices of axis {axis}"
        reasons = [each.indivisible(kind, mesh[axis]) for each in divisions]
        reason = next(filter(None, reasons), "")
        raise CompileError(
            f"{kind}={axis} divides nothing: "
            + (f"{reason} do not divide {among}" if reason else f"{_NOTHING[kind]} {among}"),
            remedy="--parallel auto finds what divides",
        )


def annotate(function: FuncOp, shardings: Mapping[SSAValue, Sharding]) -> None:
    """Sets the shardings of arguments as attributes of a function."""
    arguments = body_of(function).args
    function.arg_attrs = ArrayAttr(
        [
            DictionaryAttr(
                {
                    **attributes_at(function.arg_attrs, index),
                    SHARDING: WantedSharding(
                        shardings[argument], (False,) * len(shardings[argument])
                    ).attribute(),
                }
            )
            for index, argument in enumerate(arguments)
        ]
    )


# Modules for several devices without shardings or collectives.


def is_undivided(module: ModuleOp) -> bool:
    """Returns whether a module has neither shardings nor ops between devices."""
    return not (
        any(map(works_between_chips, module.walk())) or any(map(says_shardings, functions(module)))
    )


def warn_undivided(module: ModuleOp, target: str, diagnostics: Diagnostics | None) -> None:
    """Warns that the devices of the mesh share no work.

    Device programs then run on one of them (the mesh becomes one chip), ttnn calls on each.
    """
    chips = prod(declared_mesh(module))
    if target == "ttmetal":
        set_mesh(module, ONE_CHIP)
        done = "programs of device kernels run on one of them"
    else:
        done = f"each of the {chips} computes all of it"
    if diagnostics is not None:
        diagnostics.warn(
            "the module does not say how tensors are divided among the chips of its mesh: " + done,
            module,
            remedy="--parallel auto divides them",
        )


def note_undivided(module: ModuleOp, parallel: str, diagnostics: Diagnostics | None) -> None:
    """Notes that the chosen shardings divide nothing."""
    if diagnostics is not None:
        diagnostics.warn(
            f"--parallel {parallel} divides no tensor, for no division is faster by the model of "
            f"cost: each of the {prod(declared_mesh(module))} devices computes all of it",
            module,
            remedy="--explain lists the estimates; data=0, tensor=0 and so on divide in any case",
            severity=Severity.NOTE,
        )
