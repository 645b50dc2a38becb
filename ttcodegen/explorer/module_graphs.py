"""Graphs of MLIR modules: one per function, and one per region.

Nodes have the names of their ops in overrides (`optimizer.call_names`), which are the same in all
stages, so that Model Explorer finds an op in the other pane.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from xdsl.dialects.builtin import StringAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ttcodegen.dialects.operations.functions import (
    argument_type,
    body_of,
    callee_of,
    location_text,
)
from ttcodegen.dialects.operations.operation import CatalogueOp, operation_name
from ttcodegen.dialects.ttcore.dialect import ArgumentType, LoadCachedOp
from ttcodegen.dialects.ttmetal.device_module import launch_of
from ttcodegen.dialects.ttmetal.programs import RUN_PROGRAM
from ttcodegen.emitc.inlining import origins_of
from ttcodegen.explorer.graph import (
    TENSOR_TAG,
    Graph,
    GraphNode,
    GraphNodeStyle,
    IncomingEdge,
    KeyValue,
    MetadataItem,
    Texts,
    attributes,
    namespace,
    program_graph,
)
from ttcodegen.foundation.diagnostics import CompileError, Source, source_offset
from ttcodegen.naming.arguments import argument_names, result_names
from ttcodegen.naming.modules import constant_names
from ttcodegen.naming.sources import layer, layer_of_weight, location_name, name_in_text
from ttcodegen.optimizer.overrides.overrides import CallNames

INPUT_STYLE = GraphNodeStyle(backgroundColor="#d7f0dd", borderColor="#2e7d32")
WEIGHT_STYLE = GraphNodeStyle(backgroundColor="#e8eaf6", borderColor="#3f51b5")
OUTPUT_STYLE = GraphNodeStyle(backgroundColor="#ffe9d6", borderColor="#e65100")
STYLES = {"input": INPUT_STYLE, "parameter": WEIGHT_STYLE, "constant": WEIGHT_STYLE}
KINDS = {"input": "input", "parameter": "weight", "constant": "constant"}
"""Labels of argument kinds."""

LINE = "line"
"""Node attribute with its line in the source."""
_LAYER_PARTS = re.compile(r"[./]+")
_SYMBOL = re.compile(r'@(?:"([^"]*)"|([\w.$-]+))')
_RETURNS = frozenset({"func.return", "emitc.return"})
_CONTAINERS = frozenset(
    {"builtin.module", "ttcore.device_module", "ttcore.cpu_module", "tt.device_module", "module"}
)


Visit = Callable[[Operation, str, GraphNode], None]
"""Called with an op, the id of its graph, and its node."""


def layer_namespace(path: str | None) -> str:
    """Namespace of a layer: `layer1/conv1` for `layer1.conv1`."""
    return "" if path is None else namespace(_LAYER_PARTS.split(path))


def module_graphs(
    operations: Iterable[Operation],
    *,
    elements: int = 16,
    source: Source | None = None,
    visit: Visit | None = None,
    layers: Mapping[Operation, str] | None = None,
) -> list[Graph]:
    """Graphs of all functions in order, each followed by those of its regions; linear time.

    Args:
        operations: the top-level operations of a module, or the module itself.
        elements: limit on the listed elements of a constant.
        source: the source text, for line attributes.
        visit: called with each op, its graph and its node.
        layers: namespaces of ops that the ops of the C++ originate from.
    """
    found = list(_functions(operations, ""))
    graphs = _Graphs(Texts(elements), source, visit, layers or {})
    graphs.by_symbol = {symbol: name for name, op in found if (symbol := _symbol(op)) is not None}
    graphs.functions = {op.sym_name.data: op for _, op in found if isinstance(op, FuncOp)}
    for name, op in found:
        _FunctionGraph(graphs, name, op).build()
    return graphs.made


def _symbol(op: Operation) -> str | None:
    name = op.properties.get("sym_name", op.attributes.get("sym_name"))
    return name.data if isinstance(name, StringAttr) else None


def _functions(operations: Iterable[Operation], prefix: str) -> Iterator[tuple[str, Operation]]:
    """All functions with bodies, with unique ids of their graphs."""
    taken: set[str] = set()
    for name, op in _bodies(operations, prefix):
        unique, number = name, 2
        while unique in taken:
            unique, number = f"{name}#{number}", number + 1
        taken.add(unique)
        yield unique, op


def _bodies(operations: Iterable[Operation], prefix: str) -> Iterator[tuple[str, Operation]]:
    for op in operations:
        kind = operation_name(op)
        if kind in _CONTAINERS or kind == "emitc.file":
            inner = prefix
            if kind == "emitc.file":
                file = op.properties.get("id", op.attributes.get("id"))
                inner = f"{file.data}:" if isinstance(file, StringAttr) else prefix
            for region in op.regions:
                for block in region.blocks:
                    yield from _bodies(block.ops, inner)
        elif (symbol := _symbol(op)) is not None and any(map(_has_ops, op.regions)):
            if kind.endswith((".func", ".kernel", ".generic")):
                yield f"{prefix}{symbol}", op
            else:
                # A class, or another container with a name of its own.
                inner = [each for r in op.regions for b in r.blocks for each in b.ops]
                yield from _bodies(inner, f"{prefix}{symbol}.")


def _has_ops(region: Region) -> bool:
    return any(block.first_op is not None for block in region.blocks)


@dataclass
class _Graphs:
    """Shared state of a module's graphs."""

    texts: Texts
    source: Source | None = None
    visit: Visit | None = None
    layers: Mapping[Operation, str] = field(default_factory=dict[Operation, str])
    made: list[Graph] = field(default_factory=list[Graph])
    by_symbol: dict[str, str] = field(default_factory=dict[str, str])
    """Graphs of functions by symbol."""
    functions: dict[str, FuncOp] = field(default_factory=dict[str, FuncOp])
    programs: dict[str, str] = field(default_factory=dict[str, str])
    """Graphs of device programs."""


class _FunctionGraph:
    """Graph of a function, or of a region."""

    def __init__(self, graphs: _Graphs, name: str, op: Operation) -> None:
        self._graphs = graphs
        self._graph = Graph(name)
        self._op = op
        self._sources: dict[SSAValue, tuple[str, str]] = {}
        """Producer node and output index of each value."""
        self._names: dict[SSAValue, str] = {}
        self._spaces: dict[str, str] = {}
        """Namespaces of op nodes."""
        self._weights: dict[SSAValue, str] = {}
        self._ids: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._calls: CallNames | None = None

    def build(self) -> None:
        """Builds the graph of a function and of its regions."""
        self._graphs.made.append(self._graph)
        function = self._op if isinstance(self._op, FuncOp) else None
        results: Sequence[str] = ()
        if function is not None and _has_one_block(function):
            self._calls = CallNames(function)
            self._ids.update(self._calls)
            self._add_arguments(function)
            results = result_names(function)
        self._graph.describe(op=operation_name(self._op), **dict(self._own_attributes()))
        blocks = [block for region in self._op.regions for block in region.blocks]
        self._add_blocks(blocks, results if function is not None else ())

    def _own_attributes(self) -> Iterator[tuple[str, str]]:
        hidden = {"sym_name", "function_type", "arg_attrs", "res_attrs", "op_name__"}
        for name, text in self._graphs.texts.op(self._op):
            if name not in hidden:
                yield name, text

    def build_region(self, region: Region) -> None:
        """Builds the graph of a region; values from outside become nodes."""
        self._graphs.made.append(self._graph)
        self._graph.describe(op=operation_name(self._op))
        self._add_blocks(list(region.blocks), ())

    # Arguments

    def _add_arguments(self, function: FuncOp) -> None:
        names = argument_names(function)
        for argument, name in zip(function.args, names, strict=True):
            kind = argument_type(function, argument.index)
            declared = "input" if kind is ArgumentType.DEFAULT else str(kind.value)
            declared = declared if declared in KINDS else "input"
            if declared != "input":
                self._weights[argument] = name
            self._add_argument(argument, name, declared)

    def _add_argument(self, argument: SSAValue, name: str, kind: str) -> None:
        path = layer_namespace(layer_of_weight(name)) or "weights" if kind != "input" else ""
        node = GraphNode(
            self._unique(f"{KINDS[kind]}:{name}"),
            name,
            path,
            attrs=attributes([("kind", KINDS[kind])]),
            style=STYLES[kind],
        )
        self._define(node, [argument], [name])
        self._graph.nodes.append(node)

    # Ops

    def _add_blocks(self, blocks: Sequence[Block], results: Sequence[str]) -> None:
        for block in blocks:
            for argument in block.args:
                if argument not in self._sources:
                    name = name_in_text(argument, f"argument {argument.index}")
                    self._add_argument(argument, name, "input")
            for op in block.ops:
                if operation_name(op) in _RETURNS and op.parent is block and len(results) > 0:
                    self._add_outputs(op, results)
                else:
                    self._add_op(op)

    def _add_op(self, op: Operation) -> None:
        kind = operation_name(op)
        node = GraphNode(self._id_of(op, kind), _callee(op) or kind.rpartition(".")[2])
        entries = [
            ("op", kind),
            ("name", op.results[0].name_hint if op.results else None),
            ("location", location_text(op)),
            (LINE, self._line(op)),
        ]
        texts = [(n, t) for n, t in self._graphs.texts.op(op) if n != "op_name__"]
        node.attrs = attributes([*entries, *texts])
        if op.regions:
            self._add_regions(op, node)
        self._link_functions(op, node, texts)
        self._connect(op, node)
        self._name_weights(op)
        node.namespace = self._namespace(op, node)
        self._spaces[node.id] = node.namespace
        self._define(node, op.results, [result.name_hint for result in op.results])
        self._define_written(op, node)
        self._graph.nodes.append(node)
        if self._graphs.visit is not None:
            self._graphs.visit(op, self._graph.id, node)

    def _define_written(self, op: Operation, node: GraphNode) -> None:
        """Redefines the written buffers of a program launch, for later readers."""
        if operation_name(op) != RUN_PROGRAM:
            return
        try:
            written = launch_of(op).outputs
        except ValueError:
            return
        self._define(node, written, [value.name_hint for value in written])

    def _line(self, op: Operation) -> str | None:
        offset = source_offset(op)
        source = self._graphs.source
        if source is None or not source.text or offset is None:
            return None
        return str(source.location(offset).line)

    def _id_of(self, op: Operation, kind: str) -> str:
        if self._calls is not None and op in self._calls:
            return self._calls[op]
        hint = op.results[0].name_hint if op.results else None
        name = hint or location_name(op.location) or kind.rpartition(".")[2]
        return self._unique(name if op.results else f"{name}:1", ":")

    def _unique(self, name: str, separator: str = "#") -> str:
        """Unique id; a taken one gets the next number."""
        if name not in self._ids:
            self._ids.add(name)
            return name
        stem = name.removesuffix(f"{separator}1")
        number = self._numbers.get(stem, 1)
        while name in self._ids:
            number += 1
            name = f"{stem}{separator}{number}"
        self._numbers[stem] = number
        self._ids.add(name)
        return name

    def _add_regions(self, op: Operation, node: GraphNode) -> None:
        regions = [region for region in op.regions if _has_ops(region)]
        for index, region in enumerate(regions):
            number = f"[{index}]" if len(regions) > 1 else ""
            inner = _FunctionGraph(self._graphs, f"{self._graph.id}/{node.id}{number}", op)
            inner._names = self._names
            inner.build_region(region)
            node.subgraphIds.append(inner._graph.id)

    def _link_functions(
        self, op: Operation, node: GraphNode, texts: Sequence[tuple[str, str]]
    ) -> None:
        """Links the graphs of functions and programs that an op refers to."""
        if operation_name(op) == RUN_PROGRAM:
            self._link_program(op, node)
        known = self._graphs.by_symbol
        for name, text in texts:
            if name == "callee" and text in known:
                # C++ refers to a function without '@'.
                node.subgraphIds.append(known[text])
            if "@" not in text:
                continue
            for quoted, plain in _SYMBOL.findall(text):
                graph = known.get(quoted or plain)
                if graph is not None and graph not in node.subgraphIds:
                    node.subgraphIds.append(graph)

    def _link_program(self, op: Operation, node: GraphNode) -> None:
        try:
            program = launch_of(op).program
        except ValueError:
            return
        made = self._graphs.programs
        if program.name not in made:
            graph = program_graph(program, self._graphs.by_symbol)
            self._graphs.made.append(graph)
            made[program.name] = graph.id
        node.subgraphIds.append(made[program.name])
        node.attrs.append(KeyValue("program", f"{program.name}: {program.purpose}"))

    # Edges

    def _connect(self, op: Operation, node: GraphNode) -> None:
        names = self._operand_names(op)
        for index, operand in enumerate(op.operands):
            source = self._sources.get(operand) or self._outside_node(operand)
            node.incomingEdges.append(IncomingEdge(*source, str(index)))
            name = names[index] if index < len(names) else None
            if name is not None:
                node.inputsMetadata.append(MetadataItem(str(index), [KeyValue(TENSOR_TAG, name)]))

    @staticmethod
    def _operand_names(op: Operation) -> Sequence[str]:
        if not isinstance(op, CatalogueOp):
            return ()
        specs = op.definition.operands
        return [s.name for s in specs] if len(specs) == len(op.operands) else ()

    def _outside_node(self, value: SSAValue) -> tuple[str, str]:
        """Node of a value from outside of the region, or of a later one in a graph region."""
        name = self._names.get(value) or name_in_text(value, "value")
        node = GraphNode(
            self._unique(f"outer:{name}"),
            name,
            attrs=attributes([("kind", "from outside of the region")]),
            style=INPUT_STYLE,
        )
        self._define(node, [value], [name])
        self._graph.nodes.append(node)
        return self._sources[value]

    def _define(
        self, node: GraphNode, values: Sequence[SSAValue], names: Sequence[str | None]
    ) -> None:
        for index, (value, name) in enumerate(zip(values, names, strict=True)):
            self._sources[value] = node.id, str(index)
            self._names[value] = name or node.id
            entries = attributes([("name", name)])
            item = MetadataItem(str(index), [*self._graphs.texts.tensor(value.type), *entries])
            node.outputsMetadata.append(item)

    def _add_outputs(self, op: Operation, names: Sequence[str]) -> None:
        for index, operand in enumerate(op.operands):
            name = names[index] if index < len(names) else f"output{index}"
            source = self._sources.get(operand) or self._outside_node(operand)
            node = GraphNode(
                self._unique(f"output:{name}"),
                name,
                attrs=attributes([("kind", "output")]),
                incomingEdges=[IncomingEdge(*source)],
                style=OUTPUT_STYLE,
            )
            # What is returned has its type where the node of an argument has it.
            node.outputsMetadata.append(
                MetadataItem("0", list(self._graphs.texts.tensor(operand.type)))
            )
            self._graph.nodes.append(node)

    # Layers

    def _name_weights(self, op: Operation) -> None:
        """Names const-eval results after their first weight."""
        if isinstance(op, LoadCachedOp):
            const_eval = self._graphs.functions.get(callee_of(op) or "")
            names: dict[SSAValue, str] = {
                v: n for v, n in self._names.items() if isinstance(v, BlockArgument)
            }
            constants = constant_names(op, const_eval, names)
            self._weights |= dict(zip(op.results, constants, strict=False))
        elif op.operands and all(operand in self._weights for operand in op.operands):
            for result in op.results:
                self._weights[result] = self._weights[op.operands[0]]

    def _namespace(self, op: Operation, node: GraphNode) -> str:
        """Namespace of an op's layer.

        Without a layer, the common prefix of the layers of its origins, or else of its operands.
        """
        # A const-eval call reads many weights and belongs to no single layer.
        own = None if isinstance(op, LoadCachedOp) else layer(op, self._weights)
        if own is not None:
            return layer_namespace(own)
        related = [self._graphs.layers.get(origin) for origin in origins_of(op)]
        related = related or [self._spaces.get(edge.sourceNodeId) for edge in node.incomingEdges]
        paths = [path.split("/") for path in related if path]
        return "/".join(_common_parts(paths)) if paths else ""


def _common_parts(paths: Sequence[Sequence[str]]) -> list[str]:
    pairs = zip(*paths, strict=False)
    return [parts[0] for parts in takewhile(lambda parts: len(set(parts)) == 1, pairs)]


def _has_one_block(function: FuncOp) -> bool:
    try:
        body_of(function)
    except CompileError:
        return False
    return True


def positions(graph: Graph) -> list[GraphNode]:
    """Nodes of a function's ops, in order."""
    return [node for node in graph.nodes if node.attribute("op") is not None]


def _callee(op: Operation) -> str | None:
    """Callee of an EmitC call op, None for others."""
    callee = op.properties.get("callee") or op.attributes.get("callee")
    if not op.name.startswith("emitc.") or not isinstance(callee, StringAttr | SymbolRefAttr):
        return None
    return callee.string_value() if isinstance(callee, SymbolRefAttr) else callee.data
