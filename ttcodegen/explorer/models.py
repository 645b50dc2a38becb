"""Graphs of modules, flatbuffers and projects, and of the stages of a compile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.explorer.graph import (
    TENSOR_SHAPE,
    BufferFacts,
    Graph,
    GraphNode,
    GraphNodeStyle,
    IncomingEdge,
    KernelFacts,
    KeyValue,
    MetadataItem,
    attributes,
    cores_text,
    entry_first,
    kernel_graph,
    placement_attributes,
    shortened,
)
from ttcodegen.explorer.module_graphs import (
    KINDS,
    OUTPUT_STYLE,
    STYLES,
    Visit,
    layer_namespace,
    module_graphs,
)
from ttcodegen.explorer.stages import NOWHERE, StageRecorder, number_without_text
from ttcodegen.explorer.synchronisation import Synchronisation
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.program import PROGRAM, DeviceBinary, DeviceProgram
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.frontends import frontend_of
from ttcodegen.naming.sources import layer_of_weight
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.parsing import parse_operations
from ttcodegen.project.edits import edited_files, read_lines, read_pristine, tuned_files
from ttcodegen.project.manifest import CodeLines, Edits, Node, edited, known_lines, read_manifest
from ttcodegen.project.tuning.edited_calls import EditedCalls, Gain, with_moved_lines, words_of
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE
from ttcodegen.transforms.pass_runner import PassRunner

if TYPE_CHECKING:
    from ttcodegen.emission.manifest_entries import OpLines
    from ttcodegen.project.tuning.edited_files import EditedFile


STAGES_UP_TO = 1000
"""Limit on the ops of a module that is compiled for its stages without request.

Larger modules open without waiting for a compile.
"""
CODE = "C++"
"""Node attribute with its lines in the C++."""
EDITED = "edited"
"""Node attribute of edited ops of a project."""
EDITED_STYLE = GraphNodeStyle(backgroundColor="#fff3cd", borderColor="#b8860b")


@dataclass(frozen=True)
class Code:
    """C++ of a module or a project."""

    files: dict[str, str]
    lines: dict[Node, list[CodeLines]]
    """Lines of the ops."""
    made_lines: dict[int, list[CodeLines]] = field(default_factory=dict[int, list[CodeLines]])
    """Lines derived from source ops, by position in the source."""
    written: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Lines of each file that the user changed or added."""
    changed: list[Node] = field(default_factory=list[Node])
    """Ops whose lines the user changed."""
    words: dict[Node, str] = field(default_factory=dict[Node, str])
    """Descriptions of these edits, if they are decisions."""
    gains: Mapping[Node, Gain] = field(default_factory=dict[Node, Gain])
    """Estimated times of calls that edits change."""

    def describe(self, graphs: Iterable[Graph], recorder: StageRecorder | None = None) -> None:
        """Adds lines to the nodes of the graphs of all stages.

        Args:
            graphs: the graphs.
            recorder: maps nodes to source ops, and these to later ops.
        """
        for graph in graphs:
            stage, _, name = graph.id.rpartition(": ")
            for node in graph.nodes:
                lines = self.lines.get((name, node.id)) if stage or recorder is None else None
                if not lines and recorder is not None:
                    lines = self._lines_made(recorder, (graph.id, node.id))
                if lines:
                    node.attrs.append(KeyValue(CODE, ", ".join(map(str, lines))))

    def _lines_made(self, recorder: StageRecorder, node: Node) -> list[CodeLines]:
        """Lines derived from the same source ops as a node."""
        found = (
            each
            for place in sorted(recorder.made_of.get(node, NOWHERE))
            for at in recorder.origins.among(place, self.made_lines.__contains__)
            for each in self.made_lines[at]
        )
        return list(dict.fromkeys(found))


def code_of_module(compiled: CompiledModule) -> Code:
    """Generated C++ of a module."""
    from ttcodegen.project.edits import formatted_lines
    from ttcodegen.project.sources import project_files

    files = project_files(compiled, formatted=True)
    found = list(formatted_lines(compiled.lines, compiled.files, files))
    made: dict[int, list[OpLines]] = {}
    for each in found:
        if each.op.offset is not None:
            made.setdefault(each.op.offset, []).append(each)
    texts = {each.path: files[each.path] for each in found}
    return Code(
        {path: text for path, text in texts.items() if isinstance(text, str)},
        known_lines(found),
        {
            place: [at for places in known_lines(lines).values() for at in places]
            for place, lines in made.items()
        },
    )


def code_of_project(out: Path) -> Code:
    """Current C++ of a project, with its edits."""
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
    tuned = tuned_files(out)
    lines = with_moved_lines(lines, tuned)
    words = words_of(tuned)
    gains = _gains(out, tuned)
    # Decisions in tuning.hpp are outside of the op's lines.
    changed += [node for node in words if node in lines and node not in changed]
    return Code(files, lines, written=written, changed=changed, words=words, gains=gains)


def _gains(out: Path, tuned: Sequence[EditedFile]) -> Mapping[Node, Gain]:
    """Estimated times of the calls of a project that edits change; empty for kernels."""
    flatbuffer = out / "model.ttnn"
    manifest = read_manifest(out) if tuned else None
    if manifest is None or not flatbuffer.is_file():
        return {}
    model = CostModel(default_system(manifest.get("arch", DEFAULT_ARCHITECTURE)).chip)
    binary = read_ttnn(flatbuffer.read_bytes())
    return EditedCalls(binary, tuned, model.grid).gains(model)


def code_of(path: Path, options: CompileOptions) -> Code:
    """C++ of a module or a project; raises CompileError for a flatbuffer."""
    if path.is_dir():
        flatbuffer_of(path)
        return code_of_project(path)
    if is_flatbuffer(path):
        raise CompileError(
            f"'{path.name}' has no C++", remedy="give the module or the folder of the project"
        )
    source = Source.read(str(path))
    return code_of_module(compile_stages(source, options, elements=0)[0])


def is_flatbuffer(path: Path) -> bool:
    """Returns whether a file is a `.ttnn` or `.ttm` file, by its content."""
    with path.open("rb") as file:
        head = file.read(8)
    from ttcodegen.flatbuffer.reader import is_ttm
    from ttcodegen.flatbuffer.schema import load_schema

    return is_ttm(head) or head[4:8] == load_schema("ttnn.fbs").identifier.encode("ascii")


def flatbuffer_of(project: Path) -> Path:
    """Flatbuffer of a project's folder; raises CompileError if there is none."""
    from ttcodegen.rt.commands.command import flatbuffer_of_project

    found = flatbuffer_of_project(project)
    if found is None:
        raise CompileError(
            f"'{project}' is no project of ttcodegen with a flatbuffer",
            remedy="give the folder that ttcodegen -o wrote, a module or a flatbuffer",
        )
    return found


def flatbuffer_graphs(data: bytes, *, elements: int = 16) -> list[Graph]:
    """Graphs of a `.ttnn` or `.ttm` file; raises CompileError if it is neither, or damaged."""
    from ttcodegen.flatbuffer.reader import is_ttm, read_ttm

    if is_ttm(data):
        from ttcodegen.flatbuffer.modules import verify_ttm

        binary = read_ttm(data)
        verify_ttm(binary)
        return entry_first(device_graphs(binary))
    from ttcodegen.flatbuffer.modules import module_of
    from ttcodegen.flatbuffer.reader import read_ttnn

    operations = module_of(read_ttnn(data)).body.block.ops
    return entry_first(module_graphs(operations, elements=elements))


def source_graphs(source: Source, *, elements: int = 16, visit: Visit | None = None) -> list[Graph]:
    """Graphs of a module as written; for frontend dialects, of the translated TTIR.

    Args:
        source: the module.
        elements: limit on the listed elements of a constant.
        visit: called with each op, its graph and its node.

    Raises:
        CompileError: if the text is no module.
    """
    diagnostics = Diagnostics()
    frontend = frontend_of(source)
    if frontend is not None:
        operations: Any = frontend.read(source, diagnostics).body.block.ops
    else:
        operations = parse_operations(source, diagnostics)
    number_without_text(operations, source)
    graphs = module_graphs(operations, elements=elements, source=source, visit=visit)
    if not graphs:
        raise CompileError("the module has no functions", remedy="give a module of functions")
    return entry_first(graphs)


def project_graphs(out: Path, *, elements: int = 16) -> list[Graph]:
    """Graphs of a project's flatbuffer, with marks of edited ops."""
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
            said = code.words.get((graph.id, node.id), "")
            node.attrs.append(KeyValue(EDITED, f"by a person: {said}" if said else "by a person"))
            node.style = EDITED_STYLE
    return graphs


def compile_stages(
    source: Source,
    options: CompileOptions,
    *,
    elements: int = 16,
    report: Callable[[str], None] = lambda _: None,
    recorder: StageRecorder | None = None,
) -> tuple[CompiledModule, StageRecorder]:
    """Compiles a module and records its stages.

    Args:
        source: the text.
        options: as of `ttcodegen.compilation.compile_module`.
        elements: limit on the listed elements of a constant.
        report: called with each warning.
        recorder: records the stages; a new one by default.

    Raises:
        CompileError: as `compile_module`.
    """
    recorder = recorder or StageRecorder(source, elements)
    runner = PassRunner(load_dialects(), instruments=[recorder])
    diagnostics = Diagnostics()
    compiled = compile_module(source, options, runner, diagnostics)
    for warning in diagnostics.warnings:
        report(warning.render(source))
    if compiled.flatbuffer:
        recorder.keep_lowered(flatbuffer_graphs(compiled.flatbuffer, elements=elements))
    return compiled, recorder


@dataclass(frozen=True)
class Model:
    """Graphs of a path's content."""

    graphs: list[Graph]
    synchronisation: Synchronisation
    """Corresponding nodes of two graphs."""


def model_graphs(
    path: Path, options: CompileOptions, *, elements: int = 16, stages: bool | None = None
) -> list[Graph]:
    """Graphs of a path's content, as `open_model`."""
    return open_model(path, options, elements=elements, stages=stages).graphs


def open_model(
    path: Path, options: CompileOptions, *, elements: int = 16, stages: bool | None = None
) -> Model:
    """Reads a path's content as graphs.

    Args:
        path: a module, a flatbuffer or a project's folder.
        options: compile options for the stages.
        elements: limit on the listed elements of a constant.
        stages: whether to add graphs of a compile's stages; by default for small modules. If it
            fails, the source's graphs show the error.

    Raises:
        CompileError: if there is no model, or it is invalid.
    """
    if path.is_dir():
        return _alone(project_graphs(path, elements=elements))
    if is_flatbuffer(path):
        return _alone(flatbuffer_graphs(path.read_bytes(), elements=elements))
    source = Source.read(str(path))
    recorder = StageRecorder(source, elements)
    graphs = source_graphs(source, elements=elements, visit=recorder.visit())
    if stages is None:
        stages = sum(len(graph.nodes) for graph in graphs) <= STAGES_UP_TO and can_compile(graphs)
    if not stages:
        return _alone(graphs)
    try:
        compiled, _ = compile_stages(source, options, elements=elements, recorder=recorder)
    except CompileError as error:
        for graph in graphs:
            graph.describe(compile_error=error.render(source))
        return _alone(graphs)
    recorder.name_origins(graphs)
    graphs += recorder.graphs()
    code_of_module(compiled).describe(graphs, recorder)
    return Model(graphs, Synchronisation(graphs, recorder.made_of, recorder.origins))


def _alone(graphs: list[Graph]) -> Model:
    """Model of one stage, without origins."""
    return Model(graphs, Synchronisation(graphs))


def can_compile(graphs: Sequence[Graph]) -> bool:
    """Returns whether a module has ops that the compiler accepts, and none of later stages."""
    ops = [node.attribute("op") or "" for graph in graphs for node in graph.nodes]
    later = ("emitc.", "ttkernel.", "d2m.")
    return any(op.startswith(("ttir.", "ttnn.")) for op in ops) and not any(
        op.startswith(later) or (op.startswith("ttmetal.") and op != "ttmetal.dispatch")
        for op in ops
    )


def device_graphs(binary: DeviceBinary) -> list[Graph]:
    """Graphs of a file's functions, followed by its programs."""
    functions = {function.name for function in binary.functions}
    return [
        *(_FileFunction(each, binary.programs, functions).graph() for each in binary.functions),
        *(_program_graph(each, functions) for each in binary.programs),
    ]


def _program_name(program: DeviceProgram) -> str:
    return f"program {program.name}"


def _program_graph(program: DeviceProgram, functions: set[str]) -> Graph:
    kernels = [
        KernelFacts(
            kernel.name,
            kernel.processor,
            kernel.purpose,
            cores_text(kernel.cores),
            {each.name: each.value for each in kernel.constants},
            [argument.name for argument in kernel.arguments],
            kernel.source,
        )
        for kernel in program.kernels
    ]
    buffers = [
        BufferFacts(each.index, each.name, each.data_type, each.pages, each.page_size)
        for each in program.circular_buffers
    ]
    graph = kernel_graph(_program_name(program), kernels, buffers)
    graph.describe(
        purpose=program.purpose,
        cores=cores_text(program.cores),
        math_fidelity=program.fidelity,
        meaning=program.meaning if program.meaning in functions else "",
    )
    return graph


class _FileFunction:
    """Graph of a function of a file."""

    def __init__(
        self, function: file.Program, programs: Sequence[DeviceProgram], functions: set[str]
    ) -> None:
        self._function = function
        self._programs = programs
        self._functions = functions
        self._sources: dict[int, tuple[str, str]] = {}
        self._numbers: dict[str, int] = {}
        self._graph = Graph(function.name)

    def graph(self) -> Graph:
        """Builds the graph: inputs, operations and outputs."""
        function = self._function
        self._graph.describe(kind=function.kind.rstrip("_"))
        for entry in function.inputs:
            kind = entry.kind if entry.kind in KINDS else "input"
            path = layer_namespace(layer_of_weight(entry.name)) or "weights"
            node = GraphNode(
                self._unique(f"{KINDS[kind]}:{entry.name}"),
                entry.name,
                "" if kind == "input" else path,
                attrs=attributes([("kind", KINDS[kind])]),
                style=STYLES[kind],
            )
            self._define(node, [entry.tensor])
        for operation in function.operations:
            self._add(operation)
        for entry in function.outputs:
            node = GraphNode(
                self._unique(f"output:{entry.name}"),
                entry.name,
                attrs=attributes([("kind", "output")]),
                incomingEdges=[IncomingEdge(*self._sources[entry.tensor])],
                style=OUTPUT_STYLE,
            )
            node.outputsMetadata.append(self._tensor(entry.tensor, "0"))
            self._graph.nodes.append(node)
        return self._graph

    def _add(self, operation: file.Operation) -> None:
        short = operation.name.rpartition(".")[2]
        made = [self._function.tensors[t].name for t in operation.results]
        name = next((each for each in made if each), None) or operation.location or short
        entries = [("op", operation.name), ("location", operation.location)]
        node = GraphNode(self._unique(name) if made else self._numbered(name), short)
        written: tuple[int, ...] = ()
        for attribute in operation.attributes:
            value = attribute.value
            if attribute.name == PROGRAM and isinstance(value, file.Integer):
                program = self._programs[value.value]
                node.subgraphIds.append(_program_name(program))
                entries.append((PROGRAM, f"{program.name}: {program.purpose}"))
                written = operation.operands[program.inputs :]
            elif value is not None:
                entries.append((attribute.name, shortened(_plain(value))))
        if operation.callee in self._functions:
            node.subgraphIds.append(str(operation.callee))
        node.attrs = attributes(entries)
        node.incomingEdges = [
            IncomingEdge(*self._sources[tensor], str(index))
            for index, tensor in enumerate(operation.operands)
        ]
        # Who reads the buffers that a program writes reads its results.
        self._define(node, (*operation.results, *written))

    def _define(self, node: GraphNode, tensors: Sequence[int]) -> None:
        for index, tensor in enumerate(tensors):
            self._sources[tensor] = node.id, str(index)
            node.outputsMetadata.append(self._tensor(tensor, str(index)))
        self._graph.nodes.append(node)

    def _tensor(self, number: int, index: str) -> MetadataItem:
        placement = self._function.tensors[number].type.placement
        shape = "x".join(map(str, (*placement.shape, placement.data_type.mlir)))
        entries = [KeyValue(TENSOR_SHAPE, f"tensor<{shape}>"), *placement_attributes(placement)]
        return MetadataItem(index, entries)

    def _numbered(self, name: str) -> str:
        """Label of an op without results, as in module graphs."""
        number = self._numbers[f"{name}:"] = self._numbers.get(f"{name}:", 0) + 1
        return f"{name}:{number}"

    def _unique(self, name: str) -> str:
        number = self._numbers[name] = self._numbers.get(name, 0) + 1
        return name if number == 1 else f"{name}#{number}"


def _plain(value: file.AttributeValue) -> str:
    if isinstance(value, file.ConstantReference):
        return f"constant {value.index}"
    return str(file.plain_value(value, ()))
