"""The attention of the release over blocks of queries and of keys."""

from __future__ import annotations

import math

import numpy as np
from release_kernels.launching import Buffer, HandWritten, Kernel

_FOLDER = "transformer/sdpa/device/kernels"
DESTINATION = 8
"""Tiles of 16 bits in the destination registers."""


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, block: int) -> HandWritten:
    """The attention of heads, without a mask: a core for each block of queries of each head, which
    goes through blocks of so many keys."""
    heads, length, size = q.shape
    tiles, width, each = length // 32, size // 32, block // 32
    blocks = tiles // each
    down = min(each, DESTINATION // min(each, DESTINATION))
    over = min(each, DESTINATION // width)
    scale = int(np.float32(1 / math.sqrt(size)).view(np.uint32))
    one = 0x3F803F80
    cores = [(head, number) for head in range(heads) for number in range(blocks)]
    all_cores = ((0, 0), (heads - 1, blocks - 1))
    chunks = {(head, number): [0, 1, head, head + 1, number, number + 1] for head, number in cores}
    accessors = ["accessor:q", "accessor:k", "accessor:v", *["accessor:q"] * 4]
    read = Kernel(
        f"{_FOLDER}/dataflow/reader_interleaved.cpp",
        "read",
        *all_cores,
        [1, heads, heads, heads, tiles, tiles, tiles, tiles, width, width, each, blocks, each]
        + [blocks, len(cores), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, down, 0, 1, 2, 0, *accessors],
        arguments={
            core: ["q", "k", "v", 0, 0, 0, 0, 0, *chunks[core], 1, 0, 0, *[0] * 14]
            for core in cores
        },
    )
    write = Kernel(
        f"{_FOLDER}/dataflow/writer_interleaved.cpp",
        "write",
        *all_cores,
        [
            1,
            heads,
            heads,
            tiles,
            tiles,
            length,
            width,
            width,
            each,
            blocks,
            each,
            blocks,
            one,
            scale,
        ]
        + [len(cores), 0, 1, 0, 0, 0, 0, 0, over, "accessor:y"],
        defines={"PARTLY_WRITTEN": "7"},
        arguments={core: ["y", 0, *chunks[core], 1, 0, 0, 0] for core in cores},
    )
    compute = Kernel(
        f"{_FOLDER}/compute/sdpa.cpp",
        "compute",
        *all_cores,
        [1, heads, heads, tiles, width, width, each, blocks, each, blocks]
        + [width, min(each, DESTINATION), down, each // down, 1, 1]
        + [each, width, over, each // over, 1, 1]
        + [len(cores), 0, 0, 0, 0, scale, 0, 0, 0, tiles, 1],
        defines={
            "STATS_GRANULARITY": str(min(each, DESTINATION)),
            "SUB_EXP_GRANULARITY": str(min(each, DESTINATION)),
            "MUL_BCAST_GRANULARITY": str(min(each * each, DESTINATION)),
            "DHT_GRANULARITY": str(min(width, DESTINATION)),
            "REDUCE_GRANULARITY": str(min(each, DESTINATION // 2)),
            "EXP_APPROX_MODE": "0",
        },
        settings={"fidelity": "hifi4"},
        arguments={core: [0, *chunks[core], 1, 0, 0] for core in cores},
        omitted=["compute_streaming.hpp"],
    )
    counts = {0: 2 * each * width, 1: 2 * each * width, 2: 2 * each * width, 3: 1, 5: 1, 7: 1}
    counts |= {24: each * each, 25: each * width, 26: each * width, 16: each * width}
    counts |= {index: each for index in range(27, 32)}
    flat = {"q": q, "k": k, "v": v, "y": np.zeros_like(q)}
    operands = {name: values.reshape(-1, size) for name, values in flat.items()}
    buffers = [
        Buffer([index, index - 16] if index >= 24 else [index], pages, changed=index >= 24)
        for index, pages in counts.items()
    ]
    return HandWritten(operands, "y", buffers, 3, [read, compute, write])
