"""Compilation of a module's text to all parts of a project."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ttcodegen.dialects.operations.functions import has_kernels
from ttcodegen.dialects.operations.verification import verify_module
from ttcodegen.dialects.ttcore.device import (
    ONE_CHIP,
    MeshShape,
    declared_mesh,
    mark_traced,
)
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.foundation.messages import did_you_mean
from ttcodegen.frontends import source_module
from ttcodegen.naming.arguments import refuse_unusable_names
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.parsing import check_supported
from ttcodegen.systems.cards import card_text, default_system
from ttcodegen.systems.description import SystemDescription
from ttcodegen.systems.releases import DEFAULT_RELEASE
from ttcodegen.target_system import (
    mesh_of_all_chips,
    refuse_other_mesh,
    set_target_system,
    warn_if_undivided,
)
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import OptionValue, Step, passes_of
from ttcodegen.transforms.ttir.source_types import note_kept_weights, settle_source_types
from ttcodegen.transforms.ttnn.pipelines import level_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import SSAValue

    from ttcodegen.conversions.host_functions.interface import Entry
    from ttcodegen.cost import FunctionEstimate
    from ttcodegen.emission.convert_to_emitc import CalledOperations
    from ttcodegen.emission.description import (
        DeviceManifest,
        Fabric,
        ModuleDescription,
        ProjectKind,
    )
    from ttcodegen.emission.manifest_entries import OpLines
    from ttcodegen.flatbuffer.writer import Origin
    from ttcodegen.optimizer.refused_choices import Choice


PIPELINES = {"ttnn": "ttir-to-ttnn-common-pipeline", "ttmetal": "ttir-to-ttmetal-pipeline"}
"""Lowering pipelines by target."""
WEIGHT_OPTIONS = {"ttnn": "experimental-weight-dtype", "ttmetal": "weight-dtype"}
"""Pipeline options that set the weight data type, by target."""
WEIGHT_TYPES = {"bfp8_b": "bfp_bf8", "bfp4_b": "bfp_bf4"}
"""Pipeline names of block-float types by their ttnn names."""
ACTIVATION_TYPES = {"bfp8_b": "bfp_bf8"}
"""The same of activations: 4 bits are too few for sums and norms."""
TTNN_PIPELINE = "ttnn-to-ttnn-pipeline"
"""Pipeline for modules already in TTNN."""


@dataclass(frozen=True)
class CompileOptions:
    """Options of compilation."""

    module_name: str
    """Name of the C++ module if the input has none."""
    target: str = "ttnn"
    arch: str = ""
    """Architecture; if empty, that of the module's system, or wormhole_b0."""
    release: str = DEFAULT_RELEASE
    style: str | None = None
    """Text of a .clang-format file for the C++; None disables formatting."""
    system: SystemDescription | None = None
    """System description; None for the default system of the architecture."""
    optimize: int = 0
    """Optimization level: 0 none, 1 local choices, 2 layout search."""
    weights: str = ""
    """Weight type of matmuls: bfp8_b, bfp4_b, or empty for unchanged."""
    activations: str = ""
    """Type of activations between calls that take it: bfp8_b, or empty for unchanged."""
    overrides: str = ""
    """Optimizer overrides in JSON."""
    refused: str = ""
    """Choices that the library refused, in JSON; if not empty, choices are recorded."""
    kind: ProjectKind = "both"
    """Project kind: shared object, executable, or both."""
    golden_seed: int | None = None
    """Seed of the inputs for golden values embedded in the flatbuffer; None for no golden
    values."""
    mesh: MeshShape = ONE_CHIP
    """Mesh shape (rows, columns), for a module that declares none."""
    hosts: MeshShape = ONE_CHIP
    """Rows and columns of hosts in the mesh."""
    fabric: Fabric | None = None
    """Fabric topology that the project configures for a mesh; None for linear.

    None is required for one device.
    """
    parallel: str = ""
    """Parallelism for a module without shardings: auto, or kinds with mesh axes as in
    data=0,tensor=1; empty for none."""
    f16: str = "bfloat16"
    """Data type that replaces f16 of the source: bfloat16 or float32."""
    stages: str = ""
    """Pipeline stages: a count, or the comma-separated names of ops that end stages; empty for
    none.

    The last stage ends with the function.
    """
    micro_batches: int = 1
    """Number of parts of the batch that go through the stages in turn."""
    trace: bool = False
    """True if calls of the C++ are captured as device traces and replayed."""


@dataclass(frozen=True)
class CompiledModule:
    """A compiled module, in memory."""

    description: ModuleDescription
    files: dict[str, str]
    """Source files by path in the project."""
    flatbuffer: bytes
    """Empty if the module has programs without TTIR equivalents."""
    decisions: str = ""
    """Optimizer decisions, in the format of an overrides file."""
    explanation: str = ""
    """Table that explains the decisions."""
    lines: tuple[OpLines, ...] = ()
    """Lines of ops in the source files; empty if these are formatted."""
    choices: Mapping[str, Sequence[Choice | None]] = field(default_factory=dict[str, Any])
    """Recorded choices of the optimizer by program, one for each of its operations."""


_RECORDS = (
    *("ttcodegen.decisions", "ttcodegen.explanation"),
    *("ttcodegen.shardings", "ttcodegen.shardings-explanation"),
)
"""Module attributes set by the optimizer."""


def _recorded(module: ModuleOp, name: str) -> str:
    """Removes a string attribute of a module and returns its value."""
    from xdsl.dialects.builtin import StringAttr

    attribute = module.attributes.pop(name, None)
    return attribute.data if isinstance(attribute, StringAttr) else ""


def compile_module(
    source: Source,
    options: CompileOptions,
    runner: PassRunner | None = None,
    diagnostics: Diagnostics | None = None,
    divide: Callable[[ModuleOp, CompileOptions], None] | None = None,
) -> CompiledModule:
    """Compiles a module.

    Args:
        source: text of the module.
        options: options of compilation.
        runner: pass runner.
        diagnostics: receives warnings.
        divide: replaces the functions of the module, which is still in TTIR.

    Raises:
        CompileError: if the input is invalid or unsupported; lists all unsupported ops.
    """
    from ttcodegen.optimizer.overrides.refusals import listing_all_refusals

    _refuse_impossible(options)
    runner = runner if runner is not None else PassRunner(load_dialects())
    with runner.stage("parse"):
        module = source_module(source, diagnostics, _assumed_mesh(options))
        refuse_other_mesh(module, options.mesh)
        pipeline = _pipeline(module, options.target)
        if pipeline is not None:
            check_supported(module)
    with runner.stage("verify"):
        verify_module(module)
        refuse_unusable_names(module)
        source_dtypes = _source_dtypes(module)
    settle_source_types(module, options.f16, source)
    _refuse_mesh_options(module, options)
    if not (options.parallel or _has_shardings(options.overrides)):
        warn_if_undivided(module, options.target, diagnostics)
    elif pipeline == TTNN_PIPELINE:
        raise CompileError(
            "a module of TTNN says what each device computes: no shardings are left to choose",
            remedy="leave out --parallel, and shardings in overrides",
        )
    system = set_target_system(module, options.arch, options.system, options.hosts)
    options = replace(options, arch=system.arch, system=system)
    if divide is not None:
        with runner.stage("stages"):
            divide(module, options)
        source_dtypes.update(_source_dtypes(module))
    if options.trace:
        mark_traced(module)
    chosen: dict[str, OptionValue] = {}
    if options.target == "ttnn" and options.release != DEFAULT_RELEASE:
        chosen["release"] = options.release
    if options.weights:
        chosen[WEIGHT_OPTIONS[options.target]] = WEIGHT_TYPES[options.weights]
    if options.activations:
        chosen["experimental-activation-dtype"] = ACTIVATION_TYPES[options.activations]
    if options.parallel:
        chosen["parallel"] = options.parallel
    if options.optimize or options.overrides:
        level = options.optimize or level_of(options.overrides)
        chosen["optimization-level"] = level
        chosen["record-decisions"] = level > 0
        if options.overrides:
            chosen["overrides"] = options.overrides
        if options.refused:
            chosen["refused-choices"] = options.refused

    def compile_with(overrides: str) -> CompiledModule:
        given = replace(options, overrides=overrides)
        return compile_module(source, given, divide=divide)

    if pipeline is not None:
        with listing_all_refusals(options.overrides, compile_with):
            runner.run(module, passes_of(Step(pipeline, chosen)))
        if options.activations:
            from ttcodegen.optimizer.activation_types import note_kept_types

            note_kept_types(module, options.activations, options.weights)
        elif options.weights:
            note_kept_weights(module, options.weights)
    elif chosen:
        raise CompileError(
            f"the module holds programs of the device already: {', '.join(chosen)} would not be "
            "followed"
        )
    decisions, explanation, shardings, shardings_explanation = (
        _recorded(module, name) for name in _RECORDS
    )
    if shardings:
        from ttcodegen.optimizer.overrides.overrides import with_shardings

        if options.parallel and not any(json.loads(shardings).values()):
            from ttcodegen.transforms.mesh.parallelism import note_undivided

            note_undivided(module, options.parallel, diagnostics)
        decisions = with_shardings(decisions, shardings)
        explanation = "\n".join(filter(None, (shardings_explanation, explanation)))
    choices: dict[str, list[Choice | None]] = {}
    if options.refused:
        from ttcodegen.optimizer.refused_choices import take_choices

        choices = take_choices(module)
    embed = None if options.golden_seed is None else _embedding(source, module, options.golden_seed)
    compiled = emit_module(module, options, runner, source.digest, source_dtypes, embed)
    return replace(compiled, decisions=decisions, explanation=explanation, choices=choices)


def _assumed_mesh(options: CompileOptions) -> MeshShape:
    """Returns the mesh of modules that declare none: if they are to be sharded, all given chips."""
    if options.parallel and options.mesh == ONE_CHIP and options.system is not None:
        return mesh_of_all_chips(options.system, options.hosts)
    return options.mesh


def _refuse_impossible(options: CompileOptions) -> None:
    """Raises CompileError for options that the target does not support, and invalid values."""
    if options.target not in PIPELINES:
        raise CompileError(
            f"target '{options.target}' is not supported{did_you_mean(options.target, PIPELINES)}"
        )
    for what, given, types in (
        ("weights", options.weights, WEIGHT_TYPES),
        ("activations", options.activations, ACTIVATION_TYPES),
    ):
        if given and given not in types:
            raise CompileError(
                f"{what} cannot be '{given}'{did_you_mean(given, types)}",
                remedy=f"they can be {' or '.join(types)}",
            )
    if options.optimize not in (0, 1, 2):
        raise CompileError(f"there is no level {options.optimize} of the optimizer: 0, 1 or 2")
    if options.target == "ttnn":
        return
    if options.golden_seed is not None:
        raise CompileError("golden values are embedded in .ttnn files only")
    if options.activations:
        raise CompileError(no_block_floats("activations", options.target))
    if options.optimize or options.overrides:
        raise CompileError(no_optimizer("an optimization level", options.target))


def no_optimizer(option: str, target: str) -> str:
    """Returns the error message for an optimizer option on a target without optimizer."""
    return f"{option} is for calls of the ttnn library: {target} has no optimizer"


def no_block_floats(option: str, target: str) -> str:
    """Returns the error message for block floats as activations on a target without them."""
    return f"{option} is for calls of ttnn: programs of {target} keep no block floats between them"


def _refuse_mesh_options(module: ModuleOp, options: CompileOptions) -> None:
    """Raises CompileError for hosts or a fabric that the module or its project does not support."""
    from ttcodegen.emission.interface_description import refuse_fabric, refuse_hosts

    mesh = declared_mesh(module)
    refuse_fabric(mesh, options.fabric, options.target, options.kind)
    refuse_hosts(mesh, options.hosts, options.target, options.kind)


def _pipeline(module: ModuleOp, target: str) -> str | None:
    """Returns the lowering pipeline of a module; None if it contains device programs.

    Raises:
        CompileError: if the module is at a later stage than the pipeline of the target.
    """
    from ttcodegen.dialects.ttmetal.device_module import holds_programs

    if has_kernels(module) and holds_programs(module):
        if target != "ttmetal":
            raise CompileError(
                f"a module with programs of the device is not compiled for {target}",
                remedy="give --target ttmetal",
            )
        return None
    if not any(op.dialect_name() == "ttnn" for op in module.walk()):
        return PIPELINES[target]
    if target != "ttnn":
        raise CompileError(
            f"a module of TTNN calls the library: there is no way from it to {target}",
            remedy="leave --target out, or give the module as it was before its lowering to TTNN",
        )
    return TTNN_PIPELINE


def _has_shardings(overrides: str) -> bool:
    """Returns whether overrides contain shardings of arguments."""
    if not overrides:
        return False
    from ttcodegen.optimizer.overrides.overrides import read_shardings

    return bool(read_shardings(overrides))


def _embedding(source: Source, module: ModuleOp, seed: int) -> Callable[[bytes], bytes]:
    """Returns a function that embeds golden values of the source in the lowered module's
    flatbuffer."""

    def embed(flatbuffer: bytes) -> bytes:
        from ttcodegen.numerics.golden_values import embed_goldens

        return embed_goldens(source, module, flatbuffer, seed)

    return embed


def _source_dtypes(module: ModuleOp) -> dict[str, tuple[list[str], list[str]]]:
    """Returns the numpy dtypes of each function's arguments and results in the source."""
    from xdsl.dialects.func import FuncOp

    from ttcodegen.dialects.core.datatypes import element_of, numpy_name

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


def emit_module(
    module: ModuleOp,
    options: CompileOptions,
    runner: PassRunner,
    input_hash: str,
    source_dtypes: Mapping[str, tuple[Sequence[str], Sequence[str]]],
    embed: Callable[[bytes], bytes] | None = None,
) -> CompiledModule:
    """Emits C++ and the flatbuffer of a lowered module; converts the module to EmitC.

    Args:
        module: lowered module.
        options: options with the target system.
        runner: runs the passes, and records the time of the other stages.
        input_hash: hash of the source text.
        source_dtypes: numpy dtypes of each function's arguments and results in the source.
        embed: embeds golden values in the flatbuffer; called before the conversion to EmitC.

    Raises:
        CompileError: if an op has no C++ equivalent, or there is no entry function.
    """
    from ttcodegen.conversions.host_functions.cpp_interface import (
        FileEmission,
        constants_of,
        functions_in_files,
    )
    from ttcodegen.emission.interface_description import data_file, module_name
    from ttcodegen.emission.manifest_entries import LoweredOps, exchanged_over_links
    from ttcodegen.emitc.formatting import format_files
    from ttcodegen.emitc.printer import print_with_origins
    from ttcodegen.naming.arguments import prepare_name
    from ttcodegen.ops.tt_lang import LIBRARY_CALL

    name = module_name(options.module_name)
    origin = _origin(options, input_hash)
    given = {"module-name": name, "input-hash": input_hash, "release": options.release}
    called: CalledOperations | None = None
    if options.target == "ttmetal":
        runner.run(module, passes_of(Step("convert-ttkernel-to-emitc", given)))
    elif any(op.name == LIBRARY_CALL for op in module.walk()):
        from ttcodegen.emission.convert_to_emitc import write_called_operations

        with runner.stage("operations"):
            called = write_called_operations(module, name, input_hash, options.release)
    has_flatbuffer, flatbuffer = True, b""
    if options.target == "ttmetal":
        from ttcodegen.conversions.mesh import share_on_host
        from ttcodegen.emission.convert_to_emitc import kernel_texts
        from ttcodegen.flatbuffer.writer import write_ttm

        if has_flatbuffer := _has_meanings(module):
            with runner.stage("flatbuffer"):
                exchanges = exchanged_over_links(module)
                flatbuffer = write_ttm(module, origin, kernel_texts(module), exchanges)
        # The flatbuffer has global tensors: its readers need no shardings.
        share_on_host(module)
    with runner.stage("describe"):
        interface = _interface(module, options.target)
        device = _device_manifest(module, called, options)
        description = _describe(module, interface, device, options, name, input_hash, source_dtypes)
    description = replace(description, has_flatbuffer=has_flatbuffer)
    if options.target == "ttnn":
        from ttcodegen.flatbuffer.writer import write_ttnn

        with runner.stage("flatbuffer"):
            known = [n for e in interface for n in (e.names, *(loop.names for loop in e.loops))]
            flatbuffer = write_ttnn(module, origin, known)
    if embed is not None:
        with runner.stage("golden values"):
            flatbuffer = embed(flatbuffer)
    if options.trace:
        from ttcodegen.conversions.ttir_to_ttnn import cpu_functions
        from ttcodegen.conversions.ttnn_to_emitc import require_traceable

        require_traceable(interface, cpu_functions(module))
        description = replace(description, traced=True)
    ops = LoweredOps(module, _kernel_paths(module, options.target))
    (conversion,) = passes_of(Step(f"convert-{options.target}-to-emitc", given))
    assert isinstance(conversion, FileEmission)
    runner.run(module, [replace(conversion, interface=interface, trace=options.trace)])
    with runner.stage("print C++"):
        files, printed = print_with_origins(module)
        lines = ops.lines(files, printed)
    with runner.stage("clang-format"):
        enabled = options.style is not None
        files = format_files(files, options.style or "", enabled=enabled)
    prepared = functions_in_files(module) - {each.cpp_name for each in description.functions}
    description = replace(
        description,
        functions=tuple(
            replace(function, has_constants=prepare_name(function.cpp_name) in prepared)
            for function in description.functions
        ),
        data=tuple(data_file(constant) for constant in constants_of(module)),
    )
    return CompiledModule(description, files, flatbuffer, lines=() if enabled else lines)


def _kernel_paths(module: ModuleOp, target: str) -> Mapping[tuple[str, str], str]:
    if target != "ttmetal":
        return {}
    from ttcodegen.emission.convert_to_emitc import kernel_paths

    return kernel_paths(module)


def _has_meanings(module: ModuleOp) -> bool:
    """Returns whether every device program has a TTIR definition."""
    from ttcodegen.dialects.ttmetal.device_module import functions_of, is_meaning

    return not any(op.is_declaration for op in functions_of(module) if is_meaning(op))


def _origin(options: CompileOptions, input_hash: str) -> Origin:
    from ttcodegen.flatbuffer.writer import Origin

    assert options.system is not None
    # The name of an architecture implies its default system.
    system = b""
    if options.system != default_system(options.arch):
        from ttcodegen.flatbuffer.system import write_ttsys

        system = write_ttsys(options.system)
    return Origin(input_hash, options.arch, options.release, system)


def _interface(module: ModuleOp, target: str) -> list[Entry]:
    """Returns the entry functions of a lowered module.

    Raises:
        CompileError: if there are none.
    """
    from ttcodegen.conversions.host_functions.interface import entries, required

    if target == "ttnn":
        return required(entries(module))
    from ttcodegen.conversions.ttmetal_to_emitc.functions import device_entries

    return required(device_entries(module))


def _device_manifest(
    module: ModuleOp, called: CalledOperations | None, options: CompileOptions
) -> DeviceManifest:
    """Returns the manifest of the device programs in the module or in the operations that it
    calls."""
    from ttcodegen.emission.description import DeviceManifest

    assert options.system is not None
    if options.target == "ttmetal":
        from ttcodegen.emission.convert_to_emitc import kernel_paths
        from ttcodegen.emission.manifest_entries import device_manifest

        return device_manifest(module, kernel_paths(module), options.system.chip)
    if called is None:
        return DeviceManifest()
    from ttcodegen.emission.manifest_entries import kernel_entries, program_entries

    return DeviceManifest(
        kernel_entries(called.programs, called.paths, options.system.chip),
        tuple(program_entries(called.programs, called.launches, {})),
    )


def _describe(
    module: ModuleOp,
    functions: Sequence[Entry],
    device: DeviceManifest,
    options: CompileOptions,
    name: str,
    input_hash: str,
    source_dtypes: Mapping[str, tuple[Sequence[str], Sequence[str]]],
) -> ModuleDescription:
    """Describes a lowered module to its users, without its C++."""
    from ttcodegen.conversions.host_functions.tuning_constants import product_weights
    from ttcodegen.emission.description import ModuleDescription
    from ttcodegen.emission.interface_description import describe_function

    assert options.system is not None
    chip = options.system.chip
    estimates: dict[str, FunctionEstimate] = {}
    tuned: Collection[SSAValue] = ()
    if options.target != "ttmetal":
        # Imports for device programs take longer than lowering a small model.
        from ttcodegen.cost import function_estimate

        tuned = product_weights(functions).arguments
        estimates = {e.name: function_estimate(e.function, chip) for e in functions}
    return ModuleDescription(
        name,
        tuple(
            replace(
                describe_function(entry, tuned, *source_dtypes[entry.name]),
                estimate=estimates.get(entry.name),
            )
            for entry in functions
        ),
        options.target,
        options.arch,
        options.release,
        input_hash,
        (),
        device.kernels,
        device.programs,
        device.cpu_functions,
        device.exchanges,
        options.kind,
        declared_mesh(module),
        options.hosts,
        options.fabric or "linear",
        card=card_text(chip),
    )
