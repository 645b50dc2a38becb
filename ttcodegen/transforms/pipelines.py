"""The table of the pipelines: each is a list of passes that one can read.

Names and options are those of tt-mlir (2024 to 2026). An option with a `refusal` is one that cannot
be had here: it is accepted with the value that says what is done anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ttcodegen.compat.refused_options import REFUSED_EMITC_OPTIONS, REFUSED_TTNN_OPTIONS
from ttcodegen.transforms.pass_options import chosen, fixed
from ttcodegen.transforms.passes import EMITC_OPTIONS, SYSTEM_OPTIONS
from ttcodegen.transforms.registry import Group, Option, OptionValue, PipelineEntry, Step

Values = Mapping[str, OptionValue]


def ttir(options: Values) -> Iterator[Step | str]:
    """From what the user wrote to few and fused ops of device types."""
    yield "inline"
    yield "ttir-element-type-normalization"
    yield "ttir-decompose"
    yield "ttir-canonicalize"
    if options["enable-implicit-broadcast-folding-pass"]:
        yield "ttir-implicit-broadcast-fold"
    if options["enable-erase-inverse-ops-pass"]:
        yield "ttir-erase-inverse"
    if options["enable-fusing-pass"]:
        yield "ttir-fusing"
        yield "ttir-decompose"


def ttir_to_ttnn(options: Values) -> Iterator[Step | str]:
    """From what the user wrote to the calls of the library, in order."""
    yield Step("ttcore-register-device", chosen(options, SYSTEM_OPTIONS))
    if options["argument-types"]:
        yield Step("populate-argument-types", {"argument-types": options["argument-types"]})
    yield "ttmetal-lift-programs"
    yield "ttir-outline-generics"
    yield Step("inline", {"cpu-functions": True, "generics": True})
    yield Step("ttir-pipeline", chosen(options, _TTIR_OPTIONS))
    yield "convert-ttir-to-ttnn"
    if options["enable-remove-dead-values"]:
        yield "remove-dead-values"
    if optimization_level(options) > 0:
        yield "ttnn-dense-rows"
        given = _given(options)
        yield Step("ttnn-fuse-projections", given)
        yield Step("ttnn-fuse-activations", given)
    yield from _placed(options)


def optimization_level(options: Values) -> int:
    """How much is optimized: 0 nothing, 1 what never hurts, 2 with a search for layouts."""
    level = options["optimization-level"]
    assert isinstance(level, int)
    if level == 0 and options["enable-optimizer"]:
        level = 1
    return 2 if level == 1 and options["memory-layout-analysis-enabled"] else level


def _given(options: Values) -> dict[str, OptionValue]:
    """What is decided from outside, in the one form or the other."""
    if options["overrides"]:
        return {"overrides": options["overrides"]}
    given = [f"{name}={options[name]}" for name in REFERENCE_OVERRIDES if options[name]]
    return {"overrides": " ".join(given)} if given else {}


def _placed(options: Values) -> Iterator[Step | str]:
    """What both ways to TTNN end with: how calls compute, where tensors lie and how long."""
    yield "ttnn-set-compute-kernel-config"
    yield "ttnn-layout"
    if options["experimental-weight-dtype"] != "none":
        target = options["experimental-weight-dtype"]
        yield Step("ttnn-weight-dtype-conversion", {"target": target})
    if (level := optimization_level(options)) > 0:
        record = {"record": True} if options["record-decisions"] else {}
        yield Step("ttnn-optimize", {"level": level, **_given(options), **record})
    if options["enable-const-eval"]:
        yield "const-eval-hoist-transform"
    yield "ttnn-decompose-layouts"
    yield "ttnn-deallocate"
    yield "ttcore-check-memory"


def ttnn_to_ttnn(options: Values) -> Iterator[Step | str]:
    """From calls of the library, with their layouts, to calls as the library takes them."""
    yield Step("ttcore-register-device", chosen(options, SYSTEM_OPTIONS))
    if options["argument-types"]:
        yield Step("populate-argument-types", {"argument-types": options["argument-types"]})
    yield "inline"
    yield from _placed(options)


def ttnn_to_runtime(options: Values) -> Iterator[Step | str]:
    """TTNN is what the flatbuffer holds: there is only to see that it fits the device."""
    yield "ttcore-check-memory"


def ttnn_to_emitc(options: Values) -> Iterator[Step | str]:
    """From the calls of the library to C++ files."""
    if options["target-dylib"]:
        yield "ttnn-modify-signatures-for-dylib"
    yield Step("convert-ttnn-to-emitc", chosen(options, EMITC_OPTIONS))


def ttir_to_emitc(options: Values) -> Iterator[Step | str]:
    """From what the user wrote to C++ files."""
    yield Step("ttir-to-ttnn-common-pipeline", chosen(options, _TTNN_OPTIONS))
    yield Step("ttnn-common-to-emitc-pipeline", chosen(options, _EMITC_OPTIONS))


REFERENCE_OVERRIDES = ("override-output-layout", "override-conv2d-config", "insert-memreconfig")
"""The options that give decisions to the reference compiler."""
_TTIR_OPTIONS = (
    Option("enable-fusing-pass", "Recognise what the library has one op for.", True),
    Option("enable-implicit-broadcast-folding-pass", "Drop broadcasts that are implied.", True),
    Option("enable-erase-inverse-ops-pass", "Cancel permutations and reshapes.", True),
)
_TTNN_OPTIONS = (
    *SYSTEM_OPTIONS,
    Option("argument-types", "Kinds of arguments: function=input,parameter,constant,..."),
    *_TTIR_OPTIONS,
    Option("enable-const-eval", "Compute once what depends on weights only.", True),
    Option("enable-remove-dead-values", "Drop what lowering left over.", True),
    Option("optimization-level", "0: as written; 1: what never hurts; 2: a search.", 0),
    Option("enable-optimizer", "Level 1, whatever the level says.", False),
    Option("memory-layout-analysis-enabled", "Level 2 if there is an optimizer.", False),
    Option(
        "experimental-weight-dtype",
        "What weights of products become.",
        "none",
        choices=("none", "bfp_bf8", "bfp_bf4"),
    ),
    Option("overrides", "Decisions that are given, as JSON."),
    Option("override-output-layout", "Where results lie: name=8x8:l1:block_sharded:tile:bf16,..."),
    Option("override-conv2d-config", "Convolutions: name=core_grid#8x4:weights_dtype#bf16,..."),
    Option("insert-memreconfig", "Operands that are moved first: name=0:1,..."),
    Option("record-decisions", "Leave what was decided in attributes of the module.", False),
    *fixed(REFUSED_TTNN_OPTIONS),
)
_EMITC_OPTIONS = (
    *EMITC_OPTIONS,
    Option("target-dylib", "Add functions of vectors, for callers that know no model.", False),
    *fixed(REFUSED_EMITC_OPTIONS),
)

PIPELINES = (
    PipelineEntry(
        name="ttir-pipeline",
        group=Group.TTIR,
        steps=ttir,
        description="The passes on TTIR: element types, decompositions, fusing.",
        options=_TTIR_OPTIONS,
    ),
    PipelineEntry(
        name="ttir-to-ttnn-common-pipeline",
        group=Group.TTNN,
        steps=ttir_to_ttnn,
        description="TTIR to TTNN, with layouts.",
        aliases=("ttir-to-ttnn-runtime-pipeline", "ttir-to-ttnn-backend-pipeline"),
        options=_TTNN_OPTIONS,
    ),
    PipelineEntry(
        name="ttnn-to-ttnn-pipeline",
        group=Group.TTNN,
        steps=ttnn_to_ttnn,
        description="TTNN that lies as its layouts say, to calls as the library takes them.",
        options=_TTNN_OPTIONS,
    ),
    PipelineEntry(
        name="ttnn-common-to-runtime-pipeline",
        group=Group.TTNN,
        steps=ttnn_to_runtime,
        description="TTNN to what a flatbuffer holds.",
        aliases=("ttnn-common-to-flatbuffer-pipeline",),
    ),
    PipelineEntry(
        name="ttnn-common-to-emitc-pipeline",
        group=Group.EMITC,
        steps=ttnn_to_emitc,
        description="TTNN to C++ files.",
        options=_EMITC_OPTIONS,
    ),
    PipelineEntry(
        name="ttir-to-emitc-pipeline",
        group=Group.EMITC,
        steps=ttir_to_emitc,
        description="TTIR to C++ files.",
        options=(*_TTNN_OPTIONS, *_EMITC_OPTIONS),
    ),
)
"""Rows in the order of --help within each group."""
