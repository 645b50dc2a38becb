"""Beam search over the placements of tensors, with a simulation of the L1 allocator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from xdsl.ir import BlockArgument, Operation, SSAValue

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import TensorPlacement, given_placement
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.layout.device import Bank
from ttcodegen.ops.core.definition import call_kind
from ttcodegen.ops.core.traits import CallKind
from ttcodegen.optimizer.call import Candidate, LibraryCall, call_of, interleaved
from ttcodegen.optimizer.candidates import CandidateGenerator
from ttcodegen.optimizer.cost.calls import CallCost, CostModel, is_view
from ttcodegen.optimizer.cost.measurements import call_key

# Simulation of the L1 allocator along the calls of a function.
#
# L1 fragments as tensors are allocated and freed: the free bytes may suffice for a call in total,
# although no block is large enough.


class _Tensors:
    """Tensors allocated in L1 at one point of a function."""

    def __init__(self, model: CostModel) -> None:
        self.bank = Bank(model.speed.usable_l1)
        self._model = model
        self._blocks: dict[SSAValue, tuple[int, int]] = {}
        self._sharers: dict[tuple[int, int], int] = {}

    def put(self, value: SSAValue, placement: TensorPlacement) -> None:
        """Allocates a tensor, then frees its previous block."""
        size = self._model.bank_bytes(placement)
        block = self.bank.allocate(size) if size else None
        self.drop(value)
        if block is not None:
            self._blocks[value] = block
            self._sharers[block] = 1

    def share(self, value: SSAValue, source: SSAValue) -> None:
        """Adds a view: `value` shares the block of `source`, which is freed after both."""
        if (block := self._blocks.get(source)) is not None:
            self._blocks[value] = block
            self._sharers[block] += 1

    def drop(self, value: SSAValue) -> None:
        """Frees a tensor; its block stays allocated while a view of it is live."""
        block = self._blocks.pop(value, None)
        if block is not None:
            self._sharers[block] -= 1
            if not self._sharers[block]:
                del self._sharers[block]
                self.bank.free(block)


def shortages(
    decisions: Sequence[tuple[Operation, Candidate, Sequence[tuple[SSAValue, TensorPlacement]]]],
    last_use: Mapping[SSAValue, int],
    model: CostModel,
) -> dict[Operation, int]:
    """Returns the bytes of L1 that fragmentation loses, of each call that does not fit.

    Args:
        decisions: the ops of a function, each with its candidate and the moves before it.
        last_use: index of the last op that uses a value.
        model: the cost model.
    """
    tensors = _Tensors(model)
    missing: dict[Operation, int] = {}
    for index, (op, candidate, moves) in enumerate(decisions):
        for value, placement in moves:
            tensors.put(value, placement)
        if isinstance(op, CatalogueOp):
            lost = _allocate_results(tensors, op, candidate, model)
            if lost > 0:
                missing[op] = lost
        for value in (*op.operands, *op.results):
            if last_use.get(value, -1) <= index and (value in last_use or value in op.operands):
                tensors.drop(value)
    return missing


def _allocate_results(
    tensors: _Tensors, op: CatalogueOp, candidate: Candidate, model: CostModel
) -> int:
    """Allocates the results of a call; returns the bytes between tensors if it does not fit, else
    0."""
    declared = call_of(op)
    if len(candidate.operands) != len(declared.operands):
        candidate = replace(candidate, operands=declared.operands)
    call = candidate.applied_to(declared)
    if call.results and is_view(call):
        tensors.share(op.results[0], op.operands[0])
        return 0
    cost = model.cost(call)
    halo = tensors.bank.allocate(cost.intermediates) if cost.intermediates else None
    for result, placement in zip(op.results, candidate.results, strict=False):
        tensors.put(result, placement)
    uses_l1 = any(p.buffer_type == "l1" for p in (*call.operands, *call.results))
    short = cost.circular_buffers - tensors.bank.lowest if uses_l1 else 0
    short = max(short, -tensors.bank.lowest)
    # Without gaps, the call may still be short of what the search leaves for them.
    lost = max(tensors.bank.gaps, short) if short > 0 else 0
    if halo is not None:
        tensors.bank.free(halo)
    return lost


# Beam search for placements along the calls of a function.
#
# A state holds the placement of every live tensor, and the decisions so far with their cost. Each
# call extends each state by every candidate that fits into L1, with the layout conversions it
# needs. To make room, live tensors are spilled to DRAM, those with the latest last use first. Among
# states with equal placements the fastest is kept, and of these the best `BEAM`.

BEAM = 8
"""Beam width: number of states that are kept after each call."""
ATTEMPTS = 8
"""Maximum number of searches; each reserves L1 for calls that did not fit in the one before."""
MOST_SHORTAGES = 3
"""Number of searches after which a call that still does not fit has all its tensors in DRAM."""
L1_SHARE = 0.9
"""Fraction of usable L1 that the search fills; the rest absorbs fragmentation."""
SIZED_BY_FREE_L1 = frozenset({CallKind.CONVOLUTION, CallKind.POOLING, CallKind.INTERPOLATION})
"""Calls whose programs size their buffers by the free L1: all other tensors are spilled."""

_LAST_RESORT_SECONDS = 1.0
"""Penalty on a form that the library refused, where no other is known: above that of any call."""

Placements = dict[SSAValue, TensorPlacement]


@dataclass(frozen=True)
class Decision:
    """Chosen candidate of one call."""

    op: Operation
    candidate: Candidate
    moves: tuple[tuple[SSAValue, TensorPlacement], ...]
    """Moves of operands before the call."""
    seconds: float
    """Estimated seconds of the call and its moves."""
    l1_bytes: int
    """Bytes of L1 per core while the call runs."""
    next_best: tuple[float, Candidate] | None
    """Seconds and candidate of the fastest alternative in the same state."""


@dataclass(frozen=True)
class _State:
    """State of the search after a call, as a linked list of decisions."""

    seconds: float
    placements: Placements
    last: Decision | None = None
    before: _State | None = None

    def decisions(self) -> list[Decision]:
        """Returns all decisions in order."""
        found: list[Decision] = []
        state: _State | None = self
        while state is not None and state.last is not None:
            found.append(state.last)
            state = state.before
        return found[::-1]


class Choices(Protocol):
    """Interface of overrides, which restrict the candidates of calls."""

    def concern(self, op: CatalogueOp) -> bool:
        """Returns whether there is an override of the call."""
        ...

    def candidates(
        self, op: CatalogueOp, call: LibraryCall, fixed: Sequence[bool]
    ) -> list[Candidate]:
        """Returns the candidates that follow the override, from the operand placements of `call`.

        Raises CompileError if there are none."""
        ...

    def left_alone(self, op: CatalogueOp, call: LibraryCall) -> None:
        """Raises CompileError if the override of a call without candidates would change it."""
        ...

    def refuse(self, op: CatalogueOp, error: CompileError) -> None:
        """Records the refusal of a call's override, which no longer concerns it."""
        ...

    def no_room(self, op: CatalogueOp, room: int) -> CompileError:
        """Returns the error if all candidates of a call exceed `room` bytes of L1 per core."""
        ...


@dataclass
class Search:
    """Beam search over the calls of one function."""

    model: CostModel
    generator: CandidateGenerator
    skipped: set[Operation]
    """Const-eval ops, whose results keep their placements."""
    constants: set[SSAValue]
    """Const-eval values: their moves within DRAM run once and cost nothing per run."""
    choices: Choices | None = None
    beam: int = BEAM
    refused: Mapping[Operation, frozenset[str]] = field(
        default_factory=dict[Operation, frozenset[str]]
    )
    """Keys of forms that the library refused, by call."""
    _last_use: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    _costs: dict[object, float] = field(default_factory=dict[object, float])
    _first_used: dict[int, Placements] = field(default_factory=dict[int, Placements])
    """Arguments and const-eval values outside L1, by the index of the op that first uses them.

    States hold them only from their first use: copying all weights into each state would take
    quadratic time."""
    _reserved: dict[Operation, int] = field(default_factory=dict[Operation, int])
    """Bytes of L1 that are reserved for a call, because fragmentation loses them."""
    _declared: dict[Operation, float] = field(default_factory=dict[Operation, float])
    _kinds: dict[Operation, object] = field(default_factory=dict[Operation, object])
    _priced_candidates: dict[object, list[tuple[Candidate, CallCost]]] = field(
        default_factory=dict[object, "list[tuple[Candidate, CallCost]]"]
    )

    def run(self, arguments: Sequence[SSAValue], ops: Sequence[Operation]) -> list[Decision]:
        """Returns the fastest sequence of decisions."""
        first_use: dict[SSAValue, int] = {}
        for index, op in enumerate(ops):
            for value in op.operands:
                first_use.setdefault(value, index)
                self._last_use[value] = index
        start: Placements = {}
        for value in (*arguments, *_results(op for op in ops if op in self.skipped)):
            placement = given_placement(value)
            if placement is not None and placement.buffer_type != "l1":
                if value in first_use:
                    self._first_used.setdefault(first_use[value], {})[value] = placement
            elif placement is not None and isinstance(value, BlockArgument):
                start[value] = placement
        decisions = self._cheapest(start, ops)
        times: Counter[Operation] = Counter()
        for attempt in range(1, ATTEMPTS):
            made = [(decision.op, decision.candidate, decision.moves) for decision in decisions]
            missing = shortages(made, self._last_use, self.model)
            if not missing:
                break
            for op, size in missing.items():
                # Reserve the bytes lost to fragmentation, then more. A call that is short again
                # and again, or in the last attempt, has its tensors in DRAM.
                times[op] += 1
                is_last = attempt + 1 == ATTEMPTS or times[op] == MOST_SHORTAGES
                reserved = self._reserved.get(op, 0)
                self._reserved[op] = self.room if is_last else reserved + size
            decisions = self._cheapest(start, ops)
        return decisions

    def _cheapest(self, start: Placements, ops: Sequence[Operation]) -> list[Decision]:
        states = [_State(0.0, start)]
        for index, op in enumerate(ops):
            states = self._step(states, index, op)
        return min(states, key=lambda state: state.seconds).decisions()

    def _step(self, states: list[_State], index: int, op: Operation) -> list[_State]:
        found: dict[object, _State] = {}
        refused: CompileError | None = None
        for state in states:
            if arriving := self._first_used.get(index):
                state = replace(state, placements={**state.placements, **arriving})
            try:
                continued = self._successors(state, index, op)
            except CompileError as error:
                # An override may be possible from the placements of another state.
                refused = error
                continue
            for following in continued:
                key = tuple(following.placements.items())
                known = found.get(key)
                if known is None or following.seconds < known.seconds:
                    found[key] = following
        if not found:
            assert refused is not None
            if not isinstance(op, CatalogueOp) or not self._has_override(op):
                raise refused
            assert self.choices is not None
            # The search goes on without the override, to find others that are refused.
            self.choices.refuse(op, refused)
            return self._step(states, index, op)
        ordered = sorted(found.values(), key=lambda state: state.seconds)
        return ordered[: self.beam]

    def _successors(self, state: _State, index: int, op: Operation) -> list[_State]:
        if not isinstance(op, CatalogueOp):
            return [self._unchanged(state, index, op)]
        call = call_of(op)
        values = [value for value in op.operands if value in state.placements]
        if op in self.skipped or len(values) != len(call.operands):
            if self.choices is not None:
                self.choices.left_alone(op, call)
            return [self._unchanged(state, index, op)]
        here = replace(call, operands=tuple(state.placements[value] for value in values))
        fixed = self._fixed(op, values)
        tried: list[tuple[float, Candidate, _State]] = []
        has_weights = len(values) > 1 and values[1] in self.constants
        for candidate, cost in self._accepted(op, here, fixed, has_weights):
            made = self._extended(state, index, op, values, candidate, cost)
            if made is not None:
                tried.append((made.seconds - state.seconds, candidate, made))
        if not tried and self._has_override(op):
            assert self.choices is not None
            raise self.choices.no_room(op, self.room)
        if not tried:
            # No candidate may be reachable from the declared placements.
            return [self._unchanged(state, index, op)]
        tried.sort(key=lambda entry: entry[0])
        return [self._with_runner_up(entry, tried) for entry in tried]

    def _accepted(
        self, op: CatalogueOp, call: LibraryCall, fixed: Sequence[bool], has_weights: bool
    ) -> list[tuple[Candidate, CallCost]]:
        """Returns the candidates of a call with their costs, without those that the library
        refused."""
        priced = self._priced(op, call, fixed, has_weights)
        if op not in self.refused:
            return priced
        left = [each for each in priced if not self._is_refused(op, each[0].applied_to(call))]
        # An override is followed even so: that it is refused is for the caller to say.
        return priced if not left and self._has_override(op) else left

    def _is_refused(self, op: Operation, call: LibraryCall) -> bool:
        forms = self.refused.get(op)
        return forms is not None and call_key(call) in forms

    def _priced(
        self, op: CatalogueOp, call: LibraryCall, fixed: Sequence[bool], has_weights: bool
    ) -> list[tuple[Candidate, CallCost]]:
        """Returns the candidates of a call with their costs, memoized over equal calls.

        `has_weights`: whether the second operand is a const-eval value.
        """
        if op not in self._kinds:
            self._kinds[op] = (op.name, str(op.properties), call.results)
        if self._has_override(op):
            assert self.choices is not None
            return self._with_costs(call, self.choices.candidates(op, call, fixed))
        key = (self._kinds[op], call.operands, tuple(fixed), has_weights)
        if key not in self._priced_candidates:
            candidates = self._candidates(call, fixed)
            if has_weights:
                candidates += self.generator.from_banks(call)
            self._priced_candidates[key] = self._with_costs(call, candidates)
        return self._priced_candidates[key]

    def _has_override(self, op: CatalogueOp) -> bool:
        return self.choices is not None and self.choices.concern(op)

    def _with_costs(
        self, call: LibraryCall, candidates: Sequence[Candidate]
    ) -> list[tuple[Candidate, CallCost]]:
        return [(each, self.model.cost(each.applied_to(call))) for each in candidates]

    def _candidates(self, call: LibraryCall, fixed: Sequence[bool]) -> list[Candidate]:
        kept: list[Candidate] = []
        for candidate in self.generator.of(call, fixed):
            stays = all(
                not stay or wanted == found
                for stay, wanted, found in zip(
                    fixed, candidate.operands, call.operands, strict=True
                )
            )
            if stays and candidate not in kept:
                kept.append(candidate)
        return kept

    def _fixed(self, op: CatalogueOp, values: Sequence[SSAValue]) -> list[bool]:
        """Returns the mask of operands that cannot be moved: const-eval and overwritten values."""
        overwritten = op.definition.in_place
        target = op.optional_operand(overwritten) if overwritten is not None else None
        return [
            value is target or (isinstance(value.owner, Operation) and value.owner in self.skipped)
            for value in values
        ]

    def _with_runner_up(
        self, entry: tuple[float, Candidate, _State], tried: list[tuple[float, Candidate, _State]]
    ) -> _State:
        seconds, candidate, state = entry
        other = next(((s, w) for s, w, _ in tried if w is not candidate), None)
        last = state.last
        assert last is not None
        decision = Decision(last.op, candidate, last.moves, seconds, last.l1_bytes, other)
        return _State(state.seconds, state.placements, decision, state.before)

    def _unchanged(self, state: _State, index: int, op: Operation) -> _State:
        """Extends a state by an op without candidates, whose operands get declared placements."""
        seconds = state.seconds
        placements = dict(state.placements)
        moves: list[tuple[SSAValue, TensorPlacement]] = []
        for value in dict.fromkeys(op.operands):
            declared = given_placement(value)
            if value in placements and declared is not None and placements[value] != declared:
                seconds += self._seconds_per_run(value, placements[value], declared)
                moves.append((value, declared))
                placements[value] = declared
        for result in op.results:
            placement = given_placement(result)
            if placement is not None and not (op in self.skipped and placement.buffer_type != "l1"):
                placements[result] = placement
        self._forget(placements, index, op)
        if isinstance(op, CatalogueOp) and op not in self.skipped:
            seconds += self._declared_seconds(op)
        candidate = Candidate(
            (), tuple(p for p in map(given_placement, op.results) if p is not None)
        )
        decision = Decision(op, candidate, tuple(moves), seconds - state.seconds, 0, None)
        return _State(seconds, placements, decision, state)

    def _declared_seconds(self, op: CatalogueOp) -> float:
        """Estimated seconds of a call with its declared placements."""
        if op not in self._declared:
            call = call_of(op)
            last_resort = _LAST_RESORT_SECONDS if self._is_refused(op, call) else 0.0
            self._declared[op] = self.model.seconds(call) + last_resort
        return self._declared[op]

    def _extended(
        self,
        state: _State,
        index: int,
        op: CatalogueOp,
        values: Sequence[SSAValue],
        candidate: Candidate,
        cost: CallCost,
    ) -> _State | None:
        seconds = 0.0
        placements = dict(state.placements)
        moves: list[tuple[SSAValue, TensorPlacement]] = []
        for value, wanted in zip(values, candidate.operands, strict=True):
            found = placements[value]
            if found != wanted:
                seconds += self._seconds_per_run(value, found, wanted)
                moves.append((value, wanted))
                placements[value] = wanted
        if any(
            placements[value] != wanted
            for value, wanted in zip(values, candidate.operands, strict=True)
        ):
            return None  # An operand that occurs twice cannot have two placements.
        for result, placement in zip(op.results, candidate.results, strict=True):
            placements[result] = placement
        uses_all_l1 = _may_use_all_l1(op, candidate)
        # Reserved bytes are capped at all of L1, so that a call without tensors in L1 still fits.
        with_reserve = min(cost.working_bytes + self._reserved.get(op, 0), self.room)
        buffers = self.room if uses_all_l1 else max(cost.working_bytes, with_reserve)
        spilled = self._spill(placements, index, {*values, *op.results}, buffers)
        if spilled is None:
            return None
        for value, wanted in spilled:
            seconds += self._move_seconds(placements[value], wanted)
            placements[value] = wanted
        used = (0 if uses_all_l1 else cost.working_bytes) + self._used(placements)
        self._forget(placements, index, op)
        seconds += cost.seconds
        decision = Decision(op, candidate, (*moves, *spilled), seconds, used, None)
        return _State(state.seconds + seconds, placements, decision, state)

    @property
    def room(self) -> int:
        """Bytes of L1 per core that the search may fill."""
        return int(self.model.speed.usable_l1 * L1_SHARE)

    def _used(self, placements: Placements) -> int:
        return sum(self.model.bank_bytes(placement) for placement in placements.values())

    def _spill(
        self, placements: Placements, index: int, needed: set[SSAValue], buffers: int
    ) -> list[tuple[SSAValue, TensorPlacement]] | None:
        """Returns the tensors to spill to DRAM so that a call fits, or None if it cannot.

        Those with the latest last use come first: they would occupy L1 for the longest time.
        """
        used = self._used(placements)
        if used + buffers <= self.room:
            return []
        movable = [
            value
            for value, placement in placements.items()
            if placement.buffer_type == "l1" and value not in needed
        ]
        movable.sort(key=lambda value: -self._last_use.get(value, index))
        spilled_values: list[tuple[SSAValue, TensorPlacement]] = []
        for value in movable:
            used -= self.model.bank_bytes(placements[value])
            spilled_values.append((value, interleaved(placements[value], "dram")))
            if used + buffers <= self.room:
                return spilled_values
        return None

    def _forget(self, placements: Placements, index: int, op: Operation) -> None:
        for value in (*op.operands, *op.results):
            if value in placements and self._last_use.get(value, -1) <= index:
                if value in op.results and self._last_use.get(value) is not None:
                    continue
                del placements[value]

    def _seconds_per_run(
        self, value: SSAValue, source: TensorPlacement, target: TensorPlacement
    ) -> float:
        """Seconds of a move per run: none for a const-eval value within DRAM."""
        in_dram = source.buffer_type == target.buffer_type == "dram"
        if in_dram and value in self.constants:
            return 0.0
        return self._move_seconds(source, target)

    def _move_seconds(self, source: TensorPlacement, target: TensorPlacement) -> float:
        key = (source, target)
        if key not in self._costs:
            seconds = 0.0
            if source.layout is not target.layout:
                # The layout changes where the tensor is, before it moves.
                between = source.with_(layout=target.layout)
                seconds = self.model.cost(LibraryCall("to_layout", (source,), (between,))).seconds
                source = between
            self._costs[key] = seconds + self.model.movement(source, target).seconds
        return self._costs[key]


def _results(ops: Iterable[Operation]) -> Iterator[SSAValue]:
    for op in ops:
        yield from op.results


def _may_use_all_l1(op: CatalogueOp, candidate: Candidate) -> bool:
    """Returns whether a call may use all free L1; with sharded results its footprint is known."""
    return call_kind(op.definition.short_name) in SIZED_BY_FREE_L1 and all(
        p.shards is None for p in candidate.results
    )
