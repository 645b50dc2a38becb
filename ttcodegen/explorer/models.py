"""What a path holds, as graphs: a module, a flatbuffer or a project; the stages of a compile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.explorer.code_lines import CodeLines, Edits, Node, edited, known_lines
from ttcodegen.explorer.graph import Graph, GraphNodeStyle, KeyValue
from ttcodegen.explorer.module_graphs import LINE, module_graphs
from ttcodegen.frontends import frontend_of
from ttcodegen.ops.context import load_dialects
from ttcodegen.parsing import parse_operations
from ttcodegen.project.edits import edited_files
from ttcodegen.project.op_lines import read_lines
from ttcodegen.project.pristine import read_pristine
from ttcodegen.transforms.pass_runner import PassRunner

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from ttcodegen.emission.op_lines import OpLines

STAGES_UP_TO = 1000
"""A module of more ops is compiled for its stages only where that is asked for: it should open
without waiting."""
CODE = "C++"
"""The attribute of a node with its lines in the C++."""
EDITED = "edited"
"""The attribute of a node of a project whose lines were changed, which says by whom."""
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
_BEFORE = {"ttnn-optimize": "TTNN"}
"""And those that come before a pass: what the optimizer chooses from has these names."""


@dataclass
class StageRecorder:
    """Keeps the graphs of each stage while a module is compiled; a later one of a name counts."""

    elements: int = 16
    stages: dict[str, list[Graph]] = field(default_factory=dict[str, list[Graph]])

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called before a pass runs."""
        self._keep(_BEFORE.get(pass_.name), module)

    def after(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called after a pass ran."""
        self._keep(_AFTER.get(pass_.name), module)

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

    def graphs(self) -> list[Graph]:
        """The graphs of all stages, in their order."""
        return [graph for graphs in self.stages.values() for graph in graphs]


@dataclass(frozen=True)
class Code:
    """The C++ of a module or a project."""

    files: dict[str, str]
    lines: dict[Node, list[CodeLines]]
    """Where the ops stand."""
    source_lines: dict[int, list[CodeLines]] = field(default_factory=dict[int, list[CodeLines]])
    """Where what was made of the lines of the source stands, counted from 1."""
    written: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """The lines of each file that a person has changed or written."""
    changed: list[Node] = field(default_factory=list[Node])
    """The ops whose lines a person has changed."""

    def describe(self, graphs: Iterable[Graph]) -> None:
        """Adds the lines to the nodes of graphs, those of all stages."""
        for graph in graphs:
            stage, _, name = graph.id.rpartition(": ")
            for node in graph.nodes:
                lines = self.lines.get((name, node.id))
                if not stage and (line := node.attribute(LINE)):
                    lines = self.source_lines.get(int(line), lines)
                if lines:
                    node.attrs.append(KeyValue(CODE, ", ".join(map(str, lines))))


def code_of_module(compiled: CompiledModule, source: Source) -> Code:
    """The C++ of a module as it is written."""
    from ttcodegen.project.op_lines import formatted_lines
    from ttcodegen.project.rendering import project_files

    files = project_files(compiled, formatted=True)
    found = list(formatted_lines(compiled.lines, compiled.files, files))
    by_line: dict[int, list[OpLines]] = {}
    for each in found:
        if each.op.offset is not None:
            by_line.setdefault(source.location(each.op.offset).line, []).append(each)
    texts = {each.path: files[each.path] for each in found}
    return Code(
        {path: text for path, text in texts.items() if isinstance(text, str)},
        known_lines(found),
        {
            line: [place for places in known_lines(lines).values() for place in places]
            for line, lines in by_line.items()
        },
    )


def code_of_project(out: Path) -> Code:
    """The C++ of a project as it is, with its edits."""
    before = read_pristine(out) or {}
    files = {
        path: out.joinpath(path).read_text("utf-8", "replace")
        for path in before
        if path.startswith(("src/", "kernels/"))
        and path.endswith((".cpp", ".hpp"))
        and out.joinpath(path).is_file()
    }
    edits = {path: Edits(before[path], text) for path, text in files.items()}
    lines, changed = edited(read_lines(out), edits)
    written = {path: each.written for path, each in edits.items()}
    return Code(files, lines, written=written, changed=changed)


def code_of(path: Path, options: CompileOptions) -> Code:
    """The C++ of what lies at a path; raises CompileError if there is none."""
    if path.is_dir():
        flatbuffer_of(path)
        return code_of_project(path)
    if is_flatbuffer(path):
        raise CompileError(
            f"'{path.name}' has no C++", remedy="give the module or the folder of the project"
        )
    source = Source.read(str(path))
    return code_of_module(compile_stages(source, options, elements=0)[0], source)


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
    code = code_of_project(out)
    code.describe(graphs)
    changed = frozenset(code.changed)
    for graph in graphs:
        graph.describe(project=out.name, edited_files=", ".join(edited_files(out)) or "none")
        found = [node for node in graph.nodes if (graph.id, node.id) in changed]
        if found:
            graph.describe(edited_ops=", ".join(node.id for node in found))
        for node in found:
            node.attrs.append(KeyValue(EDITED, "by a person"))
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
        code_of_module(compiled, source).describe(graphs)
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
