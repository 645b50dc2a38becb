"""Passes of the reference compiler (tt-mlir, 2024 to 2026) that are not here, and why.

A command line that was written for it should fail with a reason, not with "unknown option".
"""

from __future__ import annotations

_WRAPPED = "functions are in the module itself; wrappers are removed when a module is read"
_CPU = "what runs once is computed on the device; functions for the CPU are C++, see --cpu-hoist"
_OPTIMIZER = "ttnn-optimize decides placements and how calls are distributed over the cores"
_CALLS = "the catalogue has the requirements of the library on operands, so that the " \
    "conversion to TTNN and ttnn-layout do this"  # fmt: skip
_DECOMPOSED = "the decompositions of the catalogue do this: use --ttir-decompose"
_STRUCTURED = "the C++ is structured by convert-ttnn-to-emitc"
_DEVICES = "the library chooses how chips of the mesh exchange data"
_PYTHON = "the output is C++, not Python"
_INPUTS = "modules in other dialects become TTIR when they are read"
_D2M = "the ttmetal path does not go through D2M: see the group TTMetal"

_REASONS: dict[str, tuple[str, ...]] = {
    _WRAPPED: (
        "ttcore-wrap-device-module",
        "ttcore-unwrap-device-module",
        "ttcore-mark-functions-as-forward",
        "tt-wrap-device-module",
        "tt-unwrap-device-module",
    ),
    _CPU: (
        "cpu-hoist-const-eval",
        "linalg-to-llvm-pipeline",
        "convert-ttir-to-nvvm",
        "convert-ttir-to-linalg",
        "ttnn-force-const-eval-to-system-memory",
        "ttnn-common-to-cpu-pipeline",
    ),
    _OPTIMIZER: (
        "ttnn-optimizer",
        "ttnn-rm-layout-propagation",
        "ttnn-greedy-memory-layout-propagation",
        "ttnn-greedy-l1-spill-management",
        "ttnn-operation-validation-and-fallback",
        "ttnn-prepare-conv2d-weights-and-bias",
        "ttnn-prepare-conv3d-weights",
        "ttnn-deduce-moe-compute-layouts",
        "ttnn-memory-management",
        "ttnn-kv-cache-dtype-conversion",
        "ttir-propagate-weight-dtype",
        "device-passes-wrapper",
    ),
    _CALLS: (
        "ttnn-workaround",
        "ttnn-resolve-composites",
        "ttnn-decomposition",
        "ttnn-fusing",
        "ttir-infer-kv-cache-argument-types",
        "ttir-flatten-sliding-window",
        "ttir-consolidate-static-cache-updates",
    ),
    _DECOMPOSED: (
        "ttir-quant-dequant-conversion",
        "ttir-quant-data-type-conversion",
        "ttcore-optimization-barrier-fold",
        "ttir-constant-as-fill",
        "ttir-explicate-tms",
        "ttir-fold-full-to-scalar",
        "ttir-fold-constant-reshape-broadcast",
        "ttir-reduction-force-keep-dim",
        "ttir-predicate-type-alignment",
    ),
    _STRUCTURED: (
        "recover-structure-xla-torch-pipeline",
        "ttnn-recover-structure",
        "ttnn-adjust-deallocs",
        "ttnn-force-final-deallocs",
        "ttnn-create-input-gens",
        "ttnn-create-input-generators",
        "ttnn-load-input-tensors",
        "ttnn-file-split",
        "ttnn-unique-locations",
        "ttnn-trace-hoist-transform",
        "ttnn-collect-perf-metrics",
        "remove-dead-emitc-expressions",
        "form-expressions",
    ),
    _DEVICES: (
        "ttnn-configure-ccl-ops",
        "ttnn-allocate-distributed-op-buffers",
        "ttnn-allocate-distributed-op-semaphores",
        "ttir-multi-device-tensor-annotation",
        "shardy-to-ttir",
    ),
    _PYTHON: (
        "ttir-to-emitpy-pipeline",
        "ttnn-common-to-emitpy-pipeline",
        "convert-ttnn-to-emitpy",
        "pykernel-compile-pipeline",
    ),
    _INPUTS: (
        "stablehlo-pipeline",
        "stablehlo-to-ttir-pipeline",
        "convert-stablehlo-to-ttir",
        "convert-arith-to-stablehlo",
        "legalize-stablehlo-composite-to-ttir",
    ),
    _D2M: (
        "ttir-to-d2m",
        "ttir-bufferization-pipeline",
        "ttnn-through-d2m-pipeline",
        "ttnn-create-d2m-subgraphs",
        "ttir-generic-linearize-memref",
        "ttir-allocate",
        "ttir-grid-set",
        "ttir-optimize-tensor-layout",
        "convert-ttir-to-ttkernel",
        "ttkernel-control-dst-section",
        "ttkernel-hoist-inits",
        "ttkernel-dedup-inits",
        "convert-d2m-to-ttkernel",
        "convert-d2m-to-ttmetal",
    ),
}


def reason(name: str) -> str | None:
    """Why there is no pass of a name that the reference compiler has, None if it has none."""
    for why, names in _REASONS.items():
        if name in names:
            return why
    return _D2M if name.startswith("d2m-") else None
