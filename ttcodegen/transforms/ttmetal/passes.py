"""Tables of the passes and pipelines to device programs."""

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
    fixed,
    non_default,
)

Values = Mapping[str, OptionValue]


def ttir_to_generics(options: Values) -> Iterator[Step | str]:
    """TTIR to one `ttir.generic` per device program."""
    yield Step("ttcore-register-device", non_default(options, SYSTEM_OPTIONS))
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
        yield "cpu-hoist-loops"
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
    """TTIR to device programs."""
    yield Step("ttir-to-ttmetal-fe-pipeline", non_default(options, _OPTIONS))
    yield "convert-ttir-to-ttmetal"
    yield "ttmetal-constants-first"
    if options["tensors-in-l1"]:
        yield "ttmetal-place-in-l1"
        yield "ttmetal-alias-buffers"
    yield "ttmetal-share-kernels"
    yield "ttcore-check-memory"


_WEIGHT_TYPE = Option(
    "target-dtype", "Data type of all weights.", "", choices=("", "bfp_bf8", "bfp_bf4")
)

PASSES = (
    PassEntry(
        name="ttir-primitives",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir.canonicalize:TTIRPrimitivesPass",
        description="Lowers ops to the primitives of device kernels: elementwise ops, reductions, "
        "matmuls, data movement.",
        options=(
            Option("last", "Lower convolutions and pools too: only grouping follows.", False),
        ),
    ),
    PassEntry(
        name="cpu-hoist-manually-tagged",
        group=Group.TTIR,
        implementation="ttcodegen.conversions.ttir_to_ttmetal.cpu_hoist:CPUHoistManuallyTagged",
        description="Outlines ops marked ttir.should_hoist to CPU functions.",
        aliases=("cpu-hoist-manually-tagged-ops-transform",),
    ),
    PassEntry(
        name="cpu-hoist-loops",
        group=Group.TTIR,
        implementation="ttcodegen.conversions.ttir_to_ttmetal.cpu_loops:CPUHoistLoops",
        description="Outlines loops whose trip count is only known at run time to CPU functions.",
    ),
    PassEntry(
        name="cpu-hoist",
        group=Group.TTIR,
        implementation="ttcodegen.conversions.ttir_to_ttmetal.cpu_hoist:CPUHoist",
        description="Outlines ops that no device program computes to CPU functions.",
        aliases=("ttir-cpu-hoist-transform", "ttir-hoist-transform"),
    ),
    PassEntry(
        name="ttmetal-weight-dtype-conversion",
        group=Group.TTMETAL,
        implementation="ttcodegen.transforms.ttmetal.host_functions:TTMetalWeightTypes",
        description="Stores weights as block floats where programs read whole tiles of them.",
        options=(_WEIGHT_TYPE,),
    ),
    PassEntry(
        name="ttmetal-name-arguments",
        group=Group.TTMETAL,
        implementation="ttcodegen.transforms.const_eval:NameArguments",
        description="Names arguments without a name in the source after their users.",
    ),
    PassEntry(
        name="ttmetal-reshape-later",
        group=Group.TTMETAL,
        implementation="ttcodegen.transforms.ttmetal.host_functions:ReshapeLater",
        description="Moves reshapes that distribute rows over more tiles after ops on rows.",
    ),
    PassEntry(
        name="ttmetal-lift-programs",
        group=Group.TTMETAL,
        implementation="ttcodegen.compat.ttmetal_programs:LiftPrograms",
        description="Lifts programs in the form of ttmetal.dispatch of 2024 to TTIR ops.",
    ),
    PassEntry(
        name="ttir-outline-generics",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir.outline_generics:OutlineGenerics",
        description="Outlines regions of ttir.generic to functions.",
    ),
    PassEntry(
        name="ttir-to-ttir-generic",
        group=Group.TTIR,
        implementation="ttcodegen.conversions.ttir_to_ttmetal.generics:TTIRToTTIRGeneric",
        description="Groups the ops of each device program in a ttir.generic.",
        aliases=("ttir-generic",),
        options=(
            Option("columns", "Core columns to use; 0 for all of the system.", 0),
            Option("rows", "Core rows to use; 0 for all of the system.", 0),
        ),
    ),
    PassEntry(
        name="convert-ttir-to-ttmetal",
        group=Group.TTMETAL,
        implementation="ttcodegen.conversions.ttir_to_ttmetal.convert:ConvertTTIRToTTMetal",
        description="Lowers each ttir.generic to a device program with its kernels.",
    ),
    PassEntry(
        name="ttmetal-constants-first",
        group=Group.TTMETAL,
        implementation="ttcodegen.transforms.ttmetal.host_functions:ConstantsFirst",
        description="Moves ops that depend only on weights and constants to the start of "
        "functions.",
    ),
    PassEntry(
        name="ttmetal-place-in-l1",
        group=Group.TTMETAL,
        implementation="ttcodegen.transforms.ttmetal.memory:PlaceInL1",
        description="Keeps tensors between device programs in L1 where they fit.",
    ),
    PassEntry(
        name="ttmetal-alias-buffers",
        group=Group.TTMETAL,
        implementation="ttcodegen.transforms.ttmetal.aliases:AliasBuffers",
        description="Aliases circular buffers to shards in the cores' L1.",
    ),
    PassEntry(
        name="ttmetal-share-kernels",
        group=Group.TTMETAL,
        implementation="ttcodegen.transforms.ttmetal.device_programs:ShareKernels",
        description="Merges kernels that differ in names only.",
    ),
    PassEntry(
        name="convert-ttkernel-to-emitc",
        group=Group.EMITC,
        implementation="ttcodegen.emission.convert_to_emitc:ConvertTTKernelToEmitC",
        description="Converts the kernels of device programs to C++ files.",
        options=EMITC_OPTIONS,
    ),
    PassEntry(
        name="convert-ttmetal-to-emitc",
        group=Group.EMITC,
        implementation="ttcodegen.emission.convert_to_emitc:ConvertTTMetalToEmitC",
        description="Converts device programs to C++ files: host functions, and kernels that have "
        "no files yet.",
        options=EMITC_OPTIONS,
    ),
)

_OPTIONS = (
    *SYSTEM_OPTIONS,
    PARALLEL,
    Option(
        "weight-dtype",
        "Data type of weights where programs support it.",
        "",
        choices=("", "bfp_bf8", "bfp_bf4"),
    ),
    Option("enable-cpu-hoist", "Compute on the CPU what no device program supports.", True),
)

_TENSORS_IN_L1 = Option(
    "tensors-in-l1", "Keep tensors between programs in L1 where they fit.", True
)

PIPELINES = (
    PipelineEntry(
        name="ttir-to-ttmetal-fe-pipeline",
        group=Group.TTMETAL,
        steps=ttir_to_generics,
        description="TTIR to one ttir.generic per device program.",
        options=_OPTIONS,
    ),
    PipelineEntry(
        name="ttir-to-ttmetal-pipeline",
        group=Group.TTMETAL,
        steps=ttir_to_ttmetal,
        description="TTIR to device programs.",
        aliases=("ttir-to-ttmetal-backend-pipeline", "ttir-to-ttmetal-common-pipeline"),
        options=(*_OPTIONS, _TENSORS_IN_L1, *fixed(REFUSED_TTMETAL_OPTIONS)),
    ),
)
"""Rows in the order of --help within each group."""
