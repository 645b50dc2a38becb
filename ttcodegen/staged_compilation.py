"""Pipeline parallelism: compiles functions in stages, one device each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.dialects.ttcore.device import ONE_CHIP, declared_mesh
from ttcodegen.emission.description import (
    FunctionDescription,
    PipelineDescription,
    StageDescription,
)
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.transforms.mesh.stages import MOST_MICRO_BATCHES
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import passes_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ttcodegen.optimizer.parallelism import Stages
    from ttcodegen.transforms.mesh.stages import StagedFunction


def compile_stages(
    source: Source,
    options: CompileOptions,
    runner: PassRunner | None = None,
    diagnostics: Diagnostics | None = None,
) -> CompiledModule:
    """Compiles a module like `compile_module`, divided into pipeline stages if the options request
    it.

    The C++ contains the stages; the flatbuffer contains the whole functions, for one device.

    Raises:
        CompileError: if the input is invalid or unsupported, or cannot be divided into the stages.
    """
    if not options.stages:
        if options.micro_batches != 1:
            raise CompileError("micro-batches go through the stages of a pipeline: give --stages")
        return compile_module(source, options, runner, diagnostics)
    _refuse_options(options)
    runner = runner if runner is not None else PassRunner(load_dialects())
    one_host = replace(options, hosts=ONE_CHIP, stages="", micro_batches=1)
    whole = compile_module(source, replace(one_host, overrides=""), runner, diagnostics)
    found: list[Stages] = []

    def divide(module: ModuleOp, given: CompileOptions) -> None:
        from ttcodegen.optimizer.parallelism import divide_into_stages

        if declared_mesh(module) != ONE_CHIP:
            raise CompileError(
                "each stage of a pipeline runs on one device, and the module is for a mesh",
                module,
                remedy="leave out --stages, or the mesh",
            )
        assert given.system is not None
        runner.run(module, passes_of("inline"))
        found.append(
            divide_into_stages(
                runner.context,
                module,
                options.stages,
                given.system.chip,
                options.micro_batches,
                over_hosts=options.hosts != ONE_CHIP,
            )
        )

    parts = compile_module(source, replace(one_host, golden_seed=None), runner, None, divide)
    (stages,) = found
    _refuse_hosts(options, max(len(each.stages) for each in stages.functions))
    described = {function.name: function for function in whole.description.functions}
    of_stages = {function.name: function for function in parts.description.functions}
    functions = tuple(described[each.name] for each in stages.functions)
    description = replace(
        parts.description,
        functions=functions,
        pipelines=tuple(
            _pipeline(each, described[each.name], of_stages, options.micro_batches)
            for each in stages.functions
        ),
        hosts=options.hosts,
        has_flatbuffer=whole.description.has_flatbuffer,
    )
    return replace(
        parts,
        description=description,
        flatbuffer=whole.flatbuffer,
        explanation="\n".join(filter(None, (stages.explanation(), parts.explanation))),
    )


def _refuse_options(options: CompileOptions) -> None:
    """Raises CompileError for options that a pipeline does not support."""
    if options.target != "ttnn":
        raise CompileError(
            f"stages of a pipeline are calls of the library: there are none for --target "
            f"{options.target}",
            remedy="leave out --stages or --target",
        )
    if not 1 <= options.micro_batches <= MOST_MICRO_BATCHES:
        raise CompileError(
            f"the batch has 1 to {MOST_MICRO_BATCHES} parts, not {options.micro_batches}"
        )
    if options.trace:
        raise CompileError(
            "what a stage receives and sends is not captured in a trace",
            remedy="leave out --trace or --stages",
        )
    if options.mesh != ONE_CHIP or options.parallel:
        raise CompileError(
            "each stage of a pipeline runs on one device",
            remedy="leave out --stages, or --mesh-shape and --parallel",
        )
    if options.kind not in ("exe", "runner"):
        raise CompileError(
            f"a pipeline is a program of its own, which --kind {options.kind} is not",
            remedy="give --kind exe",
        )


def _refuse_hosts(options: CompileOptions, stages: int) -> None:
    """Raises CompileError if hosts are neither one nor one per stage, or the given system has too
    few devices."""
    hosts, system = prod(options.hosts), options.system
    if hosts == 1 and system is not None and len(system.chip_indices) < stages:
        devices = len(system.chip_indices)
        raise CompileError(
            f"{stages} stages need {stages} devices, and the system has {devices}",
            remedy=f"name a larger system, or give --hosts {stages}x1 for one device of each host",
        )
    if hosts not in (1, stages):
        raise CompileError(
            f"{stages} stages run on one host or on as many, not on {hosts}",
            remedy=f"give --hosts {stages}x1",
        )


def _pipeline(
    staged: StagedFunction,
    whole: FunctionDescription,
    functions: Mapping[str, FunctionDescription],
    micro_batches: int,
) -> PipelineDescription:
    """Describes a function in stages, from the descriptions of the whole function and of the
    stages."""
    kinds = [argument.is_weight for argument in whole.arguments]
    numbers = [kinds[:place].count(is_weight) for place, is_weight in enumerate(kinds)]
    stages: list[StageDescription] = []
    for stage in staged.stages:
        function = functions[stage.name]
        inputs: list[tuple[int, int]] = []
        weights: list[int] = []
        for argument, origin in zip(function.arguments, stage.arguments, strict=True):
            number = numbers[origin.index] if origin.is_argument else origin.index
            if argument.is_weight:
                weights.append(number)
            else:
                inputs.append((origin.stage, number))
        stages.append(StageDescription(function, tuple(inputs), tuple(weights)))
    outputs = tuple((origin.stage, origin.index) for origin in staged.results)
    return PipelineDescription(tuple(stages), outputs, micro_batches)
