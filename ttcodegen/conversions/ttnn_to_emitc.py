"""Lowering of TTNN functions to EmitC."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.conversions.host_functions import layers
from ttcodegen.conversions.host_functions.cpp_interface import (
    DEVICE,
    TTNN,
    ConstantFile,
    CppProgram,
    FileEmission,
    hold_constants,
    last_use_function,
    prepend,
    replace_content,
    returned_type,
    title_of,
    write_header,
)
from ttcodegen.conversions.host_functions.entry_functions import write_entry_function
from ttcodegen.conversions.host_functions.function_writer import (
    Body,
    FunctionWriter,
    Members,
    SourceFile,
)
from ttcodegen.conversions.host_functions.interface import (
    Entry,
    LoopFunction,
    define_uniform,
    entries,
    has_uniform_signature,
    required,
    uniform_name,
)
from ttcodegen.conversions.host_functions.loops import with_loops
from ttcodegen.conversions.host_functions.outlining import (
    OutlinedFunction,
    write_outlined,
)
from ttcodegen.conversions.host_functions.preparation import (
    hold_weights,
    library_preparation,
    write_preparation,
)
from ttcodegen.conversions.host_functions.statements import (
    Recorder,
    SourceFacts,
    Statement,
    is_deallocation,
)
from ttcodegen.conversions.host_functions.step_loops import names_of_loops, vectors_of_loops
from ttcodegen.conversions.host_functions.tuning_constants import HEADER
from ttcodegen.conversions.host_functions.variables import definitions
from ttcodegen.conversions.mesh import chip_exchanges
from ttcodegen.conversions.ttir_to_ttnn import cpu_functions
from ttcodegen.dialects.operations.functions import flags_of_loop
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.dialect import LoadCachedOp
from ttcodegen.dialects.ttcore.loops import WhileLoopOp
from ttcodegen.dialects.ttcore.shards import LAYOUTS_WANTED
from ttcodegen.dialects.ttnn.placement import TTNNLayoutAttr, has_placement, placement_of
from ttcodegen.emitc.builder import TENSOR, open_file
from ttcodegen.emitc.spelling import NameScope, identifier
from ttcodegen.emitc.statements import FileOp, VerbatimOp
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.arguments import prepare_name
from ttcodegen.ops.core.definition import has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.device_constants import device_constants
from ttcodegen.parsing.structure import operation_name
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import passes_of
from ttcodegen.transforms.rewriting import body_of
from ttcodegen.transforms.ttnn.layout import DecomposeLayouts, assign_wanted_layouts

__all__ = [
    "ConstantFile",
    "convert_ttnn_to_emitc",
]


# Each TTNN function becomes a C++ function that calls the ttnn library.


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
    facts = SourceFacts(release)
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
    loops: Sequence[_RecordedLoop]


@dataclass(frozen=True)
class _RecordedLoop:
    """The body of a loop before it is written."""

    loop: LoopFunction
    recorder: Recorder
    iteration: str
    """C++ name of the function of one iteration."""
    statements: Sequence[Statement]
    terminator: ReturnOp


def _record(entry: Entry, facts: SourceFacts, function_names: NameScope) -> _Recorded:
    """Records the ops of an entry function, with equal layers as calls of one function."""
    function_names.reserve(entry.cpp_name, prepare_name(entry.cpp_name), uniform_name(entry))
    members = Members.of(entry)
    ops = [op for op in body_of(entry.function).ops if not is_deallocation(op)]
    terminator = ops.pop()
    assert isinstance(terminator, ReturnOp)
    names = entry.names.values
    loop_names = {each.function.sym_name.data: each.cpp_name for each in entry.loops}
    function_names.reserve(*loop_names.values())
    loops = [_record_loop(each, facts, function_names, loop_names) for each in entry.loops]
    recorder = Recorder(facts, names, loop_names)
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
        places=members.places,
        elements=entry.elements,
        function=entry.cpp_name,
        is_type=entry.types.is_taken,
    )
    calling, functions = layers.outline_layers(statements, known)
    held, calling = hold_weights(entry, calling, functions, members.places, returned)
    calling = with_loops(calling, functions, returned, members.places)
    recorder.names = names.renamed(names_of_loops(calling, functions))
    recorder.vectors |= vectors_of_loops(calling, functions)
    return _Recorded(replace(body, entry=held), calling, functions, terminator, loops)


def _record_loop(
    loop: LoopFunction,
    facts: SourceFacts,
    function_names: NameScope,
    loop_names: Mapping[str, str],
) -> _RecordedLoop:
    ops = [op for op in body_of(loop.function).ops if not is_deallocation(op)]
    terminator = ops.pop()
    assert isinstance(terminator, ReturnOp)
    recorder = Recorder(facts, loop.names.values, loop_names)
    iteration = function_names.unique(f"{loop.cpp_name}_iteration")
    if flags_of_loop(loop.function):
        facts.own_headers.add("support/tensor.hpp")
    facts.headers.update(("cstdint", "tuple"))
    return _RecordedLoop(loop, recorder, iteration, recorder.record(ops), terminator)


def _write_entry(source: SourceFile, recorded: _Recorded) -> None:
    """Defines the functions of one entry."""
    body = recorded.body
    entry = body.entry
    if entry.has_constants:
        write_preparation(source, entry, library_preparation(source.facts, entry))
    for loop in recorded.loops:
        _write_loop(source, loop)
    for function in recorded.layers:
        write_outlined(source, function, body.recorder)
    write_entry_function(source, body, recorded.statements, recorded.terminator.operands)
    if has_uniform_signature(entry):
        define_uniform(source.file, entry)
        source.file.blank()


def _write_loop(source: SourceFile, recorded: _RecordedLoop) -> None:
    """Defines a loop as two functions: one iteration, and the loop that calls it."""
    loop, names = recorded.loop, recorded.recorder.names
    flags = ["going"][: flags_of_loop(loop.function)]
    scope = NameScope([DEVICE, *flags, "trip"])
    arguments = body_of(loop.function).args
    parameters = [scope.unique(identifier(names[argument])) for argument in arguments]
    carried = parameters[: len(recorded.terminator.operands) - len(flags)]
    captured = parameters[len(carried) :]
    constant = f"const {TENSOR}&"
    state = f"std::tuple<{', '.join([TENSOR] * len([*flags, *carried]))}>"
    remark = "whether there is another one, and what that takes" if flags else "what the next takes"
    source.file.comment(f"An iteration of {loop.cpp_name}: returns {remark}.")
    builder = source.file.function(
        recorded.iteration,
        [*((name, constant) for name in parameters), (DEVICE, "ttnn::MeshDevice&")],
        state,
        specifiers=["static"],
        fixed_names=[DEVICE],
    )
    *inputs, device = builder.arguments
    writer = FunctionWriter(source, builder, Members(), {DEVICE: device}, recorded.recorder)
    writer.values.update(zip(arguments, inputs, strict=True))
    returned = recorded.terminator.operands
    writer.write(recorded.statements, returned=returned, reserved=parameters)
    writer.return_values(returned, state)
    source.file.blank()
    if flags:
        source.file.comment("Runs while the condition, which is read from the device, holds.")
    taken = [*((name, TENSOR) for name in [*flags, *carried]), *((n, constant) for n in captured)]
    body = source.file.function(
        loop.cpp_name,
        [*taken, (DEVICE, "ttnn::MeshDevice&")],
        returned_type([TENSOR] * len(carried)),
        specifiers=["static"],
        fixed_names=[DEVICE],
    )
    condition, passed = body.arguments[: len(flags)], body.arguments[len(flags) :]
    kept = passed[: len(carried)]
    trips = f"std::uint32_t trip = 0; trip < {loop.trip_count}; ++trip"
    head = "while (support::read_flag({}))" if flags else f"for ({trips})"
    body.verbatim(
        f"{head} {{{{\n"
        f"    std::tie({_placeholders(condition + kept)}) = "
        f"{recorded.iteration}({_placeholders(passed)});\n"
        "}",
        *condition,
        *condition,
        *kept,
        *passed,
    )
    form = "return {};" if len(kept) == 1 else f"return {{{{{_placeholders(kept)}}};"
    body.verbatim(form, *kept)
    source.file.blank()


def _placeholders(values: Sequence[SSAValue]) -> str:
    """Placeholders of values in verbatim C++."""
    return ", ".join(["{}"] * len(values))


# Pass that converts TTNN functions to C++ files.


@dataclass(frozen=True)
class ConvertTTNNToEmitC(FileEmission):
    """Replaces the TTNN functions of a module by one `emitc.file` per source file.

    Constants that the code reads from files are in the module's attribute `ttcodegen.constants`.

    Raises:
        CompileError: if there is no entry function, or an op is not of TTNN or has no layout.
    """

    name = "convert-ttnn-to-emitc"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        complete_layouts(ctx, op)
        functions = self.interface or required(entries(op))
        program = convert_ttnn_to_emitc(
            self.cpp_name(op), functions, self.source_hash(op), self.release, self.trace
        )
        # Files that earlier passes made of the module's operations are kept.
        others = [inner for inner in op.ops if isinstance(inner, FileOp)]
        replace_content(op, [*program.module.ops, *others])
        hold_constants(op, program.constants)


def complete_layouts(context: Context, module: ModuleOp) -> None:
    """Completes the lowering of a module to TTNN ops with layouts.

    Assigns layouts where the module is marked for it, lowers TTIR ops among ttnn calls, and
    decomposes changes of layout into ttnn calls.

    Raises:
        CompileError: if TTIR ops or tensors without layouts are left.
    """
    assign_wanted_layouts(context, module)
    if _is_partly_lowered(module):
        PassRunner(context).run(module, passes_of("ttnn-to-ttnn-pipeline"))
    _require_ttnn(module)
    if any(inner.name == "ttnn.composite_to_layout" for inner in module.walk()):
        DecomposeLayouts().apply(context, module)


def _is_partly_lowered(module: ModuleOp) -> bool:
    """Returns whether a module with ttnn calls still needs lowering.

    That is so if it has TTIR ops, tensors without layouts, or calls of functions on the device."""
    names = {op.name.partition(".")[0] for op in module.walk()}
    if "ttnn" not in names:
        return LAYOUTS_WANTED in module.attributes
    on_cpu = {function.sym_name.data for function in cpu_functions(module)}
    return "ttir" in names or any(
        _lacks_layout(op) or (isinstance(op, CallOp) and op.callee.string_value() not in on_cpu)
        for op in module.walk()
    )


def _lacks_layout(op: Operation) -> bool:
    """Returns whether an op has an operand or result without a layout."""
    return isinstance(op, CatalogueOp) and any(
        not isinstance(getattr(value.type, "encoding", None), TTNNLayoutAttr)
        for value in (*op.operands, *op.results)
    )


def _require_ttnn(module: ModuleOp) -> None:
    """Raises CompileError if a function has ops of TTIR, or tensors without layouts."""
    for op in module.walk():
        if isinstance(op, FuncOp):
            for argument in body_of(op).args:
                if not isinstance(getattr(argument.type, "encoding", None), TTNNLayoutAttr):
                    raise CompileError(
                        f"an argument of '{op.sym_name.data}' has no layout",
                        op,
                        remedy="run --convert-ttir-to-ttnn and --ttnn-layout first",
                    )
            continue
        if op.name.startswith("ttir."):
            raise CompileError(
                f"'{op.name}' has to be lowered before it becomes EmitC",
                op,
                remedy="run --convert-ttir-to-ttnn and --ttnn-layout first",
            )
        if _lacks_layout(op):
            raise CompileError(
                f"a tensor of '{op.name}' has no layout", op, remedy="run --ttnn-layout first"
            )


# Limits of traces.
#
# Between the begin and the end of a capture the host neither writes to the device nor reads from
# it (tt-metal: tt_metal/distributed/fd_mesh_command_queue.cpp).

_REMEDY = "compile the module without --trace"


def require_traceable(entries: Sequence[Entry], cpu_functions: Iterable[FuncOp] = ()) -> None:
    """Checks that functions can be captured.

    Args:
        entries: the functions.
        cpu_functions: functions that the host calls between device programs; exchanges between
            devices that replace such calls can be captured.

    Raises:
        CompileError: with all reasons.
    """
    exchanges = chip_exchanges([entry.function for entry in entries], cpu_functions)
    captured = {op for exchange in exchanges for op in exchange.ops}
    # The prepare function runs before the capture.
    captured.update(op for entry in entries for op in device_constants(entry.function).ops)
    found = [error for entry in entries for error in _unsupported_calls(entry, captured)]
    if found:
        raise CompileError.from_diagnostics([d for error in found for d in error.diagnostics])


def _unsupported_calls(entry: Entry, captured: Container[Operation]) -> Iterator[CompileError]:
    for tensor in entry.arguments:
        if not tensor.is_weight and _is_on_host(tensor.value):
            message = f"a trace cannot read the input '{tensor.name}', which is on the host"
            yield CompileError(message, entry.function, remedy=_REMEDY)
    for op in body_of(entry.function).ops:
        if op not in captured and (reason := _reason(op)):
            message = f"'{operation_name(op)}' cannot be part of a trace: {reason}"
            yield CompileError(message, op, remedy=_REMEDY)


def _reason(op: Operation) -> str:
    """Returns the reason for which an op cannot be captured; empty if it can."""
    if isinstance(op, LoadCachedOp):
        # Its results are computed before the first call; uses check their placement.
        return ""
    if isinstance(op, WhileLoopOp) and op.trip_count is None:
        return "the host reads in each iteration whether there is another one"
    if any(map(_is_on_host, op.results)):
        return "its result goes to the host"
    if any(map(_is_on_host, op.operands)):
        return "one of its operands is on the host"
    if has_trait(op, Trait.USES_HOST):
        return "the host participates in each call"
    return ""


def _is_on_host(value: SSAValue) -> bool:
    """Returns whether a tensor is in host memory or has no device layout."""
    if not isinstance(value.type, TensorType):
        return False
    return not has_placement(value) or placement_of(value).buffer_type == "system_memory"
