"""Kernels of the release that divide tiles, or rows of tiles, among cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from release_kernels.launching import Argument, Buffer, Core, HandWritten, Kernel

SIDE = 8
_ELTWISE = "eltwise/binary/device/kernels"
_UNARY = "eltwise/unary/device/kernels"
_SOFTMAX = "normalization/softmax/device/kernels/attention"
_NORM = "normalization/layernorm/device/kernels"
_ALL = ((0, 0), (SIDE - 1, SIDE - 1))


def _each_core(
    count: int, arguments: Callable[[int], Sequence[Argument]]
) -> Mapping[Core, Sequence[Argument]]:
    """Arguments of the cores, along the columns, from the number of each."""
    return {(core // SIDE, core % SIDE): arguments(core) for core in range(count)}


def chain(a: np.ndarray, b: np.ndarray) -> HandWritten:
    """A sum, and functions of its elements on 8x8 cores: sigmoid(sqrt(|a + b|))."""
    tiles = a.size // 1024 // SIDE**2
    chain = "abs_tile_init(); abs_tile(i); sqrt_tile_init(); sqrt_tile(i); "
    chain += "sigmoid_tile_init(); sigmoid_tile(i);"
    read = Kernel(
        f"{_ELTWISE}/dataflow/reader_binary_interleaved_start_id.cpp",
        "read",
        *_ALL,
        [0, "accessor:a", "accessor:b"],
        arguments=_each_core(SIDE**2, lambda core: ["a", "b", tiles, core * tiles, 0, 0, 0]),
    )
    compute = Kernel(
        f"{_ELTWISE}/compute/eltwise_binary_kernel.cpp",
        "compute",
        *_ALL,
        defines={
            "ELTWISE_OP": "add_tiles",
            "ELTWISE_OP_TYPE": "EltwiseBinaryType::ELWADD",
            "SFPU_OP_COMPUTE_KERNEL_API_INCLUDE": "1",
            "SFPU_OP_SQRT_INCLUDE": "1",
            "SFPU_OP_CHAIN_0": chain,
        },
        settings={"fidelity": "hifi4"},
        arguments=_each_core(SIDE**2, lambda _: [tiles, 1]),
    )
    write = Kernel(
        f"{_UNARY}/dataflow/writer_unary_interleaved_start_id.cpp",
        "write",
        *_ALL,
        [2, "accessor:y"],
        arguments=_each_core(SIDE**2, lambda core: ["y", tiles, core * tiles]),
    )
    operands = {"a": a, "b": b, "y": np.zeros_like(a)}
    return HandWritten(
        operands, "y", [Buffer([each], 2) for each in range(3)], 0, [read, compute, write]
    )


def softmax(x: np.ndarray) -> HandWritten:
    """The softmax of each row, with its maximum taken away, a row of tiles on each core."""
    rows, width = (size // 32 for size in x.shape)
    each = rows // SIDE**2
    block = 4
    read = Kernel(
        f"{_SOFTMAX}/dataflow/reader_unary_interleaved_sm.cpp",
        "read",
        *_ALL,
        ["accessor:x"],
        arguments=_each_core(
            SIDE**2, lambda core: ["x", block, 0, each, core * each * width, width]
        ),
    )
    compute = Kernel(
        f"{_SOFTMAX}/compute/softmax.cpp",
        "compute",
        *_ALL,
        defines={"NUMERIC_STABLE": "1", "EXP_APPROX": "0", "ENABLE_FP32_DEST_ACC": "1"},
        settings={"fidelity": "hifi4", "fp32": 1},
        arguments=_each_core(SIDE**2, lambda core: [each, 1, width, block, core * each, 0]),
    )
    write = Kernel(
        f"{_SOFTMAX}/dataflow/writer_unary_interleaved_start_id_blocked_sm.cpp",
        "write",
        *_ALL,
        [0, 1024, "accessor:y"],
        arguments=_each_core(
            SIDE**2, lambda core: ["y", each * width, core * each * width, block, 0]
        ),
    )
    pages = {0: width, 2: 1, 13: 1, 6: width, 7: 1, 8: 1, 10: width, 11: 2 * block}
    buffers = [Buffer([index], count) for index, count in pages.items()]
    return HandWritten({"x": x, "y": np.zeros_like(x)}, "y", buffers, 0, [read, compute, write])


def rms_norm(x: np.ndarray, gamma: np.ndarray, epsilon: float) -> HandWritten:
    """The RMS norm of each row, times a row of weights, on one core for each row of tiles."""
    rows, width = (size // 32 for size in x.shape)
    block = 4
    names = ("cb_in", "cb_inb", "cb_scaler", "cb_eps", "cb_gamma", "cb_beta", "cb_out", "cb_ex")
    names += ("cb_ex2", "cb_xmm2", "cb_ex2pe", "cb_fusion", "cb_xmm", "cb_x", "cb_in_rm")
    indices = {name: index for index, name in enumerate(names)}
    cores = ((0, 0), (0, rows - 1))
    bits = int(np.float32(epsilon).view(np.uint32)) >> 16
    read = Kernel(
        f"{_NORM}/dataflow/reader_unary_interleaved_ln.cpp",
        "read",
        *cores,
        [block, 0, x.shape[1], "accessor:x", "accessor:x", "accessor:gamma", "accessor:gamma"],
        indices,
        {"RMSNORM": "1", "FUSE_GAMMA": "1", "PARTLY_WRITTEN": str(indices["cb_eps"])},
        arguments=_each_core(
            rows, lambda core: ["x", 1, width, core, 0, bits << 16 | bits, "gamma", 0, 0]
        ),
    )
    compute = Kernel(
        f"{_NORM}/compute/layernorm.cpp",
        "compute",
        *cores,
        [width, block, 1, 0, 0, 1, 0, x.shape[1], 32],
        indices,
        {"RMSNORM": "1"},
        {"fidelity": "hifi4", "fp32": 1},
        _each_core(rows, lambda _: [1]),
    )
    write = Kernel(
        f"{_NORM}/dataflow/writer_unary_interleaved_start_id_blocked.cpp",
        "write",
        *cores,
        [block, "accessor:y"],
        indices,
        arguments=_each_core(rows, lambda core: ["y", width, 1, core * width]),
    )
    pages = {"cb_in": width, "cb_gamma": width, "cb_scaler": 1, "cb_eps": 1, "cb_ex2": 1}
    pages |= {"cb_xmm2": width, "cb_ex2pe": 1, "cb_fusion": 2 * block, "cb_out": 2 * block}
    buffers = [Buffer([indices[name]], count) for name, count in pages.items()]
    operands = {"x": x, "gamma": np.repeat(gamma[None], 32, 0), "y": np.zeros_like(x)}
    return HandWritten(operands, "y", buffers, 0, [read, compute, write])
