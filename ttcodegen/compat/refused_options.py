"""Options of the reference compiler's pipelines (tt-mlir, 2024 to 2026) that are not available.

Each is accepted with the value that says what is done anyway; any other value is refused with the
reason that the options are listed under.
"""

from __future__ import annotations

from collections.abc import Mapping

Refused = Mapping[str, Mapping[str, bool | int | str]]
"""By reason: the options with the only value that they may have."""

_OPTIMIZER = "the optimizer has no such setting: see --optimization-level and --overrides"
_CALLS = "what the library asks of its operands is always respected"
_CPU = "what runs once is computed on the device"
_DEVICES = "the library chooses how chips of the mesh exchange data"
_TRACE = "the C++ captures and replays traces itself: ttcodegen --trace"
_TYPES = "tensors keep the data types that the source gives them"
_KERNELS = "the library chooses how its kernels compute"
_FUSED = "the fusing rules are applied together"
_D2M = "TTNN programs hold calls of the library only"
_METRICS = "use --mlir-timing, or the perf command of ttcodegen-rt"

REFUSED_TTNN_OPTIONS: Refused = {
    _OPTIMIZER: {
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
    _CALLS: {
        "disable-workarounds": False,
        "enable-layout-workaround-pass": True,
        "enable-decomposition-workaround-pass": True,
        "enable-ttnn-decomposition-pass": True,
        "composite-resolution": "auto",
    },
    _CPU: {
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
        "experimental-bfp8-weights": False,
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
        "enable-fusing-conv2d-with-multiply-pattern": False,
        "enable-permute-matmul-fusion": False,
        "enable-permute-slice-after-matmul-fusion": False,
    },
    _D2M: {
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
