"""Stages of a compile: settings, graphs, and origins of ops across stages.

An op of the source is known by its position in the text, which the passes of the compiler copy to
what they make of it. Of an op that no pass made anything of alone, the values show where it went:
what reads its result afterwards, or makes it now, has it inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from ttcodegen.compilation import (
    ACTIVATION_TYPES,
    PIPELINES,
    WEIGHT_TYPES,
    no_block_floats,
    no_optimizer,
)
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.ttmetal.device_module import functions_of, is_meaning, launch_of
from ttcodegen.dialects.ttmetal.programs import RUN_PROGRAM
from ttcodegen.emitc.inlining import origins_of
from ttcodegen.explorer.graph import Graph, GraphNode, KeyValue
from ttcodegen.explorer.module_graphs import Visit, module_graphs
from ttcodegen.flatbuffer.system import other_architecture
from ttcodegen.foundation.diagnostics import CompileError, Source, set_source_offset, source_offset
from ttcodegen.foundation.messages import closest, did_you_mean
from ttcodegen.optimizer.overrides.reference_options import OPTIONS as OVERRIDE_OPTIONS
from ttcodegen.project.manifest import Node
from ttcodegen.systems.cards import NAMES, machine
from ttcodegen.systems.description import ARCHITECTURES, SystemDescription
from ttcodegen.transforms.ttnn.pipelines import TTNN_OPTIONS, optimization_level

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Operation
    from xdsl.passes import ModulePass

_Form = tuple[str, int, tuple["Attribute", ...]]
"""Op by name, operand count and properties."""
Places = frozenset[int]
"""Source ops, by text offset (or number, without text)."""
NOWHERE: Places = frozenset()


def number_without_text(operations: Iterable[Operation], source: Source) -> None:
    """Numbers the ops of a module in bytecode, which have no text offsets."""
    if source.text:
        return
    number = 0
    for top in operations:
        for op in top.walk():
            number += 1
            if source_offset(op) is None:
                set_source_offset(op, number)


@dataclass
class _Flow:
    """Def-use relation of the ops of a module, by position."""

    readers: dict[int, dict[int, None]] = field(default_factory=dict[int, dict[int, None]])
    """Users of each position's results."""
    read: dict[int, dict[int, None]] = field(default_factory=dict[int, dict[int, None]])
    """Producers of each position's operands."""
    forms: dict[int, list[_Form]] = field(default_factory=dict[int, list[_Form]])
    """Ops of each position."""

    @staticmethod
    def of(module: Operation) -> _Flow:
        """Def-use relation of the current module, in linear time."""
        flow = _Flow()
        for op in module.walk():
            place = source_offset(op)
            if place is None or operation_name(op) == "func.return":
                continue
            form = operation_name(op), len(op.operands), tuple(op.properties.values())
            flow.forms.setdefault(place, []).append(form)
            flow.readers.setdefault(place, {})
            read = flow.read.setdefault(place, {})
            for operand in op.operands:
                made = source_offset(operand)
                if made is not None and made != place and getattr(operand, "op", None) is not None:
                    read[made] = None
                    flow.readers.setdefault(made, {})[place] = None
        return flow

    @property
    def places(self) -> Iterable[int]:
        """Positions of the existing ops."""
        return self.readers.keys()


def _reached(start: int, edges: Mapping[int, Mapping[int, None]], ends: _Flow) -> dict[int, None]:
    """Nearest remaining ops, reached through removed ones."""
    found: dict[int, None] = {}
    seen = {start}
    waiting = [start]
    while waiting:
        for place in edges.get(waiting.pop(), ()):
            if place in seen:
                continue
            seen.add(place)
            if place in ends.readers:
                found[place] = None
            else:
                waiting.append(place)
    return found


class Origins:
    """Tracks the ops of a source through the passes of a compile."""

    def __init__(self) -> None:
        self._flow: _Flow | None = None
        self._became: dict[int, tuple[int, ...]] = {}
        self._known: dict[Operation, Places] = {}

    def begin(self, module: Operation, source: Source) -> None:
        """Records the module before the first pass."""
        if self._flow is None:
            number_without_text([module], source)
            self._flow = _Flow.of(module)

    def follow(self, module: Operation) -> None:
        """Records the module after a pass: removed ops and their replacements."""
        before, self._flow = self._flow, _Flow.of(module)
        if before is None:
            return
        for place in before.places:
            if place not in self._flow.readers:
                self._became[place] = tuple(self._part_of(place, before, self._flow))

    @staticmethod
    def _part_of(place: int, before: _Flow, after: _Flow) -> Iterable[int]:
        sources = _reached(place, before.read, after)
        found: dict[int, None] = {}
        for reader in _reached(place, before.readers, after):
            now = after.read[reader].keys()
            new = now - before.read.get(reader, {}).keys()
            if before.forms[reader] != after.forms[reader]:
                # The reader does now what this op did, if it reads what that read.
                new -= sources.keys()
            # Else another op makes now what this one made: a new one, or one that does the same.
            new = new or {each for each in now if after.forms[each] == before.forms[place]}
            found |= dict.fromkeys(sorted(new)) or {reader: None}
        # What only a return read is gone with what it reads.
        return found or sources

    def remember(self, op: Operation, places: Places) -> None:
        """Records the origins of an op, for ops derived from it."""
        self._known[op] = places

    def of(self, op: Operation) -> Places:
        """Origins of an op; empty for one that the compiler added."""
        known = self._known.get(op)
        if known is not None:
            return known
        if origins := origins_of(op):
            return NOWHERE.union(*map(self.of, origins))
        place = source_offset(op)
        return NOWHERE if place is None else frozenset((place,))

    def among(self, place: int, there: Callable[[int], bool]) -> Iterable[int]:
        """Descendants of a source op in a later stage: itself, or the ops that contain it.

        Args:
            place: the op.
            there: returns whether the stage has ops derived from a source op.
        """
        seen: set[int] = set()
        waiting = [place]
        while waiting:
            each = waiting.pop()
            if each in seen:
                continue
            seen.add(each)
            if there(each):
                yield each
            else:
                waiting.extend(reversed(self._became.get(each, ())))


SOURCE = "source"
"""Stage of the module itself."""
OPTIMIZED = "optimized"
LOWERED = "lowered"
"""Stage of a flatbuffer, whose ops are those of a run."""
EMITTED = "EmitC"
MADE_OF = "made of"
"""Node attribute with the source ops that it derives from."""
_MOST_NAMED = 12
"""Limit on the source ops that a node lists."""
_AFTER = {
    "ttnn-layout": "TTNN",
    "ttnn-optimize": OPTIMIZED,
    "ttmetal-share-kernels": "TTMetal",
    "convert-ttnn-to-emitc": EMITTED,
    "convert-ttmetal-to-emitc": EMITTED,
}
"""Stages by the passes that they follow."""
_BEFORE = {"ttnn-optimize": "TTNN"}
"""Stages by the passes that they precede; the optimizer's candidates have these names."""


@dataclass
class StageRecorder:
    """Pass instrument that records the graphs of each stage; the last one of a name counts."""

    source: Source
    elements: int = 16
    stages: dict[str, list[Graph]] = field(default_factory=dict[str, list[Graph]])
    made_of: dict[Node, Places] = field(default_factory=dict[Node, Places])
    """Source ops that each node derives from."""
    origins: Origins = field(default_factory=Origins)
    _layers: dict[Operation, str] = field(default_factory=dict["Operation", str])
    """Namespaces of the lowered stage's ops, for the C++ derived from them."""
    _meanings: dict[str, Places] = field(default_factory=dict[str, Places])
    """Origins of the ops of each program's reference function."""

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called before a pass runs."""
        self.origins.begin(module, self.source)
        self._keep(_BEFORE.get(pass_.name), module)
        if _AFTER.get(pass_.name) == EMITTED:
            # A flatbuffer has the same op names, but no origins.
            self._graphs(LOWERED, module, elements=0)

    def after(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called after a pass ran."""
        stage = _AFTER.get(pass_.name)
        if stage != EMITTED:
            self.origins.follow(module)
        self._keep(stage, module)

    def failed(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called if a pass refuses the module; previous stages are kept."""

    def visit(self, stage: str = "") -> Visit:
        """Visitor that records the origins of a stage's nodes, or of the source's."""

        def see(op: Operation, graph: str, node: GraphNode) -> None:
            name = stage_graph(stage, graph) if stage else graph
            if stage == LOWERED:
                self._layers[op] = node.namespace
            places = self.origins.of(op)
            if operation_name(op) == RUN_PROGRAM:
                places |= self._computed(op)
                self.origins.remember(op, places)
            if places:
                self.made_of[name, node.id] = places

        return see

    def _computed(self, launch: Operation) -> Places:
        """Source ops of the program that an op launches."""
        try:
            return self._meanings.get(launch_of(launch).meaning, NOWHERE)
        except ValueError:
            return NOWHERE

    def _graphs(self, stage: str, module: ModuleOp, elements: int) -> list[Graph]:
        self._meanings = {
            function.sym_name.data: NOWHERE.union(*map(self.origins.of, function.walk()))
            for function in functions_of(module)
            if is_meaning(function)
        }
        return module_graphs(
            module.body.block.ops,
            elements=elements,
            visit=self.visit(stage),
            layers=self._layers,
        )

    def _keep(self, stage: str | None, module: ModuleOp) -> None:
        if stage is not None:
            self.stages[stage] = in_stage(self._graphs(stage, module, self.elements), stage)

    def keep_lowered(self, graphs: Sequence[Graph]) -> None:
        """Replaces the lowered stage by the flatbuffer's graphs, whose ops are those of results."""
        # Keep the C++ last.
        emitted = self.stages.pop(EMITTED, None)
        self.stages[LOWERED] = in_stage(graphs, LOWERED)
        if emitted is not None:
            self.stages[EMITTED] = emitted

    def graphs(self) -> list[Graph]:
        """Graphs of all stages, in order."""
        return [graph for graphs in self.stages.values() for graph in graphs]

    def name_origins(self, source: Sequence[Graph]) -> None:
        """Adds the names of source nodes to the nodes of all stages."""
        for graphs in self.stages.values():
            self._name_origins(source, graphs)

    def _name_origins(self, source: Sequence[Graph], stage: Sequence[Graph]) -> None:
        there = [(graph.id, node.id) for graph in stage for node in graph.nodes]
        known = NOWHERE.union(*(self.made_of.get(each, NOWHERE) for each in there))
        names: dict[int, dict[str, None]] = {}
        for graph in source:
            for node in graph.nodes:
                for place in self.made_of.get((graph.id, node.id), NOWHERE):
                    for at in self.origins.among(place, known.__contains__):
                        names.setdefault(at, {})[node.id] = None
        for graph in stage:
            for node in graph.nodes:
                places = sorted(self.made_of.get((graph.id, node.id), NOWHERE))
                found = list(dict.fromkeys(n for place in places for n in names.get(place, ())))
                if found:
                    more = ["…"] if len(found) > _MOST_NAMED else []
                    text = ", ".join([*found[:_MOST_NAMED], *more])
                    node.attrs.append(KeyValue(MADE_OF, text))


def in_stage(graphs: Sequence[Graph], stage: str) -> list[Graph]:
    """Prefixes graph ids with the stage; node ids are unchanged."""
    for graph in graphs:
        graph.id = stage_graph(stage, graph.id)
        for node in graph.nodes:
            node.subgraphIds = [stage_graph(stage, each) for each in node.subgraphIds]
    return list(graphs)


def graph_of_stage(graphs: Sequence[Graph], stage: str) -> str:
    """Id of the main graph of a stage: `source` is the first of all.

    It has the same name as the source's, or is the largest one that is no subgraph. Raises:
    CompileError: if there is no such stage.
    """
    if stage.lower() == SOURCE and graphs:
        return graphs[0].id
    found = [graph for graph in graphs if graph.id.lower().startswith(f"{stage.lower()}: ")]
    if not found:
        stages = dict.fromkeys(graph.id.partition(": ")[0] for graph in graphs if ": " in graph.id)
        known = ", ".join([SOURCE, *(each.lower() for each in stages)])
        raise CompileError(f"the model has no stage '{stage}'", remedy=f"there are {known}")
    inner = {each for graph in found for node in graph.nodes for each in node.subgraphIds}

    def rank(graph: Graph) -> tuple[bool, bool, bool, int]:
        function = graph.id.rpartition(":")[2].strip()
        prepares = function.startswith("prepare_")
        return function == graphs[0].id, graph.id not in inner, not prepares, len(graph.nodes)

    return max(found, key=rank).id


def stage_graph(stage: str, name: str) -> str:
    """Id of a function's graph in a stage."""
    return f"{stage}: {name}"


_MOST_ELEMENTS = 1024
_PIPELINE_OPTIONS = ("optimization-level", "enable-optimizer", "memory-layout-analysis-enabled")


@dataclass(frozen=True)
class Settings:
    """Settings of a model's display, compile and run."""

    target: str = "ttnn"
    arch: str = ""
    """Architecture; by default the module's, or wormhole_b0."""
    optimize: int = 2
    """Optimizer level, for the target ttnn only."""
    weights: str = ""
    activations: str = ""
    seed: int = 0
    """Seed of a run's inputs."""
    const_element_count_limit: int = 16
    """Limit on the listed elements of a constant, a setting of Model Explorer's page as well."""
    stages: bool | None = None
    """True to add graphs of a compile's stages; None for small models only."""
    artifact_dir: str = ""
    """Folder of results; empty for a temporary one."""
    override_options: str = ""
    """Overrides as options of tt-mlir."""
    system: SystemDescription | None = None
    """System; None for the architecture's default."""


def _of(kind: type) -> Callable[[object], bool]:
    # A boolean is an integer to Python, and none to people.
    return lambda value: isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _between(least: int, most: int) -> Callable[[object], bool]:
    return lambda value: type(value) is int and least <= value <= most


_RULES: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "target": (
        lambda value: isinstance(value, str) and value in PIPELINES,
        f"one of {', '.join(PIPELINES)}",
    ),
    "arch": (
        lambda value: isinstance(value, str) and value in ("", *ARCHITECTURES),
        f"one of {', '.join(ARCHITECTURES)}",
    ),
    "machine": (_of(str), f"one of {', '.join(NAMES)}"),
    "optimize": (_between(0, 2), "0, 1 or 2"),
    "weights": (lambda value: value in ("", *WEIGHT_TYPES), " or ".join(WEIGHT_TYPES)),
    "activations": (
        lambda value: value in ("", *ACTIVATION_TYPES),
        " or ".join(ACTIVATION_TYPES),
    ),
    "seed": (_between(0, 2**32 - 1), "a number that is not negative"),
    "const_element_count_limit": (_between(0, _MOST_ELEMENTS), f"0 to {_MOST_ELEMENTS}"),
    "stages": (_of(bool), "true or false"),
    "artifact_dir": (_of(str), "the path of a folder"),
}

_KNOWN = frozenset(
    {*_RULES, "ttir_to_ttnn_options", "left", "right", "node", "function", "overrides"}
)
"""Names of the settings of all commands."""
_NUMBERS = ("optimize", "seed", "const_element_count_limit")


def read_settings(given: Mapping[str, Any], default: Settings) -> Settings:
    """Settings of a command; other settings of the page, such as fonts, are ignored.

    Raises:
        CompileError: if a value is invalid, or would have no effect.
    """
    for name in sorted(given.keys() - _KNOWN):
        if (close := closest(name, _KNOWN, 0.85)) is not None:
            raise CompileError(f"there is no setting '{name}'", remedy=f"did you mean '{close}'?")
    found: dict[str, Any] = {}
    for name, (is_right, expected) in _RULES.items():
        if name not in given:
            continue
        value = given[name]
        # Model Explorer's page sends numbers as texts.
        if name in _NUMBERS and isinstance(value, str) and value.isdecimal():
            value = int(value)
        if not is_right(value):
            raise CompileError(f"the setting '{name}' is {given[name]!r}", remedy=expected)
        found[name] = value
    settings = _on_machine(default, found.pop("machine", ""), found)
    options = given.get("ttir_to_ttnn_options")
    if settings.target != "ttnn" and (found.get("optimize") or options):
        name = "optimize" if found.get("optimize") else "ttir_to_ttnn_options"
        raise CompileError(
            no_optimizer(f"the setting '{name}'", f"'{settings.target}'"),
            remedy="leave it out, or choose the target ttnn",
        )
    if settings.target != "ttnn" and found.get("activations"):
        raise CompileError(no_block_floats("the setting 'activations'", f"'{settings.target}'"))
    return settings if options is None else _with_pipeline_options(settings, options)


def _on_machine(default: Settings, named: str, found: Mapping[str, Any]) -> Settings:
    """Updated settings, with the system of a machine if one is given."""
    settings = replace(default, **found)
    if not named:
        # An architecture overrides a system of another one.
        other = settings.system is not None and settings.arch not in ("", settings.system.arch)
        return replace(settings, system=None) if other else settings
    known = machine(named)
    if known is None:
        raise CompileError(
            f"the setting 'machine' is {named!r}{did_you_mean(named, NAMES)}",
            remedy=f"one of {', '.join(NAMES)}",
        )
    if settings.arch not in ("", known.arch):
        raise other_architecture(known.system(), settings.arch)
    return replace(settings, system=known.system())


@dataclass
class _PipelineOptions:
    """Options of tt-mlir's pipeline as given."""

    values: dict[str, str] = field(default_factory=dict[str, str])
    overrides: list[str] = field(default_factory=list[str])


def _with_pipeline_options(settings: Settings, options: object) -> Settings:
    """Settings with `ttir_to_ttnn_options`, a list of tt-mlir's pipeline options."""
    texts = cast("list[Any]", options) if isinstance(options, list) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise CompileError("'ttir_to_ttnn_options' is no list of texts")
    read = _PipelineOptions()
    for option in cast("list[str]", texts):
        name, _, value = option.lstrip("-").partition("=")
        if name in OVERRIDE_OPTIONS:
            read.overrides.append(option)
        elif name in _PIPELINE_OPTIONS:
            read.values[name] = value or "true"
        else:
            known = (*_PIPELINE_OPTIONS, *OVERRIDE_OPTIONS)
            close = closest(name, known)
            raise CompileError(
                f"the pipeline has no option '{name}'",
                remedy=f"did you mean '{close}'?" if close else f"there are {', '.join(known)}",
            )
    level = _level(read, settings.optimize)
    return replace(settings, optimize=level, override_options=" ".join(read.overrides))


def _level(read: _PipelineOptions, default: int) -> int:
    """Optimizer level of the pipeline's options, as in `ttcodegen-opt`."""
    values = read.values
    given = values.get("optimization-level")
    if given is not None and given not in ("0", "1", "2"):
        raise CompileError(f"'optimization-level' is '{given}'", remedy="0, 1 or 2")
    flags: dict[str, bool] = {}
    for name in _PIPELINE_OPTIONS[1:]:
        value = values.get(name)
        if value not in (None, "true", "false", "1", "0"):
            raise CompileError(f"'{name}' is '{value}'", remedy="true or false")
        if value is not None:
            flags[name] = value in ("true", "1")
    if given is None:
        # Without a level, enable-optimizer decides.
        given = 0 if "enable-optimizer" in flags else default
    decisions = {each.lstrip("-").partition("=")[0]: each for each in read.overrides}
    defaults = {option.name: option.default for option in TTNN_OPTIONS}
    return optimization_level({**defaults, **flags, **decisions, "optimization-level": int(given)})
