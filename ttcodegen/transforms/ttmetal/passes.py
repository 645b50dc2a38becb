"""The tables of the passes and pipelines of the path to device programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ttcodegen.compat.refusals import REFUSED_TTMETAL_OPTIONS
from ttcodegen.transforms.passes import EMITC_OPTIONS, PARALLEL, SYSTEM_OPTIONS
from ttcodegen.transforms.registry import (
    Group,
    Option,
    OptionValue,
    PassEntry,
    PipelineEntry,
    Step,
    chosen,
    fixed,
)

Values = Mapping[str, OptionValue]


def ttir_to_generics(options: Values) -> Iterator[Step | str]:
    """From what the user wrote to one generic for each device program, in order."""
    yield Step("ttcore-register-device", chosen(options, SYSTEM_OPTIONS))
    yield "ttmetal-lift-programs"
    yield "ttir-outline-generics"
    if options["parallel"]:
        yield "inline"
        yield Step("ttir-choose-shardings", {"parallel": options["parallel"]})
    yield "ttir-partition"
    yield "ttcore-check-sizes"
    yield "ttir-unroll-loops"
    if options["enable-cpu-hoist"]:
        yield "inline"
        yield "ttir-own-buffers"
        yield "ttir-element-type-normalization"
        yield "cpu-hoist-manually-tagged"
    yield "ttir-pipeline"
    yield "ttmetal-name-arguments"
    yield "ttcore-record-chip-shares"
    yield "ttmetal-reshape-later"
    yield "ttir-primitives"
    yield "ttir-decompose"
    yield "ttir-canonicalize"
    yield "ttmetal-reshape-later"
    yield "ttir-implicit-broadcast-fold"
    yield Step("ttir-primitives", {"last": True})
    yield Step("ttmetal-weight-dtype-conversion", {"target-dtype": options["weight-dtype"]})
    if options["enable-cpu-hoist"]:
        yield "cpu-hoist"
    yield "ttir-to-ttir-generic"


def ttir_to_ttmetal(options: Values) -> Iterator[Step | str]:
    """From what the user wrote to device programs."""
    yield Step("ttir-to-ttmetal-fe-pipeline", chosen(options, _OPTIONS))
    yield "convert-ttir-to-ttmetal"
    yield "ttmetal-constants-first"
    if options["tensors-in-l1"]:
        yield "ttmetal-place-in-l1"
        yield "ttmetal-alias-buffers"
    yield "ttmetal-share-kernels"
    yield "ttcore-check-memory"


_WEIGHT_TYPE = Option(
    "target-dtype", "The type of all weights.", "", choices=("", "bfp_bf8", "bfp_bf4")
)

PASSES = (
    PassEntry(
        name="ttir-primitives",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir.canonicalize:TTIRPrimitivesPass",
        description="Replaces ops by those that device kernels are made for: elementwise ops, "
        "reductions, products of matrices, movements of elements.",
        options=(Option("last", "Convolutions and pools too: only grouping comes after.", False),),
    ),
    PassEntry(
        name="cpu-hoist-manually-tagged",
        group=Group.TTIR,
        implementation="ttcodegen.conversions.ttir_to_ttmetal.cpu_hoist:CPUHoistManuallyTagged",
        description="Moves ops that are marked ttir.should_hoist into functions that run on the "
        "CPU.",
        aliases=("cpu-hoist-manually-tagged-ops-transform",),
    ),
    PassEntry(
        name="cpu-hoist",
        group=Group.TTIR,
        implementation="ttcodegen.conversions.ttir_to_ttmetal.cpu_hoist:CPUHoist",
        description="Moves ops that no program of the device computes into functions that run on "
        "the CPU.",
        aliases=("ttir-cpu-hoist-transform", "ttir-hoist-transform"),
    ),
    PassEntry(
        name="ttmetal-weight-dtype-conversion",
        group=Group.TTMETAL,
        implementation="ttcodegen.transforms.ttmetal.host_functions:TTMetalWeightTypes",
        description="Keeps weights as block floats, where programs read whole tiles of them.",
        options=(_WEIGHT_TYPE,),
    ),
    PassEntry(
        name="ttmetal-name-arguments",
        group=Group.TTMETAL,
        implementation="ttcodegen.transforms.const_eval:NameArguments",
        description="Names arguments that the source has no name for after what takes them.",
    ),
    PassEntry(
        name="ttmetal-reshape-later",
        group=Group.TTMETAL,
        implementation="ttcodegen.transforms.ttmetal.host_functions:ReshapeLater",
        description="Lets reshapes that divide rows among more tiles wait until ops that work row "
        "by row are done.",
    ),
    PassEntry(
        name="ttmetal-lift-programs",
        group=Group.TTMETAL,
        implementation="ttcodegen.compat.ttmetal_programs:LiftPrograms",
        description="Turns programs that ttmetal.dispatch describes, as it did in 2024, into the "
        "ops of TTIR that they compute.",
    ),
    PassEntry(
        name="ttir-outline-generics",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir.outline_generics:OutlineGenerics",
        description="Makes functions of the regions of ttir.generic, until they are put back.",
    ),
    PassEntry(
        name="ttir-to-ttir-generic",
        group=Group.TTIR,
        implementation="ttcodegen.conversions.ttir_to_ttmetal.generics:TTIRToTTIRGeneric",
        description="Puts the ops of each program of the device into a ttir.generic.",
        aliases=("ttir-generic",),
        options=(
            Option("columns", "Cores in a row to use; 0 for those that the system has.", 0),
            Option("rows", "Rows of cores to use; 0 for those that the system has.", 0),
        ),
    ),
    PassEntry(
        name="convert-ttir-to-ttmetal",
        group=Group.TTMETAL,
        implementation="ttcodegen.conversions.ttir_to_ttmetal.convert:ConvertTTIRToTTMetal",
        description="Makes a program of the device of each ttir.generic, and writes its kernels.",
    ),
    PassEntry(
        name="ttmetal-constants-first",
        group=Group.TTMETAL,
        implementation="ttcodegen.transforms.ttmetal.host_functions:ConstantsFirst",
        description="Moves what depends on weights and constants alone to the start of functions.",
    ),
    PassEntry(
        name="ttmetal-place-in-l1",
        group=Group.TTMETAL,
        implementation="ttcodegen.transforms.ttmetal.memory:PlaceInL1",
        description="Lets tensors between programs of the device stay in L1 where they fit.",
    ),
    PassEntry(
        name="ttmetal-alias-buffers",
        group=Group.TTMETAL,
        implementation="ttcodegen.transforms.ttmetal.aliases:AliasBuffers",
        description="Lets circular buffers lie in the shards of tensors that cores have in L1.",
    ),
    PassEntry(
        name="ttmetal-share-kernels",
        group=Group.TTMETAL,
        implementation="ttcodegen.transforms.ttmetal.device_programs:ShareKernels",
        description="Makes one kernel of those that differ in names only.",
    ),
    PassEntry(
        name="convert-ttkernel-to-emitc",
        group=Group.EMITC,
        implementation="ttcodegen.emission.convert_to_emitc:ConvertTTKernelToEmitC",
        description="Turns the kernels of programs of the device into C++ files.",
        options=EMITC_OPTIONS,
    ),
    PassEntry(
        name="convert-ttmetal-to-emitc",
        group=Group.EMITC,
        implementation="ttcodegen.emission.convert_to_emitc:ConvertTTMetalToEmitC",
        description="Turns programs of the device into C++ files: host functions, and kernels that "
        "are no files yet.",
        options=EMITC_OPTIONS,
    ),
)

_OPTIONS = (
    *SYSTEM_OPTIONS,
    PARALLEL,
    Option(
        "weight-dtype",
        "The type that weights are kept in where programs take it.",
        "",
        choices=("", "bfp_bf8", "bfp_bf4"),
    ),
    Option("enable-cpu-hoist", "Compute on the CPU what no program of the device does.", True),
)

_TENSORS_IN_L1 = Option(
    "tensors-in-l1", "Let tensors between programs stay in L1 where they fit.", True
)

PIPELINES = (
    PipelineEntry(
        name="ttir-to-ttmetal-fe-pipeline",
        group=Group.TTMETAL,
        steps=ttir_to_generics,
        description="TTIR to one ttir.generic for each program of the device.",
        options=_OPTIONS,
    ),
    PipelineEntry(
        name="ttir-to-ttmetal-pipeline",
        group=Group.TTMETAL,
        steps=ttir_to_ttmetal,
        description="TTIR to programs of the device.",
        aliases=("ttir-to-ttmetal-backend-pipeline", "ttir-to-ttmetal-common-pipeline"),
        options=(*_OPTIONS, _TENSORS_IN_L1, *fixed(REFUSED_TTMETAL_OPTIONS)),
    ),
)
"""Rows in the order of --help within each group."""
