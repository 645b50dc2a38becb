"""Stages of a compile as graphs, and origins of their ops across the stages.

An op of the source is known by its position in the text, which the passes of the compiler copy to
what they make of it. Of an op that no pass made anything of alone, the values show where it went:
what reads its result afterwards, or makes it now, has it inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.ttmetal.device_module import functions_of, is_meaning, launch_of
from ttcodegen.dialects.ttmetal.programs import RUN_PROGRAM
from ttcodegen.emitc.inlining import origins_of
from ttcodegen.explorer.graph import Graph, GraphNode, KeyValue
from ttcodegen.explorer.module_graphs import Visit, module_graphs
from ttcodegen.foundation.diagnostics import CompileError, Source, set_source_offset, source_offset

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
