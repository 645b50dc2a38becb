"""From the text of a module to everything that a project is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ttcodegen.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.dialects.system import set_system, system_of
from ttcodegen.dialects.verification import verify_module
from ttcodegen.frontends import source_module
from ttcodegen.ops.context import load_dialects
from ttcodegen.parsing import check_supported
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE, SystemDescription, default_system
from ttcodegen.systems.releases import DEFAULT_RELEASE
from ttcodegen.transforms.pass_options import OptionValue
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import Step, passes_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ttcodegen.conversions.cpp_interface import ConstantFile
    from ttcodegen.conversions.interface import Entry, InterfaceTensor
    from ttcodegen.emission.description import (
        DataFile,
        FunctionDescription,
        ModuleDescription,
        ProjectKind,
        TensorDescription,
    )
    from ttcodegen.flatbuffer.writer import Origin


PIPELINES = {"ttnn": "ttir-to-ttnn-common-pipeline", "ttmetal": "ttir-to-ttmetal-pipeline"}
"""What lowers a module, by target."""
WEIGHT_TYPES = {"bfp8_b": "bfp_bf8", "bfp4_b": "bfp_bf4"}
"""Block floats by the names of the library, and of the pipelines."""
TTNN_PIPELINE = "ttnn-to-ttnn-pipeline"
"""What a module goes through that calls the library already."""


@dataclass(frozen=True)
class CompileOptions:
    """What a user may choose about the code."""

    module_name: str
    """The name that the C++ module is called by if the input has none of its own."""
    target: str = "ttnn"
    arch: str = ""
    """The architecture; if empty, that of the system the module names, or wormhole_b0."""
    release: str = DEFAULT_RELEASE
    style: str | None = None
    """The .clang-format text that the C++ is formatted by; None leaves it as it is printed."""
    system: SystemDescription | None = None
    """The system; None for the default one of the architecture."""
    optimize: int = 0
    """How much is optimized: 0 nothing, 1 what never hurts, 2 with a search for layouts."""
    weights: str = ""
    """What weights of products become: bfp8_b, bfp4_b, or what they are if empty."""
    overrides: str = ""
    """Decisions for the optimizer, as the text of a JSON file."""
    kind: ProjectKind = "both"
    """What the project is for: a shared object, an executable, or both."""
    golden_seed: int | None = None
    """The seed of the inputs whose golden values go into the flatbuffer; None for no values."""


@dataclass(frozen=True)
class CompiledModule:
    """A compiled module, in memory."""

    description: ModuleDescription
    files: dict[str, str]
    """Source files by their path in the project."""
    flatbuffer: bytes
    decisions: str = ""
    """What the optimizer decided, as the text of a file of overrides."""
    explanation: str = ""
    """Why, as a table."""


_RECORDS = ("ttcodegen.decisions", "ttcodegen.explanation")
"""Attributes of a module that the optimizer leaves."""


def _recorded(module: ModuleOp, name: str) -> str:
    """What an attribute of a module says, which is taken off."""
    from xdsl.dialects.builtin import StringAttr

    attribute = module.attributes.pop(name, None)
    return attribute.data if isinstance(attribute, StringAttr) else ""


def compile_module(
    source: Source,
    options: CompileOptions,
    runner: PassRunner | None = None,
    diagnostics: Diagnostics | None = None,
) -> CompiledModule:
    """Compiles a module.

    Raises:
        CompileError: if the input is wrong or not supported; all unsupported ops are in one error.
    """
    if options.target not in PIPELINES:
        raise CompileError(f"target '{options.target}' is not supported")
    if options.golden_seed is not None and options.target != "ttnn":
        raise CompileError("golden values are embedded in .ttnn files only")
    runner = runner if runner is not None else PassRunner(load_dialects())
    with runner.stage("parse"):
        module = source_module(source, diagnostics)
        check_supported(module)
    input_hash = source.digest
    with runner.stage("verify"):
        verify_module(module)
        source_dtypes = _source_dtypes(module)
    options = _for_system(module, options)
    chosen: dict[str, OptionValue] = {}
    if options.weights and options.target == "ttnn":
        chosen["experimental-weight-dtype"] = WEIGHT_TYPES[options.weights]
    if options.optimize and options.target == "ttnn":
        chosen["optimization-level"] = options.optimize
        chosen["record-decisions"] = True
        if options.overrides:
            chosen["overrides"] = options.overrides
    runner.run(module, passes_of(Step(_pipeline(module, options.target), chosen)))
    decisions, explanation = (_recorded(module, name) for name in _RECORDS)
    compiled = emit_module(module, options, runner, input_hash, source_dtypes)
    compiled = replace(compiled, decisions=decisions, explanation=explanation)
    if options.golden_seed is None:
        return compiled
    with runner.stage("golden values"):
        return _with_goldens(source, module, compiled, options.golden_seed)


def _pipeline(module: ModuleOp, target: str) -> str:
    """The pipeline that lowers a module; raises CompileError if it is past that of the target."""
    if not any(op.dialect_name() == "ttnn" for op in module.walk()):
        return PIPELINES[target]
    if target != "ttnn":
        raise CompileError(
            f"a module of TTNN calls the library: there is no way from it to {target}",
            remedy="leave --target out, or give the module as it was before its lowering to TTNN",
        )
    return TTNN_PIPELINE


def _with_goldens(
    source: Source, module: ModuleOp, compiled: CompiledModule, seed: int
) -> CompiledModule:
    from ttcodegen.numerics.golden_values import embed_goldens

    flatbuffer = embed_goldens(source, module, compiled.flatbuffer, seed)
    return replace(compiled, flatbuffer=flatbuffer)


def _for_system(module: ModuleOp, options: CompileOptions) -> CompileOptions:
    """The options with the system that is compiled for, which the module then names.

    Raises CompileError if the options name an architecture and a system of another one.
    """
    system = options.system
    if system is None and options.arch:
        system = default_system(options.arch)
    system = system or system_of(module) or default_system(DEFAULT_ARCHITECTURE)
    if options.arch not in ("", system.arch):
        raise CompileError(
            f"the system description is of a {system.arch}, not of a {options.arch}",
            remedy="leave --arch out: the description says it",
        )
    set_system(module, system)
    return replace(options, arch=system.arch, system=system)


def _source_dtypes(module: ModuleOp) -> dict[str, tuple[list[str], list[str]]]:
    """The numpy dtypes of arguments and results of each function, as the source has them."""
    from xdsl.dialects.func import FuncOp

    from ttcodegen.dialects.datatypes import element_of, numpy_name

    def names(types: Sequence[object]) -> list[str]:
        return [numpy_name(element_of(type_)) or "float32" for type_ in types]  # pyright: ignore

    return {
        op.sym_name.data: (
            names(op.function_type.inputs.data),
            names(op.function_type.outputs.data),
        )
        for op in module.walk()
        if isinstance(op, FuncOp)
    }


@dataclass(frozen=True)
class _Emitted:
    """What a module was written as."""

    functions: Sequence[Entry]
    constants: Sequence[ConstantFile]
    files: dict[str, str]
    flatbuffer: bytes
    kernels: tuple[Mapping[str, Any], ...] = ()
    programs: tuple[Mapping[str, Any], ...] = ()
    cpu_functions: tuple[Mapping[str, Any], ...] = ()


def emit_module(
    module: ModuleOp,
    options: CompileOptions,
    runner: PassRunner,
    input_hash: str,
    source_dtypes: Mapping[str, tuple[Sequence[str], Sequence[str]]],
) -> CompiledModule:
    """Writes a lowered module.

    Args:
        module: what the pipeline of the target left.
        options: with the system that it was lowered for.
        runner: measures the stages.
        input_hash: identifies the text that was compiled.
        source_dtypes: the numpy dtypes of arguments and results of each function in that text.

    Raises:
        CompileError: if something has no C++, or nothing can be called.
    """
    from ttcodegen.emission.description import ModuleDescription, module_name
    from ttcodegen.emitc.formatting import format_files
    from ttcodegen.flatbuffer.writer import Origin

    name = module_name(options.module_name)
    assert options.system is not None
    # What an architecture has by default need not be told.
    system = b""
    if options.system != default_system(options.arch):
        from ttcodegen.flatbuffer.system import write_ttsys

        system = write_ttsys(options.system)
    origin = Origin(input_hash, options.arch, options.release, system)
    emit = _emit_ttmetal if options.target == "ttmetal" else _emit_ttnn
    emitted = emit(module, name, origin, runner)
    with runner.stage("clang-format"):
        enabled = options.style is not None
        files = format_files(emitted.files, options.style or "", enabled=enabled)
    with runner.stage("describe"):
        described = tuple(
            _describe(entry, options.target, *source_dtypes[entry.name])
            for entry in emitted.functions
        )
        description = ModuleDescription(
            name,
            described,
            options.target,
            options.arch,
            options.release,
            input_hash,
            tuple(_data_file(constant) for constant in emitted.constants),
            emitted.kernels,
            emitted.programs,
            emitted.cpu_functions,
            options.kind,
        )
    return CompiledModule(description, files, emitted.flatbuffer)


def _emit_ttnn(module: ModuleOp, name: str, origin: Origin, runner: PassRunner) -> _Emitted:
    from ttcodegen.conversions.interface import entries
    from ttcodegen.conversions.ttnn_to_emitc import convert_ttnn_to_emitc
    from ttcodegen.emitc.printer import print_module
    from ttcodegen.flatbuffer.writer import write_ttnn

    functions = entries(module)
    _require_functions(functions)
    with runner.stage("flatbuffer"):
        flatbuffer = write_ttnn(module, origin)
    with runner.stage("convert-ttnn-to-emitc"):
        program = convert_ttnn_to_emitc(name, functions, origin.input_hash, origin.release)
    runner.dump_stage(program.module, "convert-ttnn-to-emitc")
    with runner.stage("print C++"):
        files = print_module(program.module)
    return _Emitted(program.entries, program.constants, files, flatbuffer)


def _emit_ttmetal(module: ModuleOp, name: str, origin: Origin, runner: PassRunner) -> _Emitted:
    from ttcodegen.emission.device_sources import device_sources
    from ttcodegen.flatbuffer.ttm_writer import write_ttm

    with runner.stage("write device sources"):
        sources = device_sources(module, name, origin)
    _require_functions(sources.entries)
    runner.dump_stage(sources.host.module, "convert-ttmetal-to-emitc")
    with runner.stage("flatbuffer"):
        flatbuffer = write_ttm(module, origin, sources.kernel_texts)
    return _Emitted(
        sources.entries,
        sources.host.constants,
        sources.files,
        flatbuffer,
        sources.kernels,
        sources.programs,
        sources.cpu_functions,
    )


def _require_functions(functions: Sequence[Entry]) -> None:
    if not functions:
        raise CompileError(
            "the module has no public function",
            remedy="remove 'private' from the function that is to be called",
        )


def _data_file(constant: ConstantFile) -> DataFile:
    from ttcodegen.dialects.constants import constant_array
    from ttcodegen.emission.description import DataFile
    from ttcodegen.ops.layout import converted

    array = constant_array(constant.value)
    if not constant.data_type.is_float and array.dtype.name != constant.data_type.numpy:
        array = converted(array, constant.data_type.numpy)
    return DataFile(constant.name, array)


def _describe(
    entry: Entry, target: str, argument_dtypes: Sequence[str], result_dtypes: Sequence[str]
) -> FunctionDescription:
    from ttcodegen.emission.description import FunctionDescription

    return FunctionDescription(
        entry.name,
        entry.cpp_name,
        tuple(_tensor(p, d) for p, d in zip(entry.arguments, argument_dtypes, strict=True)),
        tuple(_tensor(p, d) for p, d in zip(entry.results, result_dtypes, strict=True)),
        # Programs of the device are kept from call to call, as constants are.
        entry.has_constants or target == "ttmetal",
    )


def _tensor(tensor: InterfaceTensor, source_dtype: str) -> TensorDescription:
    from ttcodegen.dialects.placement import placement_of
    from ttcodegen.emission.description import TensorDescription, TensorKind
    from ttcodegen.emission.tolerances import output_tolerance

    placement = placement_of(tensor.value)
    return TensorDescription(
        tensor.name,
        tensor.field,
        TensorKind(tensor.kind),
        placement.shape,
        placement.data_type,
        placement.layout,
        placement.buffer_type,
        source_dtype,
        tolerance=output_tolerance(tensor.value, source_dtype) if tensor.kind == "output" else None,
    )
