"""Pipelines to TTNN: their options, steps, and names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from ttcodegen.compat.refusals import REFUSED_EMITC_OPTIONS, REFUSED_TTNN_OPTIONS
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.transforms.passes import EMITC_OPTIONS as CONVERSION_OPTIONS
from ttcodegen.transforms.passes import PARALLEL, RELEASE, SYSTEM_OPTIONS
from ttcodegen.transforms.registry import (
    Group,
    Option,
    OptionError,
    OptionValue,
    PipelineEntry,
    Step,
    chosen,
    fixed,
)

# The options of the pipelines of the library.
#
# Names are those of tt-mlir (2024 to 2026). An option with a `refusal` is one that cannot be had
# here: it is accepted with the value that says what is done anyway.

TTIR_OPTIONS = (
    Option("enable-fusing-pass", "Recognise what the library has one op for.", True),
    Option("enable-implicit-broadcast-folding-pass", "Drop broadcasts that are implied.", True),
    Option("enable-erase-inverse-ops-pass", "Cancel permutations and reshapes.", True),
)
TTNN_OPTIONS = (
    *SYSTEM_OPTIONS,
    Option("argument-types", "Kinds of arguments: function=input,parameter,constant,..."),
    *TTIR_OPTIONS,
    Option("enable-const-eval", "Compute once what depends on weights only.", True),
    Option("enable-remove-dead-values", "Drop what lowering left over.", True),
    Option(
        "optimization-level",
        "0: as written, but for decisions that are given; 1: what never hurts; 2: a search.",
        0,
        choices=(0, 1, 2),
    ),
    Option("enable-optimizer", "Level 1, whatever the level says.", False),
    Option("memory-layout-analysis-enabled", "Level 2 if there is an optimizer.", False),
    Option(
        "experimental-weight-dtype",
        "What weights of products become.",
        "none",
        choices=("none", "bfp_bf8", "bfp_bf4"),
    ),
    Option("experimental-bfp8-weights", "Weights of products as bfp_bf8.", False),
    Option("overrides", "Decisions that are given, as JSON."),
    PARALLEL,
    RELEASE,
    Option("override-output-layout", "Layouts of results: name=8x8:l1:block_sharded:tile:bf16,..."),
    Option("override-conv2d-config", "Convolutions: name=core_grid#8x4:weights_dtype#bf16,..."),
    Option("insert-memreconfig", "Operands that are moved first: name=0:1,..."),
    Option("record-decisions", "Leave what was decided in attributes of the module.", False),
    *fixed(REFUSED_TTNN_OPTIONS),
)
EMITC_OPTIONS = (
    *CONVERSION_OPTIONS,
    Option("target-dylib", "Add functions of vectors, for callers that know no model.", False),
    *fixed(REFUSED_EMITC_OPTIONS),
)


# Decisions for the optimizer that options of pipelines give, and the level that they mean.

REFERENCE_OVERRIDES = ("override-output-layout", "override-conv2d-config", "insert-memreconfig")
"""The options that give decisions to the reference compiler."""
LEVELS = (1, 2)

Values = Mapping[str, OptionValue]


def level_of(overrides: str) -> int:
    """The level that decisions were taken at, by the text of their file; 1 if it says none, and 0
    if it has shardings alone.

    Raises:
        CompileError: if it says another level.
    """
    try:
        content: Any = json.loads(overrides)
    except (ValueError, RecursionError):
        return LEVELS[0]  # Options of the reference, or what the reader of decisions refuses.
    level = cast("dict[str, Any]", content).get("level") if isinstance(content, dict) else None
    if level is not None and (type(level) is not int or level not in (0, *LEVELS)):
        raise CompileError(f"the overrides have the level {json.dumps(level)}", remedy="1 or 2")
    if level == 0 and any(cast("dict[str, Any]", content).get("functions") or ()):
        raise CompileError("the overrides decide on calls at level 0", remedy="level 1 or 2")
    return LEVELS[0] if level is None else level


def optimization_level(options: Values) -> int:
    """Optimization level: 0 nothing, 1 local choices, 2 a search over layouts.

    Decisions given from outside apply at level 0, too: at the level that their file was written at,
    or else 1.

    Decisions that are given are applied at level 0, too: at the level that their file was written
    at, or else 1.
    """
    level = options["optimization-level"]
    assert isinstance(level, int)
    if level == 0 and options["enable-optimizer"]:
        level = 1
    if level == 0 and (given := given_decisions(options)):
        level = level_of(str(given["overrides"]))
    if level == 0 and options["record-decisions"]:
        raise OptionError("nothing is decided at level 0: 'record-decisions' needs level 1 or 2")
    return 2 if level == 1 and options["memory-layout-analysis-enabled"] else level


def given_decisions(options: Values) -> dict[str, OptionValue]:
    """Overrides given as text or as a file.

    Raises:
        OptionError: if it is given in both.
    """
    given = [f"{name}={options[name]}" for name in REFERENCE_OVERRIDES if options[name]]
    if options["overrides"]:
        if given:
            name = given[0].partition("=")[0]
            raise OptionError(f"decisions are given twice: by 'overrides' and by '{name}'")
        return {"overrides": options["overrides"]}
    return {"overrides": " ".join(given)} if given else {}


# The pipelines of the library: each is a list of passes that one can read.


def ttir(options: Values) -> Iterator[Step | str]:
    """From what the user wrote to few and fused ops of device types."""
    yield "inline"
    yield "ttir-own-buffers"
    yield "ttir-element-type-normalization"
    yield "ttir-decompose"
    yield "ttir-canonicalize"
    if options["enable-implicit-broadcast-folding-pass"]:
        yield "ttir-implicit-broadcast-fold"
    erased = ["ttir-erase-inverse"] if options["enable-erase-inverse-ops-pass"] else []
    yield from erased
    if options["enable-fusing-pass"]:
        yield "ttir-fusing"
        # What is fused into a convolution is no longer between a permute and its inverse.
        yield from erased
        yield "ttir-decompose"
    yield "ttir-empty-attention-rows"


def ttir_to_ttnn(options: Values) -> Iterator[Step | str]:
    """From what the user wrote to the calls of the library, in order."""
    yield from _on_device(options)
    yield from ("ttmetal-lift-programs", "ttir-outline-generics")
    yield Step("inline", {"cpu-functions": True, "generics": True})
    yield from choice_of_shardings(options)
    yield "ttir-partition"
    yield Step("ttir-pipeline", chosen(options, TTIR_OPTIONS))
    yield "ttcore-record-chip-shares"
    yield "convert-ttir-to-ttnn"
    if options["enable-remove-dead-values"]:
        yield "remove-dead-values"
    # What several ops need in one form, each conversion makes for itself.
    yield "cse"
    if optimization_level(options) > 0:
        yield from ("ttnn-decode-caches", "ttnn-dense-rows")
        given = given_decisions(options)
        yield from (Step("ttnn-fuse-projections", given), "ttnn-decode-heads")
        yield Step("ttnn-fuse-activations", given)
    yield from _placed(options)


def _on_device(options: Values) -> Iterator[Step | str]:
    """The first steps of both ways to TTNN: the mesh that the module needs, the device that has it,
    and kinds of arguments."""
    if not options["mesh-shape"]:
        yield "ttcore-imply-mesh"
    yield Step("ttcore-register-device", chosen(options, SYSTEM_OPTIONS))
    if options["argument-types"]:
        yield Step("populate-argument-types", {"argument-types": options["argument-types"]})


def choice_of_shardings(options: Values) -> Iterator[Step | str]:
    """The choice of shardings for modules that say none, if it is wanted."""
    overrides = options.get("overrides", "")
    if options["parallel"] or overrides:
        given = {"parallel": options["parallel"], "overrides": overrides}
        given["weights"] = options.get("experimental-weight-dtype", "none")
        yield Step("ttir-choose-shardings", given)


def _placed(options: Values) -> Iterator[Step | str]:
    """The last steps of both ways to TTNN: what the release takes otherwise, compute
    configurations, placement and lifetimes of tensors."""
    yield Step("ttnn-fit-release", chosen(options, (RELEASE,)))
    yield from ("ttnn-set-compute-kernel-config", "ttnn-layout")
    target = options["experimental-weight-dtype"]
    if target == "none" and options["experimental-bfp8-weights"]:
        target = "bfp_bf8"
    if target != "none":
        yield Step("ttnn-weight-dtype-conversion", {"target": target})
    if (level := optimization_level(options)) > 0:
        record = {"record": True} if options["record-decisions"] else {}
        yield Step("ttnn-optimize", {"level": level, **given_decisions(options), **record})
    if options["enable-const-eval"]:
        yield "ttnn-prepare-conv2d-weights-and-bias"
        yield from ("ttnn-hoist-loop-invariants", "const-eval-hoist-transform")
    yield "ttnn-decompose-layouts"
    yield "ttnn-deallocate"
    yield "ttcore-check-memory"


def ttnn_to_ttnn(options: Values) -> Iterator[Step | str]:
    """From calls that have layouts, and ops for those that the library refuses, to legal calls."""
    if options["parallel"]:
        raise OptionError("a module of TTNN says what each device computes: 'parallel' has no use")
    yield from _on_device(options)
    yield from ("ttnn-canonicalize-calls", "inline", "ttir-own-buffers")
    yield from ("ttcore-record-chip-shares", "ttir-decompose", "convert-ttir-to-ttnn")
    yield from _placed(options)


def ttnn_to_runtime(options: Values) -> Iterator[Step | str]:
    """TTNN is what the flatbuffer holds: there is only to see that it fits the device."""
    yield "ttcore-check-memory"


def ttnn_to_emitc(options: Values) -> Iterator[Step | str]:
    """From the ttnn calls to C++ files."""
    if options["target-dylib"]:
        yield "ttnn-modify-signatures-for-dylib"
    yield Step("convert-ttnn-to-emitc", chosen(options, CONVERSION_OPTIONS))


def ttir_to_emitc(options: Values) -> Iterator[Step | str]:
    """From what the user wrote to C++ files."""
    yield Step("ttir-to-ttnn-common-pipeline", chosen(options, TTNN_OPTIONS))
    yield Step("ttnn-common-to-emitc-pipeline", chosen(options, EMITC_OPTIONS))


# The table of the pipelines of the library, under the names of tt-mlir (2024 to 2026).

PIPELINES = (
    PipelineEntry(
        name="ttir-pipeline",
        group=Group.TTIR,
        steps=ttir,
        description="The passes on TTIR: element types, decompositions, fusing.",
        options=TTIR_OPTIONS,
    ),
    PipelineEntry(
        name="ttir-to-ttnn-common-pipeline",
        group=Group.TTNN,
        steps=ttir_to_ttnn,
        description="TTIR to TTNN, with layouts.",
        aliases=("ttir-to-ttnn-runtime-pipeline", "ttir-to-ttnn-backend-pipeline"),
        options=TTNN_OPTIONS,
    ),
    PipelineEntry(
        name="ttnn-to-ttnn-pipeline",
        group=Group.TTNN,
        steps=ttnn_to_ttnn,
        description="TTNN with layouts, to calls as the library takes them.",
        options=TTNN_OPTIONS,
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
        options=EMITC_OPTIONS,
    ),
    PipelineEntry(
        name="ttir-to-emitc-pipeline",
        group=Group.EMITC,
        steps=ttir_to_emitc,
        description="TTIR to C++ files.",
        options=(*TTNN_OPTIONS, *(each for each in EMITC_OPTIONS if each is not RELEASE)),
    ),
)
"""Rows in the order of --help within each group."""
