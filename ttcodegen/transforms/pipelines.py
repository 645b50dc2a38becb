"""The table of the pipelines of the library, under the names of tt-mlir (2024 to 2026)."""

from __future__ import annotations

from ttcodegen.transforms import pipeline_steps
from ttcodegen.transforms.pipeline_options import EMITC_OPTIONS, TTIR_OPTIONS, TTNN_OPTIONS
from ttcodegen.transforms.registry import Group, PipelineEntry

PIPELINES = (
    PipelineEntry(
        name="ttir-pipeline",
        group=Group.TTIR,
        steps=pipeline_steps.ttir,
        description="The passes on TTIR: element types, decompositions, fusing.",
        options=TTIR_OPTIONS,
    ),
    PipelineEntry(
        name="ttir-to-ttnn-common-pipeline",
        group=Group.TTNN,
        steps=pipeline_steps.ttir_to_ttnn,
        description="TTIR to TTNN, with layouts.",
        aliases=("ttir-to-ttnn-runtime-pipeline", "ttir-to-ttnn-backend-pipeline"),
        options=TTNN_OPTIONS,
    ),
    PipelineEntry(
        name="ttnn-to-ttnn-pipeline",
        group=Group.TTNN,
        steps=pipeline_steps.ttnn_to_ttnn,
        description="TTNN with layouts, to calls as the library takes them.",
        options=TTNN_OPTIONS,
    ),
    PipelineEntry(
        name="ttnn-common-to-runtime-pipeline",
        group=Group.TTNN,
        steps=pipeline_steps.ttnn_to_runtime,
        description="TTNN to what a flatbuffer holds.",
        aliases=("ttnn-common-to-flatbuffer-pipeline",),
    ),
    PipelineEntry(
        name="ttnn-common-to-emitc-pipeline",
        group=Group.EMITC,
        steps=pipeline_steps.ttnn_to_emitc,
        description="TTNN to C++ files.",
        options=EMITC_OPTIONS,
    ),
    PipelineEntry(
        name="ttir-to-emitc-pipeline",
        group=Group.EMITC,
        steps=pipeline_steps.ttir_to_emitc,
        description="TTIR to C++ files.",
        options=(*TTNN_OPTIONS, *EMITC_OPTIONS),
    ),
)
"""Rows in the order of --help within each group."""
