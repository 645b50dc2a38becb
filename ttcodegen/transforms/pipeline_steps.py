"""The pipelines of the library: each is a list of passes that one can read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ttcodegen.transforms.given_decisions import given_decisions, optimization_level
from ttcodegen.transforms.pass_options import chosen
from ttcodegen.transforms.passes import EMITC_OPTIONS as CONVERSION_OPTIONS
from ttcodegen.transforms.passes import SYSTEM_OPTIONS
from ttcodegen.transforms.pipeline_options import (
    EMITC_OPTIONS,
    TTIR_OPTIONS,
    TTNN_OPTIONS,
)
from ttcodegen.transforms.registry import OptionValue, Step

Values = Mapping[str, OptionValue]


def ttir(options: Values) -> Iterator[Step | str]:
    """From what the user wrote to few and fused ops of device types."""
    yield "inline"
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
    yield Step("ttcore-register-device", chosen(options, SYSTEM_OPTIONS))
    if options["argument-types"]:
        yield Step("populate-argument-types", {"argument-types": options["argument-types"]})
    yield "ttmetal-lift-programs"
    yield "ttir-outline-generics"
    yield Step("inline", {"cpu-functions": True, "generics": True})
    yield "ttir-partition"
    yield Step("ttir-pipeline", chosen(options, TTIR_OPTIONS))
    yield "ttcore-record-chip-shares"
    yield "convert-ttir-to-ttnn"
    if options["enable-remove-dead-values"]:
        yield "remove-dead-values"
    if optimization_level(options) > 0:
        yield from ("ttnn-decode-caches", "ttnn-dense-rows")
        given = given_decisions(options)
        yield from (Step("ttnn-fuse-projections", given), "ttnn-decode-heads")
        yield Step("ttnn-fuse-activations", given)
    yield from _placed(options)


def _placed(options: Values) -> Iterator[Step | str]:
    """The last steps of both ways to TTNN: compute configurations, placement and lifetimes of
    tensors."""
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
        yield "const-eval-hoist-transform"
    yield "ttnn-decompose-layouts"
    yield "ttnn-deallocate"
    yield "ttcore-check-memory"


def ttnn_to_ttnn(options: Values) -> Iterator[Step | str]:
    """From calls that have layouts, and ops for those that the library refuses, to legal calls."""
    yield Step("ttcore-register-device", chosen(options, SYSTEM_OPTIONS))
    if options["argument-types"]:
        yield Step("populate-argument-types", {"argument-types": options["argument-types"]})
    yield from ("ttnn-canonicalize-calls", "ttcore-imply-mesh", "inline")
    yield from ("ttcore-record-chip-shares", "ttir-decompose", "convert-ttir-to-ttnn")
    yield from _placed(options)


def ttnn_to_runtime(options: Values) -> Iterator[Step | str]:
    """TTNN is what the flatbuffer holds: there is only to see that it fits the device."""
    yield "ttcore-check-memory"


def ttnn_to_emitc(options: Values) -> Iterator[Step | str]:
    """From the calls of the library to C++ files."""
    if options["target-dylib"]:
        yield "ttnn-modify-signatures-for-dylib"
    yield Step("convert-ttnn-to-emitc", chosen(options, CONVERSION_OPTIONS))


def ttir_to_emitc(options: Values) -> Iterator[Step | str]:
    """From what the user wrote to C++ files."""
    yield Step("ttir-to-ttnn-common-pipeline", chosen(options, TTNN_OPTIONS))
    yield Step("ttnn-common-to-emitc-pipeline", chosen(options, EMITC_OPTIONS))
