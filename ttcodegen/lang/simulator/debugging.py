"""Debug printing and signposts inside kernels."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

import numpy as np

from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.lang.simulator.buffers import Block, DataflowBuffer
from ttcodegen.lang.simulator.context import running_kernel
from ttcodegen.lang.simulator.locations import error, is_dropped
from ttcodegen.lang.simulator.tensors import Tensor

# `print` inside of kernels.

ONE_OBJECT = "print takes one object of TT-Lang at a time, besides strings and numbers"


def debug_print(
    *values: Any, num_pages: int = 1, sep: str = " ", end: str = "\n", **rest: Any
) -> None:
    """Prints strings, numbers and at most one object of the language.

    Args:
        values: what to print.
        num_pages: how many pages of a tensor: tiles, or rows.
        sep: the text between values.
        end: the text after them.
        rest: what else Python's print takes.
    """
    objects = [value for value in values if isinstance(value, Tensor | Block | DataflowBuffer)]
    if len(objects) > 1:
        raise error(ONE_OBJECT)
    texts = [_text(value, num_pages) for value in values]
    print(*texts, sep=sep, end=end, file=rest.get("file", sys.stdout))


def _text(value: Any, pages: int) -> str:
    if isinstance(value, DataflowBuffer):
        return value.describe()
    if isinstance(value, Block):
        return str(value.content())
    if isinstance(value, Tensor):
        return "\n".join(f"page {n}:\n{page}" for n, page in enumerate(_pages(value, pages)))
    return str(value)


def _pages(tensor: Tensor, count: int) -> list[np.ndarray]:
    if not tensor.is_tiled:
        rows = tensor.padded.reshape(-1, tensor.padded.shape[-1])
        return list(rows[:count])
    height, width = tensor.padded.shape[-2:]
    found: list[np.ndarray] = []
    for matrix in tensor.padded.reshape(-1, height, width):
        for row in range(0, height, TILE_SIDE):
            for column in range(0, width, TILE_SIDE):
                if len(found) == count:
                    return found
                found.append(matrix[row : row + TILE_SIDE, column : column + TILE_SIDE])
    return found


# Signposts: parts of kernels whose time is measured on the device. The simulator has no time.

ONLY_WITH = "ttl.signpost can be used with the with statement only"


class signpost:
    """`with ttl.signpost("read a"):` names a part of a kernel."""

    def __init__(self, name: str) -> None:
        running_kernel("ttl.signpost")
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise error(f"the name of a signpost is a string, not a {type(name).__name__}")
        if is_dropped():
            raise error(ONLY_WITH)
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass
