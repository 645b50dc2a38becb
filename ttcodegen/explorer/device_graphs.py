"""`.ttm` files as graphs: host functions, and the programs of the device that they launch."""

from __future__ import annotations

from collections.abc import Sequence

from ttcodegen.explorer.graph import (
    TENSOR_SHAPE,
    Graph,
    GraphNode,
    IncomingEdge,
    KeyValue,
    MetadataItem,
    attributes,
    placement_attributes,
    shortened,
)
from ttcodegen.explorer.module_graphs import KINDS, OUTPUT_STYLE, STYLES, layer_namespace
from ttcodegen.explorer.program_graphs import (
    BufferFacts,
    KernelFacts,
    cores_text,
    kernel_graph,
)
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.program import PROGRAM, DeviceBinary, DeviceProgram
from ttcodegen.naming.sources import layer_of_weight


def device_graphs(binary: DeviceBinary) -> list[Graph]:
    """The graphs of a file: of its functions, then of its programs."""
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
    """The graph of a function of a file."""

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
        """Inputs, operations and outputs."""
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
        """Label of an op without results, as in graphs of modules."""
        number = self._numbers[f"{name}:"] = self._numbers.get(f"{name}:", 0) + 1
        return f"{name}:{number}"

    def _unique(self, name: str) -> str:
        number = self._numbers[name] = self._numbers.get(name, 0) + 1
        return name if number == 1 else f"{name}#{number}"


def _plain(value: file.AttributeValue) -> str:
    if isinstance(value, file.ConstantReference):
        return f"constant {value.index}"
    return str(file.plain_value(value, ()))
