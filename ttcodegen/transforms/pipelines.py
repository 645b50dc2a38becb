"""The table of the pipelines: each is a list of passes that one can read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
    yield Step("ttir-pipeline", {option.name: options[option.name] for option in _TTIR_OPTIONS})
    yield "convert-ttir-to-ttnn"
    yield "remove-dead-values"
    yield "ttnn-layout"
    if options["enable-const-eval"]:
        yield "const-eval-hoist-transform"
    yield "ttnn-decompose-layouts"
    yield "ttnn-deallocate"


_TTIR_OPTIONS = (
    Option("enable-fusing-pass", "Recognise what the library has one op for.", True),
    Option("enable-implicit-broadcast-folding-pass", "Drop broadcasts that are implied.", True),
    Option("enable-erase-inverse-ops-pass", "Cancel permutations and reshapes.", True),
)
_TTNN_OPTIONS = (
    *_TTIR_OPTIONS,
    Option("enable-const-eval", "Compute once what depends on weights only.", True),
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
)
"""Rows in the order of --help within each group."""
