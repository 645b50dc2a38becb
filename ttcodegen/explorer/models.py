"""What a path holds, as graphs: a module, a flatbuffer or a project; the stages of a compile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.explorer.code_lines import (
    CodeLines,
    Node,
    call_names,
    changed_lines,
    changed_nodes,
    formatted_lines,
    printed_lines,
)
from ttcodegen.explorer.graph import Graph, GraphNodeStyle, KeyValue
from ttcodegen.explorer.module_graphs import module_graphs
from ttcodegen.frontends import frontend_of
from ttcodegen.ops.context import load_dialects
from ttcodegen.parsing import parse_operations
from ttcodegen.project.edits import edited_files
from ttcodegen.project.pristine import read_pristine
from ttcodegen.transforms.pass_runner import PassRunner

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation
    from xdsl.passes import ModulePass

STAGES_UP_TO = 1000
"""A module of more ops is compiled for its stages only where that is asked for: it should open
without waiting."""
CODE = "C++"
"""The attribute of a node with its lines in the C++."""
EDITED = "edited"
"""The attribute of a node of a project whose lines a person has changed."""
EDITED_STYLE = GraphNodeStyle(backgroundColor="#fff3cd", borderColor="#b8860b")
SOURCE = "source"
"""What the graphs of the module itself go by among the stages."""
OPTIMIZED = "optimized"
LOWERED = "lowered"
"""The stage that a flatbuffer has: its ops are those of a run."""
_AFTER = {
    "ttnn-layout": "TTNN",
    "ttnn-optimize": OPTIMIZED,
    "convert-ttir-to-ttmetal": "TTMetal",
    "convert-ttnn-to-emitc": "EmitC",
    "convert-ttmetal-to-emitc": "EmitC",
}
"""The stages of a compile, by the passes that they come after."""
_TO_CODE = "convert-ttnn-to-emitc"
_BEFORE = {"ttnn-optimize": "TTNN"}
"""And those that come before a pass: what the optimizer chooses from has these names."""


@dataclass
class StageRecorder:
    """Keeps the graphs of each stage while a module is compiled; a later one of a name counts."""

    elements: int = 16
    stages: dict[str, list[Graph]] = field(default_factory=dict[str, list[Graph]])
    _nodes: dict[Operation, Node] = field(default_factory=lambda: {})
    _printed: dict[str, tuple[str, list[tuple[Node, int, int]]]] = field(default_factory=lambda: {})
    """The C++ of each file, and the lines of its nodes."""

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called before a pass runs."""
        self._keep(_BEFORE.get(pass_.name), module)
        if pass_.name == _TO_CODE:
            self._nodes = call_names(module)

    def after(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called after a pass ran."""
        self._keep(_AFTER.get(pass_.name), module)
        if pass_.name == _TO_CODE:
            self._printed = printed_lines(module, self._nodes)

    def failed(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called if a pass refuses the module: the stages before it are kept."""

    def _keep(self, stage: str | None, module: ModuleOp) -> None:
        if stage is not None:
            self.stages[stage] = in_stage(
                module_graphs(module.body.block.ops, elements=self.elements), stage
            )

    def keep_flatbuffer(self, data: bytes) -> None:
        """The stage that is run: as a file has it, whose ops are those of results."""
        lowered = in_stage(flatbuffer_graphs(data, elements=self.elements), LOWERED)
        # The C++ comes after it.
        emitted = self.stages.pop("EmitC", None)
        self.stages[LOWERED] = lowered
        if emitted is not None:
            self.stages["EmitC"] = emitted

    def code(self, compiled: CompiledModule) -> Code:
        """The C++ as it is written, and where the ops stand in it."""
        from ttcodegen.project.rendering import project_files

        files = project_files(compiled, formatted=True)
        texts = {path: files[path] for path in self._printed if path in files}
        return Code(
            {path: text for path, text in texts.items() if isinstance(text, str)},
            formatted_lines(self._printed, files),
        )

    def graphs(self) -> list[Graph]:
        """The graphs of all stages, in their order."""
        return [graph for graphs in self.stages.values() for graph in graphs]


@dataclass(frozen=True)
class Code:
    """The C++ of a module or a project."""

    files: dict[str, str]
    lines: dict[Node, list[CodeLines]]
    """Where the ops stand; of a project, those that were changed, as they were generated."""
    changed: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """The lines of each file that a person has changed or written."""

    def describe(self, graphs: Sequence[Graph], key: str) -> None:
        """Adds the lines to the nodes of graphs, those of all stages."""
        for graph in graphs:
            function = graph.id.partition(": ")[2] or graph.id
            for node in graph.nodes:
                lines = self.lines.get((function, node.id))
                if lines:
                    node.attrs.append(KeyValue(key, ", ".join(map(str, lines))))


def code_of(path: Path, options: CompileOptions) -> Code:
    """The C++ of what lies at a path; raises CompileError if there is none."""
    if path.is_dir():
        before = read_pristine(path) or {}
        graphs = flatbuffer_graphs(flatbuffer_of(path).read_bytes(), elements=0)
        sources = [each for each in before if each.startswith("src/") and each.endswith(".cpp")]
        files = {
            each: path.joinpath(each).read_text("utf-8", "replace")
            for each in sources
            if path.joinpath(each).is_file()
        }
        changed = {
            each: sorted(changed_lines(before[each], text)[1]) for each, text in files.items()
        }
        return Code(files, changed_nodes(path, graphs), changed)
    if is_flatbuffer(path):
        raise CompileError(
            f"'{path.name}' has no C++", remedy="give the module or the folder of the project"
        )
    compiled, recorder = compile_stages(Source.read(str(path)), options, elements=0)
    return recorder.code(compiled)


def in_stage(graphs: Sequence[Graph], stage: str) -> list[Graph]:
    """The graphs under names that say the stage. Nodes keep theirs: the same op has one name."""
    for graph in graphs:
        graph.id = stage_graph(stage, graph.id)
        for node in graph.nodes:
            node.subgraphIds = [stage_graph(stage, each) for each in node.subgraphIds]
    return list(graphs)


def graph_of_stage(graphs: Sequence[Graph], stage: str) -> str:
    """The id of the largest graph of a stage: `source` is the first one of all.

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
    return max(found, key=lambda graph: len(graph.nodes)).id


def stage_graph(stage: str, name: str) -> str:
    """The id of the graph of a function in a stage."""
    return f"{stage}: {name}"


def is_flatbuffer(path: Path) -> bool:
    """Whether a file is a `.ttnn` or `.ttm` file, by its content."""
    with path.open("rb") as file:
        head = file.read(8)
    from ttcodegen.flatbuffer.schema import load_schema
    from ttcodegen.flatbuffer.ttm_reader import is_ttm

    return is_ttm(head) or head[4:8] == load_schema("ttnn.fbs").identifier.encode("ascii")


def flatbuffer_of(project: Path) -> Path:
    """The flatbuffer of a project's folder; raises CompileError if ttcodegen wrote none there."""
    from ttcodegen.rt.commands.project import flatbuffer_of_project

    found = flatbuffer_of_project(project)
    if found is None:
        raise CompileError(
            f"'{project}' is no project of ttcodegen with a flatbuffer",
            remedy="give the folder that ttcodegen -o wrote, a module or a flatbuffer",
        )
    return found


def flatbuffer_graphs(data: bytes, *, elements: int = 16) -> list[Graph]:
    """The graphs of a `.ttnn` or `.ttm` file; raises CompileError if it is neither, or damaged."""
    from ttcodegen.flatbuffer.ttm_reader import is_ttm, read_ttm

    if is_ttm(data):
        from ttcodegen.explorer.device_graphs import device_graphs

        return device_graphs(read_ttm(data))
    from ttcodegen.flatbuffer.module import module_of
    from ttcodegen.flatbuffer.reader import read_ttnn

    return module_graphs(module_of(read_ttnn(data)).body.block.ops, elements=elements)


def source_graphs(source: Source, *, elements: int = 16) -> list[Graph]:
    """The graphs of a module as it is written; of a dialect that a front end reads, those of the
    TTIR that it means.

    Raises:
        CompileError: if the text is no module.
    """
    diagnostics = Diagnostics()
    frontend = frontend_of(source)
    if frontend is not None:
        operations: Any = frontend.read(source, diagnostics).body.block.ops
    else:
        operations = parse_operations(source, diagnostics)
    graphs = module_graphs(operations, elements=elements, source=source)
    if not graphs:
        raise CompileError("the module has no functions", remedy="give a module of functions")
    return graphs


def project_graphs(out: Path, *, elements: int = 16) -> list[Graph]:
    """The graphs of a project: those of its flatbuffer, and what was edited in it since."""
    graphs = flatbuffer_graphs(flatbuffer_of(out).read_bytes(), elements=elements)
    edited = edited_files(out)
    changed = changed_nodes(out, graphs) if edited else {}
    Code({}, changed).describe(graphs, EDITED)
    for graph in graphs:
        graph.describe(project=out.name, edited_files=", ".join(edited) or "none")
        names = [node for function, node in changed if function == graph.id]
        if names:
            graph.describe(edited_ops=", ".join(names))
        for node in graph.nodes:
            if (graph.id, node.id) in changed:
                node.style = EDITED_STYLE
    return graphs


def compile_stages(
    source: Source,
    options: CompileOptions,
    *,
    elements: int = 16,
    report: Callable[[str], None] = lambda _: None,
) -> tuple[CompiledModule, StageRecorder]:
    """Compiles a module, and keeps what it is at each stage.

    Args:
        source: the text.
        options: as of `ttcodegen.compilation.compile_module`.
        elements: how many elements of a constant graphs list.
        report: is given what the compiler warns of.

    Raises:
        CompileError: as `compile_module`.
    """
    recorder = StageRecorder(elements)
    runner = PassRunner(load_dialects(), instruments=[recorder])
    diagnostics = Diagnostics()
    compiled = compile_module(source, options, runner, diagnostics)
    for warning in diagnostics.warnings:
        report(warning.render(source))
    if compiled.flatbuffer:
        recorder.keep_flatbuffer(compiled.flatbuffer)
    return compiled, recorder


def model_graphs(
    path: Path, options: CompileOptions, *, elements: int = 16, stages: bool | None = None
) -> list[Graph]:
    """The graphs of what lies at a path.

    Args:
        path: a module, a flatbuffer or the folder of a project.
        options: how a module is compiled for its stages.
        elements: how many elements of a constant are listed.
        stages: whether there are graphs of the stages of a compile; by default those of modules
            that are compiled soon. If it fails, the graphs of the source say why.

    Raises:
        CompileError: if there is no model, or it is wrong.
    """
    if path.is_dir():
        return project_graphs(path, elements=elements)
    if is_flatbuffer(path):
        return flatbuffer_graphs(path.read_bytes(), elements=elements)
    source = Source.read(str(path))
    graphs = source_graphs(source, elements=elements)
    if stages is None:
        stages = sum(len(graph.nodes) for graph in graphs) <= STAGES_UP_TO and can_compile(graphs)
    if not stages:
        return graphs
    try:
        compiled, recorder = compile_stages(source, options, elements=elements)
        graphs += recorder.graphs()
        recorder.code(compiled).describe(graphs, CODE)
        return graphs
    except CompileError as error:
        for graph in graphs:
            graph.describe(compile_error=error.render(source))
        return graphs


def can_compile(graphs: Sequence[Graph]) -> bool:
    """Whether a module has ops that the compiler begins with, and not those of its later stages."""
    ops = [node.attribute("op") or "" for graph in graphs for node in graph.nodes]
    later = ("emitc.", "ttkernel.", "d2m.")
    return any(op.startswith(("ttir.", "ttnn.")) for op in ops) and not any(
        op.startswith(later) or (op.startswith("ttmetal.") and op != "ttmetal.dispatch")
        for op in ops
    )
