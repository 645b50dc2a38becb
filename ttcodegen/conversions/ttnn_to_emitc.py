"""TTNN functions become C++ functions, named and structured as a person would write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.conversions.cpp_interface import (
    DEVICE,
    TTNN,
    ConstantFile,
    CppProgram,
    parameters,
    prepare_parameters,
    prepend,
    title_of,
    write_header,
)
from ttcodegen.conversions.interface import Entry, Port
from ttcodegen.conversions.naming import layer, value_name
from ttcodegen.conversions.rebuilding import body_of
from ttcodegen.conversions.splitting import Part, split
from ttcodegen.conversions.uniform_signature import (
    define_uniform,
    has_uniform_signature,
    uniform_name,
)
from ttcodegen.diagnostics import CompileError
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.dialects.placement import Shards, TensorPlacement, placement_of
from ttcodegen.emitc.builder import EmitCBuilder, open_file
from ttcodegen.emitc.naming import NameScope, identifier
from ttcodegen.emitc.text import Text
from ttcodegen.ops.cpp_calls import Argument
from ttcodegen.ops.definition import TTNNDefinition

TENSOR = "ttnn::Tensor"


def convert_ttnn_to_emitc(
    name: str, entries: Sequence[Entry], input_hash: str, release: str
) -> CppProgram:
    """Writes `src/<name>.hpp` and `src/<name>.cpp` as EmitC.

    Args:
        name: the C++ name of the module; its namespace and the stem of its files.
        entries: the entry functions.
        input_hash: identifies the input in the header line of each file.
        release: the tt-metal release that the calls are written for.
    """
    module = ModuleOp([])
    title = title_of(name, input_hash, release)
    write_header(open_file(module, f"src/{name}.hpp"), name, entries, title, TTNN)
    source = open_file(module, f"src/{name}.cpp")
    writer = _SourceWriter(source, {f"{name}.hpp"})
    with source.namespace(name):
        for entry in entries:
            writer.write(entry)
    prepend(source, title, writer.own_headers, writer.headers)
    return CppProgram(module, writer.constants)


class _SourceWriter:
    """Writes the definitions of one source file."""

    def __init__(self, file: EmitCBuilder, own_headers: Iterable[str]) -> None:
        self.file = file
        self.own_headers = set(own_headers)
        self.headers: set[str] = set()
        self.constants: list[ConstantFile] = []
        self.constant_names = NameScope()
        self.function_names = NameScope()

    def write(self, entry: Entry) -> None:
        """Defines the functions of one entry."""
        self.function_names.reserve(
            entry.cpp_name, f"prepare_{entry.cpp_name}", uniform_name(entry)
        )
        if entry.const_eval is not None:
            self._write_const_eval(entry)
        members = _Members.of(entry)
        parts = split(entry)
        names = [self._part_name(entry, part) for part in parts] if len(parts) > 1 else []
        for part, name in zip(parts, names, strict=False):
            self._write_part(entry, part, name, members)
        self._write_entry(entry, parts, names, members)
        if has_uniform_signature(entry):
            define_uniform(self.file, entry)
            self.file.blank()

    def _part_name(self, entry: Entry, part: Part) -> str:
        return self.function_names.unique(identifier(f"{entry.cpp_name}_{part.title or 'part'}"))

    def _write_const_eval(self, entry: Entry) -> None:
        assert entry.const_eval is not None
        body = self.file.function(
            f"prepare_{entry.cpp_name}",
            prepare_parameters(entry),
            entry.struct("Constants"),
            fixed_names=[DEVICE],
        )
        assert entry.load is not None
        ports = {port.value: port for port in entry.arguments}
        members = _Members()
        arguments = body_of(entry.const_eval).args
        for argument, value in zip(arguments, entry.load.operands, strict=True):
            members.bind_argument(argument, ports[value])
        function = _FunctionWriter(self, body, members, {"weights": body.arguments[0]})
        ops = list(body_of(entry.const_eval).ops)
        constants = ops[-1].operands
        function.names.update(zip(constants, entry.constant_names, strict=True))
        function.write_ops(ops)
        fields = entry.constant_fields
        self._return_struct(function, entry.struct("Constants"), fields, constants)
        self.file.blank()

    def _return_struct(
        self,
        function: _FunctionWriter,
        struct: str,
        fields: Sequence[str],
        values: Iterable[SSAValue],
    ) -> None:
        arguments = {f: function[v] for f, v in zip(fields, values, strict=True)}
        function.body.return_(function.body.aggregate(struct, arguments))

    def _open_entry_function(
        self, entry: Entry, body: EmitCBuilder, members: _Members
    ) -> _FunctionWriter:
        """A writer that knows the members of the structures as the values of the function."""
        names = [name for name, _ in parameters(entry)]
        return _FunctionWriter(self, body, members, dict(zip(names, body.arguments, strict=False)))

    def _write_part(self, entry: Entry, part: Part, name: str, members: _Members) -> None:
        live_in = [(value, f"arg{index}") for index, value in enumerate(part.live_in)]
        named = [(function_name(value, fallback), TENSOR) for value, fallback in live_in]
        result = part.result_type()
        self.file.comment(part.title or f"A part of {entry.cpp_name}.")
        body = self.file.function(
            name,
            [*parameters(entry), *named],
            result,
            specifiers=["static"],
            fixed_names=[DEVICE],
        )
        function = self._open_entry_function(entry, body, members)
        start = len(parameters(entry))
        for value, argument in zip(part.live_in, body.arguments[start:], strict=True):
            function.values[value] = argument
        function.write_ops(part.ops)
        results = [function[value] for value in part.live_out]
        if len(results) == 1:
            body.return_(results[0])
        elif results:
            body.return_(body.braced(result or "", *results))
        else:
            body.return_()
        self.file.blank()

    def _write_entry(
        self, entry: Entry, parts: Sequence[Part], names: Sequence[str], members: _Members
    ) -> None:
        result = entry.struct("Outputs") if entry.results else None
        body = self.file.function(entry.cpp_name, parameters(entry), result, fixed_names=[DEVICE])
        function = self._open_entry_function(entry, body, members)
        if names:
            for part, name in zip(parts, names, strict=True):
                function.call_part(part, name, len(parameters(entry)))
        else:
            function.write_ops(body_of(entry.function).ops)
        if entry.results:
            terminator = body_of(entry.function).last_op
            assert isinstance(terminator, ReturnOp)
            fields = [port.field for port in entry.results]
            self._return_struct(function, entry.struct("Outputs"), fields, terminator.operands)
        else:
            body.return_()
        self.file.blank()


def function_name(value: SSAValue, fallback: str) -> str:
    """What a value that crosses from one function to another is called there."""
    if value.name_hint is not None:
        return value.name_hint
    if isinstance(value.owner, CatalogueOp):
        return value_name(value.owner, 0, {})
    return fallback


class _Members:
    """The values that are members of the structures that a function gets."""

    def __init__(self) -> None:
        self.places: dict[SSAValue, tuple[str, str]] = {}
        """The parameter and the field of each."""
        self.weight_names: dict[SSAValue, str] = {}

    @classmethod
    def of(cls, entry: Entry) -> _Members:
        """The members that the functions of an entry share."""
        members = cls()
        for port in entry.arguments:
            members.bind_argument(port.value, port)
        if entry.load is not None:
            names = zip(entry.constant_fields, entry.constant_names, strict=True)
            for value, (field, name) in zip(entry.load.results, names, strict=True):
                members.places[value] = ("constants", field)
                members.weight_names[value] = name
        return members

    def bind_argument(self, value: SSAValue, port: Port) -> None:
        """Makes a value what a port of the entry is."""
        self.places[value] = ("weights" if port.is_weight else "inputs", port.field)
        if port.is_weight or "weight" in port.name or "bias" in port.name:
            self.weight_names[value] = port.name


class _FunctionWriter:
    """Writes one function's body. What the catalogue may do with it is in `cpp_calls.CppCalls`."""

    def __init__(
        self,
        writer: _SourceWriter,
        body: EmitCBuilder,
        members: _Members,
        structs: Mapping[str, SSAValue],
    ) -> None:
        self.writer = writer
        self.body = body
        self.members = members
        self.structs = structs
        self.values: dict[SSAValue, SSAValue] = {}
        self.names: dict[SSAValue, str] = {}
        """Names that are known better than the op of a value tells."""
        self.memory_configs: dict[Shards, SSAValue] = {}
        self._layer: str | None = None
        self._result_name: str | None = None

    def __getitem__(self, value: SSAValue) -> SSAValue:
        place = self.members.places.get(value)
        if place is not None:
            parameter, field = place
            return self.body.member(self.structs[parameter], field, TENSOR)
        return self.values[value]

    def write_ops(self, ops: Iterable[Operation]) -> None:
        """Writes ops in order; a comment stands where another layer begins."""
        for op in ops:
            if not isinstance(op, CatalogueOp):
                continue
            definition = op.definition
            if not isinstance(definition, TTNNDefinition) or definition.cpp is None:
                raise CompileError(f"'{op.name}' has no C++ call", op.source_offset)
            self._begin_layer(op)
            self.body.origin = op
            self._result_name = self._name(op)
            definition.cpp(self, op)

    def _name(self, op: CatalogueOp) -> str | None:
        if not op.results:
            return None
        return self.names.get(op.results[0]) or value_name(op, 0, self.members.weight_names)

    def _begin_layer(self, op: CatalogueOp) -> None:
        found = layer(op, self.members.weight_names)
        if found is not None and found != self._layer and op.results:
            if self._layer is not None or self.values:
                self.body.blank()
            self.body.comment(found)
            self._layer = found

    def call_part(self, part: Part, name: str, struct_count: int) -> None:
        """Calls a function that holds a part of the body."""
        arguments: list[SSAValue] = [
            *self.body.arguments[:struct_count],
            *(self[value] for value in part.live_in),
        ]
        types = [TENSOR] * len(part.live_out)
        names = [function_name(value, "result") for value in part.live_out]
        if len(types) == 1:
            self.values[part.live_out[0]] = self.body.call(name, *arguments, name=names[0])
        elif types:
            results = self.body.call_several(name, *arguments, types=types, names=names)
            self.values.update(zip(part.live_out, results, strict=True))
        else:
            self.body.call_void(name, *arguments)

    # --- What the catalogue uses -----------------------------------------------------------------

    @property
    def device(self) -> Argument:
        return Text(DEVICE)

    @property
    def device_pointer(self) -> Argument:
        return Text(f"&{DEVICE}")

    def include(self, header: str) -> None:
        self.writer.headers.add(header)

    def include_support(self, header: str) -> None:
        self.writer.own_headers.add(f"support/{header}")

    def call(self, callee: str, *arguments: Argument, type: str = TENSOR) -> SSAValue:
        if type == TENSOR:
            return self.body.call(callee, *arguments, name=self._result_name)
        return self.body.call(callee, *arguments, type=type, pure=True)

    def bind_several(
        self,
        results: Sequence[SSAValue],
        callee: str,
        *arguments: Argument,
        names: Sequence[str],
    ) -> None:
        called = [result.name_hint or name for result, name in zip(results, names, strict=True)]
        values = self.body.call_several(
            callee, *arguments, types=[TENSOR] * len(called), names=called
        )
        self.values.update(zip(results, values, strict=True))

    def nested(self, callee: str, *arguments: Argument, type: str = TENSOR) -> SSAValue:
        return self.body.call(callee, *arguments, type=type, pure=True)

    def run(self, callee: str, *arguments: Argument) -> None:
        self.body.call_void(callee, *arguments)

    def literal(self, text: str, type: str) -> SSAValue:
        return self.body.literal(text, type)

    def get(self, value: SSAValue, index: int, type: str = TENSOR) -> SSAValue:
        return self.body.get(value, index, type, name=self._result_name)

    def subscript(self, value: SSAValue, index: int, type: str = TENSOR) -> SSAValue:
        return self.body.subscript(value, index, type, name=self._result_name)

    def memory_config(self, placement: TensorPlacement) -> Argument:
        if placement.shards is not None:
            return self._sharded_memory_config(placement, placement.shards)
        known = {("dram", "interleaved"): "DRAM", ("l1", "interleaved"): "L1"}
        buffer = known[placement.buffer_type, placement.memory_layout or ""]
        return Text(f"ttnn::{buffer}_MEMORY_CONFIG")

    def _sharded_memory_config(self, placement: TensorPlacement, shards: Shards) -> SSAValue:
        """A variable that holds it, one for all tensors that are divided alike."""
        if shards not in self.memory_configs:
            ranges = [
                f"ttnn::CoreRange({{{start[0]}, {start[1]}}}, {{{end[0]}, {end[1]}}})"
                for start, end in shards.core_ranges()
            ]
            cores = ranges[0]
            if len(ranges) > 1:
                cores = f"std::vector<ttnn::CoreRange>{{{', '.join(ranges)}}}"
            height, width = shards.shape
            assert placement.memory_layout is not None
            self.memory_configs[shards] = self.body.call(
                "ttnn::MemoryConfig",
                Text(f"ttnn::TensorMemoryLayout::{placement.memory_layout.upper()}"),
                Text(f"ttnn::BufferType::{placement.buffer_type.upper()}"),
                Text(
                    f"tt::tt_metal::ShardSpec(ttnn::CoreRangeSet({cores}), {{{height}, {width}}})"
                ),
                type="ttnn::MemoryConfig",
                name=placement.memory_layout,
            )
        return self.memory_configs[shards]

    def data_array(self, op: CatalogueOp, name_hint: str) -> str:
        name = self.writer.constant_names.unique(identifier(name_hint))
        self.writer.constants.append(
            ConstantFile(name, op.parameter("value"), placement_of(op.results[0]).data_type)
        )
        return name

    def list(self, type: str, elements: Iterable[Argument]) -> SSAValue:
        return self.body.braced(type, *elements)

    def bind(self, result: SSAValue, value: SSAValue) -> None:
        self.values[result] = value
