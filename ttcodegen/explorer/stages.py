"""Stages of a compile: the options it takes, its graphs, and origins of ops across them.

An op of the source is known by its position in the text, which the passes of the compiler copy to
what they make of it. Of an op that no pass made anything of alone, the values show where it went:
what reads its result afterwards, or makes it now, has it inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from ttcodegen.compilation import PIPELINES, WEIGHT_TYPES
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.ttmetal.device_module import functions_of, is_meaning, launch_of
from ttcodegen.dialects.ttmetal.programs import RUN_PROGRAM
from ttcodegen.emitc.inlining import origins_of
from ttcodegen.explorer.graph import Graph, GraphNode, KeyValue
from ttcodegen.explorer.module_graphs import Visit, module_graphs
from ttcodegen.flatbuffer.system import other_architecture
from ttcodegen.foundation.diagnostics import CompileError, Source, set_source_offset, source_offset
from ttcodegen.foundation.messages import closest, did_you_mean
from ttcodegen.optimizer.overrides.overrides import OPTIONS as OVERRIDE_OPTIONS
from ttcodegen.systems.cards import NAMES, machine
from ttcodegen.systems.description import ARCHITECTURES, SystemDescription
from ttcodegen.transforms.ttnn.pipelines import TTNN_OPTIONS, optimization_level

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Operation
    from xdsl.passes import ModulePass

Node = tuple[str, str]
"""A graph and a node of it."""
_Form = tuple[str, int, tuple["Attribute", ...]]
"""An op by its name, how many operands it has, and its properties."""
Places = frozenset[int]
"""Ops of the source, by their offsets in the text (or their numbers, where it has no text)."""
NOWHERE: Places = frozenset()


def number_without_text(operations: Iterable[Operation], source: Source) -> None:
    """Gives the ops of a module in MLIR's binary form, which has no text, numbers for places."""
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
    """Of each position, what reads what it makes."""
    read: dict[int, dict[int, None]] = field(default_factory=dict[int, dict[int, None]])
    """Of each position, what makes what it reads."""
    forms: dict[int, list[_Form]] = field(default_factory=dict[int, list[_Form]])
    """Of each position, its ops."""

    @staticmethod
    def of(module: Operation) -> _Flow:
        """The flow of a module as it is now. Linear in the ops."""
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
        """The ops that there are."""
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
    """Follows the ops of a source through the passes of a compile."""

    def __init__(self) -> None:
        self._flow: _Flow | None = None
        self._became: dict[int, tuple[int, ...]] = {}
        self._known: dict[Operation, Places] = {}

    def begin(self, module: Operation, source: Source) -> None:
        """Looks at the module before the first pass."""
        if self._flow is None:
            number_without_text([module], source)
            self._flow = _Flow.of(module)

    def follow(self, module: Operation) -> None:
        """Looks at the module after a pass: what is gone, and what it is part of now."""
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
        """Takes note of what an op was made of, for those that are made of it in turn."""
        self._known[op] = places

    def of(self, op: Operation) -> Places:
        """Origins of an op; none for one that the compiler added without a source."""
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
            there: whether the stage has what was made of an op.
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
"""Stage name of the graphs of the module itself."""
OPTIMIZED = "optimized"
LOWERED = "lowered"
"""The stage that a flatbuffer has: its ops are those of a run."""
EMITTED = "EmitC"
MADE_OF = "made of"
"""The attribute of a node of a stage with the ops of the source that it was made of."""
_MOST_NAMED = 12
"""Ops of the source that a node names."""
_AFTER = {
    "ttnn-layout": "TTNN",
    "ttnn-optimize": OPTIMIZED,
    "ttmetal-share-kernels": "TTMetal",
    "convert-ttnn-to-emitc": EMITTED,
    "convert-ttmetal-to-emitc": EMITTED,
}
"""The stages of a compile, by the passes that they come after."""
_BEFORE = {"ttnn-optimize": "TTNN"}
"""And those that come before a pass: what the optimizer chooses from has these names."""


@dataclass
class StageRecorder:
    """Keeps the graphs of each stage while a module is compiled; a later one of a name counts."""

    source: Source
    elements: int = 16
    stages: dict[str, list[Graph]] = field(default_factory=dict[str, list[Graph]])
    made_of: dict[Node, Places] = field(default_factory=dict[Node, Places])
    """Of the nodes of all graphs, the ops of the source that they were made of."""
    origins: Origins = field(default_factory=Origins)
    _layers: dict[Operation, str] = field(default_factory=dict["Operation", str])
    """The namespaces of the ops of the lowered stage, which those of the C++ are made for."""
    _meanings: dict[str, Places] = field(default_factory=dict[str, Places])
    """By function that says what a program computes, what its ops were made of."""

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called before a pass runs."""
        self.origins.begin(module, self.source)
        self._keep(_BEFORE.get(pass_.name), module)
        if _AFTER.get(pass_.name) == EMITTED:
            # A flatbuffer has the same ops by the same names, and does not say where they are from.
            self._graphs(LOWERED, module, elements=0)

    def after(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called after a pass ran."""
        stage = _AFTER.get(pass_.name)
        if stage != EMITTED:
            self.origins.follow(module)
        self._keep(stage, module)

    def failed(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called if a pass refuses the module: the stages before it are kept."""

    def visit(self, stage: str = "") -> Visit:
        """Takes note of what the nodes of a stage were made of, or of those of the source."""

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
        """The stage that is run: as a flatbuffer has it, whose ops are those of results."""
        # The C++ comes after it.
        emitted = self.stages.pop(EMITTED, None)
        self.stages[LOWERED] = in_stage(graphs, LOWERED)
        if emitted is not None:
            self.stages[EMITTED] = emitted

    def graphs(self) -> list[Graph]:
        """The graphs of all stages, in their order."""
        return [graph for graphs in self.stages.values() for graph in graphs]

    def name_origins(self, source: Sequence[Graph]) -> None:
        """Adds to the nodes of all stages which nodes of the source they were made of."""
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
    """The graphs under names that say the stage. Nodes keep theirs: the same op has one name."""
    for graph in graphs:
        graph.id = stage_graph(stage, graph.id)
        for node in graph.nodes:
            node.subgraphIds = [stage_graph(stage, each) for each in node.subgraphIds]
    return list(graphs)


def graph_of_stage(graphs: Sequence[Graph], stage: str) -> str:
    """The id of the graph of a stage that has what the model computes: `source` is the first one of
    all. It has the name of that, or is the largest one that no other leads to.

    Raises:
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
    """The id of the graph of a function in a stage."""
    return f"{stage}: {name}"


_MOST_ELEMENTS = 1024
_PIPELINE_OPTIONS = ("optimization-level", "enable-optimizer", "memory-layout-analysis-enabled")


@dataclass(frozen=True)
class Settings:
    """Settings of a model's display, compile and run."""

    target: str = "ttnn"
    arch: str = ""
    """Empty for that of the module, or wormhole_b0."""
    optimize: int = 2
    """The level of the optimizer, which decides on calls of ttnn: no other target has one."""
    weights: str = ""
    seed: int = 0
    """Of the inputs of a run."""
    const_element_count_limit: int = 16
    """Largest number of listed elements of a constant; the page of Model Explorer has it, too."""
    stages: bool | None = None
    """True if there are graphs of the stages of a compile; None for small models only."""
    artifact_dir: str = ""
    """Folder of results; empty for a folder that ends with the session."""
    override_options: str = ""
    """Overrides as options of tt-mlir."""
    system: SystemDescription | None = None
    """The system; None for the default one of the architecture."""


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
    "seed": (_between(0, 2**32 - 1), "a number that is not negative"),
    "const_element_count_limit": (_between(0, _MOST_ELEMENTS), f"0 to {_MOST_ELEMENTS}"),
    "stages": (_of(bool), "true or false"),
    "artifact_dir": (_of(str), "the path of a folder"),
}

_NUMBERS = ("optimize", "seed", "const_element_count_limit")


def read_settings(given: Mapping[str, Any], default: Settings) -> Settings:
    """The settings of a command. What the page sends for itself (fonts and the like) is no concern
    of ours.

    Raises:
        CompileError: if a value is none that the setting can have.
    """
    found: dict[str, Any] = {}
    for name, (is_right, expected) in _RULES.items():
        if name not in given:
            continue
        value = given[name]
        # The fields of Model Explorer's own page are texts.
        if name in _NUMBERS and isinstance(value, str) and value.isdecimal():
            value = int(value)
        if not is_right(value):
            raise CompileError(f"the setting '{name}' is {given[name]!r}", remedy=expected)
        found[name] = value
    settings = _on_machine(default, found.pop("machine", ""), found)
    options = given.get("ttir_to_ttnn_options")
    return settings if options is None else _with_pipeline_options(settings, options)


def _on_machine(default: Settings, named: str, found: Mapping[str, Any]) -> Settings:
    """The settings with what was found, and with the system of a machine if one is named."""
    settings = replace(default, **found)
    if not named:
        # An architecture takes the place of a system of another one.
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
    """Options of tt-mlir's pipeline as they were given."""

    values: dict[str, str] = field(default_factory=dict[str, str])
    overrides: list[str] = field(default_factory=list[str])


def _with_pipeline_options(settings: Settings, options: object) -> Settings:
    """The settings with `ttir_to_ttnn_options`, a list of options of tt-mlir's pipeline."""
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
    """The level that the pipeline's options come to, as in `ttcodegen-opt`."""
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
        # That the optimizer is on or off takes the place of a level that was not given.
        given = 0 if "enable-optimizer" in flags else default
    decisions = {each.lstrip("-").partition("=")[0]: each for each in read.overrides}
    defaults = {option.name: option.default for option in TTNN_OPTIONS}
    return optimization_level({**defaults, **flags, **decisions, "optimization-level": int(given)})
