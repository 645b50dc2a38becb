"""Passes that choose placements and program configs, and the explanation of their choices."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import TensorPlacement, given_placement, placed_type
from ttcodegen.dialects.ttnn.program_configs import ProgramConfig
from ttcodegen.foundation.messages import aligned
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import SDPA_CONFIG_ATTRIBUTE
from ttcodegen.ops.core.definition import TTNNDefinition, call_kind
from ttcodegen.ops.dialects import ttnn_op_classes
from ttcodegen.optimizer.beam_search import Decision, Search
from ttcodegen.optimizer.call import Candidate, call_of
from ttcodegen.optimizer.candidates import CandidateGenerator, cheapest_program
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.optimizer.cost.measurements import NINE_OF_TEN
from ttcodegen.optimizer.overrides.given_candidates import (
    GivenChoices,
    give_data_types,
    give_weight_types,
)
from ttcodegen.optimizer.overrides.order import give_order
from ttcodegen.optimizer.overrides.overrides import (
    KEPT,
    MERGED,
    CallNames,
    FunctionOverrides,
    Overrides,
    check_names,
    read_overrides,
    written,
)
from ttcodegen.optimizer.overrides.refusals import Refusals
from ttcodegen.optimizer.refused_choices import read_refused, record_choices, refused_forms
from ttcodegen.optimizer.rewrites import choose_fidelities
from ttcodegen.transforms.const_eval import constant_calls, constant_values, is_const_eval
from ttcodegen.transforms.rewriting import body_of, set_type
from ttcodegen.transforms.ttnn.call_settings import DECODING

HEADINGS = (
    "call",
    "op",
    "result",
    "program",
    "us",
    "90 % in",
    "bound",
    "L1 KiB",
    "why",
    "next best",
)


def placement_text(placement: TensorPlacement) -> str:
    """Returns a placement as short text: `l1 hs 8x8 [32x64]`, with cores and shard shape."""
    if placement.shards is None or placement.memory_layout is None:
        return placement.buffer_type
    kind = {"height_sharded": "hs", "width_sharded": "ws", "block_sharded": "bs"}
    height, width = placement.shards.shape
    cores = "+".join(f"{r.columns}x{r.rows}" for r in placement.shards.core_ranges)
    sharding = kind[placement.memory_layout]
    return f"{placement.buffer_type} {sharding} {cores} [{height}x{width}]"


def _program_name(candidate: Candidate) -> str:
    config = next((c for c in candidate.attributes.values() if isinstance(c, ProgramConfig)), None)
    if config is None:
        return ""
    name = config.cpp.rpartition("::")[2].removesuffix("ProgramConfig")
    return name.removeprefix("MatmulMultiCore") or name


def _choice_text(decision: Decision) -> str:
    """Returns the placement of a call's first result, and its program config."""
    candidate = decision.candidate
    placed = [placement_text(each) for each in candidate.results[:1]]
    return " ".join(filter(None, (*placed, _program_name(candidate))))


def _ninety_percent_text(op: CatalogueOp, seconds: float) -> str:
    """Returns the 90 % interval of an estimate in microseconds; `?` with too few measurements."""
    factors = NINE_OF_TEN.get(call_kind(op.definition.short_name))
    if factors is None:
        return "?"
    return "-".join(f"{factor * seconds * 1e6:.1f}" for factor in factors)


def reason(decision: Decision, overridden: bool) -> str:
    """Returns the reason for a decision, for the explanation."""
    if overridden:
        return "override"
    if decision.next_best is None:
        return "only way"
    # The search minimizes the time of the whole function: a slower candidate may save more in later
    # calls.
    return "cheapest" if decision.seconds <= decision.next_best[0] else "saves later"


def table(
    decisions: Sequence[Decision],
    overrides: FunctionOverrides,
    model: CostModel,
    constants: Collection[Operation],
) -> str:
    """Returns the table of decisions: rows of device calls, const-eval calls, and total time."""
    rows: list[tuple[str, ...]] = [HEADINGS]
    total, names, once = 0.0, overrides.names, 0
    for decision in decisions:
        op = decision.op
        total += decision.seconds
        if not isinstance(op, CatalogueOp) or op not in names or not decision.candidate.results:
            continue
        if op in constants and overrides[op] is None:
            once += 1
            continue
        bound = model.cost(call_of(op)).bound
        other = ""
        if decision.next_best is not None and decision.next_best[1].results:
            seconds, candidate = decision.next_best
            more = (seconds - decision.seconds) * 1e6
            other = (
                f"{placement_text(candidate.results[0])} {_program_name(candidate)}".strip()
                + f": {more:+.1f}"
            )
        rows.append(
            (
                names[op],
                op.definition.short_name,
                placement_text(decision.candidate.results[0]),
                _program_name(decision.candidate),
                f"{decision.seconds * 1e6:.1f}",
                _ninety_percent_text(op, decision.seconds),
                bound,
                f"{decision.l1_bytes / 1024:.0f}",
                reason(decision, overrides[op] is not None),
                other,
            )
        )
    lines = aligned(rows)
    if once:
        calls = "1 call" if once == 1 else f"{once} calls"
        lines.append(f"{calls} on weights and constants alone: computed once, not in each run")
    return "\n".join([*lines, f"estimated: {total * 1e6:.1f} us"]) + "\n"


DECISIONS = "ttcodegen.decisions"
EXPLANATION = "ttcodegen.explanation"
"""Module attributes with the decisions and their explanation."""
NO_OVERRIDES: Overrides = {}


class FitAttention(ModulePass):
    """Sets a program config on decode attention whose default circular buffers exceed L1."""

    name = "ttnn-fit-attention"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        model = CostModel.of(op)
        room = model.speed.usable_l1
        for call in op.walk():
            if not isinstance(call, CatalogueOp) or call.definition.short_name not in DECODING:
                continue
            made = call_of(call)
            if made.program_config is None and model.cost(made).circular_buffers > room:
                config = cheapest_program(made, model, room)
                if config is not None:
                    name = SDPA_CONFIG_ATTRIBUTE.name
                    call.properties[name] = SDPA_CONFIG_ATTRIBUTE.kind.encode(config)


@dataclass(frozen=True)
class Optimize(ModulePass):
    """Chooses placements and configs; level 1: interleaved in L1 or DRAM, level 2: also sharded.

    Runs after layouts are assigned and before constants are hoisted; leaves const-eval calls as
    they are.
    """

    name = "ttnn-optimize"

    level: int = 1
    overrides: str = ""
    """Text of an overrides file."""
    record: bool = False
    """True to record the decisions in attributes of the module."""
    refused: str = ""
    """Choices that the library refused, as JSON; if not empty, calls get their choices as
    attributes."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        model = CostModel.of(op)
        functions = [f for f in op.walk() if isinstance(f, FuncOp) and not is_const_eval(f)]
        given: Overrides = read_overrides(self.overrides) if self.overrides else NO_OVERRIDES
        refused = read_refused(self.refused) if self.refused else {}
        named = [CallNames(function) for function in functions]
        check_names(given, named)
        refusals = Refusals()
        taken: list[tuple[FunctionOverrides, list[Decision]]] = []
        explained: list[str] = []
        for function, names in zip(functions, named, strict=True):
            choose_fidelities(function)
            overrides = FunctionOverrides(given, names)
            give_order(function, overrides, refusals)
            give_weight_types(function, overrides, refusals)
            give_data_types(function, overrides, refusals)
            once = constant_calls(function)
            forms = refused_forms(refused, names)
            decisions = decide(function, model, self.level, overrides, refusals, forms)
            if self.refused:
                record_choices(names, decisions, [_choice_text(each) for each in decisions])
            taken.append((overrides, decisions))
            _Writer(function).write(decisions)
            for call in body_of(function).ops:
                for attribute in (MERGED, KEPT):
                    call.attributes.pop(attribute, None)
            if self.record:
                explained.append(f"{names.function}\n{table(decisions, overrides, model, once)}")
        refusals.raise_all()
        if self.record:
            op.attributes[DECISIONS] = StringAttr(written(taken, self.level))
            op.attributes[EXPLANATION] = StringAttr("\n".join(explained))


def placed_calls() -> frozenset[str]:
    """Returns the names of calls with a memory config for their result."""
    found: set[str] = set()
    for name, cls in ttnn_op_classes().items():
        definition = cls.definition
        if isinstance(definition, TTNNDefinition) and definition.result_rule(0).placed:
            found.add(name)
    return frozenset(found)


def decide(
    function: FuncOp,
    model: CostModel,
    level: int,
    overrides: FunctionOverrides,
    refusals: Refusals,
    refused: Mapping[Operation, frozenset[str]] | None = None,
) -> list[Decision]:
    """Chooses a candidate for each op of a function, following overrides that are not refused.

    `refused`: the keys of forms that the library refused, by op.
    """
    block = body_of(function)
    constants = constant_values(function)
    skipped = constant_calls(function)
    placed = placed_calls()
    choices = GivenChoices(overrides, CandidateGenerator(model, True, placed), refusals)

    def found(shards: bool) -> list[Decision]:
        generator = CandidateGenerator(model, shards, placed)
        search = Search(model, generator, skipped, constants, choices, refused=refused or {})
        return search.run(list(block.args), list(block.ops))

    if level < 2:
        return found(False)
    # The beam may keep shards that leave too little L1 for later calls: try without shards as well.
    return min(found(True), found(False), key=lambda each: sum(made.seconds for made in each))


@dataclass
class _Writer:
    """Applies decisions to a function."""

    function: FuncOp
    current: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Latest moved copies of values, by the original values."""

    def write(self, decisions: Sequence[Decision]) -> None:
        """Moves operands, sets configs of calls, and updates result types."""
        block = body_of(self.function)
        classes = ttnn_op_classes()
        for decision in decisions:
            op = decision.op

            def insert(made: Operation, op: Operation = op) -> None:
                block.insert_op_before(made, op)

            builder = OpBuilder(classes, insert)
            builder.origin = op
            for value, wanted in decision.moves:
                self._move(builder, value, wanted)
            op.operands = [self.current.get(value, value) for value in op.operands]
            if not isinstance(op, CatalogueOp):
                continue
            for result, placement in zip(op.results, decision.candidate.results, strict=False):
                if given_placement(result) is not None:
                    set_type(result, placed_type(placement))
            for name, value in decision.candidate.attributes.items():
                op.properties.pop(name, None)
                if value is not None:
                    op.properties[name] = op.definition.attribute(name).kind.encode(value)
        terminator = block.last_op
        assert isinstance(terminator, ReturnOp)
        self.function.function_type = FunctionType.from_lists(
            [argument.type for argument in block.args],
            [value.type for value in terminator.operands],
        )

    def _move(self, builder: OpBuilder, value: SSAValue, wanted: TensorPlacement) -> None:
        found = self.current.get(value, value)
        if given_placement(found) == wanted:
            return
        moved = builder.emit("composite_to_layout", [found], placed_type(wanted))
        moved.name_hint = value.name_hint
        self.current[value] = moved
