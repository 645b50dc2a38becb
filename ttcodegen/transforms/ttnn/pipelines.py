"""Pipelines to TTNN: options, steps and names."""

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
    fixed,
    non_default,
)

# Options of the pipelines.
#
# Names are those of tt-mlir (2024 to 2026). An option with a `refusal` is unsupported here: only
# the value that describes the behaviour anyway is accepted.

TTIR_OPTIONS = (
    Option("enable-fusing-pass", "Fuse ops to those of the library.", True),
    Option(
        "enable-implicit-broadcast-folding-pass",
        "Fold broadcasts into ops that broadcast implicitly.",
        True,
    ),
    Option("enable-erase-inverse-ops-pass", "Cancel inverse permutes and reshapes.", True),
)
CALL_OPTIONS = (
    *SYSTEM_OPTIONS,
    Option("argument-types", "Kinds of arguments: function=input,parameter,constant,..."),
    Option("enable-const-eval", "Compute what depends only on weights once.", True),
    Option(
        "optimization-level",
        "0: none but overrides; 1: local choices; 2: a search over layouts.",
        0,
        choices=(0, 1, 2),
    ),
    Option("enable-optimizer", "Level 1 if the level is 0.", False),
    Option("memory-layout-analysis-enabled", "Level 2 if there is an optimizer.", False),
    Option(
        "experimental-weight-dtype",
        "Data type of the weights of matmuls.",
        "none",
        choices=("none", "bfp_bf8", "bfp_bf4"),
    ),
    Option(
        "experimental-activation-dtype",
        "Data type of activations between calls that take it.",
        "none",
        choices=("none", "bfp_bf8"),
    ),
    Option("experimental-bfp8-weights", "Weights of matmuls as bfp_bf8.", False),
    Option("overrides", "Overrides of decisions, as JSON."),
    RELEASE,
    Option("override-output-layout", "Layouts of results: name=8x8:l1:block_sharded:tile:bf16,..."),
    Option("override-conv2d-config", "Convolutions: name=core_grid#8x4:weights_dtype#bf16,..."),
    Option("insert-memreconfig", "Operands to reshard before a call: name=0:1,..."),
    Option("record-decisions", "Record the decisions in attributes of the module.", False),
    Option("refused-choices", "Choices that the library refused, as JSON; [] marks all choices."),
    *fixed(REFUSED_TTNN_OPTIONS),
)
"""Options of both pipelines to ttnn calls: from TTIR and from TTNN."""
TTNN_OPTIONS = (
    *TTIR_OPTIONS,
    Option("enable-remove-dead-values", "Erase dead ops after lowering.", True),
    PARALLEL,
    *CALL_OPTIONS,
)
EMITC_OPTIONS = (
    *CONVERSION_OPTIONS,
    Option(
        "target-dylib",
        "Add functions on vectors of tensors, for callers independent of the model.",
        False,
    ),
    *fixed(REFUSED_EMITC_OPTIONS),
)


# Overrides from pipeline options, and the optimization level that they imply.

REFERENCE_OVERRIDES = ("override-output-layout", "override-conv2d-config", "insert-memreconfig")
"""Override options of tt-mlir."""
LEVELS = (1, 2)

Values = Mapping[str, OptionValue]


def level_of(overrides: str) -> int:
    """Returns the optimization level of an overrides file: 1 by default, 0 if it only has
    shardings.

    Raises:
        CompileError: if it names another level.
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
    """Returns the optimization level: 0 none, 1 local choices, 2 a search over layouts.

    Overrides apply at level 0, too: at the level that their file was written at, else 1.
    """
    level = options["optimization-level"]
    assert isinstance(level, int)
    if level == 0 and options["enable-optimizer"]:
        level = 1
    if level == 0 and (given := given_decisions(options)):
        level = level_of(str(given["overrides"]))
    if level == 0 and options["memory-layout-analysis-enabled"]:
        raise OptionError(
            "nothing is decided at level 0: 'memory-layout-analysis-enabled' needs the optimizer",
            remedy="give enable-optimizer or optimization-level as well",
        )
    for name in ("record-decisions", "refused-choices"):
        if level == 0 and options[name]:
            raise OptionError(f"nothing is decided at level 0: '{name}' needs level 1 or 2")
    return 2 if level == 1 and options["memory-layout-analysis-enabled"] else level


def given_decisions(options: Values) -> dict[str, OptionValue]:
    """Returns the overrides, given as JSON or by options of the reference compiler.

    Raises:
        OptionError: if both are given.
    """
    given = [f"{name}={options[name]}" for name in REFERENCE_OVERRIDES if options[name]]
    if options["overrides"]:
        if given:
            name = given[0].partition("=")[0]
            raise OptionError(f"decisions are given twice: by 'overrides' and by '{name}'")
        return {"overrides": options["overrides"]}
    return {"overrides": " ".join(given)} if given else {}


# Steps of the pipelines.


def ttir(options: Values) -> Iterator[Step | str]:
    """TTIR to fused ops on device types."""
    yield "inline"
    yield "ttir-own-buffers"
    yield "ttir-element-type-normalization"
    yield "ttir-decompose"
    yield "ttir-canonicalize"
    if options["enable-implicit-broadcast-folding-pass"]:
        yield "ttir-implicit-broadcast-fold"
    elif options["enable-fusing-pass"]:
        raise OptionError(
            "the fusing rules drop implied broadcasts, too: without "
            "'enable-implicit-broadcast-folding-pass' they cannot be applied",
            remedy="give enable-fusing-pass=false as well",
        )
    erased = ["ttir-erase-inverse"] if options["enable-erase-inverse-ops-pass"] else []
    yield from erased
    if options["enable-fusing-pass"]:
        yield "ttir-fusing"
        # Fusing into convolutions may leave permutes adjacent to their inverses.
        yield from erased
        yield "ttir-decompose"
    yield "ttir-empty-attention-rows"


def ttir_to_ttnn(options: Values) -> Iterator[Step | str]:
    """TTIR to ttnn calls."""
    yield from _on_device(options)
    yield from ("ttmetal-lift-programs", "ttir-outline-generics")
    yield Step("inline", {"cpu-functions": True, "generics": True})
    yield from choice_of_shardings(options)
    yield "ttir-partition"
    yield Step("ttir-pipeline", non_default(options, TTIR_OPTIONS))
    yield "ttcore-record-chip-shares"
    yield "convert-ttir-to-ttnn"
    if options["enable-remove-dead-values"]:
        yield "remove-dead-values"
    # Conversions of different ops create equal operands.
    yield "cse"
    if optimization_level(options) > 0:
        given = given_decisions(options)
        if given:
            yield Step("ttnn-replace-calls", given)
        yield from ("ttnn-decode-caches", "ttnn-dense-rows")
        yield from (Step("ttnn-fuse-projections", given), "ttnn-decode-heads")
        yield from ("ttnn-pooled-means", "ttnn-batched-rows", "ttnn-row-major-moves")
        yield Step("ttnn-fuse-activations", given)
    if optimization_level(options) == 1:
        # At level 2, the search finds shards for a sum and its norm that save more than fusing.
        yield Step("ttnn-fuse-residuals", given_decisions(options))
    if optimization_level(options) > 1:
        yield "ttnn-divide-wide-products"
    yield from _placement_steps(options)


def _on_device(options: Values) -> Iterator[Step | str]:
    """First steps of both pipelines to TTNN: implied mesh, device, kinds of arguments."""
    if not options["mesh-shape"]:
        yield "ttcore-imply-mesh"
    yield Step("ttcore-register-device", non_default(options, SYSTEM_OPTIONS))
    if options["argument-types"]:
        yield Step("populate-argument-types", {"argument-types": options["argument-types"]})


def choice_of_shardings(options: Values) -> Iterator[Step | str]:
    """Choice of shardings for modules without any, if requested."""
    overrides = options.get("overrides", "")
    if options["parallel"] or overrides:
        given = {"parallel": options["parallel"], "overrides": overrides}
        given["weights"] = options.get("experimental-weight-dtype", "none")
        yield Step("ttir-choose-shardings", given)


def _placement_steps(options: Values) -> Iterator[Step | str]:
    """Last steps of both pipelines to TTNN.

    Forms of the release, compute configs, placement and lifetimes of tensors.
    """
    yield Step("ttnn-fit-release", non_default(options, (RELEASE,)))
    yield from ("ttnn-set-compute-kernel-config", "ttnn-layout")
    target = options["experimental-weight-dtype"]
    if options["experimental-bfp8-weights"]:
        if target == "bfp_bf4":
            raise OptionError("weights cannot be both bfp_bf8 and bfp_bf4")
        target = "bfp_bf8"
    if target != "none":
        yield Step("ttnn-weight-dtype-conversion", {"target": target})
    if (activations := options["experimental-activation-dtype"]) != "none":
        given = {"target": activations, **given_decisions(options)}
        yield Step("ttnn-activation-dtype-conversion", given)
    if (level := optimization_level(options)) > 0:
        record: dict[str, OptionValue] = {"record": True} if options["record-decisions"] else {}
        if options["refused-choices"]:
            record["refused"] = options["refused-choices"]
        yield Step("ttnn-optimize", {"level": level, **given_decisions(options), **record})
    else:
        yield "ttnn-fit-attention"
    yield "ttnn-sliced-pools"
    if options["enable-const-eval"]:
        yield "ttnn-prepare-conv2d-weights-and-bias"
        yield from ("ttnn-hoist-loop-invariants", "const-eval-hoist-transform")
    yield "ttnn-decompose-layouts"
    yield "ttnn-deallocate"
    yield "ttcore-check-memory"


def ttnn_to_ttnn(options: Values) -> Iterator[Step | str]:
    """TTNN with layouts to legal calls, with decompositions where the library refuses an op."""
    yield from _on_device(options)
    yield from ("ttnn-canonicalize-calls", "inline", "ttir-own-buffers")
    yield from ("ttcore-record-chip-shares", "ttir-decompose", "convert-ttir-to-ttnn")
    if (given := given_decisions(options)) and optimization_level(options) > 0:
        yield Step("ttnn-replace-calls", given)
    yield from _placement_steps(options)


def ttnn_to_runtime(options: Values) -> Iterator[Step | str]:
    """Check that TTNN fits the device: the flatbuffer holds TTNN as it is."""
    yield "ttcore-check-memory"


def ttnn_to_emitc(options: Values) -> Iterator[Step | str]:
    """ttnn calls to C++ files."""
    if options["target-dylib"]:
        yield "ttnn-modify-signatures-for-dylib"
    yield Step("convert-ttnn-to-emitc", non_default(options, CONVERSION_OPTIONS))


def ttir_to_emitc(options: Values) -> Iterator[Step | str]:
    """TTIR to C++ files."""
    yield Step("ttir-to-ttnn-common-pipeline", non_default(options, TTNN_OPTIONS))
    yield Step("ttnn-common-to-emitc-pipeline", non_default(options, EMITC_OPTIONS))


# Table of the pipelines, under the names of tt-mlir (2024 to 2026).

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
        description="TTNN with layouts to legal calls of the library.",
        options=CALL_OPTIONS,
    ),
    PipelineEntry(
        name="ttnn-common-to-runtime-pipeline",
        group=Group.TTNN,
        steps=ttnn_to_runtime,
        description="TTNN to the contents of a flatbuffer.",
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
