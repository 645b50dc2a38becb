"""The tables of the passes and pipelines of the path to programs of the device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ttcodegen.transforms.passes import SYSTEM_OPTIONS
from ttcodegen.transforms.registry import (
    Group,
    Option,
    OptionValue,
    PassEntry,
    PipelineEntry,
    Step,
)

Values = Mapping[str, OptionValue]


def ttir_to_ttmetal(options: Values) -> Iterator[Step | str]:
    """From what the user wrote to programs of the device, in order."""
    system = {o.name: options[o.name] for o in SYSTEM_OPTIONS if options[o.name] != o.default}
    yield Step("ttcore-register-device", system)
    yield Step("ttir-pipeline", {"enable-fusing-pass": False})
    yield "ttir-primitives"
    yield "ttir-decompose"
    yield "ttir-canonicalize"
    yield "ttir-implicit-broadcast-fold"
    yield "ttir-primitives"
    yield Step("ttmetal-weight-dtype-conversion", {"target-dtype": options["weight-dtype"]})
    yield "convert-ttir-to-ttmetal"


_WEIGHT_TYPE = Option(
    "target-dtype", "The type of all weights.", "", choices=("", "bfp_bf8", "bfp_bf4")
)

PASSES = (
    PassEntry(
        name="ttir-primitives",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir_primitives:TTIRPrimitivesPass",
        description="Replaces ops by those that device kernels are made for: elementwise ops, "
        "reductions, products of matrices, movements of elements.",
    ),
    PassEntry(
        name="ttmetal-weight-dtype-conversion",
        group=Group.TTMETAL,
        implementation="ttcodegen.transforms.ttmetal_weight_types:TTMetalWeightTypes",
        description="Keeps weights as block floats, where programs read whole tiles of them.",
        options=(_WEIGHT_TYPE,),
    ),
    PassEntry(
        name="convert-ttir-to-ttmetal",
        group=Group.TTMETAL,
        implementation="ttcodegen.conversions.ttir_to_ttmetal.convert:ConvertTTIRToTTMetal",
        description="Divides functions into programs of the device, and writes their kernels.",
        options=(
            Option("columns", "Cores in a row to use; 0 for those that the system has.", 0),
            Option("rows", "Rows of cores to use; 0 for those that the system has.", 0),
        ),
    ),
)

PIPELINES = (
    PipelineEntry(
        name="ttir-to-ttmetal-pipeline",
        group=Group.TTMETAL,
        steps=ttir_to_ttmetal,
        description="TTIR to programs of the device.",
        aliases=("ttir-to-ttmetal-backend-pipeline", "ttir-to-ttmetal-common-pipeline"),
        options=(
            *SYSTEM_OPTIONS,
            Option(
                "weight-dtype",
                "The type that weights are kept in where programs take it.",
                "",
                choices=("", "bfp_bf8", "bfp_bf4"),
            ),
        ),
    ),
)
"""Rows in the order of --help within each group."""
