"""TTNN functions become C++ functions that call the ttnn library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp

from ttcodegen.conversions.host_functions import layers
from ttcodegen.conversions.host_functions.call_loops import with_loops
from ttcodegen.conversions.host_functions.cpp_interface import (
    TTNN,
    ConstantFile,
    CppProgram,
    prepend,
    title_of,
    write_header,
)
from ttcodegen.conversions.host_functions.entry_functions import write_entry_function
from ttcodegen.conversions.host_functions.function_writer import (
    Body,
    Members,
    SourceFile,
    last_use_function,
)
from ttcodegen.conversions.host_functions.interface import Entry
from ttcodegen.conversions.host_functions.layer_weights import hold_weights
from ttcodegen.conversions.host_functions.option_wrappers import definitions
from ttcodegen.conversions.host_functions.outlined_functions import write_outlined
from ttcodegen.conversions.host_functions.outlining import OutlinedFunction
from ttcodegen.conversions.host_functions.preparation import library_preparation, write_preparation
from ttcodegen.conversions.host_functions.recording import (
    TENSOR,
    Recorder,
    SourceFacts,
    Statement,
    is_deallocation,
)
from ttcodegen.conversions.host_functions.tuning_constants import HEADER
from ttcodegen.conversions.host_functions.uniform_signature import (
    define_uniform,
    has_uniform_signature,
    uniform_name,
)
from ttcodegen.emitc.builder import open_file
from ttcodegen.emitc.identifiers import NameScope
from ttcodegen.emitc.statements import VerbatimOp
from ttcodegen.naming.interface import prepare_name
from ttcodegen.transforms.rebuilding import body_of

__all__ = ["ConstantFile", "convert_ttnn_to_emitc"]


def convert_ttnn_to_emitc(
    name: str, entries: Sequence[Entry], input_hash: str, release: str, trace: bool = False
) -> CppProgram:
    """Writes `src/<name>.hpp` and `src/<name>.cpp` as EmitC.

    Args:
        name: the C++ name of the module; its namespace and the stem of its files.
        entries: the entry functions.
        input_hash: identifies the input in the header line of each file.
        release: the tt-metal release that the calls are written for.
        trace: whether calls are captured as traces of the device.
    """
    facts = SourceFacts()
    facts.tuning.has_traces = trace
    facts.own_headers.add(f"{name}.hpp")
    facts.tuning.collect(entries)
    function_names = NameScope()
    recorded = [_record(entry, facts, function_names) for entry in entries]
    module = ModuleOp([])
    title = title_of(name, input_hash, release)
    known = [each.body.entry for each in recorded]
    write_header(open_file(module, f"src/{name}.hpp"), name, known, title, TTNN)
    source = SourceFile(open_file(module, f"src/{name}.cpp"), facts, function_names)
    with source.file.namespace(name):
        opening = source.file.block.last_op
        for each in recorded:
            _write_entry(source, each)
    if facts.tuning.write(module, name, title) and facts.tuning.is_used:
        facts.own_headers.add(HEADER)
    if source.uses_last_use:
        facts.headers.add("utility")
        assert opening is not None
        moves = VerbatimOp(last_use_function(TENSOR))
        source.file.block.insert_ops_after([moves, VerbatimOp("")], opening)
    if source.wrappers:
        facts.headers.update(("optional", "string"))
        assert opening is not None
        text = definitions(sorted(source.wrappers))
        source.file.block.insert_ops_after([VerbatimOp(text), VerbatimOp("")], opening)
    prepend(source.file, title, facts.own_headers, facts.headers)
    return CppProgram(module, facts.constants, entries=known)


@dataclass(frozen=True)
class _Recorded:
    """An entry function before it is written."""

    body: Body
    statements: Sequence[Statement]
    layers: Sequence[OutlinedFunction]
    terminator: ReturnOp


def _record(entry: Entry, facts: SourceFacts, function_names: NameScope) -> _Recorded:
    """What an entry function does, with equal layers as calls of one function."""
    function_names.reserve(entry.cpp_name, prepare_name(entry.cpp_name), uniform_name(entry))
    members = Members.of(entry)
    ops = [op for op in body_of(entry.function).ops if not is_deallocation(op)]
    terminator = ops.pop()
    assert isinstance(terminator, ReturnOp)
    names = entry.names.values
    recorder = Recorder(facts, names)
    statements = recorder.record(ops)
    body = Body(entry, members, recorder)
    returned = [recorder.resolved(value) for value in terminator.operands]
    known = layers.Body(
        names,
        {value: members.names[value] for value in members.places},
        {tensor.value for tensor in entry.inputs},
        members.layers,
        body.lines_of,
        returned,
        function_names,
    )
    calling, functions = layers.outline_layers(statements, known)
    held, calling = hold_weights(entry, calling, functions, members.places, returned)
    calling = with_loops(calling, functions)
    return _Recorded(replace(body, entry=held), calling, functions, terminator)


def _write_entry(source: SourceFile, recorded: _Recorded) -> None:
    """Defines the functions of one entry."""
    body = recorded.body
    entry = body.entry
    if entry.has_constants:
        write_preparation(source, entry, library_preparation(source.facts, entry))
    for function in recorded.layers:
        write_outlined(source, function, body.recorder)
    write_entry_function(source, body, recorded.statements, recorded.terminator.operands)
    if has_uniform_signature(entry):
        define_uniform(source.file, entry)
        source.file.blank()
