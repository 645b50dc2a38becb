"""The matmul of the release that multicasts its blocks along rows and columns of cores."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from release_kernels.launching import Buffer, HandWritten, Kernel

SIDE = 8
SUBBLOCK = (2, 2)
_FOLDER = "matmul/device/kernels"
_BUFFERS = {
    name: index
    for index, name in enumerate(
        ("cb_in0", "cb_in1", "cb_in0_sharded", "cb_bias", "cb_out", "cb_intermed0", "cb_sparsity")
    )
} | {"cb_in0_transposed": 10}
_UNUSED = 11


def matmul(a: np.ndarray, b: np.ndarray, block_inner: int) -> HandWritten:
    """The product of two matrices on 8x8 cores, as `MatmulMultiCoreReuseMultiCastProgramConfig`
    sets it up, with sums of float32 that the packer accumulates."""
    rows, inner, columns = (size // 32 for size in (*a.shape, b.shape[1]))
    height, width, blocks = rows // SIDE, columns // SIDE, inner // block_inner
    a_tiles, b_tiles = height * block_inner, block_inner * width
    sub_height, sub_width = SUBBLOCK
    sub_tiles = sub_height * sub_width
    subblocks = height // sub_height, width // sub_width
    out = (1, columns, sub_width, sub_height * columns, width, height * columns)
    out = (*out, sub_width, sub_height, sub_tiles, rows * columns)
    last = SIDE - 1
    places = [(x, y) for x in range(SIDE) for y in range(SIDE)]

    def receives(x: int, y: int) -> list[int]:
        return [subblocks[0], subblocks[0], sub_height, 0, subblocks[1], subblocks[1], sub_width]

    a_read = Kernel(
        f"{_FOLDER}/dataflow/reader_bmm_tile_layout_in0_sender_padding.cpp",
        "read",
        (0, 0),
        (0, last),
        [1, inner, block_inner, height * inner, block_inner, height, a_tiles]
        + [0, 0, 0, 0, 0, blocks, 1, 1, 0, 1, last, last, rows * inner, 1, 1, 0]
        + [0, 0, 1, 0, 0, "accessor:a", "accessor:a"],
        _BUFFERS,
        arguments={
            (0, y): ["a", y * height * inner, "column:1", f"row:{y}", f"column:{last}", f"row:{y}"]
            + [height, 0]
            for y in range(SIDE)
        },
    )
    a_receive = Kernel(
        f"{_FOLDER}/dataflow/reader_bmm_tile_layout_in0_receiver.cpp",
        "read",
        (1, 0),
        (last, last),
        [a_tiles, blocks, 1, 1, 0, 1, 1, 0],
        _BUFFERS,
        arguments={(x, y): ["column:0", f"row:{y}"] for x, y in places if x},
    )
    b_read = Kernel(
        f"{_FOLDER}/dataflow/reader_bmm_tile_layout_in1_sender_writer_padding.cpp",
        "write",
        (0, 0),
        (last, 0),
        [1, columns, block_inner * columns, width, width, block_inner, b_tiles, blocks, 1, 1]
        + [2, 3, last, last, inner * columns, 1, 0, 0, 0, *out, 0, 0, 0]
        + ["accessor:b", "accessor:b", "accessor:y"],
        _BUFFERS,
        arguments={
            # The second NoC runs the other way, from the last core to the first.
            (x, 0): ["b", x * width, f"column:{x}", f"row:{last}", f"column:{x}", "row:1", 0]
            + ["y", x * width, width, subblocks[0], sub_height, 0, subblocks[1], subblocks[1]]
            + [sub_width, 0, 0, 0, 0, 1]
            for x in range(SIDE)
        },
    )
    b_receive = Kernel(
        f"{_FOLDER}/dataflow/reader_bmm_tile_layout_in1_receiver_writer_padding.cpp",
        "write",
        (0, 1),
        (last, last),
        [b_tiles, blocks, 1, 1, 2, 3, 1, *out, 0, 0, "accessor:y"],
        _BUFFERS,
        arguments={
            (x, y): [f"column:{x}", "row:0", "y", y * height * columns + x * width]
            + [*receives(x, y), 0, 0, 1, 1]
            for x, y in places
            if y
        },
    )
    compute = Kernel(
        f"{_FOLDER}/compute/bmm_large_block_zm_fused_bias_activation.cpp",
        "compute",
        (0, 0),
        (last, last),
        [block_inner, subblocks[0], a_tiles, sub_height * block_inner, subblocks[1], b_tiles]
        + [width, blocks, 1, 1, sub_height, sub_width, sub_tiles, 1, height * width, 0, 0, 0],
        _BUFFERS,
        {"PACKER_L1_ACC": "1", "FP32_DEST_ACC_EN": "1"},
        {"fidelity": "hifi4", "fp32": 1},
    )
    operands: Mapping[str, np.ndarray] = {
        "a": a,
        "b": b,
        "y": np.zeros((a.shape[0], b.shape[1]), np.float32),
    }
    buffers = [
        Buffer([_BUFFERS["cb_in0"]], 2 * a_tiles),
        Buffer([_BUFFERS["cb_in1"]], 2 * b_tiles),
        Buffer([_BUFFERS["cb_out"]], height * width),
        # The packer adds to sums that were popped: what else may be there keeps them.
        Buffer([_BUFFERS["cb_intermed0"], _UNUSED], height * width, "f32"),
    ]
    kernels = [a_read, a_receive, b_read, b_receive, compute]
    return HandWritten(operands, "y", buffers, 4, kernels)
