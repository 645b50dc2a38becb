"""The stages of a compile as graphs, with what their nodes were made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.ttmetal.device_module import functions_of, is_meaning, launch_of
from ttcodegen.dialects.ttmetal.programs import RUN_PROGRAM
from ttcodegen.explorer.graph import Graph, GraphNode, KeyValue
from ttcodegen.explorer.module_graphs import Visit, module_graphs
from ttcodegen.explorer.origins import NOWHERE, Node, Origins, Places
from ttcodegen.foundation.diagnostics import CompileError, Source

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation
    from xdsl.passes import ModulePass

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
