"""Passes and options of the reference compiler (tt-mlir) that are not available."""

from __future__ import annotations

from collections.abc import Mapping

SPELLINGS = ("2024", "2025")
"""Supported years of module spellings.

Defined here, so that command lines read it without importing the printing passes.
"""

# Passes of the reference compiler (tt-mlir, 2024 to 2026) that are not here, and why.
#
# A command line that was written for it should fail with a reason, not with "unknown option".

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
_TRACES = "the C++ captures and replays traces itself: ttcodegen --trace"
_WEIGHTS = "weights become block floats by ttnn-weight-dtype-conversion; caches keep their type"
_PERF = "use the perf command of ttcodegen-rt"
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
        "ttnn-prepare-conv3d-weights",
        "ttnn-deduce-moe-compute-layouts",
        "ttnn-memory-management",
        "device-passes-wrapper",
    ),
    _WEIGHTS: (
        "ttnn-kv-cache-dtype-conversion",
        "ttir-propagate-weight-dtype",
    ),
    _TRACES: ("ttnn-trace-hoist-transform",),
    _PERF: ("ttnn-collect-perf-metrics",),
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
        "remove-dead-emitc-expressions",
        "form-expressions",
    ),
    _DEVICES: (
        "ttnn-configure-ccl-ops",
        "ttnn-allocate-distributed-op-buffers",
        "ttnn-allocate-distributed-op-semaphores",
        "ttir-multi-device-tensor-annotation",
    ),
    _PYTHON: (
        "ttir-to-emitpy-pipeline",
        "ttnn-common-to-emitpy-pipeline",
        "convert-ttnn-to-emitpy",
        "pykernel-compile-pipeline",
    ),
    _INPUTS: (
        "stablehlo-pipeline",
        "shardy-to-ttir",
        "convert-arith-to-stablehlo",
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
    """Reason for the absence of a pass of tt-mlir, None if it has no such pass."""
    for why, names in _REASONS.items():
        if name in names:
            return why
    return _D2M if name.startswith("d2m-") else None


# Options of the reference compiler's pipelines (tt-mlir, 2024 to 2026) that are not available.
#
# Each is accepted with the value that says what is done anyway; any other value is refused with
# the reason that the options are listed under.

Refused = Mapping[str, Mapping[str, bool | int | str]]
"""Options that accept a single value only, by the reason."""

_OPTIMIZER_OPTIONS = "the optimizer has no such setting: see --optimization-level and --overrides"
_CALL_OPTIONS = "what the library asks of its operands is always respected"
_CPU_OPTIONS = "what runs once is computed on the device"
_TRACE = "the C++ captures and replays traces itself: ttcodegen --trace"
_TYPES = "tensors keep the data types that the source gives them, but for weights and "\
    "activations: experimental-weight-dtype, experimental-activation-dtype"  # fmt: skip
_KERNELS = "how kernels compute is said call by call: by a compute_config in the module, or by "\
    "math_fidelity in --overrides"  # fmt: skip
_FUSED = "the fusing rules are applied together: enable-fusing-pass=false leaves all of them out"
_D2M_OPTIONS = "TTNN programs hold calls of the library only"
_METRICS = "use --mlir-timing, or the perf command of ttcodegen-rt"

REFUSED_TTNN_OPTIONS: Refused = {
    _OPTIMIZER_OPTIONS: {
        "enable-optimizer-memory-layout-analysis": False,
        "memory-layout-analysis-policy": "",
        "max-legal-layouts": 64,
        "row-major-enabled": False,
        "tensor-l1-usage-cap": "",
        "override-conv3d-config": "",
        "max-fallback-attempts": 10000,
        "enable-decision-trace": False,
        "decision-trace-dir": "",
        "use-mock-allocator-state": False,
        "enable-dram-space-saving-optimization-pass": False,
    },
    _CALL_OPTIONS: {
        "disable-workarounds": False,
        "enable-layout-workaround-pass": True,
        "enable-decomposition-workaround-pass": True,
        "enable-ttnn-decomposition-pass": True,
        "composite-resolution": "auto",
    },
    _CPU_OPTIONS: {
        "enable-cpu-hoisted-const-eval": False,
        "enable-const-eval-inputs-to-system-memory": False,
    },
    _DEVICES: {
        "mesh-topology": "",
        "enable-ccl-activation-dtype-lowering": False,
    },
    _TRACE: {
        "enable-trace": False,
    },
    _TYPES: {
        "target-bit-width": 32,
        "enable-bfp8-conversion": False,
        "experimental-kv-cache-dtype": "none",
        "enable-activation-dtype-lowering": False,
        "enable-quant-dequant-conversion-pass": True,
    },
    _KERNELS: {
        "compute-cfg-math-fidelity": "",
        "compute-cfg-fp32-dest-acc-en": "",
        "compute-cfg-math-approx-mode": "",
        "compute-cfg-packer-l1-acc": "",
        "compute-cfg-dst-full-sync-en": "",
    },
    _FUSED: {
        "enable-fusing-conv2d-with-multiply-pattern": True,
        "enable-permute-matmul-fusion": True,
        "enable-permute-slice-after-matmul-fusion": False,
    },
    _D2M_OPTIONS: {
        "enable-create-d2m-subgraphs": False,
        "enable-d2m-elementwise-fusion": False,
    },
    _METRICS: {
        "ttnn-perf-metrics-enabled": False,
        "ttnn-perf-metrics-output-file": "",
        "enable-compile-time-stats": False,
    },
    "locations do not have to be unique": {
        "check-unique-locs": False,
    },
}

REFUSED_EMITC_OPTIONS: Refused = {
    "the C++ has the structure of the model anyway": {
        "try-recover-structure": True,
    },
    "structures without fields are left out": {
        "tuplify-input-if-empty": False,
    },
    "the project that ttcodegen writes reads inputs and weights from .npy files": {
        "load-input-tensors-from-disk": False,
        "tensor-load-directory": "",
        "tensor-load-file-prefix": "",
    },
}

REFUSED_TTMETAL_OPTIONS: Refused = {
    "programs run on all cores that the system describes": {
        "mesh-topology": "",
        "override-device-shape": "",
    },
    "tensors are in DRAM between programs": {
        "default-input-memspace": "dram",
        "default-output-memspace": "dram",
        "force-spill-to-dram-if-legal": True,
        "allow-l1-output-spilling": True,
    },
    "elementwise ops are fused as far as the destination registers reach": {
        "enable-elementwise-fusion": True,
        "enable-eltwise-reduction-fusion": False,
        "enable-op-scheduler": False,
        "max-dst-physical-size-tiles": 0,
    },
    "the lowering decides how kernels compute and move tiles": {
        "matmul-interchange": "",
        "use-tile-matmul": True,
        "collapse-tensors-2d": True,
        "disable-tolayout-folding": False,
        "set-math-fidelity": "HiFi4",
        "num-stream-buffers": 2,
        "stream-insert-policy": "infer",
        "available-l1-addr-range": "",
        "global-data-format-target": "",
        "enable-multicast-inference": True,
        "use-tensor-accessor-dma": True,
        "disable-l1-acc": False,
        "force-compile-time-args": False,
    },
    "use the perf command of ttcodegen-rt": {
        "insert-profiler-traces": False,
        "profiler-traits": "",
    },
    "programs of the device are self-contained": {
        "ttnn-mode": False,
    },
}
